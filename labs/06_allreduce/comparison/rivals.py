#!/usr/bin/env python3
"""rivals.py [--ours FILE] [--most BYTES]: times what people use for small AllReduces, on all GPUs.

PyTorch's symmetric memory (one and two shots), and FlashInfer's kernels of TensorRT-LLM and of vLLM
where flashinfer-python is installed; NCCL as PyTorch calls it. None of them by NVLink multicast.
bfloat16, sum. A time is that of one call of 20 in a CUDA graph on the slowest rank, in us: the
median of 9 turns, which the candidates take in turn. Results are checked before. FILE is the JSON
of `06_allreduce_bench -d bfloat16 -G 1 --json FILE` on the same machine: then the last columns are
our time and the best of theirs divided by it.
"""

import argparse
import json
import os
import statistics
import sys
import traceback

os.environ["NCCL_NVLS_ENABLE"] = "0"
os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] = "1"

import torch
import torch.distributed as dist
import torch.multiprocessing

CALLS, TURNS = 20, 9


class Torch:
    """PyTorch's own: the input lies in symmetric memory."""

    def __init__(self, most, group):
        import torch.distributed._symmetric_memory as symmetric
        self.group = group.group_name
        self.memory = symmetric.empty(most, dtype=torch.bfloat16, device="cuda")
        symmetric.rendezvous(self.memory, self.group)

    def candidates(self):
        ops = torch.ops.symm_mem
        yield "torch 1", lambda count: (
            self.memory[:count],
            lambda x, out: out.copy_(ops.one_shot_all_reduce(x, "sum", self.group)),
            lambda x, out: ops.one_shot_all_reduce(x, "sum", self.group))
        yield "torch 2", lambda count: (
            self.memory[:count],
            lambda x, out: out.copy_(ops.two_shot_all_reduce_(x, "sum", self.group)),
            lambda x, out: ops.two_shot_all_reduce_(x, "sum", self.group))


class Nccl:
    def __init__(self, most, _group):
        self.memory = torch.empty(most, dtype=torch.bfloat16, device="cuda")

    def candidates(self):
        yield "NCCL", lambda count: (self.memory[:count],
                                     lambda x, out: dist.all_reduce(out.copy_(x)),
                                     lambda x, out: dist.all_reduce(x))


