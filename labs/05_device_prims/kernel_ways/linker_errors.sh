#!/usr/bin/env bash
# Compiler and linker errors of kernels in several files: makes each one, shows its line, the cause
# and the cure, and builds the cured program. Needs nvcc, no GPU. Exit status 0 if
# every error and every cure came out as described.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../../.."

fail() {  # exit code, message
    printf 'linker_errors.sh: %s\n' "$2" >&2
    exit "$1"
}
nvcc=$(python3 -B tools/lab/cuda.py)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp labs/05_device_prims/kernel_ways/linker_errors/* "$work"
cd "$work"

nvcc() { "$nvcc" -arch=sm_75 -Wno-deprecated-gpu-targets "$@"; }

# Makes an error: the text that its line contains, a command.
shows() {
    local text=$1 output
    shift
    printf '\n$ %s\n' "$*"
    if output=$("$@" 2>&1); then
        fail 1 "this should have failed with: $text"
    fi
    grep -m 1 -F "$text" <<<"$output" ||
        fail 1 "this failed, but not with \"$text\": $output"
}

# Runs a command that must succeed.
works() {
    printf '$ %s\n' "$*"
    "$@" || fail 1 "this should have worked"
}

explain() {  # cause, cure
    printf 'cause: %s\ncure:  %s\n' "$1" "$2"
}

shows "Unresolved extern function" nvcc -c kernel.cu
explain "a kernel calls a device function of another file, and each file is compiled alone" \
    "relocatable device code (-rdc=true): calls stay open until all files are linked"
works nvcc -rdc=true -c kernel.cu
works nvcc -rdc=true -c twice.cu

shows "Undefined reference to '_Z5twicei'" nvcc -dlink kernel.o -o device.o
explain "the device linker (nvlink) was not given the file that has the function" \
    "give it all files, for example as one static library"
works ar rcs libkernel.a kernel.o twice.o
works nvcc -dlink libkernel.a -o device.o

works nvcc -c main.cu
shows "undefined reference to \`__cudaRegisterLinkedBinary_" nvcc -nodlink main.o libkernel.a
explain "-rdc=true, but the device code was not linked: g++ cannot, and -nodlink forbids nvcc to" \
    "nvcc -dlink; or nvcc as the linker; in CMake CUDA_RESOLVE_DEVICE_SYMBOLS of the library"
works nvcc -nodlink main.o device.o libkernel.a -o program

works nvcc -c fill.cu
works nvcc -diag-suppress 20280 -c use_fill.cu
shows "undefined reference to \`void fill<float>(float*, float)'" nvcc use_fill.o fill.o
explain "fill.cu has the template, but compiles it for no type; use_fill.cu needs it for float" \
    "the definition in the header (here -include), so that each file that uses it compiles it"
works nvcc -include fill.cu use_fill.cu -o program

find_kernel() {  # name, PTX file
    grep -F .entry "$2"
    grep -qF ".entry $1(" "$2"
}
works nvcc -ptx -DLINKAGE= named.cu -o named.ptx
shows ".entry _Z5scalePff" find_kernel scale named.ptx
explain "C++ puts the parameters' types into the name: CUDA_ERROR_NOT_FOUND for \"scale\"" \
    "extern \"C\""
works nvcc -ptx "-DLINKAGE=extern \"C\"" named.cu -o named.ptx
works find_kernel scale named.ptx

printf '\nAll errors and cures are as described.\n'
