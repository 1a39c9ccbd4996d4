"""The command `nds solve`."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from ndsvrp.best_known import best_known
from ndsvrp.cli.formatting import console, headline, plain_number, print_facts, say
from ndsvrp.cli.interrupt import Interrupts
from ndsvrp.cli.options import (
    NOTHING,
    ClusterName,
    IgnoreField,
    Index,
    InstanceFile,
    Round,
    Stated,
    option,
    parse_changes,
    request_option,
    states_data,
)  # fmt: skip
from ndsvrp.cli.outputs import Files, Folder, matrices_of, names_of
from ndsvrp.cli.progress import Shown, Watch, watch
from ndsvrp.cli.serve import keep_open, page_of
from ndsvrp.cli.solve_set import SetOutput
from ndsvrp.cli.solve_text import facts_of, limit_line, plan_line
from ndsvrp.cluster import require_known
from ndsvrp.errors import InstanceError, NdsError, NoSolutionError
from ndsvrp.io import read, read_set, read_solution
from ndsvrp.io.files import is_standard
from ndsvrp.io.folders import is_folder
from ndsvrp.models import Model
from ndsvrp.problem import Problem
from ndsvrp.search.control import Callback
from ndsvrp.search.planning import Request
from ndsvrp.search.result import Progress
from ndsvrp.search.solver import Opened, Solver
from ndsvrp.search.stopping import Limits, seconds_of
from ndsvrp.search.summary import route_lines
from ndsvrp.search.warm_start import missing_customers
from ndsvrp.solution import Solution
from ndsvrp.text import amount

DEFAULT_SECONDS = 30.0

_LIMITS, _HOW, _FILES = "How long", "How", "Files"


@states_data
def solve_command(
    file: InstanceFile,
    time: Annotated[
        float | None,
        option(
            "S",
            f"Seconds to search each instance, start solutions included; {DEFAULT_SECONDS:g} without any limit.",
            panel=_LIMITS,
        ),
    ] = None,
    iterations: Annotated[int | None, option("N", "Iterations to search.", panel=_LIMITS, min=1)] = None,
    target: Annotated[float | None, option("COST", "Stop at this cost or below.", panel=_LIMITS)] = None,
    patience: Annotated[
        int | None, option("N", "Stop after N iterations without a better solution.", panel=_LIMITS, min=1)
    ] = None,
    seed: Annotated[int, option("N", "Same seed and --iterations, same result, for any number of threads.", min=0)] = 0,
    solver: Annotated[str, request_option("solver", "NAME", _HOW)] = "auto",
    ruin: Annotated[str | None, request_option("ruin", "NAME", _HOW)] = None,
    model: Annotated[str | None, request_option("model", "NAME|PATH", _HOW)] = None,
    preset: Annotated[str, request_option("preset", "NAME", _HOW)] = "default",
    device: Annotated[str, request_option("device", "NAME", _HOW)] = "auto",
    threads: Annotated[int | None, request_option("threads", "N", _HOW, min=1)] = None,
    chains: Annotated[int | None, request_option("chains", "N", _HOW, min=1)] = None,
    fewest_vehicles: Annotated[
        bool,
        typer.Option(
            "--fewest-vehicles", help="Minimize the number of vehicles first, then the cost.", rich_help_panel=_HOW
        ),
    ] = False,
    together: Annotated[
        int,
        option(
            "N",
            "Instances of a set searched side by side, with N times the seconds: fills a GPU, or all cores, where one "
            "instance would not.",
            panel=_HOW,
            min=1,
        ),
    ] = 1,
    cluster: ClusterName = None,
    changes: Annotated[
        list[str] | None,
        option("NAME=VALUE", "Change a search setting; 'nds settings' lists them.", "--set", panel=_HOW),
    ] = None,
    round_: Round = "auto",
    index: Index = None,
    ignore_field: IgnoreField = None,
    stated: Stated = NOTHING,
    init: Annotated[
        Path | None,
        option(
            "FILE",
            "Start from this solution, .sol or JSON; required customers that it lacks are inserted.",
            panel=_FILES,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option(
            "FILE.sol",
            "Write the solution (- prints it; or FILE.geojson, FILE.csv with a row per stop); for a set, a folder for "
            "0000.sol, 0001.sol, … and summary.csv.",
            panel=_FILES,
        ),
    ] = None,
    json: Annotated[
        Path | None, option("FILE", "Write result, plan, trace and versions (- prints it).", panel=_FILES)
    ] = None,
    plot: Annotated[Path | None, option("FILE.png", "Draw the routes (.png, .svg, .pdf).", panel=_FILES)] = None,
    report: Annotated[
        Path | None, option("FILE.html", "Write one page with map, routes, times and convergence.", panel=_FILES)
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the cost; one per line for a set.")] = False,
    page: Annotated[
        bool,
        typer.Option(
            "--watch", help="Serve a page on a local port that shows routes and cost; on a terminal until Ctrl-C."
        ),
    ] = False,
) -> None:
    """Solve an instance, or every instance of an .npz set or a folder.

    Ctrl-C or SIGTERM ends the search. The best solution so far is checked and written.
    Exit codes: 0 done, 2 bad input, 3 no feasible solution found, 130 (Ctrl-C) or 143 (SIGTERM) ended early.
    """
    for name, value in (("--time", time), ("--target", target)):
        if value is not None and (not math.isfinite(value) or (name == "--time" and value <= 0)):
            raise NdsError(f"{name}: {value:g} is not {'a number of seconds' if name == '--time' else 'a cost'}")
    if seed >= 2**63:
        raise NdsError(f"--seed: {seed} is too large, the largest is {2**63 - 1}")
    is_default = time is None and iterations is None
    limits: Limits = {
        "time": DEFAULT_SECONDS if is_default else time, "iterations": iterations, "patience": patience,
        "target": target,
    }  # fmt: skip
    settings = parse_changes(changes or []) | ({"fewest_vehicles": True} if fewest_vehicles else {})
    by_cost = not settings.get("fewest_vehicles")
    request = Request(
        solver=solver, ruin=ruin, model=model, preset=preset, device=device, threads=threads, chains=chains,
        settings=settings,
    )  # fmt: skip
    piped = any(path is not None and is_standard(path) for path in (out, json, report))
    line = limit_line(limits, seed, is_default=is_default)
    task = _Task(file, round_, limits, seed, line, quiet, by_cost, piped, page)
    if cluster is not None:
        require_known(cluster)
    with Solver(request) as opened:
        if index is None and (file.suffix.lower() == ".npz" or is_folder(file)):
            for name, given in (("--init", init), ("--plot", plot), ("--report", report), ("--watch", page or None)):
                if given is not None:
                    raise NdsError(f"{name} is for one instance: choose one of the set by --index")
            problems = read_set(file, round_, ignore_fields=ignore_field or (), **stated)
            folder = Folder(out, json, names_of(file))
            if cluster is None:
                _solve_set(opened, task, problems, folder, together)
            else:
                _solve_on_cluster(request, task, problems, folder, together)
        elif cluster is not None:
            raise NdsError("--cluster is for the instances of a set")
        elif together > 1:
            raise NdsError("--together is for the instances of a set")
        else:
            problem = read(file, round_, index, ignore_fields=ignore_field or (), **stated)
            _solve_one(opened, task, problem, Files(out, json, plot, report, matrices_of(stated)), init)


@dataclass(frozen=True)
class _Task:
    """What was asked for on the command line, besides the request."""

    file: Path
    rounding: str
    limits: Limits
    seed: int
    limit_line: str
    quiet: bool
    by_cost: bool  #: whether the cost alone is minimized, as in best known solutions
    piped: bool  #: standard output is for a file: everything else goes to the error stream
    page: bool  #: whether a page shows the search

    def tell(self, text: str) -> None:
        """Print a line, unless the command is quiet."""
        if not self.quiet:
            say(text, error=self.piped)

    def tell_written(self, files: Sequence[Path], what: str = "") -> None:
        """Print which files were written; standard output is none."""
        if names := [str(file) for file in files if not is_standard(file)]:
            self.tell(f"wrote {', '.join(names)}{what}")

    @contextmanager
    def watched(self, interrupts: Interrupts, problems: Sequence[Problem], prefix: str = "") -> Iterator[Watch]:
        """Show progress, and let Ctrl-C end the search."""
        first, seconds = problems[0], self.limits.get("time")
        known = best_known(first) if len(problems) == 1 and self.by_cost else None
        shown = Shown(
            first.metric, prefix, None if seconds is None else seconds * len(problems), self.limits.get("iterations"),
            self.limits.get("target") if known is None else known.cost,
        )  # fmt: skip
        target = watch(console(stderr=True), shown, quiet=self.quiet)
        with target as callback, interrupts.searching():
            yield callback


def _solve_one(solver: Solver, task: _Task, problem: Problem, files: Files, init: Path | None) -> None:
    files.check(task.file, problem)
    start = read_solution(init)[0] if init is not None else None
    opened = solver.open(problem, seconds=seconds_of(task.limits))
    task.tell(headline(problem, task.rounding))
    task.tell(plan_line(opened.plan, solver.request, _model_name(opened)))
    task.tell(task.limit_line)
    if init is not None and start is not None:
        _tell_missing(task, problem, init, start)
    file, limits = str(task.file), task.limits
    with Interrupts() as interrupts, page_of(problem, file, limits, task.seed, wanted=task.page) as page:
        try:
            with task.watched(interrupts, [problem]) as callback:
                callbacks = callback if page is None else _both(callback, page)
                result = solver.solve(problem, seed=task.seed, init=start, callback=callbacks, **limits)
        except NoSolutionError as partial:
            if partial.result is not None:
                task.tell_written(files.write(partial.result)[0], ", of a partial solution")
            raise
        if page is not None:
            page.finish(result)
        written, error = files.write(result)
        if task.quiet:
            say(plain_number(result.cost), error=task.piped)
        else:
            print_facts(facts_of(result), error=task.piped)
            if files == Files():
                for line in (*route_lines(result), "no file was written: --out, --json, --plot or --report names one"):
                    task.tell(line)
            task.tell_written(written)
        keep_open(page, interrupts)
    if error is not None:
        raise error
    if result.stopped == "interrupted":
        raise typer.Exit(interrupts.exit_code)


def _tell_missing(task: _Task, problem: Problem, file: Path, start: Solution) -> None:
    """Say how many customers a start lacks; refuse what is violated, with its file."""
    try:
        missing = missing_customers(problem, start)
    except InstanceError as refused:
        raise refused.located(str(file)) from None
    if missing:
        task.tell(f"{file}: {amount(len(missing), 'required customer')} not served, inserted before the search")


def _both(first: Callback, second: Callback) -> Callback:
    def call(progress: Progress) -> None:
        first(progress)
        second(progress)

    return call


def _solve_set(solver: Solver, task: _Task, problems: Sequence[Problem], folder: Folder, together: int) -> None:
    folder.prepare(task.file)
    together = min(together, len(problems))
    opened = solver.open(problems[0], together, seconds=seconds_of(task.limits))
    task.tell(headline(problems[0], task.rounding, len(problems)))
    task.tell(plan_line(opened.plan, solver.request, _model_name(opened), together))
    task.tell(f"{task.limit_line}, each")
    output = SetOutput(folder, problems, task.seed, quiet=task.quiet, piped=task.piped)
    with Interrupts() as interrupts:
        for begin in range(0, len(problems), together):
            some = problems[begin : begin + together]
            numbers = f"{begin + 1}" if len(some) == 1 else f"{begin + 1}-{begin + len(some)}"
            with task.watched(interrupts, some, f"[{numbers}/{len(problems)}] ") as callback:
                outcomes = solver.solve_set(some, together=together, seed=task.seed, callback=callback, **task.limits)
            for index, outcome in enumerate(outcomes, begin):
                output.add(index, outcome)
            if interrupts.asked:
                break
    output.finish(interrupts.exit_code)


def _solve_on_cluster(
    request: Request, task: _Task, problems: Sequence[Problem], folder: Folder, together: int
) -> None:
    from ndsvrp.cluster.ray_cluster import connect
    from ndsvrp.cluster.solving import ClusterSolver

    folder.prepare(task.file)
    with connect() as cluster:
        solver = ClusterSolver(cluster, problems, request, together, seconds=seconds_of(task.limits))
        task.tell(headline(problems[0], task.rounding, len(problems)))
        if solver.batches:
            first, asked = solver.batches[0], replace(request, threads=solver.request.threads)
            model = None if first.plan.model is None else str(first.plan.model)
            task.tell(plan_line(first.plan, asked, model, len(first.members)))
            nodes, slots = amount(len(cluster.nodes(first.needs)), "node"), cluster.slots(first.needs)
            task.tell(f"on a Ray cluster: {nodes}, {slots:,} at once")
        task.tell(f"{task.limit_line}, each")
        output = SetOutput(folder, problems, task.seed, quiet=task.quiet, piped=task.piped)
        with Interrupts() as interrupts, suppress(KeyboardInterrupt):  # raised after results of interrupted searches
            outcomes = solver.run(task.seed, task.limits, lambda: interrupts.asked)
            while True:
                with interrupts.searching():
                    found = next(outcomes, None)
                if found is None:
                    break
                output.add(*found)
    output.finish(interrupts.exit_code)


def _model_name(opened: Opened) -> str | None:
    return opened.ruin.name if isinstance(opened.ruin, Model) else None
