"""The picture of README.md: gaps against time limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.report_rows import row
from ndsvrp.bench.rows import Row, read_rows

ROOT = Path(__file__).parents[2]
TOOL = "draw_readme"


def rows_of(solver: str, budget: float, *costs: float, **more: object) -> list[Row]:
    return [row(solver, f"000{i}", cost, set="cvrp500", budget=budget, **more) for i, cost in enumerate(costs)]


def test_gaps_are_to_the_best_of_all_rows(tool: Any) -> None:
    epyc = {"cpu": "AMD EPYC", "cores": 2}
    rows = [
        *rows_of("hgs", 10.0, 110, 220, 330, 440, hardware=epyc),
        *rows_of("hgs", 10.0, 102, 204, 306, 416, hardware=epyc),  # replaces the first
        *rows_of("hgs", 2.0, 120, 240, 360, 480, hardware=epyc),
        *rows_of("hgs", 60.0, 101, 202, 303, hardware=epyc),  # not all instances
        *rows_of("hgs", 30.0, 100, 200, 300, 400, hardware={"cpu": "Xeon", "cores": 12}),
    ]
    assert tool.gaps(rows, "hgs", tool.EPYC) == {2.0: pytest.approx(20), 10.0: pytest.approx(2.5)}


def test_every_line_has_all_time_limits(tool: Any) -> None:
    files = ROOT.glob("results/quality*.jsonl")
    rows = [each for file in files for each in read_rows(file) if each["set"] == "cvrp500"]
    assert all(list(tool.gaps(rows, solver, tool.EPYC)) == [2, 5, 10, 30, 60] for solver in tool.CORE)
    assert all(list(tool.gaps(rows, solver, tool.H200)) == [6.0] for solver in tool.GPU)
