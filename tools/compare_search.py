"""Compare settings of the search by paired runs: same instances, seeds, seconds and machine.

    python tools/compare_search.py --time 30 --seeds 1 2 --jobs 8 --out rows.jsonl \\
        base:solver=sisr tails:solver=sisr,tails=20

Each argument is NAME:OPTION=VALUE,…, options of `ndsvrp.solve`, or NAME:solver=pyvrp (or hgs). To compare two versions
of the program, install the other one in an environment of its own and name its interpreter:

    python tools/compare_search.py base:solver=hybrid new:solver=hybrid --python new=/tmp/new/bin/python --first 20

The instances are generated here (`FAMILIES`) and are no test instances; `--first` takes others than those on which a
variant was chosen. Every run is a process with one core; runs of one instance and seed start together. Prints the mean
difference of each configuration to the first one, in percent, with its standard error, per family. A run that finds no
feasible solution has no cost, and is counted as failed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ndsvrp import Metric, NoSolutionError, Problem, check, generate, solve
from ndsvrp.bench.solvers import find_solver
from ndsvrp.generate import Clustered
from ndsvrp.search import stopping

SEED = 77  # of all instances


def x_like(n: int, size: str, number: int, demand: str = "1-100", depot: str = "random") -> Problem:
    """Return an instance of the X generator, on its grid of 1000 with rounded lengths."""
    kind = Clustered(depot=depot, customers="random-clustered", seeds=(3, 8), demand=demand, route_size=size)  # type: ignore[arg-type]
    problem = generate("cvrp", n, seed=SEED, first=number, layout="clustered", clustered=kind)[0]
    assert problem.coordinates is not None
    return replace(problem, coordinates=np.rint(problem.coordinates * 1000), metric=Metric.ROUND)


def x_mixed(number: int) -> Problem:
    """Return a small instance of the X generator: depot, layout, demands and route size in turn."""
    kind = Clustered(
        depot=("random", "centred", "cornered")[number % 3],
        customers=("random-clustered", "clustered", "random")[number // 3 % 3],
        seeds=(3, 8), demand=("50-100", "1-100", "5-10", "1-10", "quadrant", "many-small", "unitary")[number % 7],
        route_size="triangular",
    )  # fmt: skip
    problem = generate("cvrp", 110 + 29 * number % 135, seed=SEED, first=number, layout="clustered", clustered=kind)[0]
    assert problem.coordinates is not None
    return replace(problem, coordinates=np.rint(problem.coordinates * 1000), metric=Metric.ROUND)


def homberger_like(number: int, *, wide: bool, prizes: bool = False, n: int = 600) -> Problem:
    """Return an instance in the manner of Gehring and Homberger: layout R, RC or C in turn, long or short horizon."""
    random = np.random.default_rng((SEED, n, number, wide))
    kind = ("R", "RC", "C")[number % 3]
    share_windows, stretch = (1.0, 0.5, 1.0, 0.25)[number % 4], (1, 2, 4)[number % 5 % 3]
    side = 500.0
    centres = random.uniform(0.05, 0.95, (max(4, n // 12), 2)) * side
    clustered = centres[random.integers(len(centres), size=n)] + random.normal(0, 0.02 * side, (n, 2))
    share = {"C": 1.0, "R": 0.0, "RC": 0.5}[kind]
    places = np.where(random.random((n, 1)) < share, clustered, random.uniform(0, side, (n, 2))).clip(0, side)
    points = np.rint(np.concatenate([[[side / 2, side / 2]], places]))
    service, demand = 90.0 if kind == "C" else 10.0, np.r_[0, random.integers(1, 36, n)]
    horizon = (3914.0 if kind == "C" else 7500.0) if wide else 1850.0
    away = np.hypot(*(points - points[0]).T)
    narrow = (160.0 if kind == "C" else 120.0) if wide else (60.0 if kind == "C" else 20.0)
    width = np.where(random.random(n) < share_windows, narrow * stretch, 2 * horizon)
    early, late = np.ceil(away[1:]) + 1, horizon - np.ceil(away[1:]) - service - 1
    centre = early + random.random(n) * (late - early)
    windows = np.rint(np.stack([np.maximum(early, centre - width / 2), np.minimum(late, centre + width / 2)], 1))
    prize = np.r_[0.0, np.rint(demand[1:] * random.uniform(0.5, 2.0, n)) + 5] if prizes else None
    return Problem(
        demand=demand, capacity=(700.0 if kind == "C" else 1000.0) if wide else 200.0, coordinates=points,
        metric=Metric.DIMACS, prize=prize, windows=np.vstack([[0.0, horizon], windows]),
        service=np.r_[0.0, np.full(n, service)],
    )  # fmt: skip


def solomon_like(number: int) -> Problem:
    """Return an instance in the manner of Solomon's classes R1 and RC1: windows of 30 to 100 of 230 minutes."""
    random = np.random.default_rng((SEED, 1, number))
    places = random.uniform(0, 100, (101, 2))
    if number % 2:  # half of the customers in clusters
        centres = random.uniform(10, 90, (8, 2))
        places[1:51] = (centres[random.integers(8, size=50)] + random.normal(0, 4, (50, 2))).clip(0, 100)
    places[0] = 50.0
    points, horizon, service = np.rint(places), 230.0 + 10 * (number % 2), 10.0
    away = np.ceil(np.hypot(*(points - points[0]).T))[1:]
    half = random.uniform(15, 50, 100)
    centre = away + random.random(100) * (horizon - 2 * away - service)
    ends = np.stack([np.maximum(away, centre - half), np.minimum(horizon - away - service, centre + half)], 1)
    return Problem(
        demand=np.r_[0, random.integers(1, 31, 100)], capacity=200.0, coordinates=points, metric=Metric.NONE,
        windows=np.vstack([[0.0, horizon], np.rint(ends)]), service=np.r_[0.0, np.full(100, service)],
    )  # fmt: skip


