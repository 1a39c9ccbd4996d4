"""Solomon and Gehring–Homberger text files (`.txt`).

The constraint records name the columns: `Field.solomon`.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ndsvrp.constraints import FIELDS
from ndsvrp.errors import InstanceError
from ndsvrp.io.outline import Row
from ndsvrp.io.tokens import amount, count, is_number, shown
from ndsvrp.metric import Metric
from ndsvrp.problem import Problem
from ndsvrp.text import printable

HEAD = ("NUMBER", "CAPACITY")
COLUMNS = ("CUST NO.", "XCOORD.", "YCOORD.", "DEMAND", "READY TIME", "DUE DATE", "SERVICE TIME")


def is_solomon(text: str) -> bool:
    """Return whether a text looks like a Solomon file: VEHICLE alone on one of the first lines."""
    first = [line.strip().upper() for line in text[:4096].split("\n") if line.strip()][:3]
    return "VEHICLE" in first


def read_solomon(text: str, metric: Metric | None, name: str, file: str) -> Problem:
    """Return the problem in the text of a Solomon file. `metric` None: distances truncated to tenths, by convention."""
    rows = [Row(line.split(), number) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if rows[0].words[0].upper() != "VEHICLE":
        name = " ".join(rows[0].words)
        del rows[0]
    last = rows[-1].line if rows else 1
    headings = [("VEHICLE",), HEAD, None, ("CUSTOMER",), tuple(" ".join(COLUMNS).split())]
    for position, heading in enumerate(headings):
        if position >= len(rows):
            raise InstanceError("the file ends within its head", line=last)
        words, line = rows[position]
        if heading is not None and tuple(word.upper() for word in words) != heading:
            raise InstanceError(f"expected '{' '.join(heading)}', found {shown(' '.join(words))}", line=line)
    customers = rows[len(headings) :]
    head, table = dict(zip(HEAD, _numbers(rows[2], HEAD), strict=True)), _table(customers, last)
    fields: dict[str, Any] = {"coordinates": table[:, 1:3]}
    for field in FIELDS:
        if field.columns and field.solomon:
            first = COLUMNS.index(field.solomon[0])
            fields[field.name] = table[:, first] if field.columns == 1 else table[:, first : first + field.columns]
        elif field.solomon:
            fields[field.name] = head[field.solomon[0]]
    try:
        return Problem(**fields, name=name, metric=Metric.DIMACS if metric is None else metric)
    except InstanceError as error:
        line = rows[2].line
        if error.node is not None:
            line = next(row.line for row in customers if count(row.words[0]) == error.node)
        raise error.located(file, line) from None


def _table(rows: list[Row], last: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return one row per node in the order of their numbers, the depot first."""
    found: dict[int, tuple[list[float], int]] = {}
    for row in rows:
        customer = count(row.words[0])
        if customer is None:
            raise InstanceError(f"{shown(row.words[0])} is not a customer number", field="CUST NO.", line=row.line)
        if customer in found:
            what = f"customer {customer} is given twice (first on line {found[customer][1]})"
            raise InstanceError(what, field="CUST NO.", line=row.line)
        found[customer] = _numbers(row, COLUMNS), row.line
    if len(found) < 2:
        raise InstanceError("needs a depot (customer 0) and at least one customer", field="CUSTOMER", line=last)
    for customer in range(len(found)):
        if customer not in found:
            raise InstanceError(f"customer {customer} is missing", field="CUST NO.", line=last)
    return np.array([found[customer][0] for customer in range(len(found))])


def _numbers(row: Row, columns: tuple[str, ...]) -> list[float]:
    if len(row.words) != len(columns):
        what = f"{amount(len(row.words), 'value')}, expected {len(columns)} ({', '.join(columns)})"
        raise InstanceError(what, line=row.line)
    for column, word in zip(columns, row.words, strict=True):
        if not is_number(word):
            raise InstanceError(f"{shown(word)} is not a number", field=column, line=row.line)
    return [float(word) for word in row.words]


def solomon_text(problem: Problem) -> str:
    """Return a problem as Solomon text, which has windows and service times, and no matrix, prizes or route limits."""
    for field in FIELDS:
        if not field.solomon and getattr(problem, field.name) is not None:
            raise InstanceError("has no place in Solomon text: use .json or .vrp", field=field.name)
    if problem.distance is not None or problem.coordinates is None:
        raise InstanceError("has no place in Solomon text: use .json or .vrp", field="distance")
    if problem.windows is None:
        raise InstanceError("Solomon text needs time windows: use .json or .vrp", field="windows")
    service = np.zeros(len(problem.demand)) if problem.service is None else problem.service
    table = np.column_stack([problem.coordinates, problem.demand, problem.windows, service])
    vehicles = problem.customers if problem.vehicles is None else problem.vehicles
    rows = [[node, *row] for node, row in enumerate(table.tolist())]
    name = " ".join(printable(problem.name).split()) or "problem"
    lines = [name, "", "VEHICLE", _aligned(HEAD), _aligned([vehicles, problem.capacity]), "", "CUSTOMER"]
    return "\n".join([*lines, _aligned(COLUMNS), "", *map(_aligned, rows)]) + "\n"


def _aligned(cells: Iterable[str | float]) -> str:
    whole = (int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in cells)
    return "  ".join(str(cell).rjust(10) for cell in whole)
