"""Recorded searches: cost and a hash of the routes for every combination of constraints, metric, scope and rule.

    python tests/parity/trajectories.py record    # write tests/data/trajectories.jsonl anew

The file was recorded before the constraints were composed from rules; a change that is not meant to change what a
search finds must reproduce it bit by bit. Searches in regions were added to its end. Problems come from `problems.py`,
never from the generators.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from problems import SOURCES, VARIANTS, random_problem

import ndsvrp

RECORDED = Path(__file__).parents[1] / "data/trajectories.jsonl"
DATA = Path(__file__).parents[1] / "data/lib"
RULES = ("string", "related", "random", "function")
SEEDS = (1, 2)
PUBLISHED = ("X/X-n106-k14.vrp", "Solomon/R112.txt", "PCVRPTW/R1_10_1.vrp")
PRESETS: tuple[dict[str, Any], ...] = (
    {"solver": "sisr", "iterations": 3},
    {"solver": "nds", "iterations": 2, "ruin": "string", "chains": 3},
    {"solver": "nds", "iterations": 2, "preset": "paper", "chains": 3, "rollouts": 50},
)


def every_third(request: Any) -> Any:
    """(chains, K, M) a removal that looks at nothing but its random numbers."""
    customers = request.problem.customers
    chains = len(request.coordinates)
    order = np.argsort(request.random.random((chains, request.rollouts, customers)), axis=-1)
    return (order[..., : request.removals] + 1).astype(np.int32)


def cases() -> Iterator[dict[str, Any]]:
    """One dictionary per search: what `search` takes, as it stands in the file."""
    for seed in SEEDS:
        for variant in VARIANTS:
            for source in SOURCES:
                for fleet in (False, True):
                    for scope in ("touched", "all"):
                        for rule in RULES:
                            yield {
                                "problem": [seed, variant, source, 45, fleet, "uniform" if seed == 1 else None],
                                "search": {"scope": scope, "ruin": rule, "seed": seed, "iterations": 2, "chains": 3,
                                           "rollouts": 12, "removals": 7, "orders": 1 + 2 * (rule == "related"),
                                           "blink": 0.05 * (rule == "string"), "solver": "nds"},
                            }  # fmt: skip
    for name in PUBLISHED:
        for how in PRESETS:
            for seed in SEEDS:
                yield {"file": name, "search": {**how, "seed": seed}}
    for variant in ("cvrp", "vrptw", "pcvrp"):
        for source in ("none", "round", "asymmetric"):
            yield {
                "problem": [3, variant, source, 30, False, "uniform"],
                "search": {"ruin": "policy", "model": "all", "seed": 4, "iterations": 2, "chains": 2, "rollouts": 10,
                           "removals": 5, "device": "cpu"},
            }  # fmt: skip
    for variant in VARIANTS:
        for source in ("none", "round", "asymmetric"):
            for fleet in (False, True):
                yield {
                    "problem": [5, variant, source, 60, fleet, "uniform"],
                    "search": {"solver": "hybrid", "seed": 5, "iterations": 3, "chains": 6, "regions": 3,
                               "rollouts": 40},
                }  # fmt: skip


def search(case: dict[str, Any]) -> dict[str, Any]:
    """Cost and digest of the routes that a case leads to."""
    if "file" in case:
        problem = ndsvrp.read(DATA / case["file"])
    else:
        seed, variant, source, customers, fleet, layout = case["problem"]
        problem = random_problem(seed, variant, source, customers=customers, vehicles=fleet, layout=layout)
    later = {
        "free_fleet": 0.0,
        "weigh_unserved": False,
        "start_packed": False,
        "count_absences": False,
    }  # settings of hybrid that came after the file
    how = {"device": "cpu", **later, **case["search"]}
    if how["ruin" if "ruin" in how else "solver"] == "function":
        how["ruin"] = every_third
    with warnings.catch_warnings(), patch("ndsvrp.search.solver.shortage", lambda problem: None):  # search anyhow
        warnings.simplefilter("ignore")
        try:
            result = ndsvrp.solve(problem, threads=2, **how)
        except ndsvrp.NoSolutionError as error:
            return {"cost": None, "routes": str(error)}
    routes = json.dumps([list(map(int, route)) for route in result.solution.routes])
    return {"cost": repr(result.cost), "routes": hashlib.sha256(routes.encode()).hexdigest()[:16]}


def record() -> None:
    """Write all cases with what they lead to."""
    with RECORDED.open("w") as file:
        for case in cases():
            print(json.dumps({**case, **search(case)}), file=file)


if __name__ == "__main__":
    if sys.argv[1:] != ["record"]:
        sys.exit(__doc__)
    record()
