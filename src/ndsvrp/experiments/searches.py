"""Searches of an experiment: our own in this process, with models loaded once; baselines in processes of their own."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ndsvrp.bench.instances import Case
from ndsvrp.bench.rows import Row
from ndsvrp.bench.run import run
from ndsvrp.bench.solvers import DEFAULT, OwnSolver
from ndsvrp.bench.worker import thin
from ndsvrp.best_known import best_known
from ndsvrp.errors import NoSolutionError
from ndsvrp.experiments.context import SEED, Context
from ndsvrp.experiments.ruins import ShuffledPolicy, StringSets
from ndsvrp.experiments.scales import PRESET
from ndsvrp.io.environment import peak_mib
from ndsvrp.problem import Problem
from ndsvrp.ruin import Ruin
from ndsvrp.search.code_version import code_version
from ndsvrp.search.planning import Request
from ndsvrp.search.result import Result
from ndsvrp.search.solver import Solver
from ndsvrp.text import amount

NAMES = {"hgs": "HGS", "pyvrp": "PyVRP", "sisr": "SISRs"}  #: of baselines, in tables


@dataclass(frozen=True)
class Series:
    """A line of a table: one way to search with the paper's settings."""

    name: str
    model: str | Path
    ruin: Literal["policy", "shuffled", "strings"] = "policy"  #: `ruins.py`
    chains: int | None = None  #: None: those of the paper
    settings: Mapping[str, Any] = field(default_factory=dict)

    def request(self, context: Context) -> Request:
        """Return what is asked of the solver, without the model and the ruin."""
        settings = {**context.scale.settings, **self.settings}
        if self.chains is not None:
            settings["chains"] = self.chains
        return replace(
            DEFAULT, solver="nds", preset=PRESET, device=context.device, threads=context.threads, settings=settings
        )

    def ruins(self, context: Context) -> Ruin:
        """Return what chooses the customers to remove."""
        if self.ruin == "strings":
            return StringSets()
        model = context.load(self.model)
        return ShuffledPolicy(model) if self.ruin == "shuffled" else model

    def label(self, context: Context, together: int) -> str:
        """Return the name of the solver in rows; it tells models and settings apart."""
        model = None if self.ruin == "strings" else str(self.model)
        request = replace(self.request(context), model=model, threads=DEFAULT.threads)
        ruin = f"-{self.ruin}" if self.ruin != "policy" else ""
        return OwnSolver(request).label(together) + ruin


@dataclass(frozen=True)
class Limit:
    """The end of a search: seconds or iterations."""

    seconds: float | None = None
    iterations: int | None = None


def search(
    context: Context, cases: Sequence[Case], series: Series, limits: Sequence[Limit], together: int = 1
) -> list[Row]:
    """Return a row per instance and limit; those that are there are not run again."""
    label, rows = series.label(context, together), context.rows
    fixed: Row = {
        "series": series.name, "solver": label, "solver_version": code_version(), "seed": SEED,
        "threads": context.own_threads,
    }  # fmt: skip
    found: list[Row] = []
    solver: Solver | None = None
    try:
        for limit in limits:
            for begin in range(0, len(cases), together):
                part = cases[begin : begin + together]
                asked = [fixed | _identity(case, limit) for case in part]
                present = [rows.find(row) for row in asked]
                if all(present):
                    found += [row for row in present if row is not None]
                    continue
                if solver is None:
                    solver = Solver(replace(series.request(context), ruin=series.ruins(context)))
                added = [rows.add(row) for row in _solve(solver, part, asked, limit, together)]
                for row in added:
                    context.tell(describe(row))
                found += added
    finally:
        if solver is not None:
            solver.close()
    return found


def _identity(case: Case, limit: Limit) -> Row:
    return {
        "set": case.set, "instance": case.name, "data": case.digest(), "budget": limit.seconds,
        "iterations": limit.iterations,
    }  # fmt: skip


def _solve(solver: Solver, cases: Sequence[Case], asked: Sequence[Row], limit: Limit, together: int) -> list[Row]:
    problems, began = [case.load() for case in cases], time.process_time()
    outcomes = solver.solve_set(
        problems, together=together, seed=SEED, time=limit.seconds, iterations=limit.iterations
    )  # fmt: skip
    cpu_seconds = round((time.process_time() - began) / len(cases), 3)
    return [
        row | _outcome(case, problem, outcome, cpu_seconds)
        for row, case, problem, outcome in zip(asked, cases, problems, outcomes, strict=True)
    ]


def _outcome(case: Case, problem: Problem, outcome: Result | NoSolutionError, cpu_seconds: float) -> Row:
    facts: Row = {"customers": problem.customers, "metric": str(problem.metric)}
    if isinstance(outcome, NoSolutionError):
        if outcome.args[0].startswith("interrupted"):
            raise KeyboardInterrupt
        return facts | {"error": str(outcome)}
    if outcome.stopped == "interrupted":
        raise KeyboardInterrupt
    known = best_known(problem, case.name)
    return facts | {
        "cost": outcome.cost, "feasible": outcome.report.feasible, "seconds": round(outcome.seconds, 3),
        "cpu_seconds": cpu_seconds, "peak_mib": peak_mib(), "routes": len(outcome.solution.routes),
        "unserved": len(outcome.report.unserved), "best_known": known.cost if known else None,
        "gap": round(known.gap(outcome.cost), 4) if known else None, "made_iterations": outcome.iterations,
        "reconstructions": outcome.reconstructions, "settings": outcome.settings,
        "trace": thin([(point.seconds, point.cost) for point in outcome.trace]),
    }  # fmt: skip


def baselines(
    context: Context, sets: Sequence[Sequence[Case]], solvers: Sequence[str], seconds: Sequence[float]
) -> list[Row]:
    """Run those of the solvers that are wanted, each run on one core in its own process; return rows with series."""
    solvers = [solver for solver in solvers if solver in context.baselines]
    rows: list[Row] = []
    for count in dict.fromkeys(map(len, sets)) if solvers else ():
        paths = [cases[0].path for cases in sets if len(cases) == count]
        jobs = min(context.cores, len(paths) * len(solvers) * len(seconds) * count)
        rows += run(
            paths, solvers, seconds, f"0-{count - 1}", [SEED], context.rows.file, jobs,
            lambda done, total, row: context.tell(describe(row)),
        )  # fmt: skip
    context.rows.reload()
    return [row | {"series": NAMES[row["solver"]]} for row in rows]


def reference_of(context: Context, solvers: Sequence[str], own: str) -> str:
    """Return the series that others are compared with: the first baseline that is run, or one of our own."""
    return next((NAMES[solver] for solver in solvers if solver in context.baselines), own)


def describe(row: Row) -> str:
    """Return a line about a run."""
    limit = f"{row['budget']:g} s" if row.get("budget") else amount(row["iterations"], "iteration")
    name = row.get("series") or NAMES.get(row["solver"], row["solver"])
    outcome = f"{row['cost']:.4f}" if "cost" in row else row.get("error") or row.get("skipped", "")
    return f"{row['set']} {row['instance']}, {name}, {limit}: {outcome}"
