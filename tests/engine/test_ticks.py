"""The numbers that engines compute with: exact where they can be, on the safe side where they cannot."""

from __future__ import annotations

import numpy as np
import pytest

from ndsvrp import EngineError, NdsError, Problem, Solution, solve
from ndsvrp.constraints.prizes import REQUIRED
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.engine.own_scales import OwnScales
from ndsvrp.engine.ticks import LARGEST, Ticks, ticks_of
from ndsvrp.metric import power_of_two

SQUARE = np.array([[0, 0], [3, 4], [6, 8], [0, 5]], float)  # lengths from the depot: 5, 10, 5
DEMAND = [0, 1, 2, 3]


@pytest.mark.parametrize(("metric", "per_unit"), [("round", 1), ("trunc", 1), ("dimacs", 10), ("exact", 1000)])
def test_integer_metrics_are_their_own_ticks(metric: str, per_unit: int) -> None:
    windows = np.array([[0, 50], [5, 20], [10, 30], [0, 40]]) + 8.0
    problem = Problem(
        coordinates=SQUARE,
        demand=DEMAND,
        capacity=6,
        metric=metric,
        windows=windows,
        service=[0, 1, 2, 3],
        prize=[0, 7, 0, 9],
    )
    ticks = Ticks(problem)
    assert ticks.per_unit == ticks.per_time == per_unit
    assert (ticks.fields["ready"] / per_unit).tolist() == [0, 5, 10, 0]  # from the opening of the depot on
    assert (ticks.fields["due"] / per_unit).tolist() == [50, 20, 30, 40]
    assert (ticks.fields["service"] / per_unit).tolist() == [0, 1, 2, 3]
    assert ticks.fields["prize"] is not None
    assert ticks.fields["prize"].tolist() == [0, 7 * per_unit, REQUIRED, 9 * per_unit]
    assert ticks.fields["capacity"] == 6
    assert ticks.fields["demand"].tolist() == DEMAND


def test_float_lengths_take_28_bits() -> None:
    ticks = Ticks(Problem(coordinates=SQUARE, demand=DEMAND, capacity=6))
    assert ticks.per_unit == 2.0**24  # the diagonal is 10: 10 * 2^24 < 2^28 < 10 * 2^25
    assert ticks.points is not None
    assert ticks.points.max() == 8 * 2.0**24
    assert ticks.whole is None
    assert ticks.fields["prize"] is None


@pytest.mark.parametrize("power", [-490, -400, -100, 0, 100, 400])
def test_scales_do_not_matter(power: int) -> None:
    scale = 2.0**power
    windows = np.array([[0, 60], [5, 20], [10, 30], [0, 40]])
    ticks, usual = (
        Ticks(
            Problem(
                coordinates=SQUARE * s,
                demand=DEMAND,
                capacity=6,
                windows=windows * s,
                service=np.array([0, 1, 2, 3]) * s,
                prize=np.array([0, 0, 2, 3]) * s,
            )
        )
        for s in (scale, 1.0)
    )
    assert ticks.per_unit * scale == usual.per_unit
    for name in ("points", "exact_points", "box_margin"):
        assert np.array_equal(getattr(ticks, name), getattr(usual, name))
    for name in ("ready", "due", "service", "prize", "demand"):
        assert np.array_equal(ticks.fields[name], usual.fields[name])


