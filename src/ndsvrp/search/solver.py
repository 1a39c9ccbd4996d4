"""The solver: opens what a plan needs once, and serves one problem or thousands."""

import logging
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Never, Self, Unpack

import numpy as np

from ndsvrp import models
from ndsvrp.check import check
from ndsvrp.constraints.shortage import shortage
from ndsvrp.engine.base import Engine
from ndsvrp.errors import CallbackError, NdsError, NdsWarning, NoSolutionError
from ndsvrp.problem import Problem, require_problem, require_problems
from ndsvrp.records import require_whole
from ndsvrp.ruin import Ruin, as_ruin
from ndsvrp.scope import refuse_unnamed
from ndsvrp.search.asa import Search
from ndsvrp.search.control import Callback, CallbackFailure, Stop, interruptible
from ndsvrp.search.fleet import may_ignore_fleet
from ndsvrp.search.options import Options
from ndsvrp.search.planning import Plan, Request, plan
from ndsvrp.search.result import STOPPED, Result, no_solution
from ndsvrp.search.settings import Settings
from ndsvrp.search.stopping import Budget, Limits, seconds_of
from ndsvrp.search.warm_start import missing_customers, with_missing
from ndsvrp.solution import Solution, require_solution
from ndsvrp.text import amount
from ndsvrp.variants import variant_of

TOGETHER = 16  # problems searched side by side by default
CHECKING = 1.8e-6  # seconds per customer for exporting and checking a solution and freeing memory, within the limit

logger = logging.getLogger(__name__)
Outcome = Result | NoSolutionError
OnResult = Callable[[int, Outcome], Any]
"""Called with the position of a problem and its outcome. Returning False ends the searches that are left."""


class Opened(NamedTuple):
    """A plan with what it needs."""

    plan: Plan
    engine: Engine
    ruin: Ruin | None  #: None: a rule, inside the engine


