"""Cost over time."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from ndsvrp.errors import NdsError
from ndsvrp.plot.style import INK, canvas, check_format, open_axes, palette, write
from ndsvrp.search.result import Result

EARLIEST = 1e-3  # seconds: smallest value on a logarithmic axis


def plot_trace(
    results: Result | Sequence[Result] | Mapping[str, Result],
    file: str | Path | None = None,
    *,
    log_time: bool = False,
    title: str | None = None,
) -> Figure:
    """Draw the best cost of each result over time. Return the figure, and write it if a file is given.

    A line is a staircase through the trace of a result, until the run ended. A mapping gives the names of the lines;
    otherwise they are solver and seed.
    """
    check_format(file)
    named = _named(results)
    figure, axes = canvas(6.4, 4.0)
    for (name, result), colour in zip(named, palette(len(named)), strict=True):
        seconds = [point.seconds for point in result.trace]
        costs = [point.cost for point in result.trace]
        seconds.append(max(result.seconds, seconds[-1]))
        costs.append(costs[-1])
        if log_time:
            seconds = [max(second, EARLIEST) for second in seconds]
        axes.step(seconds, costs, where="post", color=colour, linewidth=1.6, label=name)
    axes.set_xscale("log" if log_time else "linear")
    axes.legend(frameon=False, fontsize=8, labelcolor=INK)
    problems = {result.problem.name for _, result in named}
    open_axes(axes, "seconds", "cost", title if title is not None else ", ".join(sorted(problems)[:3]))
    if file is not None:
        write(figure, file)
    return figure


def _named(results: Result | Sequence[Result] | Mapping[str, Result]) -> list[tuple[str, Result]]:
    if isinstance(results, Result):
        results = [results]
    if isinstance(results, Mapping):
        named = list(results.items())
    else:
        named = [(f"{r.settings.get('solver', 'run')}, seed {r.seed}", r) for r in results]
    if not named:
        raise NdsError("no results to draw")
    for name, result in named:
        if not result.trace:
            raise NdsError(f"the result '{name}' has no trace to draw")
    return named
