"""Your own ruin: a function that chooses the customers to remove.

The search inserts them again greedily, accepts or rejects the result by annealing, and exchanges solutions between
chains. A function is called for one problem at a time; `ndsvrp.Ruin` is the class to derive from for more.
"""

import sys
from pathlib import Path

import numpy as np

import ndsvrp

INSTANCE = Path(__file__).parent / "data" / "X-n106-k14.vrp"


def two_routes(request: ndsvrp.RuinRequest) -> np.ndarray:
    """Remove customers of two routes that come near each other.

    The two routes are those of a random customer and of the nearest customer on another route. Of both routes, the
    customers closest to the first are removed. If there are too few, others nearby are added.
    Return (chains, K, M) int32 customers in insertion order.
    """
    problem, draw = request.problem, request.random
    chains, customers = request.view.route.shape[0], problem.customers
    removed = np.empty((chains, request.rollouts, request.removals), np.int32)
    nodes = np.arange(1, customers + 1)
    for chain in range(chains):
        route = request.view.route[chain, 1 : customers + 1]
        for k in range(request.rollouts):
            centre = draw.integers(customers)
            away = problem.length(nodes[centre], nodes)
            other = np.argmin(np.where(route == route[centre], np.inf, away))
            within = (route == route[centre]) | (route == route[other])
            removed[chain, k] = nodes[np.lexsort((away, ~within))[: request.removals]]
    return removed


def main(file: str | Path = INSTANCE, iterations: int = 200) -> ndsvrp.Result:
    problem = ndsvrp.read(file)
    result = ndsvrp.solve(problem, iterations=iterations, seed=1, solver="nds", ruin=two_routes, chains=2, rollouts=50)
    print(f"{problem.name}: cost {result.cost:g} after {result.iterations} iterations, {result.seconds:.1f} s")
    return result


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else INSTANCE)
