"""The memory of a user's array, and who keeps it alive until the call that uses it has ended.

A call only queues work, so the user may have left an array before the work begins.

| the array                            | what keeps its memory until the call has ended            |
|--------------------------------------|-----------------------------------------------------------|
| with `__array_interface__` (NumPy)   | the communicator keeps the object and its dictionary: an  |
| or `__cuda_array_interface__` (CuPy) | object that makes its memory when asked has it only there |
| with `__dlpack__` (JAX)              | the communicator keeps the capsule and the object         |
| torch.Tensor in host memory, or on a | the communicator keeps the storage                        |
| GPU in another stream than PyTorch's |                                                           |
| torch.Tensor on a GPU, in PyTorch's  | PyTorch's allocator, to which record_stream() names the   |
| current stream                       | stream: it reuses memory in the order of streams          |
| the same, with memory that is not    | the communicator keeps the storage, too                   |
| PyTorch's (from_dlpack(), a window)  |                                                           |
| one that the communicator would      | the communicator, until its end: a graph may run at any   |
| keep, in a captured stream           | time. PyTorch's memory belongs to PyTorch's graph         |
| any, in a call that is refused       | nothing: no work was queued                               |

The next call or synchronize() frees what calls that have ended used (_comm.py). Each call's stream
first waits for the stream that `__cuda_array_interface__` names; producers with `__dlpack__` are
told the call's stream, and see to that themselves."""

import sys
from typing import Any, NamedTuple

from . import _dlpack
from ._arguments import byte_size, integer, lengths, type_name
from ._library import TYPES

HOST, SOME_GPU = -2, -1


class Array(NamedTuple):
    address: int
    shape: tuple[int, ...]
    type: str
    device: int  # a GPU's ordinal, HOST or SOME_GPU
    writable: bool = True
    kept: Any = None  # until the call has ended
    producer: int | None = None  # the stream in which the memory was written last


class CallStream(NamedTuple):
    """The stream of a call."""

    handle: int
    torch: Any = None  # PyTorch's current stream, if it is that one


def memory_of(array: Any, stream: CallStream) -> Array:
    """The memory of an array. Raises TypeError or ValueError for an array that no call takes."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if isinstance(array, type):
        raise TypeError(f"{array!r} is a class, not an array")
    if torch is not None and isinstance(array, torch.Tensor):
        return _of_tensor(array, stream)
    if numpy is not None and isinstance(array, numpy.generic):
        raise TypeError(f"{array!r} is a scalar, which has no memory of its own: pass "
                        "numpy.array([x])")
    if numpy is not None and isinstance(array, numpy.ma.MaskedArray):
        raise TypeError("a masked array is not supported: pass x.data, or x.filled(value)")
    dlpack = hasattr(array, "__dlpack__")
    on_gpu = getattr(array, "__cuda_array_interface__", None)
    # Before version 3 it has no stream to wait for, but DLPack has.
    if on_gpu is not None and (on_gpu.get("version", 0) >= 3 or not dlpack):
        return _of_interface(array, on_gpu, SOME_GPU)
    in_host_memory = getattr(array, "__array_interface__", None)
    if in_host_memory is not None:
        return _of_interface(array, in_host_memory, HOST)
    if dlpack:
        found = _of_dlpack(array, stream)
        return found._replace(writable=found.writable and not (on_gpu and on_gpu["data"][1]))
    raise TypeError(f"{type(array).__name__} has neither __cuda_array_interface__ nor __dlpack__")


def without_float8(array: Any) -> Any:
    """An array of float8_e4m3fn as one of uint8, which all libraries know; others as they are."""
    dtype = getattr(array, "dtype", None)
    if getattr(dtype, "name", str(dtype).removeprefix("torch.")) != "float8_e4m3fn":
        return array
    return array.view(sys.modules["torch"].uint8 if str(dtype)[:6] == "torch." else "uint8")


def _of_tensor(tensor: Any, stream: CallStream) -> Array:
    if not tensor.is_contiguous():
        raise ValueError(f"a tensor of shape {tuple(tensor.shape)} is not contiguous: pass a "
                         "contiguous copy")
    if tensor.device.type not in ("cuda", "cpu"):
        raise TypeError(f"a tensor is on {tensor.device}, neither on a GPU nor in host memory")
    storage = tensor.untyped_storage()
    if tensor.is_cuda and stream.torch is not None:
        tensor.record_stream(stream.torch)
        if storage.resizable():  # else it is not of PyTorch's allocator
            storage = None
    return Array(tensor.data_ptr(), tuple(tensor.shape), type_name(tensor.dtype),
                 tensor.device.index if tensor.is_cuda else HOST, kept=storage)


#: "<f4": ("float32", 4), as array interfaces spell the type.
_TYPESTRS = {f"{order}{name[0]}{size}": (name, size) for name, size in TYPES.items()
             for order in "<|" if name != "bfloat16"}


def _type_of(typestr: str, dtype: Any) -> tuple[str, int]:
    """The name and the size of a type that _TYPESTRS lacks."""
    if typestr == "<V2" and getattr(dtype, "name", "bfloat16") == "bfloat16":
        return "bfloat16", 2  # so ml_dtypes spells it; structures are "|V2"
    type_name(dtype or typestr)  # which raises, and names the type
    raise TypeError(f"elements of type {typestr} are not supported")


def _of_interface(array: Any, interface: dict[str, Any], device: int) -> Array:
    typestr = interface["typestr"]
    name, size = _TYPESTRS.get(typestr) or _type_of(typestr, getattr(array, "dtype", None))
    if interface.get("mask") is not None:
        raise TypeError("a masked array is not supported: pass its data alone")
    shape, strides = lengths(interface["shape"]), interface.get("strides")
    _require_contiguous(shape, None if strides is None else lengths(strides, least=None), size)
    data = interface.get("data")
    if not isinstance(data, tuple) or len(data) != 2:
        raise TypeError(f"the interface of {type(array).__name__} has no address: pass "
                        "numpy.asarray(x)")
    producer = interface.get("stream")
    if producer == 0:
        raise ValueError(f"{type(array).__name__} names stream 0, which __cuda_array_interface__ "
                         "disallows: 1 is the default stream, 2 the thread's")
    byte_size(shape, name)
    return Array(integer("an array's address", data[0] or 0, 0, 2**64 - 1), shape, name, device,
                 not data[1], (array, interface), producer)


def _of_dlpack(array: Any, stream: CallStream) -> Array:
    found = _dlpack.export(array, stream.handle)
    _require_contiguous(found.shape, found.strides, 1)
    devices = {_dlpack.CUDA: found.device_id, _dlpack.CUDA_MANAGED: SOME_GPU,
               **dict.fromkeys(_dlpack.HOST_DEVICES, HOST)}
    if found.device not in devices:
        raise TypeError(f"{type(array).__name__} is on device {found.device} of DLPack, neither on "
                        "a GPU of CUDA's nor in host memory")
    return Array(found.address, found.shape, type_name(found.type), devices[found.device],
                 found.writable, (found.capsule, array))


def _require_contiguous(shape: tuple[int, ...], strides: tuple[int, ...] | None, unit: int) -> None:
    if strides is None:
        return
    if len(strides) != len(shape):
        raise ValueError(f"an array of shape {shape} has {len(strides)} strides: one for each "
                         "dimension is needed")
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != unit and 0 not in shape:
            raise ValueError(f"an array of shape {shape} is not contiguous: pass a contiguous copy")
        unit *= length
