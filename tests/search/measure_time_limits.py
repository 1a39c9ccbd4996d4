"""How well the time limit is kept, for 1 and 10,000 customers: a script, as a loaded machine would fail a test.

    python tests/search/measure_time_limits.py [SECONDS]

The limit is to hold within 2% or 0.1 s, whichever is larger.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from ndsvrp import Problem, solve


def problems(customers: int) -> dict[str, Problem]:
    rng = np.random.default_rng(0)
    nodes, depot = np.arange(customers + 1), np.zeros(customers + 1, int)
    plain = Problem(
        coordinates=rng.random((customers + 1, 2)), demand=np.r_[0, rng.integers(1, 10, customers)], capacity=300
    )
    ready = rng.random(customers + 1)
    windows = np.stack([ready, np.maximum(ready, plain.length(depot, nodes)) + 0.3], axis=1)
    windows[0] = [0, 4]
    return {
        "cvrp": plain,
        "fleet": plain.replace(vehicles=customers // 55 + 5),
        "vrptw": plain.replace(windows=windows),
        "pcvrptw": plain.replace(windows=windows, prize=np.r_[0, rng.random(customers) * 0.3]),
    }


def main(limit: float) -> None:
    for customers in (1, 10_000):
        for name, problem in problems(customers).items():
            for solver in ("sisr", "nds"):
                began = time.perf_counter()
                result = solve(problem, time=limit, seed=1, solver=solver)
                over = time.perf_counter() - began - limit
                verdict = "ok" if over <= max(0.1, 0.02 * limit) else "LATE"
                print(f"{customers:>6} {name:8} {solver:5} {over:+.3f} s {verdict:5} {result.iterations} iterations")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 2.0)
