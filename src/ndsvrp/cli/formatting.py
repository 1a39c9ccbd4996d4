"""Text that commands print: numbers, facts, and the line that describes a problem."""

import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ndsvrp.constraints import CONSTRAINTS
from ndsvrp.constraints.base import Facts
from ndsvrp.io.forms import ENDINGS
from ndsvrp.io.vrp import conventional_metric, fields_of
from ndsvrp.metric import Metric
from ndsvrp.problem import Problem
from ndsvrp.text import amount, printable
from ndsvrp.variants import description


def console(stderr: bool = False) -> Console:
    """Return a console that prints names unchanged, also with brackets or colons."""
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def say(text: str, *, error: bool = False) -> None:
    """Print a line, with unprintable characters escaped."""
    print(printable(text), file=sys.stderr if error else sys.stdout)


def print_facts(facts: Facts, *, error: bool = False) -> None:
    """Print two columns."""
    width = max(len(what) for what, _ in facts)
    target = console(stderr=error)
    for what, value in facts:
        if target.is_terminal:
            line = Text.assemble((f"{printable(what):<{width}}  ", "dim"), printable(value))
            target.print(line, soft_wrap=True)
        else:
            say(f"{what:<{width}}  {value}", error=error)


def cost_of(cost: float, metric: Metric) -> str:
    """Return a cost with the decimals of its metric."""
    decimals = len(str(metric.scale)) - 1 if metric.is_integer else 4
    return f"{cost:,.{decimals}f}"


def plain_number(cost: float) -> str:
    """Return a cost as in a `.sol` file, with every digit and no separators."""
    return str(int(cost) if float(cost).is_integer() else float(cost))


def metric_reason(problem: Problem, file: Path, asked: str) -> str:
    """Return why `ndsvrp.read` chose the metric."""
    if asked != "auto":
        return "as asked"
    form = ENDINGS.get(file.suffix.lower())
    if form == "npz":
        return "auto: sets are plain floats"
    if form == "csv":
        return "auto: tables of stops are plain floats"
    if form == "json":
        return "as stated in the file" if problem.metric is not Metric.NONE else "auto: JSON problems are plain floats"
    if form == "vrp" and conventional_metric(fields_of(problem)) is not problem.metric:
        return "as stated in the file"
    if form is None and conventional_metric(fields_of(problem)) is not problem.metric:
        return "auto: as the file or its format states"  # of standard input, a folder, the name of a set
    if problem.distance is not None:
        return "auto: a matrix of whole numbers" if problem.metric.is_integer else "auto: a matrix of plain floats"
    deciding = next((c for c in CONSTRAINTS if c.metric is not None and c.present(problem)), None)
    return f"auto: coordinates with {deciding.name}" if deciding else "auto: coordinates without time windows"


def headline(problem: Problem, asked: str, instances: int | None = None) -> str:
    """Return one line about a problem, or about a set and its first problem."""
    lead = "" if instances is None else f"{amount(instances, 'instance')}, the first is "
    return f"{lead}{problem.name}: {description(problem)}" + (" (auto)" if asked == "auto" else "")
