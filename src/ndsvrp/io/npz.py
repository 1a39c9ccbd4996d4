"""`.npz` sets: many instances of one size in arrays, plain floats.

depot_xy (B, 2)      node_xy (B, N, 2)     demand (B, N)      capacity (B,)
depot_tw (B, 2)      node_tw (B, N, 2)     service (B, N)     with time windows
prize (B, N)                                                  with prizes
vehicles (B,)                                                 with a limited fleet
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ndsvrp.errors import InstanceError
from ndsvrp.io.files import PathLike, check_readable, write_atomic
from ndsvrp.metric import Metric
from ndsvrp.problem import Problem

Arrays = dict[str, npt.NDArray[Any]]

REQUIRED = ("depot_xy", "node_xy", "demand", "capacity")
OPTIONAL = ("depot_tw", "node_tw", "service", "prize", "vehicles")
MAX_UNPACKED = 2 * 2**30


def read_arrays(path: PathLike) -> Arrays:
    """The arrays of a set, their names and shapes checked."""
    file = str(path)
    check_readable(path)
    arrays: Arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > MAX_UNPACKED:
            raise InstanceError(f"unpacks to {unpacked / 2**20:,.0f} MiB, too large", file=file)
        with np.load(path, allow_pickle=False) as archive:
            for name in archive.files:
                arrays[name] = archive[name]
    except zipfile.BadZipFile:
        raise InstanceError("is not an .npz archive, or a damaged one", file=file) from None
    except (ValueError, EOFError, OSError, MemoryError, NotImplementedError, zlib.error) as error:
        if isinstance(error, ValueError) and "pickle" in str(error):
            raise InstanceError("holds pickled objects, which are not read", file=file) from None
        raise InstanceError(f"cannot be read ({error})", file=file) from None
    try:
        _check_arrays(arrays)
    except InstanceError as error:
        raise error.located(file) from None
    return arrays


def build(path: PathLike, arrays: Arrays, index: int, metric: Metric) -> Problem:
    """The instance at `index` of a set."""
    stem = Path(path).stem
    one = {name: array[index] for name, array in arrays.items()}
    fields: dict[str, Any] = {
        "coordinates": np.concatenate([one["depot_xy"][None], one["node_xy"]]),
        "demand": _with_depot(one["demand"]),
        "capacity": one["capacity"],
        "name": stem if len(arrays["capacity"]) == 1 else f"{stem}-{index:04d}",
        "metric": metric,
    }
    if "node_tw" in one:
        fields["windows"] = np.concatenate([one["depot_tw"][None], one["node_tw"]])
    for name in ("service", "prize"):
        if name in one:
            fields[name] = _with_depot(one[name])
    try:
        if "vehicles" in one:
            fields["vehicles"] = _whole(one["vehicles"])
        return Problem(**fields)
    except InstanceError as error:
        raise error.located(f"{path}[{index}]") from None


def write_set(path: PathLike, problems: Sequence[Problem]) -> None:
    """Write problems of one size and kind as an `.npz` set, the same bytes for the same problems.

    Only what a set can hold: coordinates, not matrices, and lengths that are not rounded.
    """
    if not problems:
        raise InstanceError("a set needs at least one instance", file=str(path))
    kinds = {_kind(problem) for problem in problems}
    if len(kinds) > 1:
        raise InstanceError("instances of different size or constraints do not make a set", file=str(path))
    for problem in problems:
        if problem.distance is not None or problem.coordinates is None:
            raise InstanceError("a set cannot hold a distance matrix", file=str(path), field="distance")
        if problem.metric is not Metric.NONE:
            what = f"a set is of plain floats, the metric '{problem.metric}' would be lost"
            raise InstanceError(what, file=str(path), field="metric")
    first = problems[0]
    coordinates = np.stack([_given(problem.coordinates) for problem in problems])
    arrays: Arrays = {
        "depot_xy": coordinates[:, 0],
        "node_xy": coordinates[:, 1:],
        "demand": _compact(np.stack([problem.demand[1:] for problem in problems])),
        "capacity": _compact(np.array([problem.capacity for problem in problems])),
    }
    if first.windows is not None:
        windows = np.stack([_given(problem.windows) for problem in problems])
        arrays |= {"depot_tw": windows[:, 0], "node_tw": windows[:, 1:]}
    if first.service is not None:
        arrays["service"] = np.stack([_given(problem.service)[1:] for problem in problems])
    if first.prize is not None:
        arrays["prize"] = np.stack([_given(problem.prize)[1:] for problem in problems])
    if first.vehicles is not None:
        arrays["vehicles"] = np.array([problem.vehicles for problem in problems], dtype=np.int32)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    write_atomic(path, buffer.getvalue())


def _check_arrays(arrays: Arrays) -> None:
    for name in REQUIRED:
        if name not in arrays:
            raise InstanceError("missing", field=name)
    for name in arrays:
        if name not in (*REQUIRED, *OPTIONAL):
            known = ", ".join((*REQUIRED, *OPTIONAL))
            raise InstanceError(f"unknown array, it may state a constraint (known: {known})", field=name)
    for name, other in (("depot_tw", "node_tw"), ("node_tw", "depot_tw")):
        if name in arrays and other not in arrays:
            raise InstanceError(f"missing, {name} is given", field=other)
    if arrays["node_xy"].ndim != 3:
        raise InstanceError(f"has shape {arrays['node_xy'].shape}, expected (B, N, 2)", field="node_xy")
    b, n = arrays["node_xy"].shape[:2]
    if b == 0:
        raise InstanceError("holds no instances", field="node_xy")
    shapes = {
        "depot_xy": (b, 2), "node_xy": (b, n, 2), "demand": (b, n), "capacity": (b,), "depot_tw": (b, 2),
        "node_tw": (b, n, 2), "service": (b, n), "prize": (b, n), "vehicles": (b,),
    }  # fmt: skip
    for name, array in arrays.items():
        if array.dtype.kind not in "iuf":
            raise InstanceError(f"has type {array.dtype}, expected numbers", field=name)
        if array.shape != shapes[name]:
            what = f"has shape {array.shape}, expected {shapes[name]} ({b} instances, {n} customers)"
            raise InstanceError(what, field=name)


def _kind(problem: Problem) -> tuple[Any, ...]:
    optional = (problem.windows, problem.service, problem.prize, problem.vehicles)
    return (problem.customers, *(field is not None for field in optional))


def _given(array: npt.NDArray[np.float64] | None) -> npt.NDArray[np.float64]:
    assert array is not None
    return array


def _with_depot(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate([np.zeros(1, values.dtype), values])


def _whole(value: Any) -> int:
    if not np.isfinite(value) or value != int(value):
        raise InstanceError(f"{value} is not a number of vehicles", field="vehicles")
    return int(value)


def _compact(values: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """Whole numbers as int32, where that loses nothing."""
    whole = values.astype(np.int32, casting="unsafe") if np.all(np.abs(values) < 2**31) else values
    return whole if np.array_equal(whole, values) else values
