"""From a problem to a checked result: the wiring."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from ndsvrp.check import Report, check
from ndsvrp.engine.base import Engine
from ndsvrp.errors import InstanceError, NdsError, NoSolutionError
from ndsvrp.io.environment import usable_cores
from ndsvrp.problem import Problem
from ndsvrp.ruin import RULES, Deconstruction
from ndsvrp.search import settings as presets
from ndsvrp.search.asa import Search
from ndsvrp.search.result import Progress, Result
from ndsvrp.search.settings import Settings
from ndsvrp.search.stopping import Budget
from ndsvrp.solution import Solution

SOLVERS = ("auto", "nds", "sisr")
PRESETS = tuple(presets.PRESETS)
DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class Plan:
    """What a search will use, every `auto` decided."""

    solver: str
    preset: str
    device: str
    threads: int
    settings: Settings

    def engine(self) -> Engine:
        """The engine on the device."""
        if self.device == "cuda":
            from ndsvrp.engine.cuda import CudaEngine

            return CudaEngine()
        from ndsvrp.engine.cpu import CpuEngine

        return CpuEngine(threads=self.threads)


def plan(
    problem: Problem,
    *,
    solver: str = "auto",
    ruin: str | Deconstruction | None = None,
    preset: str = "default",
    device: str = "auto",
    threads: int | None = None,
    chains: int | None = None,
    **settings: Any,
) -> Plan:
    """Decide what `solve` with the same arguments will use."""
    preset = _pick("preset", preset, PRESETS)
    solver = _pick("solver", solver, SOLVERS, auto="nds" if preset == "paper" else "sisr")
    device = _pick("device", device, DEVICES, auto="cuda" if solver == "nds" and _has_gpu() else "cpu")
    if solver == "sisr" and preset == "paper":
        raise NdsError("the preset 'paper' is a setting of the solver 'nds'")
    base = presets.sisr() if solver == "sisr" else presets.PRESETS[preset](problem)
    changes = dict(settings)
    if ruin is not None:
        changes["ruin"] = "function" if callable(ruin) else _rule(ruin)
    if chains is not None:
        changes["chains"] = chains
    try:
        chosen = replace(base, **changes)
    except TypeError as error:
        raise NdsError(f"settings: {error}") from None
    if threads is not None and threads < 1:
        raise NdsError(f"threads must be at least 1, got {threads}")
    cores = threads or usable_cores()
    return Plan(solver, preset, device, min(cores, chosen.chains), chosen)


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
    chosen = plan(
        problem, solver=solver, ruin=ruin, preset=preset, device=device, threads=threads, chains=chains, **settings
    )
    if not 0 <= seed < 2**63:
        raise NdsError(f"seed must be between 0 and 2^63 - 1, got {seed}")
    if init is not None:
        _refuse_bad_start(problem, init)
    search = Search(
        problem,
        chosen.engine(),
        chosen.settings,
        budget,
        seed,
        deconstruction=ruin if callable(ruin) else None,
        init=init,
        start_rounds=0 if chosen.solver == "sisr" else 100,
        callback=callback,
    )
    try:
        stopped = search.run()
    except KeyboardInterrupt:
        stopped = "interrupted"
        search.note_best()
    solution = search.best()
    report = check(problem, solution)
    _refuse_bad_end(problem, report)
    limits = {"time": time, "iterations": iterations, "patience": patience, "target": target}
    used = {"solver": chosen.solver, "preset": preset, "device": chosen.device, "threads": chosen.threads}
    return Result(
        problem,
        solution,
        report,
        seed,
        stopped,
        budget.elapsed(),
        search.iteration,
        search.reconstructions,
        settings={**used, "limits": limits, **asdict(chosen.settings)},
        trace=tuple(search.trace),
    )


def _has_gpu() -> bool:
    from ndsvrp.engine.device import available

    return available()


def _rule(name: str) -> str:
    if name == "policy":
        raise NdsError(f"ruin 'policy' needs a learned model, and none is installed: use one of {', '.join(RULES)}")
    return _pick("ruin", name, RULES)


def _refuse_bad_start(problem: Problem, init: Solution) -> None:
    report = check(problem, init)
    if not report.feasible:
        raise InstanceError(f"the initial solution is infeasible: {report.violations[0]}", field="init")


def _refuse_bad_end(problem: Problem, report: Report) -> None:
    broken = [violation for violation in report.violations if violation.kind != "unserved"]
    if broken:  # not a bad instance: a bug of ours
        raise RuntimeError(f"the search returned an infeasible solution, please report this: {broken[0]}")
    missing = [c for c in report.unserved if problem.required[c]]
    if missing:
        raise NoSolutionError(
            "no feasible solution found: "
            + (f"{problem.vehicles} vehicles leave " if problem.vehicles is not None else "")
            + f"{len(missing)} required customers unserved",
            missing,
        )


def _pick(what: str, name: str, known: tuple[str, ...], auto: str | None = None) -> str:
    if name not in known:
        raise NdsError(f"unknown {what} '{name}': one of {', '.join(known)}")
    return auto if name == "auto" and auto is not None else name
