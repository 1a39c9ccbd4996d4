import numpy as np
import pytest

from ndsvrp.best_known import best_known
from ndsvrp.metric import Metric
from ndsvrp.problem import Problem


def problem(name: str, customers: int, metric: Metric, **more: object) -> Problem:
    rng = np.random.default_rng(0)
    xy = rng.integers(0, 100, (customers + 1, 2))
    return Problem(coordinates=xy, demand=np.zeros(customers + 1), capacity=1, metric=metric, name=name, **more)


def test_recognised() -> None:
    known = best_known(problem("X-n106-k14", 105, Metric.ROUND))
    assert known is not None
    assert (known.cost, known.set, known.date) == (26362, "X", "2026-11")
    assert known.gap(26362 * 1.01) == pytest.approx(1.0)
    assert best_known(problem("renamed", 105, Metric.ROUND), "X-n106-k14") == known
    large = best_known(problem("Leuven1", 3000, Metric.ROUND))
    assert large is not None and (large.cost, large.set) == (192848, "XXL")


def test_same_name_different_problem() -> None:
    windows = np.tile([0, 1000], (1001, 1))
    prize = np.r_[0, np.ones(1000)]
    plain = best_known(problem("c1_10_1", 1000, Metric.DIMACS, windows=windows))
    prizes = best_known(problem("C1_10_1", 1000, Metric.DIMACS, windows=windows, prize=prize))
    assert plain is not None and prizes is not None
    assert (plain.set, prizes.set, prizes.cost) == ("HG1000", "PCVRPTW", 24539.1)


def test_not_comparable() -> None:
    assert best_known(problem("X-n106-k14", 105, Metric.NONE)) is None  # another rounding
    assert best_known(problem("X-n106-k14", 104, Metric.ROUND)) is None  # another instance of that name
    assert best_known(problem("mine", 105, Metric.ROUND)) is None
