"""Rows for the tests of reports."""

from __future__ import annotations

from ndsvrp.bench.rows import Row


def row(solver: str, instance: str, cost: float | None = None, best: float | None = None, **more: object) -> Row:
    facts: Row = {
        "set": "X", "instance": instance, "data": "d", "solver": solver, "solver_version": "1", "seed": 1,
        "budget": 60.0, "threads": 1, "hardware": {"cpu": "EPYC", "cores": 2}, "customers": 100,
    }  # fmt: skip
    if cost is not None:
        facts |= {
            "cost": cost, "feasible": True, "seconds": cost / 100, "cpu_seconds": cost / 100, "routes": 4,
            "best_known": best, "gap": None if best is None else 100 * (cost - best) / best,
        }  # fmt: skip
    return facts | more


ROWS = [
    row("a", "p", 100.0, 100.0),  # 0% above best known
    row("b", "p", 102.0, 100.0),  # 2% above, 2% above a
    row("a", "q", 220.0, 200.0),  # 10% above
    row("b", "q", 209.0, 200.0, routes=5),  # 4.5% above, 5% below a
]
