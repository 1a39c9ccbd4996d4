"""From a problem to a checked result: the wiring."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ndsvrp import models
from ndsvrp.check import Report, check
from ndsvrp.engine.base import Engine
from ndsvrp.errors import InstanceError, NdsError, NdsWarning, NoSolutionError
from ndsvrp.io.environment import usable_cores
from ndsvrp.problem import Problem
from ndsvrp.ruin import RULES, Ruin, RuinFunction, as_ruin
from ndsvrp.search import settings as presets
from ndsvrp.search.asa import Search
from ndsvrp.search.result import Progress, Result, TracePoint
from ndsvrp.search.settings import Settings
from ndsvrp.search.stopping import Budget
from ndsvrp.solution import Solution
from ndsvrp.variants import variant_of

SOLVERS = ("auto", "nds", "sisr")
PRESETS = tuple(presets.PRESETS)
DEVICES = ("auto", "cpu", "cuda")
RUINS = (*RULES, "policy")
GPU_CHAINS = 128  # a block each: about as many as large cards have multiprocessors
TOGETHER = 16  # problems searched side by side unless it is said how many
BY_POLICY = ("cvrp", "vrptw", "pcvrp"), range(100, 1001)  # where it is chosen by itself: what it was trained on


@dataclass(frozen=True)
class Plan:
    """What a search will use, every `auto` decided."""

    solver: str
    preset: str
    device: str
    threads: int
    settings: Settings
    model: str | Path | Ruin | RuinFunction | None = None  #: with the ruin 'policy': by name or path, or loaded

    def load(self) -> Ruin | RuinFunction | None:
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
    ruin: str | Ruin | RuinFunction | None = None,
    model: str | Path | Ruin | RuinFunction | None = None,
    preset: str = "default",
    device: str = "auto",
    threads: int | None = None,
    chains: int | None = None,
    together: int = 1,
    **settings: Any,
) -> Plan:
    """Decide what `solve` with the same arguments will use, or `solve_set` for so many problems together."""
    if model is not None and ruin is None:
        ruin = "policy"
    is_left_open = (solver, ruin, preset, threads, settings) == ("auto", None, "default", None, {}) and device != "cpu"
    if is_left_open and _has_gpu() and _suits_policy(problem):
        ruin = "policy"  # on a GPU it finds more in seconds than SISRs in a minute: docs/findings.md
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
    if device == "cuda" and solver == "nds" and preset == "default":
        changes["chains"] = GPU_CHAINS
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
    return Plan(solver, preset, device, min(cores, together * chosen.chains), chosen, model)


def solve(
    problem: Problem,
    *,
    time: float | None = None,
    iterations: int | None = None,
    patience: int | None = None,
    target: float | None = None,
    seed: int = 0,
    solver: str = "auto",
    ruin: str | Ruin | RuinFunction | None = None,
    model: str | Path | Ruin | RuinFunction | None = None,
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
    `ndsvrp.models.load`; without it, the one shipped for such problems is chosen. Loading it is not part of `time`,
    nor is making a GPU ready, but for a `ruin` of one's own, which is never asked for nothing unless it is `on_device`.
    Further keywords are fields of `Settings`. The result depends on problem, seed, chains and settings, never on
    `threads`. Ctrl-C ends the search early and returns the best found so far.
    Raises NoSolutionError if a limited fleet could not be made to serve everybody.
    """
    chosen = plan(
        problem, solver=solver, ruin=ruin, model=model, preset=preset, device=device, threads=threads, chains=chains,
        **settings,
    )  # fmt: skip
    if init is not None:
        _refuse_bad_start(problem, init)
    engine = chosen.engine()  # a device that is not there is refused before a model is sent to it
    chosen = replace(chosen, model=ruin if callable(ruin) else chosen.load())
    limits = {"time": time, "iterations": iterations, "patience": patience, "target": target}
    (outcome,), _ = _search([problem], engine, chosen, limits, seed, callback, init)
    if isinstance(outcome, NoSolutionError):
        raise outcome
    return outcome


