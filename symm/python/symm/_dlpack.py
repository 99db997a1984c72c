"""DLPack's capsules, read in place: the capsule itself then keeps the memory."""

import ctypes
from typing import Any, NamedTuple

HOST_DEVICES = (1, 3)  # kDLCPU and kDLCUDAHost
CUDA, CUDA_MANAGED = 2, 13
_TYPES = {0: "int", 1: "uint", 2: "float", 3: "handle", 4: "bfloat", 5: "complex", 6: "bool"}
_READ_ONLY, _COPIED = 1, 2


class _Tensor(ctypes.Structure):  # DLTensor of dlpack.h
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int), ("device_id", ctypes.c_int),
                ("ndim", ctypes.c_int), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _Versioned(ctypes.Structure):  # DLManagedTensorVersioned; its predecessor begins with _Tensor
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi))


class Exported(NamedTuple):
    """An array that a capsule describes. While the capsule lives, unrenamed, the memory does."""

    capsule: Any
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in elements
    type: str
    device: int
    device_id: int
    writable: bool


def export(array: Any, stream: int) -> Exported:
    """What array.__dlpack__() tells. The producer lets the stream wait for its own work."""
    device, _ = array.__dlpack_device__()
    keywords = {}
    if device in (CUDA, CUDA_MANAGED):
        keywords["stream"] = stream or 1  # the protocol's name of the default stream
    try:  # without a copy: a result in one would be lost
        capsule = array.__dlpack__(max_version=(1, 0), copy=False, **keywords)
    except TypeError:  # the producer is older than DLPack 1.0
        capsule = array.__dlpack__(**keywords)
    flags = 0
    if _is_valid(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(_pointer_of(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise TypeError(f"{type(array).__name__} has version {managed.major} of DLPack: symm "
                            "knows 1")
        tensor, flags = managed.tensor, managed.flags
    else:
        tensor = _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
    kind = _TYPES.get(tensor.code, f"number {tensor.code} of DLPack, bits: ")
    name = kind if kind == "bool" else f"{kind}{tensor.bits}"
    return Exported(capsule, (tensor.data or 0) + tensor.byte_offset,
                    tuple(tensor.shape[:tensor.ndim]),
                    tuple(tensor.strides[:tensor.ndim]) if tensor.strides else None,
                    name if tensor.lanes == 1 else f"{tensor.lanes} lanes of {name}",
                    tensor.device, tensor.device_id, not flags & (_READ_ONLY | _COPIED))
