"""Write VRPLIB files. The constraint records name the sections and fields."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ndsvrp.constraints import FIELDS
from ndsvrp.errors import InstanceError
from ndsvrp.io.vrp import LON_LAT, conventional_metric, fields_of
from ndsvrp.metric import Floats
from ndsvrp.problem import Problem
from ndsvrp.text import printable
from ndsvrp.variants import VARIANTS, variant_of


def vrp_text(problem: Problem) -> str:
    """Return the text of a VRPLIB file that reads as the same problem, but for the names of customers.

    `METRIC`, a field of our own, is written only if the rounding is not the one that such a file is meant for, and
    `COORDINATES`, another one, only for latitude and longitude.
    """
    return "\n".join(_lines(problem)) + "\n"


def _lines(problem: Problem) -> Iterator[str]:
    nodes = len(problem.demand)
    named = VARIANTS.get(variant_of(problem).name)
    yield f"NAME : {printable(problem.name)}"
    yield f"TYPE : {named.types[0] if named else 'CVRP'}"
    yield f"DIMENSION : {nodes}"
    explicit = problem.distance is not None
    yield f"EDGE_WEIGHT_TYPE : {'EXPLICIT' if explicit else 'EUC_2D'}"
    if explicit:
        yield "EDGE_WEIGHT_FORMAT : FULL_MATRIX"  # also on the earth: GEO has whole km and another radius
    if problem.geographic and problem.coordinates is not None:
        yield f"COORDINATES : {LON_LAT}"
    fields = fields_of(problem)
    if conventional_metric(fields) is not problem.metric:
        yield f"METRIC : {problem.metric}"
    present = [field for field in FIELDS if fields[field.name] is not None]
    for field in present:
        if not field.columns:
            if field.header is None:
                raise InstanceError("has no place in a VRPLIB file: use .json", field=field.name)
            yield f"{field.header} : {_number(fields[field.name])}"
    if problem.coordinates is not None:
        yield "NODE_COORD_SECTION"
        yield from _table(problem.coordinates)
    if explicit:
        yield "EDGE_WEIGHT_SECTION"
        yield from _matrix(problem.distance)
    if problem.duration is not None:
        yield "EDGE_DURATION_SECTION"
        yield from _matrix(problem.duration)
    for field in present:
        if field.columns:
            yield f"{field.section}_SECTION"
            yield from _table(fields[field.name].reshape(nodes, -1))
    yield from ("DEPOT_SECTION", "1", "-1", "EOF")


def _table(values: Floats) -> Iterator[str]:
    for node, row in enumerate(values.tolist(), start=1):
        yield f"{node} {' '.join(map(_number, row))}"


def _matrix(values: Any) -> Iterator[str]:
    matrix = np.array(values)
    np.fill_diagonal(matrix, 0.0)
    for row in matrix.tolist():
        yield " ".join(map(_number, row))


def _number(value: float) -> str:
    """Return every digit."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))
