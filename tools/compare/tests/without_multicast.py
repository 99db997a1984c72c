#!/usr/bin/env python3
"""without_multicast.py LIBRARY CUDA: what a process may do below LIBRARY, by CUDA, a library that
stands for libcuda.so.1: everything but call a function of multicast, however it has found it."""

import os
import signal
import subprocess
import sys

library, cuda = sys.argv[1:]
REFUSED = "this process called a function of multicast"
LOOKED_UP = "looked up {} functions of multicast, and called none"
BY_NAME = "cuda.cuMulticastCreate"
BY_ADDRESS = """ctypes.CFUNCTYPE(ctypes.c_int)(address_of('cuMulticastCreate'))"""
CASES = [
    # what is done, the exit status, and what is said
    ("cuda.cuInit(0)", 0, ""),
    (BY_NAME, 0, LOOKED_UP.format(1)),
    (f"{BY_ADDRESS}, address_of('cuMulticastUnbind')", 0, LOOKED_UP.format(2)),
    (f"{BY_NAME}()", -signal.SIGABRT, REFUSED),
    (f"{BY_ADDRESS}()", -signal.SIGABRT, REFUSED),
    ("ctypes.CDLL(None).cuMulticastAddDevice()", -signal.SIGABRT, REFUSED),  # linked with CUDA
]
BEFORE = f"""
import ctypes
cuda = ctypes.CDLL({cuda!r})
def address_of(name):
    found = ctypes.c_void_p()
    cuda.cuGetProcAddress_v2(name.encode(), ctypes.byref(found), 13000, ctypes.c_uint64(0), None)
    return found.value
"""

for code, status, said in CASES:
    ended = subprocess.run([sys.executable, "-c", BEFORE + code], text=True, capture_output=True,
                           env=os.environ | {"LD_PRELOAD": library})
    wrong = ended.returncode != status or (said not in ended.stderr if said else ended.stderr)
    if wrong:
        sys.exit(f"{code}: status {ended.returncode}, instead of {status} and '{said}':\n"
                 f"{ended.stderr}")
