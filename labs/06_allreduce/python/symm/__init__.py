"""AllReduce, ReduceScatter and AllGather over symmetric memory: the interface of symm.h for Python.

    with symm.Communicator.from_torch() as communicator:
        x = symm.empty((4096,), torch.float32)  # in a window, memory that all ranks can reach
        x.fill_(communicator.rank)
        communicator.all_reduce(x)              # in place, in PyTorch's current stream

Arrays may be torch.Tensor, anything with `__cuda_array_interface__` (CuPy, Numba) or DLPack (JAX),
and anything in host memory (NumPy) if GPUs are emulated, as they are where there is none. They are
contiguous, of any shape, and have one of the types in TYPES. Calls know nothing of autograd."""

import ctypes
import importlib
import importlib.util
import math
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

#: Types of elements, by PyTorch's and NumPy's names, and their sizes in bytes; in symm.h's order.
TYPES = {"int8": 1, "uint8": 1, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "float16": 2,
         "float32": 4, "float64": 8, "bfloat16": 2}
#: Operations, in symm.h's order.
OPS = ("sum", "prod", "max", "min", "avg")


class SymmError(RuntimeError):
    """A call failed: the driver or the system refused something, or a wait timed out."""


class RankError(SymmError):
    """Another rank has failed, is gone, did not come, or makes a different call."""


_ALLGATHER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
                              ctypes.c_size_t)


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("device", ctypes.c_int), ("timeout", ctypes.c_double),
                ("max_blocks", ctypes.c_uint)]


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(str(Path(__file__).with_name("libsymm.so")))
    pointer, integer, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
    options = ctypes.POINTER(_Options)
    for parameters, *names in (
            ([ctypes.POINTER(integer)], "is_emulated"),
            ([pointer, integer, integer, ctypes.c_char_p, options], "comm_create"),
            ([pointer, options], "comm_create_from_launcher"),
            ([pointer, integer, integer, _ALLGATHER, pointer, options], "comm_create_by_allgather"),
            ([pointer], "comm_rank", "comm_ranks", "comm_device", "comm_stream", "comm_async_error",
             "comm_abort", "comm_destroy"),
            ([pointer, size, pointer], "window_allocate"),
            ([pointer, pointer], "window_release", "comm_synchronize"),
            ([pointer, pointer, pointer, size, integer, integer, pointer], "all_reduce",
             "reduce_scatter"),
            ([pointer, pointer, pointer, size, integer, pointer], "all_gather"),
            ([pointer] * 5 + [ctypes.c_uint, ctypes.c_uint, integer, ctypes.c_float, pointer],
             "all_reduce_rms_norm")):
        for name in names:
            getattr(library, f"symm_{name}").argtypes = parameters
    library.symm_comm_stream.restype = pointer
    library.symm_last_error.restype = ctypes.c_char_p
    return library


