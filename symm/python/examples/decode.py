"""Decodes with a small transformer that the ranks share, and times the ways to sum their parts.

    torchrun --nproc-per-node 2 decode.py --layers 16 --hidden 4096

Weights are random. First, in float32, all ways have to find the tokens of a transformer on one
rank. Then each step of a way is one CUDA graph, in --dtype. NCCL takes no part if ranks share a
GPU. Where GPUs are emulated, tensors are in host memory, there are no graphs, gloo takes NCCL's
place, and times mean nothing."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial

import symm.torch
import torch
import torch.distributed as distributed
from torch import Tensor, nn
from transformer import EPSILON, AddNorm, Transformer, share

FIRST_TOKENS = 1000, 77, 4099, 5


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--tokens", type=int, default=64, help="of each sequence")
    parser.add_argument("--sequences", type=int, default=1, choices=range(1, 5))
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float16", "float32"))
    parser.add_argument("--compile", action="store_true", help="run torch.compile(fullgraph=True)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


class Decoder:
    """A transformer and the state of its sequences, in tensors that a graph can change."""

    def __init__(self, model: Transformer, how: argparse.Namespace, device: str):
        self.model, self.how = model, how
        self.token = torch.empty(how.sequences, dtype=torch.long, device=device)
        self.position = torch.empty(1, dtype=torch.long, device=device)
        self.tokens = torch.empty(how.tokens, how.sequences, dtype=torch.long, device=device)
        self.first = torch.tensor(FIRST_TOKENS[:how.sequences], device=device)
        model.forget(how.sequences, how.tokens)
        self.next_of = torch.compile(model, fullgraph=True) if how.compile else model
        self.start()
        if device == "cpu":
            self.step()  # compiles
            self.run_step = self.step
        else:
            self.run_step = self.graph().replay

    def start(self):
        self.token.copy_(self.first)
        self.position.zero_()
        self.tokens.fill_(-1)

    def step(self):
        self.token.copy_(self.next_of(self.token, self.position))
        self.tokens.index_copy_(0, self.position, self.token[None])
        self.position += 1

    def graph(self) -> torch.cuda.CUDAGraph:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # compiles, and loads what graphs cannot
            self.step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        return graph

    def run(self) -> Tensor:
        """The sequences' tokens."""
        self.start()
        for _ in range(self.how.tokens):
            self.run_step()
        return self.tokens.cpu()  # waits

    def time(self, runs: int = 7) -> float:
        """Microseconds per token, the median of some runs."""
        times = []
        for _ in range(runs):
            distributed.barrier()
            start = time.perf_counter()
            self.run()
            times.append(time.perf_counter() - start)
        return sorted(times)[runs // 2] / self.how.tokens * 1e6


def ways_to_sum(hidden: int, group: str, shares_gpu: bool) -> dict[str, Callable[[], nn.Module]]:
    ours = partial(symm.torch.all_reduce_, group=group)
    ways = {} if shares_gpu else {
        distributed.get_backend(): lambda: AddNorm(hidden, distributed.all_reduce)}
    return {**ways, "symm": lambda: AddNorm(hidden, ours),
            "symm, fused": lambda: symm.torch.AllReduceRMSNorm(hidden, group, EPSILON)}


def measure(communicator: symm.Communicator, how: argparse.Namespace, device: str,
            shares_gpu: bool) -> list[dict]:
    group = symm.torch.register(communicator, "decode")
    torch.manual_seed(1)
    with torch.device(device):
        whole = Transformer(how.layers, how.hidden)
        ways = ways_to_sum(how.hidden, group, shares_gpu)
        expected = Decoder(whole, how, device).run()
        rows = []
        for name, add_norm in ways.items():
            found = Decoder(share(whole, group, add_norm), how, device).run()
            rows.append({"sum": name, "tokens_equal": torch.equal(found, expected)})
        whole.to(getattr(torch, how.dtype))
        for row in rows:
            decoder = Decoder(share(whole, group, ways[row["sum"]]), how, device)
            row["microseconds_per_token"] = round(decoder.time(), 1)
    communicator.synchronize()  # raises if a call has no result
    return rows


def main() -> int:
    how = arguments()
    rank, ranks = int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"])
    device, gpus = "cpu", torch.cuda.device_count()
    if not symm.is_emulated():
        device = f"cuda:{rank % gpus}"
        torch.cuda.set_device(device)
    shares_gpu = device != "cpu" and gpus < ranks
    distributed.init_process_group("gloo" if device == "cpu" or shares_gpu else "nccl")
    with symm.Communicator.from_torch() as communicator, torch.no_grad():
        rows = measure(communicator, how, device, shares_gpu)
    distributed.destroy_process_group()
    where = "emulated GPUs" if device == "cpu" else torch.cuda.get_device_name()
    if rank == 0 and how.json:
        print(json.dumps({"ranks": ranks, "device": where, "share_a_gpu": shares_gpu,
                          "pytorch": torch.__version__, **vars(how), "rows": rows}))
    elif rank == 0:
        print(f"{ranks} ranks on {where}{', which they share' * shares_gpu}, {how.layers} layers "
              f"of {how.hidden}, {how.sequences} x {how.tokens} tokens, {how.dtype}\n")
        print(f"{'sum by':<12} {'us per token':>12}   tokens in float32")
        for row in rows:
            print(f"{row['sum']:<12} {row['microseconds_per_token']:>12.1f}   "
                  f"{'as on one rank' if row['tokens_equal'] else 'WRONG'}")
    return int(not all(row["tokens_equal"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
