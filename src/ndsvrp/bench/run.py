"""Run solvers side by side, each (instance, solver) in its own process on one core, or on several.

The solvers of this package may also run on a GPU, with several instances per process.
"""

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import chain, count, product
from pathlib import Path
from typing import Any, Protocol

from ndsvrp.bench.instances import Case, find_cases
from ndsvrp.bench.pool import Pool
from ndsvrp.bench.rows import Row, append_row, key, read_rows
from ndsvrp.bench.solvers import DEFAULT, OwnSolver, find_solver, label_of, version_of
from ndsvrp.bench.tasks import BenchTask, Entry, run_message
from ndsvrp.cluster import require_known
from ndsvrp.engine.device import Device
from ndsvrp.errors import InstanceError
from ndsvrp.io.environment import environment
from ndsvrp.search.planning import Request

Progress = Callable[[int, int, Row], None]
"""Called after every run with the number of runs done, of all runs, and the row."""

IN_A_PROCESS = 16  # instances per process with a GPU: preparing it takes longer than a short search


def run(
    sets: Sequence[str | Path],
    solvers: Sequence[str],
    times: Sequence[float],
    instances: str | None = None,
    seeds: Sequence[int] = (1,),
    out: str | Path | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    request: Request = DEFAULT,
    together: int = 1,
    ignore_fields: Sequence[str] = (),
    presets: Sequence[str] = (),
    iterations: Sequence[int] = (),
    cores: int = 1,
    cluster: str | None = None,
) -> list[Row]:
    """Run every solver on every chosen instance of every set, with every seed and every number of seconds.

    Return a row for each run, those found in `out` included. `instances` selects from each set.
    Solvers take turns on each instance, so that other load of the machine affects all of them. With `out`, rows are
    appended when their process ends (on a GPU after up to 16 instances), and a run that is in the file (`rows.KEY`) is
    not repeated. `request`, `together` and `iterations` are for the solvers of this package, `presets` for the solver
    nds; their name in the rows says so. `hybrid` and `nds` use several cores in one search. Other solvers run on each
    with another seed, and the best solution counts. For `ignore_fields` see `ndsvrp.read`.

    With a cluster, 'ray', the runs are made on its nodes, as many at once as it has cores or GPUs, and their rows have
    the hardware of the node. A run is not repeated if it was made on hardware that the cluster has.
    """
    _refuse(times, seeds, jobs, request, cluster)
    with _opened(cluster, jobs, cores) as runs:
        entries = _entries(solvers, request, together, presets, iterations, cores, is_local=cluster is None)
        wanted = [{"seed": seed, "budget": float(time)} for seed, time in dict.fromkeys(product(seeds, times))]
        tasks: list[BenchTask] = []
        for cases in _cases(sets, instances, ignore_fields):
            tasks += _tasks(cases, entries, wanted)
        present = {key(row): row for row in read_rows(out)} if out is not None else {}  # the last row of every run
        rows = {i: old for i, task in enumerate(tasks) if (old := _present(task, runs.places(task.entry), present))}
        waiting = [i for i in range(len(tasks)) if i not in rows]
        total, numbers = sum(len(task.rows) for task in tasks), count(1)

        def tell(row: Row) -> None:
            if progress:
                progress(next(numbers), total, row)

        for row in chain.from_iterable(rows.values()):
            tell(row)
        with closing(runs.run([tasks[i] for i in waiting])) as outcomes:
            for which, found in outcomes:
                i = waiting[which]
                rows[i] = [row | more for row, more in zip(tasks[i].rows, found, strict=True)]
                for row in rows[i]:
                    if out is not None:
                        append_row(out, row)
                    tell(row)
    return [row for i in range(len(tasks)) for row in rows[i]]


def _cases(sets: Sequence[str | Path], instances: str | None, ignore_fields: Sequence[str]) -> Iterator[list[Case]]:
    """Yield the chosen instances of each set, each instance once: a set may be named twice, or be part of a suite."""
    known: set[Case] = set()
    for path in sets:
        new = [case for case in find_cases(path, instances, ignore_fields) if case not in known]
        known.update(new)
        yield new


def _refuse(times: Sequence[float], seeds: Sequence[int], jobs: int, request: Request, cluster: str | None) -> None:
    """Raise for what no run can have, and for rows that could not be read again."""
    for time in times:
        if not 0 < time < math.inf:
            raise InstanceError(f"{time:g} is not a number of seconds", field="time")
    for seed in seeds:
        if seed < 0:
            raise InstanceError(f"{seed} is below 0", field="seed")
    if request.device == "cuda" and jobs > 1:
        raise InstanceError("runs on a GPU follow each other", field="jobs")
    if cluster is not None and jobs > 1:
        raise InstanceError("a cluster runs as many side by side as it has cores", field="jobs")


