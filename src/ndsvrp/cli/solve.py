"""The command `nds solve`."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import numpy as np
import typer

from ndsvrp.best_known import best_known
from ndsvrp.cli.formatting import console, cost_of, headline, plain_number, print_facts, say
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
    request_option,
    states_data,
)  # fmt: skip
from ndsvrp.cli.outputs import Files, Folder, matrices_of, names_of
from ndsvrp.cli.progress import Shown, Watch, watch
from ndsvrp.cli.serve import keep_open, page_of
from ndsvrp.cli.solve_set import SetOutput
from ndsvrp.cluster import require_known
from ndsvrp.constraints.base import Facts
from ndsvrp.engine.device import has_compiled
from ndsvrp.errors import InstanceError, NdsError, NoSolutionError
from ndsvrp.io import read, read_set, read_solution
from ndsvrp.io.environment import usable_cores
from ndsvrp.io.files import is_standard
from ndsvrp.io.folders import is_folder
from ndsvrp.models import Model
from ndsvrp.problem import Problem
from ndsvrp.search.control import Callback
from ndsvrp.search.planning import Plan, Request
from ndsvrp.search.result import STOPPED, Progress, Result
from ndsvrp.search.settings import Settings
from ndsvrp.search.solver import Opened, Solver
from ndsvrp.search.stopping import Limits, seconds_of
from ndsvrp.search.summary import route_lines
from ndsvrp.search.warm_start import missing_customers
from ndsvrp.solution import Solution
from ndsvrp.text import amount

DEFAULT_SECONDS = 30.0

_OWN_OPTION = ("ruin", "chains")  # settings with an option besides --set
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
    request = Request(
        solver=solver, ruin=ruin, model=model, preset=preset, device=device, threads=threads, chains=chains,
        settings=parse_changes(changes or []),
    )  # fmt: skip
    piped = any(path is not None and is_standard(path) for path in (out, json, report))
    task = _Task(file, round_, limits, seed, _limit_line(limits, seed, is_default=is_default), quiet, piped, page)
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
        known = best_known(first) if len(problems) == 1 else None
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
            print_facts(_facts(result), error=task.piped)
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


def _limit_line(limits: Limits, seed: int, *, is_default: bool) -> str:
    parts = []
    if (time := limits.get("time")) is not None:
        parts.append(f"{time:g} s" + (" (the default; --time or --iterations)" if is_default else ""))
    if (iterations := limits.get("iterations")) is not None:
        parts.append(amount(iterations, "iteration"))
    if (target := limits.get("target")) is not None:
        parts.append(f"until a cost of {plain_number(target)}")
    if (patience := limits.get("patience")) is not None:
        parts.append(f"until {amount(patience, 'iteration')} bring nothing better")
    return f"at most {', '.join(parts)}; seed {seed}"


def _model_name(opened: Opened) -> str | None:
    return opened.ruin.name if isinstance(opened.ruin, Model) else None


def plan_line(plan: Plan, request: Request, model: str | None = None, together: int = 1) -> str:
    """Return a plan as one line, which marks what `auto` chose."""

    def named(what: str, used: str) -> str:
        return f"{what} {used}" + (" (auto)" if getattr(request, what) in ("auto", None) else "")

    chains, cores = plan.settings.chains, usable_cores()
    regions = f" ({plan.settings.regions} per solution)" if plan.settings.regions > 1 else ""
    population = plan.settings.population
    chain = f"population of {population}, {chains} children" if population else amount(chains, "chain")
    islands = f" in {plan.settings.islands} islands" if plan.settings.islands else ""
    where = chain + islands + regions + (f" for each of {together} instances" if together > 1 else "")
    if plan.device == "cpu":
        where += f" on {amount(plan.threads, 'thread')}"
        if request.threads is None and not regions and not population and chains * together < cores:
            where += f" (--chains {cores} would use all {cores} cores)"
    elif not has_compiled():
        where += "; kernels are compiled first, once: that takes some seconds"
    ruin = f"ruin {plan.settings.ruin}" + (" and string" if plan.settings.rule_steps > 0 else "")
    parts = [named("solver", plan.solver), ruin, named("device", plan.device), where]
    if model is not None:
        parts.insert(2, named("model", model))
    return ", ".join(parts)


def _facts(result: Result) -> Facts:
    problem, report = result.problem, result.report

    def money(cost: float) -> str:
        return cost_of(cost, problem.metric)

    facts = [("cost", money(report.cost))]
    known = best_known(problem)
    if known is not None:
        facts.append(("gap", f"{known.gap(report.cost):+.2f}% to the best known {money(known.cost)} ({known.date})"))
    if problem.has_prizes or report.vehicle_costs:
        facts.append(("distance", money(report.distance)))
    if report.vehicle_costs:
        facts.append(("vehicle costs", money(report.vehicle_costs)))
    if problem.has_prizes:
        optional = problem.customers - int(np.count_nonzero(problem.required))
        facts += [
            ("lost prizes", money(report.lost_prizes)),
            ("unserved", f"{len(report.unserved):,} of {optional:,} optional customers"),
        ]
    if (model := result.settings.get("model")) is not None:
        facts.append(("model", f"{model['name']}, loaded in {model['load_seconds']:.2f} s before the search"))
    rate = result.reconstructions / result.seconds if result.seconds > 0 else 0.0
    return [
        *facts,
        ("routes", f"{len(result.solution.routes):,}"),
        ("stopped by", STOPPED.get(result.stopped, result.stopped)),
        ("seconds", f"{result.seconds:.2f}"),
        ("iterations", f"{result.iterations:,}"),
        ("reconstructions", f"{result.reconstructions:,} ({rate:,.0f} per second)"),
    ]


def parse_changes(changes: list[str]) -> dict[str, Any]:
    """Return settings by name, converted to the types of their fields; a change is written `removals=20`."""
    types = get_type_hints(Settings)
    known = [field.name for field in fields(Settings) if field.name not in _OWN_OPTION]
    parsed: dict[str, Any] = {}
    for change in changes:
        name, _, text = change.partition("=")
        if name not in known:
            hint = f"use --{name}" if name in _OWN_OPTION else f"known: {', '.join(known)}"
            raise NdsError(f"--set: no setting '{name}' ({hint})")
        parsed[name] = _parse(name, text, types[name])
    return parsed


def _parse(name: str, text: str, kind: Any) -> Any:
    choices = {"true": True, "false": False} if kind is bool else {choice: choice for choice in get_args(kind)}
    if choices:
        if text not in choices:
            raise NdsError(f"--set: {name} is one of {', '.join(choices)}, not '{text}'")
        return choices[text]
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise NdsError(f"--set: {name} is {what}, not '{text}'") from None
