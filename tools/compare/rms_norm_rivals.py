#!/usr/bin/env python3
"""rms_norm_rivals.py [--hidden N]... [--rows N]...: times AllReduces with RMSNorm, on all GPUs.

Ours, that of the Python package symm; TensorRT-LLM's kernels in one and two shots, through
flashinfer-python, which compiles them first, also as dependent launches ("dep.", launch_with_pdl);
and NCCL's AllReduce with PyTorch's sum and RMSNorm behind it. bfloat16, without NVLink multicast.
A time is one call's on the slowest rank, in us, with 20 calls in a CUDA graph: the median of 9
turns, in which all ways alternate. Results are checked first. The ratio is the best of theirs
divided by ours. A way that fails is skipped; stderr has the reason."""

import argparse
import collections
import os
import statistics
import sys
from functools import partial

import torch
import torch.distributed as dist
import torch.multiprocessing
from rivals import OURS, TURNS, captured, together, turn

EPSILON = 1e-5
ROWS = {4096: (1, 4, 16, 64, 128, 256, 512), 8192: (1, 4, 16, 64, 128, 256, 512), 6144: (6, 138)}


def norm(residual, weight):
    return torch.nn.functional.rms_norm(residual, (residual.shape[-1],), weight, EPSILON)


class Row:
    """The buffers of one size. `residual` is read, and `after` written; ours writes `residual`."""

    def __init__(self, rows, hidden, empty):
        index = torch.arange(rows * hidden, device="cuda").view(rows, hidden) % 16
        self.x, self.residual = (empty((rows, hidden), dtype=torch.bfloat16) for _ in range(2))
        self.x.copy_(index + dist.get_rank())
        self.residual.copy_(index % 5)
        self.weight = (1 + torch.arange(hidden, device="cuda") % 3).to(torch.bfloat16)
        ranks = dist.get_world_size()
        self.sum = (index * ranks + ranks * (ranks - 1) // 2 + index % 5).to(torch.bfloat16)
        self.after = torch.empty_like(self.sum)
        self.out = torch.empty_like(self.sum)

    def check(self, after):
        """Checks a call; later ones, in which x is 0, leave the residual as it is."""
        torch.cuda.synchronize()
        if not torch.equal(after, self.sum):
            raise RuntimeError("the residual is wrong")
        torch.testing.assert_close(self.out, norm(self.sum, self.weight), rtol=0.02, atol=0.02)
        dist.barrier()
        self.x.zero_()


class TensorRt:
    def __init__(self, hidden, most_rows):
        import flashinfer.comm as comm
        from flashinfer.comm.mnnvl import TorchDistBackend
        self.comm = comm
        self.workspace = comm.create_allreduce_fusion_workspace(
            backend="trtllm", world_size=dist.get_world_size(), rank=dist.get_rank(),
            max_token_num=most_rows, hidden_dim=hidden, dtype=torch.bfloat16,
            comm_backend=TorchDistBackend())

    def call(self, row, oneshot, dependent):
        self.comm.allreduce_fusion(
            row.x, self.workspace, self.comm.AllReduceFusionPattern.kARResidualRMSNorm,
            residual_in=row.residual, residual_out=row.after, norm_out=row.out,
            rms_gamma=row.weight, rms_eps=EPSILON, use_oneshot=oneshot,
            launch_with_pdl=dependent)


def with_nccl(row):
    row.after.copy_(row.x)
    dist.all_reduce(row.after)
    row.after.add_(row.residual)
    torch.mul(norm(row.after, row.weight), 1, out=row.out)


def times(trt, communicator, rows, hidden):
    """Each way's median; `trt` is None where TensorRT-LLM does not work."""
    def ours(row):
        communicator.all_reduce_rms_norm(row.x, row.residual, row.weight, row.out, EPSILON)

    ways = {"NCCL + norm": with_nccl, OURS: ours}
    if trt:
        for shots in (1, 2):
            ways[f"TRT-LLM {shots}"] = partial(trt.call, oneshot=shots == 1, dependent=False)
            ways[f"TRT-LLM {shots} dep."] = partial(trt.call, oneshot=shots == 1, dependent=True)
    graphs, kept = {}, []
    for name, call in ways.items():
        def prepare(call=call, name=name):
            row = Row(rows, hidden, communicator.empty if name == OURS else
                      partial(torch.empty, device="cuda"))
            kept.append(row)
            call(row)
            row.check(row.residual if name == OURS else row.after)
            return captured(lambda: call(row))
        graphs[name] = together(prepare, f"{name}, {rows} rows")
    found = collections.defaultdict(list)
    for _ in range(TURNS):
        for name, graph in graphs.items():
            if graph:
                found[name].append(turn(graph))
    return {name: statistics.median(some) for name, some in found.items()}


def measure(rank, ranks, args):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29519")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks,
                            device_id=torch.device("cuda", rank))
    import symm
    communicator = symm.Communicator.from_torch()
    columns = ["TRT-LLM 1", "TRT-LLM 1 dep.", "TRT-LLM 2", "TRT-LLM 2 dep.", "NCCL + norm", OURS]
    if rank == 0:
        print(f"# {ranks} x {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, us\n"
              f"{'hidden':>7}{'rows':>6}" + "".join(f"{name:>15}" for name in columns) +
              f"{'ratio':>7}", flush=True)
    for hidden in args.hidden or ROWS:
        all_rows = args.rows or ROWS.get(hidden, ROWS[4096])
        trt = together(partial(TensorRt, hidden, max(all_rows)), "TensorRT-LLM")
        for rows in all_rows:
            found = times(trt, communicator, rows, hidden)
            if rank == 0:
                line = f"{hidden:>7}{rows:>6}" + "".join(
                    f"{found[name]:>15.2f}" if name in found else f"{'-':>15}" for name in columns)
                best = min(time for name, time in found.items() if name != OURS)
                print(f"{line}{best / found[OURS]:>7.2f}", flush=True)
    dist.barrier()
    os._exit(0)  # do not wait for destructors of the rival's memory


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", type=int, nargs="*", help="4096, 8192 and 6144")
    parser.add_argument("--rows", type=int, nargs="*", help="1 to 512; 6 and 138 of 6144")
    args = parser.parse_args()
    ranks = torch.cuda.device_count()
    if ranks < 2:
        sys.exit("rms_norm_rivals.py: this needs two GPUs or more")
    torch.multiprocessing.spawn(measure, (ranks, args), nprocs=ranks)


if __name__ == "__main__":
    main()
