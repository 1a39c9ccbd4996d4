"""One spelling for numpy and torch: functions that take arrays of either library and return the same kind.

numpy and torch agree on operators and on most functions, `axis` and `keepdims` included. The functions below cover the
rest. Code that must give the same bits in numpy and in torch on any device uses whole numbers and float64 operations
that round once. It divides by `number`, never by a Python number: torch multiplies by the inverse of a Python number on
a GPU, which rounds twice. `number / array` is correct, `1.0 / array` is not.

torch is not imported here, so that programs that only use numpy do not need it.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = Any
"""A numpy array or a torch tensor."""


def namespace(array: Array) -> Any:
    """Return the module with the functions for this array: numpy or torch."""
    return np if isinstance(array, np.ndarray) else sys.modules["torch"]


def full(like: Array, shape: Sequence[int], value: float, dtype: str = "float64") -> Array:
    """Return an array of this shape filled with a value, on the device of another array."""
    xp = namespace(like)
    return xp.full(tuple(shape), value, dtype=getattr(xp, dtype), **_device(like))


def number(like: Array, value: float) -> Array:
    """Return a float64 array without axes, to divide by."""
    return full(like, (), value)


def arange(like: Array, begin: int, end: int) -> Array:
    """Return begin … end - 1, with the element type and on the device of another array."""
    return namespace(like).arange(begin, end, dtype=like.dtype, **_device(like))


def cast(array: Array, dtype: str) -> Array:
    """Return the array with another element type, such as `float64`."""
    xp = namespace(array)
    return xp.asarray(array, dtype=getattr(xp, dtype))


def to_numpy(array: Array) -> npt.NDArray[Any]:
    """Return the array in numpy, copied from the device if it is on one."""
    return array if isinstance(array, np.ndarray) else np.asarray(array.cpu())


def _device(like: Array) -> dict[str, Any]:
    return {} if isinstance(like, np.ndarray) else {"device": like.device}
