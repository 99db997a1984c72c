"""libsymm.so: the functions of symm.h, and their failures as exceptions."""

import ctypes
import sys
from pathlib import Path

#: Types of elements, by PyTorch's and NumPy's names, and their sizes in bytes; in symm.h's order.
TYPES = {"int8": 1, "uint8": 1, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "float16": 2,
         "float32": 4, "float64": 8, "bfloat16": 2}
#: Its number in symm.h: only the output of an AllReduce with RMSNorm may have it.
FLOAT8 = len(TYPES)
#: Operations, in symm.h's order.
OPS = ("sum", "prod", "max", "min", "avg")


class SymmError(RuntimeError):
    """A call failed: the driver or the system refused something, or a wait timed out."""


class RankError(SymmError):
    """Another rank has failed, is gone, did not come, or makes a different call."""


Allgather = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
                             ctypes.c_size_t)


class Options(ctypes.Structure):
    """symm_options."""

    _fields_ = [("size", ctypes.c_size_t), ("device", ctypes.c_int), ("timeout", ctypes.c_double),
                ("max_blocks", ctypes.c_uint)]


class RmsNorm(ctypes.Structure):
    """symm_rms_norm."""

    _fields_ = [("size", ctypes.c_size_t),
                *((name, ctypes.c_void_p)
                  for name in ("x", "residual", "out", "weight", "bias", "out_scale")),
                ("rows", ctypes.c_uint), ("hidden", ctypes.c_uint), ("type", ctypes.c_int),
                ("weight_type", ctypes.c_int), ("out_type", ctypes.c_int),
                ("epsilon", ctypes.c_float), ("weight_offset", ctypes.c_float)]


def _open() -> ctypes.CDLL:
    # An editable installation has the sources in one folder, and the library in another.
    folders = list(sys.modules[__package__].__path__)
    for path in (Path(folder, "libsymm.so") for folder in folders):
        if path.exists():
            try:
                return ctypes.CDLL(str(path))
            except OSError as error:
                raise ImportError(f"symm cannot load its library: {error}") from error
    raise ImportError(
        f"libsymm.so is not in {' or '.join(folders)}: run `pip install .` in the repository's "
        "folder, and start Python where it does not find the package's sources first")


def _load() -> ctypes.CDLL:
    library = _open()
    pointer, integer, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
    options, to_size = ctypes.POINTER(Options), ctypes.POINTER(ctypes.c_size_t)
    for parameters, *names in (
            ([ctypes.POINTER(integer)], "is_emulated"),
            ([pointer, integer, integer, ctypes.c_char_p, options], "comm_create"),
            ([pointer, options], "comm_create_from_launcher"),
            ([pointer, integer, integer, Allgather, pointer, options], "comm_create_by_allgather"),
            ([pointer], "comm_rank", "comm_ranks", "comm_device", "comm_stream", "comm_async_error",
             "comm_abort", "comm_finish", "comm_destroy"),
            ([pointer, ctypes.c_double], "comm_finish_within"),
            ([pointer, size, pointer], "window_allocate"),
            ([pointer, pointer], "window_release", "comm_synchronize"),
            ([pointer, pointer, pointer], "comm_follow"),
            ([pointer, pointer, to_size], "comm_mark"),
            ([pointer, to_size], "comm_passed"),
            ([pointer, pointer, pointer, size, integer, integer, pointer], "all_reduce",
             "reduce_scatter", "all_reduce_may_wait", "reduce_scatter_may_wait"),
            ([pointer, pointer, pointer, size, integer, pointer], "all_gather",
             "all_gather_may_wait"),
            ([pointer, pointer, pointer, size, integer, integer, pointer], "broadcast",
             "broadcast_may_wait"),
            ([pointer, pointer, pointer, size, integer, integer, integer, pointer], "reduce",
             "reduce_may_wait"),
            ([pointer, ctypes.POINTER(RmsNorm), pointer], "all_reduce_rms_norm")):
        for name in names:
            getattr(library, f"symm_{name}").argtypes = parameters
    library.symm_comm_stream.restype = pointer
    library.symm_last_error.restype = ctypes.c_char_p
    return library


c = _load()


def last_error() -> str:
    """Why this thread's last failed call failed."""
    return bytes(c.symm_last_error()).decode(errors="replace")


def check(result: int) -> None:
    """Raises what a symm_result says. After ValueError the call has changed nothing."""
    if result != 0:
        raise {1: ValueError, 2: RankError}.get(result, SymmError)(last_error())


def is_emulated() -> bool:
    """Whether GPUs are emulated: no GPU, a build without nvcc, or SYMM_DRIVER=emulated."""
    emulated = ctypes.c_int()
    check(c.symm_is_emulated(emulated))
    return emulated.value != 0
