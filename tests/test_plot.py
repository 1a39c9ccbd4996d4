"""Pictures: what is drawn where, and how it gets into a file."""

from __future__ import annotations

import logging
import pathlib
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.path import Path

from ndsvrp.check import check
from ndsvrp.errors import NdsError
from ndsvrp.generate import generate
from ndsvrp.plot import plot_routes, plot_trace
from ndsvrp.plot.style import FAINT, SOLVERS, palette, solver_colours
from ndsvrp.problem import Problem
from ndsvrp.search.result import Result, TracePoint
from ndsvrp.solution import Solution

PLACES = [[0, 0], [3, 4], [6, 8], [-3, 4], [0, -12]]


def four(**changes: Any) -> Problem:
    fields: dict[str, Any] = {"coordinates": PLACES, "demand": [0, 2, 3, 4, 5], "capacity": 7, "name": "four"}
    return Problem(**(fields | changes))


def artists(figure: Figure) -> dict[str, Any]:
    return {str(a.get_label()): a for a in figure.axes[0].collections}


def title(figure: Figure) -> str:
    return figure.axes[0].get_title()


def segments(collection: Any) -> list[list[list[float]]]:
    return [np.asarray(segment).tolist() for segment in collection.get_segments()]


# --- routes ------------------------------------------------------------------------------------


def test_routes_legs_and_customers_are_where_they_belong() -> None:
    figure = plot_routes(four(), Solution([(1, 2), (3,), (4,)]))
    drawn = artists(figure)
    # By direction from the depot, as seen from the middle of each route: 4 (-90°), 1-2 (53°), 3 (127°).
    assert segments(drawn["routes"]) == [[[0, -12]], [[3, 4], [6, 8]], [[-3, 4]]]
    assert segments(drawn["legs"]) == [
        [[0, 0], [0, -12]], [[0, 0], [0, -12]],
        [[0, 0], [3, 4]], [[0, 0], [6, 8]],
        [[0, 0], [-3, 4]], [[0, 0], [-3, 4]],
    ]  # fmt: skip
    assert drawn["served"].get_offsets().tolist() == [[0, -12], [3, 4], [6, 8], [-3, 4]]
    assert drawn["depot"].get_offsets().tolist() == [[0, 0]]
    assert drawn["unserved"].get_offsets().tolist() == []


def test_a_route_has_one_colour() -> None:
    drawn = artists(plot_routes(four(), Solution([(1, 2), (3,), (4,)])))
    colours = palette(3)
    assert drawn["routes"].get_colors()[:, :3] == pytest.approx(colours)
    assert drawn["legs"].get_colors()[:, :3] == pytest.approx(colours[[0, 0, 1, 1, 2, 2]])
    assert drawn["served"].get_facecolors()[:, :3] == pytest.approx(colours[[0, 1, 1, 2]])


def test_first_and_last_legs_are_faint_and_dashed() -> None:
    drawn = artists(plot_routes(four(), Solution([(1, 2), (3,), (4,)])))
    assert drawn["legs"].get_alpha() == 0.3
    assert drawn["legs"].get_linestyles()[0][1] is not None
    assert drawn["routes"].get_linestyles()[0][1] is None
    assert drawn["legs"].get_linewidths()[0] < drawn["routes"].get_linewidths()[0]


def test_unserved_customers_are_hollow() -> None:
    figure = plot_routes(four(prize=[0, 0, 4, 12, 24]), Solution([(1,), (3,)]))
    hollow = artists(figure)["unserved"]
    assert hollow.get_offsets().tolist() == [[6, 8], [0, -12]]
    assert len(hollow.get_facecolors()) == 0
    assert title(figure) == "four: cost 48.0000, 2 routes, 2 not served"  # 10 + 10 + 4 + 24


def test_prizes_are_the_areas_of_dots() -> None:
    """The mean prize is 4; the area of the largest is limited, and a required customer has the plain area."""
    figure = plot_routes(four(prize=[0, 0, 1, 3, 8]), Solution([(1, 3), (4,)]))
    drawn = artists(figure)
    assert drawn["served"].get_sizes() == pytest.approx([26 * 2, 26, 26 * 0.75])  # 4, 1 and 3
    assert drawn["unserved"].get_sizes() == pytest.approx([1.3 * 26 * 0.25])
    assert figure.axes[0].get_xlabel() == "area of a dot: prize"
    many = four(prize=[0, 1, 1, 1, 97])
    assert artists(plot_routes(many, Solution([(1,), (4,)])))["served"].get_sizes() == pytest.approx([26 * 3, 26 * 0.2])


