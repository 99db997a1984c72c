#!/usr/bin/env bash
# ./lab without building: its help, its answers to bad usage, and how it gets a CUDA compiler.
set -u
cd "$1" || exit 1
failures=0

failed() {
    printf 'FAILED: %s\n' "$1"
    failures=$((failures + 1))
}

expect() {  # exit status, text to be found, command
    local wanted=$1 text=$2 output status
    shift 2
    output=$("$@" 2>&1)
    status=$?
    if [[ $status -ne $wanted || "$output" != *"$text"* ]]; then
        failed "$*: exit $status, wanted $wanted with \"$text\": $output"
    fi
}

expect_error() {  # text to be found in the only line, arguments of ./lab
    expect 2 "./lab: $1" ./lab "${@:2}"
    [[ "$(./lab "${@:2}" 2>&1 | wc -l)" -eq 1 ]] || failed "./lab ${*:2}: more than one line"
}

expect 2 'usage:' ./lab
expect 0 'run NN' ./lab help
expect 0 '06_allreduce' ./lab list
expect_error "there is no lab '99'" run 99
expect_error "there is no lab '99'" test 99
expect_error "pass a lab's number" bench
expect_error "pass a lab's number" --preset debug run
expect_error "there is no preset 'fast'" test --preset fast
expect_error "there is no command 'dance'" dance
expect_error "unexpected word '4': a program's arguments come after --" run 06 4
expect_error "unexpected word 'x'" list x
expect_error "unexpected word '--chekc'" format --chekc
expect_error "pass a file's name" plot
expect_error "there is no file 'no.json'" plot no.json
expect 0 'cuMemCreate' ./lab trace changes
expect 0 'Four steps to mapped memory' ./lab learn
expect_error "there is no exercise '99.9'" start 99.9
expect_error 'name an exercise' hint
expect_error "there is no lab '99'" pages 99
expect_error 'preset tsan has no benchmarks' bench 01 --preset tsan
expect_error "unexpected word 'x'" lint x
parts=$(sed -n 's/^ *part: \[\(.*\)\]$/\1/p' .github/workflows/ci.yml)
expect 2 "there is no part 'dance': choose from ${parts:?}." .ci/run sources dance

# A machine without a CUDA Toolkit: a python3 that stands in for pip, and a folder for the cache.
machine=$(mktemp -d)
trap 'rm -rf "$machine"' EXIT
root=$PWD rows="-it's \"rows\" \$(false).json"
echo '"emulated": "yes"' >"$machine/$rows"
cd "$machine" || exit 1
expect 0 'nothing is drawn' "$root/lab" plot "$rows"
cd "$root" || exit 1
mkdir "$machine/bin"
export XDG_CACHE_HOME="$machine/it's a cache" PATH="$machine/bin:/usr/bin:/bin"
unset CUDACXX CUDA_HOME  # ./lab test may have found a toolkit itself
in_lab() {  # a line of bash
    bash -c 'set -euo pipefail; fail() { echo "./lab: $2" >&2; exit "$1"; }
             source cmake/find_cuda.sh; '"$1"
}
make_toolkit() {
    in_lab 'fetch_cuda compiler "$private_cuda" compiler "104 MB"; "$private_cuda/bin/nvcc"'
}
stands_for() {  # program; its lines come from stdin
    { echo '#!/bin/bash'; cat; } >"$machine/bin/$1"
    chmod +x "$machine/bin/$1"
}
no_half_toolkit() {
    local left
    left=$(ls "$machine/it's a cache/symm")
    [[ -z "$left" ]] || failed "left in the cache: $left"
}

# A driver that does not work is reported, a machine without GPUs is not. In a copy that is built.
stands_for python3 <<<''
unset SYMM_PRESET
copy="$machine/it's a copy"
mkdir -p "$copy/build/emulated"
cp -r lab cmake "$copy"
touch "$copy/build/emulated/build.ninja"
stands_for nvidia-smi <<<'echo "cannot reach the driver"; exit 9'
expect 0 'nvidia-smi: exit status 9: cannot reach the driver' "$copy/lab" build
stands_for nvidia-smi <<<'echo "No devices were found"; exit 6'
[[ -z "$("$copy/lab" build 2>&1)" ]] || failed "no GPU: ./lab build prints something"

# What ./lab starts can handle Ctrl-C, and sees exit statuses though the parent ignored SIGCHLD.
stands_for python3 <<<'sed -n "s/^Sig[BI][lg][kn]:\s*//p" /proc/self/status'
expect 0 '0000000000000002' env --ignore-signal=CHLD ./lab learn
[[ "$(env --ignore-signal=CHLD ./lab learn)" != *1???? ]] || failed "./lab learn: SIGCHLD ignored"

stands_for nvidia-smi <<<'echo "| Driver Version: 550.54   CUDA Version: 12.4 |"'
expect 1 'driver supports CUDA 12.4: install CUDA Toolkit 12.4' make_toolkit
stands_for nvidia-smi <<<'exit 9'
stands_for python3 <<<'[[ "$*" == "-m pip --version" ]]'
expect 1 "could not fetch CUDA's compiler" make_toolkit
no_half_toolkit
stands_for python3 <<'PIP'
[[ "$*" != "-m pip --version" ]] || exit 0
while [[ "$1" != --target ]]; do shift; done
mkdir -p "$2"/nvidia/cu13/{bin,lib,include}
[[ -z "${INTERRUPTED:-}" ]] || kill -TERM $PPID
printf '#!/bin/sh\necho nvcc of the wheels\n' >"$2/nvidia/cu13/bin/nvcc"
chmod +x "$2/nvidia/cu13/bin/nvcc"
PIP
INTERRUPTED=1 expect 143 'fetching' make_toolkit
no_half_toolkit
expect 0 'nvcc of the wheels' make_toolkit
[[ "$(ls "$machine/it's a cache/symm")" == cuda-13.0 ]] &&
    [[ -L "$machine/it's a cache/symm/cuda-13.0/lib64" ]] ||
    failed "the cache has $(ls "$machine/it's a cache/symm")"

# Emulated GPUs need no compiler of NVIDIA's: only headers are fetched.
rm -r "$machine/it's a cache"
expect 0 "$machine/it's a cache/symm/cuda-13.0-headers" \
    in_lab 'find_nvcc() { return 1; }; find_cuda headers; echo "${cuda_settings[@]}"'
[[ "$(ls "$machine/it's a cache/symm")" == cuda-13.0-headers ]] ||
    failed "the cache has $(ls "$machine/it's a cache/symm")"

# An installed toolkit comes before the private one, unless it is too old.
stands_for nvcc <<<'echo "Cuda compilation tools, release 12.6, V12.6.20"'
expect 0 "with $machine/bin/nvcc" in_lab 'find_cuda compiler; echo "with $CUDACXX"'
stands_for dpkg-query <<<'echo installed'
stands_for cmake <<<'[[ "$1" != --version ]] || exec echo 3.25
                     echo "No space left on device"; exit 1'
expect 1 'no space is left on a disk' "$copy/lab" build --preset debug
stands_for python3 <<<''
mv "$copy" "$machine/\""
expect 1 'CMake cannot build in' "$machine/\"/lab" build
stands_for nvcc <<<'echo "Cuda compilation tools, release 11.8, V11.8.89"'
expect 0 "skipping $machine/bin/nvcc: CUDA 11.8 is older than 12.4" in_lab 'find_cuda compiler'
exit "$failures"
