# This repository's kinds of targets. Include directories, language standard, warnings and
# sanitizers are set per target, only here.

# The options of every target.
add_library(symm_options INTERFACE)
# A flag, because CMake 3.25 does not know that nvcc supports C++20, and would request C++17.
# Programs that use the installed libraries may use a newer standard.
target_compile_options(symm_options INTERFACE $<BUILD_INTERFACE:-std=c++20>)
target_compile_features(symm_options INTERFACE $<INSTALL_INTERFACE:cxx_std_20>)
target_include_directories(symm_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/symm/include>
  $<INSTALL_INTERFACE:include>)
add_library(symm_warnings INTERFACE)  # not installed
target_link_libraries(symm_options INTERFACE $<BUILD_INTERFACE:symm_warnings>)
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(symm_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-missing-field-initializers>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
    target_compile_options(symm_warnings INTERFACE  # it ignores members' [[maybe_unused]]
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-attributes>
      $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wno-attributes>)
  endif()
endif()
if(SYMM_WARNINGS_AS_ERRORS)
  # The newest clang warns of what std::stable_sort of older libraries does.
  target_compile_options(symm_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror -Wno-error=deprecated-declarations>
    $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Werror>)
endif()
if(SYMM_SANITIZE)
  target_compile_options(symm_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${SYMM_SANITIZE} -fno-sanitize-recover=all>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fno-sanitize-recover=all>)
  string(REPLACE "," ";" sanitizers "${SYMM_SANITIZE}")
  foreach(sanitizer IN LISTS sanitizers)  # nvcc would split the list at its comma
    target_compile_options(symm_options INTERFACE
      $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fsanitize=${sanitizer}>)
  endforeach()
  target_link_options(symm_options INTERFACE -fsanitize=${SYMM_SANITIZE})
  if(SYMM_SANITIZE MATCHES "undefined")
    # The vptr check opens a pipe to read memory. If a test has used up all descriptors, it reports
    # valid objects.
    target_compile_options(symm_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=vptr>)
  endif()
endif()
# fmt assumes that nvcc has no constexpr, which is wrong. But nvcc cannot check format strings at
# compile time (consteval); g++ does so in the .cpp files.
target_compile_definitions(symm_options INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1> $<$<COMPILE_LANGUAGE:CUDA>:FMT_CONSTEVAL=>)
target_link_libraries(symm_options INTERFACE
  symm_fmt symm::cuda_headers Threads::Threads ${CMAKE_DL_LIBS} rt)

# nvcc compiles the largest kernels in a third of the time if it hardly optimises them.
function(symm_quick_kernels target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcicc=-O1> $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-O1>)
endfunction()

# Building programs and tests spends most of its time on optimisation, and running them spends most
# of its time in libraries. So programs and tests are not optimised.
function(symm_quick_to_build target)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
  symm_quick_kernels(${target})
endfunction()

# Headers of other projects that most files include, parsed once for libraries and once for tests:
# this halves the time to compile a test. Headers of this project are excluded, because mutants
# replace them. Not used when kernels are optimised for a GPU: then all else waits for nvcc anyway.
if(PROJECT_IS_TOP_LEVEL AND SYMM_UNITY_BUILD AND (SYMM_EMULATED_ONLY OR SYMM_QUICK_KERNELS))
  set(headers <cuda_runtime.h> <cuda/atomic> <fmt/format.h>
    <array> <chrono> <functional> <map> <memory> <optional> <string> <thread> <vector>)
  file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp" "")
  # Without times a precompiled header is the same in every checkout, which a compiler cache needs.
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  add_library(symm_precompiled OBJECT "${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp")
  target_link_libraries(symm_precompiled PRIVATE symm_options)
  set_target_properties(symm_precompiled PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_precompile_headers(symm_precompiled PRIVATE ${headers})
  add_library(symm_precompiled_test OBJECT "${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp")
  target_link_libraries(symm_precompiled_test PRIVATE symm_options GTest::gtest)
  target_precompile_headers(symm_precompiled_test PRIVATE
    ${headers} <gmock/gmock.h> <gtest/gtest.h>)
  symm_quick_to_build(symm_precompiled_test)
endif()
function(symm_use_precompiled target precompiled)
  if(TARGET ${precompiled})
    target_precompile_headers(${target} REUSE_FROM ${precompiled})
  endif()
endfunction()

include(Kernels)

# By default, ThreadSanitizer sleeps for a second at the end of each process, to wait for reports.
set(SYMM_TSAN_OPTIONS "atexit_sleep_ms=0")

# GoogleTest's TEST defines a member that nvcc, with clang as its host compiler, reports as unused.
set(SYMM_TEST_CUDA_OPTIONS $<$<COMPILE_LANGUAGE:CUDA>:-diag-suppress=177>)

# symm_library(NAME SOURCES file... [LINK target...])
function(symm_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_library(${name} STATIC ${arg_SOURCES})
  # A user may link it into a shared library: a module of Python, a plugin.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  symm_kernels(${name})
  target_link_libraries(${name} PUBLIC symm_options ${arg_LINK} PRIVATE CUDA::cudart_static)
  if(SYMM_QUICK_KERNELS)
    symm_quick_kernels(${name})
  endif()
  symm_use_precompiled(${name} symm_precompiled)
endfunction()

# symm_program(NAME SOURCES file... [LINK target...])
function(symm_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE symm_options ${arg_LINK} CUDA::cudart_static)
  target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc)
  symm_kernels(${name})
  symm_quick_to_build(${name})
endfunction()

# symm_test(NAME LABELS label... SOURCES file... [LINK target...] [PROGRAM target] [TIMEOUT seconds]
#           [NATIVE filter] [ONE_DEVICE] [LARGE] [QUICK])
#
# Each case is a separate ctest test, on emulated GPUs. PROGRAM is a target that the test starts, so
# it is built first. NATIVE: if the machine has a GPU, the cases that match the filter also run on
# it, all in one process, since a process takes seconds to find a GPU; one program at a time.
# ONE_DEVICE: all cases but those of programs, arithmetics, addresses and multicast run a second
# time, with all ranks on one emulated device, where they share a context and wait for each other in
# more places. Not under AddressSanitizer: they make the same accesses. LARGE: the cases fill many
# MiB, so with small pages ThreadSanitizer would spend half of its time on page faults in its own
# memory. QUICK: the cases have the label quick, and the target quick_tests builds the program: what
# an unknown machine is tried with.
function(symm_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg
    "ONE_DEVICE;LARGE;QUICK" "PROGRAM;TIMEOUT;NATIVE" "LABELS;SOURCES;LINK")
  if(arg_LARGE)
    string(APPEND SYMM_TSAN_OPTIONS ":no_huge_pages_for_shadow=0")  # in this function's scope
  endif()
  if(NOT PROJECT_IS_TOP_LEVEL)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE
    symm_options ${arg_LINK} GTest::gtest GTest::gtest_main CUDA::cudart_static)
  symm_kernels(${name})
  target_compile_definitions(${name} PRIVATE SYMM_SANITIZE="${SYMM_SANITIZE}")
  target_compile_options(${name} PRIVATE ${SYMM_TEST_CUDA_OPTIONS})
  symm_quick_to_build(${name})
  symm_use_precompiled(${name} symm_precompiled_test)
  if(arg_PROGRAM)
    add_dependencies(${name} ${arg_PROGRAM})
  endif()
  if(arg_QUICK)
    add_dependencies(quick_tests ${name})
    set(quick quick)
  endif()
  symm_cases(${name} "" LABELS ${arg_LABELS} ${quick} TIMEOUT ${arg_TIMEOUT})
  if(arg_NATIVE AND SYMM_GPUS)
    add_test(NAME native.${name} COMMAND ${name} "--gtest_filter=${arg_NATIVE}" --gtest_brief=1)
    set_tests_properties(native.${name} PROPERTIES LABELS "${arg_LABELS};native" TIMEOUT 300
      # Enough hardware queues: streams of ranks that share a GPU must not wait for each other.
      RESOURCE_LOCK gpu ENVIRONMENT "SYMM_DRIVER=native;CUDA_DEVICE_MAX_CONNECTIONS=32")
  endif()
  if(arg_ONE_DEVICE AND NOT SYMM_SANITIZE MATCHES address)
    set(others "-*Program*:All/Arithmetics*:OnRanks/SameBits*:*.IsRightAtOtherOffsets/*")
    string(APPEND others ":*.WritesNothingBehindItsOutput/*:MulticastCalls.*:*_multicast_*")
    if(SYMM_SANITIZE)  # nor kernels' suites: these are explored, and threads behave the same
      string(APPEND others ":ByKernels/*:All/*:OnRanks/*:Over*:By/*")
    endif()
    symm_test_again(${name} on_one_device LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT}
      ENVIRONMENT SYMM_EMU_DEVICES=1 FILTER ${others})
  endif()
