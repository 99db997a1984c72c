# A stand-in for NCCL, and a program in C that is linked with it alone.
add_library(symm_nccl_stand_in SHARED tests/stand_in.cpp driver.cpp)
target_link_libraries(symm_nccl_stand_in PRIVATE symm_options symm_c)
set_target_properties(symm_nccl_stand_in PROPERTIES OUTPUT_NAME nccl SOVERSION 2
  LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/stand_in")
target_link_options(symm_nccl_stand_in PRIVATE
  "LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/tests/stand_in.map")

set(client_topics calls.c client.c communicators.c failures.c graphs.c streams.c
  windows.c)
add_library(symm_nccl_driver OBJECT driver.cpp)
target_link_libraries(symm_nccl_driver PRIVATE symm_options symm_c)
list(TRANSFORM client_topics PREPEND tests/)
add_executable(06_allreduce_drop_in_client ${client_topics} $<TARGET_OBJECTS:symm_nccl_driver>)
target_compile_options(06_allreduce_drop_in_client PRIVATE
  -std=gnu11 -Wall -Wextra $<$<BOOL:${SYMM_WARNINGS_AS_ERRORS}>:-Werror>)
target_link_libraries(06_allreduce_drop_in_client PRIVATE
  symm_nccl_stand_in symm_c symm::cuda_headers Threads::Threads)
set_target_properties(06_allreduce_drop_in_client PROPERTIES LINKER_LANGUAGE CXX)
if(SYMM_SANITIZE)
  target_link_options(06_allreduce_drop_in_client PRIVATE -fsanitize=${SYMM_SANITIZE})
endif()
# NCCL's own header, if there is one: as a program of others would be compiled.
if(SYMM_NCCL_INCLUDE)
  target_include_directories(06_allreduce_drop_in_client SYSTEM PRIVATE "${SYMM_NCCL_INCLUDE}")
  target_compile_definitions(06_allreduce_drop_in_client PRIVATE SYMM_NCCL_HEADER)
endif()

function(symm_drop_in_test case)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME" "ENVIRONMENT")
  if(NOT arg_NAME)
    set(arg_NAME ${case})
  endif()
  add_test(NAME 06_allreduce_drop_in.${arg_NAME} COMMAND 06_allreduce_drop_in_client ${case})
  set_tests_properties(06_allreduce_drop_in.${arg_NAME} PROPERTIES LABELS lab06 TIMEOUT 120
    ENVIRONMENT "SYMM_DRIVER=emulated;SYMM_EMU_MULTICAST=0;\
TSAN_OPTIONS=${SYMM_TSAN_OPTIONS};${arg_ENVIRONMENT}"
    ENVIRONMENT_MODIFICATION "LD_PRELOAD=set:$<TARGET_FILE:symm_nccl_library>")
endfunction()
foreach(case calls groups graphs streams halves windows one_thread others aborted late processes
        one_fails one_dies one_leaves nine misspelled no_memory long_work mixed sends host_memory
        last_error handed_on)
  symm_drop_in_test(${case})
endforeach()
symm_drop_in_test(collectives)
symm_drop_in_test(collectives NAME all_collectives ENVIRONMENT SYMM_NCCL_COLLECTIVES=all)
symm_drop_in_test(off ENVIRONMENT SYMM_NCCL=0)
symm_drop_in_test(one_stream ENVIRONMENT SYMM_TIMEOUT=60)
symm_drop_in_test(one_thread NAME one_thread_checked ENVIRONMENT SYMM_CHECK=1)
symm_drop_in_test(one_thread NAME one_thread_shared ENVIRONMENT SYMM_EMU_DEVICES=2)

# A case succeeds, and what SYMM_NCCL_STATS=1 prints matches.
function(symm_drop_in_says name case environment pattern)
  add_test(NAME 06_allreduce_drop_in.${name} COMMAND sh -c [[
    text=$(LD_PRELOAD=$1 "$0" $2 2>&1); status=$?; echo "$text"
    test $status = 0 && echo "$text" | tr -s '\n' ' ' | grep -Eq "$3"]]
    $<TARGET_FILE:06_allreduce_drop_in_client> $<TARGET_FILE:symm_nccl_library> ${case}
    "${pattern}")
  set_tests_properties(06_allreduce_drop_in.${name} PROPERTIES LABELS lab06 TIMEOUT 120
    ENVIRONMENT "SYMM_DRIVER=emulated;SYMM_EMU_MULTICAST=0;SYMM_NCCL_STATS=1;\
TSAN_OPTIONS=${SYMM_TSAN_OPTIONS};${environment}")
endfunction()
# Why the ranks could not attach: the rank that failed first, not those that failed because of it.
symm_drop_in_says(reason one_fails ""
  "communicators of 3 ranks are NCCL's: rank 1: SYMM_BLOCKS")
symm_drop_in_says(no_peers off SYMM_EMU_P2P=0 "6 went to NCCL.* 2 communicators of 2 ranks are \
NCCL's: rank 0: device 0 cannot access device 1's memory")
symm_drop_in_says(statistics counted "" ": 2 calls of 80 bytes were ours, 4 went to NCCL \
2.28.9 +2 to NCCL: a communicator's first, after which its ranks attach +2 to NCCL: \
ncclAllReduceConfig: its settings are of NCCL's algorithms +2 communicators of 2 ranks are ours $")
# Calls that stay NCCL's because the switch adds up faster.
set(symm_too_large "to NCCL: more bytes than SYMM_NCCL_MOST")
symm_drop_in_says(multicast large SYMM_EMU_MULTICAST=1
  ": 6 calls .* 6 went to NCCL .* 3 ${symm_too_large}")
symm_drop_in_says(multicast_off large "SYMM_EMU_MULTICAST=1;NCCL_NVLS_ENABLE=0"
  ": 9 calls .* 3 went to NCCL ")
symm_drop_in_says(multicast_overridden large "SYMM_EMU_MULTICAST=1;SYMM_NCCL_MOST=2M"
  ": 9 calls .* 3 went to NCCL ")
symm_drop_in_says(most large SYMM_NCCL_MOST=5K
  ": 3 calls .* 9 went to NCCL .* 6 ${symm_too_large}")
symm_drop_in_test(calls NAME multicast_of_two ENVIRONMENT SYMM_EMU_MULTICAST=1)

# Windows are used, those registered before the ranks attached, too: 5 calls of 2 ranks. And those
# registered in a group: a call of 3 ranks and one of 2.
add_test(NAME 06_allreduce_drop_in.windows_are_used COMMAND sh -c [[
  LD_PRELOAD=$1 "$0" windows 2>log && LD_PRELOAD=$1 "$0" one_thread 2>>log || exit
  test "$(grep -c ": chunks with .*(above" log)" = 15 || { cat log; exit 1; }]]
  $<TARGET_FILE:06_allreduce_drop_in_client> $<TARGET_FILE:symm_nccl_library>)
set_tests_properties(06_allreduce_drop_in.windows_are_used PROPERTIES LABELS lab06 TIMEOUT 120
  ENVIRONMENT "SYMM_DRIVER=emulated;SYMM_EMU_MULTICAST=0;SYMM_DEBUG=info")

if(SYMM_SANITIZE)  # Python is not built with the sanitizer
  return()
endif()
# The same as a library that a program loads, as Python loads PyTorch: NCCL is then local to it.
add_library(symm_nccl_client_module MODULE ${client_topics} $<TARGET_OBJECTS:symm_nccl_driver>)
target_link_libraries(symm_nccl_client_module PRIVATE
  symm_nccl_stand_in symm_c symm::cuda_headers Threads::Threads)
set_target_properties(symm_nccl_client_module PROPERTIES LINKER_LANGUAGE CXX)
set_target_properties(symm_nccl_driver PROPERTIES POSITION_INDEPENDENT_CODE ON)
add_test(NAME 06_allreduce_drop_in.local_scope COMMAND python3 -c [[
import ctypes, sys
sys.exit(ctypes.CDLL(sys.argv[1]).main(2, (ctypes.c_char_p * 2)(b"client", b"calls")))]]
  $<TARGET_FILE:symm_nccl_client_module>)
set_tests_properties(06_allreduce_drop_in.local_scope PROPERTIES LABELS lab06 TIMEOUT 120
  ENVIRONMENT
  "SYMM_DRIVER=emulated;SYMM_EMU_MULTICAST=0;LD_PRELOAD=$<TARGET_FILE:symm_nccl_library>")

# The full library as vLLM loads it, beside the same NCCL without it.
add_test(NAME 06_allreduce_drop_in.ctypes COMMAND python3 -B
  "${CMAKE_CURRENT_SOURCE_DIR}/ctypes_client.py" "${PROJECT_BINARY_DIR}/lib" --calls 40
  --libsymm $<TARGET_FILE:symm_c>)
set_tests_properties(06_allreduce_drop_in.ctypes PROPERTIES LABELS lab06 TIMEOUT 120
  ENVIRONMENT
  "SYMM_DRIVER=emulated;LD_LIBRARY_PATH=$<TARGET_FILE_DIR:symm_nccl_stand_in>;SYMM_NCCL_STATS=1"
  PASS_REGULAR_EXPRESSION "the same bits.*[1-9][0-9]* calls of [0-9]+ bytes were ours")

# No other name is exported, dlclose leaves the library there, and the full one alone needs NCCL.
add_test(NAME 06_allreduce_drop_in.exports COMMAND sh -c [[
  for library in "$0" "$1"; do
    names=$(nm -D --defined-only "$library" | awk '{ print $3 }') && test -n "$names" || exit
    ! echo "$names" | grep -v '^nccl[A-Z][A-Za-z]*$' || exit
    readelf -d "$library" | grep -F NODELETE || exit
  done
  ! readelf -d "$0" | grep -F libnccl.so.2 && readelf -d "$1" | grep -F libnccl.so.2]]
  $<TARGET_FILE:symm_nccl_library> $<TARGET_FILE:symm_nccl_full_library>)
set_tests_properties(06_allreduce_drop_in.exports PROPERTIES LABELS lab06)
