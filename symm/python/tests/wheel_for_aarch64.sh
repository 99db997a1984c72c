#!/bin/sh
# Packs a wheel for aarch64 on another machine, and runs the demo there, which qemu emulates:
# wheel_for_aarch64.sh SOURCES LIBSYMM FOLDER. $QEMU_LD_PREFIX has a Python of that machine.
set -eux
sources=$1 library=$2 folder=$3 root=$QEMU_LD_PREFIX
rm -rf "$folder"
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check 'scikit-build-core>=0.10'
cd "$folder"
_PYTHON_HOST_PLATFORM=linux-aarch64 bin/pip wheel --quiet --disable-pip-version-check --no-index \
    --no-build-isolation --no-deps "$sources" -C "cmake.define.SYMM_LIBRARY=$library" \
    -C "build-dir=$folder/wheel"
python3 -m zipfile -e symm-*-py3-none-linux_aarch64.whl package
export LD_LIBRARY_PATH="$root/usr/lib/aarch64-linux-gnu/blas:$root/usr/lib/aarch64-linux-gnu/lapack"
PYTHONPATH=$PWD/package exec "$root/usr/bin/python3" -B -m symm.demo 3
