"""`.sol` files: `Route #1: 3 7 2` …, `Cost: 27591`. Customers count from 1, the depot is not written.

Results in JSON are read as well, for a check or a start.
"""

import math
import re
import warnings
from typing import Any

from ndsvrp.errors import InstanceError, NdsError, NdsWarning
from ndsvrp.io.files import PathLike, check_name, read_text, write_atomic
from ndsvrp.io.tables import parse_json
from ndsvrp.io.tokens import amount, count, is_number, shown
from ndsvrp.metric import Metric
from ndsvrp.records import require_number
from ndsvrp.solution import Solution, require_solution
from ndsvrp.text import number as printed

# Possessive quantifiers (*+) do not backtrack: a line takes linear time, whatever it holds.
_ROUTE = re.compile(r"route\s*+#?+\s*+\d++\s*+:(.*)", re.IGNORECASE)
_COST = re.compile(r"cost\b\s*+:?+\s*+(.*)", re.IGNORECASE)
_OUTPUTS = (".csv", ".tsv", ".geojson", ".html", ".htm")  # other forms of results, which no start is read from
_REMARK = re.compile(r"[A-Za-z]\w*+[:\s].*", re.ASCII)


def read_solution(path: PathLike) -> tuple[Solution, float | None]:
    """Return the routes of a `.sol` file, or of a result in JSON, and the cost written there, or None.

    `ndsvrp.check` says whether the solution fits a problem.
    """
    text, file = read_text(path), str(path)
    if file.lower().endswith(_OUTPUTS):
        raise InstanceError("is no solution; accepted: a .sol file, or the JSON of one result", file=file)
    if text.lstrip().startswith(("{", "[")):
        return _from_result(parse_json(text, file), file)
    routes: list[list[int]] = []
    cost: float | None = None
    remarks: list[str] = []
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if match := _ROUTE.fullmatch(line):
            routes.append([_customer(word, file, number) for word in match[1].split()])
            if not routes[-1]:  # other programs list vehicles that stay at the depot
                remarks.append(f"{file}:{number}: a route without customers, ignored")
        elif match := _COST.fullmatch(line):
            if cost is not None:
                raise InstanceError("given twice", file=file, line=number, field="Cost")
            if not is_number(match[1]) or not math.isfinite(float(match[1])):
                raise InstanceError(f"{shown(match[1])} is not a number", file=file, line=number, field="Cost")
            cost = float(match[1])
        elif _REMARK.fullmatch(line) and not line.lower().startswith("route"):
            name = re.split(r"[:\s]", line, maxsplit=1)[0]
            remarks.append(f"{file}:{number}: {name}: unknown field, ignored")
        else:
            what = f"{shown(line)} is neither a route (Route #1: 3 7 2) nor a cost"
            raise InstanceError(what, file=file, line=number)
    if not routes and cost is None:
        raise InstanceError("holds neither routes nor a cost", file=file)
    for remark in remarks:
        warnings.warn(remark, NdsWarning, stacklevel=2)
    return Solution(filter(None, routes)), cost


def _from_result(table: dict[str, Any] | list[Any], file: str) -> tuple[Solution, float | None]:
    if isinstance(table, list):  # as `nds solve SET --json` writes it
        entries = amount(len(table), "result" if all(isinstance(entry, dict) for entry in table) else "value")
        what = f"is a list of {entries}; accepted: a .sol file, or the JSON of one result"
        raise InstanceError(f"{what} ('nds solve SET --out FOLDER' writes a .sol file for each instance)", file=file)
    routes, cost = table.get("routes"), table.get("cost")
    if not isinstance(routes, list) or not all(isinstance(route, list) for route in routes):
        raise InstanceError("is not a list of lists of customers, as in a result", file=file, field="routes")
    for customer in (customer for route in routes for customer in route):
        if type(customer) is not int or customer < 1:
            what = f"{shown(str(customer))} is not a customer, those count from 1"
            raise InstanceError(what, file=file, field="routes")
    if cost is not None and (isinstance(cost, bool) or not isinstance(cost, int | float) or not math.isfinite(cost)):
        raise InstanceError(f"{shown(str(cost))} is not a number", file=file, field="cost")
    return Solution(filter(None, routes)), None if cost is None else float(cost)


def write_solution(path: PathLike, solution: Solution, cost: float) -> None:
    """Write a `.sol` file, completely or not at all."""
    check_name(path)
    write_atomic(path, solution_bytes(solution, cost))


def solution_bytes(solution: Solution, cost: float) -> bytes:
    """Return the content of a `.sol` file."""
    require_solution("what is written", solution)
    require_number("cost", cost)
    if not math.isfinite(cost):
        raise NdsError(f"cost must be finite, got {cost}")
    lines = [f"Route #{i}: {' '.join(map(str, route))}".rstrip() for i, route in enumerate(solution.routes, start=1)]
    lines.append(f"Cost: {int(cost) if float(cost).is_integer() else float(cost)}")
    return ("\n".join(lines) + "\n").encode()


def matches_cost(written: float, cost: float, metric: Metric) -> bool:
    """Return whether the cost written in a `.sol` file is that of the solution.

    Costs match exactly under an integer metric. Under plain floats they match to a relative 1e-6, or if the written
    one is what is printed, with four decimals. Under `dimacs`, costs written in tenths match as well (245391 for
    24539.1).
    """
    if metric is Metric.NONE:
        is_printed = round(written, 4) == written and printed(written) == printed(cost)
        return is_printed or math.isclose(written, cost, rel_tol=1e-6)
    ticks = round(cost * metric.scale)
    if math.isclose(written * metric.scale, ticks, rel_tol=1e-12):
        return True
    return metric is Metric.DIMACS and written == ticks


def _customer(word: str, file: str, line: int) -> int:
    customer = count(word)
    if customer is None or customer < 1:
        raise InstanceError(f"{shown(word)} is not a customer, those count from 1", file=file, line=line, field="Route")
    return customer
