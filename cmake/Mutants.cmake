# Mutants: test programs from which one memory order, sync, flag check or buffer is removed. The
# tests have to fail for exactly that reason.
#
# symm_mutants(NAME LABELS label... SOURCES file... [LINK target...] [ENVIRONMENT name=value...]
#              MUTANTS "MACRO filter report" ...)
#
# Builds the GoogleTest program of SOURCES once as it is, which has to pass, and once per mutant
# with SYMM_MUTANT_MACRO defined. A mutant runs the cases that match the filter, and what it prints
# has to match the regular expression `report`: the race or the wrong value that the mutant should
# cause, and no other. ThreadSanitizer stops at its first report, so only that report counts. Only
# in the tsan preset: without ThreadSanitizer almost no missing order is found.
function(symm_mutants name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LABELS;SOURCES;LINK;ENVIRONMENT;MUTANTS")
  if(NOT SYMM_SANITIZE STREQUAL "thread" OR SYMM_EMULATED_ONLY)
    return()
  endif()
  foreach(entry "SOUND * PASSED" ${arg_MUTANTS})
    if(NOT entry MATCHES "^([A-Z_]+) ([^ ]+) (.+)$")
      message(FATAL_ERROR "symm_mutants(${name}): '${entry}' is not 'MACRO filter report'")
    endif()
    set(mutant ${CMAKE_MATCH_1})
    set(filter ${CMAKE_MATCH_2})
    set(report ${CMAKE_MATCH_3})
    string(TOLOWER "${name}_${mutant}" program)
    add_executable(${program} ${arg_SOURCES})
    target_link_libraries(${program} PRIVATE symm_options ${arg_LINK} GTest::gtest
                          GTest::gtest_main CUDA::cudart_static)
    target_compile_options(${program} PRIVATE ${SYMM_TEST_CUDA_OPTIONS})
    if(NOT mutant STREQUAL SOUND)
      target_compile_definitions(${program} PRIVATE SYMM_MUTANT_${mutant})
    endif()
    add_test(NAME mutants.${program} COMMAND ${program} "--gtest_filter=${filter}")
    set_tests_properties(mutants.${program} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 300
      ENVIRONMENT "SYMM_DRIVER=emulated;TSAN_OPTIONS=halt_on_error=1;${arg_ENVIRONMENT}")
    if(mutant STREQUAL SOUND)
      set_tests_properties(mutants.${program} PROPERTIES FAIL_REGULAR_EXPRESSION "ThreadSanitizer")
    else()
      set_tests_properties(mutants.${program} PROPERTIES PASS_REGULAR_EXPRESSION "${report}")
    endif()
  endforeach()
endfunction()
