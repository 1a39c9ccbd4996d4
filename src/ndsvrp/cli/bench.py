"""The command `nds bench`: solvers side by side, reports on their rows, speed, time limits."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from ndsvrp.bench import GPU_PARTS
from ndsvrp.bench.instances import parse_span
from ndsvrp.bench.solvers import DEFAULT, KNOWN
from ndsvrp.cli.formatting import console, say
from ndsvrp.cli.options import ClusterName, IgnoreField, RowFile, option, parse_changes, request_option
from ndsvrp.data.sets import SUITES
from ndsvrp.errors import InstanceError, NdsError
from ndsvrp.io.files import check_writable, exists, read_bytes, refused
from ndsvrp.search.planning import DEVICES, PRESETS, RUINS
from ndsvrp.text import number

_OWN = "Solvers of this package (auto, hybrid, sisr, nds)"

app = typer.Typer(no_args_is_help=True, help="Compare solvers; measure speed, time limits and memory.")


@app.command("run")
def run_command(
    sets: Annotated[
        list[str],
        typer.Argument(
            metavar="SET…", help=f".npz sets, names of sets, suites ({', '.join(SUITES)}), folders, patterns in quotes."
        ),
    ],
    solvers: Annotated[
        str, option("NAMES", f"Separated by commas: {', '.join(KNOWN)}, pyvrp@PYTHON, or module:attribute.")
    ] = "hybrid",
    times: Annotated[
        str | None,
        option(
            "S,S",
            "Seconds per instance and solver: 60 (default; 1 for smoke, 3600 with --iterations), or 2,10,60.",
            "--times",
            "--time",
        ),
    ] = None,
    instances: Annotated[
        str | None, option("WHICH", "Positions or names in each set: 0-7, 3, 0,2,5-6; all by default.")
    ] = None,
    seeds: Annotated[str, option("N,N", "Seeds: 1, 1-5, or 1,3,7-9.", "--seeds", "--seed")] = "1",
    out: Annotated[
        Path | None, option("FILE.jsonl", "Append a row per run; runs that are in the file are not repeated.")
    ] = None,
    jobs: Annotated[int, option("N", "Runs side by side, each on its own core or cores.", min=1)] = 1,
    cores: Annotated[
        int, option("N", "Cores per run: hybrid and nds use all, others run on each with another seed.", min=1)
    ] = 1,
    cluster: ClusterName = None,
    together: Annotated[
        int, option("N", "Instances searched as a batch, with N times the seconds.", panel=_OWN, min=1)
    ] = 1,
    device: Annotated[str, option("NAME", f"One of {', '.join(DEVICES[1:])}.", panel=_OWN)] = "cpu",
    ruin: Annotated[str | None, request_option("ruin", "NAME", _OWN)] = None,
    model: Annotated[str | None, request_option("model", "NAME|PATH", _OWN)] = None,
    chains: Annotated[int | None, request_option("chains", "N", _OWN, min=1)] = None,
    presets: Annotated[
        str | None,
        option("NAMES", f"Presets of the solver nds: {', '.join(PRESETS)}.", "--preset", "--presets", panel=_OWN),
    ] = None,
    iterations: Annotated[
        str | None, option("N,N", "Iterations after which a search ends, if the time is not over before.", panel=_OWN)
    ] = None,
    changes: Annotated[list[str] | None, option("NAME=VALUE", "Change a search setting.", "--set", panel=_OWN)] = None,
    ignore_field: IgnoreField = None,
) -> None:
    """Run solvers side by side on sets, each run in its own process on one core, or on --cores.

    Each solver runs on each instance with each seed and each number of seconds.
    The solvers of this package accept settings, a GPU and batches; their name in the rows says so.
    Exit codes: 0 success, 2 bad input, 3 a run failed or found nothing feasible, 130 interrupted.
    Rows of finished runs are in the file.
    """
    from ndsvrp.bench.report import make_report
    from ndsvrp.bench.run import run

    _prepare(out)
    named = presets.split(",") if presets is not None else []
    _require_known("--device", [device], DEVICES[1:])
    _require_known("--ruin", [] if ruin is None else [ruin], RUINS)
    _require_known("--preset", named, PRESETS)
    limits = [_whole("--iterations", word, "iterations") for word in iterations.split(",")] if iterations else []
    request = replace(
        DEFAULT, device=device, ruin=ruin, model=model, chains=chains, settings=parse_changes(changes or [])
    )
    times = _default_times(sets, limits) if times is None else times
    spans = [_seconds(word) for word in times.split(",")]
    chosen_seeds, spent = numbers("--seeds", seeds), list[float]()

    def print_row(done: int, total: int, row: dict[str, Any]) -> None:
        spent.extend([row["seconds"]] if "seconds" in row else [])
        # Iterations end a run long before its time limit.
        each = fmean(spans) if not limits else fmean(spent) if spent else 0.0
        left = _left((total - done) * each / jobs) if cluster is None else ""
        seed = f" seed {row['seed']}" if len(chosen_seeds) > 1 else ""
        say(f"[{done}/{total}] {row['set']} {row['instance']} {row['solver']}{seed}: {_outcome(row)}{left}", error=True)

    rows = run(
        sets, solvers.split(","), spans, instances, chosen_seeds, out, jobs, print_row, request, together,
        ignore_field or (), named, limits, cores, cluster,
    )  # fmt: skip
    _print_lines(make_report(rows).brief())
    if any(not row.get("feasible") and "skipped" not in row for row in rows):
        raise typer.Exit(3)


def _require_known(flag: str, given: Iterable[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise NdsError(f"{flag}: one of {', '.join(known)}, not '{name}'")


def _default_times(sets: Iterable[str], limits: Sequence[int]) -> str:
    if limits:
        return "3600"
    return "1" if all(name in ("smoke", *SUITES["smoke"]) for name in sets) else "60"


@app.command("report")
def report_command(
    files: Annotated[list[Path], typer.Argument(metavar="ROWS.jsonl", help="Rows of 'nds bench run --out'.")],
    out: Annotated[
        Path | None, option("FILE", "Write .md, .html with pictures, .tex or .csv, instead of printing Markdown.")
    ] = None,
    baseline: Annotated[
        str | None, option("SOLVER", "Compare with this solver; by default with the first one of each set.")
    ] = None,
    pictures: Annotated[
        Path | None, option("FOLDER", "Also write curves, profiles and gaps against sizes, each as .pdf and .png.")
    ] = None,
    per_instance: Annotated[
        bool, typer.Option("--per-instance", help="Also a table of every instance: costs, gap to the best known cost.")
    ] = False,
) -> None:
    """Report on rows: means, gaps, paired comparisons, the paper's main table; in HTML also curves and profiles."""
    from ndsvrp.bench.report import check_format, make_report
    from ndsvrp.bench.rows import read_rows
    from ndsvrp.io.files import read_text, write_atomic

    if out is not None:
        check_format(out)
        check_writable(out)
    if pictures is not None:
        _prepare(pictures / "picture.pdf")
    rows = []
    for file in files:
        read_text(file)  # raises if the file cannot be read
        if not (found := read_rows(file)):
            raise InstanceError("holds no complete row", file=str(file))
        rows += found
    report = make_report(rows, baseline, with_instances=per_instance)
    if out is None:
        _print_lines(report.text())
    else:
        write_atomic(out, report.text(out.suffix.lower()).encode())
        say(f"wrote {out}")
    if pictures is not None:
        for file in report.write_pictures(pictures):
            say(f"wrote {file}", error=True)


