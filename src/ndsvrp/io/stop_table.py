"""A result as a table with a row per stop, for data frames and CSV."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING, Any

from ndsvrp.clock import clock_with_seconds
from ndsvrp.errors import NdsError

if TYPE_CHECKING:
    from ndsvrp.problem import Problem
    from ndsvrp.search.result import Result

DECIMALS = 9  # of times in CSV
TIMES = ("arrival", "wait", "start", "departure", "slack")
POINTS_IN_TIME = ("arrival", "start", "departure")


def stop_rows(result: Result) -> list[dict[str, Any]]:
    """Return a row per stop of each route, the depot at both ends included; unserved customers have no row."""
    problem, names, rows = result.problem, columns(result.problem), []
    for route in result.schedule:
        for position, stop in enumerate(route.stops):
            point = [] if problem.coordinates is None else problem.coordinates[stop.node].tolist()
            times = [getattr(stop, name) for name in TIMES]
            values = [route.number, position, stop.node, stop.name, *point, float(problem.demand[stop.node]), *times]
            rows.append(dict(zip(names, values, strict=True)))
    return rows


def columns(problem: Problem) -> list[str]:
    """Return the names of the columns, which a result without routes has, too."""
    point = [] if problem.coordinates is None else ["lon", "lat"] if problem.geographic else ["x", "y"]
    return ["route", "position", "node", "name", *point, "demand", *TIMES]


def to_dataframe(result: Result) -> Any:
    """Return the rows as a pandas DataFrame."""
    try:
        import pandas
    except ImportError:
        raise NdsError("to_dataframe needs pandas (pip install pandas)") from None
    return pandas.DataFrame(stop_rows(result), columns=columns(result.problem))


def to_csv(result: Result) -> bytes:
    """Return the rows as CSV, without the rounding noise of times; an infinite slack is empty.

    If windows are clock times, so are points in time, to the second: the table is for people and spreadsheets.
    """
    buffer = io.StringIO()
    table = csv.DictWriter(buffer, columns(result.problem), lineterminator="\n")
    table.writeheader()
    for row in stop_rows(result):
        times = {name: "" if row[name] == math.inf else round(row[name], DECIMALS) for name in TIMES}
        if result.problem.clock_times:
            times |= {name: clock_with_seconds(row[name]) for name in POINTS_IN_TIME}
        table.writerow({**row, **times})
    return buffer.getvalue().encode(errors="backslashreplace")
