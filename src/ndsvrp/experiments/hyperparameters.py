"""Augmentations A, rollouts K and threshold factor delta, one at a time, on the CVRP with 500 customers (appendix)."""

from ndsvrp.experiments.context import Context, Findings
from ndsvrp.experiments.scales import MIDDLE, SECONDS
from ndsvrp.experiments.searches import Limit, Series, search
from ndsvrp.experiments.sets import test_cases
from ndsvrp.experiments.summaries import cost_table, summarise
from ndsvrp.experiments.trainings import policy
from ndsvrp.plot.lines import PlotLine
from ndsvrp.plot.panels import LinePanel, plot_line_panels

SYMBOLS = {"chains": "A", "rollouts": "K", "threshold": "delta"}
REFERENCE = "default"


def hyperparameters(context: Context) -> Findings:
    """Search with every value, the others at their defaults; differences are to the defaults."""
    cases = test_cases(context, "cvrp", MIDDLE, context.scale.hyper_tests)
    model = policy(context, cases[0].load(), "cvrp", MIDDLE)
    limit = Limit(context.scale.short_share * SECONDS[MIDDLE])
    rows = search(context, cases, Series(REFERENCE, model), [limit])
    for setting, values in context.scale.hyperparameters.items():
        for value in values:
            series = Series(f"{SYMBOLS[setting]} = {value:g}", model, settings={setting: _whole(value)})
            rows += search(context, cases, series, [limit])
    lines = summarise(rows, REFERENCE)
    name = cases[0].set
    used = rows[0]["settings"]
    defaults = ", ".join(f"{symbol} = {used[setting]:g}" for setting, symbol in SYMBOLS.items())
    notes = [f"Limit: {100 * context.scale.short_share:g}% of the paper's 60 s; default: {defaults}"]
    table = cost_table(context.name, lines, {}, {name: REFERENCE}, notes)
    found = {line.series: line.difference or 0.0 for line in lines}
    panels = []
    for setting, values in context.scale.hyperparameters.items():
        symbol = SYMBOLS[setting]
        differences = [found[f"{symbol} = {value:g}"] for value in values]
        panels.append(LinePanel(symbol, [PlotLine(REFERENCE, values, differences)]))
    figure = plot_line_panels(panels, x_label="value", y_label="difference to the defaults, %")
    return Findings([table], {"": figure})


def _whole(value: float) -> float | int:
    return int(value) if float(value).is_integer() else value
