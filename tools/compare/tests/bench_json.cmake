# cmake -DBENCH=06_allreduce_bench -P bench_json.cmake: checks that the benchmark's JSON is valid
# and has all columns.
set(file "${CMAKE_CURRENT_BINARY_DIR}/06_allreduce_bench_test.json")
set(ENV{SYMM_DRIVER} emulated)
execute_process(COMMAND "${BENCH}" -b 1K -e 4K -f 2 -d bfloat16 -o max -g 3 --json "${file}"
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(READ "${file}" json)
file(REMOVE "${file}")

function(expect wanted)  # value, path of names...
  string(JSON value GET "${json}" ${ARGN})
  if(NOT value EQUAL wanted AND NOT value STREQUAL wanted)
    message(SEND_ERROR "${ARGN}: ${value} instead of ${wanted}")
  endif()
endfunction()

string(JSON rows LENGTH "${json}" benchmarks)
if(NOT rows EQUAL 3)
  message(SEND_ERROR "${rows} rows instead of 3")
endif()
expect(yes context emulated)
expect(bfloat16 context datatype)
expect(max context op)
foreach(row 0 1 2)
  math(EXPR bytes "1024 << ${row}")
  math(EXPR count "${bytes} / 2")
  expect(${bytes} benchmarks ${row} bytes)
  expect(${count} benchmarks ${row} count)
  expect(3 benchmarks ${row} ranks)
  expect(oneshot benchmarks ${row} label)
  foreach(place out in)
    expect(0 benchmarks ${row} ${place}_wrong)
    foreach(column us algbw busbw iterations)
      string(JSON value GET "${json}" benchmarks ${row} ${place}_${column})  # fails without it
    endforeach()
  endforeach()
endforeach()
