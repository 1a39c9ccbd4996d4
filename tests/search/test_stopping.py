"""Budgets and cooling, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ndsvrp import NdsError, Progress
from ndsvrp.search.stopping import Budget, ExponentialCooling


def budget(clock: list[float], **limits: Any) -> Budget:
    return Budget(**limits, began=clock[0])


def after(iteration: int, best: float, unserved: int = 0) -> Progress:
    return Progress(iteration, 0.0, best, 1.0, 0, unserved)


# --- budget ------------------------------------------------------------------------------------


def test_time(clock: list[float]) -> None:
    b = budget(clock, seconds=10)
    assert [b.elapsed(), b.out_of_time(), b.fraction(1)] == [0.0, False, 0.0]
    clock[0] = 102.5
    assert [b.elapsed(), b.out_of_time(), b.fraction(7)] == [2.5, False, 0.25]
    assert b.reason(after(7, 5.0)) is None
    clock[0] = 110.0
    assert [b.out_of_time(), b.fraction(8), b.reason(after(8, 5.0))] == [True, 1.0, "time"]
    clock[0] = 111.0
    assert b.fraction(9) == 1.0


def test_iterations(clock: list[float]) -> None:
    b = budget(clock, iterations=4)
    assert [b.fraction(i) for i in (1, 2, 3, 4)] == [0.0, 0.25, 0.5, 0.75]
    assert [b.reason(after(i, 5.0)) for i in (0, 1, 3, 4)] == [None, None, None, "iterations"]
    assert not b.out_of_time()


def test_the_larger_share_counts(clock: list[float]) -> None:
    b = budget(clock, seconds=10, iterations=10)
    clock[0] = 103.0
    assert b.fraction(2) == 0.3
    assert b.fraction(9) == 0.8


def test_target(clock: list[float]) -> None:
    b = budget(clock, iterations=100, target=7.0)
    assert [b.reason(after(1, 7.1)), b.reason(after(2, 7.0)), b.reason(after(3, 6.0))] == [None, "target", "target"]
    assert b.reason(after(4, 5.0, unserved=1)) is None, "a solution with unserved customers reaches no target"


def test_patience(clock: list[float]) -> None:
    b = budget(clock, iterations=100, patience=3)
    seen = [b.reason(after(i, cost)) for i, cost in enumerate([9.0, 8.0, 8.0, 7.5, 7.5, 7.5, 7.5])]
    assert seen == [None] * 6 + ["patience"]


@pytest.mark.parametrize(
    "limits", [{}, {"patience": 3}, {"target": 1.0}, {"seconds": 0}, {"iterations": 0}, {"seconds": 1, "patience": 0}]
)
def test_limits_are_needed_and_positive(limits: dict[str, Any]) -> None:
    with pytest.raises(NdsError, match=r"limit|above 0"):
        Budget(**limits)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"seconds": float("inf")}, "time must be finite, got inf"),
        ({"seconds": float("nan")}, "time must be finite, got nan"),
        ({"seconds": "3"}, "time must be a number, got '3'"),
        ({"iterations": 2.5}, "iterations must be a whole number, got 2.5"),
        ({"iterations": True}, "iterations must be a whole number, got True"),
        ({"seconds": 1, "patience": 3.0}, "patience must be a whole number, got 3.0"),
        ({"seconds": 1, "target": float("-inf")}, "target must be finite, got -inf"),
        ({"seconds": 1, "target": float("nan")}, "target must be finite, got nan"),
    ],
)
def test_limits_are_numbers(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(NdsError) as caught:
        Budget(**limits)
    assert str(caught.value) == message


def test_numbers_of_numpy_are_limits() -> None:
    Budget(np.float32(1.5), np.int64(3), np.int32(2), np.float64(-1.0))


def test_time_is_reserved_for_the_end() -> None:
    budget = Budget(10.0)
    budget.reserve(0.5)
    assert budget.seconds == 9.5
    budget.reserve(5.0)
    assert budget.seconds == pytest.approx(0.7 * 9.5)  # 30% at most
    without = Budget(iterations=3)
    without.reserve(1.0)
    assert without.seconds is None


# --- cooling -----------------------------------------------------------------------------------


def test_cooling() -> None:
    cooling = ExponentialCooling(0.1, 0.001)
    assert cooling(0.0) == pytest.approx(0.1, rel=1e-15)
    assert cooling(0.5) == pytest.approx(0.01, rel=1e-14)  # the geometric mean
    assert cooling(1.0) == pytest.approx(0.001, rel=1e-14)
    assert cooling(0.25) / cooling(0.5) == pytest.approx(cooling(0.5) / cooling(0.75), rel=1e-12)