def tight_fleet(number: int) -> Problem:
    """Return an instance of the X generator whose vehicles must be full: as few as the total demand allows."""
    demand, size = ("quadrant", "1-100", "50-100")[number % 3], ("3-5", "5-8")[number // 3 % 2]
    return with_fleet(x_like(300 + 50 * (number % 8), size, number, demand), 0)


def with_fleet(problem: Problem, more: int) -> Problem:
    """Return the problem with so many more vehicles than the total demand takes."""
    return replace(problem, vehicles=math.ceil(float(np.sum(problem.demand)) / problem.capacity) + more)


# Vehicles with which a search that counts absences served all customers of numbers 60 to 65, and not with one fewer.
FEWEST = {
    "wide200": (6, 4, 8, 5, 5, 8), "vrptw200": (24, 21, 18, 21, 24, 21), "short200": (23, 19, 18, 19, 19, 18),
    "wide400": (9, 8, 14, 8, 8, 13), "vrptw500": (61, 51, 45, 51, 58, 45),
}  # fmt: skip


def fewest_with_windows(number: int) -> Problem:
    """Return an instance with windows and hardly more vehicles than it takes: thirty of five families in turn."""
    family, i = list(FEWEST)[number % len(FEWEST)], number // len(FEWEST) % 6
    return replace(FAMILIES[family](60 + i), vehicles=FEWEST[family][i])


def orienteering(number: int, *, windows: bool) -> Problem:
    """Return a team orienteering problem: four vehicles collect prizes, within a distance, or with windows."""
    n = 200 if windows else 300
    random = np.random.default_rng((SEED, n, number))
    points, prize = np.rint(random.random((n + 1, 2)) * 1000), np.r_[0, random.integers(20, 200, n)]
    shared = {"coordinates": points, "prize": prize, "demand": np.zeros(n + 1), "capacity": 1.0, "vehicles": 4}
    if not windows:
        return Problem(**shared, metric=Metric.ROUND, max_distance=1500.0)
    hours, service = 3500.0, 10.0
    away = np.rint(np.hypot(*(points - points[0]).T))
    centre = away + random.random(n + 1) * (hours - 2 * away - service)
    ends = np.stack([np.maximum(away, centre - 200), np.minimum(hours - away - service, centre + 200)], 1)
    bounds = np.vstack([[0.0, hours], np.rint(ends[1:])])
    return Problem(**shared, metric=Metric.ROUND, windows=bounds, service=np.r_[0, np.full(n, service)])


def half_fleet(problem: Problem) -> Problem:
    """Return the problem with half of the vehicles that the total demand takes."""
    vehicles = with_fleet(problem, 0).vehicles
    assert vehicles is not None
    return replace(problem, vehicles=(vehicles + 1) // 2)


ROUTE = {"cvrp200": 1.43, "vrptw200": 0.84, "pcvrp200": 0.7, "wide200": 770.0, "wide200-prizes": 450.0, "x400": 1270.0}
"""Mean lengths of a route without vehicle costs, of numbers 60 to 62."""


def with_cost(family: str, number: int) -> Problem:
    """Return an instance of a family with a vehicle cost of 0.2, 1 or 5 mean routes in turn; with prizes 0.1 to 0.4."""
    problem = FAMILIES[family](number)
    shares = (0.1, 0.2, 0.4) if problem.has_prizes else (0.2, 1.0, 5.0)
    cost = shares[number % 3] * ROUTE[family]
    return replace(problem, vehicle_cost=float(np.rint(cost)) if problem.metric.is_integer else cost)


def roads(variant: str, n: int, number: int) -> Problem:
    """Return an instance of the paper with a matrix in its place, as of roads: detours and one-way streets."""
    problem = generate(variant, n, seed=SEED, first=number)[0]
    assert problem.coordinates is not None
    random, points = np.random.default_rng((SEED, n, number)), problem.coordinates * 1000
    way = np.hypot(*(points[:, None] - points).T) * random.uniform(1.0, 1.3, (n + 1, n + 1))
    way += random.uniform(0, 15, way.shape)
    for k in range(n + 1):  # by way of others, where that is shorter
        way = np.minimum(way, way[:, k : k + 1] + way[k])
    np.fill_diagonal(way, 0)
    times: dict[str, Any] = {}
    if problem.windows is not None:
        times = {"windows": np.rint(problem.windows * 1000), "service": np.rint(problem.service * 1000)}
    return Problem(demand=problem.demand, capacity=problem.capacity, distance=np.rint(way), **times)


def single_route(n: int, number: int) -> Problem:
    """Return an instance with one vehicle, which serves everybody: a traveling salesman problem."""
    problem = generate("cvrp", n, seed=SEED, first=number)[0]
    assert problem.coordinates is not None
    places = np.rint(problem.coordinates * 1000)
    return Problem(
        demand=np.r_[0.0, np.ones(n)], capacity=float(n), vehicles=1, coordinates=places, metric=Metric.ROUND
    )


def drawn(variant: str, n: int) -> Callable[[int], Problem]:
    """Return the generator of the paper's instances."""
    return lambda number: generate(variant, n, seed=SEED, first=number)[0]


def limited(number: int) -> Problem:
    """Return an instance whose routes are limited by their duration, of about 25 customers each."""
    problem = generate("cvrp", 300, seed=SEED, first=number, capacity=150)[0]
    return replace(problem, max_duration=2.6)


FAMILIES: dict[str, Callable[[int], Problem]] = {
    "x120": lambda i: x_like(120 + 20 * i, ("5-8", "8-12", "3-5", "16-25")[i % 4], i),
    "x-mixed": x_mixed,
    "x-mixed-fleet": lambda i: with_fleet(x_mixed(i), 1),
    "x-mixed-tight-fleet": lambda i: with_fleet(x_mixed(i), 0),
    "windows-tight-fleet": fewest_with_windows,
    "orienteering": lambda i: orienteering(i, windows=False),
    "orienteering-windows": lambda i: orienteering(i, windows=True),
    "pcvrp200-half-fleet": lambda i: half_fleet(generate("pcvrp", 200, seed=SEED, first=i)[0]),
    "pcvrp500-half-fleet": lambda i: half_fleet(generate("pcvrp", 500, seed=SEED, first=i)[0]),
    "wide-prizes-half-fleet": lambda i: half_fleet(homberger_like(i, wide=True, prizes=True)),
    "x400-fleet": lambda i: with_fleet(x_like(400, "8-12", i), 1),
    "x200-tight": lambda i: x_like(150 + 10 * (i % 10), ("3-5", "5-8", "8-12")[i % 3], i, ("1-100", "50-100")[i % 2]),
    "x-tight-fleet": tight_fleet,
    "x400-short": lambda i: x_like(400, "3-5", i, "50-100"),
    "x400": lambda i: x_like(400, "8-12", i),
    "x650": lambda i: x_like(650, ("8-12", "16-25")[i % 2], i),
    "x800-long": lambda i: x_like(800, "16-25", i),
    "limits": limited,
    "roads200": partial(roads, "cvrp", 200),
    "roads200-windows": partial(roads, "vrptw", 200),
    "roads500": partial(roads, "cvrp", 500),
    "roads500-windows": partial(roads, "vrptw", 500),
    "single200": partial(single_route, 200),
    "single500": partial(single_route, 500),
    "cvrp500": drawn("cvrp", 500),
    "x3000": lambda i: x_like(3000, ("8-12", "16-25")[i % 2], i),
    "x6000": lambda i: x_like(6000, ("8-12", "16-25")[i % 2], i),
    "x10000": lambda i: x_like(10000, ("8-12", "16-25")[i % 2], i),
    "cvrp1000": drawn("cvrp", 1000),
    "vrptw1000": drawn("vrptw", 1000),
    "pcvrp1000": drawn("pcvrp", 1000),
    "cvrp2000": drawn("cvrp", 2000),
    "vrptw2000": drawn("vrptw", 2000),
    "pcvrp2000": drawn("pcvrp", 2000),
    "vrptw500": drawn("vrptw", 500),
    "pcvrp500": drawn("pcvrp", 500),
    "cvrp200": drawn("cvrp", 200),
    "vrptw200": drawn("vrptw", 200),
    "pcvrp200": drawn("pcvrp", 200),
    "solomon100": solomon_like,
    "short100": lambda i: homberger_like(i, wide=False, n=100),
    "short200": lambda i: homberger_like(i, wide=False, n=200),
    "wide100": lambda i: homberger_like(i, wide=True, n=100),
    "wide200": lambda i: homberger_like(i, wide=True, n=200),
    "wide400": lambda i: homberger_like(i, wide=True, n=400),
    "wide200-prizes": lambda i: homberger_like(i, wide=True, prizes=True, n=200),
    "wide200-prizes-fleet": lambda i: with_fleet(homberger_like(i, wide=True, prizes=True, n=200), 0),
    **{f"vehicle-cost-{name}": partial(with_cost, name) for name in ROUTE},
    "short": lambda i: homberger_like(i, wide=False),
    "wide": lambda i: homberger_like(i, wide=True),
    "wide1000": lambda i: homberger_like(i, wide=True, n=1000),
    "wide1000-prizes": lambda i: homberger_like(i, wide=True, prizes=True, n=1000),
    "short1000-prizes": lambda i: homberger_like(i, wide=False, prizes=True, n=1000),
    "wide-prizes": lambda i: homberger_like(i, wide=True, prizes=True),
    "short-prizes": lambda i: homberger_like(i, wide=False, prizes=True),
}


def number(text: str) -> Any:
    """Return what the text states: a number, or a word."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def child(job: dict[str, Any]) -> None:
    """Run one search in a process of its own and print a row."""
    print(json.dumps(row_of(job)))


def row_of(job: dict[str, Any]) -> dict[str, Any]:
    """Run one search and return its row."""
    if job["cpu"]:  # seconds of this process, whatever else the machine does
        stopping.time = SimpleNamespace(perf_counter=time.process_time)  # type: ignore[assignment]
        stopping.Budget.deadline = None  # type: ignore[assignment,method-assign]
        stopping.Budget.time_at = lambda self, share: None  # type: ignore[method-assign]
    problem = FAMILIES[job["family"]](job["number"])
    options = {key: number(value) for key, value in (part.split("=", 1) for part in job["options"].split(",") if part)}
    if options.get("solver") in ("pyvrp", "hgs"):
        answer = find_solver(options["solver"])(problem, job["time"], job["seed"])
        solution, made = answer.solution, answer.settings.get("iterations", 0)
    else:
        options = {"threads": 1, "device": "cpu"} | options
        try:
            result = solve(problem, time=job["time"], seed=job["seed"], **options)
        except NoSolutionError:
            return {**job, "cost": None, "routes": 0, "reconstructions": 0}
        solution, made = result.solution, result.reconstructions
    report = check(problem, solution)
    cost = report.cost if report.feasible else None
    return {**job, "cost": cost, "routes": len(solution.routes), "reconstructions": made}


def main() -> None:
    """Run all jobs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configurations", nargs="+")
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--first", type=int, default=0, help="number of the first instance of each family")
    parser.add_argument("--count", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--time", type=float, default=30.0)
    parser.add_argument(
        "--cpu", action="store_true", help="count seconds of the process, for a machine with other load"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes; 0: all in this one, for a GPU"
    )
    parser.add_argument(
        "--python", action="append", default=[], metavar="NAME=PATH", help="interpreter that runs this configuration"
    )
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    named = dict(part.split(":", 1) for part in given.configurations)
    pythons = dict(part.split("=", 1) for part in given.python)
    if unknown := set(pythons) - set(named):
        parser.error(f"--python: no configuration {', '.join(sorted(unknown))}")
    if pythons and not given.jobs:
        parser.error("--python needs processes: --jobs 1 or more")
    jobs = [
        {"family": family, "number": i, "seed": seed, "time": given.time, "cpu": given.cpu, "name": name,
         "options": options}
        for family in given.families for i in range(given.first, given.first + given.count) for seed in given.seeds
        for name, options in named.items()
    ]  # fmt: skip

    def run(job: dict[str, Any]) -> dict[str, Any]:
        row = in_process(job, pythons.get(job["name"], sys.executable)) if given.jobs else row_of(job)
        if given.out:
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
        return row

    with ThreadPoolExecutor(given.jobs or 1) as pool:
        rows = list(pool.map(run, jobs))
    report(rows, list(named))


def in_process(job: dict[str, Any], python: str) -> dict[str, Any]:
    """Run one search in a process of its own and return its row."""
    call = [python, __file__, "--child", json.dumps(job)]
    done = subprocess.run(call, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode:
        raise SystemExit(f"{job}: {done.stderr[-2000:]}")
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def report(rows: list[dict[str, Any]], names: list[str]) -> None:
    """Print the mean difference to the first configuration, over the pairs of which neither failed."""
    costs = {(r["family"], r["number"], r["seed"], r["name"]): r for r in rows}
    table: dict[tuple[str, str], list[tuple[float, int, float]]] = defaultdict(list)
    failed = Counter((family, row["name"]) for row in rows if row["cost"] is None for family in (row["family"], "all"))
    for (family, i, seed, name), row in costs.items():
        base = costs[family, i, seed, names[0]]
        if row["cost"] is None or base["cost"] is None:
            continue
        speed = row["reconstructions"] / max(base["reconstructions"], 1)
        change = 100 * (row["cost"] / base["cost"] - 1), row["routes"], speed
        table[family, name].append(change)
        table["all", name].append(change)
    families = list(dict.fromkeys(row["family"] for row in rows))
    for family in (*families, "all"):
        cells = []
        for name in names:
            lost = f"{failed[family, name]} failed" if failed[family, name] else ""
            if not table[family, name]:
                cells.append(f"{name} – ({lost or 'no pairs'})")
                continue
            change, routes, speed = np.array(table[family, name]).T
            error = change.std(ddof=1) / np.sqrt(len(change)) if len(change) > 1 else 0.0
            facts = ", ".join(filter(None, (f"{routes.mean():.1f} r", f"{speed.mean():.2f}x", lost)))
            cells.append(f"{name} {change.mean():+.3f}±{error:.3f} ({facts})")
        print(f"{family:12s} " + " | ".join(cells))


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(json.loads(sys.argv[2]))
    else:
        main()
