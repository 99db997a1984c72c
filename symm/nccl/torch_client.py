#!/usr/bin/env python3
"""A program of PyTorch that knows nothing of the drop-in: torch_client.py CASE, for two GPUs. Exit
status 0 if all sums are right. `losses` prints the losses of a training by
DistributedDataParallel, to be compared with a run without the drop-in."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RANKS = 2
UNNOTICED = 3  # exit code of a rank whose peer has died, and whose calls go on


def expect(tensor: torch.Tensor, value: float, what: str) -> None:
    if not torch.equal(tensor, torch.full_like(tensor, value)):
        raise RuntimeError(f"{what}: {tensor.flatten()[:3].tolist()}, not {value}")


def ones(count: int = 4096, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full((count,), dist.get_rank() + 1.0, dtype=dtype, device="cuda")


def losses(rank: int) -> None:
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(),
                                torch.nn.Linear(2048, 16)).cuda()
    parallel = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.05)
    torch.manual_seed(100 + rank)
    for step in range(20):
        x = torch.randn(64, 512, device="cuda")
        loss = (parallel(x) - x[:, :16]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"loss {step}: {loss.item():.9g}", flush=True)


def mixed(_: int) -> None:
    """Synchronous and asynchronous calls, types and sizes, on two streams."""
    side = torch.cuda.Stream()
    for round_ in range(50):
        dtype = (torch.float32, torch.bfloat16, torch.int64)[round_ % 3]
        first, second, third = ones(100 + round_, dtype), ones(1 << 20, dtype), ones(7, dtype)
        work = dist.all_reduce(first, async_op=True)
        dist.all_reduce(second)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            other = dist.all_reduce(third, async_op=True)
            other.wait()
        work.wait()
        torch.cuda.current_stream().wait_stream(side)
        for tensor in (first, second, third):
            expect(tensor, 3, f"round {round_}, {dtype}")


def graphs(_: int) -> None:
    x = ones()
    for _ in range(3):  # before a capture, NCCL asks for calls outside of one
        dist.all_reduce(x.clone())
    torch.cuda.synchronize()
    static, graph = ones(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = static.clone()
        dist.all_reduce(result)
    for round_ in range(5):
        static.fill_(dist.get_rank() + round_)
        graph.replay()
        torch.cuda.synchronize()
        expect(result, 1 + 2 * round_, f"launch {round_}")
        y = ones()
        dist.all_reduce(y)
        expect(y, 3, f"between launches {round_}")


def groups(_: int) -> None:
    pairs = [dist.new_group([0, 1]) for _ in range(3)]
    for round_ in range(10):
        for number, group in enumerate(pairs):
            x = ones(1000 * (number + 1))
            dist.all_reduce(x, group=group)
            expect(x, 3, f"group {number}, round {round_}")
    for group in pairs:
        dist.destroy_process_group(group)


def coalescing(_: int) -> None:
    for round_ in range(10):
        tensors = [ones(100 * (i + 1)) for i in range(8)]
        with dist._coalescing_manager(device=tensors[0].device):
            for tensor in tensors:
                dist.all_reduce(tensor)
        for tensor in tensors:
            expect(tensor, 3, f"round {round_}")


def killed(rank: int) -> None:
    """Rank 1 dies: rank 0's next call ends within the group's time limit, by an error."""
    for _ in range(3):
        x = ones()
        dist.all_reduce(x)
        expect(x, 3, "before")
    torch.cuda.synchronize()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1)
    start = time.monotonic()
    try:
        dist.all_reduce(ones())
        torch.cuda.synchronize()
        dist.all_reduce(ones())
        torch.cuda.synchronize()
    except RuntimeError as error:
        print(f"after {time.monotonic() - start:.1f} s: {error}", flush=True)
        os._exit(0)
    os._exit(UNNOTICED)


CASES = {case.__name__: case for case in (losses, mixed, graphs, groups, coalescing, killed)}


def run(rank: int, case: str) -> None:
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29511", rank=rank,
                            world_size=RANKS, device_id=torch.device("cuda", rank))
    CASES[case](rank)
    dist.destroy_process_group()


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1] not in CASES:
        print(f"usage: torch_client.py {'|'.join(CASES)}", file=sys.stderr)
        return 2
    processes = [mp.get_context("spawn").Process(target=run, args=(rank, sys.argv[1]))
                 for rank in range(RANKS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    codes = [process.exitcode for process in processes]
    print(f"{sys.argv[1]}: exit codes {codes}")
    if sys.argv[1] == "killed":  # PyTorch's watchdog may end rank 0 before its own error does
        return 0 if codes[1] == -signal.SIGKILL and codes[0] != UNNOTICED else 1
    return 0 if codes == [0, 0] else 1


if __name__ == "__main__":
    sys.exit(main())
