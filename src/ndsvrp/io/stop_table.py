"""A result as a table with a row per stop, for data frames and CSV."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING, Any

from ndsvrp.errors import NdsError

if TYPE_CHECKING:
    from ndsvrp.search.result import Result


def stop_rows(result: Result) -> list[dict[str, Any]]:
    """Return a row per stop of each route, the depot at both ends included; unserved customers have no row."""
    problem, rows = result.problem, []
    names = ("lon", "lat") if problem.geographic else ("x", "y")
    for route in result.schedule:
        for position, stop in enumerate(route.stops):
            row: dict[str, Any] = {"route": route.number, "position": position, "node": stop.node, "name": stop.name}
            if problem.coordinates is not None:
                row |= dict(zip(names, problem.coordinates[stop.node].tolist(), strict=True))
            row["demand"] = float(problem.demand[stop.node])
            row |= {name: getattr(stop, name) for name in ("arrival", "wait", "start", "departure", "slack")}
            rows.append(row)
    return rows


def to_dataframe(result: Result) -> Any:
    """Return the rows as a pandas DataFrame."""
    try:
        import pandas
    except ImportError:
        raise NdsError("to_dataframe needs pandas (pip install pandas)") from None
    return pandas.DataFrame(stop_rows(result))


def to_csv(result: Result) -> bytes:
    """Return the rows as CSV; an infinite slack is empty."""
    rows = stop_rows(result)
    buffer = io.StringIO()
    table = csv.DictWriter(buffer, list(rows[0]) if rows else ["route"], lineterminator="\n")
    table.writeheader()
    for row in rows:
        table.writerow({name: "" if value == math.inf else value for name, value in row.items()})
    return buffer.getvalue().encode(errors="backslashreplace")
