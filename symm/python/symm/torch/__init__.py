"""Collectives for PyTorch's programs: with gradients, in torch.compile and in CUDA graphs.

    import symm.torch

    communicator = symm.Communicator.from_torch()
    group = symm.torch.register(communicator, "tensor parallel")

    @torch.compile(fullgraph=True)
    def layer(x, weight):
        return symm.torch.all_reduce(x @ weight, group)

Calls are queued in PyTorch's current stream. Tensors may be views: those that are not contiguous
are copied first. On emulated GPUs tensors are in host memory, and a call waits for its result.

All ranks make the same calls in the same order, so compile the same program on all of them. A call
whose result is not used is a call less: the compiler removes it, and so it must on all ranks."""

from ._groups import register
from ._layers import AllReduceRMSNorm, ColumnLinear, RowLinear, copy_to_ranks, sum_over_ranks
from ._operators import (
    all_gather,
    all_reduce,
    all_reduce_,
    all_reduce_rms_norm,
    broadcast,
    reduce,
    reduce_scatter,
)

__all__ = ["AllReduceRMSNorm", "ColumnLinear", "RowLinear", "all_gather", "all_reduce",
           "all_reduce_", "all_reduce_rms_norm", "broadcast", "copy_to_ranks", "reduce",
           "reduce_scatter", "register", "sum_over_ranks"]
