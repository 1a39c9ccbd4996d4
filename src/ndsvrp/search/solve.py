"""Solve a problem, or a set of problems, in one call."""

from collections.abc import Iterable
from typing import Never, Unpack

from ndsvrp.errors import NdsError, NoSolutionError
from ndsvrp.problem import Problem
from ndsvrp.scope import refuse_unnamed
from ndsvrp.search.control import Callback, Stop
from ndsvrp.search.options import Options
from ndsvrp.search.planning import Request
from ndsvrp.search.result import Result
from ndsvrp.search.solver import OnResult, Solver
from ndsvrp.search.stopping import Limits
from ndsvrp.solution import Solution


def solve(
    problem: Problem,
    *unnamed: Never,
    time: float | None = None,
    iterations: int | None = None,
    patience: int | None = None,
    target: float | None = None,
    seed: int = 0,
    init: Solution | None = None,
    callback: Callback | None = None,
    stop: Stop | None = None,
    **options: Unpack[Options],
) -> Result:
    """Solve a problem; the cost and feasibility of the result come from `check`.

    Give at least one of `time` (seconds, start solutions included) and `iterations`: the search cools over it.
    `patience` (iterations without a better solution), `target` (a cost) and `stop` only end it earlier.

    `options` are `solver`, `ruin`, `model`, `preset`, `device`, `threads` and `chains`, and fields of `Settings`:
    docs/settings.md explains each. `ruin` names a rule or is your own function. The ruin 'policy' uses `model`: the
    name of a shipped one, a path, or one loaded before by `ndsvrp.models.load`; by default the shipped one for such
    problems. `time` excludes loading the model, preparing a GPU, and converting the problem to the form of the engine
    (`Result.preparation`); it includes export and check of the result. Your own function is never called before the
    clock starts, unless it is `on_device`.

    `init` is a solution to start from. Required customers that it does not serve are inserted at the cheapest
    positions before the clock starts; anything else that it violates is refused.

    `callback` is called with a `Progress` of the start solution, as iteration 0 (several times
    while a fleet is too small for it), and after each iteration;
    `progress.incumbent` is the best solution. If it returns False the search ends, and likewise if `stop` returns
    something true: any function of the progress, or without arguments, such as `event.is_set`. If one of them raises an
    exception, the search ends with a CallbackError that has the best solution.

    The result of so many iterations depends on problem, seed and settings, never on `threads`. With a time limit alone,
    `hybrid` has more chains the more cores it gets, unless `chains` says how many. Ctrl-C or SIGTERM ends the search
    early and returns the best solution so far. Raises NoSolutionError if a limited fleet leaves required customers
    unserved.
    """
    refuse_unnamed("solve", unnamed)
    with Solver(**options) as solver:
        return solver.solve(
            problem, time=time, iterations=iterations, patience=patience, target=target, seed=seed, init=init,
            callback=callback, stop=stop,
        )  # fmt: skip


def solve_set(
    problems: Iterable[Problem],
    *unnamed: Never,
    together: int | None = None,
    time: float | None = None,
    iterations: int | None = None,
    patience: int | None = None,
    target: float | None = None,
    seed: int = 0,
    callback: Callback | None = None,
    stop: Stop | None = None,
    on_result: OnResult | None = None,
    cluster: str | None = None,
    **options: Unpack[Options],
) -> list[Result | NoSolutionError]:
    """Solve several problems, up to `together` of them side by side (16 by default).

    Problems x chains form a batch that fills a GPU, or all cores, where one problem would not. `time` is per problem:
    n problems searched together get n times the seconds, and the seconds and solutions of their results are an equal
    share. `patience` and `target` use the mean cost. The other arguments are those of `solve`, except `init`. With a
    rule, every problem gets the solution that `solve` finds for the same seed and iterations; a learned policy draws
    other random numbers in a batch.

    Problems are searched together if they have the same size and variant, all or none of them limit the vehicles, and
    `auto` decides the same for them: each is solved with the settings that `solve` uses.
    A ruin that is not `batched` (see `ndsvrp.Ruin`) gets one problem at a time. So does every ruin that is not a rule
    if the problems have a matrix.

    If the fleet of a problem leaves required customers unserved, a NoSolutionError takes the place of its result. The
    same holds for problems whose search had not begun when Ctrl-C was pressed, or when the callback returned False.
    `stop` ends the search of the problems that are searched together; the next ones follow.

    `on_result` is called with the position and the result of each problem when its search ends; if it returns False,
    no other search begins. With `cluster="ray"` the problems are solved on the CPUs or GPUs of a Ray cluster, in the
    order in which workers are free. A search then has one thread unless `threads` says more, or a GPU; `together` is 1
    on CPUs. `callback` and `stop` are refused, because they would run on other machines. See docs/cluster.md.
    """
    refuse_unnamed("solve_set", unnamed)
    limits: Limits = {"time": time, "iterations": iterations, "patience": patience, "target": target}
    if cluster is None:
        with Solver(**options) as solver:
            return solver.solve_set(
                problems, together=together, seed=seed, callback=callback, stop=stop, on_result=on_result, **limits
            )
    for name, given in (("callback", callback), ("stop", stop)):
        if given is not None:
            raise NdsError(f"{name} is for searches in this process; with a cluster, on_result gets each result")
    from ndsvrp.cluster.solving import solve_on_cluster

    request = Request.of(**options)
    return solve_on_cluster(cluster, problems, request, together=together, seed=seed, on_result=on_result, **limits)
