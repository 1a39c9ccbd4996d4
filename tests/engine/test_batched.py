"""Instances packed where they were drawn: the bits that the CPU would pack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gpu.instance_cases import SOURCES, Host, named, unpacked
from ndsvrp.engine.batched import upload_batch
from ndsvrp.engine.upload import prepare, send
from ndsvrp.generate import Windows, generate
from ndsvrp.generate.instances import Instances, draw
from ndsvrp.generate.resample import Resampled
from ndsvrp.train.config import Source
from ndsvrp.train.data import recipe_of
from ndsvrp.train.own_instances import pool_of

ORDERS = ("rank", "sort_weight", "sorts")  # that training has no use for


def compare(instances: Instances, neighbours: int) -> Any:
    """Returns what was packed."""
    count = len(instances.capacity)
    found = upload_batch(Host(), instances, neighbours)()
    expected = prepare([instances.problem(i) for i in range(count)], np.arange(count), None, neighbours)
    (ours,), (theirs,) = found.groups, expected.groups
    assert ours.shape == theirs.shape
    assert found.per_unit.tolist() == expected.per_unit.tolist()
    assert found.problem_of.tolist() == ours.problem_of.tolist() == ours.members.tolist() == theirs.members.tolist()
    assert ours.tours.tolist() == theirs.tours.tolist() and ours.lengths.tolist() == theirs.lengths.tolist()
    assert [(p.customers, p.vehicles) for p in found.problems] == [(p.customers, None) for p in expected.problems]
    block = send(torch, theirs, "cpu")
    assert send(torch, ours, "cpu") is ours.block
    for one, other in zip(unpacked(ours.block, count), unpacked(block, count), strict=True):
        assert [getattr(one, name) for name in ORDERS] == [0, 0, 0]
        for name, value in vars(other).items():
            assert name in ORDERS or getattr(one, name) == value, name
    return found


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=named)
def test_the_same_bits(source: Source) -> None:
    for n, neighbours in ((1, 5), (2, 5), (3, 15), (25, 6), (60, 15)):
        compare(draw(recipe_of(source, n), 4, torch.arange(9, 15)), neighbours)


def test_many_of_one_customer() -> None:
    """Where due dates are cut to what can ever be: the place where the order of operations shows."""
    source = Source(problem="pcvrptw")
    for n in (1, 2, 4):
        compare(draw(recipe_of(source, n), 5, torch.arange(150)), 3)


@pytest.mark.parametrize("variant", ["cvrp", "pcvrptw"])
def test_the_same_bits_of_own_instances(variant: str) -> None:
    """Resampled, and therefore with any windows and prizes."""
    wide = Windows(horizon=9.0, width=6.0, service=0.3) if variant == "pcvrptw" else None
    given = generate(variant, 12, count=3, seed=1, windows=wide)
    for n, neighbours in ((1, 5), (9, 5), (30, 15)):
        compare(Resampled(pool_of(given), variant, n).draw(4, torch.arange(9, 15)), neighbours)


@pytest.mark.filterwarnings("ignore:prizes above")
@pytest.mark.parametrize("length", [0.25, 0.5, 0.5000000000000001, 0.49999999999999994, 1.0, 1.3])
def test_powers_of_two(length: float) -> None:
    """A longest way that is one, or nearly: the finest ticks that do. Also where a prize is the largest number."""
    coordinates = torch.zeros((2, 3, 2), dtype=torch.float64)
    coordinates[:, 1, 0], coordinates[1, 2, 1] = length, 0.1
    demand = torch.tensor([[0, 3, 4]] * 2)
    prize = torch.tensor([[0, length, 40.0]] * 2, dtype=torch.float64)
    for given in (None, prize):
        instances = Instances(coordinates, demand, torch.tensor([4, 7]), prize=given)
        found = upload_batch(Host(), instances, 2)()
        largest = length if given is None else min(40.0, 64 * length)
        assert found.per_unit[0] * largest <= 2**28 < 2 * found.per_unit[0] * largest
        assert found.groups[0].shape.longest == 2 and found.groups[0].shape.typical == 2
        if length != 0.5000000000000001:  # Ticks rounds a logarithm: twice as fine, and no more than that matters
            compare(instances, 2)
