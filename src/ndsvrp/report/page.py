"""The page as a whole: facts, map, routes, times, convergence."""

from __future__ import annotations

import base64
import math
from typing import TYPE_CHECKING

from ndsvrp.best_known import BestKnown, best_known
from ndsvrp.clock import span_text, time_text
from ndsvrp.metric import Floats
from ndsvrp.plot import plot_trace
from ndsvrp.plot.routes import route_colours
from ndsvrp.plot.style import palette, to_svg
from ndsvrp.report.gantt import STRIP, Axis, axis_of, gantt, strip
from ndsvrp.report.route_map import prize_text, route_map
from ndsvrp.report.svg import colour
from ndsvrp.schedule import RouteSchedule
from ndsvrp.search.result import STOPPED
from ndsvrp.text import amount, number
from ndsvrp.variants import variant_of
from ndsvrp.webpage import html_text, page

if TYPE_CHECKING:
    from ndsvrp.problem import Problem
    from ndsvrp.search.result import Result

TEXTS = ("route", "customers", "stop", "window", "times")  # columns that do not hold numbers
SPANS = ("duration",)  # figures of routes that say how long something takes
NAMES = 20  # of unserved customers
MOST_STRIPS = 2000  # stops with a picture of their window
STYLE = """
#map { box-sizing: border-box; width: 100%; max-height: 85vh; background: #fbfcfd; border: 1px solid #e3e7eb; }
#map text { font-size: 13px; fill: #22262b; pointer-events: none; }
#map text { paint-order: stroke; stroke: #fbfcfd; stroke-width: 3px; }
.gantt { width: 100%; min-width: 700px; } .gantt text { font-size: 11px; fill: #5a626b; }
.strip { width: 300px; height: 14px; vertical-align: middle; }
.route { transition: opacity 0.15s; } .dimmed .route:not(.chosen) { opacity: 0.12; }
.swatch { display: inline-block; width: 0.8em; height: 0.8em; border-radius: 2px; margin-right: 0.4em; }
tr[data-route] { cursor: pointer; } tr.chosen { background: #eef3f8; }
td.names { white-space: normal; min-width: 16rem; }
dl { display: grid; grid-template-columns: max-content auto; gap: 0.1rem 1.2rem; }
dd { margin: 0; } dt { color: #5a626b; }
.bad { color: #a3261b; } details { margin: 0.3rem 0; } summary { cursor: pointer; }
"""
SCRIPT = """
<script>
const all = document.querySelectorAll("[data-route]");
let fixed = null;
function choose(route) {
  document.body.classList.toggle("dimmed", route !== null);
  all.forEach(e => e.classList.toggle("chosen", route !== null && e.dataset.route === route));
}
all.forEach(e => {
  e.addEventListener("mouseenter", () => choose(e.dataset.route));
  e.addEventListener("mouseleave", () => choose(fixed));
  e.addEventListener("click", () => { fixed = fixed === e.dataset.route ? null : e.dataset.route; choose(fixed); });
});
</script>
"""


def result_page(result: Result) -> str:
    """Return the page of a result."""
    problem, known = result.problem, best_known(result.problem)
    colours = [colour(rgb) for rgb in _colours(result)]
    parts = [_facts(result, known)]
    if problem.coordinates is not None:
        parts.append(f'<h2>Map</h2>\n<div class="scroll">{route_map(result, colours)}</div>\n')
    if result.schedule:
        parts.append(f"<h2>Routes</h2>\n{_routes(result, colours)}")
        if problem.has_times:
            words = "Bars are service, thin lines travel, yellow is waiting. Times start with the first departure."
            chart = f'<div class="scroll">{gantt(result, colours)}</div>'
            parts.append(f"<h2>Times</h2>\n<p>{words}</p>\n{chart}\n")
        parts.append(f"<h2>Stops</h2>\n{_stops(result, colours)}")
    if result.trace:
        picture = base64.b64encode(to_svg(plot_trace(result, best=None if known is None else known.cost))).decode()
        parts.append(f'<h2>Convergence</h2>\n<img src="data:image/svg+xml;base64,{picture}" alt="cost over time">\n')
    return page(problem.name, "".join(parts) + SCRIPT, STYLE)


def _colours(result: Result) -> Floats:
    """Return a colour per route: that of `ndsvrp.plot`, if there is a map."""
    points, routes = result.problem.coordinates, [route.customers for route in result.schedule]
    return palette(len(routes)) if points is None else route_colours(points, routes)