@app.command("speed")
def speed_command(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="An instance; by default generated ones of several variants and sizes."),
    ] = None,
    index: Annotated[int, option("I", "Index of the instance in an .npz set, from 0.", min=0)] = 0,
    sizes: Annotated[str | None, option("N,N", "Customers of the generated instances.")] = None,
    variants: Annotated[str | None, option("NAMES", "Variants of the generated instances.")] = None,
    time: Annotated[float, option("S", "Seconds per instance and scope.")] = 2.0,
    out: RowFile = None,
) -> None:
    """Measure reconstructions per second on one core, over touched routes and over all routes."""
    from ndsvrp.bench import speed
    from ndsvrp.bench.rows import record

    _require_seconds(time)
    counts = speed.SIZES if sizes is None else [_count(word) for word in sizes.split(",")]
    kinds = speed.KINDS if variants is None else variants.split(",")
    _prepare(out)

    def print_rate(row: dict[str, Any]) -> None:
        say(f"{row['instance']}, {row['scope']} routes: {row['per_second']:,.0f} per second", error=True)

    problems = speed.problems(file, index, counts, kinds)
    rows = record((row for problem in problems for row in speed.measure(problem, time)), out, print_rate)
    console().print(speed.table(rows))


@app.command("limits")
def limits_command(
    time: Annotated[float | None, option("S", "Only this time limit.")] = None,
    customers: Annotated[int | None, option("N", "Only instances with so many customers.", min=1)] = None,
    out: RowFile = None,
) -> None:
    """Measure how late searches by hybrid and nds end, and the memory they take, on every variant.

    A limit is kept if the search ends within 2% or 0.1 s of it, whichever is larger. Converting the instance to the
    form of the engine does not count, and is reported. By default: 0.05 s up to 1,000 customers, 1 s and 10 s up to
    100,000, and matrices of up to 5,000 nodes. --time alone is for 10,000 customers, --customers alone for 1 s.
    """
    from ndsvrp.bench import limits

    if time is not None:
        _require_seconds(time)
    _prepare(out)
    chosen = limits.SEARCHES if time is None and customers is None else ((time or 1.0, customers or 10_000),)

    def print_row(row: dict[str, Any]) -> None:
        say(f"{row['instance']}, {row['solver']}: {limits.outcome(row)}", error=True)

    console().print(limits.table(limits.run(chosen, out, print_row)))


