"""Pictures of experiments: solvers have their colours and their order in every panel."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from ndsvrp.experiments.runtime_limits import picture
from ndsvrp.experiments.summaries import Line
from ndsvrp.plot.style import SOLVERS, solver_colours

ROOT = Path(__file__).parents[2]


@pytest.fixture
def redraw(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("redraw_experiments")


def rows_of_panels(figure: Figure) -> dict[str, list[str]]:
    return {axes.get_title(): [label.get_text() for label in axes.get_yticklabels()] for axes in figure.axes}


def test_runtime_limits_have_the_colours_of_solvers() -> None:
    lines = [
        Line(f"{problem}100", series, limit, 1, 1.0, limit, None, limit)
        for problem in ("cvrp", "vrptw", "pcvrp") for series in ("SISRs", "NDS") for limit in (1.0, 2.0)
    ]  # fmt: skip
    figure = picture(lines, ["cvrp100", "vrptw100", "pcvrp100"])
    for axes in figure.axes:
        drawn = [line.get_color() for line in axes.get_lines()]
        assert drawn == [to_rgb(SOLVERS["nds"]), to_rgb(SOLVERS["sisr"])]


def test_recorded_rows_are_drawn_in_one_order(redraw: ModuleType) -> None:
    """Baselines are in the file as they ended."""
    panels = rows_of_panels(redraw.draw_main_table())
    assert list(panels)[:5] == ["cvrp100", "cvrp500", "cvrp1000", "cvrp2000", "vrptw100"] and len(panels) == 12
    for name, labels in panels.items():
        first = ["HGS", "PyVRP"] if name.startswith("cvrp") else ["PyVRP"]
        assert labels == [*first, "SISRs", "NDS"]
    sizes = rows_of_panels(redraw.draw_sizes())
    assert list(sizes) == ["cvrp100", "vrptw100", "pcvrp100", "cvrp1000", "vrptw1000", "pcvrp1000"]
    layouts = rows_of_panels(redraw.draw_distributions())
    assert [labels for labels in layouts.values()] == 4 * [["HGS", "SISRs", "NDS (OOD)", "NDS (ID)"]]
    assert len(redraw.draw_runtime_limits().axes) == 9


def test_configurations_of_a_solver_have_their_shades_in_any_order() -> None:
    names = ["NDS (OOD)", "HGS", "NDS (ID)", "NDS"]
    assert solver_colours(names) == {name: solver_colours(names[::-1])[name] for name in names}
