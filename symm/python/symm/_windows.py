"""Arrays in windows."""

import ctypes
import importlib
import importlib.util
from collections.abc import Callable
from types import ModuleType
from typing import Any


def load(name: str, why: str) -> ModuleType:
    """Imports a module that only some programs need."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{why}, but {name} cannot be imported: {error}") from error


class Window:
    """A window on a GPU as an array of bytes, for torch.as_tensor() or cupy.asarray()."""

    def __init__(self, communicator: Any, address: int, size: int):
        self.communicator = communicator  # not collected while there is the array
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "version": 3,
                                         "data": (address, False), "strides": None}


def array_maker(communicator: Any, shape: tuple[int, ...], type_name: str,
                emulated: bool) -> Callable[[int, int], Any]:
    """A function that makes an array of a window's address and size. Raises all that speaks against
    the array now: a window can be given back by all ranks together only."""
    if emulated:
        numpy = load("numpy", "arrays of emulated GPUs are NumPy's")
        dtype = numpy.dtype(type_name)  # which refuses bfloat16
        numpy.broadcast_to(numpy.empty((), dtype), shape)  # and this, more dimensions than it has

        def in_host_memory(address: int, size: int) -> Any:
            memory: Any = (ctypes.c_char * size).from_address(address)
            memory.communicator = communicator  # as a Window does
            return numpy.ndarray(shape, dtype, memory)

        return in_host_memory
    if importlib.util.find_spec("torch") is None:
        return lambda address, size: Window(communicator, address, size)
    torch = load("torch", "arrays are PyTorch's")
    dtype = getattr(torch, type_name, None)
    if dtype is None:
        raise TypeError(f"PyTorch {torch.__version__} has no {type_name}")
    count = torch.empty(shape, dtype=dtype, device="meta").numel()

    def on_gpu(address: int, size: int) -> Any:
        window = Window(communicator, address, size)
        flat = torch.as_tensor(window, device=f"cuda:{communicator.device}").view(dtype)
        return flat[:count].view(shape)

    return on_gpu
