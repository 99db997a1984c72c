# shellcheck shell=bash
# Finds the CUDA Toolkit, or installs one in the user's cache. ./lab sources this file.

readonly private_cuda="${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/symm/cuda-13.0"

# Tests whether version $1 is at least version $2.
at_least() {
    [[ "$(printf '%s\n' "$2" "$1" | sort -V | head -1)" == "$2" ]]
}

cuda_settings=()  # CMake's arguments

# Sets nvcc to the first one of version 12.4 or newer.
find_nvcc() {
    local version
    for nvcc in "${CUDACXX:-}" "$(command -v nvcc)" "${CUDA_HOME:-}/bin/nvcc" \
        /usr/local/cuda/bin/nvcc /opt/cuda/bin/nvcc "$private_cuda/bin/nvcc"; do
        [[ -x "$nvcc" ]] || continue
        version=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
        at_least "${version:-0}" 12.4 && return
        echo "skipping $nvcc: CUDA ${version:-?} is older than 12.4"
    done
    return 1
}

# Exports CUDACXX for CMake. Emulated GPUs need only NVIDIA's headers and runtime: on a machine
# without nvcc, `headers` fetches only these. CMake then looks for a version.txt instead of nvcc.
find_cuda() {  # compiler or headers
    local nvcc
    if find_nvcc; then
        :
    elif [[ "$1" == compiler ]]; then
        fetch_cuda compiler "$private_cuda" compiler "104 MB, 270 MB unpacked"
        nvcc="$private_cuda/bin/nvcc"
    else
        [[ -d "$private_cuda-headers" ]] ||
            fetch_cuda headers "$private_cuda-headers" headers "6 MB, 26 MB unpacked"
        cuda_settings=(-DCUDAToolkit_ROOT="$private_cuda-headers"
                       -DCUDAToolkit_SENTINEL_FILE="$private_cuda-headers/version.txt")
        return
    fi
    export CUDACXX="$nvcc"
    cuda_settings=(-DCUDAToolkit_ROOT="${nvcc%/bin/nvcc}")  # for emulated GPUs only
}

# Installs NVIDIA's wheels of cmake/cuda_KIND.txt in a temporary folder next to the final one,
# and renames it when it is complete.
fetch_cuda() {  # kind, folder, its contents, its size
    local folder=$2 why="no CUDA Toolkit 12.4 or newer found" driver toolkit
    [[ "$(uname -m)" == x86_64 ]] || fail 1 "$why: install one, or set CUDA_HOME to its folder"
    driver=$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p' || true)
    at_least "${driver:-13.0}" 13.0 ||
        fail 1 "$why. This machine's driver supports CUDA $driver: install CUDA Toolkit $driver"
    python3 -m pip --version >/dev/null 2>&1 || install_missing python3-pip
    python3 -m pip --version >/dev/null 2>&1 ||
        fail 1 "$why, and pip is missing: install either, or set CUDA_HOME"
    echo "$why: fetching NVIDIA's $3 13.0 from PyPI"
    echo "(once, $4) into $folder. Delete that folder to remove it."
    mkdir -p "${folder%/*}"
    parts=$(mktemp -d "$folder.XXXXXX")  # global, for the trap
    trap 'rm -rf "$parts"' EXIT
    python3 -m pip install --disable-pip-version-check --root-user-action ignore --no-deps \
        --only-binary :all: --require-hashes --target "$parts" -r "cmake/cuda_$1.txt" ||
        fail 1 "could not fetch CUDA's $3 (above): try again, or install the CUDA Toolkit"
    toolkit="$parts/nvidia/cu13"
    # nvcc and CMake look for these, but the wheels lack them.
    ln -s lib "$toolkit/lib64"
    ln -s libcudart.so.13 "$toolkit/lib/libcudart.so"
    echo 'CUDA Version 13.0.96' >"$toolkit/version.txt"
    # If another ./lab has made the folder meanwhile, uses that one.
    mv -T "$toolkit" "$folder" 2>/dev/null || [[ -d "$folder/include" ]] ||
        fail 1 "could not create $folder"
    rm -rf "$parts"
    trap - EXIT
}
