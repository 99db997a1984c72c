"""Checks of symm.torch against PyTorch's arithmetic on one rank: torch_test.py runs them on
emulated GPUs, gpu_torch.py on real ones. Each is called by all ranks, with the name of the rank's
communicator."""

import os

# A cached program may be one of an operator that was defined otherwise.
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"

import symm.torch
import torch
from symm.torch._groups import registered
from torch import Tensor, nn
from torch.nn import functional

ROWS, HIDDEN = 3, 520

#: An operator, its further arguments, and its results on all ranks from the inputs of all.
COLLECTIVES = [
    ("all_reduce", ("sum",), lambda xs: [sum(xs)] * len(xs)),
    ("all_reduce", ("avg",), lambda xs: [sum(xs) / len(xs)] * len(xs)),
    ("reduce_scatter", ("sum",), lambda xs: sum(xs).chunk(len(xs))),
    ("reduce_scatter", ("avg",), lambda xs: (sum(xs) / len(xs)).chunk(len(xs))),
    ("all_gather", (), lambda xs: [torch.cat(xs)] * len(xs)),
    ("broadcast", (1,), lambda xs: [xs[1]] * len(xs)),
    ("reduce", ("sum", 1), lambda xs: [sum(xs) * (rank == 1) for rank in range(len(xs))]),
    ("reduce", ("avg", 0), lambda xs: [sum(xs) / len(xs) * (rank == 0)
                                       for rank in range(len(xs))]),
]
#: These have no gradient.
MORE = [("all_reduce", (op,), lambda xs, op=op: [getattr(torch, f"a{op}")(torch.stack(xs), 0)]
         * len(xs)) for op in ("max", "min")]


def values(seed: int, shape: tuple, dtype: torch.dtype, device: str) -> Tensor:
    """Multiples of 12, so that sums are exact in any type, and averages of 2 to 4 ranks, too."""
    generator = torch.Generator().manual_seed(seed)
    return 12 * torch.randint(-4, 5, shape, generator=generator).to(device, dtype)


def expect(found: Tensor, expected: Tensor, tolerance: float = 0):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def operators(group: str, device: str):
    """Results, of views too, that are the same when the call is repeated, and leave the input."""
    rank, ranks = registered(group).rank, registered(group).ranks
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int32):
        for shape in ((ranks,), (2 * ranks, 37)):
            xs = [values(r, shape, dtype, device) for r in range(ranks)]
            views = xs[rank], xs[rank].mT.contiguous().mT if len(shape) > 1 else xs[rank]
            for name, how, results in COLLECTIVES + MORE:
                for x in views * 2:
                    found = getattr(symm.torch, name)(x, group, *how)
                    expect(found, results(xs)[rank].to(dtype))
                    expect(x, xs[rank])
            x = xs[rank].clone()
            version = x._version
            symm.torch.all_reduce_(x, group)
            expect(x, sum(xs))
            assert x._version > version  # by which autograd finds that a saved tensor has changed


    xs = [values(r, (3, 512), torch.float32, device) for r in range(ranks)]
    weight, bias, scale = (values(r, (n,), torch.float32, device) for r, n in
                           ((7, 512), (8, 512), (9, 1)))
    found = symm.torch.all_reduce_rms_norm(xs[rank], None, weight, group, 1e-5, 1.0, bias, scale)
    assert found.dtype == torch.float8_e4m3fn
    exact = (functional.rms_norm(sum(xs), (512,), None, 1e-5) * (weight + 1) + bias) / scale
    torch.testing.assert_close(found.float(), exact.clamp(-448, 448), rtol=0.0626, atol=2**-9)


def gradients(group: str, device: str):
    """First and second derivatives of the sum of all ranks' losses, as PyTorch finds them on one
    rank that has all inputs."""
    rank, ranks = registered(group).rank, registered(group).ranks

    def of(x: Tensor) -> tuple:
        return (x ** 2 + x).mT  # its gradient depends on x, and is not contiguous

    for name, how, results in COLLECTIVES:
        shape = (2 * ranks, 3)
        xs = [values(r, shape, torch.float64, device).requires_grad_() for r in range(ranks)]
        outs = [of(out) for out in results(xs)]
        weights = [values(9 + r, outs[r].shape, torch.float64, device) for r in range(ranks)]
        loss = sum((w * out).sum() for w, out in zip(weights, outs, strict=True))
        first = torch.autograd.grad(loss, xs, create_graph=True, materialize_grads=True)
        loss = sum((values(20 + r, shape, torch.float64, device) * g).sum()
                   for r, g in enumerate(first))
        second = torch.autograd.grad(loss, xs, materialize_grads=True)

        x = values(rank, shape, torch.float64, device).requires_grad_()
        out = getattr(symm.torch, name)(x, group, *how)
        found, = torch.autograd.grad((weights[rank] * of(out)).sum(), x, create_graph=True)
        expect(found, first[rank], 1e-12)
        found, = torch.autograd.grad(
            (values(20 + rank, shape, torch.float64, device) * found).sum(), x)
        expect(found, second[rank], 1e-12)


