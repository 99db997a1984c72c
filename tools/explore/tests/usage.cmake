# cmake -DEXPLORE=PROGRAM -P usage.cmake: bad usage is one line and exit code 2, lost output is exit
# code 1, and a counterexample has its lines of source wherever the program lies.
foreach(bad "--lines;x" "--lines;-1" "--random;-1" "--executions;0" "--seconds;nan" "--bogus"
            "nowhere" "--json;/dev/full" "--kernel-end;never")
  execute_process(COMMAND "${EXPLORE}" ${bad} RESULT_VARIABLE code OUTPUT_VARIABLE out
                  ERROR_VARIABLE error TIMEOUT 20)
  if(NOT code STREQUAL "2" OR NOT out STREQUAL "" OR NOT error MATCHES "^error: [^\n]*\n$")
    message(FATAL_ERROR "'${bad}' ends with ${code} and prints\n${out}\n${error}")
  endif()
endforeach()

foreach(arguments "--help" "--list" "packet")
  execute_process(COMMAND "${EXPLORE}" ${arguments} OUTPUT_FILE /dev/full RESULT_VARIABLE code
                  ERROR_VARIABLE error)
  if(NOT code STREQUAL "1" OR NOT error MATCHES "^error: cannot write to stdout: [^\n]*\n$")
    message(FATAL_ERROR "'${arguments}' to a full disk ends with ${code} and prints\n${error}")
  endif()
endforeach()

set(folder "${CMAKE_CURRENT_BINARY_DIR}/it's $(touch ran) isn't")
file(COPY "${EXPLORE}" DESTINATION "${folder}")
cmake_path(GET EXPLORE FILENAME name)
file(REMOVE ran)
execute_process(COMMAND "${folder}/${name}" packet OUTPUT_VARIABLE counterexample)
file(REMOVE_RECURSE "${folder}")
if(NOT counterexample MATCHES "ll_packet.hpp:[0-9]" OR EXISTS "${CMAKE_CURRENT_BINARY_DIR}/ran")
  message(FATAL_ERROR "in the folder ${folder} the counterexample is\n${counterexample}")
endif()

execute_process(COMMAND "${EXPLORE}" barrier/2x1 --compare --executions 2 RESULT_VARIABLE code
                OUTPUT_VARIABLE out)
if(NOT code EQUAL 0 OR NOT out MATCHES " end +too many +too many +too many +not compared\n")
  message(FATAL_ERROR "searches that stop early end with ${code} and print\n${out}")
endif()
