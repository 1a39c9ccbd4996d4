"""Instances of a batch: by the curriculum, by their number, in shares."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from ndsvrp.engine.base import Recipe as Rebuilding
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.errors import NdsError
from ndsvrp.generate import generate
from ndsvrp.train.config import Source
from ndsvrp.train.data import Share
from ndsvrp.train.states import prepare
from train.small_runs import CPU, CURRICULUM, config, draw_batch


@pytest.mark.slow
def test_curriculum() -> None:
    """Sources by their weights, 3 : 1 : 0.5; sizes of a source alike; one of each per batch."""
    drawn: Counter[tuple[str, int]] = Counter()
    for number in range(600):
        batch = draw_batch(CURRICULUM, 3, number, Share.of(2, 0, 1))
        assert {problem.customers for problem in batch.problems} == {batch.customers}
        assert all(problem.has_windows == (batch.problem == "vrptw") for problem in batch.problems)
        assert all(problem.has_prizes == (batch.problem == "pcvrp") for problem in batch.problems)
        drawn[batch.problem, batch.customers] += 1
    expected = {("cvrp", 5): 200, ("cvrp", 7): 200, ("vrptw", 6): 400 / 3, ("pcvrp", 9): 200 / 3}
    assert drawn.keys() == expected.keys()
    assert sum((drawn[key] - expected[key]) ** 2 / expected[key] for key in drawn) < 16.3  # chi-square, 3, 0.1 %


def test_customers_per_route() -> None:
    source = Source(customers=(60,), customers_per_route=(3, 12))
    problems = [p for number in range(40) for p in draw_batch([source], 3, number, Share.of(4, 0, 1)).problems]
    fitting = np.array([problem.capacity / problem.demand[1:].mean() for problem in problems])
    assert fitting.min() >= 3 and fitting.max() <= 12 + 1.2  # rounded up by less than 1, of demands around 5
    assert fitting.min() < 4 and fitting.max() > 10.5
    # On a logarithmic scale: as many below the geometric mean as above it.
    assert 0.35 < np.mean(fitting < 6.1) < 0.65
    plain = [
        p for number in range(40) for p in draw_batch([Source(customers=(60,))], 3, number, Share.of(4, 0, 1)).problems
    ]
    assert all(np.array_equal(a.coordinates, b.coordinates) for a, b in zip(problems, plain, strict=True))
    assert len({problem.capacity for problem in plain}) == 1
    tight = Source(customers=(30,), customers_per_route=(1, 1))
    for problem in draw_batch([tight], 3, 0, Share.of(8, 0, 1)).problems:
        assert problem.capacity >= problem.demand.max(), "everybody fits"


def test_instances_go_by_their_number() -> None:
    """Instance i of a run is number i of the generator's set, whatever the batch."""
    source = Source(problem="vrptw", customers=(8,))
    large = draw_batch([source], 3, 1, Share.of(4, 0, 1))
    small = draw_batch([source], 3, 5, Share.of(1, 0, 1))
    expected = generate("vrptw", 8, count=4, seed=3, first=4)
    assert (large.first, small.first) == (4, 5)
    for ours, theirs in zip(large.problems, expected, strict=True):
        assert np.array_equal(ours.coordinates, theirs.coordinates) and np.array_equal(ours.windows, theirs.windows)
    assert np.array_equal(small.problems[0].coordinates, expected[1].coordinates)
    assert not np.array_equal(draw_batch([source], 4, 1, Share.of(4, 0, 1)).problems[0].demand, expected[0].demand)


@pytest.mark.parametrize("number", range(4))
def test_shares_make_up_the_batch(number: int) -> None:
    whole = draw_batch(CURRICULUM, 3, number, Share.of(6, 0, 1))
    shares = [draw_batch(CURRICULUM, 3, number, Share.of(6, rank, 3)) for rank in range(3)]
    assert [share.first for share in shares] == [6 * number, 6 * number + 2, 6 * number + 4]
    assert {(share.problem, share.customers) for share in shares} == {(whole.problem, whole.customers)}
    together = [problem for share in shares for problem in share.problems]
    for ours, theirs in zip(together, whole.problems, strict=True):
        assert ours.name == theirs.name and ours.capacity == theirs.capacity
        for field in ("coordinates", "demand", "windows", "service", "prize"):
            assert np.array_equal(getattr(ours, field), getattr(theirs, field)) or getattr(ours, field) is None


def test_unequal_shares_are_refused() -> None:
    with pytest.raises(NdsError, match="a batch of 6 instances cannot be shared equally by 4 processes"):
        Share.of(6, 0, 4)


def test_the_engine_goes_the_same_way_with_a_share() -> None:
    """Start, improvement steps and rewards of half the batch are those of the half within the whole."""
    recipe = config(start_rounds=5, improvement_steps=3, warm_up_rollouts=7).train
    problems = generate("pcvrp", 12, count=6, seed=3)
    random = np.random.default_rng(0)
    removed = np.stack([random.permutation(12)[:3] + 1 for _ in range(30)]).reshape(6, 5, 3).astype(np.int32)
    rebuilding = Rebuilding(removals=3, orders=4)

    def go(first: int, end: int) -> tuple[Any, ...]:
        engine = CpuEngine(threads=1 + first)
        learning = prepare(engine, problems[first:end], recipe, 77, first, CPU)
        seen = engine.view(learning.state)
        gains = engine.evaluate(learning.state, rebuilding, removed[first:end], 5, 77, 9, keep_best=True)
        return *seen, gains, learning.state.stats().costs

    whole, parts = go(0, 6), (go(0, 2), go(2, 5), go(5, 6))
    for entry, together in enumerate(whole):
        assert np.array_equal(np.concatenate([part[entry] for part in parts]), together)
    alone = prepare(CpuEngine(), problems[2:5], recipe, 77, 0, CPU).state.stats().costs
    assert not np.array_equal(alone, go(2, 5)[4]), "which it would not be if counted from 0"
