"""Policies on instances that differ from those of their training: other distributions, other sizes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ndsvrp.experiments import published
from ndsvrp.experiments.context import Context, Findings
from ndsvrp.experiments.main_table import FIRST
from ndsvrp.experiments.scales import MIDDLE, PROBLEMS, SECONDS
from ndsvrp.experiments.searches import Limit, Series, baselines, reference_of, search
from ndsvrp.experiments.sets import DISTRIBUTIONS, distribution_cases, test_cases
from ndsvrp.experiments.summaries import Line, cost_table, summarise
from ndsvrp.experiments.trainings import MIXED, Training, reference, trained
from ndsvrp.plot.panels import Dot, DotPanel, plot_dot_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OTHERS = (100, 1000, 2000)  #: sizes that a policy for 500 customers is tested on
ID, OOD = "NDS (ID)", "NDS (OOD)"


def distribution(context: Context) -> Findings:
    """A policy for mixed layouts and medium capacities on four other distributions, beside a policy for each."""
    rows, columns = [], {}
    seconds = context.scale.short_share * SECONDS[MIDDLE]
    mixed = trained(context, Training("cvrp", distribution=MIXED))
    sets = {name: distribution_cases(context, name) for name in DISTRIBUTIONS}
    rows += baselines(context, list(sets.values()), ["hgs", "sisr"], [seconds])
    for name, cases in sets.items():
        columns[cases[0].set] = name
        own = trained(context, Training("cvrp", distribution=name))
        for series in (Series(OOD, mixed), Series(ID, own)):
            rows += search(context, cases, series, [Limit(seconds)])
    first = dict.fromkeys(columns, reference_of(context, ["hgs", "sisr"], ID))
    return _findings(context, summarise(rows, first), columns, first)


def size(context: Context) -> Findings:
    """A policy for 500 customers on other sizes, beside policies for these sizes."""
    rows, columns, first = [], {}, {}
    for other in [each for each in OTHERS if each in context.scale.trained_sizes]:
        seconds, tests = context.scale.short_share * SECONDS[other], context.scale.table_tests
        sets = {problem: test_cases(context, problem, other, tests) for problem in PROBLEMS}
        rows += baselines(context, list(sets.values()), list(dict.fromkeys(FIRST.values())), [seconds])
        for problem, cases in sets.items():
            columns[cases[0].set] = f"{problem}{other}"
            first[cases[0].set] = reference_of(context, [FIRST[problem]], ID)
            own, middle = (trained(context, reference(context, problem, at)) for at in (other, MIDDLE))
            for series in (Series(ID, own), Series(OOD, middle)):
                rows += search(context, cases, series, [Limit(seconds)])
    return _findings(context, summarise(rows, first), columns, first)


def _findings(context: Context, lines: list[Line], columns: dict[str, str], first: dict[str, str]) -> Findings:
    share, short = context.scale.short_share, context.scale.training
    notes = [f"Limits are {100 * share:g}% of the paper's seconds; HGS, PyVRP and SISRs have one core"]
    if short is not None:
        notes.append(f"Policies are {short.note}")
    table = cost_table(context.name, lines, columns, first, notes)
    theirs = published.table(context.name)
    figure = picture(context.name, lines, columns, first)
    return Findings([table, *([theirs] if theirs else [])], {"": figure})


def picture(experiment: str, lines: Sequence[Line], columns: Mapping[str, str], first: Mapping[str, str]) -> "Figure":
    """Draw a panel per set; `columns` maps sets to columns of the paper's table, `first` to the references."""
    panels = [
        DotPanel(name, [
            Dot(line.series, line.difference or 0.0, line.error,
                published.difference(experiment, column, line.series, first[name]))
            for line in lines if line.set == name
        ])
        for name, column in columns.items()
    ]  # fmt: skip
    names = " or ".join(dict.fromkeys(first.values()))
    return plot_dot_panels(panels, x_label=f"difference to {names}, %", columns=2 if len(panels) == 4 else 3)
