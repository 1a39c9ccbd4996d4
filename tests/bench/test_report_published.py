"""The paper's main table, with ours beside it."""

from __future__ import annotations

import pytest
from report_rows import row

from ndsvrp.bench.report import make_report
from ndsvrp.bench.report.published import INSTANCES, published

PRINTED = """
cvrp  | HGS                      | 15.57 -     5  | 36.66 -     60  | 41.51 -     121 | 57.38  -     241
cvrp  | SISRs                    | 15.62 0.32  5  | 36.65 0.01  60  | 41.14 -0.83 120 | 56.04  -2.27 240
cvrp  | LKH3                     | 15.64 0.50  41 | 37.25 1.66  174 | 42.16 1.61  408 | 58.12  1.35  1448
cvrp  | SGBS-EAS, Iter. Limit    | 15.59 0.20  2  |                 |                 |
cvrp  | SGBS-EAS, Time Limit     | 15.59 0.17  5  |                 |                 |
cvrp  | NeuOpt, 10k Iter.        | 15.66 0.59  1  |                 |                 |
cvrp  | NeuOpt, Time Limit       | 15.59 0.15  5  |                 |                 |
cvrp  | BQ, Beam width 16        | 15.81 1.55  1  | 37.64 2.68  10  | 43.53 4.86  45  | 61.75  7.61  323
cvrp  | BQ, Beam width 64        | 15.74 1.13  1  | 37.51 2.32  23  | 43.32 4.36  164 |
cvrp  | LEHD, 1000 Iter.         | 15.63 0.41  1  | 37.10 1.21  28  | 42.41 2.17  159 | 59.45  3.60  1476
cvrp  | LEHD, Time Limit         | 15.61 0.30  5  | 37.04 1.04  60  | 42.47 2.31  121 | 60.11  4.76  246
cvrp  | UDC, 250 Stages          |                | 37.71 2.86  13  | 42.77 3.04  21  |
cvrp  | UDC, Time Limit          |                | 37.63 2.67  60  | 42.65 2.76  121 |
cvrp  | GLOP (LKH3)              |                |                 | 45.90 10.58 1   | 63.02  9.82  2
cvrp  | NDS                      | 15.57 0.04  5  | 36.57 -0.20 60  | 41.11 -0.90 120 | 56.00  -2.34 240
vrptw | PyVRP-HGS                | 12.98 -     5  | 49.01 -     60  | 90.35 -     120 | 173.46 -     240
vrptw | SISRs                    | 13.00 0.20  5  | 48.09 -1.87 60  | 87.68 -2.98 120 | 167.49 -3.49 240
vrptw | SGBS-EAS, Default        | 13.15 1.35  3  |                 |                 |
vrptw | SGBS-EAS, Time Limit     | 13.13 1.22  5  |                 |                 |
vrptw | NDS                      | 12.95 -0.19 5  | 47.94 -2.17 60  | 87.54 -3.14 120 | 167.48 -3.50 240
pcvrp | PyVRP-HGS                | 10.11 -     5  | 44.97 -     60  | 84.91 -     120 | 165.56 -     240
pcvrp | SISRs                    | 9.94  -1.66 5  | 43.22 -3.90 60  | 81.12 -4.55 120 | 158.17 -4.54 240
pcvrp | NDS                      | 9.90  -2.07 5  | 43.12 -4.12 60  | 80.99 -4.71 121 | 158.09 -4.60 241
"""


def test_the_data_is_that_of_the_paper() -> None:
    """Typed from the printed table, row by row; the data file is column by column."""
    typed = {}
    for line in PRINTED.strip().splitlines():
        problem, method, *sizes = (part.strip() for part in line.split("|"))
        for customers, cell in zip((100, 500, 1000, 2000), sizes, strict=True):
            if cell:
                cost, gap, seconds = cell.split()
                typed[problem, customers, method] = (float(cost), None if gap == "-" else float(gap), float(seconds))
    assert {(p.problem, p.customers, p.method): (p.cost, p.gap, p.seconds) for p in published()} == typed