endfunction()

# symm_exercise(NAME [OWN_MAIN] SOURCES file... [LINK target...]): a test program of the course,
# named in exercises.toml: as small as possible, so that it builds quickly after an edit. Its main()
# tells `./lab check` the results. A program that answers a question has a main() of its own.
function(symm_exercise name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OWN_MAIN" "" "SOURCES;LINK")
  if(SYMM_COURSE)
    if(NOT arg_OWN_MAIN)
      list(APPEND arg_LINK symm_exercise_main)
    endif()
    add_executable(${name} EXCLUDE_FROM_ALL ${arg_SOURCES})
    symm_kernels(${name})
    target_link_libraries(${name} PRIVATE
      symm_options ${arg_LINK} GTest::gtest CUDA::cudart_static)
    symm_quick_to_build(${name})
    symm_use_precompiled(${name} symm_precompiled_test)
  endif()
endfunction()

# symm_test_again(TEST SUFFIX LABELS label... ENVIRONMENT name=value... FILTER filter
#                 [TIMEOUT seconds])
#
# Runs the cases of a test that match the filter a second time, on another emulated machine.
function(symm_test_again name suffix)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "TIMEOUT;FILTER" "LABELS;ENVIRONMENT")
  if(PROJECT_IS_TOP_LEVEL)
    symm_cases(${name} ${suffix}. LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT} FILTER ${arg_FILTER}
      ENVIRONMENT ${arg_ENVIRONMENT})
  endif()