class Solver:
    """Solves problems as one request asks. Engines and models are made once, when first needed, and kept until `close`.

        with ndsvrp.Solver(ruin="policy", device="cuda") as solver:
            for problem in problems:
                print(solver.solve(problem, time=10).cost)

    Options are those of `ndsvrp.solve`: docs/settings.md explains each.
    """

    def __init__(self, request: Request | None = None, **options: Unpack[Options]) -> None:
        if request is not None and options:
            raise NdsError("a solver takes a request or options, not both")
        if request is not None and not isinstance(request, Request):
            raise NdsError(f"a solver takes a Request, got {type(request).__name__}; solver.solve takes the problem")
        self.request = request if request is not None else Request.of(**options)
        given = self.request.model if isinstance(self.request.ruin, str | None) else self.request.ruin
        self._ruin = None if isinstance(given, str | Path | None) else as_ruin(given)
        self._engines: dict[tuple[str, int], Engine] = {}
        self._models: dict[tuple[str | Path, str], models.Model] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release engines and models, and the GPU memory that they hold."""
        self._engines.clear()
        self._models.clear()

    def plan(self, problem: Problem, together: int = 1, *, seconds: float | None = None) -> Plan:
        """Return what a search of this problem will use, or of `together` problems of its kind, side by side.

        `seconds`: its time limit, if it has none on iterations.
        """
        require_problem("solve", problem)
        return plan(problem, self.request, together, seconds=seconds)

    def open(self, problem: Problem, together: int = 1, *, seconds: float | None = None) -> Opened:
        """Return the plan for a problem, or for `together` of its kind, with its engine and ruin."""
        chosen = self.plan(problem, together, seconds=seconds)
        key = chosen.device, chosen.threads
        if key not in self._engines:  # before the model: a missing device is refused before anything is loaded
            self._engines[key] = make_engine(chosen)
        ruin = self._ruin
        if ruin is None and chosen.model is not None:
            source = chosen.model, chosen.device
            if source not in self._models:
                self._models[source] = models.load(*source)
            ruin = self._models[source]
        return Opened(chosen, self._engines[key], ruin)

    def solve(
        self,
        problem: Problem,
        *unnamed: Never,
        seed: int = 0,
        init: Solution | None = None,
        callback: Callback | None = None,
        stop: Stop | None = None,
        **limits: Unpack[Limits],
    ) -> Result:
        """Solve a problem; see `ndsvrp.solve`."""
        refuse_unnamed("solve", unnamed)
        if init is not None:
            require_solution("init", init)
        opened = self.open(problem, seconds=seconds_of(limits))
        require_run(seed, limits)
        missing = [] if init is None else missing_customers(problem, init)
        if short := shortage(problem):
            raise NoSolutionError(short, [])
        if init is not None and missing:
            init = with_missing(problem, init, missing, seed)
            left = len(set(missing).difference(*init.routes))
            what = amount(len(missing), "required customer")
            logger.info("%s: init lacks %s, %d inserted", problem.name, what, len(missing) - left)
        found = _search([problem], opened, limits, seed, callback, stop, init)
        if found.failure is not None:
            raise CallbackError(found.failure, found.outcomes) from found.failure
        (outcome,) = found.outcomes
        if isinstance(outcome, NoSolutionError):
            raise outcome
        return outcome

    def solve_set(
        self,
        problems: Iterable[Problem],
        *unnamed: Never,
        together: int | None = None,
        seed: int = 0,
        callback: Callback | None = None,
        stop: Stop | None = None,
        on_result: OnResult | None = None,
        **limits: Unpack[Limits],
    ) -> list[Outcome]:
        """Solve several problems, up to `together` of them side by side; see `ndsvrp.solve_set`."""
        refuse_unnamed("solve_set", unnamed)
        problems = require_set(problems, together)
        alike, refused = sorted_out(problems)
        batches = self._batches(problems, alike, together or TOGETHER, seconds_of(limits))
        require_run(seed, limits)
        outcomes = Outcomes(len(problems), on_result)
        try:
            for i, short in refused.items():
                outcomes.add(i, short)
            for members, opened in batches:
                if outcomes.ended:
                    break
                found = _search([problems[i] for i in members], opened, limits, seed, callback, stop)
                for i, outcome in zip(members, found.outcomes, strict=True):
                    outcomes.add(i, outcome)
                if found.failure is not None:
                    raise CallbackError(found.failure, outcomes.all) from found.failure
                if found.stopped in ("interrupted", "callback"):
                    break
        except KeyboardInterrupt:
            pass  # earlier results are kept
        return outcomes.all

    def _batches(
        self, problems: Sequence[Problem], alike: Sequence[Sequence[int]], together: int, seconds: float | None
    ) -> list[tuple[list[int], Opened]]:
        """Return which problems are searched side by side, and how. Every refusal comes here, before any search."""
        batches = []
        for members in self._by_plan(problems, alike, seconds):
            first, size = problems[members[0]], min(together, len(members))
            opened = self.open(first, size, seconds=seconds)
            if opened.ruin is not None and not (opened.ruin.batched and first.distance is None):
                size = 1
            batches += [(members[begin : begin + size], opened) for begin in range(0, len(members), size)]
        return batches

    def _by_plan(
        self, problems: Sequence[Problem], groups: Sequence[Sequence[int]], seconds: float | None
    ) -> list[list[int]]:
        """Split groups so that every problem is searched by the plan that it has alone, but for the threads."""
        parts: dict[tuple[int, Plan], list[int]] = {}
        for number, members in enumerate(groups):
            for i in members:
                parts.setdefault((number, replace(self.plan(problems[i], seconds=seconds), threads=0)), []).append(i)
        return list(parts.values())


def make_engine(chosen: Plan) -> Engine:
    """Return an engine on the device of a plan."""
    if chosen.device == "cuda":
        from ndsvrp.engine.cuda import CudaEngine

        return CudaEngine()
    from ndsvrp.engine.cpu import CpuEngine

    return CpuEngine(threads=chosen.threads)


class Outcomes:
    """The outcomes of a set, which come in any order; the user's function is told of each."""

    def __init__(self, count: int, on_result: OnResult | None = None) -> None:
        if on_result is not None and not callable(on_result):
            raise NdsError(f"on_result must be a function of a position and a result, got {type(on_result).__name__}")
        self.all: list[Outcome] = [NoSolutionError("interrupted before its search", [])] * count
        self.ended = False  #: the user's function returned False
        self._on_result = on_result

    def add(self, position: int, outcome: Outcome) -> None:
        """Note an outcome; raise a CallbackError with all of them if the user's function fails."""
        self.all[position] = outcome
        if self._on_result is None or self.ended:
            return
        try:
            answer = self._on_result(position, outcome)
        except Exception as error:
            raise CallbackError(error, self.all) from error
        self.ended = isinstance(answer, bool | np.bool_) and not answer


def require_set(problems: Iterable[Problem], together: int | None) -> Sequence[Problem]:
    """Return the problems; raise unless these are several, and `together` a number of them."""
    if together is not None:
        require_whole("together", together)
    if together is not None and together < 1:
        raise NdsError(f"together must be at least 1, got {together}")
    return require_problems("solve_set", problems)


def require_run(seed: int, limits: Limits) -> None:
    """Raise for a seed or for limits that no search takes, before anything uses them."""
    require_whole("seed", seed)
    if not 0 <= seed < 2**63:
        raise NdsError(f"seed must be between 0 and 2^63 - 1, got {seed}")
    Budget.of(limits)


