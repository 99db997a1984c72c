"""AllReduce and four more collectives over symmetric memory: the interface of symm.h for Python.

    with symm.Communicator.from_torch() as communicator:
        x = symm.empty((4096,), torch.float32)  # in a window, memory that all ranks can reach
        x.fill_(communicator.rank)
        communicator.all_reduce(x)              # in place, in PyTorch's current stream

Arrays may be torch.Tensor, anything with `__cuda_array_interface__` (CuPy, Numba) or DLPack (JAX),
and anything in host memory (NumPy) if GPUs are emulated, as they are where there is none. They are
contiguous, of any shape, and have one of the types in TYPES. A program may leave an array while
calls still use it: its memory is kept until they have ended (symm/_arrays.py). symm.torch
has the same calls with gradients, for torch.compile."""

from ._communicator import Communicator, empty
from ._library import OPS, TYPES, RankError, SymmError, c, is_emulated
from ._windows import Window

__all__ = ["OPS", "TYPES", "Communicator", "RankError", "SymmError", "Window", "empty",
           "is_emulated"]
__version__ = "{}.{}.{}".format(*(c.symm_version() // unit % 100 for unit in (10000, 100, 1)))
for _public in (Communicator, RankError, SymmError, Window, empty, is_emulated):
    _public.__module__ = __name__
