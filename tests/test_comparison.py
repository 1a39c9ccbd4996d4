"""docs/comparison.md: both columns run and agree, and ours has not more lines in any row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyvrp")

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs/comparison.md").read_text(encoding="utf-8")
BLOCK = r"```python\n(.*?)```"
ROWS = re.findall(rf"^## (.*?)\n(?:(?!^## ).)*?PyVRP:\n\n{BLOCK}\n\nndsvrp:\n\n{BLOCK}", TEXT, re.DOTALL | re.MULTILINE)
TASKS = ["CVRP from CSV", "VRPTW with names and schedules", "Your own matrix", "A cost of each vehicle",
         "A stop criterion", "A callback", "A picture", "A warm start"]  # fmt: skip
# Whole costs of PyVRP may differ from ours by half a unit per edge, on the two tasks with coordinates and no metric.
ROUNDING = {"CVRP from CSV": 5.0, "VRPTW with names and schedules": 4.0, "Your own matrix": 0.0}


def lines(code: str) -> int:
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in code.splitlines())


def run(code: str) -> dict[str, Any]:
    """Run a block with short time limits, and return its names."""
    short = re.sub(r"(MaxRuntime\(|time=)[15]\b", r"\g<1>0.1", code)
    names: dict[str, Any] = {}
    exec(compile(short, "comparison.md", "exec"), names)
    return names


def test_every_task_is_there() -> None:
    assert [title for title, _, _ in ROWS] == TASKS


@pytest.mark.parametrize(("title", "theirs", "ours"), ROWS, ids=[title for title, _, _ in ROWS])
def test_row(title: str, theirs: str, ours: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines(ours) <= lines(theirs)
    assert f"| [{title}](#{title.lower().replace(' ', '-')}) | {lines(theirs)} | {lines(ours)} |" in TEXT
    assert max(map(len, ours.splitlines())) <= 110 and max(map(len, theirs.splitlines())) <= 110  # no row is squeezed
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (table,) = re.findall(r"```csv\n(.*?)```", TEXT, re.DOTALL)
    (tmp_path / "stops.csv").write_text(table)
    (tmp_path / "known.sol").write_text((ROOT / "tests/data/lib/X/X-n106-k14.sol").read_text())
    they, we = run(theirs), run(ours)
    assert they["result"].is_feasible() and we["result"].report.feasible
    if title in ROUNDING:
        assert we["result"].cost == pytest.approx(they["result"].cost(), abs=ROUNDING[title])
    if title == "A cost of each vehicle":
        assert they["result"].best.fixed_vehicle_cost() == 500 * they["result"].best.num_routes()
        assert we["result"].report.vehicle_costs == 500 * len(we["result"].solution.routes)
    if title == "A callback":
        assert (len(they["recorder"].costs), len(we["costs"])) == (20, 21)  # ours begins with the start solution
    if title == "A picture":
        assert (tmp_path / "routes.png").stat().st_size > 10_000
    if title == "A warm start":
        assert max(we["result"].cost, they["result"].cost()) == 26_362  # the best known
