"""A result in a few lines of text, for `print`."""

from ndsvrp.search.result import STOPPED, Result
from ndsvrp.text import amount, number, printable
from ndsvrp.variants import variant_of

ROUTES = 12  # shown; with the lines around them at most twenty
WIDTH = 110  # characters of a line
VIOLATIONS = 3


def summary(result: Result) -> str:
    """Return at most twenty lines: cost, routes with their figures, how the search ended."""
    problem, report = result.problem, result.report
    title = f"{problem.name}: {variant_of(problem).title}, {amount(problem.customers, 'customer')}"
    parts = [f"cost {number(report.cost)}", f"distance {number(report.distance)}"]
    if problem.has_prizes:
        parts.append(f"lost prizes {number(report.lost_prizes)}")
    if report.vehicle_costs:
        parts.append(f"vehicle costs {number(report.vehicle_costs)}")
    parts += [amount(len(result.schedule), "route"), f"{len(report.unserved):,} unserved"]
    lines = [title, ", ".join(parts if report.feasible else ["infeasible", *parts])]
    lines += [f"  {violation}" for violation in report.violations[:VIOLATIONS]]
    lines += route_lines(result)
    why = STOPPED.get(result.stopped, result.stopped)
    spent = f"{result.seconds:.2f} s, {amount(result.iterations, 'iteration')}"
    lines.append(f"{why} after {spent}, {amount(result.reconstructions, 'reconstruction')}; seed {result.seed}")
    return "\n".join(_cut(printable(line)) for line in lines)


def route_lines(result: Result) -> list[str]:
    """Return a table of the first routes: their figures and customers."""
    if not result.schedule:
        return []
    names = list(result.schedule[0].figures)
    rows = [["route", "stops", *names]]
    shown = result.schedule[:ROUTES]
    for route in shown:
        rows.append([str(route.number), str(len(route.names)), *(number(route.figures[name]) for name in names)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    mark = " " if result.problem.names is None else ", "  # names may have spaces
    customers = ["customers", *(mark.join(route.names) for route in shown)]
    lines = [_cut(printable(f"{line}  {some}")) for line, some in zip(lines, customers, strict=True)]
    if more := len(result.schedule) - len(shown):
        lines.append(f"… and {amount(more, 'more route')}")
    return lines


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else line[: WIDTH - 2] + " …"
