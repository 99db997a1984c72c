# Mutants: kernels with one ordering taken out, which ThreadSanitizer has to report.
#
# symm_mutants(NAME LABELS label... SOURCES file... [LINK target...] MUTANTS name...)
#
# Compiles the program once as it is and once for each mutant (SYMM_MUTANT_* in common/simt/atomic.hpp and
# labs/05_device_prims/barrier.hpp). The sound one has to pass; each mutant has to end with ThreadSanitizer's
# report. Only in the tsan preset: results alone show almost none of them.
function(symm_mutants name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LABELS;SOURCES;LINK;MUTANTS")
  if(NOT SYMM_SANITIZE STREQUAL "thread")
    return()
  endif()
  foreach(mutant SOUND ${arg_MUTANTS})
    string(TOLOWER "${name}_${mutant}" program)
    add_executable(${program} ${arg_SOURCES})
    target_link_libraries(${program} PRIVATE symm_options ${arg_LINK} CUDA::cudart_static)
    target_compile_options(${program} PRIVATE ${SYMM_TEST_CUDA_OPTIONS})
    if(NOT mutant STREQUAL SOUND)
      target_compile_definitions(${program} PRIVATE SYMM_MUTANT_${mutant})
    endif()
    add_test(NAME mutants.${program} COMMAND ${program})
    set_tests_properties(mutants.${program} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 300
      ENVIRONMENT "SYMM_DRIVER=emulated;TSAN_OPTIONS=halt_on_error=1")
    if(NOT mutant STREQUAL SOUND)
      set_tests_properties(mutants.${program} PROPERTIES
        PASS_REGULAR_EXPRESSION "WARNING: ThreadSanitizer: data race")
    endif()
  endforeach()
endfunction()
