"""Means, errors and comparisons, worked by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import fmean, stdev

import pytest
from report_rows import ROWS, row

from ndsvrp.bench.report import Report, make_report
from ndsvrp.bench.report.summaries import Comparison, Line
from ndsvrp.bench.rows import Row, read_rows
from ndsvrp.errors import InstanceError

ROOT = Path(__file__).parents[2]


def lines(rows: list[Row]) -> list[Line]:
    return make_report(rows).lines


def notes(report: Report) -> tuple[str, ...]:
    return report.tables[0].notes


def test_means() -> None:
    a, b = lines(ROWS)
    assert (a.set, a.budget, a.solver, a.hardware, a.version) == ("X", 60, "a", "1 core, EPYC", "1")
    assert (a.instances, a.seeds, a.solved, a.runs, a.known) == (2, 1, 2, 2, 2)
    assert (a.cost, a.gap, a.seconds, a.routes) == (160, 5, 1.6, 4)
    assert a.gap_error == pytest.approx(5)  # 0 and 10: deviation sqrt(50), over sqrt(2)
    assert (b.cost, b.gap, b.routes) == (155.5, pytest.approx(3.25), 4.5)
    assert b.gap_error == pytest.approx(1.25)
    assert a.cost_seed_error is a.gap_seed_error is None


def test_seeds_are_averaged_first() -> None:
    """Instance p with seeds 1, 2, 3; instance q likewise, but r only with seed 1."""
    costs = {("p", 1): 100.0, ("p", 2): 104.0, ("p", 3): 102.0, ("q", 1): 200.0, ("q", 2): 210.0, ("q", 3): 202.0}
    rows = [row("a", name, cost, 100.0 if name == "p" else 200.0, seed=seed) for (name, seed), cost in costs.items()]
    (line,) = lines([*rows, row("a", "r", 300.0, 200.0)])
    assert (line.instances, line.seeds, line.solved, line.runs) == (3, 3, 7, 7)
    assert line.cost == pytest.approx((102 + 204 + 300) / 3)
    gaps = [2.0, 2.0, 50.0]  # means over seeds of 0, 4, 2 and 0, 5, 1
    assert line.gap == pytest.approx(fmean(gaps)) and line.gap_error == pytest.approx(stdev(gaps) / math.sqrt(3))
    # the seeds have means over p and q of 150, 157 and 152, and mean gaps of 0, 4.5 and 1.5
    assert line.cost_seed_error == pytest.approx(100 * stdev([150, 157, 152]) / math.sqrt(3) / line.cost)
    assert line.gap_seed_error == pytest.approx(stdev([0, 4.5, 1.5]) / math.sqrt(3))


def test_gap_over_the_instances_with_a_best_known_cost() -> None:
    report = make_report([row("a", "p", 103.0, 100.0), row("a", "q", 100.0)])
    assert (report.lines[0].gap, report.lines[0].known) == (3, 1)
    assert "+3.00 (1 of 2)" in report.tables[0].rows[0]


def test_an_infeasible_solution_does_not_count() -> None:
    a, b = lines([*ROWS, row("a", "r", 10.0), row("b", "r", 5.0, feasible=False)])
    assert (a.cost, a.instances, a.runs) == (110, 3, 3)
    assert (b.cost, b.instances, b.solved, b.runs) == (155.5, 2, 2, 3)


def test_hardware_tells_solvers_apart() -> None:
    gpu = {"cpu": "Xeon", "gpu": "H200"}
    rows = [*ROWS, row("a", "p", 90.0, hardware=gpu), row("c", "p", 90.0, threads=16)]
    found = {line.solver: (line.hardware, line.cost) for line in lines(rows)}
    assert found == {
        "a (1 core, EPYC)": ("1 core, EPYC", 160),
        "a (H200)": ("H200", 90),
        "b": ("1 core, EPYC", 155.5),
        "c": ("16 cores, EPYC", 90),
    }


def test_times_and_sets_are_apart() -> None:
    rows = [row("a", "p", 1.0, budget=10), row("a", "p", 2.0, budget=5), row("a", "p", 3.0, set="Y")]
    assert [(line.set, line.budget, line.cost) for line in lines(rows)] == [("X", 5, 2), ("X", 10, 1), ("Y", 60, 3)]


def test_instances_of_the_same_name_in_other_files_are_apart() -> None:
    report = make_report([row("a", "p", 100.0), row("b", "p", 50.0, data="e")])
    assert report.comparisons == []


def test_the_last_row_of_a_run_counts() -> None:
    report = make_report([row("a", "p", error="exit code 1"), row("a", "p", 100.0), row("b", "p", 100.0)])
    assert (report.lines[0].cost, report.lines[0].solved, report.lines[0].runs) == (100, 1, 1)
    assert notes(report) == ("Versions: a 1; b 1",)
    report = make_report([row("a", "p", 110.0), row("a", "q", 110.0), row("a", "q", 100.0, solver_version="2")])
    assert report.lines[0].cost == 105
    assert notes(report) == ("Versions: a 1, 2", "Later rows of another version replace 1 row")


def test_notes() -> None:
    rows = [
        *ROWS, row("a", "r", 100.0, cpu_seconds=0.9), row("b", "r", error="exit code 1"),
        row("h", "p", skipped="no windows"), row("h", "q", skipped="no windows"),
    ]  # fmt: skip
    assert notes(make_report(rows)) == (
        "Versions: a 1; b 1; h 1",
        "The ± after a gap is the standard error over instances",
        "Means over different instances are not comparable; the comparison is over common instances",
        "1 run had to share a core: run again on a quiet machine",
        "1 run failed, the last b on r: exit code 1",
        "no windows",
    )
    assert make_report(rows).lines[2].cost is None
    on_gpu = row("a", "p", 100.0, cpu_seconds=0.1, hardware={"cpu": "x", "gpu": "H200"})
    assert notes(make_report([on_gpu])) == ("Versions: a 1",)


def test_comparison() -> None:
    """Differences of +2% and -5%: mean -1.5, standard error 3.5; two pairs prove nothing."""
    (pair,) = make_report(ROWS).comparisons
    assert pair == Comparison(
        "X", 60, "b", "a", 60, 2, pytest.approx(-1.5), pytest.approx(3.5), wins=1, ties=0, losses=1, p=1.0
    )
    (pair,) = make_report(ROWS, "b").comparisons
    assert (pair.solver, pair.baseline, pair.wins, pair.losses) == ("a", "b", 1, 1)
    assert pair.difference == pytest.approx((100 * (100 - 102) / 102 + 100 * (220 - 209) / 209) / 2)


def test_comparison_is_over_common_instances() -> None:
    rows = [row("a", name, 100.0) for name in "pqrst"]
    rows += [row("b", "p", 99.0), row("b", "q", 98.0), row("b", "r", 100.00005), row("b", "x", 1.0)]
    rows += [row("b", "s", 97.0), row("b", "t", 50.0, feasible=False)]
    (pair,) = make_report(rows).comparisons
    assert (pair.instances, pair.wins, pair.ties, pair.losses) == (4, 3, 1, 0)
    assert pair.difference == pytest.approx((-1 - 2 + 0.00005 - 3) / 4)
    assert pair.p == 0.25  # two of the eight choices of signs of three pairs


def test_the_series_of_the_baseline() -> None:
    """It has the same time limit, or the next longer one, or the longest."""
    rows = [row("a", "p", 100.0 + budget, budget=budget) for budget in (10, 60, 600)]
    rows += [row("b", "p", 100.0, budget=budget) for budget in (4, 60, 61, 1000)]
    pairs = make_report(rows).comparisons
    assert [(pair.budget, pair.baseline_budget) for pair in pairs] == [(4, 10), (60, 60), (61, 600), (1000, 600)]


def test_the_baseline_of_each_set() -> None:
    rows = [row("h", "p", skipped="no"), *ROWS, row("b", "p", 1.0, set="Y"), row("a", "p", 2.0, set="Y")]
    pairs = make_report(rows).comparisons
    assert [(pair.set, pair.solver, pair.baseline) for pair in pairs] == [("X", "b", "a"), ("Y", "a", "b")]
    rows += [row("c", "p", 1.0, set="Z"), row("b", "p", 1.0, set="Z")]
    report = make_report(rows, "a")
    assert [(pair.set, pair.baseline) for pair in report.comparisons] == [("X", "a"), ("Y", "a")]
    assert report.tables[1].notes[-1] == "The baseline has no solution of Z"
    with pytest.raises(InstanceError, match="baseline: no solver 'A' in the rows; there are h, a, b, c"):
        make_report(rows, "A")


def test_nothing() -> None:
    report = make_report([])
    assert report.lines == report.comparisons == report.entries == report.profiles == report.curves == []
    for suffix in (".md", ".html", ".tex", ".csv"):
        assert report.text(suffix)
    (failed,) = lines([row("a", "p", error="lost")])
    assert (failed.cost, failed.gap, failed.seconds, failed.solved, failed.runs) == (None, None, None, 0, 1)
    for suffix in (".md", ".html", ".tex", ".csv"):
        assert "X" in make_report([row("a", "p", error="lost")]).text(suffix)


def mean_cost(seeds: dict[int, dict[str, float]]) -> float:
    return sum(entry["cost"] for entry in seeds.values()) / len(seeds)


def test_measured_rows_recomputed() -> None:
    """The rows of `results/quality.jsonl`, without any code of the package; an instance is the mean of its seeds."""
    file = ROOT / "results/quality.jsonl"
    last: dict[tuple[str, float, str], dict[str, dict[int, dict[str, float]]]] = {}
    for text in file.read_text().splitlines():
        entry = json.loads(text)
        series = last.setdefault((entry["set"], entry["budget"], entry["solver"]), {})
        series.setdefault(entry["instance"], {})[entry["seed"]] = entry
    report = make_report(read_rows(file))
    assert {(line.set, line.budget, line.solver) for line in report.lines} == set(last)
    for line in report.lines:
        instances = [list(seeds.values()) for seeds in last[line.set, line.budget, line.solver].values()]
        for name in ("cost", "seconds", "routes"):
            means = [sum(entry[name] for entry in entries) / len(entries) for entries in instances]
            assert getattr(line, name) == pytest.approx(sum(means) / len(means))
        gaps = [
            sum(100 * (entry["cost"] / entry["best_known"] - 1) for entry in entries) / len(entries)
            for entries in instances if entries[0]["best_known"]
        ]  # fmt: skip
        assert len(gaps) == line.known
        if gaps:
            middle = sum(gaps) / len(gaps)
            variance = sum((x - middle) ** 2 for x in gaps) / (len(gaps) - 1)
            assert line.gap == pytest.approx(middle) and line.gap_error == pytest.approx((variance / len(gaps)) ** 0.5)
    assert report.comparisons
    for pair in report.comparisons:
        ours = last[pair.set, pair.budget, pair.solver]
        theirs = last[pair.set, pair.baseline_budget, pair.baseline]
        both = [[mean_cost(ours[name]), mean_cost(theirs[name])] for name in ours if name in theirs]
        ratios = [100 * (x / y - 1) for x, y in both]
        middle = sum(ratios) / len(ratios)
        variance = sum((x - middle) ** 2 for x in ratios) / (len(ratios) - 1)
        assert (pair.instances, pair.wins) == (len(both), sum(x < y for x, y in both))
        assert pair.difference == pytest.approx(middle)
        assert pair.difference_error == pytest.approx((variance / len(ratios)) ** 0.5)
