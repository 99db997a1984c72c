# The kinds of target this repository has. Include directories, standard, warnings and sanitizers are
# set per target, here, once.

# What every target compiles and links with.
add_library(symm_options INTERFACE)
# Said as a flag: CMake 3.25 does not know that nvcc has C++20, and would ask it for C++17.
target_compile_options(symm_options INTERFACE -std=c++20)
target_include_directories(symm_options INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(symm_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-missing-field-initializers>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers>)
if(SYMM_WARNINGS_AS_ERRORS)
  target_compile_options(symm_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Werror>)
endif()
if(SYMM_SANITIZE)
  target_compile_options(symm_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${SYMM_SANITIZE} -fno-sanitize-recover=all>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fno-sanitize-recover=all>)
  string(REPLACE "," ";" sanitizers "${SYMM_SANITIZE}")
  foreach(sanitizer IN LISTS sanitizers)  # nvcc would split the list at its comma
    target_compile_options(symm_options INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fsanitize=${sanitizer}>)
  endforeach()
  target_link_options(symm_options INTERFACE -fsanitize=${SYMM_SANITIZE})
endif()
# fmt takes nvcc for a compiler without constexpr; what it really lacks is checking format strings while it
# compiles, which g++ does in the .cpp files.
target_compile_definitions(symm_options INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1> $<$<COMPILE_LANGUAGE:CUDA>:FMT_CONSTEVAL=>)
target_link_libraries(symm_options INTERFACE symm_fmt Threads::Threads ${CMAKE_DL_LIBS} rt)
# libcu++ (cuda/atomic) lies in a folder of its own since CUDA 13.
target_include_directories(symm_options SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
foreach(include IN LISTS CUDAToolkit_INCLUDE_DIRS)
  if(EXISTS "${include}/cccl")
    target_include_directories(symm_options SYSTEM INTERFACE "${include}/cccl")
  endif()
endforeach()

# Programs and tests under a sanitizer spend their build in the optimiser and their run in libraries.
set(SYMM_PROGRAM_OPTIMISATION "")
if(SYMM_SANITIZE)
  set(SYMM_PROGRAM_OPTIMISATION -O0)
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(SYMM_PROGRAM_OPTIMISATION -O1)
endif()
function(symm_quick_to_build target)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:${SYMM_PROGRAM_OPTIMISATION}>")
endfunction()

# GoogleTest's TEST leaves a member that nvcc, with clang as its host compiler, calls unused.
set(SYMM_TEST_CUDA_OPTIONS $<$<COMPILE_LANGUAGE:CUDA>:-diag-suppress=177>)

# symm_library(NAME SOURCES file... [LINK target...])
function(symm_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC symm_options ${arg_LINK} PRIVATE CUDA::cudart_static)
endfunction()

# symm_program(NAME SOURCES file... [LINK target...])
function(symm_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE symm_options ${arg_LINK} CUDA::cudart_static)
  target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc)
  symm_quick_to_build(${name})
endfunction()

# symm_test(NAME LABELS label... SOURCES file... [LINK target...] [TIMEOUT seconds] [GROUPED] [ONE_DEVICE])
#
# Each case is a test of ctest's of its own, unless GROUPED: then the whole program is one (for many
# short cases whose process start would cost more than they do). ONE_DEVICE: all but the cases of programs run
# once more with every rank on one emulated device, where ranks share a context and wait for each other
# in more places.
function(symm_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "GROUPED;ONE_DEVICE" "TIMEOUT" "LABELS;SOURCES;LINK")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE symm_options ${arg_LINK} GTest::gtest GTest::gtest_main CUDA::cudart_static)
  target_compile_definitions(${name} PRIVATE SYMM_SANITIZE="${SYMM_SANITIZE}")
  target_compile_options(${name} PRIVATE ${SYMM_TEST_CUDA_OPTIONS})
  symm_quick_to_build(${name})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  # ThreadSanitizer would sleep a second at the end of each process, for reports of threads that still run.
  set(environment "TSAN_OPTIONS=atexit_sleep_ms=0")
  if(arg_GROUPED)
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${environment}")
  else()
    include(GoogleTest)
    gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${environment}")
  endif()
  if(arg_ONE_DEVICE)
    symm_test_again(${name} on_one_device LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT}
      ENVIRONMENT SYMM_EMU_DEVICES=1 FILTER -*Program*)
  endif()
endfunction()

# symm_test_again(TEST SUFFIX LABELS label... ENVIRONMENT name=value... FILTER filter [TIMEOUT seconds])
#
# Some cases of a test once more, on another emulated machine.
function(symm_test_again name suffix)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "TIMEOUT;FILTER" "LABELS;ENVIRONMENT")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_test(NAME ${name}.${suffix} COMMAND ${name} --gtest_brief=1 --gtest_filter=${arg_FILTER})
  set_tests_properties(${name}.${suffix} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT "TSAN_OPTIONS=atexit_sleep_ms=0;SYMM_DRIVER=emulated;${arg_ENVIRONMENT}")
endfunction()

# symm_benchmark(NAME SOURCES file... [LINK target...]), with a test that it refuses bad usage with 2: not built under a sanitizer, whose timings mean nothing.
function(symm_benchmark name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  if(SYMM_SANITIZE)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE symm_options ${arg_LINK} symm_bench CUDA::cudart_static)
  if(SYMM_BENCHMARK_KIND STREQUAL "SHARED_LIBRARY")  # it travels with the build directory, beside the programs
    set_target_properties(${name} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
    add_custom_command(TARGET ${name} POST_BUILD COMMAND ${CMAKE_COMMAND} -E copy_if_different
      $<TARGET_FILE:benchmark::benchmark> $<TARGET_FILE_DIR:${name}>/$<TARGET_SONAME_FILE_NAME:benchmark::benchmark>)
  endif()
  add_test(NAME ${name}_usage COMMAND sh -c "$<TARGET_FILE:${name}> --no-such-flag; test $? -eq 2")
  string(SUBSTRING ${name} 0 2 number)
  set_tests_properties(${name}_usage PROPERTIES LABELS lab${number} TIMEOUT 60)
endfunction()

# symm_fuzz(NAME LABELS label... SOURCES file... [LINK target...]): a libFuzzer target, in the asan preset. As a test it
# runs for some seconds; run the program itself for longer.
function(symm_fuzz name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LABELS;SOURCES;LINK")
  if(NOT SYMM_SANITIZE MATCHES "address" OR NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE symm_options ${arg_LINK} CUDA::cudart_static)
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_test(NAME ${name} COMMAND ${name} -max_total_time=8 -verbosity=0)
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 120)
endfunction()