def test_windows_are_sectors() -> None:
    """The depot is open from 0 to 80: 1 until a quarter past, 2 always, 3 in the last quarter, 4 for a moment."""
    problem = four(windows=[[0, 80], [0, 20], [0, 80], [60, 80], [40, 40]], prize=[0, 0, 0, 0, 1])
    figure = plot_routes(problem, Solution([(1, 2), (3,)]))
    drawn = artists(figure)
    assert len(drawn["served"].get_facecolors()) == 1 and drawn["served"].get_facecolors()[0].tolist() == [1, 1, 1, 1]
    assert drawn["served"].get_edgecolors()[:, :3] == pytest.approx(palette(2)[[0, 0, 1]])
    assert drawn["windows"].get_facecolors()[:, :3] == pytest.approx(palette(2)[[0, 0, 1]])

    def turns(path: Any) -> list[float]:
        """Return where a sector begins and ends, in turns from the top, clockwise."""
        ends = [path.vertices[1], path.vertices[-3]]  # the first and the last vertex are the centre
        return sorted(round(float(np.arctan2(x, y) / (2 * np.pi)), 3) % 1 for x, y in ends)

    one, two, three = drawn["windows"].get_paths()
    assert (turns(one), turns(three)) == ([0, 0.25], [0, 0.75])
    assert np.abs(two.vertices).max() == pytest.approx(0.5) and len(two.vertices) == len(Path.unit_circle().vertices)
    (moment,) = drawn["unserved windows"].get_paths()
    assert turns(moment) == [0.475, 0.525], "wide enough to be seen"
    assert drawn["unserved windows"].get_facecolors()[0, :3] == pytest.approx(to_rgb(FAINT))
    assert "sector: time window" in figure.axes[0].get_xlabel()


def test_windows_of_many_customers_are_not_drawn() -> None:
    (problem,) = generate("vrptw", 401)
    figure = plot_routes(problem, Solution([(c,) for c in range(1, 402)]))
    assert "windows" not in artists(figure) and figure.axes[0].get_xlabel() == ""


@pytest.mark.parametrize(
    ("metric", "words"),
    [("none", "cost 54.0000"), ("round", "cost 54"), ("dimacs", "cost 54.0"), ("exact", "cost 54.000")],
)
def test_title(metric: str, words: str) -> None:
    solution = Solution([(1, 2), (3,), (4,)])
    assert title(plot_routes(four(metric=metric), solution)) == f"four: {words}, 3 routes"
    assert title(plot_routes(four(metric=metric), solution, title="mine")) == f"mine: {words}, 3 routes"


def test_title_says_what_is_wrong() -> None:
    assert title(plot_routes(four(), Solution([(1, 2, 3, 4)]))).endswith(", 1 route, infeasible")
    assert title(plot_routes(four(), Solution([]))) == "four: cost 0.0000, 0 routes, 4 not served, infeasible"


def test_aspect_is_equal() -> None:
    assert plot_routes(four(), Solution([(1, 2), (3,), (4,)])).axes[0].get_aspect() == 1.0


