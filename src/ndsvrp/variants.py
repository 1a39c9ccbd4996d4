"""Combinations of constraints that the literature names. No other module knows these names."""

from dataclasses import dataclass

from ndsvrp.constraints import CAPACITY, CONSTRAINTS, FLEET, PRIZES, TIME_WINDOWS, Constraint, constraints_of
from ndsvrp.problem import Problem
from ndsvrp.text import amount


@dataclass(frozen=True)
class Variant:
    """A set of constraints with its name. The size of the fleet is not part of the name."""

    name: str
    constraints: frozenset[Constraint]
    layout: str = "clustered"  #: default of the generator for the locations of customers, as in the paper
    types: tuple[str, ...] = ()  #: what TYPE says in VRPLIB files

    @property
    def title(self) -> str:
        """The name as written in text: `VRPTW`, `CVRP with prizes`."""
        named, *others = self.name.split(" ", 1)
        return " ".join([named.upper(), *others])


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("cvrp", frozenset({CAPACITY}), "uniform", ("CVRP", "VRP", "ACVRP")),
        Variant("vrptw", frozenset({CAPACITY, TIME_WINDOWS}), types=("VRPTW", "CVRPTW")),
        Variant("pcvrp", frozenset({CAPACITY, PRIZES}), types=("PCVRP",)),
        Variant("pcvrptw", frozenset({CAPACITY, TIME_WINDOWS, PRIZES}), types=("PCVRPTW",)),
    )
}


def variant_of(problem: Problem) -> Variant:
    """Return the named variant with the problem's constraints, or a composed one: `cvrp with …`."""
    present = [constraint for constraint in constraints_of(problem) if constraint is not FLEET]
    found = max(
        (variant for variant in VARIANTS.values() if variant.constraints <= set(present)),
        key=lambda variant: len(variant.constraints),
    )
    others = " and ".join(constraint.name for constraint in present if constraint not in found.constraints)
    return Variant(f"{found.name} with {others}", frozenset(present), found.layout) if others else found


def description(problem: Problem) -> str:
    """Return a problem in words: `CVRP, 105 customers, capacity 600, metric round`."""
    limits = [summary for constraint in CONSTRAINTS if (summary := constraint.summary(problem))]
    return ", ".join(
        [variant_of(problem).title, amount(problem.customers, "customer"), *limits, f"metric {problem.metric}"]
    )
