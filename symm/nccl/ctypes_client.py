#!/usr/bin/env python3
"""Compares NCCL's AllReduce with the drop-in's, bit by bit: a program without PyTorch that loads
libsymm_nccl_full.so as vLLM loads NCCL. Its two ranks are threads, both on one GPU if there is only
one (NCCL_MULTI_RANK_GPU_ENABLE=1, NCCL 2.30.7 or newer).

    ctypes_client.py LIBRARIES [--calls N] [--seed N]

LIBRARIES is the folder with libsymm_nccl_full.so; NCCL is the libnccl.so.2 that the dynamic linker
finds (LD_LIBRARY_PATH). Exit status 0 if all results agree; SYMM_NCCL_STATS=1
shows whether calls were the drop-in's."""

import argparse
import ctypes
import os
import random
import sys
import threading
from pathlib import Path

TYPES = {"int8": (0, 1), "uint8": (1, 1), "int32": (2, 4), "uint32": (3, 4), "int64": (4, 8),
         "uint64": (5, 8), "float16": (6, 2), "float32": (7, 4), "float64": (8, 8),
         "bfloat16": (9, 2)}
OPS = {"sum": 0, "prod": 1, "max": 2, "min": 3, "avg": 4}
RANKS = 2  # more would round some products and averages in other orders
MOST = 1 << 22  # bytes of a buffer
SYMMETRIC = 1  # NCCL_WIN_COLL_SYMMETRIC


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def pointers(library: ctypes.CDLL) -> ctypes.CDLL:
    """Every argument that may be a pointer or a size is passed with 64 bits."""
    p, n, i = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    for name, types in {
            "ncclCommInitRank": [p, i, UniqueId, i], "ncclCommDestroy": [p], "ncclMemAlloc": [p, n],
            "ncclMemFree": [p], "ncclCommWindowRegister": [p, p, n, p, i],
            "ncclCommWindowDeregister": [p, p],
            "ncclAllReduce": [p, p, n, i, i, p, p]}.items():
        getattr(library, name).argtypes = types
    return library


class Driver:
    """The driver's functions, of libsymm.so's driver: real or emulated."""

    def __init__(self, libsymm: ctypes.CDLL):
        libsymm.symm_driver_function.restype = ctypes.c_void_p
        self._libsymm = libsymm
        self._found = {}

    def __call__(self, name: str, *arguments) -> None:
        if name not in self._found:
            address = self._libsymm.symm_driver_function(name.encode())
            self._found[name] = ctypes.CFUNCTYPE(ctypes.c_int)(address)
        result = self._found[name](*arguments)
        if result != 0:
            raise RuntimeError(f"{name} returned {result}")


def size(value: int) -> ctypes.c_size_t:
    return ctypes.c_size_t(value)


