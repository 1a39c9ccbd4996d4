"""The Gantt chart: a row per route with travel, waiting and service; a row per stop with its window."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ndsvrp.clock import span_text, time_text
from ndsvrp.problem import Problem
from ndsvrp.report.svg import shape, title
from ndsvrp.schedule import RouteSchedule, StopTimes

if TYPE_CHECKING:
    from ndsvrp.search.result import Result

LEFT, WIDTH, ROW = 70.0, 900.0, 18.0
STRIP, STRIP_HEIGHT = 300.0, 14.0  # of a stop
CLOCK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720)  # minutes
WAIT, TRAVEL = "#e8b04b", "#9aa3ad"


class Axis:
    """Times on a line of some width."""

    def __init__(self, begin: float, end: float, left: float, width: float) -> None:
        self.begin, self.end = begin, end if end > begin else begin + 1.0
        self._left, self._scale = left, width / (self.end - begin)

    def at(self, time: float) -> float:
        """Return the position of a time, within the line."""
        return self._left + (min(max(time, self.begin), self.end) - self.begin) * self._scale

    def bar(self, begin: float, end: float, y: float, height: float, text: str, **style: object) -> str:
        """Return a rectangle from one time to another."""
        x = self.at(begin)
        return shape("rect", title(text), x=x, y=y, width=max(self.at(end) - x, 0.5), height=height, **style)

    def ticks(self, *, clock: bool = False) -> list[float]:
        """Return about eight round times; of a clock, those of whole minutes and hours."""
        least = (self.end - self.begin) / 8
        power = 10.0 ** math.floor(math.log10(least))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)
        if clock:
            step = next((minutes for minutes in CLOCK_STEPS if minutes >= least), step)
        first = math.ceil(self.begin / step)
        return [i * step for i in range(first, math.floor(self.end / step) + 1)]


def axis_of(result: Result, left: float, width: float) -> Axis:
    """Return the axis of all times: from the first departure to the last return."""
    routes = result.schedule
    begin = min(route.stops[0].departure for route in routes)
    return Axis(begin, max(route.stops[-1].arrival for route in routes), left, width)


def gantt(result: Result, colours: list[str]) -> str:
    """Return the chart of all routes."""
    axis = axis_of(result, LEFT, WIDTH - LEFT - 10)
    height = ROW * (len(result.schedule) + 1) + 6
    parts = []
    problem = result.problem
    for time in axis.ticks(clock=problem.clock_times):
        x = axis.at(time)
        parts.append(shape("line", x1=x, y1=0.0, x2=x, y2=height - ROW, stroke="#eceff2"))
        parts.append(shape("text", time_text(problem, time), x=x, y=height - 5, text_anchor="middle"))
    for row, (route, colour) in enumerate(zip(result.schedule, colours, strict=True)):
        label = shape("text", f"route {route.number}", x=LEFT - 8, y=row * ROW + 13, text_anchor="end")
        bars = _bars(problem, axis, route, row * ROW + 3, colour)
        parts.append(shape("g", label + bars, class_="route", data_route=route.number))
    view = f"0 0 {WIDTH:.0f} {height:.0f}"
    return shape("svg", "".join(parts), viewBox=view, role="img", xmlns="http://www.w3.org/2000/svg", class_="gantt")


def _bars(problem: Problem, axis: Axis, route: RouteSchedule, y: float, colour: str) -> str:
    parts = []
    for before, stop in zip(route.stops, route.stops[1:], strict=False):
        begin, end = time_text(problem, before.departure), time_text(problem, stop.arrival)
        way = f"{before.name} to {stop.name}: {begin} to {end}"
        parts.append(axis.bar(before.departure, stop.arrival, y + 5, 2, way, fill=TRAVEL))
        if stop.wait > 0:
            text = f"{stop.name}: waits {span_text(problem, stop.wait)}"
            parts.append(axis.bar(stop.arrival, stop.start, y + 2, 8, text, fill=WAIT, opacity=0.7))
        if stop is not route.stops[-1]:
            parts.append(axis.bar(stop.start, stop.departure, y, 12, times_of(problem, stop), fill=colour))
    return "".join(parts)


def strip(problem: Problem, axis: Axis, stop: StopTimes, colour: str) -> str:
    """Return a stop on its own line: its window, and waiting and service in it."""
    assert problem.windows is not None
    ready, due = problem.windows[stop.node].tolist()
    text = f"window {time_text(problem, ready)} to {time_text(problem, due)}"
    parts = axis.bar(ready, due, 2, 10, text, fill="#dfe5ea")
    if stop.wait > 0:
        parts += axis.bar(stop.arrival, stop.start, 4, 6, f"waits {span_text(problem, stop.wait)}", fill=WAIT)
    parts += axis.bar(stop.start, stop.departure, 1, 12, times_of(problem, stop), fill=colour)
    view = f"0 0 {STRIP:.0f} {STRIP_HEIGHT:.0f}"
    return shape("svg", parts, viewBox=view, class_="strip", xmlns="http://www.w3.org/2000/svg")


def times_of(problem: Problem, stop: StopTimes) -> str:
    """Return a stop in words."""
    slack = f", slack {span_text(problem, stop.slack)}" if math.isfinite(stop.slack) else ""
    start, departure = time_text(problem, stop.start), time_text(problem, stop.departure)
    return f"{stop.name}: start {start}, departure {departure}{slack}"