def test_an_empty_route_is_not_drawn() -> None:
    drawn = artists(plot_routes(four(), Solution([(1, 2), (), (3,), (4,)])))
    assert len(segments(drawn["routes"])) == 3


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 10_000])
def test_sizes(n: int, tmp_path: pathlib.Path) -> None:
    (problem,) = generate("cvrp", n)
    routes = np.array_split(np.arange(1, n + 1), max(1, n // 50))
    drawn = artists(plot_routes(problem, Solution(routes), tmp_path / "routes.png"))
    assert len(drawn["served"].get_offsets()) == n
    assert len(segments(drawn["routes"])) == len(routes)
    assert drawn["served"].get_sizes()[0] == (26 if n == 1 else 1.2)


def test_all_customers_in_one_place(tmp_path: pathlib.Path) -> None:
    plot_routes(four(coordinates=[[1, 1]] * 5), Solution([(1, 2), (3,), (4,)]), tmp_path / "point.png")


def test_without_coordinates() -> None:
    problem = Problem(distance=np.ones((3, 3)), demand=[0, 1, 1], capacity=2, name="streets")
    with pytest.raises(NdsError) as caught:
        plot_routes(problem, Solution([(1, 2)]))
    assert str(caught.value) == "'streets' has no coordinates, only distances: its routes cannot be drawn"


def test_unknown_customer() -> None:
    with pytest.raises(NdsError, match=r"^route 2: there is no customer 5$"):
        plot_routes(four(), Solution([(1,), (5,)]))


def test_the_palette_keeps_neighbours_apart() -> None:
    colours = palette(300)
    assert colours.min() >= 0
    assert colours.max() <= 1
    assert np.linalg.norm(np.diff(colours, axis=0), axis=1).min() > 0.35
    luminance = colours @ [0.2126, 0.7152, 0.0722]
    assert luminance.max() < 0.75  # none too light for a white ground
    assert np.array_equal(palette(300)[:10], palette(10))


def test_a_solver_has_its_colour_in_every_picture() -> None:
    colours = solver_colours(["pyvrp-0.9.0", "sisr", "mine", "pyvrp", "nds-policy-cuda-128", "yours"])
    assert list(colours) == ["pyvrp-0.9.0", "sisr", "mine", "pyvrp", "nds-policy-cuda-128", "yours"]
    assert colours["pyvrp"] == to_rgb(SOLVERS["pyvrp"]) and colours["sisr"] == to_rgb(SOLVERS["sisr"])
    assert colours["nds-policy-cuda-128"] == to_rgb(SOLVERS["nds"]), "there is no plain one"
    assert colours["pyvrp-0.9.0"] == pytest.approx([0.6 * channel for channel in to_rgb(SOLVERS["pyvrp"])])
    assert [colours["mine"], colours["yours"]] == [pytest.approx(tuple(colour)) for colour in palette(2)]
    known = np.array([to_rgb(colour) for colour in SOLVERS.values()])
    apart = np.linalg.norm(known[:, None] - known[None], axis=-1)[np.triu_indices(len(known), 1)]
    assert apart.min() > 0.25
    lighter = solver_colours(["hgs", "hgs-a", "hgs-b"])["hgs-b"]
    assert lighter == pytest.approx([1 - 0.65 * (1 - channel) for channel in to_rgb(SOLVERS["hgs"])])


# --- files -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG\r\n"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF"), ("A.PNG", b"\x89PNG\r\n")]
)
def test_format_by_suffix(name: str, start: bytes, tmp_path: pathlib.Path) -> None:
    plot_routes(four(), Solution([(1, 2), (3,), (4,)]), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [p.name for p in tmp_path.iterdir()] == [name]  # no draft is left behind


def test_pdf_files_are_written_quietly(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        plot_routes(four(), Solution([(1, 2), (3,), (4,)]), tmp_path / "a.pdf")
    assert caplog.text == ""


def test_pdf_files_have_true_type_fonts(tmp_path: pathlib.Path) -> None:
    windows = four(windows=[[0, 80]] + [[0, 40]] * 4)
    plot_routes(windows, Solution([(1, 2), (3,), (4,)]), tmp_path / "a.pdf")
    content = (tmp_path / "a.pdf").read_bytes()
    assert b"/Type3" not in content and b"/CIDFontType2" in content


def test_other_formats_are_refused_before_drawing(tmp_path: pathlib.Path) -> None:
    for draw in (lambda f: plot_routes(four(), Solution([(9,)]), f), lambda f: plot_trace([], f)):
        with pytest.raises(NdsError) as caught:
            draw("x.gif")
        assert str(caught.value) == "x.gif: pictures are written as .png, .svg, .pdf, not as '.gif'"


def test_a_failed_picture_leaves_the_old_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.png"
    file.write_text("old")

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("no ink")

    monkeypatch.setattr(Figure, "savefig", broken)
    with pytest.raises(RuntimeError, match="no ink"):
        plot_routes(four(), Solution([(1, 2), (3,), (4,)]), file)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_missing_folder_is_one_line(tmp_path: pathlib.Path) -> None:
    with pytest.raises(NdsError) as caught:
        plot_routes(four(), Solution([(1, 2), (3,), (4,)]), tmp_path / "no" / "a.png")
    assert str(caught.value) == f"{tmp_path / 'no' / 'a.png'}: cannot be written (No such file or directory)"


def test_no_global_state() -> None:
    import sys

    before = dict(matplotlib.rcParams)
    loaded = "matplotlib.pyplot" in sys.modules
    plot_routes(four(), Solution([(1, 2), (3,), (4,)]))
    assert dict(matplotlib.rcParams) == before
    assert ("matplotlib.pyplot" in sys.modules) == loaded


# --- traces ------------------------------------------------------------------------------------


def result(*trace: tuple[float, int, float], seed: int = 1, seconds: float = 10.0, **settings: Any) -> Result:
    problem, solution = four(), Solution([(1, 2), (3,), (4,)])
    points = tuple(TracePoint(*point) for point in trace)
    return Result(problem, solution, check(problem, solution), seed, "time", seconds, 5, 50, settings, points)


def test_trace_is_a_staircase_held_to_the_end() -> None:
    figure = plot_trace(result((0.0, 0, 60.0), (2.0, 1, 55.0), (4.0, 3, 54.0)), log_time=False)
    (line,) = figure.axes[0].get_lines()
    assert np.asarray(line.get_xdata()).tolist() == [0, 2, 4, 10]
    assert np.asarray(line.get_ydata()).tolist() == [60, 55, 54, 54]
    assert line.get_drawstyle() == "steps-post"
    assert figure.axes[0].get_xscale() == "linear"
    assert title(figure) == "four"
    (end,) = figure.axes[0].collections
    assert end.get_offsets().tolist() == [[10, 54]]


def test_time_is_logarithmic_over_three_decades() -> None:
    figure = plot_trace([result((0.0, 0, 60.0), (2.0, 1, 55.0))])
    (line,) = figure.axes[0].get_lines()
    assert np.asarray(line.get_xdata()).tolist() == [0.01, 2, 10]
    assert figure.axes[0].get_xscale() == "log"
    assert figure.axes[0].get_xlim() == pytest.approx((0.01, 10.8))


def test_time_begins_where_the_first_line_enters() -> None:
    """At 0.1 s costs fall from 900, above the picture, to 70."""
    a = result((0.001, 0, 900.0), (0.1, 1, 70.0), (0.3, 2, 64.0), (5.0, 9, 54.0))
    assert plot_trace(a).axes[0].get_xlim() == pytest.approx((0.1, 10.8))
    assert plot_trace(a, whole=True).axes[0].get_xlim() == pytest.approx((0.01, 10.8))
    b = result((0.05, 0, 60.0), (4.0, 1, 55.0), seed=2)
    assert plot_trace([a, b]).axes[0].get_xlim() == pytest.approx((0.05, 10.8))
    late = result((9.9, 0, 60.0))
    assert plot_trace(late).axes[0].get_xlim() == pytest.approx((1.0, 10.8)), "at least a decade"


def test_first_solutions_do_not_determine_the_height() -> None:
    a = result((0.0, 0, 900.0), (0.1, 1, 70.0), (0.3, 2, 64.0), (5.0, 9, 54.0))  # 70 at 0.2 s, 2% of the time
    b = result((0.1, 0, 900.0), (3.0, 3, 60.0), seed=2)  # the first solution holds for 3 s
    assert plot_trace([a, b]).axes[0].get_ylim() == pytest.approx((54 - 0.06 * 16, 70 + 0.06 * 16))
    assert plot_trace([a, b], whole=True).axes[0].get_ylim()[1] > 900
    assert plot_trace(a, best=50.0).axes[0].get_ylim() == pytest.approx((50 - 0.06 * 20, 70 + 0.06 * 20))
    constant = plot_trace(result((0.0, 0, 60.0))).axes[0].get_ylim()
    assert constant[0] < 60 < constant[1]


def test_a_best_known_cost_is_a_line_with_gaps_beside_it() -> None:
    figure = plot_trace(result((0.0, 0, 60.0), (2.0, 1, 55.0)), best=50.0)
    axes = figure.axes[0]
    assert [str(line.get_label()) for line in axes.get_lines()] == ["run, seed 1", "best known, 50"]
    figure.draw_without_rendering()
    (gaps,) = axes.child_axes
    low, high = axes.get_ylim()
    assert gaps.get_ylim() == pytest.approx((2 * (low - 50), 2 * (high - 50)))


def test_lines_are_named() -> None:
    a, b = result((0, 0, 60.0), solver="sisr"), result((0, 0, 61.0), seed=2)

    def names(figure: Figure) -> list[str]:
        return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]

    assert names(plot_trace([a, b])) == ["sisr, seed 1", "run, seed 2"]
    figure = plot_trace({"one": a, "two": b})
    assert names(figure) == ["one", "two"]
    assert [to_rgb(line.get_color()) for line in figure.axes[0].get_lines()] == [
        pytest.approx(tuple(colour)) for colour in palette(2)
    ]


def test_nothing_to_draw() -> None:
    with pytest.raises(NdsError, match=r"^no results to draw$"):
        plot_trace([])
    with pytest.raises(NdsError, match=r"^the result 'run, seed 1' has no trace to draw$"):
        plot_trace(result())


def test_something_else_than_results() -> None:
    words = "plot_trace needs a Result, several, or a table of them, got"
    for given, kind in ((5, "int"), ([result((0, 0, 60.0)), 5], "int"), ({"a": None}, "NoneType"), ("a.json", "str")):
        with pytest.raises(NdsError) as caught:
            plot_trace(given)  # type: ignore[arg-type]
        assert str(caught.value) == f"{words} {kind}"
    with pytest.raises(NdsError, match=r"^best must be a number, got '50'$"):
        plot_trace(result((0, 0, 60.0)), best="50")  # type: ignore[arg-type]


def test_trace_file(tmp_path: pathlib.Path) -> None:
    plot_trace(result((0, 0, 60.0)), tmp_path / "trace.svg")
    assert (tmp_path / "trace.svg").read_bytes().startswith(b"<?xml")