def _facts(result: Result, known: BestKnown | None) -> str:
    problem, report = result.problem, result.report
    facts = [("problem", f"{variant_of(problem).title}, {amount(problem.customers, 'customer')}")]
    facts.append(("cost", number(report.cost)))
    if known is not None:
        gap = f"{known.gap(report.cost):+.2f}% to the best known {number(known.cost)} ({known.date})"
        facts.append(("gap", gap))
    facts.append(("distance", number(report.distance)))
    if problem.has_prizes:
        facts.append(("lost prizes", number(report.lost_prizes)))
    if report.vehicle_costs:
        facts.append(("vehicle costs", number(report.vehicle_costs)))
    facts += [("routes", f"{len(result.schedule):,}"), ("unserved", _unserved(result))]
    why = STOPPED.get(result.stopped, result.stopped)
    facts.append(("search", f"{why} after {result.seconds:.2f} s, {amount(result.iterations, 'iteration')}"))
    facts.append(("seed", str(result.seed)))
    lines = "".join(f"<dt>{html_text(what)}</dt><dd>{html_text(value)}</dd>" for what, value in facts)
    broken = "".join(f"<li>{html_text(str(violation))}</li>" for violation in report.violations)
    bad = f'<p class="bad">Infeasible:</p><ul class="bad">{broken}</ul>\n' if broken else ""
    return f"<dl>{lines}</dl>\n{bad}"


def _unserved(result: Result) -> str:
    """Return how many customers are unserved, and the names of the first ones."""
    unserved = result.report.unserved
    names = ", ".join(result.problem.name_of(customer) for customer in unserved[:NAMES])
    return f"{len(unserved):,}" + (f": {names}" if names else "") + (", …" if len(unserved) > NAMES else "")


def _routes(result: Result, colours: list[str]) -> str:
    problem, names = result.problem, list(result.schedule[0].figures)
    head = ["route", "stops", *names, "departure", "return", "customers"]
    rows = []
    for route, swatch in zip(result.schedule, colours, strict=True):
        first, last = route.stops[0], route.stops[-1]
        figures = [_span(problem, value) if name in SPANS else _number(value) for name, value in route.figures.items()]
        times = [time_text(problem, time) for time in (first.departure, last.arrival)]
        cells = [f'<td><span class="swatch" style="background: {swatch}"></span>{route.number}</td>']
        cells += [_number(len(route.names)), *figures, *map(_cell, times)]
        cells.append(f'<td class="names">{html_text(", ".join(route.names))}</td>')
        rows.append(f'<tr data-route="{route.number}">{"".join(cells)}</tr>\n')
    return _table(head, rows)


def _stops(result: Result, colours: list[str]) -> str:
    """Return a table of stops per route, folded."""
    drawn = result.problem.windows is not None and result.problem.customers <= MOST_STRIPS
    axis = axis_of(result, 0.0, STRIP)
    tables: list[str] = []
    for route, swatch in zip(result.schedule, colours, strict=True):
        is_open = "" if tables else " open"  # the first one shows what is there
        stops = f"route {route.number}, {amount(len(route.names), 'stop')}"
        head = f'<summary><span class="swatch" style="background: {swatch}"></span>{stops}</summary>'
        table = _stop_table(result, route, swatch, axis if drawn else None)
        tables.append(f"<details{is_open}>{head}\n{table}</details>\n")
    return "".join(tables)


def _stop_table(result: Result, route: RouteSchedule, swatch: str, axis: Axis | None) -> str:
    problem, windows, prize = result.problem, result.problem.windows, result.problem.prize
    head = ["stop", "demand", *([] if prize is None else ["prize"]), "arrival", "wait", "start", "departure", "slack"]
    head += ([] if windows is None else ["window"]) + ([] if axis is None else ["times"])
    rows = []
    for stop in route.stops:
        arrival, start, departure = (_cell(time_text(problem, at)) for at in (stop.arrival, stop.start, stop.departure))
        cells = [f"<td>{html_text(stop.name)}</td>", _number(float(problem.demand[stop.node]))]
        if prize is not None:
            cells.append(_cell(prize_text(problem, stop.node)))
        cells += [arrival, _span(problem, stop.wait), start, departure, _span(problem, stop.slack)]
        if windows is not None:
            ready, due = windows[stop.node].tolist()
            cells.append(f"<td>{time_text(problem, ready)} to {time_text(problem, due)}</td>")
            if axis is not None:
                cells.append(f"<td>{strip(problem, axis, stop, swatch)}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>\n")
    return _table(head, rows)


def _table(head: list[str], rows: list[str]) -> str:
    kinds = ["" if name in TEXTS else ' class="number"' for name in head]
    cells = "".join(f"<th{kind}>{html_text(name)}</th>" for name, kind in zip(head, kinds, strict=True))
    body = f"<thead><tr>{cells}</tr></thead>\n<tbody>\n{''.join(rows)}</tbody>"
    return f'<div class="scroll"><table>\n{body}</table></div>\n'


def _span(problem: Problem, time: float) -> str:
    return _cell(span_text(problem, time) if math.isfinite(time) else "any")


def _number(value: float) -> str:
    return _cell(number(value) if math.isfinite(value) else "any")


def _cell(text: str) -> str:
    return f'<td class="number">{text}</td>'
