"""The pictures of a report, as addresses that a page can embed. A solver has the same colour in all of them."""

import base64
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from ndsvrp.bench.report.curves import Curve, Profile, SizeLine
from ndsvrp.plot.lines import PlotLine, plot_lines
from ndsvrp.plot.style import to_svg
from ndsvrp.text import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LATE = 0.02  # share of the time limit from which on a curve determines the height of its picture


def draw(
    solvers: Sequence[str], curves: Sequence[Curve], profiles: Sequence[Profile], sizes: Sequence[SizeLine]
) -> Iterator[tuple[str, str]]:
    """Draw a picture per set and kind. Return titles and `data:` addresses."""
    colour = {solver: number for number, solver in enumerate(solvers)}
    for name, group in groupby(curves, key=lambda curve: curve.set):
        of_set = list(group)
        dash = _dashes(curve.budget for curve in of_set)
        lines = [
            PlotLine(_label(curve), curve.seconds, curve.gaps, colour[curve.solver], dash[curve.budget])
            for curve in of_set
        ]
        late = [g for c in of_set for t, g in zip(c.seconds, c.gaps, strict=True) if t >= LATE * c.budget]
        highest = max(filter(math.isfinite, late), default=0.0)
        figure = plot_lines(
            lines, title=printable(f"{name}, mean over {of_set[0].instances} instances"), x_label="seconds",
            y_label="gap to best, %", log_x=True, steps=True, top=1.1 * highest if highest > 0 else None,
        )  # fmt: skip
        yield f"Gap over time: {name}", _address(figure)
    for name, profile_group in groupby(profiles, key=lambda profile: profile.set):
        yield f"Performance profile: {name}", _address(_profile_picture(name, list(profile_group), colour))
    for family, size_group in groupby(sorted(sizes, key=lambda line: line.family), key=lambda line: line.family):
        lines = [
            PlotLine(printable(line.solver), [float(size) for size in line.sizes], line.gaps, colour[line.solver])
            for line in size_group
        ]
        figure = plot_lines(
            lines, title=printable(family), x_label="customers", y_label="gap to best, %", log_x=True, markers=True
        )
        yield f"Gap against size: {family}", _address(figure)


def _profile_picture(name: str, profiles: Sequence[Profile], colour: dict[str, int]) -> "Figure":
    finite = [gap for profile in profiles for gap in profile.gaps if math.isfinite(gap)]
    end = 1.05 * max(finite, default=0.0) or 1.0
    dash = _dashes(profile.budget for profile in profiles)
    lines = []
    for profile in profiles:
        gaps = [0.0, *(max(0.0, gap) for gap in profile.gaps if math.isfinite(gap)), end]
        shares = [100 * profile.share(gap) for gap in gaps]
        lines.append(PlotLine(_label(profile), gaps, shares, colour[profile.solver], dash[profile.budget]))
    title = printable(f"{name}, {len(profiles[0].gaps)} instances")
    return plot_lines(lines, title=title, x_label="gap to best, %", y_label="share of instances, %", steps=True)


def _dashes(budgets: Iterable[float]) -> dict[float, int]:
    return {budget: number for number, budget in enumerate(sorted(set(budgets), reverse=True))}


def _label(line: Curve | Profile) -> str:
    return printable(f"{line.solver}, {line.budget:g} s")


def _address(figure: "Figure") -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(to_svg(figure)).decode()
