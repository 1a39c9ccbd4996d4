"""VRPLIB files (`.vrp`).

`outline` finds fields and sections, the constraint records say which belong to them (`Field.section`,
`Field.header`), and `Problem` validates the values.

The depot may be any node of the file; it becomes index 0, and the other nodes become customers 1 … N in
the order of their numbers. With the depot as node 1, as usual, node i of the file is customer i - 1.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ndsvrp.constraints import CAPACITY, CONSTRAINTS, FIELDS, Field
from ndsvrp.errors import InstanceError, warn
from ndsvrp.geo import tsplib_degrees, tsplib_geo
from ndsvrp.io.matrix import line_of_row, read_matrix
from ndsvrp.io.outline import Outline, Section, outline, plain_name
from ndsvrp.io.tokens import amount, count, is_number, shown
from ndsvrp.io.unsupported import REMARKS, refusal
from ndsvrp.metric import Floats, Metric
from ndsvrp.problem import Problem
from ndsvrp.variants import VARIANTS

#: numbers per node of the sections that are tables
COLUMNS = {"NODE_COORD": 2, "DISPLAY_DATA": 2, **{field.section: field.columns for field in FIELDS if field.section}}
SECTIONS = {*COLUMNS, "DEPOT", "EDGE_WEIGHT", "EDGE_DURATION"}
HEADERS = {
    "NAME", "TYPE", "DIMENSION", "METRIC", "EDGE_WEIGHT_TYPE", "EDGE_WEIGHT_FORMAT", "NODE_COORD_TYPE",
    "DISPLAY_DATA_TYPE", "COORDINATES",
    *(name for field in FIELDS for name in (field.header, field.other_header) if name),
}  # fmt: skip
#: what TYPE may say, and the constraints that the file must then state
TYPES = {name: variant.constraints - {CAPACITY} for variant in VARIANTS.values() for name in variant.types}
MATRICES = {"distance": "EDGE_WEIGHT", "duration": "EDGE_DURATION"}  # sections of an EXPLICIT file
WEIGHTS = ("EUC_2D", "GEO", "EXPLICIT")
LON_LAT = "LON_LAT"  # as COORDINATES: longitude and latitude in degrees, beside an explicit matrix


def read_vrp(text: str, metric: Metric | None, name: str, file: str, ignore_fields: Iterable[str] = ()) -> Problem:
    """Return the problem in the text of a VRPLIB file. `metric` None: see `conventional_metric`.

    `ignore_fields` names unknown fields and sections that are not refused.
    """
    file_outline = outline(text)
    _check_known(file_outline, file, _ignored(ignore_fields))
    n = _whole(file_outline, "DIMENSION", at_least=2)
    tables = _tables(file_outline, n)
    weights = _weights(file_outline)
    depot = _depot(file_outline, n)
    order = np.array([depot, *(node for node in range(n) if node != depot)])
    columns = {section: table[order] for section, table in tables.items()}
    fields: dict[str, Any] = {field.name: _values(file_outline, field, columns, n) for field in FIELDS}
    fields["coordinates"] = columns.get("NODE_COORD", columns.get("DISPLAY_DATA"))
    fields |= {"distance": None, "duration": None}
    if weights == "GEO":
        fields |= _geographic(file_outline, columns["NODE_COORD"], order)
    if "COORDINATES" in file_outline.fields:
        fields["geographic"] = _choice(file_outline, "COORDINATES", (LON_LAT,)) == LON_LAT
        if weights != "EXPLICIT" or fields["coordinates"] is None:
            what = "is for NODE_COORD_SECTION beside EDGE_WEIGHT_TYPE EXPLICIT"
            raise InstanceError(what, field="COORDINATES", line=file_outline.fields["COORDINATES"].line)
    for field, section in MATRICES.items():
        if section in file_outline.sections or (section == "EDGE_WEIGHT" and weights == "EXPLICIT"):
            fields[field] = read_matrix(file_outline, n, section)[np.ix_(order, order)]
    if "METRIC" in file_outline.fields and metric is None:
        metric = Metric(_choice(file_outline, "METRIC", tuple(Metric)))
    if "NAME" in file_outline.fields:
        name = file_outline.fields["NAME"].value or name
    try:
        return Problem(**fields, name=name, metric=conventional_metric(fields) if metric is None else metric)
    except InstanceError as error:
        raise error.located(file, _line(file_outline, error, order)) from None


def _geographic(file_outline: Outline, coordinates: Floats, order: Any) -> dict[str, Any]:
    """Return distances of TSPLIB's GEO, and coordinates in degrees."""
    try:
        distance = tsplib_geo(coordinates)
    except InstanceError as error:
        raise InstanceError(error.message, line=_line(file_outline, error, order), field="NODE_COORD_SECTION") from None
    return {"coordinates": tsplib_degrees(coordinates), "geographic": True, "distance": distance}


def fields_of(problem: Problem) -> dict[str, Any]:
    """Return the fields that the rounding of a file depends on."""
    return {name: getattr(problem, name) for name in ("distance", *(field.name for field in FIELDS))}


