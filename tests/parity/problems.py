"""Random problems of every kind: all features, metrics and sources of distances, with much that is degenerate."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndsvrp.metric import Metric
from ndsvrp.problem import Problem

VARIANTS = ("cvrp", "vrptw", "pcvrp", "pcvrptw")
SOURCES = ("none", "round", "trunc", "dimacs", "exact", "matrix", "asymmetric", "durations")


def random_problem(
    seed: int,
    variant: str,
    source: str,
    *,
    customers: int | None = None,
    vehicles: bool | int = False,
    layout: str | None = None,
    mixed: bool | None = None,
    scale: float | None = None,
    limits: bool = False,
    vehicle_cost: bool = False,
) -> Problem:
    """`source` is a metric for coordinates, or the kind of matrix. `vehicles` True draws a limit. `limits` draws limits
    on routes, `vehicle_cost` a cost of vehicles."""
    rng = np.random.default_rng((seed, VARIANTS.index(variant), SOURCES.index(source)))
    n = customers or int(rng.choice([1, 2, 3, 5, 8, 13, 17, 24, 31, 40]))
    metric = source if source in tuple(Metric) else str(rng.choice(["none", "round"]))
    unit = 0.0 if metric == "none" else 1.0 / Metric(metric).scale
    fields: dict[str, Any] = {"metric": metric}

    def whole(values: Any) -> Any:
        return np.round(np.asarray(values) * round(1 / unit)) / round(1 / unit) if unit else np.asarray(values, float)

    layout = layout or str(rng.choice(["uniform", "uniform", "clusters", "grid", "decimals", "line", "one place"]))
    drawn = float(rng.choice([0.37, 1.0, 100.0, 1000.0] if not unit else [1.0, 37.0, 100.0, 1000.0]))
    points = _points(rng, n, layout) * (scale or drawn)
    if source in tuple(Metric):
        fields["coordinates"] = points
    else:
        side = float(np.max(np.ptp(points, axis=0))) or 1.0
        symmetric = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
        noise = rng.random((n + 1, n + 1)) * side
        matrix = symmetric if source == "matrix" else 0.7 * symmetric + 0.3 * noise  # no triangle inequality
        fields["distance"] = whole(matrix)
        if source == "durations":
            fields["duration"] = (symmetric * 0.01 + 0.005 * noise) * float(rng.choice([1.0, 0.1, 50.0]))
        if rng.random() < 0.3:
            fields["coordinates"] = points

    demand = rng.integers(0, 10, n + 1).astype(float)
    capacity = float(rng.choice([9, 12, 20, 35, 1000]))
    if rng.random() < 0.1:
        demand[:] = capacity = 9.0  # full vehicles
    if rng.random() < 0.2:
        demand, capacity = demand * 0.1, capacity * 0.1  # fractions
    demand[0] = 0
    fields |= {"demand": demand, "capacity": capacity}

    plain = Problem(**fields)
    nodes, depot = np.arange(n + 1), np.zeros(n + 1, int)
    back_and_forth = plain.length(depot, nodes) + plain.length(nodes, depot)
    optional = np.zeros(n + 1, bool)
    if variant.startswith("p"):
        optional = rng.random(n + 1) < (0.6 if mixed or (mixed is None and rng.random() < 0.5) else 1.0)
        prize = whole(rng.random(n + 1) * (back_and_forth.mean() + (unit or 0.1)) * rng.choice([0.4, 1.0, 3.0]))
        prize[optional & (prize == 0)] = unit or 0.01
        prize[~optional] = 0
        prize[0], optional[0] = 0, False
        fields["prize"] = prize
    if variant.endswith("tw"):
        there, back = plain.travel_time(depot, nodes), plain.travel_time(nodes, depot)
        span = float(there.max() + back.max()) or 1.0
        service = whole(rng.random(n + 1) * span * rng.choice([0.0, 0.02, 0.2]))
        ready = whole(rng.random(n + 1) * span * rng.choice([0.5, 1.5]))
        width = whole(rng.random(n + 1) * span * rng.choice([0.0, 0.2, 1.0]))
        start = np.maximum(there, ready)
        due = whole(start + width)
        service[0] = ready[0] = 0
        horizon = whole(float((due + service + back).max()) + span * rng.choice([0.0, 0.5]) + unit)
        due[optional & (rng.random(n + 1) < 0.1)] = 0  # nobody can be there in time (mostly)
        due = np.maximum(due, ready)
        opening = float(rng.choice([0.0, 0.0, 7.0])) if unit in (0.0, 1.0) else 0.0
        fields["windows"] = whole(np.stack([ready, due], axis=1) + opening)
        fields["windows"][0] = whole([opening, opening + horizon])
        fields["service"] = service
        if source == "durations" and unit:  # windows are whole, durations are not
            fields["windows"][1:, 1] = np.maximum(np.ceil(there[1:] + opening), fields["windows"][1:, 1])
            fields["windows"][0, 1] = np.ceil(fields["windows"][:, 1].max() + service.max() + back.max())
    if vehicles:
        fewest = int(np.ceil(demand.sum() / capacity))
        fields["vehicles"] = int(vehicles) if vehicles is not True else max(1, fewest + int(rng.integers(-1, 3)))
    if limits:
        fields |= _limits(np.random.default_rng((seed, 7)), Problem(**fields), whole)
    if vehicle_cost:
        drawn_cost = back_and_forth.mean() * np.random.default_rng((seed, 8)).choice([0.1, 1.0, 7.0])
        fields["vehicle_cost"] = float(whole(drawn_cost)) or unit or 0.01
    return Problem(**fields)


def _limits(rng: np.random.Generator, problem: Problem, whole: Any) -> dict[str, float]:
    """Limits that every required customer can keep."""
    nodes, depot = np.arange(problem.customers + 1), np.zeros(problem.customers + 1, int)
    there_and_back = problem.length(depot, nodes) + problem.length(nodes, depot)
    time = problem.travel_time(depot, nodes) + problem.travel_time(nodes, depot)
    if problem.service is not None:
        time = time + problem.service
    least = {
        "max_distance": float(np.max(there_and_back, where=problem.required, initial=0.0)),
        "max_duration": float(np.max(time, where=problem.required, initial=0.0)),
    }
    chosen = [["max_distance"], ["max_duration"], list(least)][int(rng.integers(3))]
    return {
        name: float(whole(np.ceil((least[name] * rng.choice([1.0, 1.3, 2.5]) + 0.001) * 1000) / 1000 + 1))
        for name in chosen
    }


def _points(rng: np.random.Generator, n: int, layout: str) -> np.ndarray:
    match layout:
        case "uniform":
            return rng.random((n + 1, 2))
        case "clusters":
            return rng.random((3, 2))[rng.integers(0, 3, n + 1)] + 0.05 * rng.standard_normal((n + 1, 2)) - 5.0
        case "grid":  # ties everywhere
            return rng.integers(0, 5, (n + 1, 2)).astype(float)
        case "decimals":  # lengths on the edge between two ticks
            return rng.integers(0, 40, (n + 1, 2)) / 10 + 3.3
        case "line":
            return np.stack([rng.integers(0, 9, n + 1), np.full(n + 1, 2.0)], axis=1)
        case _:
            return np.full((n + 1, 2), 0.3)