def test_gaps_of_the_paper_follow_from_its_costs() -> None:
    """They differ by up to 0.1 points: they are means of gaps, and costs are rounded."""
    first = {(p.problem, p.customers): p.cost for p in published() if p.gap is None}
    assert len(first) == 12
    for entry in published():
        if entry.gap is not None:
            reference = first[entry.problem, entry.customers]
            assert entry.gap == pytest.approx(100 * (entry.cost / reference - 1), abs=0.1), entry


def test_sizes_of_the_papers_sets() -> None:
    assert INSTANCES == {
        "cvrp100": 10_000, "cvrp500": 128, "cvrp1000": 100, "cvrp2000": 100,
        "vrptw100": 10_000, "vrptw500": 250, "vrptw1000": 250, "vrptw2000": 250,
        "pcvrp100": 10_000, "pcvrp500": 250, "pcvrp1000": 250, "pcvrp2000": 250,
    }  # fmt: skip


def test_a_part_of_a_set_has_paired_gaps_only() -> None:
    common = {"set": "vrptw1000", "customers": 1000, "budget": 120}
    rows = [row("a", "0", 90.0, **common), row("a", "1", 80.0, **common)]
    rows += [row("b", "0", 89.1, **common), row("b", "1", 80.8, **common)]  # -1% and +1%
    rows += [row("b", "0", 81.0, **common | {"budget": 12})]  # -10%
    report = make_report(rows)
    assert [(e.solver, e.published) for e in report.entries[:3]] == [
        ("PyVRP-HGS", True), ("SISRs", True), ("NDS", True),
    ]  # fmt: skip
    short, a, b = report.entries[3:]
    assert (short.solver, short.budget, short.instances, short.cost, short.gap_to) == ("b", 12, 1, None, "a, 120 s")
    assert short.gap == pytest.approx(-10) and short.gap_error is None
    assert (a.solver, a.cost, a.gap, a.gap_to) == ("a", None, None, None)
    assert (b.cost, b.gap, b.gap_error, b.gap_to) == (
        None, pytest.approx(0, abs=1e-12), pytest.approx(1), "a, 120 s",
    )  # fmt: skip
    table = next(table for table in report.tables if table.title == "The paper's main table")
    assert table.rows[1] == ("vrptw1000", "SISRs", "published", "250", "87.68", "-2.98", "PyVRP-HGS, published", "120")
    assert table.rows[3] == ("vrptw1000", "b", "ours, 12 s", "1", "–", "-10.00", "a, 120 s", "0.8")
    assert any("not comparable with the paper's mean of the whole set" in note for note in table.notes)
    assert not any("the gap is that of our mean cost" in note for note in table.notes)


def test_a_whole_set_stands_beside_the_published_means() -> None:
    rows = [
        row("a", f"{i:04d}", 36.0 + (i % 2), set="cvrp500", customers=500) for i in range(128)
    ]  # fmt: skip
    report = make_report(rows)
    ours = report.entries[-1]
    assert (ours.instances, ours.cost, ours.gap_to) == (128, 36.5, "HGS, published")
    assert ours.gap == pytest.approx(100 * (36.5 - 36.66) / 36.66)
    notes = next(table for table in report.tables if table.title == "The paper's main table").notes
    assert any("the gap is that of our mean cost" in note for note in notes)
    assert not any("not comparable" in note for note in notes)
    assert make_report(rows[1:]).entries[-1].cost is None, "one instance is missing"


def test_sets_that_only_have_the_name() -> None:
    assert make_report([row("a", "0", 1.0, set="cvrp500", customers=20)]).entries == []
    assert make_report([row("a", "0", 1.0, set="cvrp501", customers=501)]).entries == []
    assert make_report([row("a", "0", set="cvrp500", customers=500, skipped="no")]).entries == []
