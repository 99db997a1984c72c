# cmake -DEXPLORE=PROGRAM -P json.cmake: what a program that finds a failure of `packet` appends to
# a file is a line of JSON, with its counterexample; `signal`, which is right, can be recorded.
# Compared searches fail, too.
set(file "${CMAKE_CURRENT_BINARY_DIR}/explore_json_test.json")
file(REMOVE "${file}")
execute_process(COMMAND "${EXPLORE}" packet --json "${file}" OUTPUT_VARIABLE counterexample)
file(READ "${file}" json)
file(REMOVE "${file}")

string(JSON protocol GET "${json}" protocol)
string(JSON failed GET "${json}" failed)
string(JSON why GET "${json}" why)
string(JSON steps LENGTH "${json}" steps)
math(EXPR last "${steps} - 1")
foreach(key what value from newest matters)
  string(JSON ${key} GET "${json}" steps ${last} ${key})
endforeach()
string(JSON old GET "${json}" steps ${from} value)
string(JSON lines LENGTH "${json}" counterexample)
math(EXPR last "${lines} - 1")
string(JSON line GET "${json}" counterexample ${last})
string(FIND "${counterexample}" "${line}\n" told)
string(FIND "${counterexample}"
       "loads ${old} from r1.slot+8, relaxed, of step ${from}; ${newest} is newer"
       cited)
if(NOT "${protocol} ${failed} ${what} ${value} ${matters}" STREQUAL
     "packet ON load 40 (flag 2) ON" OR told EQUAL -1
   OR cited EQUAL -1)
  message(FATAL_ERROR "the counterexample is\n${counterexample}\nand the JSON\n${json}")
endif()

execute_process(COMMAND "${EXPLORE}" packet --compare RESULT_VARIABLE code OUTPUT_VARIABLE out)
if(NOT code EQUAL 1 OR NOT out MATCHES "WRONG +WRONG +WRONG [^\n]* WRONG\n.*=> ")
  message(FATAL_ERROR "three searches that fail end with ${code} and print\n${out}")
endif()

# The last wait of the recorded execution.
execute_process(COMMAND "${EXPLORE}" signal --record "${file}" OUTPUT_QUIET)
file(STRINGS "${file}" rows)
file(REMOVE "${file}")
list(GET rows 0 json)
string(JSON steps LENGTH "${json}" steps)
math(EXPR last "${steps} - 1")
string(JSON cell GET "${json}" steps ${last} cells 0 cell)
string(JSON name GET "${json}" cells ${cell} name)
string(JSON rank GET "${json}" cells ${cell} rank)
string(JSON first GET "${json}" cells ${cell} first)
string(JSON until GET "${json}" steps ${last} until)
string(JSON choices GET "${json}" steps ${last} choices)
string(JSON older GET "${choices}" 1 value)
if(NOT "${name} ${rank} ${first} ${older} ${until}" STREQUAL "r0.flag 0 0 2 at least 3")
  message(FATAL_ERROR "the recorded execution is\n${json}")
endif()
