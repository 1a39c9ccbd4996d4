"""The paper's main table: NDS beside HGS or PyVRP and SISRs on its twelve test sets."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ndsvrp.bench.report import make_report
from ndsvrp.bench.report import tables as report_tables
from ndsvrp.experiments.context import BASELINES, Context, Findings
from ndsvrp.experiments.scales import PROBLEMS, SECONDS
from ndsvrp.experiments.searches import Limit, Series, baselines, reference_of, search
from ndsvrp.experiments.sets import test_cases
from ndsvrp.experiments.summaries import Line, cost_table, summarise
from ndsvrp.experiments.trainings import policy
from ndsvrp.plot.panels import Dot, DotPanel, plot_dot_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIRST = {"cvrp": "hgs", "vrptw": "pyvrp", "pcvrp": "pyvrp"}  #: the solver that gaps are to
OURS = "NDS"


def main_table(context: Context) -> Findings:
    """Run NDS, SISRs and HGS (CVRP) or PyVRP for the same seconds; others on one core."""
    rows, scale = [], context.scale
    sets = {
        (problem, size): test_cases(context, problem, size, scale.table_tests)
        for problem in PROBLEMS
        for size in scale.table_sizes
    }
    for size in scale.table_sizes:
        of_size = [sets[problem, size] for problem in PROBLEMS]
        rows += baselines(context, of_size, BASELINES, [scale.share * SECONDS[size]])
    for (problem, size), cases in sets.items():
        model = policy(context, cases[0].load(), problem, size)
        rows += search(context, cases, Series(OURS, model), [Limit(scale.share * SECONDS[size])])
    reference = {
        cases[0].set: reference_of(context, [FIRST[problem], "sisr"], OURS) for (problem, _), cases in sets.items()
    }
    lines = summarise(rows, reference)
    notes = [
        f"Limits are {100 * scale.share:g}% of the paper's {', '.join(f'{s:g}' for s in SECONDS.values())} s; "
        "HGS, PyVRP and SISRs have one core",
    ]
    table = cost_table(context.name, lines, {}, reference, notes)
    entries = make_report([row | {"solver": row["series"]} for row in rows]).entries
    beside = [report_tables.main_table(entries)] if entries else []
    return Findings([table, *beside], {"": picture(lines, list(reference))})


def picture(lines: Sequence[Line], sets: Sequence[str]) -> "Figure":
    """Draw a panel per set; the sets of a problem are a row."""
    panels = [
        DotPanel(name, [Dot(line.series, line.difference or 0.0, line.error) for line in lines if line.set == name])
        for name in sets
    ]
    columns = len(sets) // len(PROBLEMS) if len(sets) > len(PROBLEMS) else len(PROBLEMS)
    return plot_dot_panels(panels, x_label="difference to HGS or PyVRP, %", columns=columns)
