"""`nds solve`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, get_args, get_type_hints

import numpy as np
import typer

from ndsvrp.bench.best_known import best_known
from ndsvrp.cli.formatting import Facts, amount, console, cost_of, headline, number, plain_number, print_facts, say
from ndsvrp.cli.interrupt import Interrupts
from ndsvrp.cli.options import Index, InstanceFile, Round
from ndsvrp.cli.outputs import Files, Folder, failed_row, summary_row
from ndsvrp.cli.progress import Watch, watch
from ndsvrp.engine.device import has_compiled
from ndsvrp.errors import InstanceError, NdsError, NoSolutionError
from ndsvrp.io import read, read_set, read_solution
from ndsvrp.io.environment import usable_cores
from ndsvrp.models import Model
from ndsvrp.problem import Problem
from ndsvrp.records import describe
from ndsvrp.search.result import Result
from ndsvrp.search.settings import Settings
from ndsvrp.search.solve import DEVICES, PRESETS, RUINS, SOLVERS, Plan, plan, solve, solve_set

DEFAULT_SECONDS = 30.0
STOPPED = {
    "time": "time limit", "iterations": "iteration limit", "patience": "no better solution for long enough",
    "target": "target reached", "interrupted": "interrupted",
}  # fmt: skip

_HELP = {name: sentence for name, _, sentence in describe(Settings)}
_OWN_OPTION = ("ruin", "chains")  # settings that do not need --set
_LIMITS, _HOW, _FILES = "How long", "How", "Files"


def solve_command(
    file: InstanceFile,
    time: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help=f"Seconds to search, start solutions included; {DEFAULT_SECONDS:g} if no limit is given. Sets: each.",
            rich_help_panel=_LIMITS,
        ),
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Iterations to search.", rich_help_panel=_LIMITS)
    ] = None,
    target: Annotated[
        float | None, typer.Option(metavar="COST", help="Stop at this cost or below.", rich_help_panel=_LIMITS)
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Stop after N iterations without a better solution.", rich_help_panel=_LIMITS
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Same seed, same search, whatever the threads."),
    ] = 0,
    solver: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"One of {', '.join(SOLVERS)}. auto: sisr, or nds for the ruin policy and for the preset paper; "
            "on a GPU nds with the policy, for problems it was trained on (docs/models.md).",
            rich_help_panel=_HOW,
        ),
    ] = "auto",
    ruin: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"What takes solutions apart: one of {', '.join(RUINS)}; by default policy if --model is given, and "
            "on a GPU for problems it was trained on; else string, or related for the preset paper.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|PATH",
            help="The learned policy: a model of 'nds models', a file, or a training run; for the ruin policy, which "
            "without it takes the model shipped for such problems. Loading it is not part of the time.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    preset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"One of {', '.join(PRESETS)}; paper: the paper's test configuration, for the solver nds.",
            rich_help_panel=_HOW,
        ),
    ] = "default",
    device: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"One of {', '.join(DEVICES)}. auto: cuda for the solver nds where there is a GPU, else cpu.",
            rich_help_panel=_HOW,
        ),
    ] = "auto",
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Cores to use, all by default; each works on chains of its own, so no more than chains.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    chains: Annotated[int | None, typer.Option(min=1, metavar="N", help=_HELP["chains"], rich_help_panel=_HOW)] = None,
    together: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Instances of a set searched side by side, with N times the seconds: fills a GPU, or all cores, where "
            "one instance would not.",
            rich_help_panel=_HOW,
        ),
    ] = 1,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Change a search setting; 'nds settings' lists them.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    round_: Round = "auto",
    index: Index = None,
    init: Annotated[
        Path | None,
        typer.Option(metavar="FILE.sol", help="Start from this solution.", rich_help_panel=_FILES),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.sol",
            help="Write the solution; for a set a folder, which receives 0000.sol, 0001.sol, … and summary.csv.",
            rich_help_panel=_FILES,
        ),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write result, settings, trace and versions.", rich_help_panel=_FILES),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png", help="Draw the routes (.png, .svg, .pdf).", rich_help_panel=_FILES),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the cost alone; of a set, one per line.")] = False,
) -> None:
    """Solve an instance, or every instance of an .npz set.

    Ctrl-C ends the search; the best solution found so far is checked and written.
    Exit codes: 0 done, 2 bad input, 3 no feasible solution found, 130 interrupted with the best written.
    """
    for name, value in (("--time", time), ("--target", target)):
        if value is not None and (not math.isfinite(value) or (name == "--time" and value <= 0)):
            raise NdsError(f"{name}: {value:g} is not {'a number of seconds' if name == '--time' else 'a cost'}")
    if seed >= 2**63:
        raise NdsError(f"--seed: {seed} is too large, the largest is {2**63 - 1}")
    how = {
        "time": DEFAULT_SECONDS if time is None and iterations is None else time, "iterations": iterations,
        "patience": patience, "target": target, "seed": seed, "solver": solver, "ruin": ruin, "model": model,
        "preset": preset, "device": device, "threads": threads, "chains": chains, **parse_changes(changes or []),
    }  # fmt: skip
    limit = _limit(how, is_default=time is None and iterations is None)
    if file.suffix.lower() == ".npz" and index is None:
        for name, given in (("--init", init), ("--plot", plot)):
            if given is not None:
                raise NdsError(f"{name} is for one instance: choose one of the set by --index")
        _solve_set(file, read_set(file, round_), round_, how, limit, Folder(out, json), together, quiet=quiet)
        return
    if together > 1:
        raise NdsError("--together is for the instances of a set")
    problem = read(file, round_, index)
    files = Files(out, json, plot)
    files.check(file, problem)
    start = read_solution(init)[0] if init is not None else None
    chosen = _prepare(problem, how)
    if not quiet:
        say(headline(problem, round_))
        say(_chosen(chosen, how))
        say(limit)
    with Interrupts() as interrupts:
        try:
            with _watched(interrupts, problem, quiet=quiet) as callback:
                result = solve(problem, callback=callback, **{**how, "model": chosen.model, "init": start})
        except InstanceError as refused:
            raise refused.located(str(init)) if refused.field == "init" else refused from None
        written, error = files.write(result)
        if quiet:
            say(plain_number(result.cost))
        else:
            print_facts(_facts(result))
            if written:
                say(f"wrote {', '.join(map(str, written))}")
    if error is not None:
        raise error
    if result.stopped == "interrupted":
        raise typer.Exit(130)


def _solve_set(
    file: Path, problems: list[Problem], asked: str, how: dict[str, Any], limit: str, folder: Folder, together: int,
    *, quiet: bool,
) -> None:  # fmt: skip
    folder.prepare(file)
    together = min(together, len(problems))
    chosen = _prepare(problems[0], how, together)
    tell: Callable[[str], None] = (lambda text: None) if quiet else say
    tell(headline(problems[0], asked, len(problems)))
    tell(_chosen(chosen, how, together))
    tell(f"{limit}, each")
    used = {**how, "model": chosen.model}
    results: list[Result] = []
    rows: list[dict[str, Any]] = []
    failure: NoSolutionError | None = None
    with Interrupts() as interrupts:
        for begin in range(0, len(problems), together):
            some = problems[begin : begin + together]
            numbers = f"{begin + 1}" if len(some) == 1 else f"{begin + 1}-{begin + len(some)}"
            with _watched(interrupts, some[0], quiet=quiet, prefix=f"[{numbers}/{len(problems)}] ") as callback:
                outcomes = solve_set(some, callback=callback, **used)
            for index, outcome in enumerate(outcomes, begin):
                if isinstance(outcome, NoSolutionError):
                    failure = failure or NoSolutionError(f"{problems[index].name}: {outcome}", outcome.unserved)
                    rows.append(failed_row(index, len(outcome.unserved), how["seed"]))
                    cost, brief = "none", str(outcome)
                else:
                    results.append(outcome)
                    rows.append(summary_row(index, outcome))
                    cost, brief = plain_number(outcome.cost), _brief(outcome)
                folder.write(index, results, rows)
                say(cost if quiet else f"{index:04d}  {brief}")
            if interrupts.asked:
                break
    if results:
        tell(f"mean cost {number(fmean(result.cost for result in results))} of {amount(len(results), 'instance')}")
    if folder.folder is not None:
        tell(f"wrote {folder.folder}")
    if len(rows) < len(problems) or (results and results[-1].stopped == "interrupted"):
        raise typer.Exit(130)
    if failure is not None:
        raise failure


def _prepare(problem: Problem, how: dict[str, Any], together: int = 1) -> Plan:
    """What will be used, its model loaded: once for all instances of a set."""
    chosen = plan(problem, together=together, **_plan_of(how))
    chosen.engine()  # a device that is not there is refused before a model is sent to it
    return replace(chosen, model=chosen.load())


@contextmanager
def _watched(interrupts: Interrupts, problem: Problem, *, quiet: bool, prefix: str = "") -> Iterator[Watch]:
    with watch(console(stderr=True), problem.metric, quiet=quiet, prefix=prefix) as callback, interrupts.searching():
        yield callback


def _limit(how: dict[str, Any], *, is_default: bool) -> str:
    parts = []
    if how["time"] is not None:
        parts.append(f"{how['time']:g} s" + (" (the default; --time or --iterations)" if is_default else ""))
    if how["iterations"] is not None:
        parts.append(amount(how["iterations"], "iteration"))
    if how["target"] is not None:
        parts.append(f"until a cost of {plain_number(how['target'])}")
    if how["patience"] is not None:
        parts.append(f"until {amount(how['patience'], 'iteration')} bring nothing better")
    return f"at most {', '.join(parts)}; seed {how['seed']}"


def _plan_of(how: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `plan` among those of `solve`."""
    return {
        name: value for name, value in how.items() if name not in ("time", "iterations", "patience", "target", "seed")
    }


