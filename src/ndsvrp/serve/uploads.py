"""From the body of a request to a problem, and from a problem to what the page draws."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np

from ndsvrp.best_known import best_known
from ndsvrp.errors import collected_warnings
from ndsvrp.io.reader import read_content
from ndsvrp.problem import Problem
from ndsvrp.search.plane import scaled_down
from ndsvrp.variants import variant_of

SCALED = 1_000  # most customers of a problem with a matrix alone for which positions are estimated
DIGITS = 9  # of numbers for the page


@dataclass(frozen=True)
class Upload:
    """An instance file as it was sent."""

    body: bytes
    name: str
    rounding: str = "auto"
    index: int | None = None
    additions: Mapping[str, Any] = field(
        default_factory=dict
    )  #: other arguments of `ndsvrp.read`: capacity, columns, …

    def read(self) -> Problem:
        """Return the problem. Its client was told the warnings when it was accepted."""
        return self.read_with_warnings()[0]

    def read_with_warnings(self) -> tuple[Problem, list[str]]:
        """Return the problem, and what a client should know about its file. All messages name the file.

        The one place where the service reads instances.
        """
        with collected_warnings() as messages:
            content = plain_name(self.name), self.body, self.rounding, self.index
            return read_content(*content, **self.additions), messages


def plain_name(name: str) -> str:
    """Return the name of a file for messages and pages: without folders, in any script, without marks of HTML."""
    file = PurePath(name.replace("\\", "/")).name.lstrip(".")
    plain = "".join(letter if letter.isprintable() and letter not in "<>&\"'" else "_" for letter in file)
    stem, dot, ending = plain.rpartition(".")
    return f"{stem[:80]}{dot}{ending[:10]}" if stem else plain[:80] or "instance"


def safe_name(name: str) -> str:
    """Return the name of a file for headers: that of `plain_name` in harmless ASCII characters."""
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", plain_name(name))


def drawing(problem: Problem) -> dict[str, Any]:
    """Return what the page needs of a problem."""
    known = best_known(problem)
    points = problem.coordinates
    estimated = points is None and problem.distance is not None and problem.customers <= SCALED
    if estimated and problem.distance is not None:
        points = scaled_down(problem.distance)
    return {
        "name": problem.name,
        "variant": variant_of(problem).title,
        "customers": problem.customers,
        "metric": str(problem.metric),
        "decimals": len(str(problem.metric.scale)) - 1 if problem.metric.is_integer else 4,
        "capacity": problem.capacity,
        "vehicles": problem.vehicles,
        "coordinates": None if points is None else short(points),
        "estimated": estimated,
        "geographic": problem.geographic,
        "clock_times": problem.clock_times,
        "names": None if problem.names is None else list(problem.names),
        "demand": short(problem.demand),
        "windows": None if problem.windows is None else short(problem.windows),
        "service": None if problem.service is None else short(problem.service),
        "prize": None if problem.prize is None else short(problem.prize),
        "best_known": None if known is None else {"cost": known.cost, "date": known.date, "set": known.set},
    }


def short(values: Any) -> Any:
    """Return numbers as lists of plain numbers with few digits."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, list):
        return [short(value) for value in values]
    return int(values) if float(values).is_integer() and abs(values) < 1e15 else float(f"{values:.{DIGITS}g}")