_c = _load()
__version__ = "{}.{}.{}".format(*(_c.symm_version() // unit % 100 for unit in (10000, 100, 1)))
_last = threading.local()  # .communicator: a weak reference to the one this thread made last


def _check(result: int) -> None:
    if result != 0:
        kind = {1: ValueError, 2: RankError}.get(result, SymmError)
        raise kind(_c.symm_last_error().decode(errors="replace"))


def is_emulated() -> bool:
    """Whether GPUs are emulated: no GPU, a build without nvcc, or SYMM_DRIVER=emulated."""
    emulated = ctypes.c_int()
    _check(_c.symm_is_emulated(emulated))
    return emulated.value != 0


def _type_name(dtype: Any) -> str:
    """`float32` for torch.float32, numpy.float32, numpy.dtype("float32") and "float32"."""
    name = getattr(dtype, "name", getattr(dtype, "__name__", str(dtype))).removeprefix("torch.")
    if name not in TYPES:
        raise TypeError(f"elements of type {name} are not supported: use one of {', '.join(TYPES)}")
    return name


def _import(name: str, why: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{why}, but {name} cannot be imported: {error}") from error


_HOST, _SOME_GPU = -2, -1


class _Buffer(NamedTuple):
    address: int
    count: int
    type: str
    device: int  # A GPU's ordinal, _HOST or _SOME_GPU.
    writable: bool = True


def _from_interface(interface: dict, device: int) -> _Buffer:
    order, kind, size = *interface["typestr"][:2], int(interface["typestr"][2:])
    names = {"i": "int", "u": "uint", "f": "float", "V": "bfloat"}
    name = _type_name(f"{names.get(kind, kind)}{8 * size}{' (big-endian)' * (order == '>')}")
    shape, unit = tuple(interface["shape"]), size
    for length, stride in zip(reversed(shape), reversed(interface.get("strides") or ())):
        if length != 1 and stride != unit and 0 not in shape:
            raise ValueError(f"an array of shape {shape} is not contiguous: pass a contiguous copy")
        unit *= length
    address, read_only = interface["data"]
    return _Buffer(address or 0, math.prod(shape), name, device, not read_only)


def _buffer(array: Any) -> _Buffer:
    """The memory of an array. Raises TypeError or ValueError for an array that no call takes."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        if not array.is_contiguous():
            raise ValueError(f"a tensor of shape {tuple(array.shape)} is not contiguous: pass a "
                             "contiguous copy")
        device = array.device.index if array.is_cuda else _HOST
        return _Buffer(array.data_ptr(), array.numel(), _type_name(array.dtype), device)
    if hasattr(array, "__cuda_array_interface__"):
        return _from_interface(array.__cuda_array_interface__, _SOME_GPU)
    if hasattr(array, "__array_interface__"):
        return _from_interface(array.__array_interface__, _HOST)
    if hasattr(array, "__dlpack__"):
        library = _import("numpy" if is_emulated() else "torch", "symm reads DLPack through it")
        return _buffer(library.from_dlpack(array))
    raise TypeError(f"{type(array).__name__} has neither __cuda_array_interface__ nor __dlpack__")


class Window:
    """A window on a GPU as an array of bytes, for torch.as_tensor() or cupy.asarray()."""

    def __init__(self, communicator: "Communicator", address: int, size: int):
        self.communicator = communicator  # not collected while there is the array
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "version": 3,
                                         "data": (address, False), "strides": None}


class Communicator:
    """One rank's communicator. Creation, windows and calls are collective: all ranks make them, in
    the same order. Used by one thread at a time, which may be any; async_error() and abort() may
    come from any thread. As a context manager it is destroyed at the end, and aborted first if an
    exception leaves the block. The ranks are threads of one process, or processes of one machine,
    and meet under `name`: no other run may use it meanwhile. Options of all ways to create one:

    device: the ordinal of the rank's GPU. None: PyTorch's current one in from_torch(), else
        rank % number of GPUs.
    timeout: seconds that a kernel waits for another rank at most. None: SYMM_TIMEOUT, or for ever;
        a rank that fails or is gone ends the wait in any case.
    max_blocks: the most blocks of a kernel. 0: SYMM_MAX_BLOCKS, or all that fit.

    Raises RankError if a rank does not come within SYMM_TIMEOUT (30 s)."""

    def __init__(self, rank: int, ranks: int, name: str, **options: Any):
        self._create(_c.symm_comm_create, rank, ranks, name.encode(), **options)

    @classmethod
    def from_launcher(cls, **options: Any) -> "Communicator":
        """For a process that torchrun, mpirun or srun started: by their variables."""
        self = cls.__new__(cls)
        self._create(_c.symm_comm_create_from_launcher, **options)
        return self

    @classmethod
    def from_torch(cls, group: Any = None, **options: Any) -> "Communicator":
        """For the ranks of a group of torch.distributed, of any back end. None: all ranks."""
        distributed = _import("torch.distributed", "from_torch() needs PyTorch")
        if not distributed.is_available() or not distributed.is_initialized():
            raise ValueError("torch.distributed is not initialized: call init_process_group()")
        rank, ranks = distributed.get_rank(group), distributed.get_world_size(group)
        if rank < 0:
            raise ValueError("this process is not in the group")
        if not is_emulated():
            options.setdefault("device", sys.modules["torch"].cuda.current_device())

        def allgather(mine: bytes) -> list:
            every: list = [None] * ranks
            distributed.all_gather_object(every, mine, group=group)
            return every

        return cls.from_allgather(rank, ranks, allgather, **options)

    @classmethod
    def from_allgather(cls, rank: int, ranks: int, allgather: Callable[[bytes], list],
                       **options: Any) -> "Communicator":
        """For ranks that can exchange bytes. `allgather` is called once, with this rank's bytes,
        and returns those of all ranks, by rank: mpi4py's comm.allgather does."""
        raised = []

        def call(_context: Any, mine: int, every: int, size: int) -> int:
            try:
                parts = allgather(ctypes.string_at(mine, size))
                if [len(part) for part in parts] != [size] * ranks:
                    raise ValueError(f"allgather must return {size} bytes of each of {ranks} ranks")
                ctypes.memmove(every, b"".join(parts), size * ranks)
            except BaseException as error:  # it cannot pass C
                raised.append(error)
            return len(raised)

        self = cls.__new__(cls)
        try:
            self._create(_c.symm_comm_create_by_allgather, rank, ranks, _ALLGATHER(call), None,
                         **options)
        except SymmError as error:
            raise (*raised, error)[0] from None
        return self

    def _create(self, function: Any, *arguments: Any, device: int | None = None,
                timeout: float | None = None, max_blocks: int = 0) -> None:
        self._handle = ctypes.c_void_p()
        self._in_flight: list = []  # NumPy may free an array as soon as its user has left it
        self._emulated = is_emulated()
        options = _Options(ctypes.sizeof(_Options), -1 if device is None else device, timeout or 0,
                           max_blocks)
        _check(function(ctypes.byref(self._handle), *arguments, options))
        self.rank: int = _c.symm_comm_rank(self._handle)
        self.ranks: int = _c.symm_comm_ranks(self._handle)
        self.device: int = _c.symm_comm_device(self._handle)
        _last.communicator = weakref.ref(self)

    def empty(self, shape: int | tuple, dtype: Any = "float32") -> Any:
        """Allocates an array in a new window: `shape` on every rank, not initialized. Collective.
        Returns NumPy's on emulated GPUs; on GPUs PyTorch's, or without PyTorch a Window of the
        array's bytes. Large calls are faster if all their arrays lie in windows. Do not use the
        array after release(), or after the communicator's destroy()."""
        shape, name = (shape,) if isinstance(shape, int) else tuple(shape), _type_name(dtype)
        if any(length < 0 for length in shape):
            raise ValueError(f"a length in {shape} is negative")
        count = math.prod(shape)
        size = max(count, 1) * TYPES[name]
        if self._emulated:
            numpy = _import("numpy", "arrays of emulated GPUs are NumPy's")
            name = numpy.dtype(name)  # which refuses bfloat16
        address = ctypes.c_void_p()
        _check(_c.symm_window_allocate(self._handle, size, ctypes.byref(address)))
        if self._emulated:
            memory = (ctypes.c_char * size).from_address(address.value)
            memory.communicator = self  # as a Window does
            return numpy.frombuffer(memory, name, count).reshape(shape)
        window = Window(self, address.value, size)
        if importlib.util.find_spec("torch") is None:
            return window
        torch = _import("torch", "arrays are PyTorch's")
        flat = torch.as_tensor(window, device=f"cuda:{self.device}").view(getattr(torch, name))
        return flat[:count].view(shape)

    def release(self, array: Any) -> None:
        """Frees the window of an array that empty() returned. Collective; waits for the work of
        all ranks."""
        _check(_c.symm_window_release(self._handle, _buffer(array).address))

    def all_reduce(self, x: Any, out: Any = None, op: str = "sum", stream: Any = None) -> Any:
        """Queues an AllReduce: `out`, as large as `x`, becomes the reduction of all ranks' `x`, in
        the order of the ranks. Without `out` in place. Returns `out`.

        op: sum, prod, max, min or avg.
        stream: a stream of PyTorch or CuPy, or a cudaStream_t as an integer. None: PyTorch's
            current one if PyTorch is loaded, else the default stream; on emulated GPUs the
            communicator's own. May be captured in a graph.

        Does not wait: on emulated GPUs, call synchronize() before you read the result."""
        return self._call(_c.symm_all_reduce, x, x if out is None else out, 1, 1, op, stream)

    def reduce_scatter(self, x: Any, out: Any, op: str = "sum", stream: Any = None) -> Any:
        """Queues a ReduceScatter: `x` has a part for each rank, in their order, and `out`, as large
        as one part, becomes the reduction of all ranks' parts for this rank. In place, `out` is
        this rank's part of `x`. Otherwise as all_reduce()."""
        return self._call(_c.symm_reduce_scatter, x, out, self.ranks, 1, op, stream)

    def all_gather(self, x: Any, out: Any, stream: Any = None) -> Any:
        """Queues an AllGather: `out`, of ranks times as many elements as `x`, gets all ranks' `x`
        in their order. In place, `x` is this rank's part of `out`. Otherwise as all_reduce()."""
        return self._call(_c.symm_all_gather, x, out, 1, self.ranks, None, stream)

    def all_reduce_rms_norm(self, x: Any, residual: Any, weight: Any, out: Any,
                            epsilon: float = 1e-5, stream: Any = None) -> Any:
        """Queues `residual += sum of all ranks' x; out = residual / rms(residual) * weight` as one
        kernel: rms is the square root of epsilon plus the mean of a row's squares. Returns `out`.

        x, residual, out: shape (rows, hidden), float32, float16 or bfloat16. 1 to 8,192 rows of 512
            to 16,384 elements, each of whole 16 bytes. The residual is the same on all ranks.
        weight: shape (hidden,), the same on all ranks.

        A communicator's first such call waits for the other ranks', and cannot be captured.
        Otherwise as all_reduce(), and the arrays do not overlap."""
        source, weights, *targets = self._buffers((x, weight), (residual, out))
        rows, rest = divmod(source.count, max(weights.count, 1))
        if rest or any(target.count != source.count for target in targets):
            raise ValueError(f"rows of {weights.count} elements do not fit arrays of " + ", ".join(
                str(array.count) for array in (source, *targets)))
        self._in_flight += [(x, residual, weight, out)] * self._emulated
        _check(_c.symm_all_reduce_rms_norm(
            self._handle, source.address, *(target.address for target in targets), weights.address,
            rows, weights.count, list(TYPES).index(source.type), epsilon, self._stream(stream)))
        return out

    def _call(self, function: Any, x: Any, out: Any, x_parts: int, out_parts: int, op: str | None,
              stream: Any) -> Any:
        source, target = (self._buffers((), (x,)) * 2 if out is x else
                          self._buffers((x,), (out,)))
        if source.count * out_parts != target.count * x_parts:
            raise ValueError(f"an input of {source.count} elements does not fit an output of "
                             f"{target.count}, for {self.ranks} ranks")
        if op is not None and op not in OPS:
            raise ValueError(f"there is no operation {op!r}: use one of {', '.join(OPS)}")
        self._in_flight += [(x, out)] * self._emulated
        _check(function(self._handle, source.address, target.address,
                        min(source.count, target.count), list(TYPES).index(source.type),
                        *([] if op is None else [OPS.index(op)]), self._stream(stream)))
        return out

    def _buffers(self, inputs: tuple, outputs: tuple) -> list[_Buffer]:
        """The memory of a call's arrays, which lie on this rank's GPU and have one type."""
        buffers = [_buffer(array) for array in inputs + outputs]
        places = (_HOST,) if self._emulated else (_SOME_GPU, self.device)
        if any(buffer.device not in places for buffer in buffers):
            raise TypeError("an array is on a GPU, but GPUs are emulated: use one in host memory" if
                            self._emulated else f"an array is not on GPU {self.device}")
        if not all(buffer.writable for buffer in buffers[len(inputs):]):
            raise ValueError("the output is read-only")
        types = list(dict.fromkeys(buffer.type for buffer in buffers))
        if len(types) > 1:
            raise TypeError(f"input and output differ in type: {' and '.join(types)}")
        return buffers

    def _stream(self, stream: Any) -> int:
        if stream is None:
            if self._emulated:
                return _c.symm_comm_stream(self._handle)
            torch = sys.modules.get("torch")
            return torch.cuda.current_stream(self.device).cuda_stream if torch else 0
        return getattr(stream, "cuda_stream", getattr(stream, "ptr", stream))

    def synchronize(self, stream: Any = None) -> None:
        """Waits for the stream (as in all_reduce()). Raises RankError or SymmError if a kernel gave
        up waiting, and names the rank that it waited for: the results are then wrong, and the
        communicator can only be destroyed."""
        _check(_c.symm_comm_synchronize(self._handle, self._stream(stream)))
        self._in_flight.clear()

    def async_error(self) -> str:
        """The failures on any rank so far, or an empty text. Does not wait."""
        failed = _c.symm_comm_async_error(self._handle)
        return _c.symm_last_error().decode(errors="replace") if failed else ""

    def abort(self) -> None:
        """Ends all calls in flight. After that the communicator can only be destroyed."""
        _check(_c.symm_comm_abort(self._handle))

    def destroy(self) -> None:
        """Waits for the calls in flight, and frees the communicator and its windows: arrays of
        empty() are then no longer valid. A second call does nothing."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        _check(_c.symm_comm_destroy(handle))

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, kind: Any, _error: Any, _trace: Any) -> None:
        if kind is not None and self._handle:
            self.abort()
        self.destroy()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.destroy()


def empty(shape: int | tuple, dtype: Any = "float32") -> Any:
    """Communicator.empty() of the communicator that this thread created last."""
    communicator = getattr(_last, "communicator", lambda: None)()
    if communicator is None:
        raise ValueError("this thread has no communicator: create one first")
    return communicator.empty(shape, dtype)
