#!/usr/bin/env bash
# measure.sh BIN FOLDER [NCCL]: makes the AllReduce's measurements (docs/MEASURED.md) on a machine
# with 2, 4 or 8 GPUs, in less than ten minutes. BIN holds the programs (build/release/bin, possibly
# copied from another machine). NCCL is the folder of a newer libnccl.so.2, with which the
# collectives are measured once more. Each run writes NAME.txt and NAME.json to FOLDER, the most
# important run first. A program that calls multicast is ended (without_multicast.cpp). Exit status
# 1 if a run failed or took too long.
set -uo pipefail
bin=$(realpath "${1:?usage: measure.sh BIN FOLDER [NCCL]}")
folder=${2:?usage: measure.sh BIN FOLDER [NCCL]}
newest=${3:+$(realpath "$3")}
readonly seconds_at_most=580
failures=0
mkdir -p "$folder" && cd "$folder" || exit 1

run() {  # name, seconds at most, command
    local name=$1 most=$2 began=$SECONDS
    local left=$((seconds_at_most - SECONDS))
    shift 2
    timeout -k 5 "$((most < left ? most : left > 0 ? left : 1))" \
        env LD_PRELOAD="$bin/libwithout_multicast.so" "$@" >"$name.txt" 2>&1 </dev/null
    local status=$?
    [[ $status -eq 0 ]] || failures=$((failures + 1))
    echo "$name: exit $status after $((SECONDS - began)) s ($SECONDS s in all)"
}

bench() {  # name, seconds at most, the benchmark's arguments
    run "$1" "$2" "$bin/06_allreduce_bench" --driver native --json "$1.json" "${@:3}"
}

compare() {  # as bench, with each NCCL
    bench "$@"
    [[ -z $newest ]] || LD_LIBRARY_PATH=$newest bench "$1_newest_nccl" "${@:2}"
}

run machine 20 bash -c 'date; nvidia-smi; nvidia-smi topo -m'
compare float_graph 120 -G 1
compare bfloat16_graph 120 -G 1 -d bfloat16
for collective in reducescatter allgather; do
    compare "${collective}_graph" 60 -G 1 --collective "$collective"
    compare "${collective}_graph_unregistered" 60 -G 1 -R 0 --collective "$collective"
done
compare float_graph_unregistered 60 -G 1 -R 0
run alltoall 60 env ${newest:+LD_LIBRARY_PATH="$newest"} SYMM_DRIVER=native "$bin/your_own_bench" \
    alltoall "$(nvidia-smi -L | wc -l)" 268435456
bench float 120
SYMM_MAX_BLOCKS=16 bench float_graph_16_blocks 60 -G 1 -b 1M --rounds 3
SYMM_MAX_BLOCKS=64 bench float_graph_64_blocks 120 -G 1
# Each algorithm alone, to find the tuner's limits.
for algorithm in $("$bin/06_allreduce" --help | sed -n 's/.*Algorithm: auto, //p' |
    tr -d ,); do
    [[ $algorithm == or || $algorithm == multicast ]] ||
        SYMM_ALGO=$algorithm bench "only_$algorithm" 60 -G 1 --rounds 3 --no-nccl
done
run tests 120 env SYMM_DRIVER=native "$bin/06_allreduce_test" --gtest_filter='-*Program*'
bench bfloat16 120 -d bfloat16 -f 4
[[ $failures -eq 0 ]]
