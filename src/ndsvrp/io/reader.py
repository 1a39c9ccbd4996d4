"""Read problems from files of any supported format."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Never, overload

from ndsvrp.errors import InstanceError, NdsError
from ndsvrp.io.additions import Additions
from ndsvrp.io.files import MIB, PathLike, check_content, check_name, decode, is_standard, read_bytes
from ndsvrp.io.folders import instance_files, is_folder
from ndsvrp.io.forms import ENDINGS, form_of
from ndsvrp.io.npz import ProblemSet
from ndsvrp.io.problem_json import read_problem_json
from ndsvrp.io.solomon import read_solomon
from ndsvrp.io.stops import read_stops
from ndsvrp.io.vrp import read_vrp
from ndsvrp.metric import Metric
from ndsvrp.model import warn_of_degrees
from ndsvrp.problem import Problem
from ndsvrp.records import require_whole
from ndsvrp.scope import refuse_keyword

STATED = tuple(field.name for field in fields(Additions))
MAX_TABLE = 64 * MIB  # of a table or JSON, whose cells take many times their size as objects


def read(
    path: PathLike,
    metric: str = "auto",
    index: int | None = None,
    *,
    ignore_fields: Iterable[str] = (),
    columns: Mapping[str, str] | None = None,
    capacity: float | None = None,
    vehicles: int | None = None,
    max_distance: float | None = None,
    max_duration: float | None = None,
    vehicle_cost: float | None = None,
    distance: PathLike | None = None,
    duration: PathLike | None = None,
    **unknown: Never,
) -> Problem:
    """Read one instance from a file, from a set or a folder, or from standard input (`-`).

    Formats: VRPLIB (`.vrp`), Solomon or Gehring–Homberger text (`.txt`), a table of stops (`.csv`), a problem as JSON
    (`.json`), a set (`.npz`). Other endings, and standard input, are recognised by their content.

    `metric` says how lengths are rounded: a `Metric` value, or `auto`, which picks the convention of the file:
    EUC_2D with windows `dimacs`, with a limit on the duration of routes alone `none`, else `round`; Solomon text
    `dimacs`; an explicit matrix `round` if all is whole, else `none`; others what they state, or `none`.
    `problem.metric` is the chosen one. `index` (from 0) picks the instance of a set or folder; one with a single
    instance does not need it.

    A file with an unknown field or section is refused, because it may state a constraint, unless `ignore_fields` names
    it. `columns` maps our names of columns to those of a table: `{"demand": "kg"}`. `capacity`, `vehicles`,
    `max_distance`, `max_duration` and `vehicle_cost` complete a table, or replace what a file states. `distance` and
    `duration` name files with a matrix (`.csv`, `.npy`).
    """
    _refuse_unknown("read", unknown)
    if isinstance(path, bytes | dict) or hasattr(path, "read"):
        kind = type(path).__name__
        raise NdsError(f"a file is given by its path, got {kind} (ndsvrp.read_content(name, data) takes bytes)")
    additions = Additions(
        capacity, vehicles, max_distance, max_duration, vehicle_cost, distance, duration, columns or {}
    )
    return _chosen(path, _instances(path, _metric(metric), _names(ignore_fields), additions), index)


def read_content(
    name: str,
    data: bytes,
    metric: str = "auto",
    index: int | None = None,
    *,
    ignore_fields: Iterable[str] = (),
    **additions: Any,
) -> Problem:
    """Read one instance from the content of a file, such as the body of a request. No file is opened.

    `name` tells the format by its ending, as a path would, and stands in messages. The other arguments are those of
    `read`; do not pass on `distance` and `duration` of a request, which name files.
    """
    if not isinstance(data, bytes):
        hint = " (text.encode())" if isinstance(data, str) else ""
        raise NdsError(f"read_content takes a name and bytes, got {type(data).__name__}{hint}")
    _refuse_unknown("read_content", [word for word in additions if word not in STATED])
    check_content(name, data)
    return _chosen(name, _of_file(name, data, _metric(metric), _names(ignore_fields), Additions(**additions)), index)


def read_set(
    path: PathLike, metric: str = "auto", *, ignore_fields: Iterable[str] = (), **additions: Any
) -> Sequence[Problem]:
    """Read all instances of an `.npz` set or of a folder; any other instance file is a set of one.

    The arguments are those of `read`. Instances of a set beyond the first thousand are built, and checked, when they
    are asked for.
    """
    _refuse_unknown("read_set", [name for name in additions if name not in STATED])
    made = Additions(**{name: value for name, value in additions.items() if value is not None})
    return _instances(path, _metric(metric), _names(ignore_fields), made)


def _instances(
    path: PathLike, metric: Metric | None, ignore: tuple[str, ...], additions: Additions
) -> Sequence[Problem]:
    """Return the instances of a file or folder."""
    check_name(path)
    if is_folder(path) and Path(path).suffix.lower() not in ENDINGS:
        return [_one(file, read_bytes(file), metric, ignore, additions) for file in instance_files(path)]
    return _of_file(path, read_bytes(path), metric, ignore, additions)


def _of_file(
    path: PathLike, data: bytes, metric: Metric | None, ignore: tuple[str, ...], additions: Additions
) -> Sequence[Problem]:
    """Return the instances in the content of a file."""
    if form_of(path, data) == "npz":
        problems = ProblemSet(path, metric or Metric.NONE, data)
        if additions == Additions():
            return problems
        return Completed(path, problems, additions)
    return [_one(path, data, metric, ignore, additions)]


def _chosen(path: PathLike, instances: Sequence[Problem], index: int | None) -> Problem:
    """Return one of the instances of a file, set or folder."""
    size = len(instances)
    if index is not None:
        require_whole("index", index)
    if index is None and size > 1:
        raise InstanceError(f"holds {size} instances, choose one by its index (0 … {size - 1})", file=str(path))
    if not 0 <= (index or 0) < size:
        what = "the file holds one (0)" if size == 1 else f"there are {size} (0 … {size - 1})"
        raise InstanceError(f"no instance {index}, {what}", file=str(path))
    return instances[index or 0]


def _one(path: PathLike, data: bytes, metric: Metric | None, ignore: tuple[str, ...], additions: Additions) -> Problem:
    """Return the problem in the content of a file."""
    file, stem = str(path), "problem" if is_standard(path) else Path(path).stem
    form = form_of(path, data)
    if form in ("csv", "json") and len(data) > MAX_TABLE:
        what = f"is {len(data) / MIB:,.0f} MiB large, a table or JSON has at most {MAX_TABLE // MIB} MiB"
        raise InstanceError(f"{what}; large matrices are .npy files (--distance, --duration)", file=file)
    text = decode(path, data)
    try:
        if form == "csv":
            problem = read_stops(text, metric, stem, file, additions, ignore)
        elif form == "json":
            problem = read_problem_json(text, metric, stem, file, additions)
        elif form == "solomon":
            problem = additions.apply(read_solomon(text, metric, stem, file))
        else:
            problem = additions.apply(read_vrp(text, metric, stem, file, ignore))
    except InstanceError as error:
        raise error if error.file is not None else error.located(file) from None
    if form == "vrp" and problem.coordinates is not None and problem.distance is None:
        warn_of_degrees(problem.coordinates, file)
    return problem


class Completed(Sequence[Problem]):
    """A set with additions, made when an instance is asked for: a set may be large."""

    def __init__(self, path: PathLike, problems: Sequence[Problem], additions: Additions) -> None:
        self._path, self._problems, self._additions = path, problems, additions

    def __len__(self) -> int:
        return len(self._problems)

    @overload
    def __getitem__(self, index: int) -> Problem: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Problem]: ...
    def __getitem__(self, index: int | slice) -> Problem | Sequence[Problem]:
        if isinstance(index, slice):
            return Completed(self._path, self._problems[index], self._additions)
        return _located(self._path, self._additions, self._problems[index])


def _located(path: PathLike, additions: Additions, problem: Problem) -> Problem:
    try:
        return additions.apply(problem)
    except InstanceError as error:
        raise error if error.file is not None else error.located(str(path)) from None


def _refuse_unknown(call: str, names: Iterable[str]) -> None:
    for name in names:
        refuse_keyword(call, name, ("metric", *(() if call == "read_set" else ("index",)), "ignore_fields", *STATED))


def _names(fields: Iterable[str]) -> tuple[str, ...]:
    """Return the names of fields; raise for one text, whose letters would be names."""
    if isinstance(fields, str) or not isinstance(fields, Iterable):
        raise NdsError(f"ignore_fields must be a list of names, got {type(fields).__name__}")
    return tuple(fields)


def _metric(metric: str) -> Metric | None:
    """Return the metric by its name; None for `auto`."""
    if metric == "auto":
        return None
    if metric not in list(Metric):
        raise InstanceError(f"unknown metric '{metric}' (known: auto, {', '.join(Metric)})")
    return Metric(metric)
