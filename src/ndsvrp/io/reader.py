"""Read problems from files of any supported format."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from ndsvrp.errors import InstanceError
from ndsvrp.io.files import PathLike, check_name, read_text
from ndsvrp.io.npz import ProblemSet, build, read_arrays
from ndsvrp.io.solomon import is_solomon, read_solomon
from ndsvrp.io.vrp import read_vrp
from ndsvrp.metric import Metric
from ndsvrp.problem import Problem


def read(
    path: PathLike, metric: str = "auto", index: int | None = None, *, ignore_fields: Iterable[str] = ()
) -> Problem:
    """Read one instance: VRPLIB (`.vrp`), Solomon or Gehring–Homberger text, or one of an `.npz` set.

    `metric` says how lengths are rounded: a `Metric` value, or `auto`, which picks the convention of the file:
    EUC_2D without windows `round`, with windows `dimacs`; Solomon text `dimacs`; an explicit matrix `round` if all
    is whole, else `none`; `.npz` `none`. `problem.metric` is the chosen one. `index` (from 0) picks the instance
    of a set; a set with one instance does not need it.

    A VRPLIB file with an unknown field or section is refused, because it may state a constraint, unless
    `ignore_fields` names it.
    """
    picked = _metric(metric)
    check_name(path)
    if Path(path).suffix.lower() == ".npz":
        arrays = read_arrays(path)
        size = len(arrays["capacity"])
        if index is None and size > 1:
            raise InstanceError(f"holds {size} instances, choose one by its index (0 … {size - 1})", file=str(path))
        if not 0 <= (index or 0) < size:
            raise InstanceError(f"no instance {index}, there are {size} (0 … {size - 1})", file=str(path))
        return build(path, arrays, index or 0, picked or Metric.NONE)
    text = read_text(path)
    if index not in (None, 0):
        raise InstanceError(f"no instance {index}, the file holds one (0)", file=str(path))
    try:
        if _is_solomon(path, text):
            return read_solomon(text, picked, Path(path).stem, str(path))
        return read_vrp(text, picked, Path(path).stem, str(path), ignore_fields)
    except InstanceError as error:
        raise error.located(str(path)) from None


def read_set(path: PathLike, metric: str = "auto", *, ignore_fields: Iterable[str] = ()) -> Sequence[Problem]:
    """Read all instances of an `.npz` set; any other instance file is a set of one.

    Instances of a set beyond the first thousand are built, and checked, when they are asked for.
    """
    if Path(path).suffix.lower() != ".npz":
        return [read(path, metric, ignore_fields=ignore_fields)]
    return ProblemSet(path, _metric(metric) or Metric.NONE)


def _metric(metric: str) -> Metric | None:
    """Return the metric by its name; None for `auto`."""
    if metric == "auto":
        return None
    if metric not in list(Metric):
        raise InstanceError(f"unknown metric '{metric}' (known: auto, {', '.join(Metric)})")
    return Metric(metric)


def _is_solomon(path: PathLike, text: str) -> bool:
    suffix = Path(path).suffix.lower()
    return suffix != ".vrp" and (is_solomon(text) or (suffix == ".txt" and "_SECTION" not in text.upper()))
