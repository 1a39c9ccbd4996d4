"""Random problems: every combination of constraints and metrics, with numbers from 1e-3 to 1e9.

A problem is a dictionary with the fields of `ndsvrp.Problem`, made of plain lists. The magnitudes of lengths, times,
prizes and demands are drawn for each problem, independently; that of the cost of vehicles mostly not. Each required
customer can be served by a route of its own, as the package demands.
"""

from typing import Any

import numpy as np

from fuzz.oracle import SCALE, Fields, Oracle

METRICS = ("none", "none", "round", "trunc", "dimacs", "exact")
SMALL = 6  # customers of problems that are enumerated


def random_problem(seed: int, index: int) -> Fields:
    """Return problem `index` of a seed."""
    rng = np.random.default_rng((seed, index))
    size = rng.choice(3, p=[0.3, 0.6, 0.1])
    n = int(rng.integers(*((1, SMALL + 1), (SMALL + 1, 31), (31, 101))[size]))
    length, time, prize, demand = 10.0 ** rng.uniform(-3, 9, 4)
    with_windows, with_prizes, with_fleet, with_distance, with_duration, with_service = rng.random(6) < 0.5
    fields: Fields = {"metric": str(rng.choice(METRICS))}
    fields |= _travel(rng, n, length, time, fields["metric"])
    fields |= _demands(rng, n, demand)
    scale = SCALE[fields["metric"]]
    if with_prizes:
        optional = rng.random(n + 1) < rng.choice([0.5, 0.8, 1.0])
        values = np.where(optional, prize * rng.uniform(0.1, 1.0, n + 1), 0.0)
        fields["prize"] = _whole(values, scale, fields["metric"] != "none")
        fields["prize"][0] = 0.0
    is_whole = fields["metric"] != "none"
    if with_service:
        fields["service"] = _whole(time * rng.uniform(0.0, 0.5, n + 1), scale, is_whole)
        fields["service"][0] = 0.0
    oracle = Oracle(fields)
    unit = 1.0 if oracle.whole_times else scale  # the oracle counts times in ticks of the metric, or as given
    service = [s * scale for s in fields.get("service", [0.0] * (n + 1))]
    there = [oracle.travel_time(0, c) * unit for c in range(n + 1)]
    back = [oracle.travel_time(c, 0) * unit for c in range(n + 1)]
    must = [c for c in range(1, n + 1) if oracle.is_required(c)] or [1]
    if with_windows:
        windows = _windows(rng, n, time * scale, there, back, service, must, is_whole)
        fields["windows"] = [[low / scale, high / scale] for low, high in windows]
    if with_distance:
        alone = max(oracle.length(0, c) + oracle.length(c, 0) for c in must)
        limit = _at_least(alone * rng.choice([1.0, rng.uniform(1, 2), rng.uniform(1, 8)]), alone, oracle.whole)
        fields["max_distance"] = max(limit, 1.0 if oracle.whole else 1e-3) / oracle.scale
    if with_duration:
        alone = max(there[c] + service[c] + back[c] for c in must)
        limit = max(alone * rng.uniform(1, 4), time * scale * rng.choice([0, 1]) * rng.uniform(0, 4))
        limit = _at_least(limit, alone, is_whole)
        fields["max_duration"] = max(limit, 1.0 if is_whole else 1e-3) / scale
    if with_fleet:
        fields["vehicles"] = int(rng.integers(1, n + 1))
    own = np.random.default_rng((seed, index, 1))  # apart: what was drawn above stays
    if own.random() < 0.4:
        magnitude = own.uniform(-3, 9) if own.random() < 0.1 else np.log10(length) + own.uniform(-2, 2)
        fields["vehicle_cost"] = _whole([10.0**magnitude], scale, is_whole)[0]
    return fields


def _at_least(value: float, least: float, whole: bool) -> float:
    return float(np.ceil(max(value, least))) if whole else float(max(value, least))


def _whole(values: Any, scale: int, whole: bool) -> list[float]:
    return [float(v) for v in (np.rint(np.asarray(values) * scale) / scale if whole else values)]


def _travel(rng: np.random.Generator, n: int, length: float, time: float, metric: str) -> Fields:
    kind = rng.choice(["points", "clusters", "matrix", "durations"], p=[0.45, 0.15, 0.2, 0.2])
    if kind in ("points", "clusters"):
        points = rng.random((n + 1, 2))
        if kind == "clusters":
            points = rng.random((3, 2))[rng.integers(3, size=n + 1)] + 0.01 * rng.normal(size=(n + 1, 2))
            points[rng.random(n + 1) < 0.1] = points[0]
        return {"coordinates": (length * points).tolist()}
    points = rng.random((n + 1, 2))
    matrix = np.hypot(*(points[:, None] - points).T) + 0.2 * rng.random((n + 1, n + 1))
    if rng.random() < 0.5:  # far from the triangle inequality
        matrix = matrix * 10.0 ** rng.uniform(-2, 1, matrix.shape)
    np.fill_diagonal(matrix, 0.0)
    whole = [_whole(row, SCALE[metric], metric != "none") for row in length * matrix]
    if kind == "matrix":
        return {"distance": whole}
    other = matrix * rng.uniform(0.5, 2.0, matrix.shape)
    return {"distance": whole, "duration": (time * other).tolist()}


def _demands(rng: np.random.Generator, n: int, demand: float) -> Fields:
    values = demand * rng.random(n + 1) * (rng.random(n + 1) < 0.95)
    values[0] = 0.0
    capacity = max(values.max(), float(np.mean(values)) * rng.uniform(1.0, 1.0 + n), 1e-3)
    if rng.random() < 0.5:
        values, capacity = np.rint(values), max(1.0, np.ceil(capacity))
    return {"demand": values.tolist(), "capacity": float(capacity)}


def _windows(
    rng: np.random.Generator, n: int, time: float, there: list[float], back: list[float], service: list[float],
    must: list[int], whole: bool,
) -> list[list[float]]:  # fmt: skip
    """Return windows in units. Required customers can be reached, others perhaps."""
    tidy = np.ceil if whole else np.asarray
    opens = float(tidy(time * rng.choice([0.0, 1.0]) * rng.random()))
    ready = opens + tidy(time * rng.random(n + 1) * rng.choice([0.0, 1.0, 1.0], n + 1))
    width = tidy(time * rng.random(n + 1) * rng.choice([0.0, 0.1, 1.0, 3.0], n + 1, p=[0.05, 0.25, 0.4, 0.3]))
    start = np.maximum(ready, opens + np.array(there))
    due = tidy(np.where(np.isin(np.arange(n + 1), must), start, ready)) + width
    home = max(start[c] + service[c] + back[c] for c in must)
    closes = float(tidy(home + time * rng.choice([0.0, 0.2, 1.0, 5.0]) * rng.random()))
    return [[opens, closes], *([float(a), float(b)] for a, b in zip(ready[1:], due[1:], strict=True))]
