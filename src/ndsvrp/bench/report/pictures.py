"""The pictures of a report. A solver has the same colour in all of them."""

import base64
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from ndsvrp.bench.report.curves import Curve, Profile, SizeLine
from ndsvrp.bench.report.series import limit_text
from ndsvrp.bench.report.statistics import WORST_GAP
from ndsvrp.plot.lines import PlotLine, plot_lines
from ndsvrp.plot.style import Colour, solver_colours, to_svg, write
from ndsvrp.text import amount, printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILES = (".pdf", ".png")  # of every picture: for print, and for a page
LATE = (0.02, 0.05, 0.1, 0.2, 0.5)  # shares of a time limit from which on curves determine the height of a picture


def draw(
    solvers: Sequence[str], curves: Sequence[Curve], profiles: Sequence[Profile], sizes: Sequence[SizeLine]
) -> "Iterator[tuple[str, Figure]]":
    """Draw a picture per set and kind, and return it with its title."""
    colour = solver_colours(solvers)
    for name, group in groupby(curves, key=lambda curve: curve.set):
        of_set = list(group)
        dash = _dashes(curve.budget for curve in of_set)
        lines = [
            PlotLine(
                _label(curve), curve.seconds, curve.gaps, colour[curve.solver], dash[curve.budget], not curve.traced
            )
            for curve in of_set
        ]
        over = _instances(of_set[0].instances, (curve.solved for curve in of_set))
        title = printable(f"{name}, mean over {over}")
        if left_out := of_set[0].left_out:
            title += "\n" + printable(f"without series that lack some of these: {'; '.join(left_out)}")
        figure = plot_lines(
            lines, title=title, x_label="seconds", y_label="gap to best, %",
            log_x=True, steps=True, top=_height(of_set),
        )  # fmt: skip
        yield f"Gap over time: {name}", figure
    for name, profile_group in groupby(profiles, key=lambda profile: profile.set):
        yield f"Performance profile: {name}", _profile_picture(name, list(profile_group), colour)
    for family, size_group in groupby(sorted(sizes, key=lambda line: line.family), key=lambda line: line.family):
        lines = [
            PlotLine(_size_label(line), [float(size) for size in line.sizes], line.gaps, colour[line.solver])
            for line in size_group
        ]
        figure = plot_lines(
            lines, title=printable(family), x_label="customers", y_label="gap to best, %", log_x=True, markers=True
        )
        yield f"Gap against size: {family}", figure


def _height(curves: Sequence[Curve]) -> float | None:
    """Return where the y axis ends: above what all curves show early, but without the gaps of first solutions."""
    highest = 0.0
    for share in LATE:
        late = [g for c in curves for t, g in zip(c.seconds, c.gaps, strict=True) if t >= share * c.seconds[-1]]
        highest = max(filter(math.isfinite, late), default=0.0)
        if highest <= WORST_GAP:
            break
    return 1.1 * highest if highest > 0 else None


def _profile_picture(name: str, profiles: Sequence[Profile], colour: Mapping[str, Colour]) -> "Figure":
    finite = [gap for profile in profiles for gap in profile.gaps if math.isfinite(gap)]
    end = 1.05 * max(finite, default=0.0) or 1.0
    dash = _dashes(profile.budget for profile in profiles)
    lines = []
    for profile in profiles:
        gaps = [0.0, *(max(0.0, gap) for gap in profile.gaps if math.isfinite(gap)), end]
        shares = [100 * profile.share(gap) for gap in gaps]
        lines.append(PlotLine(_label(profile), gaps, shares, colour[profile.solver], dash[profile.budget]))
    over = _instances(len(profiles[0].gaps), (profile.tried for profile in profiles))
    title = printable(f"{name}, {over}")
    return plot_lines(lines, title=title, x_label="gap to best, %", y_label="share of instances, %", steps=True)


def _dashes(budgets: Iterable[float]) -> dict[float, int]:
    return {budget: number for number, budget in enumerate(sorted(set(budgets), reverse=True))}


def _label(line: Curve | Profile) -> str:
    limit = limit_text(line.budget, line.iterations)
    if isinstance(line, Curve) and not line.traced:
        limit = f"{', '.join(f'{seconds:g}' for seconds in line.seconds)} s"
    return printable(f"{line.solver}, {limit}")


def _size_label(line: SizeLine) -> str:
    return printable(f"{line.solver}, {' to '.join(dict.fromkeys((line.limits[0], line.limits[-1])))}")


def _instances(shown: int, of_series: Iterable[int]) -> str:
    """Return how many instances a picture has, and whether series have more."""
    most = max(of_series)
    return amount(shown, "instance") + (f" that all these series have (of up to {most})" if most > shown else "")


def address(figure: "Figure") -> str:
    """Return a picture as a `data:` address, which a page can embed."""
    return "data:image/svg+xml;base64," + base64.b64encode(to_svg(figure)).decode()


def write_pictures(pictures: "Iterable[tuple[str, Figure]]", folder: Path) -> list[Path]:
    """Write every picture into the folder as PDF and PNG, named after its title. Return the files."""
    written: list[Path] = []
    used: dict[str, int] = {}
    for title, figure in pictures:
        name = re.sub(r"[^\w.]+", "-", printable(title).lower()).strip("-")
        used[name] = used.get(name, 0) + 1
        name += f"-{used[name]}" if used[name] > 1 else ""
        for suffix in FILES:
            write(figure, folder / f"{name}{suffix}")
            written.append(folder / f"{name}{suffix}")
    return written