def conventional_metric(fields: dict[str, Any]) -> Metric:
    """Return the rounding that a VRPLIB file is meant for, by the fields of its problem.

    Coordinates: rounded to whole numbers, unless a constraint has another convention (time windows: truncated to
    tenths). A matrix: whole numbers if it, and all times and prizes beside it, are whole; else plain floats.
    """
    if fields["distance"] is None:
        metrics = (c.metric for c in CONSTRAINTS if c.metric is not None and fields[c.fields[0].name] is not None)
        return next(metrics, Metric.ROUND)
    numbers = (fields["distance"], *(fields[field.name] for field in FIELDS if field.unit))
    whole = all(np.all(values == np.floor(values)) for values in numbers if values is not None)
    return Metric.ROUND if whole else Metric.NONE


def _values(file_outline: Outline, field: Field, columns: dict[str, Floats], n: int) -> Any:
    """Return the values of a field, from its section or its header; None if the file has neither."""
    if field.section in columns:
        return columns[field.section]
    header = _header(file_outline, field)
    if header is None or not (header in file_outline.fields or field.required):
        return None
    value = _whole(file_outline, header, at_least=1) if field.count else _number(file_outline, header)
    return np.array([0.0] + [value] * (n - 1)) if field.columns else value  # one number for all customers


def _header(file_outline: Outline, field: Field) -> str | None:
    """Return the name by which the file states a header field."""
    if field.other_header is None or field.other_header not in file_outline.fields:
        return field.header
    if field.header in file_outline.fields:
        what = f"is stated as {field.header}, too (line {file_outline.fields[field.header].line})"
        raise InstanceError(what, field=field.other_header, line=file_outline.fields[field.other_header].line)
    return field.other_header


def _ignored(names: Iterable[str]) -> set[str]:
    plain = {plain_name(name) for name in names}
    ignored = {name.removesuffix("_SECTION") for name in plain}
    if read := sorted(ignored & SECTIONS | plain & HEADERS):
        raise InstanceError("is a field that is read, it cannot be ignored", field=read[0])
    return ignored


def _check_known(file_outline: Outline, file: str, ignored: set[str]) -> None:
    """Refuse unknown fields and sections, which may state a constraint, unless they are remarks or ignored."""
    unknown = [(name, section.title, section.line) for name, section in file_outline.sections.items()
               if name not in SECTIONS]  # fmt: skip
    unknown += [(name, name, field.line) for name, field in file_outline.fields.items()
                if name not in HEADERS and name not in REMARKS]  # fmt: skip
    for name, title, line in unknown:
        if name.removesuffix("_SECTION") not in ignored:
            raise InstanceError(refusal(name, title), field=title, line=line)
        warn(f"{file}:{line}: {title}: ignored, as asked")
    if "TYPE" in file_outline.fields:
        stated = TYPES[_choice(file_outline, "TYPE", tuple(TYPES))]
        for section_name in (c.fields[0].section for c in CONSTRAINTS if c in stated):
            if section_name and section_name not in file_outline.sections:
                raise file_outline.no_section(section_name)


def _weights(file_outline: Outline) -> str:
    """Return where lengths come from. Refuse a file without the sections that every problem needs."""
    weights = _choice(file_outline, "EDGE_WEIGHT_TYPE", WEIGHTS)
    required = [field.section for field in FIELDS if field.required and field.section]
    for section in required if weights == "EXPLICIT" else ("NODE_COORD", *required):
        if section not in file_outline.sections:
            raise file_outline.no_section(section)
    for section in MATRICES.values():
        if weights != "EXPLICIT" and section in file_outline.sections:
            raise file_outline.sections[section].fault("contradicts EDGE_WEIGHT_TYPE, which is not EXPLICIT")
    return weights


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


def _tables(file_outline: Outline, n: int) -> dict[str, Floats]:
    """Return the tables, float64, row i for node i + 1. Shapes are checked here, values in `Problem`."""
    present = [file_outline.sections[name] for name in COLUMNS if name in file_outline.sections]
    return {section.name: _table(section, COLUMNS[section.name], n) for section in present}


def _table(section: Section, columns: int, n: int) -> Floats:
    """Return the numbers of each node: (n,) or (n, columns). Every node must have one row of `columns` numbers."""
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
    rows = [section.rows[found[node]].words[1:] for node in range(1, n + 1)]
    return np.array(rows, dtype=np.float64).reshape(n if columns == 1 else (n, columns))


def _depot(file_outline: Outline, n: int) -> int:
    """Return the depot's index (from 0)."""
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


def _line(file_outline: Outline, error: InstanceError, order: Any) -> int | None:
    """Return the line that an error of `Problem` is about."""
    node = int(order[error.node]) if error.node is not None else None
    if error.field in MATRICES:
        section_name = MATRICES[error.field]
        known = node is not None and section_name in file_outline.sections
        return line_of_row(file_outline, node, len(order), section_name) if known and node is not None else None
    field = next((field for field in FIELDS if field.name == error.field), None)
    header = None if field is None else _header(file_outline, field)
    if header in file_outline.fields:
        return file_outline.fields[header].line
    names = ("NODE_COORD", "DISPLAY_DATA") if error.field == "coordinates" else (field.section if field else None,)
    section = next((file_outline.sections[name] for name in names if name in file_outline.sections), None)
    if section is None or node is None:
        return None
    return next((row.line for row in section.rows if count(row.words[0]) == node + 1), section.line)
