"""Best known costs of literature instances, with their date and source (`best_known.csv`)."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ndsvrp.constraints import CAPACITY, FLEET, PRIZES, TIME_WINDOWS, constraints_of
from ndsvrp.metric import Metric
from ndsvrp.problem import Problem


@dataclass(frozen=True)
class BestKnown:
    """The lowest published cost of an instance."""

    set: str  #: X, XXL, Solomon, HG1000, PCVRPTW
    name: str
    customers: int
    metric: Metric  #: the rounding the cost is for; costs under another rounding are not comparable
    capacity: float
    vehicles: int | None  #: None: no limit
    cost: float  #: distance, plus uncollected prizes where there are prizes
    date: str  #: as of when, year and month
    source: str

    def gap(self, cost: float) -> float:
        """Return how far a cost lies above this one, in percent."""
        return 100.0 * (cost - self.cost) / self.cost


def best_known(problem: Problem, name: str | None = None) -> BestKnown | None:
    """Return the best known value of a literature instance; None for any other problem.

    An instance is recognised by its name, size, metric and constraints, because several sets use the same names. One
    that was changed, such as by another capacity, another limit on vehicles or a matrix, is another problem.
    """
    if problem.distance is not None:
        return None
    stated = problem.customers, problem.metric, problem.capacity, problem.vehicles
    return _values().get(((name or problem.name).lower(), *stated, constraints_of(problem)))


_CONSTRAINTS = {
    "X": (CAPACITY,), "XXL": (CAPACITY,), "Solomon": (CAPACITY, TIME_WINDOWS, FLEET),
    "HG1000": (CAPACITY, TIME_WINDOWS, FLEET), "PCVRPTW": (CAPACITY, TIME_WINDOWS, PRIZES, FLEET),
}  # fmt: skip
"""Of the sets, in the order of `CONSTRAINTS`."""


@cache
def _values() -> dict[tuple[Any, ...], BestKnown]:
    values = {}
    text = files(__package__).joinpath("best_known.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        vehicles = int(row["vehicles"]) if row["vehicles"] else None
        stated = int(row["customers"]), Metric(row["metric"]), float(row["capacity"]), vehicles
        value = BestKnown(row["set"], row["name"], *stated, float(row["cost"]), row["date"], row["source"])
        values[value.name.lower(), *stated, _CONSTRAINTS[value.set]] = value
    return values
