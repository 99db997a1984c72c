#!/usr/bin/env python3
"""rivals.py [--most BYTES] [--only RIVAL...] [--between]: times small AllReduces of other libraries
and ours, on all GPUs. Ours is that of the Python package symm.

The rivals: NCCL as PyTorch calls it; PyTorch's symmetric memory (one and two shots); and, through
flashinfer-python, which compiles them first, the kernels of vLLM and of TensorRT-LLM (one and two
shots), the latter also as dependent launches ("dep.", launch_with_pdl). None uses NVLink multicast.
A time is one call's on the slowest rank, in us, with 20 calls in a CUDA graph: the median of 9
turns, in which the calls of a rival and ours alternate. Results are checked first. The ratio is
the best of theirs divided by ours beside it. A rival that fails is skipped; stderr has the reason.
With --between a matrix is multiplied after each call, and its own time subtracted."""

import argparse
import collections
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

CALLS, TURNS, OURS = 20, 9, "ours"


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

    def call(self, x, out, oneshot, dependent):
        width = min(x.numel(), 4096)
        self.comm.allreduce_fusion(
            x.view(-1, width), self.workspace, self.comm.AllReduceFusionPattern.kAllReduce,
            output=out.view(-1, width), use_oneshot=oneshot, launch_with_pdl=dependent)

    def candidates(self):
        for shots, oneshot in ((1, True), (2, False)):
            for name, dependent in ((f"TRT-LLM {shots}", False), (f"TRT-LLM {shots} dep.", True)):
                def make(count, oneshot=oneshot, dependent=dependent):
                    def call(x, out):
                        self.call(x, out, oneshot, dependent)
                    return self.memory[:count], call, call
                yield name, make


class Ours:
    def __init__(self, most, group):
        import symm
        self.communicator = symm.Communicator.from_torch(group)
        self.memory = self.communicator.empty((most,), torch.bfloat16)

    def candidates(self):
        yield OURS, lambda count: (self.memory[:count], self.communicator.all_reduce,
                                   self.communicator.all_reduce)


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


def captured(call):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    return graph


def multiplication():
    """As of a decoding step: 16 rows of 4096."""
    a, b = (torch.randn(rows, 4096, device="cuda", dtype=torch.bfloat16) for rows in (16, 4096))
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)


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
    between = multiplication() if args.between else None
    made = [together(lambda kind=kind: kind(args.most // 2, dist.group.WORLD), kind.__name__)
            for kind in (KINDS[args.rival], Ours)]
    candidates = [pair for kind in made if kind for pair in kind.candidates()]
    for size in sizes(args):
        graphs, kept = {}, []
        for name, make in candidates:
            def prepare(make=make, size=size, kept=kept):
                x, checked, call = make(size // 2)
                out = torch.empty_like(x)
                check(x, out, checked)
                kept.append((x, out))

                def step():
                    call(x, out)
                    if between:
                        between()
                return captured(step)
            graphs[name] = together(prepare, f"{name} at {size}")
        graphs = {name: graph for name, graph in graphs.items() if graph}
        if between:
            graphs[""] = captured(between)
        times = collections.defaultdict(list)
        for _ in range(TURNS):
            for name, graph in graphs.items():
                times[name].append(turn(graph))
        alone = statistics.median(times.pop("", [0]))
        for name, found in times.items():
            if rank == 0:
                print(json.dumps([name, size, statistics.median(found) - alone]), flush=True)
    dist.barrier()
    os._exit(0)  # do not wait for destructors of the rival's memory


KINDS = {"NCCL": Nccl, "PyTorch": Torch, "vLLM": Vllm, "TensorRT-LLM": TensorRt}


def measured(rival, args):
    """The times of one rival, in its own processes: its failure harms no other."""
    command = [sys.executable, __file__, "--rival", rival, "--most", str(args.most),
               *["--fast"] * args.fast, *["--between"] * args.between]
    try:
        run = subprocess.run(command, stdout=subprocess.PIPE,
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
    parser.add_argument("--between", action="store_true")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
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
    times, beside = {}, {}
    for rival in args.only:
        found = collections.defaultdict(dict)
        for name, size, time in measured(rival, args):
            found[name][size] = time
        ours = found.pop(OURS, {})
        times |= found
        beside |= {name: ours for name in found}
    print(f"# {ranks} x {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, NCCL "
          f"{'.'.join(map(str, torch.cuda.nccl.version()))}, bfloat16, sum, us")
    print(f"{'bytes':>9}" + "".join(f"{name:>15}" for name in times) + f"{'ours':>9}{'ratio':>7}")
    for size in sizes(args):
        line = f"{size:>9}" + "".join(f"{found[size]:>15.2f}" if size in found else f"{'-':>15}"
                                      for found in times.values())
        pairs = [(times[name][size], beside[name][size]) for name in times
                 if size in times[name] and size in beside[name]]
        if pairs:
            best, ours = min(pairs)
            line += f"{ours:>9.2f}{best / ours:>7.2f}"
        print(line)


if __name__ == "__main__":
    main()
