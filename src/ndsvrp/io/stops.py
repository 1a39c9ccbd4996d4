"""Tables of stops (`.csv`): a row per stop, the depot first, columns by name.

The constraint records name their columns: `Field.table`. Capacity and the other limits of the fleet are not part of a
table; see `Additions`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from shlex import quote
from typing import Any

from ndsvrp.clock import exact_clock, minutes
from ndsvrp.constraints import FIELDS
from ndsvrp.errors import InstanceError, NdsError, warn
from ndsvrp.io.additions import FLEET, Additions
from ndsvrp.io.tokens import amount, decimal, is_number, shown
from ndsvrp.metric import Metric
from ndsvrp.model import Model
from ndsvrp.problem import Problem
from ndsvrp.scope import unsupported

PLACES = ("x", "y", "lat", "lon")
NUMBERS = tuple(column for field in FIELDS if field.columns for column in field.table)
COLUMNS = ("name", *PLACES, *NUMBERS)
ALIASES = {
    "id": "name", "stop": "name", "customer": "name", "latitude": "lat", "longitude": "lon", "lng": "lon",
    "ready_time": "ready", "due_date": "due", "due_time": "due", "service_time": "service",
}  # fmt: skip
KNOWN_COLUMNS = {**{column: column for column in COLUMNS}, **ALIASES}  # our names by those in files
TIMES = tuple(column for field in FIELDS if field.columns and field.unit == "time" for column in field.table)
MAY_MEAN = {
    **{column: column for column in NUMBERS},
    **dict.fromkeys(("quantity", "qty", "weight", "volume", "load", "kg"), "demand"),
    **dict.fromkeys(("earliest", "open", "opens", "opening", "from", "start"), "ready"),
    **dict.fromkeys(("latest", "close", "closes", "closing", "deadline", "until", "end"), "due"),
    **dict.fromkeys(("window", "windows", "tw"), "ready"),
    **dict.fromkeys(("duration", "handling", "dwell"), "service"),
    **dict.fromkeys(("profit", "reward", "revenue", "penalty"), "prize"),
}
"""Our columns, by words in the names of others that may be meant for them; the first one counts."""
LIMITING = {"max", "maximum", "limit", "route"}
"""Words which, beside `distance` or `duration` in the name of a column, say that it limits routes."""
MOST_ROWS = 200_000
MOST_COLUMNS = 1000


def is_column(word: str) -> bool:
    """Return whether a cell of the first row is recognised."""
    return _plain(word) in KNOWN_COLUMNS


def read_stops(
    text: str, metric: Metric | None, name: str, file: str, additions: Additions, ignore: Iterable[str] = ()
) -> Problem:
    """Return the problem in a table of stops. Empty cells restrict nothing."""
    delimiter, rows = _rows(text)
    head, first_line = next(rows)
    if len(head) > MOST_COLUMNS:
        raise InstanceError(f"{len(head):,} columns, at most {MOST_COLUMNS:,}", line=first_line)
    positions = _positions(head, additions.columns, {_plain(word) for word in ignore}, file, first_line)
    if additions.distance is None and not positions.keys() & set(PLACES):
        what = "no column holds places: --column x=NAME and y=NAME, or lat and lon; or a matrix (--distance)"
        raise InstanceError(what, line=first_line)
    model = Model(name, metric=Metric.NONE if metric is None else metric)
    lines: list[int] = []
    for cells, line in rows:
        if len(cells) != len(head):
            raise InstanceError(f"{amount(len(cells), 'value')}, expected {len(head)}", line=line)
        stop = {column: cells[position].strip() for column, position in positions.items()}
        if delimiter != ",":
            stop |= {column: decimal(word) for column, word in stop.items() if column != "name"}
        _add(model, stop, line, is_depot=not lines)
        lines.append(line)
        if len(lines) > MOST_ROWS:
            raise InstanceError(f"more than {MOST_ROWS:,} stops", line=line)
    if len(lines) < 2:
        raise InstanceError("needs a depot, the first row, and at least one customer", line=first_line)
    try:
        return additions.complete(model)
    except InstanceError as error:
        if error.file is not None:  # of a matrix
            raise
        line_ = None if error.node is None else lines[error.node]
        raise InstanceError(error.message, file=file, line=line_, field=error.field, node=error.node) from None


def stops_text(problem: Problem, delimiter: str = ",") -> str:
    """Return a problem as a table. What it cannot hold is refused; the fleet is stated beside it."""
    if problem.distance is not None and not problem.is_on_the_sphere:
        raise InstanceError("a table of stops holds no matrix: use .json or .vrp", field="distance")
    if problem.duration is not None:
        raise InstanceError("a table of stops holds no matrix: use .json or .vrp", field="duration")
    assert problem.coordinates is not None
    columns: dict[str, list[Any]] = {"name": [problem.name_of(node) for node in range(len(problem.demand))]}
    places = ("lon", "lat") if problem.geographic else ("x", "y")
    columns |= dict(zip(places, problem.coordinates.T.tolist(), strict=True))
    for field in FIELDS:
        if field.columns and (values := getattr(problem, field.name)) is not None:
            columns |= dict(zip(field.table, values.reshape(len(values), -1).T.tolist(), strict=True))
    if problem.clock_times and problem.windows is not None and odd_window(problem) is None:
        columns |= {name: list(map(exact_clock, columns[name])) for name in ("ready", "due")}
    buffer = io.StringIO()
    table = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
    table.writerow(columns)
    table.writerows([_short(value) for value in row] for row in zip(*columns.values(), strict=True))
    return buffer.getvalue()


def odd_window(problem: Problem) -> tuple[int, float] | None:
    """Return the first node and time of a window that no clock time states exactly; such windows stay numbers."""
    windows = () if problem.windows is None or not problem.clock_times else problem.windows.tolist()
    odd = ((node, time) for node, window in enumerate(windows) for time in window if exact_clock(time) is None)
    return next(odd, None)


def fleet_options(problem: Problem) -> str:
    """Return the options of the command that state what a table does not."""
    stated = {name: getattr(problem, name) for name in FLEET if getattr(problem, name) is not None}
    options = [f"--{name.replace('_', '-')} {_short(value)}" for name, value in stated.items()]
    return " ".join(options if problem.metric is Metric.NONE else [*options, f"--round {problem.metric}"])


def _short(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


_STATED = re.compile(r"sep=([,;\t])\r?\n", re.IGNORECASE)  # the first line of tables for spreadsheet programs


def _rows(text: str) -> tuple[str, Iterator[tuple[list[str], int]]]:
    """Return what separates cells, and the rows that are not blank."""
    first = text.lstrip().partition("\n")[0]
    stated = _STATED.match(text)
    delimiter = stated[1] if stated else max(",;\t", key=first.count)
    return delimiter, _cells(text, delimiter, skip=1 if stated else 0)


def _cells(text: str, delimiter: str, skip: int) -> Iterator[tuple[list[str], int]]:
    """Yield the cells of each row that is not blank, with its line."""
    rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        for row in islice(rows, skip, None):
            if any(cell.strip() for cell in row):
                yield row, rows.line_num
    except csv.Error as error:
        raise InstanceError(f"is not CSV ({error})", line=rows.line_num) from None


def _plain(word: str) -> str:
    return "_".join(word.strip().lower().replace("-", " ").split())


def _positions(head: list[str], mapping: Mapping[str, str], ignored: set[str], file: str, line: int) -> dict[str, int]:
    """Return where our columns are. Unknown ones are ignored with a warning, unless they may state a constraint."""
    _check_mapping(mapping, head, line)
    own = {_plain(theirs): ours for ours, theirs in mapping.items()}
    positions: dict[str, int] = {}
    unknown: list[str] = []
    meant: dict[str, str] = {}  # ours by unknown ones that may be meant for them
    for position, word in enumerate(head):
        theirs = _plain(word)
        ours = own.get(theirs) or KNOWN_COLUMNS.get(theirs, theirs)
        if theirs in ignored or (ours in mapping and theirs not in own):
            continue
        if ours not in COLUMNS:
            _refuse_constraint(word, line)
            if meaning := next((column for part, column in MAY_MEAN.items() if part in theirs.split("_")), None):
                meant[word] = meaning
            else:
                unknown.append(shown(word))
            continue
        if ours in positions:
            first = head[positions[ours]]
            what = f"is given twice, as {shown(first)} and {shown(word)}"
            if _plain(first) != theirs:
                what += f" (--column {quote(f'{ours}={theirs}')} reads that one only)"
            raise InstanceError(what, field=ours, line=line)
        positions[ours] = position
    if meant:
        raise _may_be_meant(meant, line)
    _check(positions, line)
    if unknown:
        shown_names = ", ".join(unknown[:8]) + (", …" if len(unknown) > 8 else "")
        warn(f"{file}:{line}: columns ignored: {shown_names}")
    return positions


def _check_mapping(mapping: Mapping[str, str], head: list[str], line: int) -> None:
    """Raise unless a mapping leads from columns that we know to columns that the table has."""
    if not isinstance(mapping, Mapping) or not all(isinstance(theirs, str) for theirs in mapping.values()):
        raise NdsError('columns must be a table of names, such as {"demand": "kg"}')
    present = {_plain(word) for word in head}
    for ours, theirs in mapping.items():
        if ours not in COLUMNS:
            what = f"no column '{ours}' (known: {', '.join(COLUMNS)}"
            if theirs in COLUMNS and _plain(ours) in present:
                what += f"; {theirs}={ours} reads the column '{ours}' as '{theirs}'"
            raise InstanceError(f"{what})", field="columns")
        if _plain(theirs) not in present:
            raise InstanceError(f"has no column {shown(theirs)}, which is to be '{ours}'", line=line)


def _refuse_constraint(word: str, line: int) -> None:
    """Raise for an unknown column whose name says that it states a constraint."""
    theirs = _plain(word)
    if meaning := unsupported(theirs):
        hint = f"--ignore-field {quote(theirs)} ignores it"
        raise InstanceError(f"is not supported ({meaning}; {hint})", field=shown(word), line=line)
    parts = theirs.split("_")
    limited = next((what for what in ("distance", "duration") if what in parts), None)
    if limited and not LIMITING.isdisjoint(parts):
        hint = f"--max-{limited} states it, --ignore-field {quote(theirs)} ignores it"
        raise InstanceError(f"limits all routes ({hint})", field=shown(word), line=line)


def _may_be_meant(meant: Mapping[str, str], line: int) -> InstanceError:
    """Return the error of unknown columns that may be meant for ours, with the options that read or ignore them."""
    first: dict[str, str] = {}  # one for each of ours; two cannot be read as the same
    for word, ours in meant.items():
        first.setdefault(ours, _plain(word))
    reads = [f"--column {quote(f'{ours}={theirs}')}" for ours, theirs in first.items()]
    ignores = [f"--ignore-field {quote(_plain(word))}" for word, ours in meant.items() if first[ours] != _plain(word)]
    if len(meant) == 1:
        hint = f"{reads[0]} reads it, --ignore-field {quote(*first.values())} ignores it"
    else:
        hint = f"{' '.join(reads + ignores)} reads them, --ignore-field NAME ignores one"
    columns = "', '".join(first)
    return InstanceError(f"may be meant for '{columns}' ({hint})", field=", ".join(map(shown, meant)), line=line)


def _check(positions: dict[str, int], line: int) -> None:
    if not positions:
        raise InstanceError(f"names no known column (known: {', '.join(COLUMNS)})", line=line)
    for one, other in (("x", "y"), ("y", "x"), ("lat", "lon"), ("lon", "lat")):
        if one in positions and other not in positions:
            raise InstanceError(f"missing, '{one}' is given", field=other, line=line)
    if "x" in positions and "lat" in positions:
        what = "has both x, y and lat, lon; --ignore-field x and y, or lat and lon"
        raise InstanceError(what, line=line)


def _add(model: Model, stop: dict[str, str], line: int, *, is_depot: bool) -> None:
    """Add a row to the model."""
    numbers: dict[str, Any] = {}
    for column, word in stop.items():
        if column == "name" or not word:
            continue
        at = minutes(word) if column in TIMES else None
        if at is None and not is_number(word):
            what = "a number, or a time such as 08:30" if column in TIMES else "a number"
            raise InstanceError(f"{shown(word)} is not {what}", field=column, line=line)
        numbers[column] = float(word) if at is None else word
    window = (numbers.pop("ready", None), numbers.pop("due", None))
    fields: dict[str, Any] = {"window": window, **numbers}
    if stop.get("name"):
        fields["name"] = stop["name"]
    if is_depot:
        for column in (field.name for field in FIELDS if field.columns == 1):
            value = fields.pop(column, 0.0)
            if (minutes(value) if isinstance(value, str) else value) != 0:
                raise InstanceError("the depot's, of the first row, must be 0", field=column, line=line)
    try:
        if is_depot:
            model.add_depot(**fields)
        else:
            model.add_customer(**fields)
    except NdsError as error:
        raise InstanceError(str(error), line=line) from None
