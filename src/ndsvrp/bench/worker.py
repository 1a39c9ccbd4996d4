"""A worker process: reads a task (a solver, and one instance or a batch) as JSON, writes the outcomes as JSON.

Run as `python -m ndsvrp.bench.worker`. What a solver prints goes to the error stream.
"""

import base64
import json
import os
import pickle
import signal
import sys
import threading
import time
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from ndsvrp.bench.instances import Case
from ndsvrp.bench.solvers import Answer, OwnSolver, find_solver
from ndsvrp.best_known import best_known
from ndsvrp.check import check
from ndsvrp.errors import NoSolutionError
from ndsvrp.io.environment import peak_mib
from ndsvrp.io.result import plain
from ndsvrp.problem import Problem
from ndsvrp.search.planning import Request

TRACE_POINTS = 50  # of a row


def run_task(task: dict[str, Any]) -> list[dict[str, Any]]:
    """Solve and check. Return an outcome per instance; `{"skipped": reason}` if the solver refuses the problem."""
    cases = [Case(**case) for case in task["cases"]]
    packed = task.get("pickled")  # of a node that need not have the files
    problems = pickle.loads(base64.b64decode(packed)) if packed else [case.load() for case in cases]
    solver = find_solver(task["solver"], Request(**task["request"]), task["iterations"])
    if len(cases) == 1 and (reason := solver.refuses(problems[0])):
        return [_facts(problems[0]) | {"skipped": reason}]
    before = time.process_time(), _seconds_of_programs()
    if len(cases) == 1:
        answers: list[Answer | NoSolutionError] = [solver(problems[0], task["budget"], task["seed"])]
    else:
        assert isinstance(solver, OwnSolver)  # others take one instance
        answers = solver.solve(problems, task["together"], task["budget"], task["seed"])
    usage = _usage(before, len(cases) * (task["request"]["threads"] or 1))
    return [_outcome(*each, usage) for each in zip(cases, problems, answers, strict=True)]


def _usage(before: tuple[float, float], share: int) -> dict[str, Any]:
    """Return a share of the CPU time since then, with that of programs that a solver ran, and the memory used."""
    own, others = time.process_time() - before[0], _seconds_of_programs() - before[1]
    memory = {"peak_mib": peak_mib()} if others == 0 else {}
    return {"cpu_seconds": round((own + others) / share, 3)} | memory


def _seconds_of_programs() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _facts(problem: Problem) -> dict[str, Any]:
    return {"customers": problem.customers, "metric": str(problem.metric)}


def _outcome(case: Case, problem: Problem, answer: Answer | NoSolutionError, usage: dict[str, Any]) -> dict[str, Any]:
    if isinstance(answer, NoSolutionError):
        return _facts(problem) | {"error": str(answer)}
    report = check(problem, answer.solution)
    known = best_known(problem, case.name)
    facts = _facts(problem) | {
        "cost": report.cost, "feasible": report.feasible, "violations": list(map(str, report.violations[:5])),
        "seconds": round(answer.seconds, 3),
        **usage,  # CPU seconds much less than `seconds`: the core was shared
        "routes": len(answer.solution.routes), "unserved": len(report.unserved),
        "best_known": known.cost if known else None,
        "gap": round(known.gap(report.cost), 4) if known and report.feasible else None, "settings": answer.settings,
    }  # fmt: skip
    return facts | {"trace": thin(answer.trace)} if answer.trace else facts


def thin(trace: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return at most 50 points of a trace, rounded: the first, and those that hold at 48 moments.

    Half of these moments are evenly spaced in time, for integrals, half in its logarithm, for curves.
    """
    seconds = [point[0] for point in trace]
    first, last = max(seconds[0], seconds[-1] / 1000), seconds[-1]
    half = TRACE_POINTS // 2
    moments = [*np.linspace(0.0, last, half), *np.geomspace(first, last, half)] if last > 0 else []
    held = {bisect_right(seconds, moment * (1 + 1e-12)) - 1 for moment in moments}  # -1: before the first
    kept = range(len(trace)) if len(trace) <= TRACE_POINTS else sorted({0, len(trace) - 1} | held - {-1})
    return [(round(trace[i][0], 3), float(f"{trace[i][1]:.9g}")) for i in kept]


def main() -> None:
    """Read the task, bind this process to its cores unless it has a GPU, write the outcomes."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    task = json.load(sys.stdin)
    threading.Thread(target=_end_with_parent, args=[task["lifeline"]], daemon=True).start()
    if task["request"]["device"] != "cuda":  # kernels are compiled on several cores
        os.sched_setaffinity(0, task["cores"])
    outcomes = run_task(task)
    json.dump([plain(outcome) for outcome in outcomes], answers, allow_nan=False)
    answers.close()


def _end_with_parent(lifeline: int) -> None:
    """Wait until the other end of a pipe is closed, then kill this process and the programs that it runs."""
    os.read(lifeline, 1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
