"""From a problem to a checked result: the wiring."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ndsvrp import models
from ndsvrp.check import Report, check
from ndsvrp.engine.base import Engine
from ndsvrp.errors import InstanceError, NdsError, NdsWarning, NoSolutionError
from ndsvrp.io.environment import usable_cores
from ndsvrp.problem import Problem
from ndsvrp.ruin import RULES, Deconstruction
from ndsvrp.search import settings as presets
from ndsvrp.search.asa import Search
from ndsvrp.search.result import Progress, Result
from ndsvrp.search.settings import Settings
from ndsvrp.search.stopping import Budget
from ndsvrp.solution import Solution
from ndsvrp.variants import variant_of

SOLVERS = ("auto", "nds", "sisr")
PRESETS = tuple(presets.PRESETS)
DEVICES = ("auto", "cpu", "cuda")
RUINS = (*RULES, "policy")


@dataclass(frozen=True)
class Plan:
    """What a search will use, every `auto` decided."""

    solver: str
    preset: str
    device: str
    threads: int
    settings: Settings
    model: str | Path | Deconstruction | None = None  #: with the ruin 'policy': by name or path, or loaded

    def load(self) -> Deconstruction | None:
        """The model, loaded; None if rules take solutions apart."""
        if isinstance(self.model, str | Path):
            return models.load(self.model, self.device)
        return self.model

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
    model: str | Path | Deconstruction | None = None,
    preset: str = "default",
    device: str = "auto",
    threads: int | None = None,
    chains: int | None = None,
    **settings: Any,
) -> Plan:
    """Decide what `solve` with the same arguments will use."""
    if model is not None and ruin is None:
        ruin = "policy"
    is_learned = isinstance(ruin, str) and ruin == "policy"
    preset = _pick("preset", preset, PRESETS)
    solver = _pick("solver", solver, SOLVERS, auto="nds" if preset == "paper" or is_learned else "sisr")
    device = _pick("device", device, DEVICES, auto="cuda" if solver == "nds" and _has_gpu() else "cpu")
    if solver == "sisr" and preset == "paper":
        raise NdsError("the preset 'paper' is a setting of the solver 'nds'")
    if solver == "sisr" and is_learned:
        raise NdsError("the ruin 'policy' is for the solver 'nds', not 'sisr'")
    if model is not None and not is_learned:
        raise NdsError(f"a model is for the ruin 'policy', not {_called(ruin)}")
    if is_learned and model is None:
        model = _shipped_model(problem)
    base = presets.sisr() if solver == "sisr" else presets.PRESETS[preset](problem)
    changes = dict(settings)
    if ruin is not None:
        changes["ruin"] = "function" if callable(ruin) else _pick("ruin", ruin, RUINS)
    if chains is not None:
        changes["chains"] = chains
    try:
        chosen = replace(base, **changes)
    except TypeError as error:
        raise NdsError(f"settings: {error}") from None
    if threads is not None and threads < 1:
        raise NdsError(f"threads must be at least 1, got {threads}")
    cores = threads or usable_cores()
    return Plan(solver, preset, device, min(cores, chosen.chains), chosen, model)


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
    model: str | Path | Deconstruction | None = None,
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
    function of one's own; 'policy' goes by `model`: the name of one shipped, a path, or one loaded before by
    `ndsvrp.models.load`; without it, the one shipped for such problems is chosen. Loading it is not part of `time`.
    Further keywords are fields of `Settings`. The result depends on problem, seed, chains and settings, never on
    `threads`. Ctrl-C ends the search early and returns the best found so far.
    Raises NoSolutionError if a limited fleet could not be made to serve everybody.
    """
    chosen = plan(
        problem, solver=solver, ruin=ruin, model=model, preset=preset, device=device, threads=threads, chains=chains,
        **settings,
    )  # fmt: skip
    if not 0 <= seed < 2**63:
        raise NdsError(f"seed must be between 0 and 2^63 - 1, got {seed}")
    if init is not None:
        _refuse_bad_start(problem, init)
    engine, learned = chosen.engine(), chosen.load()
    if isinstance(learned, models.Model) and not learned.knows(problem):
        _warn_of_other_features(problem, learned)
    budget = Budget(time, iterations, patience, target)  # the clock runs from here
    search = Search(
        problem,
        engine,
        chosen.settings,
        budget,
        seed,
        deconstruction=ruin if callable(ruin) else learned,
        init=init,
        start_rounds=0 if chosen.solver == "sisr" else 100,
        threads=chosen.threads,
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
    used: dict[str, Any] = {"solver": chosen.solver, "preset": preset, "device": chosen.device}
    used["threads"] = chosen.threads
    if learned is not None:
        used["model"] = learned.record() if isinstance(learned, models.Model) else {"name": _called(learned)}
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


def _shipped_model(problem: Problem) -> str:
    name = models.choose(problem)
    if name is None:
        variant = variant_of(problem).name.upper()
        raise NdsError(
            f"ruin 'policy': no model for {variant} is shipped with this version; give one (--model NAME|PATH)"
        )
    return name


def _warn_of_other_features(problem: Problem, model: models.Model) -> None:
    trained = ", ".join(name.upper() for name in model.card.problems)
    message = f"the model {model.name} was trained on {trained}, and this is a {variant_of(problem).name.upper()}"
    warnings.warn(message, NdsWarning, stacklevel=3)


def _called(what: str | Deconstruction | None) -> str:
    """A ruin or a model in words."""
    return f"'{what}'" if isinstance(what, str) else getattr(what, "__name__", type(what).__name__)


def _has_gpu() -> bool:
    from ndsvrp.engine.device import available

    return available()


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
