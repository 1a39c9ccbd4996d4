"""From a request to a plan: every `auto` is decided here, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from ndsvrp import models
from ndsvrp.errors import NdsError
from ndsvrp.io.environment import usable_cores
from ndsvrp.problem import Problem
from ndsvrp.records import documented, require_whole
from ndsvrp.ruin import RULES, Ruin, RuinFunction
from ndsvrp.scope import keyword_hint
from ndsvrp.search import presets
from ndsvrp.search.fewest import with_any_fleet
from ndsvrp.search.fleet import may_ignore_fleet
from ndsvrp.search.settings import Settings
from ndsvrp.variants import variant_of

SOLVERS = ("auto", "hybrid", "nds", "sisr")
PRESETS = tuple(presets.PRESETS)
DEVICES = ("auto", "cpu", "cuda")
RUINS = (*RULES, "policy")
OWN_OPTION = ("ruin", "chains")  # settings that are options of a request
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

    def __post_init__(self) -> None:
        """Make options of the settings that are options of a request."""
        for name in OWN_OPTION:
            if name in self.settings and getattr(self, name) is not None:
                raise NdsError(f"{name} is given twice, as an option and as a setting")
            object.__setattr__(self, name, self.settings.get(name, getattr(self, name)))
        others = {name: value for name, value in self.settings.items() if name not in OWN_OPTION}
        object.__setattr__(self, "settings", others)

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
    """Decide what a search of a problem will use, or of `together` problems of its kind, side by side.

    `seconds`: of a search that only a time limit ends, so that its chains may depend on the number of cores. `has_gpu`:
    whether there is a GPU where it will run; by default on this machine.
    """
    if request.settings.get("fewest_vehicles"):
        if not problem.required.any():
            raise NdsError("fewest_vehicles: no customer is required, so that no vehicle is needed")
        problem = with_any_fleet(problem)
    choice = _choose(problem, request, has_gpu or _has_gpu)
    _refuse_contradictions(request, choice)
    cores = _cores(request)
    settings = _settings(problem, request, choice, _Resources(seconds, cores, together))
    threads = min(cores, together * max(settings.chains, settings.solutions))
    model = _model(problem, request.model) if choice.is_learned else None
    return Plan(choice.solver, choice.preset, choice.device, threads, settings, model)


class _Choice(NamedTuple):
    """What a request names, every `auto` decided."""

    solver: str
    preset: str
    device: str
    ruin: str | Ruin | RuinFunction | None  #: None: the rule of the solver or preset
    is_own: bool  #: the user's own function or object chooses the customers

    @property
    def is_learned(self) -> bool:
        """Return whether the ruin is a model, by its name or path."""
        return isinstance(self.ruin, str) and self.ruin == "policy"


class _Resources(NamedTuple):
    """Time and cores of a search."""

    seconds: float | None  #: for each problem, if only a time limit ends the search
    cores: int
    together: int  #: problems that share the cores

    @property
    def cores_each(self) -> int:
        """Return the cores of one problem."""
        return self.cores // self.together

    @property
    def core_seconds(self) -> float | None:
        """Return the seconds of all cores, if only a time limit ends the search."""
        return None if self.seconds is None else self.seconds * self.cores


def _choose(problem: Problem, request: Request, has_gpu: Callable[[], bool]) -> _Choice:
    """Decide solver, preset, device and ruin."""
    ruin = _default_ruin(problem, request, has_gpu) if request.ruin is None else request.ruin
    is_learned = isinstance(ruin, str) and ruin == "policy"
    preset = _pick("preset", request.preset, PRESETS)
    solver = _pick("solver", request.solver, SOLVERS, auto="nds" if preset != "default" or is_learned else "hybrid")
    takes_gpu = solver == "nds" or (solver == "hybrid" and request.threads is None)
    device = _pick("device", request.device, DEVICES, auto="cuda" if takes_gpu and has_gpu() else "cpu")
    is_own = ruin not in (None, *RUINS) or not _works_in_regions(request.model)
    return _Choice(solver, preset, device, ruin, is_own)


def _refuse_contradictions(request: Request, choice: _Choice) -> None:
    """Raise for parts of a request that do not go together."""
    if choice.solver != "nds" and choice.preset != "default":
        raise NdsError(f"the preset '{choice.preset}' is a setting of the solver 'nds'")
    if choice.solver != "nds" and choice.is_learned:
        raise NdsError(f"the ruin 'policy' is for the solver 'nds', not '{choice.solver}'")
    if request.model is not None and not choice.is_learned:
        named = f"'{choice.ruin}'" if isinstance(choice.ruin, str) else name_of(choice.ruin)
        raise NdsError(f"a model is for the ruin 'policy', not {named}")


def _cores(request: Request) -> int:
    """Return how many cores the search may use."""
    if request.threads is None:
        return usable_cores()
    require_whole("threads", request.threads)
    if request.threads < 1:
        raise NdsError(f"threads must be at least 1, got {request.threads}")
    return request.threads


def _settings(problem: Problem, request: Request, choice: _Choice, resources: _Resources) -> Settings:
    """Return the settings that the request gives, and for all others those of the solver or preset."""
    base, given = _base(problem, choice), _given(request, choice)
    given = {**_arrangement(problem, request, choice, base, given, resources), **given}
    if given.get("population", 0) != 0:
        base = presets.with_population(base, problem, given["population"])
    if given.get("islands", 0) != 0:
        base = replace(base, **presets.ISLAND_CHILDREN)
    settings = replace(base, **given)
    settings = replace(settings, **{k: v for k, v in _by_others(problem, choice, settings).items() if k not in given})
    _refuse_population(problem, choice, settings)
    if settings.unserved_price > 0 and (problem.vehicles is None or not problem.required.any()):
        raise NdsError("unserved_price is for required customers and limited vehicles, or fewest_vehicles")
    fills_cores = choice.solver == "hybrid" and choice.device == "cpu" and not choice.is_own and "chains" not in given
    if resources.seconds is not None and fills_cores:
        return presets.fill_cores(settings, problem, resources.cores_each)
    return settings


def _base(problem: Problem, choice: _Choice) -> Settings:
    """Return the settings of the solver or preset for a problem and a device."""
    if choice.solver == "sisr":
        return presets.sisr()
    base = presets.hybrid(problem) if choice.solver == "hybrid" else presets.PRESETS[choice.preset](problem)
    if choice.device == "cuda" and choice.preset == "default":
        return presets.on_gpu(base, problem, choice.is_learned)
    return base


def _given(request: Request, choice: _Choice) -> dict[str, Any]:
    """Return the settings that the request names."""
    given = dict(request.settings)
    if choice.ruin is not None:
        given["ruin"] = _pick("ruin", choice.ruin, RUINS) if isinstance(choice.ruin, str) else "function"
    if request.chains is not None:
        given["chains"] = request.chains
    return given


def _by_others(problem: Problem, choice: _Choice, settings: Settings) -> dict[str, Any]:
    """Return settings of `hybrid` that depend on what the others have become."""
    if choice.solver != "hybrid":
        return {}
    if choice.device == "cuda":
        return {"insert_near": presets.near_on_gpu(settings, problem)}
    is_priced = settings.fewest_vehicles and settings.population == 0
    return {"unserved_price": presets.price_for(problem)} if is_priced else {}


def _arrangement(
    problem: Problem, request: Request, choice: _Choice, base: Settings, given: Mapping[str, Any], resources: _Resources
) -> dict[str, Any]:
    """Decide whether chains work in regions, on a population or on islands, where the request leaves that open."""
    if request.chains is not None or choice.is_own:
        return {"regions": 1, "rule_steps": 0}  # regions divide the chains, and own ruins choose for whole solutions
    if given.get("fewest_vehicles") or given.get("unserved_price"):
        return {}  # children of full vehicles hardly ever fit the fleet
    by_rules = choice.solver == "hybrid"
    if choice.device == "cpu" and by_rules and given.get("regions", 1) == 1 and not given.get("islands"):
        spent = resources.core_seconds, resources.cores_each
        is_open = "islands" not in given and "population" not in given
        if is_open and (islands := presets.islands_on_cpu(problem, *spent)):
            return islands
        return {"population": presets.population_for(problem, *spent)}
    by_policy = choice.is_learned and choice.preset == "default"
    if choice.device == "cuda" and (by_rules or by_policy) and "regions" not in given:
        return {"islands": presets.islands_for(base, problem, resources.seconds)}
    return {}


def _refuse_population(problem: Problem, choice: _Choice, settings: Settings) -> None:
    """Raise for a population where there can be none."""
    if settings.population > 0 and choice.device == "cuda":
        raise NdsError("a population is searched on a CPU: give device=cpu, or population=0")
    if settings.population > 0 and may_ignore_fleet(problem):
        raise NdsError("a population is not for optional customers and limited vehicles: give population=0")


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
