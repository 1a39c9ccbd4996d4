"""The tool that runs SISRs as its paper does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ndsvrp import read

ROOT = Path(__file__).parents[2]
TOOL = "sisrs_iterations"


def test_iterations_of_the_paper(tool: Any) -> None:
    """it(100) = 3e7, it(1000) = 3e8, linear in between; a share of them in whole thousands."""
    assert [tool.iterations(n) for n in (100, 550, 1000)] == [30_000_000, 165_000_000, 300_000_000]
    assert tool.iterations(105, 1e-4) == 3000
    assert tool.iterations(100, 1e-9) == 1000


def test_a_run(tool: Any) -> None:
    problem = read(ROOT / "examples/data/X-n106-k14.vrp")
    runs = [tool.run(problem, seed, 1e-4) for seed in (1, 2)]
    assert [(each.instance, each.customers, each.iterations) for each in runs] == [("X-n106-k14", 105, 3000)] * 2
    for each in runs:
        assert each.gap == pytest.approx(100 * (each.cost / 26362 - 1))
        assert 26362 <= each.cost < 1.2 * 26362
    mean = (runs[0].cost + runs[1].cost) / 2
    assert tool.table(runs)[2].startswith(f"| X-n106-k14 | 3,000 | 2 | {mean:.1f} | ")
    with pytest.raises(SystemExit, match="four: no best known cost"):
        tool.run(problem.replace(name="four"), 1, 1e-4)