def _chosen(chosen: Plan, how: dict[str, Any], together: int = 1) -> str:
    """What is used, and which of it `auto` chose."""

    def named(what: str, used: str) -> str:
        return f"{what} {used}" + (" (auto)" if how[what] == "auto" else "")

    chains, cores = chosen.settings.chains, usable_cores()
    where = amount(chains, "chain") + (f" for each of {together} instances" if together > 1 else "")
    if chosen.device == "cpu":
        where += f" on {amount(chosen.threads, 'thread')}"
        if how["threads"] is None and chains * together < cores:
            where += f" (--chains {cores} would use all {cores} cores)"
    elif not has_compiled():
        where += "; kernels are compiled first, once: that takes some seconds"
    parts = [named("solver", chosen.solver), f"ruin {chosen.settings.ruin}", named("device", chosen.device), where]
    if isinstance(chosen.model, Model):
        parts.insert(2, f"model {chosen.model.name}" + (" (auto)" if how["model"] is None else ""))
    return ", ".join(parts)


def _facts(result: Result) -> Facts:
    problem, report = result.problem, result.report

    def money(cost: float) -> str:
        return cost_of(cost, problem.metric)

    facts = [("cost", money(report.cost))]
    known = best_known(problem)
    if known is not None:
        facts.append(("gap", f"{known.gap(report.cost):+.2f} % to the best known {money(known.cost)} ({known.date})"))
    if problem.has_prizes:
        optional = problem.customers - int(np.count_nonzero(problem.required))
        facts += [
            ("distance", money(report.distance)),
            ("lost prizes", money(report.lost_prizes)),
            ("left out", f"{len(report.unserved):,} of {optional:,} optional customers"),
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
        ("solutions", f"{result.reconstructions:,} ({rate:,.0f} per second)"),
    ]


def _brief(result: Result) -> str:
    words = [f"cost {cost_of(result.cost, result.problem.metric)}", amount(len(result.solution.routes), "route")]
    if result.problem.has_prizes:
        words.append(f"{len(result.report.unserved):,} left out")
    words += [f"{result.seconds:.1f} s", f"{result.iterations:,} iterations"]
    return "  ".join(words) + ("  interrupted" if result.stopped == "interrupted" else "")


def parse_changes(changes: list[str]) -> dict[str, Any]:
    """`removals=20` as a setting, by the type its field has."""
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
