"""LKH-3 (Helsgaun 2017) as a baseline, where its program `LKH` is on the path. It computes in integers."""

import hashlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ndsvrp.bench.solvers import Answer, last_line, refusal
from ndsvrp.bench.ticks import Ints, Ticks, fleet, to_ticks
from ndsvrp.constraints import CAPACITY, FLEET, TIME_WINDOWS
from ndsvrp.errors import InstanceError, NoSolutionError
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution

PROGRAM, ADDRESS = "LKH", "http://webhotel4.ruc.dk/~keld/research/LKH-3/"
LARGEST = 10**6  # of a length that is scaled: LKH multiplies by 100 and has 32 bits
LARGEST_GIVEN = 10**7  # of a length under an integer metric, which is not scaled
LOAD = 2 * 10**9  # sum of all demands, if they are scaled
LATE = 60.0  # seconds beyond twice the limit after which the program is ended
PARAMETERS = {"RUNS": "1", "MAX_TRIALS": "1000000000", "MTSP_MIN_SIZE": "0", "TRACE_LEVEL": "0"}
"""Besides `SPECIAL`, which LKH-3 has for routing: one run until the time is over, with empty routes allowed."""


class Lkh:
    """LKH-3 with its special parameters for routing problems."""

    def version(self) -> str:
        """Return a digest of the program, which does not tell its version."""
        program = shutil.which(PROGRAM)
        if program is None:
            hint = f"build LKH-3 from {ADDRESS}"
            raise InstanceError(f"'lkh' needs the program {PROGRAM} on the path ({hint})", field="solvers")
        return f"3+{hashlib.sha256(Path(program).read_bytes()).hexdigest()[:12]}"

    def refuses(self, problem: Problem) -> str | None:
        if reason := refusal("LKH-3", {CAPACITY, TIME_WINDOWS, FLEET}, problem):
            return reason
        if problem.has_windows and problem.duration is not None:
            return "LKH-3 takes travel times to be distances"
        if problem.customers < 2:
            return "LKH-3 needs at least two customers"
        return None if _lengths(problem, _ticks(problem)).max() <= LARGEST_GIVEN else "LKH-3 takes lengths up to 10^7"

    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        ticks = _ticks(problem)
        vehicles = fleet(problem, ticks)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "problem.vrp").write_text(problem_file(problem, ticks, vehicles))
            lines = ["SPECIAL", f"PROBLEM_FILE = {folder / 'problem.vrp'}", f"TOUR_FILE = {folder / 'tour'}"]
            lines += [f"{name} = {value}" for name, value in PARAMETERS.items()]
            lines += [f"TIME_LIMIT = {seconds}", f"SEED = {seed}"]
            (folder / "parameters").write_text("\n".join(lines) + "\n")
            started = time.perf_counter()
            done = subprocess.run(
                [PROGRAM, str(folder / "parameters")], stdin=subprocess.DEVNULL, capture_output=True,
                timeout=2 * seconds + LATE,
            )  # fmt: skip
            spent = time.perf_counter() - started
            if done.returncode != 0:
                raise RuntimeError(last_line(done.stderr or done.stdout) or f"LKH: exit code {done.returncode}")
            if not (folder / "tour").exists():  # it writes feasible tours only
                raise NoSolutionError("LKH-3 found no feasible solution", [])
            routes = read_tour((folder / "tour").read_text(), problem.customers)
        settings = {"parameters": "SPECIAL", **PARAMETERS, "vehicles": vehicles}
        settings |= {"cost_scale": ticks.time_scale if problem.has_windows else ticks.cost_scale}
        return Answer(Solution(routes), spent, settings)


def problem_file(problem: Problem, ticks: Ticks, vehicles: int) -> str:
    """Return the problem in LKH's format, with a full matrix and windows from when the depot opens."""
    lengths = _lengths(problem, ticks)
    symmetric = np.array_equal(lengths, lengths.T)
    kind = "CVRPTW" if problem.has_windows else "CVRP" if symmetric else "ACVRP"
    head = {
        "NAME": "problem", "TYPE": kind, "DIMENSION": len(lengths), "VEHICLES": vehicles, "CAPACITY": ticks.capacity,
        "EDGE_WEIGHT_TYPE": "EXPLICIT", "EDGE_WEIGHT_FORMAT": "FULL_MATRIX",
    }  # fmt: skip
    lines = [f"{name} : {value}" for name, value in head.items()]
    lines += ["EDGE_WEIGHT_SECTION", *(" ".join(map(str, row)) for row in lengths.tolist())]
    lines += ["DEMAND_SECTION", *_numbered(ticks.demand.tolist())]
    if problem.has_windows:
        opens = int(ticks.ready[0])
        ready, due = np.maximum(ticks.ready - opens, 0).tolist(), (ticks.due - opens).tolist()
        lines += ["SERVICE_TIME_SECTION", *_numbered(ticks.service.tolist())]
        lines += ["TIME_WINDOW_SECTION", *_numbered(f"{a} {b}" for a, b in zip(ready, due, strict=True))]
    return "\n".join([*lines, "DEPOT_SECTION", "1", "-1", "EOF", ""])


def read_tour(text: str, customers: int) -> list[list[int]]:
    """Return the routes of a tour file. Node 1 is the depot, and nodes above the customers are copies of it."""
    _, _, section = text.partition("TOUR_SECTION")
    routes: list[list[int]] = [[]]
    for node in map(int, section.split("-1", 1)[0].split()):
        if 2 <= node <= customers + 1:
            routes[-1].append(node - 1)
        else:
            routes.append([])
    return [route for route in routes if route]


def _numbered(values: Iterable[object]) -> list[str]:
    return [f"{number} {value}" for number, value in enumerate(values, start=1)]


def _ticks(problem: Problem) -> Ticks:
    vehicles = int(np.ceil(problem.demand.sum() / problem.capacity)) + 1
    return to_ticks(problem, largest=LARGEST, load_ticks=LOAD // vehicles)


def _lengths(problem: Problem, ticks: Ticks) -> Ints:
    """Return the matrix: with windows that of times, which are rounded up, for LKH has one matrix for both."""
    return ticks.duration if problem.has_windows else ticks.distance


LKH = Lkh()