@app.command("gpu")
def gpu_command(
    sizes: Annotated[str, option("N,N", "Customers of the instances for the engine alone.")] = "500",
    variants: Annotated[str, option("NAMES", "Variants of these instances.")] = "cvrp,vrptw,pcvrp",
    chains: Annotated[int, option("N", "Chains searched side by side; bars are for 128.", min=1)] = 128,
    sets: Annotated[
        Path | None,
        option("FOLDER", "Also measure costs, on cvrp500.npz, vrptw500.npz and pcvrp500.npz in this folder."),
    ] = None,
    only: Annotated[str | None, option("NAMES", f"Measure only these parts: {', '.join(GPU_PARTS)}.")] = None,
    out: RowFile = None,
) -> None:
    """Measure a GPU: the engine alone, the parts of an iteration, searches, training, memory, start-up time, costs.

    Ends with a table of the measurements that have a bar, a value that an H200 should reach.
    """
    from ndsvrp.bench import gpu
    from ndsvrp.bench.gpu_engine import REMOVALS

    _prepare(out)
    counts = [_count(word) for word in sizes.split(",")]
    if min(counts) < REMOVALS:
        raise NdsError(f"--sizes: {REMOVALS} customers are removed at once, {min(counts)} are too few")
    rows = gpu.run(
        counts, variants.split(","), chains, out=out, progress=lambda row: say(gpu.line(row)),
        only=only.split(",") if only is not None else None, sets=sets,
    )  # fmt: skip
    console().print(gpu.table(rows))


def _count(word: str) -> int:
    return _whole("--sizes", word, "customers")


def _whole(flag: str, word: str, what: str) -> int:
    if not (word.isascii() and word.isdecimal() and len(word) <= 9 and int(word) > 0):
        raise NdsError(f"{flag}: '{word}' is not a number of {what}")
    return int(word)


def _require_seconds(time: float) -> None:
    if not 0 < time < math.inf:
        raise NdsError(f"--time: {time:g} is not a number of seconds")


def _prepare(out: Path | None) -> None:
    """Make the folder of the rows, and raise if the file cannot be written."""
    if out is None:
        return
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise refused("written", out, error) from None
    check_writable(out)
    if exists(out):
        read_bytes(out, may_be_empty=True)  # raises for a device


def _print_lines(text: str) -> None:
    for line in text.rstrip("\n").split("\n"):
        say(line)


def _seconds(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise NdsError(f"--times: '{word}' is not a number of seconds") from None


def numbers(flag: str, text: str) -> list[int]:
    """Return the numbers of a list like 1, 1-5 or 1,3,7-9, in the order written, each once."""
    found: dict[int, None] = {}
    for part in text.split(","):
        span = parse_span(part.strip())
        if not span or span[-1] - span[0] >= 10_000:
            raise NdsError(f"{flag}: '{part}' is neither a number nor a range like 1-5")
        found.update(dict.fromkeys(span))
    return list(found)


def _left(seconds: float) -> str:
    """Return the time that is left in words; nothing if it is short."""
    return f", about {seconds / 60:.0f} min left" if seconds >= 60 else ""


def _outcome(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"failed: {row['error']}"
    if "skipped" in row:
        return f"skipped: {row['skipped']}"
    return f"{number(row['cost'])}" + ("" if row["feasible"] else " infeasible") + f" in {row['seconds']:.1f} s"