class Runs(Protocol):
    """Where benchmark tasks run."""

    def places(self, entry: Entry) -> list[Row]:
        """Return where runs of a solver may be: what their rows say about it, if it is not this machine."""

    def run(self, tasks: Sequence[BenchTask]) -> Generator[tuple[int, list[Row]], None, None]:
        """Yield the position of each task and what its run adds to its rows, as they end."""


class LocalRuns:
    """Runs benchmark tasks on the cores of this machine."""

    def __init__(self, jobs: int, cores: int) -> None:
        self._jobs, self._pool = jobs, Pool(jobs, cores)

    def places(self, entry: Entry) -> list[Row]:
        """Return that there is one place, which the rows describe already."""
        return [{}]

    def run(self, tasks: Sequence[BenchTask]) -> Generator[tuple[int, list[Row]], None, None]:
        """Yield the position of each task and what its run adds to its rows, as they end."""
        threads = ThreadPoolExecutor(self._jobs)
        try:
            submitted = {threads.submit(run_message, self._pool, task.message()): i for i, task in enumerate(tasks)}
            for future in as_completed(submitted):
                yield submitted[future], future.result()
        finally:  # also after Ctrl-C: finished runs are written, running ones are killed
            threads.shutdown(wait=False, cancel_futures=True)
            self._pool.end()
            threads.shutdown()


@contextmanager
def _opened(cluster: str | None, jobs: int, cores: int) -> Iterator[Runs]:
    if cluster is None:
        yield LocalRuns(jobs, cores)
        return
    from ndsvrp.bench.on_cluster import ClusterRuns
    from ndsvrp.cluster.ray_cluster import connect

    require_known(cluster)
    with connect() as connected:
        yield ClusterRuns(connected)


def _present(task: BenchTask, places: Sequence[Row], present: Mapping[tuple[Any, ...], Row]) -> list[Row] | None:
    """Return the rows of a task that was run before, all of them in one place and without an error."""
    for place in places:
        old = [present.get(key(row | place), {"error": "not there"}) for row in task.rows]
        if not any("error" in row for row in old):  # a batch is repeated as a whole
            return old
    return None


def _entries(
    solvers: Sequence[str],
    request: Request,
    together: int,
    presets: Sequence[str],
    iterations: Sequence[int],
    cores: int,
    *,
    is_local: bool = True,
) -> list[Entry]:
    """Return all solvers in all their configurations. Versions and the GPU are asked for here, once."""
    same: Row = environment()
    on_gpu = request.device == "cuda"
    of_gpu: Row = {"hardware": same["hardware"] | {"gpu": Device().name}} if on_gpu and is_local else {}
    size = together * max(1, IN_A_PROCESS // together) if on_gpu else together
    entries: list[Entry] = []
    for name in dict.fromkeys(solvers):
        solver = find_solver(name)
        facts: Row = {"solver_version": version_of(name, solver), "threads": cores, **same}
        if not isinstance(solver, OwnSolver):
            entries.append(Entry(name, {"solver": label_of(name, solver)} | facts, cores=cores, seeds=cores))
            continue
        if on_gpu:
            facts |= {"threads": 1, **of_gpu}
        chosen = presets if solver.request.solver == "nds" else ()
        used, searches = (1, 1) if on_gpu else (cores, cores if solver.request.solver == "sisr" else 1)
        for preset, limit in product(chosen or (request.preset,), iterations or (None,)):
            # On a GPU `auto` chooses the policy only if nothing else is asked for, threads included.
            asked = replace(request, preset=preset, threads=None if on_gpu else used // searches)
            own = find_solver(name, asked, limit)
            assert isinstance(own, OwnSolver)
            own.refuse_settings()
            row: Row = {"solver": own.label(together)} | facts
            entries.append(Entry(name, row, asked, limit, together, size, used, searches))
    if presets and not any(entry.request.preset in presets for entry in entries):
        raise InstanceError("presets are those of the solver nds, which does not take part", field="preset")
    return entries


def _tasks(cases: Sequence[Case], entries: Sequence[Entry], runs: Sequence[Row]) -> Iterator[BenchTask]:
    """Let solvers take turns on every instance, or on every batch, for each seed and time of `runs`."""
    size = max(entry.size for entry in entries)
    for begin in range(0, len(cases), size):
        batch = list(cases[begin : begin + size])
        for run, entry in product(runs, entries):
            for first in range(0, len(batch), entry.size):
                some = batch[first : first + entry.size]
                yield BenchTask(entry, [_describe(case) | entry.row | run for case in some], some)


def _describe(case: Case) -> Row:
    return {"set": case.set, "instance": case.name, "data": case.digest()}