class TensorRt:
    """Rows of at most 4096 elements, as of a model's hidden state."""

    def __init__(self, most, _group):
        import flashinfer.comm as comm
        from flashinfer.comm.mnnvl import TorchDistBackend
        self.comm = comm
        self.workspace = comm.create_allreduce_fusion_workspace(
            backend="trtllm", world_size=dist.get_world_size(), rank=dist.get_rank(),
            max_token_num=max(most // 4096, 1), hidden_dim=4096, dtype=torch.bfloat16,
            comm_backend=TorchDistBackend())
        self.memory = torch.empty(most, dtype=torch.bfloat16, device="cuda")

    def call(self, x, out, oneshot):
        width = min(x.numel(), 4096)
        self.comm.allreduce_fusion(
            x.view(-1, width), self.workspace, self.comm.AllReduceFusionPattern.kAllReduce,
            output=out.view(-1, width), use_oneshot=oneshot)

    def candidates(self):
        for name, oneshot in [("TRT-LLM 1", True), ("TRT-LLM 2", False)]:
            def make(count, oneshot=oneshot):
                def call(x, out):
                    self.call(x, out, oneshot)
                return self.memory[:count], call, call
            yield name, make


class Vllm:
    """Copies the input into a buffer that all ranks have registered."""

    def __init__(self, most, group):
        import flashinfer.comm as comm
        self.comm = comm
        self.bytes = 2 * most
        self.meta = comm.create_shared_buffer(comm.vllm_meta_size() + self.bytes, group)
        self.buffers = comm.create_shared_buffer(self.bytes, group)
        self.data = torch.empty(8 << 20, dtype=torch.uint8, device="cuda")
        self.handle = comm.vllm_init_custom_ar(self.meta, self.data, dist.get_rank(), True)
        comm.vllm_register_buffer(self.handle, self.buffers)
        self.memory = torch.empty(most, dtype=torch.bfloat16, device="cuda")

    def candidates(self):
        def call(x, out):
            self.comm.vllm_all_reduce(self.handle, x, out, self.buffers[dist.get_rank()],
                                      self.bytes, 36)
        yield "vLLM", lambda count: (self.memory[:count], call, call)


def check(x, out, call):
    """One call of numbers that tell rank and index; their sums are exact."""
    index = torch.arange(x.numel(), device="cuda") % 100
    x.copy_(index + dist.get_rank())
    out.fill_(-1)
    call(x, out)
    ranks = dist.get_world_size()
    expected = (index * ranks + ranks * (ranks - 1) // 2).to(torch.bfloat16)
    if not torch.equal(out, expected):
        raise RuntimeError("the result is wrong")
    x.zero_()


def captured(x, out, call):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call(x, out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call(x, out)
    return graph


def slowest(value):
    worst = torch.tensor([value], device="cuda", dtype=torch.float64)
    dist.all_reduce(worst, op=dist.ReduceOp.MAX)
    return worst.item()


def turn(graph):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    dist.barrier()
    graph.replay()  # the ranks meet in it
    begin.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return slowest(begin.elapsed_time(end) * 1000 / CALLS)


def together(action, name):
    """What `action` returns; nothing where it fails on some rank."""
    result, error = None, ""
    try:
        result = action()
        torch.cuda.synchronize()
    except Exception:  # whatever a rival throws: it is left out
        error = traceback.format_exc(limit=-1).strip().replace("\n", " ")
    if slowest(1.0 if error else 0.0) == 0:
        return result
    if error:
        print(f"# without {name}: {error[-300:]}", file=sys.stderr, flush=True)
    return None


def our_times(path):
    if not path:
        return {}
    with open(path) as file:
        rows = json.load(file)["benchmarks"]
    return {int(row["bytes"]): row["out_us"] for row in rows if "out_us" in row}


def rank_main(rank, ranks, args):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", RANK=str(rank),
                      WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks,
                            device_id=torch.device("cuda", rank))
    say = print if rank == 0 else lambda *_, **__: None
    rivals = []
    for kind in (Nccl, Torch, TensorRt, Vllm):
        made = together(lambda kind=kind: kind(args.most // 2, dist.group.WORLD), kind.__name__)
        if made is not None:
            rivals.extend(made.candidates())
    ours = our_times(args.ours)
    say(f"# {ranks} x {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, NCCL "
        f"{'.'.join(map(str, torch.cuda.nccl.version()))}, bfloat16, sum, us in a graph of {CALLS}")
    say(f"{'bytes':>9}" + "".join(f"{name:>11}" for name, _ in rivals) + f"{'ours':>9}{'ratio':>7}",
        flush=True)
    size = 1024
    while size <= args.most:
        graphs, times = {}, {}
        for name, make in rivals:
            def prepare(make=make):
                x, checked, call = make(size // 2)
                out = torch.empty_like(x)
                check(x, out, checked)
                return captured(x, out, call), x, out
            made = together(prepare, f"{name} at {size}")
            if made is not None:
                graphs[name] = made
        for _ in range(TURNS):
            for name, (graph, *_) in graphs.items():
                times.setdefault(name, []).append(turn(graph))
        best = {name: statistics.median(values) for name, values in times.items()}
        line = f"{size:>9}" + "".join(f"{best[name]:>11.2f}" if name in best else f"{'-':>11}"
                                      for name, _ in rivals)
        if size in ours and best:
            line += f"{ours[size]:>9.2f}{min(best.values()) / ours[size]:>7.2f}"
        say(line, flush=True)
        size *= 4 if args.fast else 2
    dist.barrier()
    os._exit(0)  # destructors of the rivals' memory need no waiting for


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", metavar="FILE")
    parser.add_argument("--most", metavar="BYTES", type=int, default=8 << 20)
    parser.add_argument("--fast", action="store_true", help="every other size")
    args = parser.parse_args()
    ranks = torch.cuda.device_count()
    if ranks < 2:
        sys.exit("rivals.py: this needs two GPUs or more")
    torch.multiprocessing.spawn(rank_main, (ranks, args), nprocs=ranks)


if __name__ == "__main__":
    main()