endfunction()

# One ctest test per case of a program. Disabled cases are child processes that other cases start.
function(symm_cases name prefix)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "TIMEOUT;FILTER" "LABELS;ENVIRONMENT")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(arg_FILTER MATCHES "-")
    string(APPEND arg_FILTER ":*DISABLED_*")
  else()
    string(APPEND arg_FILTER "-*DISABLED_*")
  endif()
  include(GoogleTest)
  string(MAKE_C_IDENTIFIER "${name}.${prefix}" tests)
  gtest_discover_tests(${name} TEST_PREFIX "${name}.${prefix}" TEST_FILTER "${arg_FILTER}"
    TEST_LIST ${tests} NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)
  # gtest_discover_tests does not support properties that are lists.
  file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/${tests}_properties.cmake" "if(${tests})
  set_tests_properties(\${${tests}} PROPERTIES LABELS \"${arg_LABELS}\" TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT \"SYMM_DRIVER=emulated;TSAN_OPTIONS=${SYMM_TSAN_OPTIONS};${arg_ENVIRONMENT}\")
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES
    "${CMAKE_CURRENT_BINARY_DIR}/${tests}_properties.cmake")
endfunction()

# symm_benchmark(NAME SOURCES file... [LINK target...] [RUN argument...]): a benchmark, a test that
# bad usage has exit status 2, and with RUN one that it runs to its end with these arguments. Not
# built with a sanitizer, under which timings mean nothing.
function(symm_benchmark name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK;RUN")
  if(SYMM_SANITIZE OR NOT PROJECT_IS_TOP_LEVEL)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE symm_options ${arg_LINK} symm_bench CUDA::cudart_static)
  get_target_property(kind benchmark::benchmark TYPE)
  if(kind STREQUAL "SHARED_LIBRARY")  # Debian's: a copy, so that the build directory can be moved
    set_target_properties(${name} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
    add_custom_command(TARGET ${name} POST_BUILD COMMAND ${CMAKE_COMMAND} -E copy_if_different
      $<TARGET_FILE:benchmark::benchmark>
      $<TARGET_FILE_DIR:${name}>/$<TARGET_SONAME_FILE_NAME:benchmark::benchmark>
      VERBATIM)
  endif()
  add_test(NAME ${name}_usage COMMAND sh -c [["$0" --no-such-flag; test $? -eq 2 || exit
    "$0" --benchmark_filter=zzz; test $? -eq 2 || exit
    "$0" --benchmark_list_tests >/dev/full; test $? -ne 0 || exit
    ulimit -f 0; "$0" --benchmark_list_tests >"$0.out"; status=$?
    rm "$0.out"; test $status -eq 1 -o $status -eq 2]] $<TARGET_FILE:${name}>)
  string(SUBSTRING ${name} 0 2 number)
  set_tests_properties(${name}_usage PROPERTIES LABELS lab${number} TIMEOUT 60)
  if(arg_RUN)
    add_test(NAME ${name}_runs COMMAND ${name} ${arg_RUN})
    set_tests_properties(${name}_runs PROPERTIES LABELS lab${number} TIMEOUT 120
      ENVIRONMENT SYMM_DRIVER=emulated)
  endif()
endfunction()

# symm_fuzz(NAME LABELS label... SOURCES file... [LINK target...]): a libFuzzer target, in the asan
# preset. The test runs for some seconds; run the program itself for longer.
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
