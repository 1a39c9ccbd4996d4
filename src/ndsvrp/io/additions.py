"""What a user states beside a file: the fleet, matrices, columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ndsvrp.constraints import FIELDS
from ndsvrp.errors import InstanceError, NdsError
from ndsvrp.io.files import PathLike
from ndsvrp.io.matrix_file import read_matrix_file
from ndsvrp.metric import Floats
from ndsvrp.model import Model
from ndsvrp.problem import Problem

FLEET = tuple(field.name for field in FIELDS if not field.columns)  # one number for the whole problem


@dataclass(frozen=True)
class Additions:
    """Numbers and files that complete an instance, or take the place of its own."""

    capacity: float | None = None
    vehicles: int | None = None
    max_distance: float | None = None
    max_duration: float | None = None
    vehicle_cost: float | None = None
    distance: PathLike | None = None  #: a matrix, .csv or .npy
    duration: PathLike | None = None  #: a matrix, .csv or .npy
    columns: Mapping[str, str] = field(default_factory=dict)  #: of a table: ours to its own

    def __post_init__(self) -> None:
        for name in ("distance", "duration"):
            if not isinstance(value := getattr(self, name), str | os.PathLike | None):
                how = f"problem.replace({name}=…) takes an array"
                raise NdsError(f"{name} is the path of a .csv or .npy file, got {type(value).__name__} ({how})")

    def fleet(self) -> dict[str, Any]:
        """Return what is stated of the fleet."""
        return {name: value for name in FLEET if (value := getattr(self, name)) is not None}

    def matrices(self, names: tuple[str, ...]) -> dict[str, Floats]:
        """Return the matrices for nodes of these names, the depot first."""
        found = {}
        for name, path in (("distance", self.distance), ("duration", self.duration)):
            if path is not None:
                found[name] = read_matrix_file(path, names)
        return found

    def complete(self, model: Model, fleet: Mapping[str, Any] | None = None) -> Problem:
        """Return the problem of a model; `fleet` is what the file itself states."""
        matrices = self.matrices(model.names)
        model.set_matrix(distance=matrices.get("distance"), duration=matrices.get("duration"))
        stated = {**(fleet or {}), **self.fleet()}
        if "capacity" not in stated and model.has_demands:
            what = "missing, customers have demands; --capacity, or capacity= in Python"
            raise InstanceError(what, field="capacity")
        if stated:
            model.set_fleet(**stated)
        return model.problem()

    def apply(self, problem: Problem) -> Problem:
        """Return a problem with what is stated here."""
        if self.columns:
            raise InstanceError("columns are for tables of stops (.csv)", field="columns")
        names = problem.names or tuple(map(problem.name_of, range(len(problem.demand))))
        changes: dict[str, Any] = {**self.fleet(), **self.matrices(names)}
        if "duration" in changes and problem.distance is None and "distance" not in changes:
            nodes = np.arange(len(problem.demand))
            changes["distance"] = problem.length(nodes[:, None], nodes[None, :])
        return problem.replace(**changes) if changes else problem


def columns_of(texts: Sequence[str], option: str) -> dict[str, str]:
    """Return the columns stated by texts such as `demand=kg`: ours to those of the table."""
    columns: dict[str, str] = {}
    for text in texts:
        ours, equals, theirs = text.partition("=")
        name = ours.strip().lower()
        if not equals or not name or not theirs.strip():
            raise NdsError(f"{option}: '{text}' is not like demand=kg")
        if columns.setdefault(name, theirs) != theirs:
            raise NdsError(f"{option}: {name} is stated twice")
    return columns
