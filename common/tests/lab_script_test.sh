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
expect_error "there is no preset 'fast': choose one of emulated release" test --preset fast
expect_error "there is no preset 'fast'" --preset=fast test
expect_error "there is no command 'dance': choose one of learn start check" dance
expect_error "unexpected word '4': a program's arguments come after --" run 06 4
expect_error "unexpected word 'x'" list x
expect_error "unexpected word '--chekc'" format --chekc
expect_error "unexpected word '--preset'" check --preset debug
expect 0 'ARGS are the program' ./lab run --help
expect_error "pass a file's name" plot
expect_error "there is no file 'no.json'" plot no.json
expect 0 'cuMemCreate' ./lab trace changes
expect 0 'Four steps to mapped memory' ./lab learn
expect 0 '' bash -c './lab learn >&-'
expect_error "there is no exercise '99.9'" start 99.9
expect_error 'name an exercise' hint
expect_error "there is no lab '99'" pages 99
expect_error 'preset tsan has no benchmarks' bench 01 --preset tsan
expect_error "unexpected word 'x'" lint x
parts=$(sed -n 's/^ *part: \[\(.*\)\]$/\1/p' .github/workflows/ci.yml)
expect 2 "there is no part 'dance': choose from ${parts:?}, site." .ci/run sources dance

