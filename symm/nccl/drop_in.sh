#!/usr/bin/env bash
# drop_in.sh BUILD NCCL FOLDER: tries the drop-in with the real NCCL, in at most ten minutes. BUILD
# is a build folder for GPUs (build/release), NCCL the folder with libnccl.so.2, FOLDER gets a file
# for each part. With one GPU, two ranks that are threads share it (NCCL 2.30.7 or newer).
#   NCCL_TESTS=FOLDER   nccl-tests' build folder: all_reduce_perf, made with MPI=1 for one GPU
#   PYTHON=PROGRAM      a Python with PyTorch; default python3
# Parts that cannot run here are marked with "skipped" and why. Exit status 1 if one failed.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
build=$(realpath "${1:?usage: drop_in.sh BUILD NCCL FOLDER}")
nccl=$(realpath "${2:?usage: drop_in.sh BUILD NCCL FOLDER}")
folder=${3:?usage: drop_in.sh BUILD NCCL FOLDER}
python=${PYTHON:-python3}
readonly seconds_at_most=590
failures=0
mkdir -p "$folder" && cd "$folder" || exit 1

export LD_LIBRARY_PATH=$nccl${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export SYMM_DRIVER=native NCCL_NVLS_ENABLE=0 NCCL_MULTI_RANK_GPU_ENABLE=1
export CUDA_DEVICE_MAX_CONNECTIONS=32  # streams of ranks that share a GPU
gpus=$(tr , '\n' <<<"${CUDA_VISIBLE_DEVICES:-$(nvidia-smi -L)}" | wc -l)
shim=$build/lib/libsymm_nccl.so

run() {  # name, seconds at most, command
    local name=$1 most=$2 began=$SECONDS left=$((seconds_at_most - SECONDS))
    shift 2
    timeout -k 5 "$((most < left ? most : left > 0 ? left : 1))" "$@" >"$name.txt" 2>&1 </dev/null
    local status=$?
    [[ $status -eq 0 ]] || failures=$((failures + 1))
    echo "$name: exit $status after $((SECONDS - began)) s ($SECONDS s in all)"
    [[ $status -eq 0 ]] || tail -n 8 "$name.txt"
}
skip() { echo "$1: skipped: $2"; }
ours=(env "LD_PRELOAD=$shim" SYMM_NCCL_STATS=1)

run machine 20 bash -c 'date; nvidia-smi -L; nvidia-smi topo -m'
client() {  # name, case, and what comes before the program
    # NCCL refuses a communicator's first call in a capture, unless its ranks have connected before.
    run "client_$1" 60 "${@:3}" env NCCL_RUNTIME_CONNECT=0 \
        "$build/bin/06_allreduce_drop_in_client" "$2"
}
promised=(mixed sends host_memory handed_on)  # by NCCL: with and without the library
cases=(calls groups graphs streams windows one_thread one_stream aborted last_error)
for case in "${cases[@]}" "${promised[@]}"; do
    client "$case" "$case" "${ours[@]}"
done
for case in "${promised[@]}"; do
    client "${case}_without" "$case"
done
run ctypes 150 env SYMM_NCCL_STATS=1 "$python" -B "$here/ctypes_client.py" "$build/lib" \
    --libsymm "$build/symm/c/libsymm.so.0" --calls 1000
for name in client_{calls,groups,graphs,streams,windows,one_thread,one_stream,mixed,sends} \
    ctypes; do
    if ! grep 'process [0-9]*: [1-9]' "$name.txt"; then
        echo "$name: no call was ours"
        failures=$((failures + 1))
    fi
done

perf=${NCCL_TESTS:-}/all_reduce_perf
if [[ ! -x $perf ]]; then
    skip nccl_tests "set NCCL_TESTS to the folder with all_reduce_perf"
elif [[ $gpus -lt 2 ]]; then
    command -v mpirun >/dev/null || skip nccl_tests "one GPU needs mpirun, and MPI=1"
    for way in without with; do
        command -v mpirun >/dev/null || break
        preload=(); [[ $way == with ]] && preload=("${ours[@]}")
        run "nccl_tests_mpi_$way" 60 env NCCL_TESTS_DEVICE=0 mpirun --allow-run-as-root \
            --oversubscribe -np 2 "${preload[@]}" "$perf" -g 1 -b 8 -e 16M -f 8 -c 1 -w 2 -n 5
    done
else
    run nccl_tests_without 40 "$perf" -b 8 -e 1G -f 8 -c 1 -g 2
    for ranks in "-g 2" "-t 2"; do
        for way in "" "-G 20" "-R 0" "-R 1" "-R 2" "-m 4" "-d all -o all -e 1M"; do
            # shellcheck disable=SC2086  # several arguments each
            run "nccl_tests ${ranks}${way:+ $way}" 40 "${ours[@]}" "$perf" \
                -b 8 -e 1G -f 8 -c 1 $ranks $way
        done
    done
fi

if ! "$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
    skip pytorch "$python has no PyTorch that sees a GPU"
elif [[ $gpus -lt 2 ]]; then
    skip pytorch "it needs two GPUs"
else
    for case in losses mixed graphs groups coalescing killed; do
        [[ $case == killed ]] ||  # NCCL alone would wait for minutes
            run "torch_${case}_without" 60 "$python" -B "$here/torch_client.py" "$case"
        run "torch_$case" 60 "${ours[@]}" "$python" -B "$here/torch_client.py" "$case"
    done
    run torch_expandable 60 env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True \
        "${ours[@]}" "$python" -B "$here/torch_client.py" losses
    for name in torch_losses torch_expandable; do
        if ! diff <(grep '^loss' torch_losses_without.txt) <(grep '^loss' "$name.txt"); then
            echo "$name: not the losses of NCCL alone"
            failures=$((failures + 1))
        fi
    done
fi
[[ $failures -eq 0 ]]
