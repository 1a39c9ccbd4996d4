"""`.npz` sets: many instances of one size and with the same constraints in arrays, plain floats.

depot_xy (B, 2)      node_xy (B, N, 2)     demand (B, N)      capacity (B,)
depot_tw (B, 2)      node_tw (B, N, 2)     service (B, N)     with time windows
prize (B, N)                                                  with prizes
vehicles (B,)                                                 with a limited fleet

The constraint records name the arrays: `Field.arrays`.
"""

import io
import math
import re
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ndsvrp.constraints import FIELDS, Field
from ndsvrp.errors import InstanceError
from ndsvrp.io.files import MIB, PathLike, check_name, is_standard, read_bytes, write_atomic
from ndsvrp.io.forms import ENDINGS, warn_of_losses
from ndsvrp.metric import Metric
from ndsvrp.problem import Problem, require_problem, require_problems
from ndsvrp.text import printable

Arrays = dict[str, npt.NDArray[Any]]
Header = tuple[tuple[int, ...], bool, np.dtype[Any], int]

REQUIRED = ("depot_xy", "node_xy", *(name for field in FIELDS if field.required for name in field.arrays))
KNOWN = tuple(dict.fromkeys((*REQUIRED, *(name for field in FIELDS for name in field.arrays))))
MAX_UNPACKED = 512 * MIB
SIZE = rb"(?:0|[1-9]\d{0,17})"
USUAL = re.compile(  # of numbers, in version 1.0 of the format
    rb"\x93NUMPY\x01\x00(?P<length>[\x00-\xff]{2})\{'descr': '(?P<dtype>[<|](?:[iu][1248]|f[248]))', "
    rb"'fortran_order': (?P<fortran>False|True), 'shape': \((?P<shape>|%b,|%b(?:, %b)+)\), \} *\n" % (SIZE, SIZE, SIZE)
)
CHECKED = 1000  # instances of a set that are built at once, so that a bad one is refused before a search


def read_arrays(path: PathLike, data: bytes | None = None) -> Arrays:
    """Return the arrays of a set, with names and shapes checked. `data`: its content, if that was read before."""
    arrays = read_members(path, data)
    try:
        check_arrays(arrays)
    except InstanceError as error:
        raise error.located(str(path)) from None
    return arrays


def read_members(path: PathLike, data: bytes | None = None) -> Arrays:
    """Return the arrays of any `.npz` archive by their names. Pickled objects are refused."""
    content = io.BytesIO(read_bytes(path) if data is None else data)
    try:
        return _unpack(content)
    except InstanceError as error:
        raise error.located(str(path)) from None


def _unpack(data: io.BytesIO) -> Arrays:
    try:
        with zipfile.ZipFile(data) as archive:
            entries = archive.infolist()
            if (unpacked := sum(entry.file_size for entry in entries)) > MAX_UNPACKED:
                raise InstanceError(f"unpacks to {unpacked / MIB:,.0f} MiB, too large")
            arrays: Arrays = {}
            for entry in entries:
                name = entry.filename.removesuffix(".npy")
                if name in arrays:
                    raise InstanceError("given twice", field=printable(name))
                with archive.open(entry) as member:
                    content = member.read(entry.file_size + 1)
                arrays[name] = parse_array(content)
            return arrays
    except InstanceError:
        raise
    except zipfile.BadZipFile:
        raise InstanceError("is not an .npz archive, or a damaged one") from None
    except Exception as error:  # damaged archives and arrays: zipfile, its decompressors and numpy raise anything
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InstanceError(f"cannot be read ({reason})") from None


def parse_array(content: bytes) -> npt.NDArray[Any]:
    """Return the array in the bytes of an `.npy` file. Its header is compared with its size before memory is taken."""
    shape, fortran, dtype, begin = _usual_header(content) or _header(content)
    if dtype.hasobject:
        raise InstanceError("holds pickled objects, which are not read")
    if math.prod(shape) * dtype.itemsize != len(content) - begin:
        raise ValueError(f"an array of shape {shape} in {len(content)} bytes")
    array: npt.NDArray[Any] = np.frombuffer(content, dtype, offset=begin)
    return array.reshape(shape, order="F" if fortran else "C")


def _usual_header(content: bytes) -> Header | None:
    """Return the header if it is written as numpy writes it; numpy takes ten times as long, as it evaluates Python."""
    found = USUAL.match(content)
    if found is None or found.end() != 10 + int.from_bytes(found["length"], "little"):
        return None
    shape = tuple(int(size) for size in found["shape"].split(b",") if size.strip())
    return shape, found["fortran"] == b"True", np.dtype(found["dtype"].decode()), found.end()


