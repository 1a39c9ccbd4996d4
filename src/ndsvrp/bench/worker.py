"""One solver on one instance, in a process of its own: a task as JSON comes in, what came of it goes out.

Run as `python -m ndsvrp.bench.worker`. Whatever a solver prints goes to the error stream.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from ndsvrp.bench.best_known import best_known
from ndsvrp.bench.instances import Case
from ndsvrp.bench.solvers import find_solver
from ndsvrp.check import check
from ndsvrp.io.result import plain


def run_task(task: dict[str, Any]) -> dict[str, Any]:
    """Solve and judge; `{"skipped": reason}` where the solver does not take the problem."""
    case = Case(**task["case"])
    problem, solver = case.load(), find_solver(task["solver"])
    facts: dict[str, Any] = {"customers": problem.customers, "metric": str(problem.metric)}
    if reason := solver.refuses(problem):
        return facts | {"skipped": reason}
    before = time.process_time()
    answer = solver(problem, task["budget"], task["seed"])
    cpu_seconds = time.process_time() - before
    report = check(problem, answer.solution)
    known = best_known(problem, case.name)
    return facts | {
        "cost": report.cost,
        "feasible": report.feasible,
        "violations": [str(violation) for violation in report.violations[:5]],
        "seconds": round(answer.seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3),  # well below `seconds`: something else was using the core
        "routes": len(answer.solution.routes),
        "unserved": len(report.unserved),
        "best_known": known.cost if known else None,
        "gap": round(known.gap(report.cost), 4) if known and report.feasible else None,
        "settings": answer.settings,
    }


def main() -> None:
    """Read the task, keep to the given core, write the outcome."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    task = json.load(sys.stdin)
    os.sched_setaffinity(0, {task["core"]})
    outcome = run_task(task)
    json.dump(plain(outcome), answers, allow_nan=False)
    answers.close()


if __name__ == "__main__":
    main()
