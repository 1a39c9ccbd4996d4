"""PyVRP 0.9 to 0.14 on a problem in integers.

This file needs numpy and PyVRP alone, so that it also runs as a program of another Python, with another version of
PyVRP than that of this environment: arrays come as `.npz` on the input stream, the outcome goes to the output stream as
JSON. With the argument `--version` it prints the version of PyVRP.
"""

import io
import json
import os
import sys
import time
from importlib.metadata import version
from typing import Any


def solve(arrays: Any, seconds: float, seed: int) -> dict[str, Any]:
    """Search for `seconds`. Return routes, seconds, iterations and the trace, with costs in ticks.

    `arrays` has those of `ndsvrp.bench.ticks.Ticks`, the coordinates `xy`, `required`, and `vehicles`.
    """
    import pyvrp
    import pyvrp.stop

    data = to_data(arrays)
    started = time.perf_counter()
    limit: Any = pyvrp.stop.MaxRuntime(seconds)
    trace: list[tuple[float, float]] = []
    limit(0)  # starts its clock, so that neighbourhoods and start solution count
    worst = sys.maxsize // 2  # costs above are those of infeasible solutions

    def stop(best_cost: float) -> bool:
        if best_cost < (trace[-1][1] if trace else worst):
            trace.append((time.perf_counter() - started, float(best_cost)))
        return bool(limit(best_cost))

    result = pyvrp.solve(data, stop, seed=seed, collect_stats=False, display=False)
    spent = time.perf_counter() - started
    routes = [_customers(route) for route in result.best.routes()]
    return {"routes": routes, "seconds": spent, "iterations": result.num_iterations, "trace": trace}


def to_data(arrays: Any) -> Any:
    """Return the `pyvrp.ProblemData`: one depot, one vehicle type, customers with prizes optional."""
    import pyvrp

    release = tuple(int(part) for part in version("pyvrp").split(".")[:2])
    lists = {name: arrays[name].tolist() for name in ("demand", "service", "ready", "due", "prize", "required", "xy")}
    xy = [[float(x), float(y)] for x, y in lists["xy"]]
    if release < (0, 12):  # whole coordinates
        xy = [[round(x * int(arrays["cost_scale"])), round(y * int(arrays["cost_scale"]))] for x, y in xy]

    def load(amount: int) -> Any:
        return amount if release < (0, 10) else [amount]

    def place(i: int) -> dict[str, Any]:
        return {"x": xy[i][0], "y": xy[i][1]} if release < (0, 14) else {"location": i}

    clients = [
        pyvrp.Client(
            delivery=load(lists["demand"][i]), service_duration=lists["service"][i], tw_early=lists["ready"][i],
            tw_late=lists["due"][i], prize=lists["prize"][i], required=lists["required"][i], **place(i),
        )
        for i in range(1, len(xy))
    ]  # fmt: skip
    most = int(arrays["max_distance"])
    limits: dict[str, Any] = {"max_distance": most} if most < sys.maxsize else {}
    limits["fixed_cost"] = int(arrays["vehicle_cost"])
    hours = {"tw_early": lists["ready"][0], "tw_late": lists["due"][0]}
    depot = pyvrp.Depot(**place(0), **(hours if release >= (0, 11) else {}))
    vehicles = pyvrp.VehicleType(int(arrays["vehicles"]), load(int(arrays["capacity"])), **hours, **limits)
    more: dict[str, Any] = {"locations": [pyvrp.Location(x, y) for x, y in xy]} if release >= (0, 14) else {}
    return pyvrp.ProblemData(
        clients=clients, depots=[depot], vehicle_types=[vehicles], distance_matrices=[arrays["distance"]],
        duration_matrices=[arrays["duration"]], **more,
    )  # fmt: skip


def _customers(route: Any) -> list[int]:
    """Return the customers of a route, counted from 1."""
    if hasattr(route, "visits"):
        return [int(visit) for visit in route.visits()]
    return [step.idx + 1 for step in route if step.is_client()]


def main() -> None:
    """Answer one request."""
    import numpy as np

    if sys.argv[1:] == ["--version"]:
        print(version("pyvrp"))
        return
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what PyVRP prints does not disturb the answer
    with np.load(io.BytesIO(sys.stdin.buffer.read())) as arrays:
        outcome = solve(dict(arrays), float(arrays["seconds"]), int(arrays["seed"]))
    json.dump(outcome, answers)
    answers.close()


if __name__ == "__main__":
    main()
