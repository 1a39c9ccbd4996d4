"""Validation during training: all sizes (appendix), and with or without initial improvement steps (appendix)."""

from typing import TYPE_CHECKING

from ndsvrp.bench.report.tables import EMPTY, Table
from ndsvrp.bench.rows import Row
from ndsvrp.experiments.context import Context, Findings
from ndsvrp.experiments.scales import MIDDLE, PROBLEMS
from ndsvrp.experiments.summaries import percent
from ndsvrp.experiments.trainings import Training, log_of, reference
from ndsvrp.plot.lines import PlotLine
from ndsvrp.plot.panels import LinePanel, plot_line_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WITH, WITHOUT = "with improvement steps", "without improvement steps"
POLICY = "policy"


def initial_improvement(context: Context) -> Findings:
    """Train with and without the J improvement steps before training on an instance."""
    rows: list[Row] = []
    for problem in PROBLEMS:
        for name, without in ((WITH, ""), (WITHOUT, "improvement")):
            rows += _points(context, reference(context, problem, without=without), problem, MIDDLE, name)
    figure = _picture(rows)
    return Findings([_table(context, rows, WITH)], {"": figure})


def training_curves(context: Context) -> Findings:
    """Train for every problem and size."""
    rows: list[Row] = []
    for problem in PROBLEMS:
        for size in context.scale.trained_sizes:
            rows += _points(context, reference(context, problem, size), problem, size, POLICY)
    return Findings([_table(context, rows, POLICY)], {"": _picture(rows)})


def _points(context: Context, training: Training, problem: str, size: int, series: str) -> list[Row]:
    """Return a row per validation of a training, for one of its problems."""
    log, rows = log_of(context, training), []
    start = next(row for row in log if row["kind"] == "run")
    name = f"{problem}{context.scale.customers[size]}"
    seen: set[int] = set()
    for point in (row for row in log if row["kind"] == "validation"):
        if point["instances"] in seen:  # a resumed run validates again
            continue
        seen.add(point["instances"])
        figures = point["sets"][name]
        identity: Row = {
            "set": name, "instance": "validation", "data": None, "series": series, "solver": training.name,
            "solver_version": start["commit"], "seed": start["config"]["validation"]["seed"], "budget": None,
            "iterations": start["config"]["validation"]["search_iterations"], "point": point["instances"],
        }  # fmt: skip
        measured = {
            "trained_seconds": point["trained_seconds"], "steps": point["steps"], "cost": figures.get("cost"),
            "related_cost": figures.get("related_cost"), "reward": figures["reward"],
            "related_reward": figures["related_reward"],
        }  # fmt: skip
        rows.append(context.rows.find(identity) or context.rows.add(identity | measured))
    return rows


def _table(context: Context, rows: list[Row], first: str) -> Table:
    """Return the last validation of every curve, and the one before training."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["set"], row["series"]), []).append(row)
    cells = []
    for (name, series), points in groups.items():
        before, last = points[0], points[-1]
        ends = groups[name, first][-1]
        other = percent(100 * (last["cost"] / ends["cost"] - 1)) if series != first else EMPTY
        cells.append((
            name, series, f"{last['point']:,}", f"{last['steps']:,}", f"{last['trained_seconds']:.1f}",
            f"{before['cost']:.4f}", f"{last['cost']:.4f}", percent(100 * (last["cost"] / before["cost"] - 1)),
            percent(100 * (last["cost"] / last["related_cost"] - 1)), other,
        ))  # fmt: skip
    heads = (
        "set", "series", "instances", "steps", "seconds", "cost before", "cost after", "change, %",
        "to related removal, %", f"to {first}, %",
    )  # fmt: skip
    notes = ["Costs are means of short searches on validation instances, the same before, during and after training"]
    if context.scale.training is None:
        notes.append("One policy per problem, by the paper's configurations")
    else:
        notes.append(f"Policies are {context.scale.training.note}, of the three problems together")
    notes.append("The paper shows curves without a table")
    numeric = (False, False, *(True,) * 8)
    return Table("Results", heads, numeric, tuple(cells), tuple(notes)).without_empty_columns()


def _picture(rows: list[Row]) -> "Figure":
    sets, series = (list(dict.fromkeys(row[name] for row in rows)) for name in ("set", "series"))
    panels = []
    for name in sets:
        lines = []
        for number, each in enumerate(series):
            points = [row for row in rows if (row["set"], row["series"]) == (name, each)]
            x, y = ([float(row[field]) for row in points] for field in ("point", "cost"))
            lines.append(PlotLine(each, x, y, number))
        panels.append(LinePanel(name, lines))
    per_row = max(1, len(sets) // len(PROBLEMS)) if len(sets) > len(PROBLEMS) else len(sets)
    return plot_line_panels(panels, x_label="instances", y_label="validation cost", columns=per_row)
