"""Names for combinations of constraints."""

from __future__ import annotations

import pytest

from ndsvrp.constraints import (
    CAPACITY,
    CONSTRAINTS,
    FLEET,
    MAX_DURATION,
    PRIZES,
    TIME_WINDOWS,
    Constraint,
    Field,
    constraints_of,
)  # fmt: skip
from ndsvrp.problem import Problem
from ndsvrp.variants import VARIANTS, variant_of

WINDOWS = [[0, 10], [0, 5]]


@pytest.mark.parametrize(
    ("fields", "name", "constraints"),
    [
        ({}, "cvrp", {CAPACITY}),
        ({"windows": WINDOWS}, "vrptw", {CAPACITY, TIME_WINDOWS}),
        ({"prize": [0, 1]}, "pcvrp", {CAPACITY, PRIZES}),
        ({"windows": WINDOWS, "prize": [0, 1]}, "pcvrptw", {CAPACITY, TIME_WINDOWS, PRIZES}),
        ({"service": [0, 1]}, "cvrp", {CAPACITY}),  # service times alone constrain nothing
        ({"prize": [0, 0]}, "pcvrp", {CAPACITY, PRIZES}),  # prizes are there, though all are required
        ({"vehicles": 1}, "cvrp", {CAPACITY}),
        ({"max_duration": 9}, "cvrp with duration limit", {CAPACITY, MAX_DURATION}),
    ],
)
def test_a_problem_is_named_by_its_constraints(fields: dict[str, object], name: str, constraints: set[object]) -> None:
    problem = Problem(coordinates=[[0, 0], [1, 0]], demand=[0, 1], capacity=1, **fields)  # type: ignore[arg-type]
    assert variant_of(problem).name == name
    assert variant_of(problem).constraints == constraints
    assert set(constraints_of(problem)) - {FLEET} == constraints


def test_every_combination_with_capacity_has_one_name() -> None:
    assert list(VARIANTS) == ["cvrp", "vrptw", "pcvrp", "pcvrptw"]
    assert len({variant.constraints for variant in VARIANTS.values()}) == len(VARIANTS)
    assert all(CAPACITY in variant.constraints for variant in VARIANTS.values())
    assert {name: variant.layout for name, variant in VARIANTS.items()} == {
        "cvrp": "uniform",
        "vrptw": "clustered",
        "pcvrp": "clustered",
        "pcvrptw": "clustered",
    }


def test_other_combinations_have_a_composed_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Skills(Constraint):
        name, fields = "skills", (Field("service", 1),)

    skills = Skills()
    monkeypatch.setattr("ndsvrp.constraints.CONSTRAINTS", (*CONSTRAINTS, skills))
    problem = Problem(coordinates=[[0, 0], [1, 0]], demand=[0, 1], capacity=1, windows=WINDOWS, service=[0, 1])
    variant = variant_of(problem)
    assert (variant.name, variant.title) == ("vrptw with skills", "VRPTW with skills")
    assert variant.constraints == {CAPACITY, TIME_WINDOWS, skills} and variant.layout == "clustered"
    assert VARIANTS["pcvrptw"].title == "PCVRPTW"


def test_sort_keys_put_the_difficult_first() -> None:
    problem = Problem(
        coordinates=[[0, 0], [1, 0], [2, 0], [3, 0]],
        demand=[0, 1, 3, 2],
        capacity=5,
        windows=[[0, 99], [2, 12], [1, 20], [3, 8]],
        prize=[0, 5, 7, 6],
    )

    def orders(constraint: Constraint) -> list[list[int]]:
        keys = [key[1:] for _, key in constraint.sort_keys(problem)]
        return [(key.argsort() + 1).tolist() for key in keys]

    assert orders(CAPACITY) == [[2, 3, 1]]  # largest demand first
    assert orders(TIME_WINDOWS) == [[3, 1, 2], [2, 1, 3], [2, 1, 3]]  # shortest, earliest ready, latest due
    assert orders(PRIZES) == [[2, 3, 1]]  # largest prize first
