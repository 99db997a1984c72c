#!/usr/bin/env python3
"""Finds the CUDA Toolkit, or installs one in the user's cache. As a program: prints nvcc's name."""

import os
import platform
import re
import shutil
import sys
from pathlib import Path

from packages import CACHE, fetched, has_pip, install, output_of, put, version
from tool import Failure

PRIVATE = CACHE / "cuda-13.0"
HEADERS = CACHE / "cuda-13.0-headers"
NONE = "no CUDA Toolkit 12.4 or newer found"


def find_nvcc() -> str | None:
    """The first nvcc of version 12.4 or newer."""
    for nvcc in (os.environ.get("CUDACXX"), shutil.which("nvcc"),
                 f"{os.environ.get('CUDA_HOME', '')}/bin/nvcc", "/usr/local/cuda/bin/nvcc",
                 "/opt/cuda/bin/nvcc", f"{PRIVATE}/bin/nvcc"):
        if nvcc and (path := shutil.which(nvcc)):
            release = re.search(r"release ([\d.]+)", output_of(path, "--version"))
            if release and version(release[1]) >= (12, 4):
                return path
            print(f"skipping {path}: CUDA {release[1] if release else '?'} is older than 12.4",
                  file=sys.stderr, flush=True)
    return None


def settings(needs_compiler: bool) -> list:
    """CMake's arguments; also sets CUDACXX for it. Emulated GPUs need only NVIDIA's headers and
    runtime: on a machine without nvcc, only these are fetched. CMake then looks for a version.txt
    instead of nvcc."""
    nvcc = find_nvcc()
    if not nvcc and not needs_compiler:
        return headers()
    if not nvcc:
        fetch("compiler", PRIVATE, "104 MB, 270 MB unpacked")
        nvcc = f"{PRIVATE}/bin/nvcc"
    os.environ["CUDACXX"] = nvcc
    return [f"-DCUDAToolkit_ROOT={nvcc.removesuffix('/bin/nvcc')}"]  # for emulated GPUs only


def headers(machine: str = "") -> list:
    """CMake's arguments: NVIDIA's headers and runtime alone, for another machine if it is named."""
    folder = HEADERS.with_name(f"{HEADERS.name}-{machine}") if machine else HEADERS
    if not folder.is_dir():
        fetch("headers", folder, "6 MB, 26 MB unpacked", machine)
    return [f"-DCUDAToolkit_ROOT={folder}", f"-DCUDAToolkit_SENTINEL_FILE={folder}/version.txt"]


def fetch(what: str, folder: Path, size: str, machine: str = ""):
    """Installs NVIDIA's wheels of cuda_WHAT.txt."""
    if platform.machine() not in ("x86_64", "aarch64"):
        raise Failure(f"{NONE}: install one, or set CUDA_HOME to its folder")
    driver = re.search(r"CUDA Version: *([\d.]+)", output_of("nvidia-smi"))
    if driver and version(driver[1]) < (13, 0):
        raise Failure(f"{NONE}. This machine's driver supports CUDA {driver[1]}: install CUDA "
                      f"Toolkit {driver[1]}")
    if not has_pip():
        install("python3-pip")
        if not has_pip():
            raise Failure(f"{NONE}, and pip is missing: install either, or set CUDA_HOME")
    why = f"for {machine}" if machine else NONE
    print(f"{why}: fetching NVIDIA's {what} 13.0 from PyPI\n(once, {size}) into {folder}. Delete "
          "that folder to remove it.", flush=True)
    with fetched(folder, f"cuda_{what}.txt", f"could not fetch CUDA's {what} (above): try again, "
                 "or install the CUDA Toolkit", machine) as wheels:
        toolkit = wheels / "nvidia/cu13"
        # nvcc and CMake look for these, but the wheels lack them.
        (toolkit / "lib64").symlink_to("lib")
        (toolkit / "lib/libcudart.so").symlink_to("libcudart.so.13")
        (toolkit / "version.txt").write_text("CUDA Version 13.0.96\n")
        put(toolkit, folder)


if __name__ == "__main__":
    print(find_nvcc() or sys.exit("there is no CUDA compiler: ./lab setup installs one"))
