"""From a request to a plan: every `auto` is decided here, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ndsvrp import models
from ndsvrp.errors import NdsError
from ndsvrp.io.environment import usable_cores
from ndsvrp.problem import Problem
from ndsvrp.records import documented, require_whole
from ndsvrp.ruin import RULES, Ruin, RuinFunction
from ndsvrp.scope import keyword_hint
from ndsvrp.search import presets
from ndsvrp.search.fleet import may_ignore_fleet
from ndsvrp.search.settings import Settings
from ndsvrp.variants import variant_of

SOLVERS = ("auto", "hybrid", "nds", "sisr")
PRESETS = tuple(presets.PRESETS)
DEVICES = ("auto", "cpu", "cuda")
RUINS = (*RULES, "policy")
CALL = ("time", "iterations", "patience", "target", "seed", "init", "callback", "stop")  # arguments of `solve` itself
BY_POLICY = ("cvrp", "vrptw", "pcvrp"), range(100, 2001)  # variants and sizes where `auto` chooses the policy


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a user may ask of a search; None and `auto` leave the choice to `plan`."""

    solver: str = documented(
        "auto",
        f"One of {', '.join(SOLVERS)}. auto: hybrid (SISRs with exchanges of tails), or nds for the ruin policy and "
        "for the presets of the paper; on a GPU nds with the policy, for problems that suit it (docs/models.md).",
    )
    ruin: str | Ruin | RuinFunction | None = documented(
        None,
        f"How customers are chosen for removal: one of {', '.join(RUINS)}; by default policy if a model is given, and "
        "on a GPU for problems it was trained on; else string, or related for the presets of the paper.",
    )
    model: str | Path | Ruin | RuinFunction | None = documented(
        None,
        "Model of the ruin policy: a name listed by 'nds models', a file, or a training run; by default the model "
        "shipped for such problems. Loading it is not part of the time.",
    )
    preset: str = documented(
        "default",
        f"One of {', '.join(PRESETS)}. paper: the paper's test configuration, for the solver nds; paper-text and "
        "paper-code follow its text or the authors' code where the two differ (docs/paper.md).",
    )
    device: str = documented(
        "auto",
        f"One of {', '.join(DEVICES)}. auto: cuda where there is a GPU, else cpu; cpu for the solver sisr, and for "
        "hybrid if threads are given.",
    )
    threads: int | None = documented(
        None,
        "Cores to use, all by default; at most one per chain. With a limit on iterations the result does not depend on "
        "it; hybrid with a time limit alone has a chain for each.",
    )
    chains: int | None = None  #: the setting of that name
    settings: Mapping[str, Any] = field(default_factory=dict)  #: other fields of `Settings`, by name

    @classmethod
    def of(cls, **options: Any) -> Request:
        """Return a request; options that are no field of it are settings."""
        names = [f.name for f in fields(cls) if f.name != "settings"]
        known = dict.fromkeys((*names, *(f.name for f in fields(Settings))))
        for name in options:
            if name in CALL:
                raise NdsError(f"'{name}' is an argument of solve, not of this call")
            if name not in known:
                hint = keyword_hint(name, {**known, **dict.fromkeys(CALL)})
                of_solve = f"arguments of solve: {', '.join(CALL)}"
                raise NdsError(f"unknown option '{name}' ({hint}known: {', '.join(known)}; {of_solve})")
        settings = {name: value for name, value in options.items() if name not in names}
        return cls(**{name: value for name, value in options.items() if name in names}, settings=settings)


@dataclass(frozen=True)
class Plan:
    """What a search will use, every `auto` decided: plain data."""

    solver: str
    preset: str
    device: str
    threads: int
    settings: Settings
    model: str | Path | None = None  #: of the ruin 'policy': its name or path

    def record(self) -> dict[str, Any]:
        """Return all of it as one table, as results store it."""
        table = asdict(self)
        settings: dict[str, Any] = table.pop("settings")
        model = {} if table.pop("model") is None else {"model": {"name": str(self.model)}}
        return {**table, **model, **settings}


