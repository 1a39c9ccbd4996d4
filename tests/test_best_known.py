import numpy as np
import pytest

from ndsvrp.best_known import best_known
from ndsvrp.metric import Metric
from ndsvrp.problem import Problem


def problem(name: str, customers: int, metric: Metric, capacity: float, **more: object) -> Problem:
    rng = np.random.default_rng(0)
    xy = rng.integers(0, 100, (customers + 1, 2))
    return Problem(coordinates=xy, demand=np.zeros(customers + 1), capacity=capacity, metric=metric, name=name, **more)


def test_recognised() -> None:
    known = best_known(problem("X-n106-k14", 105, Metric.ROUND, 600))
    assert known is not None
    assert (known.cost, known.set, known.date) == (26362, "X", "2026-11")
    assert known.gap(26362 * 1.01) == pytest.approx(1.0)
    assert best_known(problem("renamed", 105, Metric.ROUND, 600), "X-n106-k14") == known
    large = best_known(problem("Leuven1", 3000, Metric.ROUND, 25))
    assert large is not None and (large.cost, large.set) == (192848, "XXL")


def test_same_name_different_problem() -> None:
    windows = np.tile([0, 1000], (1001, 1))
    prize = np.r_[0, np.ones(1000)]
    plain = best_known(problem("c1_10_1", 1000, Metric.DIMACS, 200, windows=windows, vehicles=250))
    prizes = best_known(problem("C1_10_1", 1000, Metric.DIMACS, 200, windows=windows, prize=prize, vehicles=100))
    assert plain is not None and prizes is not None
    assert (plain.set, prizes.set, prizes.cost) == ("HG1000", "PCVRPTW", 24539.1)


def test_not_comparable() -> None:
    assert best_known(problem("X-n106-k14", 105, Metric.NONE, 600)) is None  # another rounding
    assert best_known(problem("X-n106-k14", 104, Metric.ROUND, 600)) is None  # another instance of that name
    assert best_known(problem("mine", 105, Metric.ROUND, 600)) is None


def test_changed_problem() -> None:
    """The value is for the problem of the file."""
    instance = problem("X-n106-k14", 105, Metric.ROUND, 600)
    assert best_known(instance) is not None
    square = np.ones((106, 106))
    changes = (
        {"capacity": 601},
        {"vehicles": 14},
        {"max_distance": 10_000},
        {"max_duration": 10_000},
        {"distance": square},
    )
    for change in changes:
        assert best_known(instance.replace(**change)) is None, change
    windows = {"windows": np.tile([0, 1000], (101, 1))}
    assert best_known(problem("R102", 100, Metric.DIMACS, 200, vehicles=25, **windows)) is not None
    assert best_known(problem("R102", 100, Metric.DIMACS, 200, vehicles=17, **windows)) is None
    assert best_known(problem("R102", 100, Metric.DIMACS, 200, **windows)) is None
