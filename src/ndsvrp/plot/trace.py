"""Cost over time."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ndsvrp.errors import NdsError
from ndsvrp.plot.style import FAINT, INK, canvas, check_format, log_axis, open_axes, solver_colours, write
from ndsvrp.records import require_number
from ndsvrp.search.result import Result

DECADES = 3  # of time that a logarithmic axis shows at most
EARLY = 0.02  # share of the time after which costs determine the height of the picture
ROOM = 0.06  # of the height, below the lowest and above the highest cost


def plot_trace(
    results: Result | Sequence[Result] | Mapping[str, Result],
    file: str | PathLike[str] | None = None,
    *,
    log_time: bool = True,
    whole: bool = False,
    best: float | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the best cost of each result over time. Return the figure, and write it if a file is given.

    A line is a staircase through the trace of a result, until the run ended. A mapping gives the names of the lines;
    otherwise they are solver and seed. First solutions, which may cost many times as much, are above the picture unless
    it is `whole`. `best` is a cost to compare with, such as the best known one: a line, and gaps on the right.
    """
    check_format(file)
    if best is not None:
        require_number("best", best)
    named = _named(results)
    figure, axes = canvas(6.4, 4.0)
    colours = solver_colours([name for name, _ in named])
    longest = max(_end(result) for _, result in named)
    earliest = longest / 10**DECADES if log_time else 0.0
    for name, result in named:
        seconds = [max(point.seconds, earliest) for point in result.trace]
        costs = [point.cost for point in result.trace]
        seconds.append(max(_end(result), earliest))
        costs.append(costs[-1])
        axes.step(seconds, costs, where="post", color=colours[name], linewidth=1.6, label=name)
        axes.scatter(seconds[-1], costs[-1], s=16, color=[colours[name]], zorder=3)
    if best is not None:
        axes.axhline(best, color=FAINT, linewidth=1.2, linestyle=(0, (4, 3)), zorder=1, label=f"best known, {best:g}")
    if not whole:
        _zoom(axes, [result for _, result in named], EARLY * longest, best)
    if log_time:
        log_axis(axes)
        top = axes.get_ylim()[1]
        enters = min(point.seconds for _, result in named for point in result.trace if point.cost <= top)
        axes.set_xlim(min(max(enters, earliest), longest / 10), longest * 1.08)  # at least a decade
    axes.ticklabel_format(axis="y", useOffset=False)
    problems = {result.problem.name for _, result in named}
    open_axes(axes, "seconds", "cost", title if title is not None else ", ".join(sorted(problems)[:3]))
    if best is not None and best > 0:
        _add_gaps(axes, best)
    axes.legend(frameon=False, fontsize=8, labelcolor=INK)
    if file is not None:
        write(figure, file)
    return figure


def _add_gaps(axes: Axes, best: float) -> None:
    """Show gaps to a cost on the right."""

    def to_gap(cost: Any) -> Any:
        return 100 * (cost / best - 1)

    def to_cost(gap: Any) -> Any:
        return best * (1 + gap / 100)

    gaps = axes.secondary_yaxis("right", functions=(to_gap, to_cost))
    gaps.set_ylabel("gap, %", color=INK)
    gaps.tick_params(colors=FAINT, labelsize=8, length=3)
    gaps.spines["right"].set_visible(False)


def _zoom(axes: Axes, results: Sequence[Result], since: float, best: float | None) -> None:
    """Show the costs since this moment, but no first solution that was improved."""
    highest = max(_cost_at(result, max(since, result.trace[:2][-1].seconds)) for result in results)
    lowest = min([result.trace[-1].cost for result in results] + ([] if best is None else [best]))
    if highest > lowest:
        room = ROOM * (highest - lowest)
        axes.set_ylim(lowest - room, highest + room)


def _cost_at(result: Result, second: float) -> float:
    """Return the best cost at a moment."""
    return result.trace[max(0, bisect_right(result.trace, second, key=lambda point: point.seconds) - 1)].cost


def _end(result: Result) -> float:
    return max(result.seconds, result.trace[-1].seconds)


def _named(results: Result | Sequence[Result] | Mapping[str, Result]) -> list[tuple[str, Result]]:
    if isinstance(results, Mapping):
        given = list(results.values())
    else:
        given = list(results) if isinstance(results, Iterable) else [results]
    if not given:
        raise NdsError("no results to draw")
    for result in given:
        if not isinstance(result, Result):
            raise NdsError(f"plot_trace needs a Result, several, or a table of them, got {type(result).__name__}")
    if isinstance(results, Mapping):
        named = [(str(name), result) for name, result in results.items()]
    else:
        named = [(f"{r.settings.get('solver', 'run')}, seed {r.seed}", r) for r in given]
    for name, result in named:
        if not result.trace:
            raise NdsError(f"the result '{name}' has no trace to draw")
    return named
