"""From a problem to a checked result: the wiring."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from ndsvrp.check import check
from ndsvrp.engine.base import Engine
from ndsvrp.errors import EngineError, InstanceError, NdsError, NoSolutionError
from ndsvrp.problem import Problem
from ndsvrp.ruin import RULES, Deconstruction
from ndsvrp.search import settings as presets
from ndsvrp.search.asa import Search
from ndsvrp.search.result import Progress, Result
from ndsvrp.search.settings import Settings
from ndsvrp.search.stopping import Budget
from ndsvrp.solution import Solution

SOLVERS = ("auto", "nds", "sisr")
PRESETS = ("default", "paper")
DEVICES = ("auto", "cpu", "cuda")


def solve(
    problem: Problem,
    *,
    time: float | None = None,
    iterations: int | None = None,
    patience: int | None = None,
    target: float | None = None,
    seed: int = 0,
    solver: str = "auto",
    ruin: str | Deconstruction | None = None,
    preset: str = "default",
    device: str = "auto",
    threads: int | None = None,
    chains: int | None = None,
    init: Solution | None = None,
    callback: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> Result:
    """Solve a problem; the result has been through `check`.

    Give at least one of `time` (seconds, start solutions included) and `iterations`. `ruin` names a rule or is a
    function of one's own. Further keywords are fields of `Settings`. The result depends on problem, seed, chains and
    settings, never on `threads`. Ctrl-C ends the search early and returns the best found so far.
    Raises NoSolutionError if a limited fleet could not be made to serve everybody.
    """
    budget = Budget(time, iterations, patience, target)
    solver = _pick("solver", solver, SOLVERS, auto="sisr")
    device = _pick("device", device, DEVICES, auto="cpu")
    _pick("preset", preset, PRESETS)
    rule = _rule(ruin)
    chosen = _settings(problem, solver, preset, rule, chains, settings)
    if init is not None:
        _refuse_bad_start(problem, init)
    threads = threads or len(os.sched_getaffinity(0))
    search = Search(
        problem, _engine(device, min(threads, chosen.chains)), chosen, budget, seed,
        deconstruction=ruin if callable(ruin) else None,
        init=init, start_rounds=0 if solver == "sisr" else 100, callback=callback,
    )  # fmt: skip
    try:
        stopped = search.run()
    except KeyboardInterrupt:
        stopped = "interrupted"
    solution = search.best()
    report = check(problem, solution)
    broken = [violation for violation in report.violations if violation.kind not in ("unserved", "fleet")]
    if broken:  # not a bad instance: a bug of ours
        raise NdsError(f"the search returned an infeasible solution, please report this: {broken[0]}")
    if not report.feasible:
        missing = [c for c in report.unserved if problem.required[c]]
        raise NoSolutionError(
            f"no feasible solution found: {problem.vehicles} vehicles leave {len(missing)} required customers unserved",
            missing,
        )
    return Result(
        problem, solution, report, seed, stopped, budget.elapsed(), search.iteration, search.reconstructions,
        settings={"solver": solver, "preset": preset, "device": device, "threads": search.engine.threads,  # type: ignore[attr-defined]
                  "time": time, "limit_iterations": iterations, "patience": patience, "target": target, **asdict(chosen)},
        trace=tuple(search.trace),
    )  # fmt: skip


def _settings(
    problem: Problem, solver: str, preset: str, rule: str | None, chains: int | None, changes: dict[str, Any]
) -> Settings:
    if solver == "sisr":
        if preset == "paper":
            raise NdsError("the preset 'paper' is a setting of the solver 'nds'")
        base = presets.sisr(1)
    else:
        base = presets.paper(problem) if preset == "paper" else Settings()
    if rule is not None:
        changes = {"ruin": rule, **changes}
    if chains is not None:
        changes = {"chains": chains, **changes}
    try:
        return replace(base, **changes)
    except (TypeError, ValueError) as error:
        raise NdsError(f"settings: {error}") from None


def _rule(ruin: str | Deconstruction | None) -> str | None:
    if ruin is None or not isinstance(ruin, str):
        return None if ruin is None else "function"
    if ruin == "policy":
        raise NdsError(f"ruin 'policy' needs a learned model, and none is installed: use one of {', '.join(RULES)}")
    return _pick("ruin", ruin, RULES)


def _engine(device: str, threads: int) -> Engine:
    if device == "cuda":
        raise EngineError("device 'cuda': this version has no GPU engine; use 'cpu'")
    from ndsvrp.engine.cpu import CpuEngine

    return CpuEngine(threads=threads)


def _refuse_bad_start(problem: Problem, init: Solution) -> None:
    report = check(problem, init)
    if not report.feasible:
        raise InstanceError(f"the initial solution is infeasible: {report.violations[0]}", field="init")


def _pick(what: str, name: str, known: tuple[str, ...], auto: str | None = None) -> str:
    if name not in known:
        raise NdsError(f"unknown {what} '{name}': one of {', '.join(known)}")
    return auto if name == "auto" and auto is not None else name
