"""EDGE_WEIGHT_SECTION: distance matrices in all layouts of VRPLIB."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ndsvrp.errors import InstanceError
from ndsvrp.io.outline import Outline, Section
from ndsvrp.io.tokens import amount, is_number, shown
from ndsvrp.metric import Floats

Cells = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]


def _lower(k: int) -> Callable[[int], Cells]:
    return lambda n: np.tril_indices(n, k)


def _upper(k: int) -> Callable[[int], Cells]:
    return lambda n: np.triu_indices(n, k)


#: The cells (row, column) of an n × n matrix in the order in which a triangle is written. The other triangle
#: mirrors it, so that the lower triangle by columns is the upper one by rows.
TRIANGLES: dict[str, Callable[[int], Cells]] = {
    "LOWER_ROW": _lower(-1),
    "LOWER_DIAG_ROW": _lower(0),
    "UPPER_ROW": _upper(1),
    "UPPER_DIAG_ROW": _upper(0),
    "LOWER_COL": _upper(1),
    "LOWER_DIAG_COL": _upper(0),
    "UPPER_COL": _lower(-1),
    "UPPER_DIAG_COL": _lower(0),
}
FORMATS = ("FULL_MATRIX", *TRIANGLES)


def read_matrix(outline: Outline, n: int, name: str = "EDGE_WEIGHT") -> Floats:
    """Return the n × n matrix of an EXPLICIT file. Lines may break anywhere. The diagonal is ignored and becomes 0.

    Durations (EDGE_DURATION) have the format of the distances.
    """
    layout = outline.fields.get("EDGE_WEIGHT_FORMAT")
    if layout is None:
        raise outline.no_field("EDGE_WEIGHT_FORMAT")
    section = outline.sections.get(name)
    if section is None:
        raise outline.no_section(name)
    if layout.value not in FORMATS:
        what = f"{shown(layout.value)} is not a known format ({', '.join(FORMATS)})"
        raise InstanceError(what, field="EDGE_WEIGHT_FORMAT", line=layout.line)
    if layout.value == "FULL_MATRIX":
        matrix = _numbers(section, n * n, n, layout.value).reshape(n, n)
    else:
        numbers = _numbers(section, n * (n + 1 if "DIAG" in layout.value else n - 1) // 2, n, layout.value)
        rows, columns = TRIANGLES[layout.value](n)
        matrix = np.zeros((n, n))
        matrix[rows, columns] = matrix[columns, rows] = numbers
    np.fill_diagonal(matrix, 0.0)
    return matrix


def line_of_row(outline: Outline, node: int, n: int, name: str = "EDGE_WEIGHT") -> int:
    """Return the line on which a node's row of a full matrix begins; for a triangle, the line of the section."""
    section = outline.sections[name]
    if outline.fields["EDGE_WEIGHT_FORMAT"].value != "FULL_MATRIX":
        return section.line
    return next(line for position, (_, line) in enumerate(section.words()) if position == node * n)


def _numbers(section: Section, expected: int, n: int, layout: str) -> Floats:
    """Return the numbers of a section. They are counted before anything of the size of the matrix is allocated."""
    count = sum(len(row.words) for row in section.rows)
    if count != expected:
        line = section.rows[-1].line if section.rows else section.line
        raise section.fault(f"{amount(count, 'value')}, a {layout} of {n} nodes has {expected}", line)
    values = np.empty(expected)
    start = 0
    for row in section.rows:
        stop = start + len(row.words)
        for word in row.words:
            if not is_number(word):
                raise section.fault(f"{shown(word)} is not a number", row.line)
        values[start:stop] = [float(word) for word in row.words]
        start = stop
    return values
