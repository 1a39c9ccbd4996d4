"""Curves, profiles and sizes, worked by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from report_rows import ROWS, row

from ndsvrp.bench.report import make_report

TRACED = [
    row("a", "p", 100.0, trace=[[1.0, 110.0], [10.0, 104.0], [30.0, 100.0]]),
    row("a", "q", 202.0, trace=[[2.0, 210.0], [20.0, 202.0]]),
    row("b", "p", 102.0, trace=[[0.5, 102.0]]),
    row("b", "q", 200.0, trace=[[4.0, 208.0], [40.0, 200.0]]),
    row("c", "p", 105.0),  # tells no trace
]
AB = TRACED[:-1]


def test_curves() -> None:
    """The best costs are 100 and 200; a curve begins when both instances have a solution."""
    a, b = make_report(AB).curves
    assert (a.set, a.budget, a.solver, a.instances) == ("X", 60, "a", 2)
    assert a.seconds[0] == pytest.approx(2) and a.seconds[-1] == pytest.approx(60)
    assert b.seconds[0] == pytest.approx(4)
    for second, gap in zip(a.seconds, a.gaps, strict=True):
        p = 10 if second < 10 else 4 if second < 30 else 0
        q = 5 if second < 20 else 1
        assert gap == pytest.approx((p + q) / 2)
    assert b.gaps[0] == pytest.approx((2 + 4) / 2) and b.gaps[-1] == pytest.approx((2 + 0) / 2)


def test_curves_are_over_common_instances_and_all_seeds() -> None:
    more = [row("a", "r", 50.0, trace=[[1.0, 50.0]]), row("a", "p", 98.0, seed=2, trace=[[1.0, 98.0]])]
    a, b = make_report(AB + more).curves
    assert (a.instances, a.solved, b.instances, b.solved) == (2, 3, 2, 2)
    assert a.gaps[-1] == pytest.approx(((100 * 2 / 98 + 0) / 2 + 1) / 2)  # the best of p is now 98


def test_a_solver_without_traces_has_a_point_for_each_limit() -> None:
    points = [
        row("h", name, cost, budget=budget)
        for name, cost, budget in (("p", 102.0, 30), ("q", 210.0, 30), ("p", 101.0, 60), ("q", 202.0, 60))
    ]
    a, b, h = make_report(AB + points).curves
    assert (h.solver, h.budget, h.instances, h.seconds) == ("h", 60, 2, (30, 60))
    assert h.gaps == (pytest.approx((2 + 5) / 2), pytest.approx((1 + 1) / 2))
    assert (a.traced, b.traced, h.traced) == (True, True, False)
    *_, h = make_report(AB + points[2:]).curves
    assert (h.seconds, h.gaps) == ((60,), (pytest.approx((1 + 1) / 2),))


def test_a_solver_without_traces_that_lacks_instances_is_left_out() -> None:
    alone = make_report(AB).curves
    other = [row("h", "r", 1.0), row("h", "p", 102.0, budget=30), row("h", "q", 210.0, budget=30)]
    for rows, left_out in ((TRACED, ("c, 60 s",)), (AB + other[:1], ("h, 60 s",))):
        assert make_report(rows).curves == [replace(curve, left_out=left_out) for curve in alone]
    a, b, h = make_report(AB + other).curves
    assert (h.seconds, h.gaps, h.instances) == ((30,), (pytest.approx((2 + 5) / 2),), 2)
    assert a.left_out == b.left_out == h.left_out == ("h, 60 s",)


def test_primal_integrals() -> None:
    a, b = make_report(TRACED).integrals
    values = [(10 * 1 + 10 * 9 + 4 * 20 + 0 * 30) / 60, (10 * 2 + 5 * 18 + 1 * 40) / 60]
    assert (a.solver, a.instances, a.integral) == ("a", 2, pytest.approx(sum(values) / 2))
    assert a.integral_error == pytest.approx(abs(values[0] - values[1]) / 2)
    assert b.integral == pytest.approx(((10 * 0.5 + 2 * 59.5) / 60 + (10 * 4 + 4 * 36 + 0 * 20) / 60) / 2)


def test_the_best_cost_is_the_best_known_if_that_is_lower() -> None:
    traced = row("a", "p", 110.0, 100.0, trace=[[0.0, 110.0]])
    assert make_report([traced]).integrals[0].integral == pytest.approx(10)
    traced = row("a", "p", 90.0, 100.0, trace=[[0.0, 90.0]])
    assert make_report([traced]).integrals[0].integral == 0


def test_profiles() -> None:
    """The best costs are 100 and 200 (best known): a has gaps of 0 and 10%, b of 2 and 4.5%; c fails on q."""
    rows = [*ROWS, row("c", "p", 100.0), row("c", "q", error="lost"), row("h", "p", skipped="no")]
    a, b, c = make_report(rows).profiles
    assert (a.gaps, c.gaps) == ((0, 10), (0, math.inf))
    assert b.gaps == (pytest.approx(2), pytest.approx(4.5))
    assert [a.share(x) for x in (0, 9.9, 10)] == [0.5, 0.5, 1]
    assert [b.share(x) for x in (0, 2, 5)] == [0, 0.5, 1]
    assert [c.share(x) for x in (0, 1000)] == [0.5, 0.5]
    table = next(table for table in make_report(rows).tables if table.title.startswith("Share"))
    assert table.rows[1] == ("X", "60 s", "b", "2", "0%", "0%", "0%", "0%", "50%", "100%")


def test_profiles_are_over_instances_that_all_tried() -> None:
    report = make_report([*ROWS, row("a", "r", 1.0)])
    a, b = report.profiles
    assert len(a.gaps) == len(b.gaps) == 2 and (a.tried, b.tried) == (3, 2)
    table = next(table for table in report.tables if table.title.startswith("Share"))
    assert table.notes[1] == "Solvers tried different instances; here are those that all tried: X 2 of up to 3"
    assert make_report([row("a", "p", 1.0), row("b", "q", 1.0)]).profiles == []
    assert make_report([row("a", "p", 1.0)]).profiles == [], "one solver has no rival"


def test_gaps_against_sizes() -> None:
    rows = [
        row("a", "p", 101.0, 100.0, set="cvrp100", budget=5), row("a", "q", 103.0, 100.0, set="cvrp100", budget=5),
        row("a", "p", 150.0, 100.0, set="cvrp100", budget=1),  # a shorter time
        row("a", "p", 105.0, 100.0, set="cvrp500", customers=500), row("b", "p", 105.0, set="cvrp500", customers=500),
        row("a", "p", 1.0, set="X"),
    ]  # fmt: skip
    (line,) = make_report(rows).sizes
    assert (line.family, line.solver, line.sizes, line.gaps) == ("cvrp", "a", (100, 500), (2, 5))
    assert line.limits == ("5 s", "60 s")


def test_random_rows_recomputed() -> None:
    """Curves, integrals and profiles of 40 instances, 3 solvers and 2 seeds, without any code of the package."""
    random = Random(1)
    rows = []
    for name in map(str, range(40)):
        for solver in "abc":
            for seed in (1, 2):
                seconds = sorted(random.uniform(0, 50) for _ in range(random.randint(1, 20)))
                costs = sorted((random.uniform(90, 120) for _ in seconds), reverse=True)
                trace = [list(point) for point in zip(seconds, costs, strict=True)]
                rows.append(row(solver, name, costs[-1], seed=seed, trace=trace))
    report = make_report(rows)
    best = {name: min(each["cost"] for each in rows if each["instance"] == name) for name in map(str, range(40))}

    def cost_at(trace: list[list[float]], time: float) -> float:
        held = [cost for second, cost in trace if second <= time * (1 + 1e-12)]
        return held[-1] if held else trace[0][1]

    for curve, integral, profile in zip(report.curves, report.integrals, report.profiles, strict=True):
        mine = [each for each in rows if each["solver"] == curve.solver]
        first = max(each["trace"][0][0] for each in mine)
        ratio = (60 / first) ** (1 / 119)
        for position in (0, 1, 40, 118, 119):
            time = first * ratio**position
            assert curve.seconds[position] == pytest.approx(time, rel=1e-12)
            gaps = [
                100 * (cost_at(each["trace"], curve.seconds[position]) / best[each["instance"]] - 1) for each in mine
            ]
            assert curve.gaps[position] == pytest.approx(sum(gaps) / len(gaps), rel=1e-11)
        areas = []
        for each in mine:
            moments = [0.0, *(second for second, _ in each["trace"]), 60.0]
            heights = [10.0, *(min(10.0, 100 * (cost / best[each["instance"]] - 1)) for _, cost in each["trace"])]
            areas.append(sum(h * (b - a) for h, a, b in zip(heights, moments, moments[1:], strict=False)) / 60)
        assert integral.integral == pytest.approx(sum(areas) / len(areas), rel=1e-11)
        means = {name: [each["cost"] for each in mine if each["instance"] == name] for name in best}
        assert profile.gaps == pytest.approx(
            sorted(100 * (sum(costs) / 2 / best[name] - 1) for name, costs in means.items()), abs=1e-11
        )
    assert len(report.curves) == 3


def test_series_that_end_by_iterations() -> None:
    """Their curves end with the longest run, and a time limit that they do not use has no integral."""
    how = {"settings": {"stopped": "iterations", "iterations": 2000}, "budget": 3600.0}
    rows = [
        row("a", "p", 100.0, trace=[[0.1, 110.0], [0.4, 100.0]], **how) | {"seconds": 0.5},
        row("a", "q", 200.0, trace=[[0.1, 200.0]], **how) | {"seconds": 0.8},
        row("a", "r", budget=3600.0, error="exit code 1"),  # says nothing about the others
    ]
    report = make_report(rows)
    (curve,) = report.curves
    assert (curve.seconds[0], curve.seconds[-1]) == (pytest.approx(0.1), pytest.approx(0.8))
    assert (curve.gaps[0], curve.gaps[-1]) == (pytest.approx(5), 0)
    assert report.integrals == []
    assert report.tables[0].rows[0][:3] == ("X", "2,000 iterations", "a")
    assert [each.iterations for each in make_report([*rows, row("b", "p", 101.0)]).lines] == [None, 2000]
    (pair,) = make_report([row("b", "p", 101.0), *rows], "a").comparisons
    assert (pair.iterations, pair.baseline_iterations) == (None, 2000)
    changed = [rows[0], rows[1] | {"settings": {"stopped": "time", "iterations": 900}}]
    assert make_report(changed).lines[0].iterations is None, "one run ended by its time"


def test_a_best_cost_of_zero() -> None:
    rows = [row("a", "p", 0.0, trace=[[1.0, 2.0], [30.0, 0.0]])]
    gaps = make_report(rows).curves[0].gaps
    assert (gaps[0], gaps[-1]) == (math.inf, 0)
