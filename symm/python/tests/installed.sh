#!/bin/sh
# Installs the package in a virtual environment, as a user would, and runs its tests there:
# installed.sh SOURCES LIBSYMM FOLDER. The environment is kept; NumPy and the build's tools come
# from PyPI, the first time.
set -eu
sources=$1 library=$2 folder=$3
if ! [ -f "$folder/complete" ]; then
    rm -rf "$folder"
    python3 -m venv "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check numpy 'scikit-build-core>=0.10'
    touch "$folder/complete"
fi
"$folder/bin/pip" install --quiet --disable-pip-version-check --no-index --no-build-isolation \
    --no-deps --force-reinstall "$sources" -C "cmake.define.SYMM_LIBRARY=$library" \
    -C "build-dir=$folder/wheel"
cd "$folder"  # not where the sources are
# Without torch_test.py, for which symm/CMakeLists.txt needs a Python with PyTorch.
exec bin/python -B -m unittest discover -s "$sources/symm/python/tests" -p '[!t]*_test.py'
