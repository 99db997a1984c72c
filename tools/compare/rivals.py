#!/usr/bin/env python3
"""rivals.py [--ours FILE] [--most BYTES]: times other libraries' small AllReduces, on all GPUs.

The rivals: NCCL as PyTorch calls it; PyTorch's symmetric memory (one and two shots); and, through
flashinfer-python, which compiles them first, the kernels of vLLM and of TensorRT-LLM (one and two
shots). None uses NVLink multicast. bfloat16, sum. A time is one call's on the slowest rank, in us,
with 20 calls in a CUDA graph: the median of 9 turns. Results are checked first. FILE is the JSON of
`06_allreduce_bench -d bfloat16 -G 1 --json FILE` on the same machine: it adds columns for our time
and for the best of theirs divided by ours. A rival that fails is skipped; stderr has the reason.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import traceback

os.environ["NCCL_NVLS_ENABLE"] = "0"
os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] = "1"

import torch
import torch.distributed as dist
import torch.multiprocessing

CALLS, TURNS = 20, 9


class Torch:
    """PyTorch's own AllReduces: the input lies in symmetric memory."""

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
    """Rows of at most 4096 elements, like a model's hidden state."""

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
    """Checks one call. Inputs are unique to rank and index; their sums are exact."""
    index = torch.arange(x.numel(), device="cuda") % 16
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
    graph.replay()  # synchronizes the ranks
    begin.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return slowest(begin.elapsed_time(end) * 1000 / CALLS)


def together(action, name):
    """The result of `action`, or None if it fails on any rank."""
    result, error = None, ""
    try:
        result = action()
        torch.cuda.synchronize()
    except Exception:  # skip the rival, whatever it throws
        error = traceback.format_exc(limit=-1).strip().replace("\n", " ")
    if slowest(1.0 if error else 0.0) == 0:
        return result
    if error:
        print(f"# skipping {name}: {error[-300:]}", file=sys.stderr, flush=True)
    return None


def our_times(path):
    if not path:
        return {}
    with open(path) as file:
        rows = json.load(file)["benchmarks"]
    return {int(row["bytes"]): row["out_us"] for row in rows if "out_us" in row}


def sizes(args):
    size = 1024
    while size <= args.most:
        yield size
        size *= 4 if args.fast else 2


def measure(rank, ranks, args):
    """Runs one rank of one rival. Rank 0 prints a line of JSON per time."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks,
                            device_id=torch.device("cuda", rank))
    kind = KINDS[args.rival]
    rival = together(lambda: kind(args.most // 2, dist.group.WORLD), args.rival)
    for name, make in rival.candidates() if rival else ():
        for size in sizes(args):
            def prepare(make=make, size=size):
                x, checked, call = make(size // 2)
                out = torch.empty_like(x)
                check(x, out, checked)
                return captured(x, out, call), x, out
            made = together(prepare, f"{name} at {size}")
            if made is None:
                continue
            time = statistics.median(turn(made[0]) for _ in range(TURNS))
            if rank == 0:
                print(json.dumps([name, size, time]), flush=True)
    dist.barrier()
    os._exit(0)  # do not wait for destructors of the rival's memory


KINDS = {"NCCL": Nccl, "PyTorch": Torch, "vLLM": Vllm, "TensorRT-LLM": TensorRt}


def measured(rival, args):
    """The times of one rival, in its own processes: its failure harms no other."""
    command = [sys.executable, __file__, "--rival", rival, "--most", str(args.most)]
    try:
        run = subprocess.run(command + ["--fast"] * args.fast, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=args.seconds)
        output, errors, status = run.stdout, run.stderr, run.returncode
    except subprocess.TimeoutExpired as late:
        output, errors, status = (late.stdout or b"").decode(), "took too long", 1
    if status != 0:
        errors = "\n".join(errors.strip().splitlines()[-3:])
    if errors:
        print(f"# {rival}: {errors[-600:]}", file=sys.stderr, flush=True)
    return [json.loads(line) for line in output.splitlines() if line.startswith("[")]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", metavar="FILE")
    parser.add_argument("--most", metavar="BYTES", type=int, default=8 << 20)
    parser.add_argument("--fast", action="store_true", help="every other size")
    parser.add_argument("--seconds", type=int, default=300, help="the limit for each rival")
    parser.add_argument("--rival", choices=KINDS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would lose exit statuses
    ranks = torch.cuda.device_count()
    if ranks < 2:
        sys.exit("rivals.py: this needs two GPUs or more")
    if args.rival:
        torch.multiprocessing.spawn(measure, (ranks, args), nprocs=ranks)
        return
    ours = our_times(args.ours)
    times = {}
    for rival in KINDS:
        for name, size, time in measured(rival, args):
            times.setdefault(name, {})[size] = time
    print(f"# {ranks} x {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, NCCL "
          f"{'.'.join(map(str, torch.cuda.nccl.version()))}, bfloat16, sum, us")
    print(f"{'bytes':>9}" + "".join(f"{name:>11}" for name in times) + f"{'ours':>9}{'ratio':>7}")
    for size in sizes(args):
        of_size = [found.get(size) for found in times.values()]
        line = f"{size:>9}" + "".join(f"{'-':>11}" if time is None else f"{time:>11.2f}"
                                      for time in of_size)
        known = [time for time in of_size if time is not None]
        if size in ours and known:
            line += f"{ours[size]:>9.2f}{min(known) / ours[size]:>7.2f}"
        print(line)


if __name__ == "__main__":
    main()
