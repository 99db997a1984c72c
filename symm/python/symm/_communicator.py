"""The communicator: its calls, their arguments checked, and its windows."""

import ctypes
import math
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

from . import _arguments
from ._allgather import creation_by
from ._arguments import INT, UNSIGNED, integer, type_number
from ._arrays import HOST, SOME_GPU, Array, CallStream, memory_of
from ._comm import Comm
from ._library import Options, c, is_emulated
from ._rms_norm import rms_norm_call
from ._waits import RunHere
from ._windows import array_maker, load

_last = threading.local()  # .communicator: a weak reference to the one this thread made last


class Communicator:
    """One rank's communicator. Creation, windows and calls are collective: all ranks make them, in
    the same order. Used by one thread at a time, which may be any; async_error() and abort() may
    come from any thread. The ranks are threads of one process, or processes of one machine, and
    meet under `name`: no other run may use it meanwhile. Options of all ways to create one:

    device: the ordinal of the rank's GPU. None: PyTorch's current one in from_torch(), else
        rank % number of GPUs.
    timeout: seconds that a kernel waits for another rank at most. None: SYMM_TIMEOUT, or for ever;
        a rank that fails or is gone ends the wait in any case.
    max_blocks: the most blocks of a kernel. 0: SYMM_MAX_BLOCKS, or all that fit.

    Raises RankError if a rank does not come within SYMM_TIMEOUT (30 s).

    As a context manager it is destroyed at the end, and aborted first if an exception leaves the
    block. If it is collected, or left at the interpreter's end, its calls in flight get two seconds
    before they are aborted. Ctrl-C ends any wait; calls that were waited for are aborted. In a
    forked child it refuses calls, and abort() and its end do nothing. It cannot be copied."""

    def __init__(self, rank: int, ranks: int, name: str, **options: Any):
        rank, ranks = integer("rank", rank, 0, INT), integer("ranks", ranks, 1, INT)
        text = _arguments.text("name", name)
        self._create(lambda where, how, _: c.symm_comm_create(where, rank, ranks, text, how),
                     **options)

    @classmethod
    def from_launcher(cls, **options: Any) -> "Communicator":
        """For a process that torchrun, mpirun or srun started: by their variables."""
        self = cls.__new__(cls)
        self._create(lambda where, how, _: c.symm_comm_create_from_launcher(where, how), **options)
        return self

    @classmethod
    def from_torch(cls, group: Any = None, **options: Any) -> "Communicator":
        """For the ranks of a group of torch.distributed, of any back end. None: all ranks."""
        distributed = load("torch.distributed", "from_torch() needs PyTorch")
        if not distributed.is_available() or not distributed.is_initialized():
            raise ValueError("torch.distributed is not initialized: call init_process_group()")
        rank, ranks = distributed.get_rank(group), distributed.get_world_size(group)
        if rank < 0:
            raise ValueError("this process is not in the group")
        if not is_emulated():
            options.setdefault("device", sys.modules["torch"].cuda.current_device())

        def allgather(mine: bytes) -> list[bytes]:
            every: list[Any] = [None] * ranks
            distributed.all_gather_object(every, mine, group=group)
            return every

        return cls.from_allgather(rank, ranks, allgather, **options)

    @classmethod
    def from_allgather(cls, rank: int, ranks: int, allgather: Callable[[bytes], list[bytes]],
                       **options: Any) -> "Communicator":
        """For ranks that can exchange bytes. `allgather` is called once, with this rank's bytes,
        and returns those of all ranks, by rank: mpi4py's comm.allgather does."""
        rank, ranks = integer("rank", rank, 0, INT), integer("ranks", ranks, 1, INT)
        if not callable(allgather):
            raise TypeError(f"allgather is {allgather!r}, not a function")
        self = cls.__new__(cls)
        with creation_by(allgather, rank, ranks) as create:
            self._create(create, **options)
        return self

    def _create(self, create: Callable[[Any, Options, RunHere], int], device: int | None = None,
                timeout: float | None = None, max_blocks: int = 0) -> None:
        how = Options(
            ctypes.sizeof(Options), -1 if device is None else integer("device", device, 0, INT),
            0 if timeout is None else _arguments.number("timeout", timeout),
            integer("max_blocks", max_blocks, 0, UNSIGNED))
        self._emulated = is_emulated()
        self._comm = Comm(lambda where, run_here: create(where, how, run_here))
        with self._comm as pointer:
            self.rank: int = c.symm_comm_rank(pointer)
            self.ranks: int = c.symm_comm_ranks(pointer)
            self.device: int = c.symm_comm_device(pointer)
            self._own_stream: int = c.symm_comm_stream(pointer)
        _last.communicator = weakref.ref(self)

    def empty(self, shape: int | tuple[int, ...], dtype: Any = "float32") -> Any:
        """Allocates an array in a new window: `shape` on every rank, not initialized. Collective.
        Returns NumPy's on emulated GPUs; on GPUs PyTorch's, or without PyTorch a Window of the
        array's bytes. Large calls are faster if all their arrays lie in windows. Do not use the
        array after release(), or after the communicator's destroy()."""
        shape, name = _arguments.lengths(shape), _arguments.type_name(dtype)
        size = _arguments.byte_size(shape, name)
        make = array_maker(self, shape, name, self._emulated)
        address = ctypes.c_void_p()
        self._comm.wait(c.symm_window_allocate, size, ctypes.byref(address))
        return make(address.value or 0, size)

    def release(self, array: Any) -> None:
        """Frees the window of an array that empty() returned. Collective; waits for the work of
        all ranks."""
        self._comm.wait(c.symm_window_release, memory_of(array, CallStream(0)).address)

    def all_reduce(self, x: Any, out: Any = None, op: str = "sum", stream: Any = None) -> Any:
        """Queues an AllReduce: `out`, of the shape of `x`, becomes the reduction of all ranks' `x`,
        in the order of the ranks. Without `out` in place. Returns `out`.

        op: sum, prod, max, min or avg.
        stream: a stream of PyTorch, CuPy or CUDA Python (`__cuda_stream__`), or a cudaStream_t as
            an integer. None: PyTorch's current one if PyTorch is loaded, by whomever: a dependency
            that imports it changes that. Else the default stream; on emulated GPUs the
            communicator's own. May be captured in a graph: arrays that are not PyTorch's are then
            kept until destroy().

        Does not wait: on emulated GPUs, call synchronize() before you read the result."""
        return self._call(c.symm_all_reduce, c.symm_all_reduce_may_wait, x,
                          x if out is None else out, 1, 1, (_arguments.operation(op),), stream)

    def reduce_scatter(self, x: Any, out: Any, op: str = "sum", stream: Any = None) -> Any:
        """Queues a ReduceScatter: `x` has a part for each rank, in their order, and `out`, of the
        shape of one part, becomes the reduction of all ranks' parts for this rank. The parts lie
        along the first dimension of `x`, which is one more (ranks, *out.shape), or as many times
        longer: (ranks * n, ...) for (n, ...). In place, `out` is this rank's part of `x`. Otherwise
        as all_reduce()."""
        return self._call(c.symm_reduce_scatter, c.symm_reduce_scatter_may_wait, x, out,
                          self.ranks, 1, (_arguments.operation(op),), stream)

    def all_gather(self, x: Any, out: Any, stream: Any = None) -> Any:
        """Queues an AllGather: `out` gets all ranks' `x` in their order, along its first dimension
        as `x` of reduce_scatter(). In place, `x` is this rank's part of `out`. Otherwise as
        all_reduce()."""
        return self._call(c.symm_all_gather, c.symm_all_gather_may_wait, x, out, 1, self.ranks,
                          (), stream)

    def broadcast(self, x: Any, out: Any = None, root: int = 0, stream: Any = None) -> Any:
        """Queues a Broadcast: `out` gets the `x` of rank `root`, of the same shape; that of other
        ranks is not looked at. Without `out` in place. Otherwise as all_reduce()."""
        return self._call(c.symm_broadcast, c.symm_broadcast_may_wait, x, x if out is None else out,
                          1, 1, (self._root(root),), stream)

    def reduce(self, x: Any, out: Any = None, op: str = "sum", root: int = 0,
               stream: Any = None) -> Any:
        """Queues a Reduce: the `out` of rank `root` becomes the reduction of all ranks' `x`; that
        of other ranks is not written. Without `out` in place. Otherwise as all_reduce()."""
        return self._call(c.symm_reduce, c.symm_reduce_may_wait, x, x if out is None else out, 1, 1,
                          (_arguments.operation(op), self._root(root)), stream)

    def all_reduce_rms_norm(self, x: Any, residual: Any, weight: Any, out: Any,
                            epsilon: float = 1e-5, stream: Any = None, *,
                            weight_offset: float = 0, bias: Any = None,
                            out_scale: Any = None) -> Any:
        """Queues, as one kernel and row by row:

            residual += sum of all ranks' x
            out = (residual / rms(residual) * (weight + weight_offset) + bias) / out_scale

        rms is the square root of epsilon plus the mean of a row's squares. Returns `out`. The bits
        of a row do not depend on the other rows, nor on how many there are.

        x, residual, out: shape (rows, hidden), or (..., hidden); float32, float16 or bfloat16. 1 to
            8,192 rows of 512 to 16,384 elements, each of whole 16 bytes. The residual is the same
            on all ranks. None: x's sum takes its place, and is not stored.
        weight, bias: shape (hidden,), of the type of x, or float32; the same on all ranks.
        weight_offset: 1 for models whose weights are (1 + w), as Gemma's.
        out_scale: one float32 on the GPU. `out` is then float8_e4m3fn, or uint8 for its bits, and
            values that do not fit become 448 or -448.

        A communicator's first such call waits for the other ranks', and cannot be captured.
        Otherwise as all_reduce(), and the arrays do not overlap."""
        where = self._stream(stream)

        def take(array: Any, written: bool) -> Array:
            inputs, outputs = ((), (array,)) if written else ((array,), ())
            return self._arrays(inputs, outputs, where)[0]

        call, arrays = rms_norm_call(
            take, _arguments.number("epsilon", epsilon),
            _arguments.number("weight_offset", weight_offset),
            {"x": x, "residual": residual, "out": out, "weight": weight, "bias": bias,
             "out_scale": out_scale})
        self._comm.queue(c.symm_all_reduce_rms_norm, None, (ctypes.byref(call),), where.handle,
                         arrays)
        return out

    def _root(self, root: int) -> int:
        return integer("root", root, 0, self.ranks - 1)

    def _call(self, function: Any, may_wait: Any, x: Any, out: Any, x_parts: int, out_parts: int,
              op: tuple[int, ...], stream: Any) -> Any:
        where = self._stream(stream)
        source, target = (self._arrays((), (x,), where) * 2 if out is x else
                          self._arrays((x,), (out,), where))
        part, whole, parts = ((source, target, out_parts) if x_parts == 1 else
                              (target, source, x_parts))
        shapes = {part.shape} if x_parts == out_parts else {
            (parts, *part.shape), *((parts * length, *part.shape[1:])
                                    for length in part.shape[:1])}
        if whole.shape not in shapes:
            raise ValueError(
                f"an input of shape {source.shape} does not fit an output of shape {target.shape}, "
                f"for {self.ranks} ranks: {'input' if whole is source else 'output'} must have "
                f"shape {' or '.join(map(str, sorted(shapes)))}")
        self._comm.queue(function, may_wait,
                         (source.address, target.address, math.prod(part.shape),
                          type_number(source.type), *op), where.handle, [source, target])
        return out

    def _arrays(self, inputs: tuple[Any, ...], outputs: tuple[Any, ...],
                stream: CallStream) -> list[Array]:
        """The memory of a call's arrays, which lie on this rank's GPU and have one type."""
        arrays = [memory_of(array, stream) for array in inputs + outputs]
        places = (HOST,) if self._emulated else (SOME_GPU, self.device)
        if any(array.device not in places for array in arrays):
            raise TypeError("an array is on a GPU, but GPUs are emulated: use one in host memory" if
                            self._emulated else f"an array is not on GPU {self.device}")
        if not all(array.writable for array in arrays[len(inputs):]):
            raise ValueError("the output is read-only")
        types = list(dict.fromkeys(array.type for array in arrays))
        if len(types) > 1:
            raise TypeError(f"input and output differ in type: {' and '.join(types)}")
        return arrays

    def _stream(self, stream: Any) -> CallStream:
        if self._emulated:
            return CallStream(self._own_stream if stream is None else
                              _arguments.stream_handle(stream))
        torch, current = sys.modules.get("torch"), None
        if torch is not None and torch.cuda.is_initialized():
            current = torch.cuda.current_stream(self.device)
        if stream is None:
            stream = 0 if current is None else current
        handle = _arguments.stream_handle(stream)
        return CallStream(handle, current if current and handle == current.cuda_stream else None)

    def synchronize(self, stream: Any = None) -> None:
        """Waits for the stream (as in all_reduce()). Raises RankError or SymmError if a kernel gave
        up waiting, and names the rank that it waited for: the results are then wrong, and the
        communicator can only be destroyed."""
        self._comm.synchronize(self._stream(stream).handle)

    def async_error(self) -> str:
        """The failures on any rank so far, or an empty text. Does not wait."""
        return self._comm.async_error()

    def abort(self) -> None:
        """Ends all calls in flight. After that the communicator can only be destroyed."""
        self._comm.abort()

    def destroy(self) -> None:
        """Waits for the calls in flight, and frees the communicator and its windows: arrays of
        empty() are then no longer valid. A second call does nothing."""
        self._comm.destroy()

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, kind: Any, _error: Any, _trace: Any) -> None:
        if kind is not None and self._comm.is_usable():
            self.abort()
        self.destroy()

    def __reduce__(self) -> Any:  # which copy asks, too
        raise TypeError("a communicator cannot be copied or pickled: each rank creates its own")


def empty(shape: int | tuple[int, ...], dtype: Any = "float32") -> Any:
    """Communicator.empty() of the communicator that this thread created last."""
    communicator = getattr(_last, "communicator", lambda: None)()
    if communicator is None:
        raise ValueError("this thread has no communicator: create one first")
    return communicator.empty(shape, dtype)