def _header(content: bytes) -> Header:
    """Return shape, order and type of an array, and where its numbers begin."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    else:  # 3.0 is for names of fields, which numbers have not
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
    return shape, fortran, dtype, file.tell()


def build(path: PathLike, arrays: Arrays, index: int, metric: Metric) -> Problem:
    """Return the instance at `index` of a set."""
    stem = "problem" if is_standard(path) else Path(path).stem
    one = {name: array[index] for name, array in arrays.items()}
    fields: dict[str, Any] = {field.name: _values(field, one) for field in FIELDS if field.arrays[0] in one}
    fields |= {
        "coordinates": np.concatenate([one["depot_xy"][None], one["node_xy"]]),
        "name": stem if len(arrays["capacity"]) == 1 else f"{stem}-{index:04d}",
        "metric": metric,
    }
    try:
        return Problem(**fields)
    except InstanceError as error:
        raise error.located(f"{path}[{index}]") from None


class ProblemSet(Sequence[Problem]):
    """The instances of a set. Those beyond the first thousand are built, and checked, when they are asked for."""

    def __init__(self, path: PathLike, metric: Metric, data: bytes | None = None) -> None:
        self._path, self._metric = path, metric
        self._arrays = read_arrays(path, data)
        self._first = [self._build(index) for index in range(min(CHECKED, len(self)))]

    def __len__(self) -> int:
        return len(self._arrays["capacity"])

    @overload
    def __getitem__(self, index: int) -> Problem: ...
    @overload
    def __getitem__(self, index: slice) -> list[Problem]: ...
    def __getitem__(self, index: int | slice) -> Problem | list[Problem]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        position = range(len(self))[index]
        return self._first[position] if position < len(self._first) else self._build(position)

    def _build(self, index: int) -> Problem:
        return build(self._path, self._arrays, index, self._metric)


def write_set(path: PathLike, problems: Iterable[Problem]) -> None:
    """Write problems of one size and with the same constraints as an `.npz` set.

    The same problems give the same bytes. A set holds coordinates, not matrices, and lengths that are not rounded.
    """
    check_name(path)
    if ENDINGS.get(suffix := Path(path).suffix.lower(), "npz") != "npz":  # would be read in another format
        raise InstanceError(f"a set is written as .npz, not as '{suffix}'", file=str(path))
    problems = require_problems("write_set", problems)
    for problem in problems:
        require_problem("write_set", problem)
    if not problems:
        raise InstanceError("a set needs at least one instance", file=str(path))
    present = [[field for field in FIELDS if getattr(problem, field.name) is not None] for problem in problems]
    if any(problem.customers != problems[0].customers for problem in problems) or any(p != present[0] for p in present):
        raise InstanceError("instances of different size or constraints do not make a set", file=str(path))
    coordinates = []
    for problem in problems:
        if problem.distance is not None or problem.coordinates is None:
            raise InstanceError("a set cannot hold a distance matrix", file=str(path), field="distance")
        if problem.metric is not Metric.NONE:
            what = f"a set is of plain floats, the metric '{problem.metric}' would be lost"
            raise InstanceError(f"{what} (--round none, or metric= in Python)", file=str(path), field="metric")
        coordinates.append(problem.coordinates)
    points = np.stack(coordinates)
    arrays: Arrays = {"depot_xy": points[:, 0], "node_xy": points[:, 1:]}
    for field in present[0]:
        arrays |= _columns(field, np.stack([getattr(problem, field.name) for problem in problems]))
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    write_atomic(path, buffer.getvalue())
    warn_of_losses(path, problems)


def _values(field: Field, one: Arrays) -> Any:
    """Return the values of a field in one instance."""
    customers = one[field.arrays[-1]]
    if not field.columns:
        return customers
    depot = one[field.arrays[0]] if len(field.arrays) > 1 else np.zeros(customers.shape[1:], customers.dtype)
    return np.concatenate([depot[None], customers])


def _columns(field: Field, values: npt.NDArray[Any]) -> Arrays:
    """Return the arrays of a field for a set. values: (B, …)."""
    values = values if field.unit else _compact(values)
    if not field.columns:
        return {field.arrays[0]: values}
    return {field.arrays[0]: values[:, 0], field.arrays[-1]: values[:, 1:]}


def check_arrays(arrays: Arrays) -> None:
    """Raise unless names and shapes are those of a set."""
    for name in REQUIRED:
        if name not in arrays:
            raise InstanceError("missing", field=name)
    for name in arrays:
        if name not in KNOWN:
            what = f"unknown array, it may state a constraint (known: {', '.join(KNOWN)})"
            raise InstanceError(what, field=printable(name))
    for field in FIELDS:
        for name, other in zip(field.arrays, reversed(field.arrays), strict=True):
            if name in arrays and other not in arrays:
                raise InstanceError(f"missing, {name} is given", field=other)
    if arrays["node_xy"].ndim != 3:
        raise InstanceError(f"has shape {arrays['node_xy'].shape}, expected (B, N, 2)", field="node_xy")
    b, n = arrays["node_xy"].shape[:2]
    if b == 0:
        raise InstanceError("holds no instances", field="node_xy")
    shapes: dict[str, tuple[int, ...]] = {"depot_xy": (b, 2), "node_xy": (b, n, 2)}
    for field in FIELDS:
        shapes[field.arrays[0]] = (b, *field.shape(n)[1:])
        shapes[field.arrays[-1]] = (b, *field.shape(n))
    for name, array in arrays.items():
        if array.dtype.kind not in "iuf":
            raise InstanceError(f"has type {array.dtype}, expected numbers", field=name)
        if array.shape != shapes[name]:
            what = f"has shape {array.shape}, expected {shapes[name]} ({b} instances, {n} customers)"
            raise InstanceError(what, field=name)


def _compact(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return whole numbers as int32 if that loses nothing."""
    whole = values.astype(np.int32, casting="unsafe") if np.all(np.abs(values) < 2**31) else values
    return whole if np.array_equal(whole, values) else values
