add_library(symm_no_errors INTERFACE)
target_compile_options(symm_no_errors INTERFACE -Wno-error)  # a mutant may not use all it declares

# Mutants: test programs from which one memory order, sync, flag check or buffer is removed. The
# tests have to fail for exactly that reason. Only in the tsan preset: without ThreadSanitizer
# almost no missing order is found.
#
# symm_mutants(GROUP LABELS label... SOURCES file... [LINK target...] [ENVIRONMENT name=value...])
#
# Builds the GoogleTest program of SOURCES as it is, which has to pass: test mutants.GROUP_sound.
#
# symm_mutant(GROUP NAME FILTER REPORT FILE file OLD text NEW text...)
#
# Builds it again, with OLD replaced by NEW in a copy of the file, a source or a header: OLD has to
# be there exactly once. More replacements may follow, in the same file or in others. Test
# mutants.GROUP_NAME runs the cases that match FILTER, and what it prints has to match the regular
# expression REPORT: the race or the wrong value that the mutant should cause, and no other.
# ThreadSanitizer stops at its first report, so only that report counts.
macro(symm_mutants group)
  set(symm_mutants_${group} ${ARGN})
  symm_mutant(${group} sound * "")
endmacro()

function(symm_mutant group name filter report)
  if(NOT SYMM_SANITIZE STREQUAL "thread" OR SYMM_COURSE)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "LABELS;SOURCES;LINK;ENVIRONMENT" ${symm_mutants_${group}})
  set(program ${group}_${name})
  set(files)
  set(i 4)
  while(i LESS ARGC)
    math(EXPR value "${i} + 1")
    set(${ARGV${i}} "${ARGV${value}}")  # FILE, OLD or NEW
    if(ARGV${i} STREQUAL "FILE")
      list(APPEND files "${FILE}")
      file(READ "${PROJECT_SOURCE_DIR}/${FILE}" text_${FILE})
    elseif(ARGV${i} STREQUAL "NEW")
      string(FIND "${text_${FILE}}" "${OLD}" first)
      string(FIND "${text_${FILE}}" "${OLD}" last REVERSE)
      if(first EQUAL -1 OR NOT first EQUAL last)
        message(FATAL_ERROR "mutant ${program} replaces this, which has to be in ${FILE} exactly "
          "once:\n${OLD}\nChange the mutant, or put the text back: "
          "./lab reset, if an exercise is open.")
      endif()
      string(REPLACE "${OLD}" "${NEW}" text_${FILE} "${text_${FILE}}")
    endif()
    math(EXPR i "${i} + 2")
  endwhile()

  # Where other files are changed, the compiler's arguments have to change, or nothing is rebuilt.
  string(MD5 hash "${files}")
  set(copies "${CMAKE_CURRENT_BINARY_DIR}/mutants/${program}/${hash}")
  foreach(file IN LISTS files)
    file(CONFIGURE OUTPUT "${copies}/${file}" CONTENT "${text_${file}}" @ONLY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${file}")
    file(RELATIVE_PATH source "${CMAKE_CURRENT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/${file}")
    list(TRANSFORM arg_SOURCES REPLACE "^${source}$" "${copies}/${file}")
  endforeach()
  add_executable(${program} ${arg_SOURCES})
  symm_kernels(${program})
  target_link_libraries(${program} PRIVATE symm_options ${arg_LINK} GTest::gtest
                        GTest::gtest_main CUDA::cudart_static symm_no_errors)
  symm_quick_to_build(${program})
  symm_use_precompiled(${program} symm_precompiled_test)
  if(NOT files)
    list(APPEND arg_ENVIRONMENT SYMM_TIMEOUT=60)  # a busy machine is no fault
  endif()
  add_test(NAME mutants.${program} COMMAND ${program} "--gtest_filter=${filter}")
  set_tests_properties(mutants.${program} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 300 ENVIRONMENT
    "SYMM_DRIVER=emulated;TSAN_OPTIONS=${SYMM_TSAN_OPTIONS}:halt_on_error=1;${arg_ENVIRONMENT}")
  if(files)
    target_include_directories(${program} BEFORE PRIVATE "${copies}")
    set_tests_properties(mutants.${program} PROPERTIES PASS_REGULAR_EXPRESSION "${report}")
  else()
    set_tests_properties(mutants.${program} PROPERTIES FAIL_REGULAR_EXPRESSION "ThreadSanitizer")
  endif()
endfunction()