class Call:
    """A random call, the same on all ranks."""

    def __init__(self, choose: random.Random):
        self.type = choose.choice(list(TYPES))
        self.op = choose.choice(list(OPS))
        if self.op == "avg" and "int" in self.type:
            self.op = "sum"  # the two divide integers differently
        width = TYPES[self.type][1]
        self.count = choose.randint(1, choose.choice([8, 1000, 30000, MOST // width]))
        self.in_place = choose.random() < 0.3
        self.in_windows = choose.random() < 0.4
        if self.in_windows and self.op == "avg":
            self.op = "sum"  # NCCL 2.32.3 lacks that kernel: "unknown red op", CUDA's error 98
        self.stream = choose.randrange(2)
        self.seed = choose.randrange(1 << 30)

    def __str__(self) -> str:
        return f"{self.count} x {self.type}, {self.op}{', in place' * self.in_place}" \
               f"{', in windows' * self.in_windows}"

    def input(self, rank: int) -> bytes:
        """Small integers of the type: every order of the ranks gives the same bits."""
        choose = random.Random(f"{self.seed} {rank}")
        floats = {"float16": (0, 0x3c00, 0x4000, 0x4200),  # 0 to 3
                  "bfloat16": (0, 0x3f80, 0x4000, 0x4040),
                  "float32": (0, 0x3f800000, 0x40000000, 0x40400000),
                  "float64": (0, 0x3ff0 << 48, 0x4000 << 48, 0x4008 << 48)}
        width = TYPES[self.type][1]
        values = [v.to_bytes(width, "little") for v in floats.get(self.type, (0, 1, 2, 3))]
        piece = b"".join(choose.choices(values, k=997))
        return (piece * (self.count // 997 + 1))[:self.count * width]


class Rank:
    def __init__(self, rank: int, driver: Driver, libraries: dict, ids: dict):
        self.rank, self.driver, self.libraries = rank, driver, libraries
        device, context, devices = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
        driver("cuInit", 0)
        driver("cuDeviceGetCount", ctypes.byref(devices))
        driver("cuDeviceGet", ctypes.byref(device), rank % devices.value)
        driver("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        driver("cuCtxSetCurrent", context)
        self.streams = []
        for _ in range(2):
            stream = ctypes.c_void_p()
            driver("cuStreamCreate", ctypes.byref(stream), 1)  # CU_STREAM_NON_BLOCKING
            self.streams.append(stream)
        self.comms = {}
        for name, library in libraries.items():
            comm = ctypes.c_void_p()
            self.check(library.ncclCommInitRank(ctypes.byref(comm), RANKS, ids[name],
                                                rank), "ncclCommInitRank")
            self.comms[name] = comm
        self.plain = [self.allocated() for _ in range(2)]
        self.windows = {name: [self.registered(name) for _ in range(2)] for name in libraries}

    @staticmethod
    def check(result: int, what: str) -> None:
        if result != 0:
            raise RuntimeError(f"{what} returned {result}")

    def allocated(self) -> int:
        address = ctypes.c_uint64()
        self.driver("cuMemAlloc", ctypes.byref(address), size(MOST))
        return address.value

    def registered(self, name: str) -> int:
        """Memory in a window of the communicator of that library."""
        memory, window, library = ctypes.c_void_p(), ctypes.c_void_p(), self.libraries[name]
        self.check(library.ncclMemAlloc(ctypes.byref(memory), MOST), "ncclMemAlloc")
        self.check(library.ncclCommWindowRegister(self.comms[name], memory, MOST,
                                                  ctypes.byref(window), SYMMETRIC),
                   "ncclCommWindowRegister")
        return memory.value

    def copy_in(self, to: int, data: bytes) -> None:
        self.driver("cuMemcpyHtoD", ctypes.c_uint64(to), data, size(len(data)))
        self.driver("cuStreamSynchronize", None)

    def copy_out(self, at: int, count: int) -> bytes:
        data = ctypes.create_string_buffer(count)
        self.driver("cuMemcpyDtoH", data, ctypes.c_uint64(at), size(count))
        return data.raw

    def reduce(self, name: str, call: Call, place: int = 0) -> int:
        """Queues the call; returns where its result will be."""
        buffers = self.windows[name] if call.in_windows else self.plain
        source, target = (b + place for b in buffers)
        target = source if call.in_place else target
        if not call.in_place:
            self.copy_in(target, b"\xab" * call.count * TYPES[call.type][1])
        self.copy_in(source, call.input(self.rank))
        self.queue(name, call, source, target)
        return target

    def queue(self, name: str, call: Call, source: int, target: int) -> None:
        self.check(self.libraries[name].ncclAllReduce(
            source, target, call.count, TYPES[call.type][0], OPS[call.op], self.comms[name],
            self.streams[call.stream]), f"ncclAllReduce of {call}")

    def wait(self) -> None:
        for stream in self.streams:
            self.driver("cuStreamSynchronize", stream)

    def both(self, call: Call) -> list[bytes]:
        """The results of both libraries."""
        results = []
        for name in self.libraries:
            target = self.reduce(name, call)
            self.wait()
            results.append(self.copy_out(target, call.count * TYPES[call.type][1]))
        return results

    def group(self, choose: random.Random) -> list[list[bytes]]:
        """Three calls in a group, in both libraries: plain memory, a third of it each."""
        calls = [Call(choose) for _ in range(3)]
        part = MOST // 3 // 256 * 256
        for call in calls:
            call.count = min(call.count, part // TYPES[call.type][1])
            call.in_windows = False
        results = []
        for name, library in self.libraries.items():
            self.check(library.ncclGroupStart(), "ncclGroupStart")
            targets = [self.reduce(name, call, i * part) for i, call in enumerate(calls)]
            self.check(library.ncclGroupEnd(), "ncclGroupEnd")
            self.wait()
            results.append([self.copy_out(target, call.count * TYPES[call.type][1])
                            for target, call in zip(targets, calls, strict=True)])
        return results

    def graph(self, choose: random.Random) -> list[list[bytes]]:
        """A call, captured, and launched three times with other input."""
        call = Call(choose)
        source, target = self.plain
        call.stream = 0
        stream, results = self.streams[0], []
        for name in self.libraries:
            graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
            self.driver("cuStreamBeginCapture", stream, 1)  # THREAD_LOCAL
            self.queue(name, call, source, target)
            self.driver("cuStreamEndCapture", stream, ctypes.byref(graph))
            self.driver("cuGraphInstantiate", ctypes.byref(executable), graph,
                        ctypes.c_ulonglong(0))
            seed, outputs = call.seed, []
            for launch in range(3):
                call.seed = seed + launch
                self.copy_in(source, call.input(self.rank))
                self.driver("cuGraphLaunch", executable, stream)
                self.wait()
                outputs.append(self.copy_out(target, call.count * TYPES[call.type][1]))
            call.seed = seed
            self.driver("cuGraphExecDestroy", executable)
            self.driver("cuGraphDestroy", graph)
            results.append(outputs)
        return results

    def destroy(self) -> None:
        for name, library in self.libraries.items():
            self.check(library.ncclCommDestroy(self.comms[name]), "ncclCommDestroy")


def work(rank: int, arguments: argparse.Namespace, driver: Driver, libraries: dict,
         ids: dict) -> None:
    what = "the start"
    try:
        self = Rank(rank, driver, libraries, ids)
        choose = random.Random(arguments.seed)
        for number in range(arguments.calls):
            kind = "call" if number == 0 else \
                choose.choices(("call", "group", "graph"), (8, 1, 1))[0]
            if kind == "call":
                call = Call(choose)
                what = f"call {number}: {call}"
                nccls, ours = self.both(call)
            else:
                what = f"{kind} {number}"
                nccls, ours = getattr(self, kind)(choose)
            if nccls != ours:
                raise RuntimeError("the results differ")
        what = "the end"
        self.destroy()
    except (RuntimeError, OSError) as error:
        print(f"rank {rank}, {what}: {error}", flush=True)
        os._exit(1)  # the other ranks wait for this one


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", type=Path)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--libsymm", type=Path, help="libsymm.so.0, if it is in another folder")
    arguments = parser.parse_args()
    os.environ.setdefault("NCCL_MULTI_RANK_GPU_ENABLE", "1")
    os.environ["NCCL_NVLS_ENABLE"] = "0"  # no multicast: docs/DESIGN.md
    symm = ctypes.CDLL(str(arguments.libsymm or arguments.libraries / "libsymm.so.0"))
    libraries = {"nccl": pointers(ctypes.CDLL("libnccl.so.2")),
                 "ours": pointers(ctypes.CDLL(str(arguments.libraries / "libsymm_nccl_full.so")))}
    ids = {}
    for name, library in libraries.items():
        ids[name] = UniqueId()
        Rank.check(library.ncclGetUniqueId(ctypes.byref(ids[name])), "ncclGetUniqueId")
    driver = Driver(symm)
    driver("cuInit", 0)
    threads = [threading.Thread(target=work, args=(rank, arguments, driver, libraries, ids))
               for rank in range(RANKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{arguments.calls} calls, groups and graphs of {RANKS} ranks: the same bits")
    return 0


if __name__ == "__main__":
    sys.exit(main())
