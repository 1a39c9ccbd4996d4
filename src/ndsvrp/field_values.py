"""Values that a caller gives for the fields of a problem: checked, and converted to plain Python or float64.

Each function returns what the problem keeps, or raises an InstanceError that names the field.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ndsvrp.constraints import Field
from ndsvrp.errors import InstanceError
from ndsvrp.metric import Floats
from ndsvrp.text import printable

LARGEST = 1e150  # of all numbers: their squares are finite


def checked_field(field: Field, value: Any, nodes: int) -> Floats | float | int:
    """Return the value of a field of a constraint: an array, a number, or a count."""
    if value is None:
        raise InstanceError("missing, must not be None", field=field.name)
    if field.count:
        return checked_count(field.name, value)
    array = checked_array(field.name, value, field.shape(nodes), finite=field.columns > 0)
    return array if field.columns else float(array)


def checked_array(field: str, value: npt.ArrayLike, shape: tuple[int, ...] | None, *, finite: bool = True) -> Floats:
    """Return a read-only copy in float64 of this shape, if one is given."""
    array = _as_floats(field, value)
    if shape is not None and array.shape != shape:
        raise InstanceError(f"has shape {array.shape}, expected {shape}", field=field)
    if not np.all(np.abs(array) <= LARGEST):  # nan is not
        _refuse_large(field, array, finite=finite)
    array.flags.writeable = False
    return array


def _refuse_large(field: str, array: Floats, *, finite: bool) -> None:
    """Raise for numbers that are too large and, if `finite`, for those that are infinite or nan."""
    if finite and not np.all(np.isfinite(array)):
        node, *others = np.argwhere(~np.isfinite(array))[0].tolist()
        where = f"from node {node} to node {others[0]}" if field in ("distance", "duration") else f"node {node}"
        raise InstanceError(f"not a finite number ({where})", field=field, node=node)
    if np.any(huge := (np.abs(array) > LARGEST) & np.isfinite(array)):
        first = int(np.argwhere(huge)[0][0]) if array.ndim else None
        who = "" if first is None else f" (node {first})"
        raise InstanceError(f"{array[huge].flat[0]:g} is too large{who}", field=field, node=first)


def _as_floats(field: str, value: npt.ArrayLike) -> Floats:
    """Return a copy in float64; raise for what are no numbers, though numpy would make floats of them."""
    _refuse_masked(field, value)
    try:
        given = np.asarray(value)
        if given.dtype.kind in "Mmc":  # dates, spans of time, complex numbers
            raise TypeError(given.dtype)
        with np.errstate(over="ignore"):  # of wider floats, which become infinite
            numbers = given if given.dtype.kind in "iuf" else value
            array = np.array(numbers, dtype=np.float64)
        if given.dtype.kind in "USb":  # text and truth
            raise TypeError(given.dtype)
        if given.dtype.kind == "O" and (wrong := [each for each in given.flat if isinstance(each, str | bytes | bool)]):
            raise TypeError(repr(wrong[0]))
    except Exception as error:  # arrays of other libraries raise anything
        why = "rows of different lengths" if "inhomogeneous" in str(error) else str(error).partition("\n")[0]
        raise InstanceError(f"not numbers ({why})", field=field) from None
    return array


def _refuse_masked(field: str, value: Any) -> None:
    """Raise for masked values: numpy would use what they hide."""
    parts = value if isinstance(value, list | tuple) else (value,)
    if any(map(np.ma.is_masked, parts)):
        raise InstanceError("has masked values, where a number is needed", field=field)


def checked_count(field: str, value: Any) -> int:
    """Return a whole number of at least 1."""
    _refuse_masked(field, value)
    if np.ndim(value) > 0:
        raise InstanceError(f"is one number, got {type(value).__name__}", field=field)
    try:
        count = int(value)
        is_whole = bool(count == value)
    except (TypeError, ValueError, OverflowError):  # text, nan, infinity
        count, is_whole = 0, False
    if count < 1 or not is_whole or isinstance(value, bool | np.bool_):
        given = repr(value) if isinstance(value, str | bool) else count if is_whole else value
        raise InstanceError(f"{given} is not a number of {field}", field=field)
    return count


def checked_switch(field: str, value: Any) -> bool:
    """Return True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InstanceError(f"must be True or False, got {type(value).__name__}", field=field)
    return bool(value)


def checked_names(names: Any, nodes: int) -> tuple[str, ...]:
    """Return the names of depot and customers, which are text and differ."""
    if isinstance(names, str | set | frozenset) or not hasattr(names, "__iter__"):
        raise InstanceError(f"must be a list of text, got {type(names).__name__}", field="names")
    names, first = tuple(names), dict[str, int]()
    if len(names) != nodes:
        raise InstanceError(f"has {len(names)} entries, expected {nodes} (the depot first)", field="names")
    for node, name in enumerate(names):
        if not isinstance(name, str):  # numbers of a data frame, say
            raise InstanceError(f"{name!r} is not text, as a name must be (node {node})", field="names", node=node)
        if not name.strip():
            raise InstanceError(f"{name!r} is not a name (node {node})", field="names", node=node)
        if name in first:
            what = f"'{printable(name)}' is given to node {first[name]} and to node {node}"
            raise InstanceError(what, field="names", node=node)
        first[name] = node
    return tuple(str(name) for name in names)  # numpy's own strings become plain ones
