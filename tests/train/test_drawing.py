"""Batches made ahead: the same whoever makes them, in order, and no process is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ndsvrp.errors import NdsError
from ndsvrp.problem import Problem
from ndsvrp.train.config import Recipe, Source, TrainConfig
from ndsvrp.train.data import Batch, Share, draw_batch
from ndsvrp.train.drawing import Ahead, Helpers, Task
from ndsvrp.train.states import material

SOURCES = (Source(customers=(8, 16)), Source(problem="vrptw", customers=(12,), customers_per_route=(2, 4)))
CONFIG = TrainConfig(train=Recipe(seed=3, batch=8), data=SOURCES)
SHARE = Share.of(8, 1, 2)
FIELDS = ("coordinates", "demand", "windows", "service", "prize", "capacity", "name")


def same(one: Problem, other: Problem) -> bool:
    return all(np.array_equal(getattr(one, field), getattr(other, field)) for field in FIELDS)


# --- processes -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def helpers() -> Iterator[Helpers]:
    made = Helpers(Task(CONFIG, SHARE, neighbours=5), 2)
    yield made
    made.close()


def test_other_processes_make_the_same_batches(helpers: Helpers) -> None:
    for number in range(4):
        ours, theirs = draw_batch(SOURCES, 3, number, SHARE), helpers(number)
        assert (ours.number, ours.problem, ours.customers, ours.first) == (
            number,
            theirs.problem,
            theirs.customers,
            theirs.first,
        )
        assert ours.share == theirs.share
        assert len(ours.problems) == 4 and all(map(same, ours.problems, theirs.problems))
        expected, found = material(ours.problems, 5), theirs.material
        assert found is not None and all(map(same, found.packed.problems, ours.problems))
        for one, other in zip(expected.packed.groups, found.packed.groups, strict=True):
            assert one.shape == other.shape and one.tours.tolist() == other.tours.tolist()
            assert one.table.tobytes() == other.table.tobytes() and one.block.tobytes() == other.block.tobytes()
        assert all(map(torch.equal, expected.inputs.tensors(), found.inputs.tensors()))


def test_what_goes_wrong_there_is_told_here(helpers: Helpers) -> None:
    with pytest.raises(ValueError, match=r"must be non-negative|expected non-negative"):
        helpers(-1)
    assert helpers(0).number == 0, "and it goes on"


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_not_for_them(helpers: Helpers, ending: signal.Signals) -> None:
    """They are sent to all processes of a terminal or a job, and the training still finishes its batch. Those of a
    terminal do not even reach them."""
    for helper in helpers._all:
        assert os.getpgid(helper.pid) != os.getpgid(0)
        os.kill(helper.pid, ending)
    assert [helpers(number).number for number in range(3)] == [0, 1, 2]


def test_one_that_dies_is_noticed() -> None:
    alone = Helpers(Task(CONFIG, SHARE), 1)
    assert alone(0).material is None
    alone._all[0].kill()
    alone._all[0].wait()
    with pytest.raises(NdsError, match=r"^a process that makes training instances has ended before its time$"):
        alone(1)
    alone.close()


def test_they_end_with_whoever_started_them() -> None:
    """Also if that one is killed: nothing comes down their pipes any more."""
    code = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_drawing import CONFIG, SHARE, Helpers, Task
helpers = Helpers(Task(CONFIG, SHARE), 1)
helpers(0)
print(helpers._all[0].pid, flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    child = int(done.stdout)
    for _ in range(200):
        if not _alive(child):
            return
        time.sleep(0.05)
    raise AssertionError("it is still there")


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


# --- ahead -----------------------------------------------------------------------------------------------


class Maker:
    """Empty batches, and which were asked for."""

    def __init__(self) -> None:
        self.made: list[int] = []

    def __call__(self, number: int) -> Batch:
        self.made.append(number)
        return Batch(number, "cvrp", 5, 0, [], SHARE)


@pytest.mark.parametrize("workers", [1, 3])
def test_every_batch_is_made_once(workers: int) -> None:
    make = Maker()
    ahead = Ahead(make, workers)
    assert [ahead.take(number).number for number in range(10)] == list(range(10))
    ahead._pool.shutdown()
    assert sorted(make.made) == list(range(10 + workers)), "and some beyond, which are under way"


def test_after_a_jump() -> None:
    make = Maker()
    ahead = Ahead(make, 2)
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
        whole, plain = Task(config, Share.of(8, 0, 1))(number), draw_batch(SOURCES, 3, number, Share.of(8, 0, 1))
        count = {8: 8, 16: 4, 12: 4}[whole.customers]
        assert whole.share.batch == len(whole.problems) == count
        assert all(map(same, whole.problems, plain.problems)), "the first ones of a whole batch"
        shares = [Task(config, Share.of(8, rank, 2))(number) for rank in (0, 1)]
        together = [problem for share in shares for problem in share.problems]
        assert all(map(same, together, whole.problems)) and len(together) == count
        assert [share.first for share in shares] == [8 * number, 8 * number + count // 2]
        seen.add(whole.customers)
    assert seen == {8, 12, 16}
