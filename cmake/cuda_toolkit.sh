# shellcheck shell=bash
# Finds the CUDA Toolkit for ./lab, which sources this file, or installs one in the user's cache.

readonly private_cuda="${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/symm/cuda-13.0"

# Whether version $1 is at least version $2.
at_least() {
    [[ "$(printf '%s\n' "$2" "$1" | sort -V | head -1)" == "$2" ]]
}

# Exports CUDACXX, the first nvcc of version 12.4 or newer, for CMake.
find_cuda() {
    local nvcc version
    for nvcc in "${CUDACXX:-}" "$(command -v nvcc)" "${CUDA_HOME:-}/bin/nvcc" \
        /usr/local/cuda/bin/nvcc /opt/cuda/bin/nvcc "$private_cuda/bin/nvcc"; do
        [[ -x "$nvcc" ]] || continue
        version=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
        if at_least "${version:-0}" 12.4; then
            export CUDACXX="$nvcc"
            return
        fi
        echo "$nvcc is of CUDA ${version:-?}, older than 12.4: not used"
    done
    make_private_cuda
    export CUDACXX="$private_cuda/bin/nvcc"
}

# Installs NVIDIA's wheels in a folder beside $private_cuda, and renames it when it is complete.
make_private_cuda() {
    local why="no CUDA Toolkit 12.4 or newer found" driver parts root
    [[ "$(uname -m)" == x86_64 ]] || fail 1 "$why: install one, or set CUDA_HOME to where it is"
    driver=$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p' || true)
    at_least "${driver:-13.0}" 13.0 ||
        fail 1 "$why. This machine's driver is of CUDA $driver: install the CUDA Toolkit $driver"
    python3 -m pip --version >/dev/null 2>&1 || install_missing python3-pip
    python3 -m pip --version >/dev/null 2>&1 ||
        fail 1 "$why, and no pip to fetch one: install either, or set CUDA_HOME"
    echo "$why: fetching NVIDIA's compiler 13.0 from PyPI"
    echo "(once, 104 MB, 270 MB unpacked) into $private_cuda. Delete that folder to remove it."
    mkdir -p "${private_cuda%/*}"
    parts=$(mktemp -d "$private_cuda.XXXXXX")
    # shellcheck disable=SC2064  # the folder's name as it is now
    trap "rm -rf '$parts'" EXIT
    python3 -m pip install --disable-pip-version-check --root-user-action ignore --no-deps \
        --only-binary :all: --require-hashes --target "$parts" -r cmake/cuda_wheels.txt ||
        fail 1 "could not fetch the CUDA compiler (above): try again, or install the CUDA Toolkit"
    root="$parts/nvidia/cu13"
    # Links that nvcc and CMake look for and the wheels do not have.
    ln -s lib "$root/lib64"
    ln -s libcudart.so.13 "$root/lib/libcudart.so"
    # Where another ./lab has made the folder meanwhile, that one is used.
    mv -T "$root" "$private_cuda" 2>/dev/null || [[ -x "$private_cuda/bin/nvcc" ]] ||
        fail 1 "could not make $private_cuda"
    rm -rf "$parts"
    trap - EXIT
}
