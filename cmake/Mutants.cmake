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
  symm_mutate()
  foreach(file IN LISTS files)
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

# Writes copies of files with texts replaced: FILE file OLD text NEW text..., the arguments of the
# calling function from the fifth on (as arguments of this one they would be split at semicolons).
# For the mutant `program`. Sets `files`, and `copies`, the folder where they are.
macro(symm_mutate)
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
  endforeach()
endmacro()

# What the explorer runs (docs/EXPLORE.md), in the tsan preset:
#
# symm_exploration(NAME LABEL SOURCES file...): the program `explore_NAME`, and the test
# explore.NAME, that it visits all executions of all protocols and finds nothing.
#
# symm_explored_mutant(NAME MUTANT PROTOCOL REPORT FILE file OLD text NEW text...): the test
# mutants.explore_NAME_MUTANT, that the mutated program finds a failure of PROTOCOL that matches
# REPORT.
function(symm_exploration name label)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "SOURCES")
  list(TRANSFORM arg_SOURCES PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  set_property(GLOBAL PROPERTY symm_exploration_${name} ${label} ${arg_SOURCES})
  symm_explored(explore_${name} ${arg_SOURCES})
  if(TARGET explore_${name})
    add_test(NAME explore.${name} COMMAND explore_${name})
    set_tests_properties(explore.${name} PROPERTIES LABELS ${label} TIMEOUT 600
                         FAIL_REGULAR_EXPRESSION "the bound of")
  endif()
endfunction()

function(symm_explored_mutant name mutant protocol report)
  if(NOT TARGET explore_${name} OR SYMM_COURSE)
    return()
  endif()
  get_property(sources GLOBAL PROPERTY symm_exploration_${name})
  list(POP_FRONT sources label)
  set(program explore_${name}_${mutant})
  symm_mutate()
  symm_explored(${program} ${sources})
  target_include_directories(${program} BEFORE PRIVATE "${copies}")
  add_test(NAME mutants.${program} COMMAND ${program} ${protocol})
  set_tests_properties(mutants.${program} PROPERTIES LABELS ${label} TIMEOUT 60
                       PASS_REGULAR_EXPRESSION "=> [^\n]*(${report})")
endfunction()

# A program of scenes: instrumented, but without libtsan.
function(symm_explored program)
  if(NOT TARGET symm_explore)
    return()
  endif()
  add_executable(${program} ${ARGN})
  target_link_libraries(${program} PRIVATE symm_explored)
  target_precompile_headers(${program} REUSE_FROM symm_explored_headers)
endfunction()
