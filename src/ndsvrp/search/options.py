"""The options of a search as keyword arguments that editors and type checkers know.

The fields of `Request` and `Settings` by name and type, with no text of their own; a test compares them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from ndsvrp.ruin import Ruin, RuinFunction
from ndsvrp.search.control import Callback, Stop
from ndsvrp.search.settings import Scope, TemperatureScale
from ndsvrp.search.stopping import Limits
from ndsvrp.solution import Solution


class Options(TypedDict, total=False):
    """How to search: the fields of `Request`, and those of `Settings`."""

    solver: str
    ruin: str | Ruin | RuinFunction | None
    model: str | Path | Ruin | RuinFunction | None
    preset: str
    device: str
    threads: int | None
    chains: int | None
    regions: int
    rollouts: int
    population: int
    islands: int
    anneal_share: float
    tournament: int
    child_steps: int
    warm: float
    least_apart: float
    rule_steps: int
    removals: int
    orders: int
    sorted_orders: bool
    scope: Scope
    insert_near: int
    blink: float
    open_route: float
    open_cheaper: float
    tails: int
    tails_share: float
    serve_bonus: float
    weigh_unserved: bool
    unserved_price: float
    start_served: bool
    start_savings: bool
    start_packed: bool
    count_absences: bool
    fewest_vehicles: bool
    start_rounds: int
    free_fleet: float
    hot: float
    cold: float
    temperature_scale: TemperatureScale
    threshold: float
    string_average: float
    string_longest: int
    string_split: float
    string_depth: float


class SolveOptions(Options, Limits, total=False):
    """All arguments of `ndsvrp.solve` but the problem."""

    seed: int
    init: Solution | None
    callback: Callback | None
    stop: Stop | None
