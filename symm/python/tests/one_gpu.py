"""Tests of the package symm with PyTorch, for a machine with one GPU (or more): two ranks share it.

usage: one_gpu.py [processes] [threads] [killed]

Each case says what was right; without arguments all run. Exit status: 0 if all is right. Where GPUs
are emulated, tensors are in host memory, and nothing is captured in graphs."""

import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as distributed

import symm
from processes import chosen, spawn

RANKS = 2
DEVICE = "cpu" if symm.is_emulated() else "cuda"


def say(communicator: symm.Communicator, text: str):
    if communicator.rank == 0:
        print(f"  {text}", flush=True)


def values(rank: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    """A rank's input, in host memory: every rank can compute it."""
    generator = torch.Generator().manual_seed(rank * 1000 + count)
    return (torch.randn(count, generator=generator) * 100).to(dtype)


def expect(communicator: symm.Communicator, found: torch.Tensor, expected: torch.Tensor):
    """Expects the same bits, when the current stream has done its work."""
    communicator.synchronize()
    if not torch.equal(found.cpu(), expected):
        raise RuntimeError(f"wrong result of {tuple(found.shape)} {found.dtype}")


def use(communicator: symm.Communicator):
    """All collectives, in windows and in PyTorch's own memory, against PyTorch's arithmetic."""
    rank, results = communicator.rank, 0

    def plain(count, dtype):
        return torch.empty(count, dtype=dtype, device=DEVICE)

    def window(count, dtype):
        if symm.is_emulated() and dtype == torch.bfloat16:
            return plain(count, dtype)  # NumPy has no bfloat16
        return torch.as_tensor(communicator.empty(count, dtype))

    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int32):
        for count in (1, 1001, 1 << 20):
            every = [values(r, RANKS * count, dtype) for r in range(RANKS)]
            exact = [x.float() if dtype.is_floating_point else x for x in every]
            for make in (window, plain):
                x, out, part = make(RANKS * count, dtype), make(RANKS * count, dtype), \
                    make(count, dtype)
                x.copy_(every[rank])
                for op, expected in (("sum", exact[0] + exact[1]),
                                     ("max", torch.maximum(exact[0], exact[1]))):
                    communicator.all_reduce(x, out.fill_(77), op)
                    expect(communicator, out, expected.to(dtype))
                    communicator.reduce_scatter(x, part.fill_(77), op)
                    expect(communicator, part, expected.to(dtype).view(RANKS, -1)[rank])
                communicator.all_gather(x[:count], out.fill_(77))
                expect(communicator, out, torch.cat([y[:count] for y in every]))
                communicator.all_reduce(x)
                expect(communicator, x, (exact[0] + exact[1]).to(dtype))
                results += 6
                for tensor in (x, out, part) if make is window and dtype != torch.bfloat16 else ():
                    communicator.release(tensor)
    say(communicator, f"{results} results have PyTorch's bits")


def capture(communicator: symm.Communicator, meet, replays: int = 1000):
    """A graph of PyTorch's with a call: each replay adds another input to the total. `meet` is a
    barrier of the ranks: threads capture one after the other."""
    if symm.is_emulated():
        return
    x, out, total = (communicator.empty(4097, torch.float32).zero_() for _ in range(3))
    communicator.all_reduce(x, out)
    communicator.synchronize()
    graph = torch.cuda.CUDAGraph()
    for turn in range(RANKS):
        meet()
        if turn == communicator.rank:
            with torch.cuda.graph(graph, stream=torch.cuda.Stream(),
                                  capture_error_mode="thread_local"):
                x.add_(communicator.rank + 1)
                communicator.all_reduce(x, out)
                total.add_(out)
    meet()
    start = time.perf_counter()
    for _ in range(replays):
        graph.replay()
    communicator.synchronize()
    took = time.perf_counter() - start
    # 3 + 6 + 9 + ..., exact in float32.
    expect(communicator, total, torch.full((4097,), 3 * replays * (replays + 1) / 2))
    say(communicator, f"{replays} replays of a graph are right, {took / replays * 1e6:.1f} us each")


def join_group(rank: int, port: int):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    distributed.init_process_group("gloo", rank=rank, world_size=RANKS)


def run_process(rank: int, port: int):
    join_group(rank, port)
    with symm.Communicator.from_torch() as communicator:
        use(communicator)
        capture(communicator, distributed.barrier)
        x = values(rank, 1000, torch.float32)
        y = x.to(DEVICE)
        distributed.all_reduce(x)
        expect(communicator, communicator.all_reduce(y), x)
        say(communicator, "the sum has the bits of torch.distributed's")
    distributed.destroy_process_group()


def run_threads():
    barrier = threading.Barrier(RANKS)

    def run(rank: int):
        if not symm.is_emulated():  # the ranks share a GPU, so each needs its own stream
            torch.cuda.set_stream(torch.cuda.Stream())
        with symm.Communicator(rank, RANKS, f"one_gpu {os.getpid()}", device=0) as communicator:
            use(communicator)
            capture(communicator, lambda: barrier.wait(60))

    with ThreadPoolExecutor(RANKS) as threads:
        list(threads.map(run, range(RANKS)))


def run_killed(rank: int, port: int):
    join_group(rank, port)
    communicator = symm.Communicator.from_torch()
    x = torch.ones(1000, device=DEVICE)
    communicator.all_reduce(x)
    communicator.synchronize()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    communicator.all_reduce(x)
    try:
        communicator.synchronize()
    except symm.RankError as error:
        say(communicator, f"after {time.monotonic() - start:.1f} s: {error}")
        os._exit(0 if "rank 1" in str(error) else 1)  # not to wait for gloo
    os._exit(2)


def in_processes(body, expected: list | None = None):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    spawn(body, [(rank, port) for rank in range(RANKS)], expected)


CASES = {"processes": lambda: in_processes(run_process), "threads": run_threads,
         "killed": lambda: in_processes(run_killed, [0, -signal.SIGKILL])}


def main():
    for name in chosen(__doc__, CASES):
        print(f"{name}:", flush=True)
        CASES[name]()
    print("all is right")


if __name__ == "__main__":
    main()
