"""Batches made ahead: each once, in order, and the parts of them that processes have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ndsvrp.problem import Problem
from ndsvrp.train.config import Recipe, Source, TrainConfig
from ndsvrp.train.data import Batch, BatchMaker, Share
from ndsvrp.train.prefetch import ThreadPrefetch

SOURCES = (Source(customers=(8, 16)), Source(problem="vrptw", customers=(12,), customers_per_route=(2, 4)))
CONFIG = TrainConfig(train=Recipe(seed=3, batch=8), data=SOURCES)
SHARE = Share.of(8, 1, 2)
FIELDS = ("coordinates", "demand", "windows", "service", "prize", "capacity", "name")


def same(one: Problem, other: Problem) -> bool:
    return all(np.array_equal(getattr(one, field), getattr(other, field)) for field in FIELDS)


# --- ahead -----------------------------------------------------------------------------------------------


class Maker:
    """Empty batches, and which were asked for."""

    def __init__(self) -> None:
        self.made: list[int] = []

    def __call__(self, number: int) -> Batch:
        self.made.append(number)
        return Batch(number, "cvrp", 5, 0, [], SHARE)


def test_every_batch_is_made_once() -> None:
    make = Maker()
    ahead = ThreadPrefetch(make)
    assert [ahead.take(number).number for number in range(10)] == list(range(10))
    ahead._pool.shutdown()
    assert make.made == list(range(11)), "and one beyond, which is under way"


def test_after_a_jump() -> None:
    make = Maker()
    ahead = ThreadPrefetch(make)
    assert [ahead.take(number).number for number in (0, 1, 7, 8, 3)] == [0, 1, 7, 8, 3]
    ahead.close()


# --- batches by customers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("customers", "most", "expected"),
    [(100, 128_000, (1024, 256, 256)), (200, 128_000, (512, 128, 128)), (500, 128_000, (256, 64, 64)),
     (1000, 128_000, (128, 32, 32)), (10_000, 128_000, (8, 2, 2)), (100_000, 128_000, (4, 1, 1)), (5, 0, (4, 1, 1))],
)  # fmt: skip
def test_shares_of_large_instances(customers: int, most: int, expected: tuple[int, int, int]) -> None:
    """Of 1024 instances for four processes: halved until there are at most so many customers, or one each."""
    share = Share.of(1024, 1, 4).halved(customers, most)
    assert (share.batch, share.first, share.count) == expected


def test_small_batches_of_large_instances() -> None:
    """Instances keep the numbers they would have at the begin of a whole batch; shares make up the batch."""
    config = replace(CONFIG, train=replace(CONFIG.train, batch_customers=64))
    seen = set()
    for number in range(6):
        whole, plain = (BatchMaker(each, Share.of(8, 0, 1))(number) for each in (config, CONFIG))
        count = {8: 8, 16: 4, 12: 4}[whole.customers]
        assert whole.share.batch == len(whole.problems) == count
        assert all(map(same, whole.problems, plain.problems)), "the first ones of a whole batch"
        shares = [BatchMaker(config, Share.of(8, rank, 2))(number) for rank in (0, 1)]
        together = [problem for share in shares for problem in share.problems]
        assert all(map(same, together, whole.problems)) and len(together) == count
        assert [share.first for share in shares] == [8 * number, 8 * number + count // 2]
        seen.add(whole.customers)
    assert seen == {8, 12, 16}