class Whole(nn.Module):
    """A layer of two matrices and a norm, as one rank computes it."""

    def __init__(self, ranks: int, device: str, bias: bool):
        super().__init__()
        self.up = nn.Linear(HIDDEN, 8 * ranks, bias, device)
        self.down = nn.Linear(8 * ranks, HIDDEN, bias, device)
        self.norm = nn.Parameter(torch.empty(HIDDEN, device=device))
        for seed, parameter in enumerate(self.parameters()):
            parameter.data = values(seed, parameter.shape, torch.float32, device) / 500

    def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        residual = residual + self.down(functional.silu(self.up(x)))
        return functional.rms_norm(residual, (HIDDEN,), self.norm, 1e-5), residual


class Parallel(nn.Module):
    """The same by several ranks. Without biases the sum is left to the norm."""

    def __init__(self, whole: Whole, group: str):
        super().__init__()
        self.up = symm.torch.ColumnLinear(whole.up, group)
        self.partial = whole.down.bias is None
        self.down = symm.torch.RowLinear(whole.down, group, partial=self.partial)
        self.norm = symm.torch.AllReduceRMSNorm(HIDDEN, group)
        self.norm.weight = nn.Parameter(whole.norm.detach().clone())

    def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        y = self.down(functional.silu(self.up(x)))
        if self.partial:
            return self.norm(y, residual)
        residual = residual + y
        return functional.rms_norm(residual, (HIDDEN,), self.norm.weight, 1e-5), residual


def layers(group: str, device: str, backend: str | None = None):
    """Results and gradients of all inputs and parameters, then the fused kernel's results."""
    rank, ranks = registered(group).rank, registered(group).ranks
    for bias in (True, False):
        whole = Whole(ranks, device, bias)
        parallel = Parallel(whole, group)
        run = torch.compile(parallel, fullgraph=True, backend=backend) if backend else parallel
        for rows in (ROWS, ROWS + 4):
            inputs = [values(seed, (rows, HIDDEN), torch.float32, device) for seed in (1, 2)]
            weights = [values(seed, (rows, HIDDEN), torch.float32, device) for seed in (3, 4)]
            found = {}
            for model, call in ((whole, whole), (parallel, run)):
                model.zero_grad()
                x, residual = (tensor.clone().requires_grad_() for tensor in inputs)
                outs = call(x, residual)
                sum((w * out).sum() for w, out in zip(weights, outs, strict=True)).backward()
                down = model.down.weight.grad
                found[model] = [*outs, x.grad, residual.grad, model.up.weight.grad, down.mT,
                                model.norm.grad if model is whole else model.norm.weight.grad]
                if bias:
                    found[model] += [model.up.bias.grad, model.down.bias.grad]
            for index, expected in enumerate(found[whole]):
                if index in (4, 5, 7):  # parameters of which each rank has a part
                    expected = expected.chunk(ranks)[rank]
                scale = expected.abs().max().item()
                expect(found[parallel][index] / scale, expected / scale, 1e-5)
            with torch.no_grad():
                x, residual = (tensor.clone() for tensor in inputs)
                out, changed = run(x, residual)
                expect(out, found[whole][0].detach(), 1e-4)
                expect(changed, found[whole][1].detach(), 1e-4)
                expect(residual, inputs[1] if bias else changed)


def compiled(group: str, device: str, backend_of_layers: str = "inductor"):
    """Functions of one graph, of any size: with gradients, and with a tensor that changes."""
    rank, ranks = registered(group).rank, registered(group).ranks

    @torch.compile(fullgraph=True)
    def of_all(x: Tensor) -> Tensor:
        y = symm.torch.reduce_scatter(x * 2, group) + 1
        y = symm.torch.broadcast(symm.torch.reduce(y, group), group)
        return symm.torch.all_gather(y, group) * symm.torch.all_reduce(x, group, "avg")

    @torch.compile(fullgraph=True)
    def in_place(x: Tensor) -> Tensor:
        before = x + 1
        symm.torch.all_reduce_(x, group)
        return before - (x + 1)  # which is not the same

    for width in (5, 8, 13):
        xs = [values(r, (ranks * 2, width), torch.float64, device).requires_grad_()
              for r in range(ranks)]
        part = sum(chunk + 1 for chunk in (2 * sum(xs)).chunk(ranks))
        expected = torch.cat([part] * ranks) * (sum(xs) / ranks)
        loss = sum((values(r + 9, expected.shape, torch.float64, device) * expected).sum()
                   for r in range(ranks))
        gradient = torch.autograd.grad(loss, xs)[rank]
        x = xs[rank].detach().clone().requires_grad_()
        out = of_all(x)
        expect(out, expected.detach(), 1e-12)
        (values(rank + 9, out.shape, torch.float64, device) * out).sum().backward()
        expect(x.grad, gradient, 1e-12)
        x = xs[rank].detach().clone()
        expect(in_place(x), (xs[rank] - sum(xs)).detach())
        expect(x, sum(xs).detach())
    layers(group, device, backend_of_layers)
