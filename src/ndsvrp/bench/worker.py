"""One solver on one instance, or on several as a batch, in a process of its own: a task as JSON comes in, what came of
it goes out.

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
from ndsvrp.bench.solvers import Answer, Own, find_solver
from ndsvrp.check import check
from ndsvrp.errors import NoSolutionError
from ndsvrp.io.result import plain
from ndsvrp.problem import Problem


def run_task(task: dict[str, Any]) -> list[dict[str, Any]]:
    """Solve and judge: an outcome per instance, `{"skipped": reason}` where the solver does not take the problem."""
    cases = [Case(**case) for case in task["cases"]]
    problems, solver = [case.load() for case in cases], find_solver(task["solver"], task["how"])
    if len(cases) == 1 and (reason := solver.refuses(problems[0])):
        return [_facts(problems[0]) | {"skipped": reason}]
    before = time.process_time()
    if len(cases) == 1:
        answers: list[Answer | NoSolutionError] = [solver(problems[0], task["budget"], task["seed"])]
    else:
        assert isinstance(solver, Own)  # nobody else takes several
        answers = solver.solve(problems, task["together"], task["budget"], task["seed"])
    cpu_seconds = (time.process_time() - before) / len(cases)
    return [_outcome(*what, cpu_seconds) for what in zip(cases, problems, answers, strict=True)]


def _facts(problem: Problem) -> dict[str, Any]:
    return {"customers": problem.customers, "metric": str(problem.metric)}


def _outcome(case: Case, problem: Problem, answer: Answer | NoSolutionError, cpu_seconds: float) -> dict[str, Any]:
    if isinstance(answer, NoSolutionError):
        return _facts(problem) | {"error": str(answer)}
    report = check(problem, answer.solution)
    known = best_known(problem, case.name)
    return _facts(problem) | {
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
    outcomes = run_task(task)
    json.dump([plain(outcome) for outcome in outcomes], answers, allow_nan=False)
    answers.close()


if __name__ == "__main__":
    main()
