"""Tests of symm.torch on a machine with one GPU (or more): two ranks, processes, share it.

usage: gpu_torch.py [operators] [gradients] [layers] [compiled] [graphs]

Without arguments all cases run. Exit status: 0 if all is right. Where GPUs are emulated, tensors
are in host memory, and nothing is captured in graphs."""

import os

import torch_checks  # first, since it turns off a cache
import symm.torch
import torch
from processes import chosen, spawn
from symm.torch._groups import registered
from torch import Tensor

RANKS = 2
REPLAYS = 200


def changes(x: Tensor, window: Tensor, residual: Tensor, weight: Tensor, group: str) -> Tensor:
    """One operator of each kind: with a result of its own, in place, fused."""
    summed = symm.torch.all_reduce(x, group)
    symm.torch.all_reduce_(window.copy_(summed), group)
    return symm.torch.all_reduce_rms_norm(x, residual, weight, group) + window


def changes_nothing(x: Tensor, weight: Tensor, group: str) -> Tensor:
    """PyTorch makes graphs of functions whose arguments do not change."""
    residual = x * 2
    out = symm.torch.all_reduce_rms_norm(x, residual, weight, group)
    return symm.torch.all_reduce(out, group) + residual


def graphs(group: str, device: str):
    """Replays of a graph captured by hand, and of one by torch.compile, against eager calls."""
    communicator = registered(group)
    rank, shape = communicator.rank, (3, 1024)
    window = torch.as_tensor(communicator.empty(shape))
    weight = torch_checks.values(1, shape[1:], torch.float32, device)
    residual = torch.zeros(shape, device=device)
    xs = [torch_checks.values(7 * turn + rank, shape, torch.float32, device)
          for turn in range(REPLAYS)]
    with torch.no_grad():
        expected = [changes(x, window, residual, weight, group) for x in xs]
        end = residual.clone()
        if symm.is_emulated():
            return
        x, graph = xs[0].clone(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = changes(x, window, residual, weight, group)
        residual.zero_()
        for turn in range(REPLAYS):
            x.copy_(xs[turn])
            graph.replay()
            torch_checks.expect(out, expected[turn])
        torch_checks.expect(residual, end)

        expected = [changes_nothing(x, weight, group) for x in xs]
        compiled = torch.compile(changes_nothing, fullgraph=True, mode="reduce-overhead")
        for turn in range(REPLAYS):
            torch_checks.expect(compiled(xs[turn], weight, group), expected[turn])


CASES = {check.__name__: check for check in (torch_checks.operators, torch_checks.gradients,
                                             torch_checks.layers, torch_checks.compiled, graphs)}


def run_rank(rank: int, name: str, case: str):
    device = "cpu" if symm.is_emulated() else f"cuda:{rank % torch.cuda.device_count()}"
    if device != "cpu":
        torch.cuda.set_device(device)
    torch.backends.cuda.matmul.allow_tf32 = False  # for exact results
    with symm.Communicator(rank, RANKS, name, device=torch.device(device).index) as communicator:
        CASES[case](symm.torch.register(communicator, "both"), device)
        communicator.synchronize()


def main():
    for name in chosen(__doc__, CASES):
        spawn(run_rank, [(rank, f"gpu_torch {os.getpid()} {name}", name) for rank in range(RANKS)])
        print(f"{name}: right", flush=True)


if __name__ == "__main__":
    main()
