"""NDS and SISRs under several time limits (section 5.3 and its appendix)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ndsvrp.experiments.context import Context, Findings
from ndsvrp.experiments.scales import PROBLEMS
from ndsvrp.experiments.searches import Limit, Series, baselines, reference_of, search
from ndsvrp.experiments.sets import test_cases
from ndsvrp.experiments.summaries import Line, cost_table, summarise
from ndsvrp.experiments.trainings import policy
from ndsvrp.plot.lines import PlotLine
from ndsvrp.plot.panels import LinePanel, plot_line_panels
from ndsvrp.plot.style import solver_colours

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERIES = ("NDS", "SISRs")


def augmentations(problem: str, size: int, seconds: float) -> int | None:
    """Return A for a size and a limit of the paper where it is not that of the main table; None elsewhere."""
    if problem != "pcvrp":
        return None
    if size == 1000 and seconds >= 240:
        return 256
    if size == 2000:
        return 64 if seconds <= 240 else 256 if seconds >= 960 else None
    return None


def runtime_limits(context: Context) -> Findings:
    """Run both solvers with each limit; differences are to SISRs with the longest limit."""
    rows, scale = [], context.scale
    sets = {
        (problem, size): test_cases(context, problem, size, scale.limit_tests)
        for problem in PROBLEMS
        for size in scale.sizes(*scale.limits)
    }
    for size in scale.sizes(*scale.limits):
        of_size = [sets[problem, size] for problem in PROBLEMS]
        rows += baselines(context, of_size, ["sisr"], [scale.short_share * limit for limit in scale.limits[size]])
    for (problem, size), cases in sets.items():
        model, asked = policy(context, cases[0].load(), problem, size), scale.limits[size]
        for chains in dict.fromkeys(augmentations(problem, size, limit) for limit in asked):
            limits = [Limit(scale.short_share * s) for s in asked if augmentations(problem, size, s) == chains]
            rows += search(context, cases, Series("NDS", model, chains=chains), limits)
    reference = {cases[0].set: reference_of(context, ["sisr"], "NDS") for cases in sets.values()}
    lines = summarise(rows, reference, longest=True)
    notes = [
        f"Limits are {100 * scale.short_share:g}% of the paper's; differences are to SISRs with its longest limit",
        "A is 8 (PCVRP 128); for the PCVRP with 1000 customers 256 from 240 s of the paper on; with 2000 customers 64 "
        "up to 240 s and 256 at 960 s",
    ]
    table = cost_table(context.name, lines, {}, reference, notes)
    return Findings([table], {"": picture(lines, list(reference))})


def picture(lines: Sequence[Line], sets: Sequence[str]) -> "Figure":
    """Draw a panel per set; the sets of a problem are a row."""
    colours = solver_colours(SERIES)
    panels = []
    for name in sets:
        drawn = []
        for series in SERIES:
            of_series = [line for line in lines if (line.set, line.series) == (name, series)]
            points = sorted((line.limit or 0.0, line.difference or 0.0) for line in of_series)
            drawn.append(PlotLine(series, [x for x, _ in points], [y for _, y in points], colours[series]))
        panels.append(LinePanel(name, drawn))
    columns = len(sets) // len(PROBLEMS)
    return plot_line_panels(panels, x_label="seconds", y_label="difference, %", log_x=True, columns=columns)