def plan(
    problem: Problem,
    request: Request,
    together: int = 1,
    *,
    seconds: float | None = None,
    has_gpu: Callable[[], bool] | None = None,
) -> Plan:
    """Decide what a search will use, for one problem or for so many of this kind together.

    `seconds`: of a search that only a time limit ends, so that its chains may depend on the number of cores. `has_gpu`:
    whether there is a GPU where it will run; by default on this machine.
    """
    has_gpu = has_gpu or _has_gpu
    ruin = _default_ruin(problem, request, has_gpu) if request.ruin is None else request.ruin
    is_learned = isinstance(ruin, str) and ruin == "policy"
    preset = _pick("preset", request.preset, PRESETS)
    solver = _pick("solver", request.solver, SOLVERS, auto="nds" if preset != "default" or is_learned else "hybrid")
    on_gpu = solver == "nds" or (solver == "hybrid" and request.threads is None)
    device = _pick("device", request.device, DEVICES, auto="cuda" if on_gpu and has_gpu() else "cpu")
    if solver != "nds" and preset != "default":
        raise NdsError(f"the preset '{preset}' is a setting of the solver 'nds'")
    if solver != "nds" and is_learned:
        raise NdsError(f"the ruin 'policy' is for the solver 'nds', not '{solver}'")
    if request.model is not None and not is_learned:
        named = f"'{ruin}'" if isinstance(ruin, str) else name_of(ruin)
        raise NdsError(f"a model is for the ruin 'policy', not {named}")
    of_problem = {"hybrid": presets.hybrid, "nds": presets.PRESETS[preset]}
    base = presets.sisr() if solver == "sisr" else of_problem[solver](problem)
    if device == "cuda" and solver != "sisr" and preset == "default":
        base = presets.on_gpu(base, problem, is_learned)
    if request.threads is not None:
        require_whole("threads", request.threads)
        if request.threads < 1:
            raise NdsError(f"threads must be at least 1, got {request.threads}")
    cores = request.threads or usable_cores()
    changes = dict(request.settings)
    if ruin is not None:
        changes["ruin"] = _pick("ruin", ruin, RUINS) if isinstance(ruin, str) else "function"
    if request.chains is not None:
        changes["chains"] = request.chains
    is_own = ruin not in (None, *RUINS) or not _works_in_regions(request.model)
    if request.chains is not None or is_own:  # regions divide the chains, and own ruins choose for whole solutions
        changes = {"regions": 1, "rule_steps": 0, **changes}
    elif device == "cpu" and solver == "hybrid" and changes.get("regions", 1) == 1 and not changes.get("islands"):
        core_seconds = None if seconds is None else seconds * cores
        changes = {"population": presets.population_for(problem, core_seconds, cores // together), **changes}
    elif device == "cuda" and (is_learned or solver == "hybrid") and preset == "default" and "regions" not in changes:
        changes = {"islands": presets.islands_for(base, problem, seconds), **changes}
    if changes.get("population", 0) != 0:
        base = presets.with_population(base, problem, changes["population"])
    if changes.get("islands", 0) != 0:
        base = replace(base, **presets.GPU_CHILDREN)
    settings = replace(base, **changes)
    if settings.population > 0 and device == "cuda":
        raise NdsError("a population is searched on a CPU: give device=cpu, or population=0")
    if settings.population > 0 and may_ignore_fleet(problem):
        raise NdsError("a population is not for optional customers and limited vehicles: give population=0")
    if seconds is not None and solver == "hybrid" and device == "cpu" and "chains" not in changes and not is_own:
        settings = presets.fill_cores(settings, problem, cores // together)
    threads = min(cores, together * max(settings.chains, settings.solutions))
    model = _model(problem, request.model) if is_learned else None
    return Plan(solver, preset, device, threads, settings, model)


def _default_ruin(problem: Problem, request: Request, has_gpu: Callable[[], bool]) -> str | None:
    """Return the ruin of a request that names none; None: that of the solver or preset."""
    if request.model is not None:
        return "policy"
    is_open = request == Request(device=request.device, chains=request.chains) and request.device != "cpu"
    # On a GPU it finds more in seconds than SISRs in a minute: docs/findings.md.
    return "policy" if is_open and has_gpu() and _suits_policy(problem) else None


def _suits_policy(problem: Problem) -> bool:
    """Return whether a shipped model was trained on problems like this one, as docs/models.md lists them."""
    variants, sizes = BY_POLICY
    plain = problem.distance is None and problem.vehicles is None and problem.customers in sizes
    known = variant_of(problem).name in variants and models.choose(problem) is not None
    # It was not trained on long routes with windows, where rules find more: docs/findings.md.
    return plain and known and not presets.has_long_windows(problem)


def _works_in_regions(model: str | Path | Ruin | RuinFunction | None) -> bool:
    """Return whether a model chooses for the parts of solutions: those by name or path do."""
    return isinstance(model, str | Path | None) or (isinstance(model, Ruin) and model.in_regions)


def _model(problem: Problem, given: str | Path | Ruin | RuinFunction | None) -> str | Path:
    """Return the name or path of the model, the shipped one if none is given."""
    if given is not None:
        return given if isinstance(given, str | Path) else name_of(given)
    name = models.choose(problem)
    if name is None:
        variant = variant_of(problem).title
        raise NdsError(
            f"ruin 'policy': no model for {variant} is shipped with this version; "
            "give one (--model NAME|PATH, or model= in Python)"
        )
    return name


def name_of(ruin: object) -> str:
    """Return the name of a function, or of the class of an object."""
    return getattr(ruin, "__name__", type(ruin).__name__)


def _has_gpu() -> bool:
    from ndsvrp.engine.device import available

    return available()


def _pick(what: str, name: str, known: tuple[str, ...], auto: str | None = None) -> str:
    if name not in known:
        raise NdsError(f"unknown {what} '{name}': one of {', '.join(known)}")
    return auto if name == "auto" and auto is not None else name
