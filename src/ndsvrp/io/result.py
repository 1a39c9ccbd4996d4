"""The JSON result of a search: solution, settings and environment."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ndsvrp.best_known import best_known
from ndsvrp.io.environment import environment
from ndsvrp.io.files import PathLike, write_atomic

if TYPE_CHECKING:
    from ndsvrp.search.result import Result


def write_result(path: PathLike, result: Result) -> None:
    """Write a result as JSON, completely or not at all."""
    write_atomic(path, json_bytes(describe(result), indent=1))


def json_bytes(value: Any, indent: int | None = None) -> bytes:
    """Return a value as a JSON text in UTF-8, which ends with a newline."""
    text = json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode(errors="backslashreplace")  # half of a surrogate pair: JSON escapes it in the same way


def describe(result: Result) -> dict[str, Any]:
    """Return the table that `write_result` writes."""
    problem, report, known = result.problem, result.report, best_known(result.problem)
    return {
        "problem": {"name": problem.name, "customers": problem.customers, "metric": str(problem.metric)},
        "cost": report.cost,
        "distance": report.distance,
        "lost_prizes": report.lost_prizes,
        "vehicle_costs": report.vehicle_costs,
        "best_known": None if known is None else known.cost,
        "gap": None if known is None else known.gap(report.cost),
        "feasible": report.feasible,
        "violations": [str(violation) for violation in report.violations],
        "unserved": report.unserved,
        "routes": result.solution.routes,
        "seed": result.seed,
        "stopped": result.stopped,
        "seconds": result.seconds,
        "preparation": result.preparation,
        "iterations": result.iterations,
        "reconstructions": result.reconstructions,
        "settings": result.settings,
        "trace": [point._asdict() for point in result.trace],
        "schedule": [
            {"route": route.number, **route.figures, "stops": [stop._asdict() for stop in route.stops]}
            for route in result.schedule
        ],
        "unserved_names": [problem.name_of(customer) for customer in report.unserved],
        **(result.environment or environment()),
    }


def to_dict(result: Result) -> dict[str, Any]:
    """Return the table as JSON types."""
    table: dict[str, Any] = plain(describe(result))
    return table


def plain(value: Any) -> Any:
    """Return a value as JSON types; infinite and undefined numbers become None."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} does not go into a JSON result")