def sorted_out(problems: Sequence[Problem]) -> tuple[list[list[int]], dict[int, NoSolutionError]]:
    """Group problems that can be searched side by side: of one size and variant, and alike in fleet and matrix.

    Problems whose fleet is too small by arithmetic are in no group, and have an error.
    """
    groups: dict[Any, list[int]] = {}
    refused: dict[int, NoSolutionError] = {}
    for i, problem in enumerate(problems):
        require_problem("solve_set", problem)
        if short := shortage(problem):
            refused[i] = NoSolutionError(short, [])
            continue
        fleet = problem.vehicles is None, may_ignore_fleet(problem)
        kind = problem.customers, variant_of(problem), fleet, problem.distance is None
        groups.setdefault(kind, []).append(i)
    return list(groups.values()), refused


class Found(NamedTuple):
    """What came of a search."""

    outcomes: list[Outcome]  #: checked
    stopped: str  #: why it ended
    failure: BaseException | None  #: what a callback raised


def _search(
    problems: Sequence[Problem], opened: Opened, limits: Limits, seed: int, callback: Callback | None,
    stop: Stop | None = None, init: Solution | None = None,
) -> Found:  # fmt: skip
    """Search problems side by side."""
    chosen, engine, ruin = opened
    if isinstance(ruin, models.Model) and not ruin.knows(problems[0]):
        trained, variant = ", ".join(ruin.card.problems).upper(), variant_of(problems[0]).title
        message = f"the model {ruin.name} was trained on {trained}, and this is a {variant}"
        warnings.warn(message, NdsWarning, stacklevel=4)
    budget = Budget.of(limits, len(problems))
    budget.reserve(CHECKING * sum(problem.customers for problem in problems))
    search = _kind_of_search(chosen.settings)(
        problems, engine, chosen.settings, budget, seed, ruin, init, threads=chosen.threads, callback=callback,
        stop=stop,
    )  # fmt: skip
    _log_start(problems, chosen, seed)
    failure: BaseException | None = None
    try:
        with interruptible():
            if chosen.device == "cuda" and (ruin is None or ruin.on_device):
                search.rehearse()
            search.prepare()
            budget.restart()  # the clock runs from here
            stopped = search.run()
    except KeyboardInterrupt:
        stopped = "interrupted"
        search.note_best()
    except CallbackFailure as failed:
        stopped, failure = "error", failed.__cause__
        search.note_best()
    return Found(_outcomes(search, problems, stopped, _record(opened, len(problems), limits)), stopped, failure)


def _kind_of_search(settings: Settings) -> type[Search]:
    """Return the search that the settings ask for; what most searches do without is imported here."""
    if settings.population > 0:
        from ndsvrp.search.population import PopulationSearch

        return PopulationSearch
    if settings.islands > 0:
        from ndsvrp.search.islands import IslandSearch

        return IslandSearch
    return Search


def _outcomes(search: Search, problems: Sequence[Problem], stopped: str, record: dict[str, Any]) -> list[Outcome]:
    """Return the checked results of a search that has ended; seconds and reconstructions are equal shares."""
    count, found, seconds = len(problems), search.best(), search.elapsed()
    outcomes: list[Outcome] = []
    for problem, solution, trace in zip(problems, found, search.traces, strict=True):
        result = Result(
            problem, solution, check(problem, solution), search.seed, stopped, seconds, search.iteration,
            search.reconstructions // count, record, tuple(trace), search.preparation / count,
        )  # fmt: skip
        outcome = no_solution(result) or result
        outcomes.append(outcome)
        _log_end(result, outcome)
    return outcomes


def _log_start(problems: Sequence[Problem], chosen: Plan, seed: int) -> None:
    first = problems[0]
    what = f"{first.name}: {variant_of(first).title}, {amount(first.customers, 'customer')}"
    more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
    logger.info("%s%s: solver %s, ruin %s, %s chains, device %s, seed %s", what, more, chosen.solver,
                chosen.settings.ruin, chosen.settings.chains, chosen.device, seed)  # fmt: skip


def _log_end(result: Result, outcome: Outcome) -> None:
    for point in result.trace if logger.isEnabledFor(logging.DEBUG) else ():
        logger.debug("%s: %.3f s, iteration %d: cost %r", result.problem.name, *point)
    if isinstance(outcome, NoSolutionError):
        logger.warning("%s: %s", result.problem.name, outcome)
    else:
        logger.info("%s: cost %r, %s after %.2f s, %s", result.problem.name, result.cost, STOPPED[result.stopped],
                    result.seconds, amount(result.iterations, "iteration"))  # fmt: skip


def _record(opened: Opened, together: int, limits: Limits) -> dict[str, Any]:
    """Return the plan as results store it, with the model that was loaded and the limits."""
    record = opened.plan.record() | {"limits": dict.fromkeys(Limits.__annotations__) | limits}
    if together > 1:
        record["together"] = together
    if isinstance(opened.ruin, models.Model) and opened.plan.model is not None:
        record["model"] = opened.ruin.record()
    return record