def solve_set(
    problems: Sequence[Problem],
    *,
    together: int | None = None,
    time: float | None = None,
    iterations: int | None = None,
    patience: int | None = None,
    target: float | None = None,
    seed: int = 0,
    ruin: str | Ruin | RuinFunction | None = None,
    callback: Callable[[Progress], None] | None = None,
    **how: Any,
) -> list[Result | NoSolutionError]:
    """Solve several problems, up to `together` of them side by side (16 by default): problems x chains are a batch
    that fills a GPU, or all cores, where one problem would not.

    `time` is for each problem: those searched together get so many times the seconds, and what their results say of
    seconds and solutions is an equal share. `patience` and `target` go by their mean cost. The other arguments are
    those of `solve`, but for `init`. With a rule every problem gets the solution that `solve` finds for the same seed
    and iterations; a learned policy draws other random numbers in a batch.

    Only problems alike are searched together: of one size and variant, with or without a limit on vehicles. A function
    of one's own that is not `batched` (see `ndsvrp.Ruin`) is shown one problem after the other, and so are
    problems with a matrix to any function and policy.

    A problem whose fleet could not be made to serve everybody has a NoSolutionError in the place of its result; so have
    those that Ctrl-C came before.
    """
    if together is not None and together < 1:
        raise NdsError(f"together must be at least 1, got {together}")
    limits = {"time": time, "iterations": iterations, "patience": patience, "target": target}
    alike: dict[Any, list[int]] = {}
    for i, problem in enumerate(problems):
        kind = problem.customers, variant_of(problem), problem.vehicles is None, problem.distance is None
        alike.setdefault(kind, []).append(i)
    outcomes: list[Result | NoSolutionError] = [NoSolutionError("interrupted before its search", [])] * len(problems)
    loaded: dict[Any, Any] = {}
    ready = []
    for members in alike.values():  # whatever is refused is refused before anything is searched
        first, most = problems[members[0]], min(together or TOGETHER, len(members))
        chosen = plan(first, ruin=ruin, together=most, **how)
        if chosen.model not in loaded:
            loaded[chosen.model] = chosen.load()
        model = ruin if callable(ruin) else loaded[chosen.model]
        if model is not None and not (first.distance is None and as_ruin(model).batched):
            most = 1
        ready.append((members, most, replace(chosen, model=model)))
    try:
        for members, most, chosen in ready:
            engine = chosen.engine()
            for begin in range(0, len(members), most):
                part = members[begin : begin + most]
                found, stopped = _search([problems[i] for i in part], engine, chosen, limits, seed, callback)
                for i, outcome in zip(part, found, strict=True):
                    outcomes[i] = outcome
                if stopped == "interrupted":
                    return outcomes
    except KeyboardInterrupt:
        pass  # what was found before is kept
    return outcomes


def _search(
    problems: Sequence[Problem],
    engine: Engine,
    chosen: Plan,
    limits: dict[str, Any],
    seed: int,
    callback: Callable[[Progress], None] | None,
    init: Solution | None = None,
) -> tuple[list[Result | NoSolutionError], str]:
    """Search problems side by side, with a plan whose model is loaded; what was found, judged, and why it ended."""
    if not 0 <= seed < 2**63:
        raise NdsError(f"seed must be between 0 and 2^63 - 1, got {seed}")
    if isinstance(chosen.model, models.Model) and not chosen.model.knows(problems[0]):
        _warn_of_other_features(problems[0], chosen.model)
    budget = Budget(limits["time"], limits["iterations"], limits["patience"], limits["target"])
    if budget.seconds is not None:
        budget.seconds *= len(problems)
    search = Search(
        problems,
        engine,
        chosen.settings,
        budget,
        seed,
        ruin=None if chosen.model is None else as_ruin(chosen.model),  # type: ignore[arg-type]
        init=init,
        start_rounds=0 if chosen.solver == "sisr" else 100,
        threads=chosen.threads,
        callback=callback,
    )
    try:
        if chosen.device == "cuda" and (search.ruin is None or search.ruin.on_device):
            search.rehearse()
        budget.restart()  # the clock runs from here
        stopped = search.run()
    except KeyboardInterrupt:
        stopped = "interrupted"
        search.note_best()
    found, seconds = search.best(), search.elapsed()
    outcomes = [
        _judged(problem, solution, search, chosen, stopped, seconds, tuple(trace), limits)
        for problem, solution, trace in zip(problems, found, search.traces, strict=True)
    ]
    return outcomes, stopped


