#!/usr/bin/env python3
"""rms_norm_rivals.py [--hidden N]...: times others' AllReduce with RMSNorm, on all GPUs.

TensorRT-LLM's kernels in one and two shots, through flashinfer-python, which compiles them first;
NCCL's AllReduce with PyTorch's sum and RMSNorm behind it; and that AllReduce alone. bfloat16,
without NVLink multicast. A time is one call's on the slowest rank, in us, with 20 calls in a CUDA
graph: the median of 9 turns. Results are checked first. Beside it: `your_own_bench rmsnorm`.
"""

import argparse
import os
import statistics
import sys
from functools import partial

import torch
import torch.distributed as dist
import torch.multiprocessing
from rivals import TURNS, captured, together, turn

EPSILON = 1e-5
MOST_ROWS = 2048


def norm(residual, weight):
    return torch.nn.functional.rms_norm(residual, (residual.shape[-1],), weight, EPSILON)


class Row:
    """The buffers of one size. `call` makes one call, with the residual as it is."""

    def __init__(self, rows, hidden):
        index = torch.arange(rows * hidden, device="cuda").view(rows, hidden) % 16
        self.x = (index + dist.get_rank()).to(torch.bfloat16)
        self.residual = (index % 5).to(torch.bfloat16)
        self.weight = (1 + torch.arange(hidden, device="cuda") % 3).to(torch.bfloat16)
        ranks = dist.get_world_size()
        self.sum = (index * ranks + ranks * (ranks - 1) // 2 + index % 5).to(torch.bfloat16)
        self.after = torch.empty_like(self.residual)
        self.out = torch.empty_like(self.residual)

    def check(self):
        torch.cuda.synchronize()
        if not torch.equal(self.after, self.sum):
            raise RuntimeError("the residual is wrong")
        torch.testing.assert_close(self.out, norm(self.sum, self.weight), rtol=0.02, atol=0.02)


class TensorRt:
    def __init__(self, hidden):
        import flashinfer.comm as comm
        from flashinfer.comm.mnnvl import TorchDistBackend
        self.comm = comm
        self.workspace = comm.create_allreduce_fusion_workspace(
            backend="trtllm", world_size=dist.get_world_size(), rank=dist.get_rank(),
            max_token_num=MOST_ROWS, hidden_dim=hidden, dtype=torch.bfloat16,
            comm_backend=TorchDistBackend())

    def call(self, row, oneshot):
        self.comm.allreduce_fusion(
            row.x, self.workspace, self.comm.AllReduceFusionPattern.kARResidualRMSNorm,
            residual_in=row.residual, residual_out=row.after, norm_out=row.out,
            rms_gamma=row.weight, rms_eps=EPSILON, use_oneshot=oneshot)


def with_nccl(row):
    row.after.copy_(row.x)
    dist.all_reduce(row.after)
    row.after.add_(row.residual)
    torch.mul(norm(row.after, row.weight), 1, out=row.out)


def times(trt, rows, hidden):
    """A line of the table, of all ranks' times; `trt` is None where TensorRT-LLM does not work."""
    row = Row(rows, hidden)
    line = f"{hidden:>7}{rows:>6}"
    ways = [(10, lambda: trt.call(row, True), trt), (11, lambda: trt.call(row, False), trt),
            (13, lambda: with_nccl(row), True)]
    for width, call, there in ways:
        def prepare(call=call):
            call()
            row.check()
            return captured(None, None, lambda _x, _out: call())
        graph = together(prepare, f"{rows} rows") if there else None
        line += f"{statistics.median(turn(graph) for _ in range(TURNS)):>{width}.2f}" \
            if graph else f"{'-':>{width}}"
    graph = captured(row.x, row.out, lambda x, _out: dist.all_reduce(x))
    return line + f"{statistics.median(turn(graph) for _ in range(TURNS)):>8.2f}"


def measure(rank, ranks, args):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29519")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks,
                            device_id=torch.device("cuda", rank))
    if rank == 0:
        print(f"# {ranks} x {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, us\n"
              f"{'hidden':>7}{'rows':>6}{'one shot':>10}{'two shots':>11}{'NCCL + norm':>13}"
              f"{'NCCL':>8}", flush=True)
    for hidden in args.hidden:
        trt = together(partial(TensorRt, hidden), "TensorRT-LLM")
        rows = 1
        while rows <= MOST_ROWS:
            line = times(trt, rows, hidden)
            if rank == 0:
                print(line, flush=True)
            rows *= 2 if args.all else 4
    dist.barrier()
    os._exit(0)  # do not wait for destructors of the rival's memory


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", type=int, nargs="*", default=[4096, 8192])
    parser.add_argument("--all", action="store_true", help="also the sizes between")
    args = parser.parse_args()
    ranks = torch.cuda.device_count()
    if ranks < 2:
        sys.exit("rms_norm_rivals.py: this needs two GPUs or more")
    torch.multiprocessing.spawn(measure, (ranks, args), nprocs=ranks)


if __name__ == "__main__":
    main()