# A machine without a CUDA Toolkit: a module that stands in for pip, and a folder for the cache.
machine=$(mktemp -d)
trap 'rm -rf "$machine"' EXIT
root=$PWD rows="-it's \"rows\" \$(false).json"
echo '"emulated": "yes"' >"$machine/$rows"
cd "$machine" || exit 1
ln -s "$root/lab" linked
expect 0 'nothing is drawn' ./linked plot "./$rows"
cd "$root" || exit 1
mkdir "$machine/bin"
export XDG_CACHE_HOME="$machine/it's a cache" PATH="$machine/bin:/usr/bin:/bin"
export PYTHONPATH="$machine/modules:$root/tools/lab"
unset CUDACXX CUDA_HOME  # ./lab test may have found a toolkit itself
in_lab() {  # lines of Python
    python3 -B -c "import cuda, tool
def main():
    try:
        $1
    except tool.Failure as failure:
        print(failure)
        return failure.status
tool.run(main)"
}
make_toolkit() {
    in_lab 'cuda.fetch("compiler", cuda.PRIVATE, "104 MB")' &&
        "$machine/it's a cache/symm/cuda-13.0/bin/nvcc"
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
unset SYMM_PRESET
copy="$machine/it's a copy"
mkdir -p "$copy/build/emulated" "$copy/tools"
cp lab "$copy"
cp -r tools/lab "$copy/tools"
touch "$copy/build/emulated/build.ninja"
stands_for ninja <<<''
stands_for nvidia-smi <<<'echo "cannot reach the driver"; exit 9'
expect 0 'nvidia-smi: exit status 9: cannot reach the driver' "$copy/lab" build
stands_for nvidia-smi <<<'echo "No devices were found"; exit 6'
[[ -z "$("$copy/lab" build 2>&1)" ]] || failed "no GPU: ./lab build prints something"
# Programs get the signals that a shell gives them, not those that Python ignores.
mkdir -p "$copy/build/emulated/bin"
stands_for 01_vmm_alloc <<<'sed -n "s/^Sig[BI][lg][kn]:\s*//p" /proc/self/status; echo "$@"'
mv "$machine/bin/01_vmm_alloc" "$copy/build/emulated/bin"
expect 0 $'0000000000000000\n0000000000000000\n--help -- x' \
    env --ignore-signal=CHLD "$copy/lab" run 1 -- --help -- x

# What ./lab starts can handle Ctrl-C, and sees exit statuses though the parent ignored SIGCHLD.
stands_for python3 <<<'sed -n "s/^Sig[BI][lg][kn]:\s*//p" /proc/self/status'
expect 0 '0000000000000002' env --ignore-signal=CHLD ./lab learn
[[ "$(env --ignore-signal=CHLD ./lab learn)" != *1???? ]] || failed "./lab learn: SIGCHLD ignored"
rm "$machine/bin/python3"
mkdir "$machine/bare"
for program in sh id env readlink dirname; do ln -s "$(command -v $program)" "$machine/bare"; done
expect 1 'there is no python3: install Python 3.10 or newer' env PATH="$machine/bare" ./lab list

# The addresses of ThreadSanitizer's programs.
addresses() {  # bits that are random, what personality() returns when it sets the addresses, and
    # when it is asked
    python3 -B -c "
import ctypes, builds, tool
set = []
class Libc:
    def personality(self, flags):
        if flags.value == 0xFFFFFFFF:
            return ${3:-8}
        set.append(hex(flags.value))
        return $2
ctypes.CDLL = lambda _: Libc()
builds.Path.read_text = lambda _: '$1'
try:
    builds.fix_addresses()
except tool.Failure as failure:
    print(failure)
print(set)"
}
expect 0 '[]' addresses 28 0
expect 0 '[]' addresses '' 0
expect 0 "['0x40008']" addresses 32 0
expect 0 'sudo sysctl vm.mmap_rnd_bits=28' addresses 32 -1
expect 0 'sudo sysctl vm.mmap_rnd_bits=28' addresses 32 0 -1

mkdir "$machine/modules"
stands_for nvidia-smi <<<'echo "| Driver Version: 550.54   CUDA Version: 12.4 |"'
expect 1 'driver supports CUDA 12.4: install CUDA Toolkit 12.4' make_toolkit
stands_for nvidia-smi <<<'exit 9'
echo 'import sys; sys.exit("--version" not in sys.argv or print("pip 1"))' \
    >"$machine/modules/pip.py"
expect 1 "could not fetch CUDA's compiler" make_toolkit
no_half_toolkit
cat >"$machine/modules/pip.py" <<'PIP'
import os, signal, sys, pathlib
if "--version" in sys.argv:
    sys.exit(print("pip 1"))
toolkit = pathlib.Path(sys.argv[sys.argv.index("--target") + 1], "nvidia/cu13")
for part in ("bin", "lib", "include"):
    (toolkit / part).mkdir(parents=True)
if "INTERRUPTED" in os.environ:
    os.kill(os.getppid(), signal.SIGTERM)
    signal.pause()
(toolkit / "bin/nvcc").write_text("#!/bin/sh\necho nvcc of the wheels\n")
(toolkit / "bin/nvcc").chmod(0o755)
PIP
INTERRUPTED=1 expect 143 'fetching' make_toolkit
no_half_toolkit
expect 0 'nvcc of the wheels' make_toolkit
[[ "$(ls "$machine/it's a cache/symm")" == cuda-13.0 ]] &&
    [[ -L "$machine/it's a cache/symm/cuda-13.0/lib64" ]] ||
    failed "the cache has $(ls "$machine/it's a cache/symm")"

# Emulated GPUs need no compiler of NVIDIA's: only headers are fetched.
rm -r "$machine/it's a cache"
expect 0 "$machine/it's a cache/symm/cuda-13.0-headers/version.txt" \
    in_lab 'cuda.find_nvcc = lambda: None; print(*cuda.settings(needs_compiler=False))'
[[ "$(ls "$machine/it's a cache/symm")" == cuda-13.0-headers ]] ||
    failed "the cache has $(ls "$machine/it's a cache/symm")"

# An installed toolkit comes before the private one, unless it is too old.
stands_for nvcc <<<'echo "Cuda compilation tools, release 12.6, V12.6.20"'
expect 0 "with $machine/bin/nvcc" in_lab \
    'cuda.settings(needs_compiler=True); print("with", cuda.os.environ["CUDACXX"])'
stands_for dpkg-query <<<'echo installed'
stands_for cmake <<<'[[ "$1" != --version ]] || exec echo cmake version 3.25.1
                     echo "No space left on device"; exit 1'
expect 1 'no space is left on a disk' "$copy/lab" build --preset debug
# A build whose toolkit is gone from the cache is configured anew.
echo "CUDAToolkit_ROOT:PATH=$machine/it's a cache" >"$copy/build/emulated/CMakeCache.txt"
expect 0 '' "$copy/lab" build
rm -r "$machine/it's a cache"
expect 1 'configuring build/emulated' "$copy/lab" build
expect 0 "$root/build/cache" in_lab \
    'cuda.os.access = lambda *_: False; import packages; print(packages.cache_folder())'
stands_for cmake <<<'echo cmake version 3.9.2'
expect 1 'CMake 3.9.2 is older than 3.25' "$copy/lab" build --preset debug
mv "$copy" "$machine/\""
expect 1 'CMake cannot build in' "$machine/\"/lab" build
stands_for nvcc <<<'echo "Cuda compilation tools, release 11.8, V11.8.89"'
expect 0 "skipping $machine/bin/nvcc: CUDA 11.8 is older than 12.4" in_lab 'cuda.find_nvcc()'
exit "$failures"
