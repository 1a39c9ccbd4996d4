"""Solve several problems on a cluster, each batch of them in its own task."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Any, NamedTuple, Unpack

from ndsvrp import models
from ndsvrp.check import Report, check
from ndsvrp.cluster import require_known
from ndsvrp.cluster.model_files import ModelFiles, model_files
from ndsvrp.cluster.ray_cluster import Cluster, connect
from ndsvrp.cluster.tasks import Lost, Needs, Task
from ndsvrp.cluster.worker import describe_node
from ndsvrp.errors import NoSolutionError
from ndsvrp.problem import Problem
from ndsvrp.search.control import interruptible
from ndsvrp.search.planning import Plan, Request, plan
from ndsvrp.search.result import Result
from ndsvrp.search.solver import TOGETHER, OnResult, Outcome, Outcomes, Solver, require_run, require_set, sorted_out
from ndsvrp.search.stopping import Limits, seconds_of


@dataclass(frozen=True)
class Common:
    """What all tasks have in common. On a worker it keeps the solver open from task to task."""

    request: Request  #: its device and threads are decided
    files: ModelFiles | None
    limits: Limits
    seed: int

    @cached_property
    def solver(self) -> Solver:
        """The solver of this worker."""
        if self.files is None:
            return Solver(self.request)
        with self.files.written() as weights:
            model = models.load(weights, self.request.device)
        return Solver(replace(self.request, model=model))


class Batch(NamedTuple):
    """Problems that are searched together, by their positions."""

    members: list[int]
    plan: Plan
    needs: Needs  #: a core per thread, or a GPU and a core that feeds it


class ClusterSolver:
    """A set of problems to solve on a cluster: every decision is made before the first search."""

    def __init__(
        self,
        cluster: Cluster,
        problems: Sequence[Problem],
        request: Request,
        together: int | None = None,
        *,
        seconds: float | None = None,
    ) -> None:
        """`seconds`: of searches that only a time limit ends; the plans of workers depend on it."""
        self.cluster, self.problems, self._has_gpu = cluster, problems, cache(cluster.has_gpu)
        self._seconds = seconds
        self.files = model_files(request)
        alike, self.refused = sorted_out(problems)
        self.request = self._decided(problems[alike[0][0]], request) if alike else request
        self.batches = [batch for members in alike for batch in self._batches(members, together)]
        for needs in sorted({batch.needs for batch in self.batches}):
            cluster.survey(needs)

    def _decided(self, problem: Problem, request: Request) -> Request:
        """Return the request with the device, which is the same for all problems; a search on a CPU has one thread."""
        device = plan(problem, request, has_gpu=self._has_gpu).device
        return replace(request, device=device, threads=request.threads or (1 if device == "cpu" else None))

    def _batches(self, members: list[int], together: int | None) -> Iterator[Batch]:
        on_gpu, cores, size = self.request.device == "cuda", self.request.threads or 1, together or 1
        if together is None and on_gpu:  # an equal share for every GPU
            size = min(TOGETHER, -(-len(members) // max(1, self.cluster.slots(Needs(cores, 1)))))
        for begin in range(0, len(members), size):
            part = members[begin : begin + size]
            first = self.problems[part[0]]
            chosen = plan(first, self.request, len(part), seconds=self._seconds, has_gpu=self._has_gpu)
            yield Batch(part, chosen, Needs(cores, 1) if on_gpu else Needs(chosen.threads))

    def run(
        self, seed: int, limits: Limits, interrupted: Callable[[], bool] = bool
    ) -> Generator[tuple[int, Outcome], None, None]:
        """Yield position and outcome of every problem, as they come; for interrupts see `Cluster.run`."""
        yield from self.refused.items()
        tasks = [Task(self._name(batch), self._content(batch), batch.needs) for batch in self.batches]
        common = Common(self.request, self.files, limits, seed)
        for i, found in self.cluster.run(solve_batch, common, tasks, interrupted):
            members = self.batches[i].members
            if isinstance(found, Lost):
                found = [NoSolutionError(f"{self.problems[k].name} was {found.reason}", []) for k in members]
            for k, outcome in zip(members, found, strict=True):
                yield k, _unpacked(outcome, self.problems[k])

    def _name(self, batch: Batch) -> str:
        more = f" and {len(batch.members) - 1} more" if len(batch.members) > 1 else ""
        return f"{self.problems[batch.members[0]].name}{more}"

    def _content(self, batch: Batch) -> Any:
        return lambda: [self.problems[i] for i in batch.members]


def solve_batch(common: Common, problems: list[Problem]) -> list[Any]:
    """Solve problems together, on a worker."""
    outcomes = common.solver.solve_set(problems, together=len(problems), seed=common.seed, **common.limits)
    place = describe_node(False)
    return [_packed(outcome, place) for outcome in outcomes]


def solve_on_cluster(
    cluster: str,
    problems: Iterable[Problem],
    request: Request,
    *,
    together: int | None = None,
    seed: int = 0,
    on_result: OnResult | None = None,
    **limits: Unpack[Limits],
) -> list[Outcome]:
    """Solve several problems on a cluster; see `ndsvrp.solve_set`."""
    require_known(cluster)
    problems = require_set(problems, together)
    require_run(seed, limits)  # refuses now what every worker would refuse
    outcomes = Outcomes(len(problems), on_result)
    with connect() as connected, interruptible():
        answers = ClusterSolver(connected, problems, request, together, seconds=seconds_of(limits)).run(seed, limits)
        try:
            for position, outcome in answers:
                outcomes.add(position, outcome)
                if outcomes.ended:
                    break
        except KeyboardInterrupt:
            pass  # earlier results are kept
        finally:
            answers.close()
    return outcomes.all


class _Packed(NamedTuple):
    """A result without its problem, which the other side has."""

    values: dict[str, Any]


def _packed(outcome: Outcome, place: dict[str, Any]) -> Any:
    if isinstance(outcome, NoSolutionError):
        partial = None if outcome.result is None else _packed(outcome.result, place)
        return NoSolutionError(str(outcome), outcome.unserved, outcome.preparation, partial)
    values = {f.name: getattr(outcome, f.name) for f in fields(outcome) if f.name != "problem"}
    report: Report = values["report"]
    return _Packed(values | {"report": replace(report, page=None), "environment": place})


def _unpacked(outcome: Any, problem: Problem) -> Outcome:
    if isinstance(outcome, NoSolutionError):
        partial: Any = outcome.result
        result = None if partial is None else _result(partial, problem)
        return NoSolutionError(str(outcome), outcome.unserved, outcome.preparation, result)
    return _result(outcome, problem)


def _result(packed: _Packed, problem: Problem) -> Result:
    """Return a result, checked by this machine."""
    return Result(problem, **{**packed.values, "report": check(problem, packed.values["solution"])})
