"""The arguments of all_reduce_rms_norm(), checked, as symm_rms_norm."""

import ctypes
import math
from collections.abc import Callable
from typing import Any

from ._arguments import UNSIGNED, integer, type_number
from ._arrays import Array, without_float8
from ._library import FLOAT8, RmsNorm


def rms_norm_call(take: Callable[[Any, bool], Array], epsilon: float, weight_offset: float,
                  named: dict[str, Any]) -> tuple[RmsNorm, list[Array]]:
    """`take(array, written)` returns an array's memory. `named`: the arrays by symm_rms_norm's
    names; those that may be left out are None."""
    given = {name: array for name, array in named.items() if array is not None}
    is_float8 = "out_scale" in given
    if is_float8:
        given["out"] = without_float8(given["out"])
    arrays = {name: take(array, name in ("residual", "out")) for name, array in given.items()}
    kind, weights = arrays["x"].type, arrays["weight"].type
    for name, types in (("residual", [kind]), ("out", [kind]), ("weight", [kind, "float32"]),
                        ("bias", [weights]), ("out_scale", ["float32"])):
        if name == "out" and is_float8:
            types = ["float8_e4m3fn", "uint8"]
        if name in arrays and arrays[name].type not in types:
            raise TypeError(f"{name} is of type {arrays[name].type}: it must be of type "
                            f"{' or '.join(dict.fromkeys(types))}")
    _check_shapes({name: array.shape for name, array in arrays.items()})
    shape = arrays["x"].shape
    call = RmsNorm(size=ctypes.sizeof(RmsNorm), epsilon=epsilon, weight_offset=weight_offset,
                   rows=integer("rows", math.prod(shape[:-1]), 0, UNSIGNED),
                   hidden=integer("hidden", shape[-1], 0, UNSIGNED), type=type_number(kind),
                   weight_type=type_number(weights),
                   out_type=FLOAT8 if is_float8 else type_number(kind),
                   **{name: array.address for name, array in arrays.items()})
    return call, list(arrays.values())


def _check_shapes(shapes: dict[str, tuple[int, ...]]) -> None:
    if math.prod(shapes.pop("out_scale", ())) != 1:
        raise ValueError("out_scale has more than one element, or none")
    rows = {name: shape for name, shape in shapes.items() if name not in ("weight", "bias")}
    if len(set(rows.values())) > 1 or not shapes["x"] or any(
            shape != shapes["x"][-1:] for name, shape in shapes.items() if name not in rows):
        raise ValueError(", ".join(f"{name} {shape}" for name, shape in shapes.items()) +
                         ": x, residual and out must have one shape (..., hidden), and weight and "
                         "bias (hidden,)")
