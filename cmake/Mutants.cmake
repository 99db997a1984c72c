add_library(symm_no_errors INTERFACE)
target_compile_options(symm_no_errors INTERFACE -Wno-error)  # a mutant may leave things unused

# Mutants: test programs from which one memory order, sync, flag check or buffer is removed. The
# tests must fail for exactly that reason. Only in the tsan preset: without ThreadSanitizer almost
# no missing order is found.
#
# symm_mutants(GROUP LABELS label... SOURCES file... [LINK target...] [ENVIRONMENT name=value...])
#
# Builds the GoogleTest program of SOURCES unchanged. It must pass: test mutants.GROUP_sound.
#
# symm_mutant(GROUP NAME FILTER REPORT FILE file OLD text NEW text...)
#
# Builds it again, with OLD replaced by NEW in a copy of the file, a source or a header. OLD must
# occur exactly once. More replacements may follow, in the same file or in others. Test
# mutants.GROUP_NAME runs the cases that match FILTER, and its output must match the regular
# expression REPORT: the race or the wrong value that the mutant should cause, and no other.
# ThreadSanitizer stops at its first report, so only that report counts.
#
# symm_mutant_case(GROUP NAME CASE FILTER REPORT)
#
# Test mutants.GROUP_CASE runs other cases of the mutant NAME: one build for faults that no case
# reaches together.
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
  if(files)
    target_include_directories(${program} BEFORE PRIVATE "${copies}")
  endif()
  symm_mutant_case(${group} ${name} ${name} "${filter}" "${report}")
endfunction()

function(symm_mutant_case group name case filter report)
  if(NOT TARGET ${group}_${name})
    return()
  endif()
  cmake_parse_arguments(arg "" "" "LABELS;SOURCES;LINK;ENVIRONMENT" ${symm_mutants_${group}})
  if(name STREQUAL "sound")
    list(APPEND arg_ENVIRONMENT SYMM_TIMEOUT=60)  # a busy machine must not fail it
    set(expected FAIL_REGULAR_EXPRESSION "ThreadSanitizer")
  else()
    set(expected PASS_REGULAR_EXPRESSION "${report}")
  endif()
  set(test mutants.${group}_${case})
  add_test(NAME ${test} COMMAND ${group}_${name} "--gtest_filter=${filter}")
  set_tests_properties(${test} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 300 ENVIRONMENT
    "SYMM_DRIVER=emulated;TSAN_OPTIONS=${SYMM_TSAN_OPTIONS}:halt_on_error=1;${arg_ENVIRONMENT}"
    ${expected})
endfunction()

# Writes the copies of files for the mutant `program`, with texts replaced: FILE file OLD text NEW
# text..., the calling function's arguments from the fifth on (passed to this macro, they would be
# split at semicolons). Sets `files`, and `copies`, the folder of the copies. Returns from the
# calling function if the text has changed; where the variable CI is set, that is an error.
macro(symm_mutate)
  set(files)
  set(i 4)
  while(i LESS ARGC)
    math(EXPR value "${i} + 1")
    set(${ARGV${i}} "${ARGV${value}}")  # FILE, OLD or NEW
    if(ARGV${i} STREQUAL "FILE")
      list(APPEND files "${FILE}")
      file(READ "${PROJECT_SOURCE_DIR}/${FILE}" text_${FILE})
      string(REGEX REPLACE "[^\n]*// exercise [0-9.]+ (begins|ends)[^\n]*\n" ""
             text_${FILE} "${text_${FILE}}")
    elseif(ARGV${i} STREQUAL "NEW")
      string(FIND "${text_${FILE}}" "${OLD}" first)
      string(FIND "${text_${FILE}}" "${OLD}" last REVERSE)
      if(first EQUAL -1 AND NOT DEFINED ENV{CI})  # an exercise, or an experiment
        message(STATUS "mutant ${program} skipped: its text in ${FILE} has changed")
        return()
      elseif(first EQUAL -1 OR NOT first EQUAL last)
        message(FATAL_ERROR "mutant ${program} replaces this text, which must occur exactly once "
          "in ${FILE}:\n${OLD}\nChange the mutant, or restore the text.")
      endif()
      string(REPLACE "${OLD}" "${NEW}" text_${FILE} "${text_${FILE}}")
    endif()
    math(EXPR i "${i} + 2")
  endwhile()

  # If the set of files changes, the compiler's arguments must change, or nothing is rebuilt.
  string(MD5 hash "${files}")
  set(copies "${CMAKE_CURRENT_BINARY_DIR}/mutants/${program}/${hash}")
  foreach(file IN LISTS files)
    file(CONFIGURE OUTPUT "${copies}/${file}" CONTENT "${text_${file}}" @ONLY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${file}")
  endforeach()
endmacro()

# The explorer's programs (docs/EXPLORE.md), in the tsan preset:
#
# symm_exploration(NAME LABEL SOURCES file...): the program `explore_NAME`, and the test
# explore.NAME: it must visit all executions of all protocols and find no failure.
#
# symm_explored_mutant(NAME MUTANT PROTOCOL REPORT FILE file OLD text NEW text...): the test
# mutants.explore_NAME_MUTANT: the mutated program must find a failure of PROTOCOL that matches
# REPORT.
#
# symm_explored_mutant_case(NAME MUTANT CASE PROTOCOL REPORT): the test mutants.explore_NAME_CASE,
# of another protocol with the same mutant.
function(symm_exploration name label)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "SOURCES")
  list(TRANSFORM arg_SOURCES PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  set_property(GLOBAL PROPERTY symm_exploration_${name} ${label} ${arg_SOURCES})
  symm_explored(explore_${name} ${arg_SOURCES})
  if(TARGET explore_${name})
    set_property(GLOBAL APPEND PROPERTY symm_explorations $<TARGET_FILE:explore_${name}>)
    add_test(NAME explore.${name} COMMAND explore_${name})
    set_tests_properties(explore.${name} PROPERTIES LABELS ${label} TIMEOUT 600
                         FAIL_REGULAR_EXPRESSION "stopped after")
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
  symm_explored_mutant_case(${name} ${mutant} ${mutant} ${protocol} "${report}")
endfunction()

function(symm_explored_mutant_case name mutant case protocol report)
  if(NOT TARGET explore_${name}_${mutant})
    return()
  endif()
  get_property(sources GLOBAL PROPERTY symm_exploration_${name})
  list(GET sources 0 label)
  set(test mutants.explore_${name}_${case})
  add_test(NAME ${test} COMMAND explore_${name}_${mutant} ${protocol})
  set_tests_properties(${test} PROPERTIES LABELS ${label} TIMEOUT 60
                       PASS_REGULAR_EXPRESSION "=> [^\n]*(${report})")
endfunction()

# symm_explored(PROGRAM source... [ALLOW function...]): a program of scenes, instrumented, but
# without libtsan. ExploredFunctions.cmake explains ALLOW.
include(ExploredFunctions)
function(symm_explored program)
  if(NOT TARGET symm_explore)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ALLOW")
  add_executable(${program} ${arg_UNPARSED_ARGUMENTS})
  symm_refuse_unseen_functions(${program} ${arg_ALLOW})
  target_link_libraries(${program} PRIVATE symm_explored)
  target_precompile_headers(${program} REUSE_FROM symm_explored_headers)
endfunction()
