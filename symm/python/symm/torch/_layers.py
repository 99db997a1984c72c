"""Tensor-parallel layers, as in Megatron-LM (https://arxiv.org/abs/1909.08053).

Ranks compute the same loss, each with its part of the weights. Two functions keep that so, and the
gradient is that of this one loss:

| function             | forward            | backward           | Megatron's name |
|----------------------|--------------------|--------------------|-----------------|
| copy_to_ranks(x)     | nothing            | sums the gradients | f               |
| sum_over_ranks(x)    | sums the ranks' x  | nothing            | g               |

    x -> f, ColumnLinear: a part of the features -> ... -> RowLinear: a term of the sum, g -> y"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ._groups import registered
from ._operators import all_reduce, all_reduce_rms_norm


class _CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: str) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return all_reduce(gradient, ctx.group), None


class _SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(_: Any, x: Tensor, group: str) -> Tensor:
        return all_reduce(x, group)

    @staticmethod
    def backward(_: Any, gradient: Tensor) -> Any:
        return gradient, None


def copy_to_ranks(x: Tensor, group: str) -> Tensor:
    """Returns `x`, which is the same on all ranks and is used by each in its own way."""
    return _CopyToRanks.apply(x, group)


def sum_over_ranks(x: Tensor, group: str) -> Tensor:
    """Returns the sum of all ranks' `x`, which all ranks use in the same way."""
    return _SumOverRanks.apply(x, group)


def _mine(whole: Tensor, dimension: int, group: str) -> nn.Parameter:
    """A copy of this rank's part of a parameter."""
    communicator = registered(group)
    if whole.shape[dimension] % communicator.ranks != 0:
        raise ValueError(f"dimension {dimension} of a parameter of shape {tuple(whole.shape)} "
                         f"cannot be cut into {communicator.ranks} equal parts")
    part = whole.detach().chunk(communicator.ranks, dimension)[communicator.rank]
    return nn.Parameter(part.clone(memory_format=torch.contiguous_format), whole.requires_grad)


class ColumnLinear(nn.Module):
    """Computes this rank's part of the output features of a layer that is the same on all ranks."""

    def __init__(self, whole: nn.Linear, group: str):
        super().__init__()
        self.group = group
        self.weight = _mine(whole.weight, 0, group)
        self.bias = None if whole.bias is None else _mine(whole.bias, 0, group)

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(copy_to_ranks(x, self.group), self.weight, self.bias)


class RowLinear(nn.Module):
    """Takes this rank's part of the input features, as ColumnLinear leaves them, and returns all
    output features. partial: leaves their sum over the ranks to the next layer, AllReduceRMSNorm;
    the whole layer then has no bias."""

    def __init__(self, whole: nn.Linear, group: str, partial: bool = False):
        super().__init__()
        if partial and whole.bias is not None:
            raise ValueError("the bias of a partial RowLinear would be added once per rank: use "
                             "nn.Linear(..., bias=False)")
        self.group, self.partial = group, partial
        self.weight = _mine(whole.weight, 1, group)
        self.bias = whole.bias

    def forward(self, x: Tensor) -> Tensor:
        y = functional.linear(x, self.weight)
        if self.partial:
            return y
        y = sum_over_ranks(y, self.group)
        return y if self.bias is None else y + self.bias


class AllReduceRMSNorm(nn.Module):
    """Adds the sum of the ranks' x to the residual, and normalizes its rows. Returns both. Without
    gradients it is one kernel, which changes the residual that it was given."""

    def __init__(self, hidden: int, group: str, epsilon: float = 1e-5, **options: Any):
        super().__init__()
        if not 512 <= hidden <= 16384:
            raise ValueError(f"hidden is {hidden}: the fused call takes 512 to 16384 elements")
        self.group, self.epsilon = group, epsilon
        self.weight = nn.Parameter(torch.ones(hidden, **options))

    def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        if torch.is_grad_enabled():
            residual = residual + sum_over_ranks(x, self.group)
            return functional.rms_norm(residual, self.weight.shape, self.weight,
                                       self.epsilon), residual
        return all_reduce_rms_norm(x, residual, self.weight, self.group, self.epsilon), residual
