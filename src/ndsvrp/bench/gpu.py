"""Measure a GPU: engine, search and its parts, training, memory, start, costs. Compare the values with their bars."""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.table import Table

from ndsvrp.bench import GPU_PARTS, gpu_engine, gpu_quality
from ndsvrp.bench.gpu_engine import CHAINS
from ndsvrp.bench.rows import Row, record
from ndsvrp.bench.speed import KINDS
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.errors import NdsError
from ndsvrp.generate import generate
from ndsvrp.generate.config import choose

SMALL, LARGE = 500, 2000  # customers


AT_LEAST = {
    "cvrp500 evaluate related": 50.0, "vrptw500 evaluate related": 25.0, "pcvrp500 evaluate related": 35.0,
    "cvrp500 decode with encode": 8.0, "cvrp500 search": 15.0, "cvrp2000 search": 6.0,
    "vrptw500 policy below related": 0.0, "pcvrp500 policy below related": 0.0,
}  # fmt: skip
AT_MOST = {
    "cvrp500 improve related": 15.0, "cvrp500 time limit": 50.0, "cvrp2000 time limit": 50.0,
    "cvrp500 training iteration": 20.0, "cvrp2000 memory": 8.0,
    **{f"{variant}500 first start related": 15.0 for variant in KINDS},
    **{f"{variant}500 later start related": 1.0 for variant in KINDS},
    "cvrp500 mean cost of 16 in 4 s policy": 35.72, "cvrp500 mean cost of 16 in 4 s, 16 together policy": 35.72,
    "vrptw500 mean cost of 8 in 6 s policy": 53.716, "pcvrp500 mean cost of 8 in 6 s policy": 47.659,
}  # fmt: skip
"""Bars by measurement, in its unit, for an H200 and 128 chains. Those of mean costs are costs of others after 60 s on
a core: 0.2% below HGS (35.794 when the bar was set; 35.724 in results/quality.jsonl), and equal to PyVRP 0.14.1."""


def run(
    sizes: Sequence[int] = (SMALL,),
    variants: Sequence[str] = KINDS,
    chains: int = CHAINS,
    out: str | Path | None = None,
    progress: Callable[[Row], None] | None = None,
    only: Sequence[str] | None = None,
    sets: Path | None = None,
) -> list[Row]:
    """Measure on generated instances (seed 1), and append each row to `out`.

    Sizes and variants are for the engine alone. Costs are measured on the sets of a folder, if one is given.
    """
    if only is None:
        only = [part for part in GPU_PARTS if part != "quality" or sets is not None]
    for part in only:
        choose("part", part, GPU_PARTS)
    if ("quality" in only) != (sets is not None):
        raise NdsError("the part 'quality' and the folder of the sets go together")
    if sets is not None:
        gpu_quality.files_of(sets)
    engine = CudaEngine()
    common = {
        "set": "gpu", "gpu": engine.device.name, "cuda": engine.device.versions, "driver": driver(),
        "placement": engine.placement, "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
    }  # fmt: skip
    found = (_with_bar({**common, **row}, chains) for row in _rows(engine, sizes, variants, chains, only, sets))
    return record(found, out, progress)


def _rows(
    engine: CudaEngine, sizes: Sequence[int], variants: Sequence[str], chains: int, only: Sequence[str],
    sets: Path | None,
) -> Iterator[Row]:  # fmt: skip
    from ndsvrp.bench import gpu_search  # imports torch

    def of(name: str, row: Row) -> Row:
        return {"instance": name, **row}

    if "engine" in only:
        for variant in variants:
            for n in sizes:
                for row in gpu_engine.measure(generate(variant, n, seed=1)[0], engine, chains):
                    yield of(f"{variant}{n}", row)
    problems = generate("cvrp", SMALL, count=gpu_search.TOGETHER, seed=1)
    if {"iteration", "search"} & set(only):
        model = gpu_search.shipped(problems[0])
    if "iteration" in only:
        for row in gpu_search.iteration(problems[0], model.policy, engine, chains):
            yield of(f"cvrp{SMALL}", row)
    if "search" in only:
        yield of(f"cvrp{SMALL}", gpu_search.search(problems[:1], model, 3.0, chains))
        yield of(f"cvrp{SMALL}", gpu_search.search(problems, model, 0.5, chains))
        large = generate("cvrp", LARGE, seed=1)[0]
        yield of(f"cvrp{LARGE}", gpu_search.search([large], model, 3.0, chains))
        for problem in (problems[0], large):
            yield of(f"cvrp{problem.customers}", gpu_search.lateness(problem, model, chains))
    if "training" in only:
        yield of(f"cvrp{SMALL}", gpu_search.training(SMALL, engine))
    if "memory" in only:
        yield of(f"cvrp{LARGE}", gpu_search.memory(LARGE, chains))
    if "start" in only:
        for variant in KINDS:
            for ruin in ("related", "policy"):
                for row in gpu_search.getting_ready(variant, ruin, SMALL, chains):
                    yield of(f"{variant}{SMALL}", row)
    if "quality" in only and sets is not None:
        yield from gpu_quality.measure(sets, chains)


def _with_bar(row: Row, chains: int) -> Row:
    name, value = named(row), row["value"]
    if chains == CHAINS and name in AT_LEAST:
        return row | {"bar": f"at least {AT_LEAST[name]:g}", "met": value >= AT_LEAST[name]}
    if chains == CHAINS and name in AT_MOST:
        return row | {"bar": f"at most {AT_MOST[name]:g}", "met": value <= AT_MOST[name]}
    return row


def named(row: Row) -> str:
    """Return what a row measures: `cvrp500 evaluate related`."""
    return " ".join(filter(None, (row["instance"], row["what"], row.get("removal"))))


def line(row: Row) -> str:
    """Return a measurement as a line of text."""
    text = f"{named(row):32} {row['value']:9.3f} {row['unit']}"
    if "ms_per_iteration" in row:
        text += f", {row['ms_per_iteration']:.2f} ms per iteration"
    if "ms" in row:
        text += ": " + ", ".join(f"{part} {ms:.2f}" for part, ms in row["ms"].items())
    if "cost" in row:
        text += f", mean cost {row['cost']:.4g}"
    return text + (f"  ({row['bar']}: {_verdict(row)})" if "bar" in row else "")


def table(rows: Sequence[Row]) -> Table:
    """Return the measurements that have a bar, and whether it was reached."""
    result = Table()
    for name in ("what", "bar", "measured", "unit", ""):
        result.add_column(name, justify="right" if name in ("bar", "measured") else "left")
    for row in rows:
        if "bar" in row:
            result.add_row(named(row), row["bar"], f"{row['value']:.2f}", row["unit"], _verdict(row))
    return result


def _verdict(row: Row) -> str:
    return "met" if row["met"] else "NOT MET"


def driver() -> str | None:
    """Return the version of NVIDIA's driver; None if unknown."""
    try:
        words = Path("/proc/driver/nvidia/version").read_text().split()
    except OSError:
        return None
    return next((word for word in words if "." in word and word.replace(".", "").isdigit()), None)
