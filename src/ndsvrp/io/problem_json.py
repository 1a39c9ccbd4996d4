"""Problems as JSON: a depot, customers, the fleet, matrices. `schemas/problem.schema.json` describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ndsvrp.constraints import FIELDS
from ndsvrp.errors import InstanceError, NdsError
from ndsvrp.io.additions import FLEET, Additions
from ndsvrp.io.forms import ACCEPTED
from ndsvrp.io.tables import parse_json
from ndsvrp.metric import Metric
from ndsvrp.model import Model
from ndsvrp.problem import Problem
from ndsvrp.scope import unsupported

PLACE = ("name", "x", "y", "lat", "lon", "window")
CUSTOMER = (*PLACE, *(field.name for field in FIELDS if field.columns == 1))
LONGEST_NAME = 1000  # characters
MATRICES = ("distance", "duration")
PROBLEM = ("name", "metric", "clock_times", *FLEET, "depot", "customers", *MATRICES)


def read_problem_json(text: str, metric: Metric | None, name: str, file: str, additions: Additions) -> Problem:
    """Return the problem in a JSON text. Errors name the entry: `customers[3].demand`."""
    table = parse_json(text, file)
    if not isinstance(table, dict) or "customers" not in table:
        raise InstanceError(f"is not a problem: no table with 'customers'; accepted: {ACCEPTED}")
    _check_keys(table, PROBLEM, "")
    clock_times = table.get("clock_times", False)
    if not isinstance(clock_times, bool):
        raise InstanceError("is not true or false", field="clock_times")
    title = _text(table.get("name", name), "name")
    model = Model(title, metric=metric or _metric(table.get("metric", "none")), clock_times=clock_times)
    depot, customers = table.get("depot"), table["customers"]
    if not isinstance(depot, dict):
        raise InstanceError("missing" if depot is None else "is not a table", field="depot")
    if not isinstance(customers, list):
        raise InstanceError("is not a list", field="customers")
    if not customers:
        raise InstanceError("is empty, at least one is needed", field="customers")
    _add(model.add_depot, depot, PLACE, "depot")
    for i, customer in enumerate(customers):
        if not isinstance(customer, dict):
            raise InstanceError("is not a table", field=f"customers[{i}]")
        _add(model.add_customer, customer, CUSTOMER, f"customers[{i}]")
    given = {key: _matrix(table[key], key) for key in MATRICES if table.get(key) is not None}
    model.set_matrix(distance=given.get("distance"), duration=given.get("duration"))
    fleet = {key: _number(table[key], key) for key in FLEET if table.get(key) is not None}
    try:
        return additions.complete(model, fleet)
    except InstanceError as error:
        if error.file is not None or error.node is None or error.field in (*MATRICES, *FLEET):
            raise
        where = "depot" if error.node == 0 else f"customers[{error.node - 1}]"
        key = {"windows": "window", "names": "name"}.get(error.field or "", error.field)
        raise InstanceError(error.message, field=f"{where}.{key}", node=error.node) from None


def problem_table(problem: Problem) -> dict[str, Any]:
    """Return a problem as the tables that `read_problem_json` reads."""
    table: dict[str, Any] = {"name": problem.name}
    if problem.metric is not Metric.NONE:
        table["metric"] = str(problem.metric)
    if problem.clock_times:
        table["clock_times"] = True
    table |= {key: value for key in FLEET if (value := getattr(problem, key)) is not None}
    columns = {
        field.name: values
        for field in FIELDS
        if field.columns == 1 and (values := getattr(problem, field.name)) is not None
    }
    nodes: list[dict[str, Any]] = []
    for node in range(len(problem.demand)):
        entry: dict[str, Any] = {"name": problem.name_of(node)}
        if problem.coordinates is not None:
            places = ("lon", "lat") if problem.geographic else ("x", "y")
            entry |= dict(zip(places, problem.coordinates[node].tolist(), strict=True))
        if problem.windows is not None:
            entry["window"] = problem.windows[node].tolist()
        if node:
            entry |= {key: float(values[node]) for key, values in columns.items()}
        nodes.append(entry)
    table |= {"depot": nodes[0], "customers": nodes[1:]}
    if problem.distance is not None and not problem.is_on_the_sphere:
        table["distance"] = problem.distance.tolist()
    if problem.duration is not None:
        table["duration"] = problem.duration.tolist()
    return table


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            meaning = unsupported(key)
            what = (
                f"is not supported ({meaning})"
                if meaning
                else f"unknown, it may state a constraint (known: {', '.join(known)})"
            )
            raise InstanceError(what, field=f"{where}.{key}".lstrip("."))


def _add(add: Any, entry: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    _check_keys(entry, known, where)
    given = {key: value for key, value in entry.items() if value is not None}
    if "name" in given:
        _text(given["name"], f"{where}.name")
    try:
        add(**given)
    except NdsError as error:
        raise InstanceError(str(error), field=where) from None


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise InstanceError(f"{value!r} is not text", field=field)
    if len(value) > LONGEST_NAME:
        raise InstanceError(f"{len(value):,} characters, at most {LONGEST_NAME} are allowed", field=field)
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InstanceError(f"{value!r} has half of a character", field=field)
    return value


def _number(value: Any, field: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InstanceError(f"{str(value)[:40]!r} is not a number", field=field)
    return value


def _metric(name: Any) -> Metric:
    if name not in list(Metric):
        raise InstanceError(f"unknown {name!r} (known: {', '.join(Metric)})", field="metric")
    return Metric(name)


def _matrix(rows: Any, field: str) -> list[Any]:
    """Return a list of lists of numbers, of equal length; numpy would take text and true for numbers."""
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == len(rows) for row in rows):
        raise InstanceError("is not a square matrix: a list of lists", field=field)
    for i, row in enumerate(rows):
        if not set(map(type, row)) <= {int, float}:
            for j, value in enumerate(row):
                _number(value, f"{field}[{i}][{j}]")
    return rows
