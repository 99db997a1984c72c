"""A user's arguments, checked before C sees them: ctypes cuts integers to their lowest bits."""

import math
import operator
from typing import Any

from ._library import OPS, TYPES

INT, UNSIGNED = 2**31 - 1, 2**32 - 1  # the largest numbers of C's types


def integer(name: str, value: Any, least: int, most: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, not an integer") from None
    if not least <= number <= most:
        raise ValueError(f"{name} is {number}: it must be {least} to {most}")
    return number


def number(name: str, value: Any) -> float:
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{name} is {value!r}, not a number")


def text(name: str, value: Any) -> bytes:
    """For C, where a text ends with its first NUL."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, not a text")
    if "\0" in value:
        raise ValueError(f"{name} is {value!r}: it must not contain NUL")
    return value.encode(errors="surrogatepass")


def lengths(shape: Any, least: int | None = 0) -> tuple[int, ...]:
    """The shape of an array: an integer, or some."""
    try:
        found = tuple(operator.index(length)
                      for length in ([shape] if hasattr(shape, "__index__") else shape))
    except TypeError:
        raise TypeError(f"shape is {shape!r}, not an integer or a tuple of integers") from None
    if least is not None and any(length < least for length in found):
        raise ValueError(f"a length in {found} is negative")
    return found


def byte_size(shape: tuple[int, ...], type_name: str) -> int:
    size = max(math.prod(shape), 1) * TYPES[type_name]
    if size >= 1 << 63:
        raise ValueError(f"an array of shape {shape} and type {type_name} has {size} bytes, more "
                         "than any memory")
    return size


def type_name(dtype: Any) -> str:
    """`float32` for torch.float32, numpy.float32, numpy.dtype("float32") and "float32"."""
    name = str(getattr(dtype, "name", getattr(dtype, "__name__", dtype))).removeprefix("torch.")
    if not getattr(dtype, "isnative", True):
        name += " (big-endian)"
    if name not in TYPES:
        raise TypeError(f"elements of type {name} are not supported: use one of {', '.join(TYPES)}")
    return name


def type_number(name: str) -> int:
    """Its number in C."""
    return list(TYPES).index(name)


def operation(op: Any) -> int:
    """Its number in C."""
    if op not in OPS:
        raise ValueError(f"there is no operation {op!r}: use one of {', '.join(OPS)}")
    return OPS.index(op)


def stream_handle(stream: Any) -> int:
    """The cudaStream_t of a stream of PyTorch, CuPy, CUDA Python, or of an integer."""
    handle = getattr(stream, "cuda_stream", getattr(stream, "ptr", stream))
    if hasattr(stream, "__cuda_stream__"):
        version, handle = stream.__cuda_stream__()
        if version != 0:
            raise TypeError(f"{stream!r} has version {version} of __cuda_stream__: symm knows 0")
    if not hasattr(handle, "__index__"):
        raise TypeError(f"stream is {stream!r}: pass a stream of PyTorch, CuPy or CUDA Python, or "
                        "a cudaStream_t as an integer")
    return integer("stream", handle, 0, 2**64 - 1)
