"""Means and gaps, worked by hand."""

from io import StringIO

import pytest
from rich.console import Console

from ndsvrp.bench.report import summarise, table
from ndsvrp.bench.rows import Row


def row(solver: str, instance: str, cost: float | None = None, best: float | None = None, **more: object) -> Row:
    facts: Row = {"set": "X", "budget": 60.0, "seed": 1, "solver": solver, "instance": instance, "solver_version": "1"}
    if cost is not None:
        gap = None if best is None else 100 * (cost - best) / best
        facts |= {
            "cost": cost,
            "feasible": True,
            "seconds": cost / 100,
            "cpu_seconds": cost / 100,
            "best_known": best,
            "gap": gap,
        }
    return facts | more


ROWS = [
    row("a", "p", 100, 100),  # 0% above best known
    row("b", "p", 102, 100),  # 2% above, 2% above a
    row("a", "q", 220, 200),  # 10% above
    row("b", "q", 209, 200),  # 4.5% above, 5% below a
]


def test_means() -> None:
    a, b = summarise(ROWS)
    assert (a.cost, a.to_first, a.to_best_known, a.seconds) == (160, 0, 5, 1.6)
    assert (b.cost, b.to_first, b.to_best_known) == (155.5, pytest.approx(-1.5), pytest.approx(3.25))
    assert (a.solved, a.runs, a.compared) == (2, 2, 2)


def test_means_are_over_what_all_solved() -> None:
    rows = [*ROWS, row("a", "r", 1000, 500), row("b", "r", error="exit code 1")]
    a, b = summarise(rows)
    assert (a.cost, b.cost) == (160, 155.5)
    assert (a.solved, a.runs, a.compared) == (3, 3, 2)
    assert (b.solved, b.runs, b.compared) == (2, 3, 2)


def test_an_infeasible_solution_does_not_count() -> None:
    a, b = summarise([*ROWS, row("a", "r", 10), row("b", "r", 5, feasible=False)])
    assert (a.cost, b.cost, b.solved, b.runs) == (160, 155.5, 2, 3)


def test_a_solver_that_takes_none_of_the_problems_changes_nothing() -> None:
    lines = summarise([row("h", "p", skipped="no windows"), row("h", "q", skipped="no windows"), *ROWS])
    assert [(line.solver, line.cost, line.to_first) for line in lines] == [
        ("h", None, None),
        ("a", 160, 0),
        ("b", 155.5, pytest.approx(-1.5)),
    ]


def test_gap_to_best_known_only_where_all_have_one() -> None:
    (line,) = summarise([row("a", "p", 100, 100), row("a", "q", 100)])
    assert line.to_best_known is None


def test_the_last_row_of_a_run_counts() -> None:
    (line,) = summarise([row("a", "p", error="exit code 1"), row("a", "p", 100)])
    assert (line.cost, line.solved, line.runs) == (100, 1, 1)


def test_rows_of_several_versions_are_told() -> None:
    (line,) = summarise([row("a", "p", 100), row("a", "q", 100, solver_version="2"), row("a", "r", 100)])
    assert line.version == "1, 2"


def render(rows: list[Row]) -> str:
    stream = StringIO()
    Console(width=80, file=stream).print(table(rows))
    return stream.getvalue()


def test_a_core_that_was_shared_is_told() -> None:
    note = "1 runs had to share their core"
    assert note in render([*ROWS, row("a", "r", 100, cpu_seconds=0.9)])
    assert note not in render([*ROWS, row("a", "r", 100, cpu_seconds=0.99)])


def test_table() -> None:
    text = render([*ROWS, row("b", "r", error="exit code 1"), row("h", "p", skipped="no windows")])
    line = next(line for line in text.splitlines() if "│ b " in line)
    assert [cell.strip() for cell in line.strip("│").split("│")] == [
        "X", "b", "60 s", "155.5000", "-1.50%", "+3.25%", "1.6 s", "2/3",
    ]  # fmt: skip
    notes = [line.strip() for line in text.splitlines()]
    assert notes[-4:] == [
        "versions: a 1, b 1, h 1",
        "means are over the instances all solvers solved",
        "1 failed, the last b on r: exit code 1",
        "no windows",
    ]
