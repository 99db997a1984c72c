# cmake -DEXPLORE=PROGRAM -P json.cmake: what a program that finds a failure of `packet` appends to
# a file is a line of JSON, with the steps of its story. Compared searches fail, too.
set(file "${CMAKE_CURRENT_BINARY_DIR}/explore_json_test.json")
file(REMOVE "${file}")
execute_process(COMMAND "${EXPLORE}" packet --json "${file}" OUTPUT_VARIABLE story)
file(READ "${file}" json)
file(REMOVE "${file}")

string(JSON protocol GET "${json}" protocol)
string(JSON failed GET "${json}" failed)
string(JSON why GET "${json}" why)
string(JSON steps LENGTH "${json}" steps)
math(EXPR last "${steps} - 1")
string(JSON what GET "${json}" steps ${last} what)
string(JSON matters GET "${json}" steps ${last} matters)
string(FIND "${story}" "=> ${why}\n" told)
if(NOT "${protocol} ${failed} ${what} ${matters}" STREQUAL "packet ON load ON" OR told EQUAL -1)
  message(FATAL_ERROR "the story is\n${story}\nand the JSON\n${json}")
endif()

execute_process(COMMAND "${EXPLORE}" packet --compare RESULT_VARIABLE code OUTPUT_VARIABLE out)
if(NOT code EQUAL 1 OR NOT out MATCHES "WRONG +WRONG +WRONG [^\n]* WRONG\n.*=> ")
  message(FATAL_ERROR "three searches that fail end with ${code} and print\n${out}")
endif()