def test_everything_at_one_place() -> None:
    ticks = Ticks(Problem(coordinates=np.ones((4, 2)), demand=DEMAND, capacity=6))
    assert ticks.per_unit == 1.0
    ticks = Ticks(Problem(coordinates=np.ones((4, 2)), demand=DEMAND, capacity=6, prize=[0, 0.5, 0.25, 0]))
    assert ticks.fields["prize"] is not None
    assert ticks.fields["prize"].tolist() == [0, LARGEST, LARGEST // 2, REQUIRED]


def test_too_large_numbers_are_refused() -> None:
    with pytest.raises(NdsError, match="too large"):
        Ticks(Problem(coordinates=SQUARE * 1e200, demand=DEMAND, capacity=6)).per_unit


def test_float_windows_are_on_the_safe_side() -> None:
    """A stop takes at least what it takes; the tolerance of `check` (1e-6 of the horizon) is used up to 99.9%."""
    windows = np.array([[1, 41], [6.1, 20.7], [10, 30], [0, 40]])
    problem = Problem(coordinates=SQUARE, demand=DEMAND, capacity=6, windows=windows, service=[0, 0.1, 0, 1 / 3])
    ticks = Ticks(problem)
    tick = 1 / ticks.per_time
    assert ticks.per_time == 2.0**22  # 40 * 2^22 < 2^28 < 40 * 2^23
    ready, due, service = ticks.fields["ready"] * tick, ticks.fields["due"] * tick, ticks.fields["service"] * tick
    assert np.all(ready >= np.maximum(windows[:, 0] - 1, 0))
    assert np.all(ready < np.maximum(windows[:, 0] - 1, 0) + tick)
    assert np.all(due <= windows[:, 1] - 1 + 40e-6 - tick / 2)
    assert np.all(due > windows[:, 1] - 1 + 39e-6)
    assert service[0] == 0
    assert np.all(service[1:] >= np.array([0.1, 0, 1 / 3]) + tick / 2)
    assert np.all(service[1:] < np.array([0.1, 0, 1 / 3]) + tick * 1.5)


def test_a_horizon_without_end_costs_no_precision() -> None:
    windows = np.array([[0, 1e12]] * 4)
    ticks = Ticks(Problem(coordinates=SQUARE, demand=DEMAND, capacity=6, windows=windows))
    assert ticks.per_unit >= 2.0**22  # no vehicle is on its way for longer than (3 + 1) * 10
    whole = Ticks(Problem(coordinates=SQUARE, demand=DEMAND, capacity=6, windows=windows, metric="round"))
    assert whole.fields["due"][0] >= 44


def test_durations_have_ticks_of_their_own() -> None:
    """Metres and hours."""
    distance = np.array([[0, 40_000, 30_000], [40_000, 0, 20_000], [30_000, 20_000, 0]])
    windows = np.array([[0, 8], [0, 1], [1, 2]])
    for metric in ("none", "round"):
        problem = Problem(
            distance=distance, duration=distance / 50_000, demand=[0, 1, 1], capacity=2, windows=windows, metric=metric
        )
        ticks = Ticks(problem)
        assert ticks.per_unit == (1 if metric == "round" else 2.0**12)
        assert ticks.length_matrix is not None
        assert (ticks.length_matrix / ticks.per_unit).tolist() == distance.tolist()
        assert ticks.time_matrix is not None
        assert np.max(np.abs(ticks.time_matrix / ticks.per_time - distance / 50_000)) < 1e-7
        assert ticks.per_time >= 2.0**25


def test_demands() -> None:
    whole = Ticks(Problem(coordinates=SQUARE, demand=[0, 2**29 + 1, 2**29, 5], capacity=2**30))
    assert whole.fields["capacity"] == 2**30
    assert whole.fields["demand"].tolist() == [0, 2**29 + 1, 2**29, 5]
    parts = Ticks(Problem(coordinates=SQUARE, demand=[0, 0.1, 0.2, 0.7], capacity=1.0))
    assert 2**29 < parts.fields["capacity"] <= 2**30 * (1 + 1e-6)
    assert parts.fields["demand"][1] + parts.fields["demand"][2] + parts.fields["demand"][3] <= parts.fields["capacity"]
    assert np.all(parts.fields["demand"] >= np.array([0, 0.1, 0.2, 0.7]) * 2.0**30)
    huge = Ticks(Problem(coordinates=SQUARE, demand=[0, 5e8 + 1, 5e8, 1], capacity=1e10))
    assert np.all(huge.fields["demand"] >= np.array([0, 5e8 + 1, 5e8, 1]) * power_of_two(1 << 30, 1e10))


def test_sort_orders() -> None:
    """Random 4, by demand 4, far 2, close 1, by width, opening and closing of windows 2 each, by prize 2."""
    windows = np.array([[0, 60], [5, 20], [10, 30], [0, 40]])
    problem = Problem(
        coordinates=[[0, 0], [3, 4], [6, 8], [0, 6]], demand=[0, 1, 3, 2], capacity=6,
        windows=windows, prize=[0, 5, 9, 0],
    )  # fmt: skip
    weights, ranks = Ticks(problem).sort_ranks()
    orders = [[c for _, c in sorted((rank, c + 1) for c, rank in enumerate(row[1:]))] for row in ranks.tolist()]
    assert weights.tolist() == [4, 2, 1, 4, 2, 2, 2, 2]
    assert orders == [
        [2, 3, 1],  # far first: 10, 6, 5
        [1, 3, 2],  # close first
        [2, 3, 1],  # large first
        [1, 2, 3],  # narrow windows first: 15, 20, 40
        [3, 1, 2],  # early opening first
        [3, 2, 1],  # late closing first
        [3, 2, 1],  # required first, then high prizes: 9, 5
    ]


# --- numbers that differ too much for one scale ------------------------------------------------


def at(x: list[float], **fields: object) -> Problem:
    """Customers on a line, the depot at 0."""
    coordinates = np.array([[0.0, 0.0], *([each, 0.0] for each in x)])
    return Problem(**{"coordinates": coordinates, "demand": [0, *(1 for _ in x)], "capacity": 9, **fields})


def test_late_windows_leave_lengths_fine() -> None:
    """Windows at 1e8 beside lengths of 1: one scale would give a length less than three ticks."""
    ticks = ticks_of(at([1, 2, 3.5], windows=[[0, 2e8], *[[1e8, 2e8]] * 3]))
    assert isinstance(ticks, OwnScales) and ticks.points is None
    assert ticks.length_matrix[0].tolist() == [0, ticks.per_unit, 2 * ticks.per_unit, 3.5 * ticks.per_unit]
    assert ticks.per_unit == 2.0**26 and ticks.per_time == 2.0  # nobody is on the way long after 1e8
    assert ticks.time_matrix is not None and ticks.time_matrix[0].tolist() == [0, 2, 4, 7]
    assert ticks.fields["ready"].tolist() == [0, 2e8, 2e8, 2e8]
    near = ticks_of(at([1, 2, 3.5], windows=[[0, 200], *[[100, 200]] * 3]))
    assert type(near) is Ticks  # one scale is fine enough


def test_a_lowest_cost_of_zero_needs_no_scale() -> None:
    """Only the way from a customer to itself has a length."""
    problem = Problem(demand=[0, 1, 1], capacity=2, distance=np.diag([0, 0, 3.3]), prize=[0, 0, 0])
    ticks = ticks_of(problem)
    assert ticks.length_matrix is not None and not np.any(ticks.length_matrix[~np.eye(3, dtype=bool)])


def test_whole_lengths_of_more_than_28_bits() -> None:
    """Coarser ticks for lengths; times are exact as long as they fit."""
    ticks = ticks_of(at([1e9, 2e9], metric="round", windows=[[0, 6e9], [0, 5e9], [7, 5e9]], service=[0, 5, 0]))
    assert not ticks.has_whole_lengths and not ticks.has_whole_times
    assert ticks.per_unit == 0.125 and ticks.length_matrix is not None
    assert ticks.length_matrix.tolist() == [[0, 1.25e8, 2.5e8], [1.25e8, 0, 1.25e8], [2.5e8, 1.25e8, 0]]
    assert ticks.per_time == 0.03125
    assert ticks.fields["ready"].tolist() == [0, 0, 1]  # up
    assert ticks.fields["due"].tolist() == [187499999, 156249999, 156249999]  # down
    assert ticks.fields["service"].tolist() == [0, 1, 1]
    limited = ticks_of(at([1e9, 2e9, 1], metric="round", max_distance=9, prize=[0, 1, 1, 1]))
    assert limited.has_whole_lengths and limited.per_unit == 1  # no route has a longer leg
    assert limited.unreachable.tolist() == [False, True, True, False]


def test_prizes_far_below_lengths() -> None:
    """Customers that cost more than all prizes are excluded, and their lengths need not fit."""
    ticks = ticks_of(at([1e9, 1e-3], prize=[0, 0.01, 0.01]))
    assert isinstance(ticks, OwnScales)
    assert ticks.hopeless.tolist() == ticks.excluded.tolist() == [False, True, False]
    assert ticks.longest == 1e-3 and ticks.length_matrix[0, 2] == round(1e-3 * ticks.per_unit) > 2**27 - 1
    assert solve(at([1e9, 1e-3], prize=[0, 0.01, 0.01]), iterations=5).solution.routes == ((2,),)


@pytest.mark.parametrize("prize", [100.0, 1e5, 12345678.0])
def test_large_prizes_are_codes_where_vehicles_are_scarce(prize: float) -> None:
    problem = at([1.0, 1.0], prize=[0, prize, 0.5 * prize], vehicles=1)
    ticks = ticks_of(problem)
    state = CpuEngine().start([problem], [0], Solution([]))
    assert state.stats().costs[0] == pytest.approx(1.5 * prize, rel=1e-6)  # nobody is served
    assert (ticks.fields["prize"] > 1 << 28).tolist() == [False, prize > 64, prize > 128]
    assert solve(problem.replace(capacity=1), iterations=20).solution.routes == ((1,),)


def test_what_no_scale_represents_is_refused() -> None:
    with pytest.raises(EngineError, match=r"prizes up to 1e\+15 .* costs would take more than 64 bits"):
        assert ticks_of(at([1.0, 2.0], prize=[0, 1e15, 0], vehicles=1)).missing
    with pytest.raises(EngineError, match=r"a duration limit of 4 beside times up to 1.001e\+08"):
        ticks_of(at([1.0, 2.0], windows=[[0, 2e8], [1e8, 2e8], [1e8, 2e8]], max_duration=4))
    many = np.random.default_rng(1).random((5002, 2))
    windows = np.array([[0, 1e9]] * 5002)
    windows[1:, 0] = 1e8
    with pytest.raises(
        EngineError, match="need scales of their own, which takes a matrix: that is done for up to 5000"
    ):
        ticks_of(Problem(coordinates=many, demand=np.r_[0, np.ones(5001)], capacity=9, windows=windows))


def test_every_demand_fits_a_vehicle() -> None:
    """Rounding up must not make a full load too much."""
    fields = ticks_of(at([1.0, 2.0], demand=[0, 2**31 + 1, 1], capacity=2**31 + 1)).fields
    assert fields["demand"][1] == fields["capacity"] < 2**30 + 1 and fields["demand"][2] == 1
