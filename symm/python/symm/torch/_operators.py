"""The collectives as operators of PyTorch, torch.ops.symm.*, for torch.compile and graphs.

Each has a function that makes its output, empty. A call fills it in; the compiler, which needs to
know the shape and the type only, calls that function alone. The gradient is that of the sum of all
ranks' losses, as in torch.distributed.nn:

| operator       | gradient for sum                      | for avg              | other ops |
|----------------|---------------------------------------|----------------------|-----------|
| all_reduce     | an all_reduce                         | an all_reduce by avg | none      |
| reduce_scatter | an all_gather, and the reverse        | divided by the ranks | none      |
| reduce         | a broadcast, and the reverse          | divided by the ranks | none      |"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch
from torch import Tensor
from torch.library import custom_op

from .._communicator import Communicator
from .._library import is_emulated
from ._groups import registered

F = TypeVar("F", bound=Callable[..., Any])


def _operator(empty: Callable[..., Any], gradient: Callable[..., Any] | None = None,
              mutates: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Makes an operator of a function. PyTorch calls gradient(ctx, gradient of the output)."""
    def make(body: F) -> F:
        made = custom_op(f"symm::{body.__name__}", body, mutates_args=mutates)
        made.register_fake(empty)
        if gradient is not None:
            made.register_autograd(gradient, setup_context=_keep)

        @functools.wraps(body)
        def call(*arguments: Any, **named: Any) -> Any:
            if any(isinstance(x, Communicator) for x in (*arguments, *named.values())):
                raise TypeError("a group is a text: pass the name that symm.torch.register("
                                "communicator, name) returned")
            # Without this PyTorch would lose the gradient of a tensor that changes.
            if gradient is None and torch.is_grad_enabled() and any(
                    isinstance(x, Tensor) and x.requires_grad
                    for x in (*arguments, *named.values())):
                raise RuntimeError(f"{body.__name__}() has no gradient, but a tensor requires one: "
                                   "call it under torch.no_grad(), or a function that has one")
            return made(*arguments, **named)

        return cast(F, call)
    return make


def _queue(group: str, call: Callable[[Communicator], Any]) -> None:
    communicator = registered(group)
    call(communicator)
    if is_emulated():  # then PyTorch's own work is in no stream
        communicator.synchronize()


# Outputs

def _same(x: Tensor, *_: Any) -> Tensor:
    return x.new_empty(x.shape)


def _normalized(x: Tensor, _residual: Any, _weight: Tensor, _group: str, _epsilon: float = 0,
                _weight_offset: float = 0, _bias: Any = None,
                out_scale: Tensor | None = None) -> Tensor:
    return x.new_empty(x.shape, dtype=x.dtype if out_scale is None else torch.float8_e4m3fn)


def _part(x: Tensor, group: str, _op: str = "sum") -> Tensor:
    ranks = registered(group).ranks
    return x.new_empty([length // ranks for length in x.shape[:1]] + [*x.shape[1:]])


def _whole(x: Tensor, group: str) -> Tensor:
    ranks = registered(group).ranks
    return x.new_empty([length * ranks for length in x.shape[:1]] + [*x.shape[1:]])


# Gradients

def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.group, *ctx.how = inputs
    op = ctx.how[0] if ctx.how else None
    if isinstance(op, str) and op not in ("sum", "avg"):
        raise ValueError(f"op {op} has no gradient: use sum or avg, or call it under "
                         "torch.no_grad()")


def _scale(gradient: Tensor, ctx: Any) -> Tensor:
    return gradient / registered(ctx.group).ranks if ctx.how[0] == "avg" else gradient


def _of_all_reduce(ctx: Any, gradient: Tensor) -> Any:
    return all_reduce(gradient, ctx.group, *ctx.how), None, None


def _of_reduce_scatter(ctx: Any, gradient: Tensor) -> Any:
    return all_gather(_scale(gradient, ctx), ctx.group), None, None


def _of_all_gather(ctx: Any, gradient: Tensor) -> Any:
    return reduce_scatter(gradient, ctx.group), None


def _of_broadcast(ctx: Any, gradient: Tensor) -> Any:
    return reduce(gradient, ctx.group, "sum", *ctx.how), None, None


def _of_reduce(ctx: Any, gradient: Tensor) -> Any:
    return broadcast(_scale(gradient, ctx), ctx.group, ctx.how[1]), None, None, None


# Operators

@_operator(_same, _of_all_reduce)
def all_reduce(x: Tensor, group: str, op: str = "sum") -> Tensor:
    """The reduction of all ranks' `x`: sum, prod, max, min or avg."""
    out = _same(x)
    _queue(group, lambda comm: comm.all_reduce(x.contiguous(), out, op))
    return out


@_operator(lambda *_: None, mutates=("x",))
def all_reduce_(x: Tensor, group: str, op: str = "sum") -> None:
    """all_reduce() in place, without a gradient. `x` must be contiguous. Large calls are faster if
    it lies in a window (symm.empty)."""
    _queue(group, lambda comm: comm.all_reduce(x, op=op))


@_operator(_part, _of_reduce_scatter)
def reduce_scatter(x: Tensor, group: str, op: str = "sum") -> Tensor:
    """This rank's part of the reduction of all ranks' `x`, which is cut along its first dimension:
    shape (ranks * n, ...) gives (n, ...)."""
    out = _part(x, group)
    _queue(group, lambda comm: comm.reduce_scatter(x.contiguous(), out, op))
    return out


@_operator(_whole, _of_all_gather)
def all_gather(x: Tensor, group: str) -> Tensor:
    """All ranks' `x` in their order, along the first dimension: (n, ...) gives (ranks * n, ...)."""
    out = _whole(x, group)
    _queue(group, lambda comm: comm.all_gather(x.contiguous(), out))
    return out


@_operator(_same, _of_broadcast)
def broadcast(x: Tensor, group: str, root: int = 0) -> Tensor:
    """The `x` of rank `root`; those of other ranks have its shape and type."""
    out = _same(x)
    _queue(group, lambda comm: comm.broadcast(x.contiguous(), out, root))
    return out


@_operator(_same, _of_reduce)
def reduce(x: Tensor, group: str, op: str = "sum", root: int = 0) -> Tensor:
    """The reduction of all ranks' `x` on rank `root`, and zeros on the others."""
    out = _same(x).zero_()  # a call leaves other ranks' output as it is
    _queue(group, lambda comm: comm.reduce(x.contiguous(), out, op, root))
    return out


@_operator(_normalized, mutates=("residual",))
def all_reduce_rms_norm(x: Tensor, residual: Tensor | None, weight: Tensor, group: str,
                        epsilon: float = 1e-5, weight_offset: float = 0.0,
                        bias: Tensor | None = None, out_scale: Tensor | None = None) -> Tensor:
    """`residual += sum of all ranks' x`, in place; returns
    `(residual / rms(residual) * (weight + weight_offset) + bias) / out_scale`, in float8_e4m3fn if
    there is an `out_scale`. One kernel, without a gradient (AllReduceRMSNorm has one). For shapes
    and types see Communicator.all_reduce_rms_norm(). A communicator's first such call cannot be
    captured in a graph."""
    out = _normalized(x, residual, weight, group, epsilon, weight_offset, bias, out_scale)
    _queue(group, lambda comm: comm.all_reduce_rms_norm(
        x.contiguous(), residual, weight, out, epsilon, weight_offset=weight_offset, bias=bias,
        out_scale=out_scale))
    return out
