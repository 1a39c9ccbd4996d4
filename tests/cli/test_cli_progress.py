"""The line that shows the progress of a search."""

from __future__ import annotations

import io

from rich.console import Console

from ndsvrp.cli.progress import BARS, Curve, LiveLine, PlainLines, Shown, Watch, line_of, watch
from ndsvrp.metric import Metric
from ndsvrp.search.result import Progress


def progress(seconds=2.0, best=110.0, iteration=10, unserved=0):
    return Progress(iteration, seconds, best, 0.5, 50_000, unserved)


def test_line():
    assert (
        line_of(progress(), Shown(Metric.ROUND))
        == "iteration 10  2.0 s  best 110  temperature 0.5  25k reconstructions/s"
    )
    shown = Shown(Metric.ROUND, "[1/2] ", seconds=30.0, iterations=40, known=100.0)
    # 30 iterations of 0.2 s are left, one second of which has passed
    assert line_of(progress(), shown, 1.0, "▇▁") == (
        "[1/2] iteration 10  3.0 s  5 s left  best 110  gap +10.00%  ▇▁  temperature 0.5  25k reconstructions/s"
    )
    narrow = line_of(progress(), shown, 1.0, "▇▁", 80)  # whole words that fit
    assert narrow == "[1/2] iteration 10  3.0 s  5 s left  best 110  gap +10.00%  ▇▁  temperature 0.5"
    assert line_of(progress(), shown, width=5) == "[1/2] iteration 10"
    assert "  3 customers still unserved  " in line_of(progress(unserved=3), shown)
    assert "gap" not in line_of(progress(unserved=3), shown)


def test_time_left():
    assert Shown(Metric.NONE, seconds=5.0).left(progress(), since=1.0) == 2.0
    assert Shown(Metric.NONE, seconds=5.0).left(progress(), since=9.0) == 0.0
    assert Shown(Metric.NONE, seconds=60.0, iterations=15).left(progress()) == 1.0
    assert Shown(Metric.NONE, iterations=15).left(progress(iteration=0)) is None


def test_curve():
    curve = Curve()
    assert curve.draw(1.0) == ""
    for seconds, best, unserved in (
        (0.0, 900.0, 2),
        (0.1, 800.0, 0),
        (1.0, 180.0, 0),
        (5.0, 140.0, 0),
        (10.0, 100.0, 0),
    ):
        curve.add(progress(seconds, best, unserved=unserved))
    # a column per second: 800 is above the scale, 180 is its top, 140 the middle, 100 the bottom
    assert curve.draw(16.0) == BARS[7] * 4 + BARS[4] * 5 + BARS[0] * 7
    curve.add(progress(12.0, 100.0))
    assert len(curve.draw(16.0)) == 16


def test_the_console_decides():
    shown = Shown(Metric.NONE, seconds=9.0)
    assert type(watch(Console(file=io.StringIO()), shown, quiet=True)) is Watch
    assert isinstance(watch(Console(file=io.StringIO()), shown, quiet=False), PlainLines)
    terminal = Console(file=io.StringIO(), force_terminal=True, width=140)
    live = watch(terminal, shown, quiet=False)
    assert isinstance(live, LiveLine)
    with live:
        live(progress(1.0, 120.0))
        live(progress(2.0, 110.0))
    assert "best 110.0000" in terminal.file.getvalue() and "s left" in terminal.file.getvalue()