def _judged(
    problem: Problem,
    solution: Solution,
    search: Search,
    chosen: Plan,
    stopped: str,
    seconds: float,
    trace: tuple[TracePoint, ...],
    limits: dict[str, Any],
) -> Result | NoSolutionError:
    report = check(problem, solution)
    if (failure := _no_solution(problem, report)) is not None:
        return failure
    used: dict[str, Any] = {"solver": chosen.solver, "preset": chosen.preset, "device": chosen.device}
    used["threads"] = chosen.threads
    if len(search.problems) > 1:
        used["together"] = len(search.problems)
    learned = chosen.model if chosen.settings.ruin == "policy" else None
    if learned is not None:
        used["model"] = learned.record() if isinstance(learned, models.Model) else {"name": _called(learned)}
    return Result(
        problem,
        solution,
        report,
        search.seed,
        stopped,
        seconds,
        search.iteration,
        search.reconstructions // len(search.problems),
        settings={**used, "limits": limits, **asdict(chosen.settings)},
        trace=trace,
    )


def _shipped_model(problem: Problem) -> str:
    name = models.choose(problem)
    if name is None:
        variant = variant_of(problem).title
        raise NdsError(
            f"ruin 'policy': no model for {variant} is shipped with this version; give one (--model NAME|PATH)"
        )
    return name


def _warn_of_other_features(problem: Problem, model: models.Model) -> None:
    trained = ", ".join(name.upper() for name in model.card.problems)
    message = f"the model {model.name} was trained on {trained}, and this is a {variant_of(problem).title}"
    warnings.warn(message, NdsWarning, stacklevel=4)


def _called(what: str | Path | Ruin | RuinFunction | None) -> str:
    """A ruin or a model in words."""
    return f"'{what}'" if isinstance(what, str) else getattr(what, "__name__", type(what).__name__)


def _suits_policy(problem: Problem) -> bool:
    """Whether it is like those that a shipped model was trained on; docs/models.md says the same."""
    variants, sizes = BY_POLICY
    plain = problem.distance is None and problem.vehicles is None and problem.customers in sizes
    return plain and variant_of(problem).name in variants and models.choose(problem) is not None


def _has_gpu() -> bool:
    from ndsvrp.engine.device import available

    return available()


def _refuse_bad_start(problem: Problem, init: Solution) -> None:
    report = check(problem, init)
    if not report.feasible:
        raise InstanceError(f"the initial solution is infeasible: {report.violations[0]}", field="init")


def _no_solution(problem: Problem, report: Report) -> NoSolutionError | None:
    """What is wrong with the end of a search, if anything."""
    broken = [violation for violation in report.violations if violation.kind != "unserved"]
    if broken:  # not a bad instance: a bug of ours
        raise RuntimeError(f"the search returned an infeasible solution, please report this: {broken[0]}")
    missing = [c for c in report.unserved if problem.required[c]]
    if not missing:
        return None
    return NoSolutionError(
        "no feasible solution found: "
        + (f"{problem.vehicles} vehicles leave " if problem.vehicles is not None else "")
        + f"{len(missing)} required customers unserved",
        missing,
    )


def _pick(what: str, name: str, known: tuple[str, ...], auto: str | None = None) -> str:
    if name not in known:
        raise NdsError(f"unknown {what} '{name}': one of {', '.join(known)}")
    return auto if name == "auto" and auto is not None else name
