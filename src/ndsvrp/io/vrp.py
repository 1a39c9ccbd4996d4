"""VRPLIB files (`.vrp`). The outline says where things stand, `vrplib` reads the tables, `Problem` is the gate.

The depot may be any node of the file; it becomes index 0, and the other nodes become customers 1 … N in
the order of their numbers. With the depot as node 1, as usual, node i of the file is customer i - 1.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ndsvrp.errors import InstanceError, NdsWarning
from ndsvrp.io.constraints import refusal
from ndsvrp.io.matrix import line_of_row, read_matrix
from ndsvrp.io.outline import Outline, Section, outline
from ndsvrp.io.words import amount, count, is_number, shown
from ndsvrp.metric import Floats, Metric
from ndsvrp.problem import Problem

COLUMNS = {"NODE_COORD": 2, "DEMAND": 1, "TIME_WINDOW": 2, "SERVICE_TIME": 1, "PRIZE": 1, "DISPLAY_DATA": 2}
SECTIONS = {*COLUMNS, "DEPOT", "EDGE_WEIGHT"}
FIELDS = {
    "NAME", "TYPE", "DIMENSION", "CAPACITY", "VEHICLES", "SERVICE_TIME",
    "EDGE_WEIGHT_TYPE", "EDGE_WEIGHT_FORMAT", "NODE_COORD_TYPE", "DISPLAY_DATA_TYPE",
}  # fmt: skip
#: what TYPE may say, and the sections that must then be there
TYPES: dict[str, tuple[str, ...]] = {
    "CVRP": (), "VRP": (), "ACVRP": (), "VRPTW": ("TIME_WINDOW",), "CVRPTW": ("TIME_WINDOW",),
    "PCVRP": ("PRIZE",), "PCVRPTW": ("TIME_WINDOW", "PRIZE"),
}  # fmt: skip
WEIGHTS = ("EUC_2D", "EXPLICIT")


def read_vrp(text: str, metric: Metric | None, name: str, file: str) -> Problem:
    """The problem in the text of a VRPLIB file. `metric` None: by the file, see `conventional_metric`."""
    file_outline = outline(text)
    _check_known(file_outline, file)
    n = _whole(file_outline, "DIMENSION", at_least=2)
    tables = _tables(file_outline, n)
    explicit = _is_explicit(file_outline)
    depot = _depot(file_outline, n)
    order = np.array([depot, *(node for node in range(n) if node != depot)])
    columns = {section: table[order] for section, table in tables.items()}
    fields: dict[str, Any] = {
        "capacity": _number(file_outline, "CAPACITY"),
        "demand": columns["DEMAND"],
        "coordinates": columns.get("NODE_COORD", columns.get("DISPLAY_DATA")),
        "distance": read_matrix(file_outline, n)[np.ix_(order, order)] if explicit else None,
        "windows": columns.get("TIME_WINDOW"),
        "service": columns.get("SERVICE_TIME"),
        "prize": columns.get("PRIZE"),
        "vehicles": _whole(file_outline, "VEHICLES", at_least=1) if "VEHICLES" in file_outline.fields else None,
    }
    if "SERVICE_TIME" in file_outline.fields:  # one time for all customers
        fields["service"] = np.full(n, _number(file_outline, "SERVICE_TIME"))
        fields["service"][0] = 0.0
    if "NAME" in file_outline.fields:
        name = file_outline.fields["NAME"].value or name
    try:
        return Problem(**fields, name=name, metric=conventional_metric(fields) if metric is None else metric)
    except InstanceError as error:
        raise error.located(file, _line(file_outline, error, order)) from None


def conventional_metric(fields: dict[str, Any]) -> Metric:
    """The rounding a VRPLIB file is meant for, by the fields of its problem.

    Coordinates: truncated to tenths with time windows, rounded to whole numbers without. A matrix: whole
    numbers if it, and all times and prizes beside it, are whole; else plain floats.
    """
    if fields["distance"] is None:
        return Metric.DIMACS if fields["windows"] is not None else Metric.ROUND
    numbers = (fields[field] for field in ("distance", "windows", "service", "prize"))
    whole = all(np.all(values == np.floor(values)) for values in numbers if values is not None)
    return Metric.ROUND if whole else Metric.NONE


# --- header fields ---------------------------------------------------------------------------


def _check_known(file_outline: Outline, file: str) -> None:
    """Nothing that may be a constraint is dropped; other unknown fields are, with a warning."""
    for name, section in file_outline.sections.items():
        if name not in SECTIONS:
            raise section.fault(refusal(name) or "unknown section, it may state a constraint")
    for name, field in file_outline.fields.items():
        if name in FIELDS:
            continue
        if (reason := refusal(name)) is not None:
            raise InstanceError(reason, field=name, line=field.line)
        warnings.warn(f"{file}:{field.line}: {name}: unknown field, ignored", NdsWarning, stacklevel=4)
    if "TYPE" in file_outline.fields:
        for section_name in TYPES[_choice(file_outline, "TYPE", tuple(TYPES))]:
            if section_name not in file_outline.sections:
                raise file_outline.no_section(section_name)


def _is_explicit(file_outline: Outline) -> bool:
    """Whether lengths come from a matrix. The sections they need must be there, and none that would be ignored."""
    explicit = _choice(file_outline, "EDGE_WEIGHT_TYPE", WEIGHTS) == "EXPLICIT"
    for section in ("DEMAND",) if explicit else ("NODE_COORD", "DEMAND"):
        if section not in file_outline.sections:
            raise file_outline.no_section(section)
    if not explicit and "EDGE_WEIGHT" in file_outline.sections:
        raise file_outline.sections["EDGE_WEIGHT"].fault("contradicts EDGE_WEIGHT_TYPE, which is not EXPLICIT")
    return explicit


def _choice(file_outline: Outline, name: str, known: tuple[str, ...]) -> str:
    if name not in file_outline.fields:
        raise file_outline.no_field(name)
    value, line = file_outline.fields[name]
    if value not in known:
        raise InstanceError(f"{shown(value)} is not supported (known: {', '.join(known)})", field=name, line=line)
    return value


def _number(file_outline: Outline, name: str) -> float:
    if name not in file_outline.fields:
        raise file_outline.no_field(name)
    value, line = file_outline.fields[name]
    if not is_number(value):
        raise InstanceError(f"{shown(value)} is not a number", field=name, line=line)
    return float(value)


def _whole(file_outline: Outline, name: str, at_least: int) -> int:
    value = _number(file_outline, name)
    if not value.is_integer() or value < at_least:
        text, line = file_outline.fields[name]
        raise InstanceError(f"{shown(text)} is not a whole number from {at_least}", field=name, line=line)
    return int(value)


# --- sections --------------------------------------------------------------------------------


def _tables(file_outline: Outline, n: int) -> dict[str, Floats]:
    """The numbered tables, float64, row i for node i + 1: shapes and numbers checked here, values in `Problem`."""
    present = [file_outline.sections[name] for name in COLUMNS if name in file_outline.sections]
    order = {section.name: _rows(section, COLUMNS[section.name], n) for section in present}
    lines = [line for s in present for line in (s.title, *(" ".join(row.words) for row in s.rows))]
    from vrplib.parse import parse_vrplib  # only files of this kind need it

    parsed = parse_vrplib("\n".join(lines), compute_edge_weights=False)
    tables = {name: np.asarray(parsed[name.lower()], dtype=np.float64) for name in order}
    return {name: table[order[name]] for name, table in tables.items()}


def _rows(section: Section, columns: int, n: int) -> list[int]:
    """For each node the position of its row. Every node must have one, with the right number of numbers."""
    found: dict[int, int] = {}
    for position, (words, line) in enumerate(section.rows):
        node = count(words[0])
        if node is None or not 1 <= node <= n:
            raise section.fault(f"{shown(words[0])} is not a node, those are 1 … {n}", line)
        if len(words) != 1 + columns:
            raise section.fault(f"{amount(len(words) - 1, 'value')}, expected {columns} (node {node})", line)
        for word in words:
            if not is_number(word):
                raise section.fault(f"{shown(word)} is not a number (node {node})", line)
        if node in found:
            first = section.rows[found[node]].line
            raise section.fault(f"node {node} is given twice (first on line {first})", line)
        found[node] = position
    if len(found) != n:
        missing = next(node for node in range(1, n + 1) if node not in found)
        raise section.fault(f"{amount(len(found), 'row')}, DIMENSION is {n} (node {missing} is missing)")
    return [found[node] for node in range(1, n + 1)]


def _depot(file_outline: Outline, n: int) -> int:
    """The depot's index (from 0)."""
    section = file_outline.sections.get("DEPOT")
    if section is None:
        raise file_outline.no_section("DEPOT")
    depots: list[int] = []
    for word, line in section.words():
        if word == "-1":
            break
        node = count(word)
        if node is None or not 1 <= node <= n:
            raise section.fault(f"{shown(word)} is not a node, those are 1 … {n}", line)
        if depots:
            raise section.fault("states a constraint that is not supported (more than one depot)", line)
        depots.append(node - 1)
    if not depots:
        raise section.fault("names no depot")
    return depots[0]


# --- where the gate's complaints belong --------------------------------------------------------

_PLACES = {
    "demand": "DEMAND", "coordinates": "NODE_COORD", "windows": "TIME_WINDOW", "service": "SERVICE_TIME",
    "prize": "PRIZE", "capacity": "CAPACITY", "vehicles": "VEHICLES",
}  # fmt: skip


def _line(file_outline: Outline, error: InstanceError, order: Any) -> int | None:
    node = int(order[error.node]) if error.node is not None else None
    if error.field == "distance":
        return line_of_row(file_outline, node, len(order)) if node is not None else None
    name = _PLACES.get(error.field or "")
    if name in file_outline.fields:
        return file_outline.fields[name].line
    section = file_outline.sections.get(name or "")
    if section is None and error.field == "coordinates":
        section = file_outline.sections.get("DISPLAY_DATA")
    if section is None or node is None:
        return None
    return next((row.line for row in section.rows if count(row.words[0]) == node + 1), section.line)
