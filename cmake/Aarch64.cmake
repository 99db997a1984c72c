# Builds for aarch64 on another machine, with clang and the libraries of Debian's cross compiler:
# `./lab build --arch aarch64` (tools/lab/aarch64.py). That sets SYMM_AARCH64_LIBRARIES, the folder
# of Debian's other libraries for it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER clang)
set(CMAKE_CXX_COMPILER clang++)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SYMM_AARCH64_LIBRARIES)
# The second is the compiler's own: libc and libstdc++.
set(CMAKE_FIND_ROOT_PATH "${SYMM_AARCH64_LIBRARIES}" /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
