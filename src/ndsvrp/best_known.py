"""Best known costs of literature instances, with their date and source (`best_known.csv`)."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ndsvrp.constraints import VEHICLE_COST
from ndsvrp.metric import Metric
from ndsvrp.problem import Problem


@dataclass(frozen=True)
class BestKnown:
    """The lowest published cost of an instance."""

    set: str  #: X, XXL, Solomon, HG1000, PCVRPTW
    name: str
    customers: int
    cost: float  #: distance, plus uncollected prizes where there are prizes
    metric: Metric  #: the rounding the cost is for; costs under another rounding are not comparable
    date: str  #: as of when, year and month
    source: str

    def gap(self, cost: float) -> float:
        """Return how far a cost lies above this one, in percent."""
        return 100.0 * (cost - self.cost) / self.cost


def best_known(problem: Problem, name: str | None = None) -> BestKnown | None:
    """Return the best known value of a literature instance; None for any other problem.

    An instance is recognised by its name, size, metric, and whether it has windows and prizes, because several sets
    use the same names. None of them has a cost of vehicles.
    """
    if VEHICLE_COST.present(problem):
        return None
    objective = problem.has_windows, problem.has_prizes
    return _values().get(((name or problem.name).lower(), problem.customers, problem.metric, objective))


_OBJECTIVES = {
    "X": (False, False), "XXL": (False, False), "Solomon": (True, False), "HG1000": (True, False),
    "PCVRPTW": (True, True),
}  # fmt: skip
"""(windows, prizes) of the sets."""


@cache
def _values() -> dict[tuple[str, int, Metric, tuple[bool, bool]], BestKnown]:
    values = {}
    text = files(__package__).joinpath("best_known.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        customers, cost, metric = int(row["customers"]), float(row["cost"]), Metric(row["metric"])
        value = BestKnown(row["set"], row["name"], customers, cost, metric, row["date"], row["source"])
        values[value.name.lower(), customers, metric, _OBJECTIVES[value.set]] = value
    return values
