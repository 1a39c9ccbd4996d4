"""Time and memory of an iteration against the number of customers, relative to 100 (section 5.6)."""

from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from ndsvrp import models
from ndsvrp.bench.limits import in_new_process
from ndsvrp.bench.report.tables import EMPTY, Table
from ndsvrp.bench.rows import Row
from ndsvrp.experiments.context import SEED, Context, Findings
from ndsvrp.experiments.published import SOURCE, published
from ndsvrp.experiments.scales import MIDDLE, PRESET
from ndsvrp.experiments.searches import Series
from ndsvrp.experiments.trainings import policy
from ndsvrp.generate import generate
from ndsvrp.io.environment import peak_mib
from ndsvrp.plot.lines import PlotLine
from ndsvrp.plot.panels import LinePanel, plot_line_panels
from ndsvrp.search.code_version import code_version
from ndsvrp.search.result import Progress
from ndsvrp.search.solve import solve

SEED_OF_INSTANCES = 2003


def scalability(context: Context) -> Findings:
    """Search one CVRP instance of each size, the smallest first, for some iterations."""
    sizes = context.scale.growing
    model = policy(context, generate("cvrp", sizes[0], seed=SEED_OF_INSTANCES)[0], "cvrp", MIDDLE)
    series = Series("NDS", model)
    identities: list[Row] = [
        {
            "set": "scalability", "instance": f"cvrp{n}", "data": None, "series": series.name,
            "solver": series.label(context, 1), "solver_version": code_version(), "seed": SEED, "budget": None,
            "iterations": context.scale.steps, "point": n, "threads": context.own_threads,
        }
        for n in sizes
    ]  # fmt: skip
    rows = [row for identity in identities if (row := context.rows.find(identity)) is not None]
    if len(rows) < len(sizes):  # all of them: memory is that of the largest so far
        request = series.request(context)
        settings = {**request.settings, **({"chains": request.chains} if request.chains else {})}
        elsewhere = (_memory("cuda") or 0.0) if context.device == "cuda" else 0.0  # also of this process
        arguments = (sizes, str(model), context.device, context.threads, context.scale.steps, settings, elsewhere)
        measured = in_new_process(measure, *arguments) if context.device == "cuda" else measure(*arguments)
        rows = [context.rows.add(one | two) for one, two in zip(identities, measured, strict=True)]
    return Findings([_table(rows)], {"": _picture(rows)})


def measure(
    sizes: tuple[int, ...],
    model: str | Path,
    device: str,
    threads: int | None,
    steps: int,
    settings: dict[str, Any],
    elsewhere: float,
) -> list[Row]:
    """Return median seconds of an iteration and memory in MiB, of searches in this process, one size after another.

    elsewhere: MiB of the GPU that other processes hold.
    """
    found, loaded = [], models.load(model, device)
    for customers in sizes:
        (problem,) = generate("cvrp", customers, seed=SEED_OF_INSTANCES)
        times: list[float] = []

        def note(progress: Progress, times: list[float] = times) -> None:
            times.append(progress.seconds)

        _forget_peak(device)
        result = solve(
            problem, iterations=steps, seed=SEED, solver="nds", preset=PRESET, model=loaded, device=device,
            threads=threads, callback=note, **settings,
        )  # fmt: skip
        held = _memory(device)
        each = median(after - before for before, after in pairwise(times))
        found.append({
            "customers": customers, "seconds_per_iteration": each, "cost": result.cost,
            "memory_mib": None if held is None else held - elsewhere,
            "feasible": result.report.feasible, "reconstructions": result.reconstructions, "seconds": result.seconds,
            "settings": result.settings,
        })  # fmt: skip
    return found


def _memory(device: str) -> float | None:
    """Return the memory of the GPU that is taken, or the peak memory of this process since `_forget_peak`."""
    if device == "cuda":
        import torch

        free, total = torch.cuda.mem_get_info()
        return float(total - free) / 2**20
    return peak_mib()


def _forget_peak(device: str) -> None:
    if device != "cuda":
        with suppress(OSError):  # not Linux, or not allowed: the peak is that of the process
            Path("/proc/self/clear_refs").write_text("5")  # resets the peak to the present memory


def relative(rows: list[Row], field: str) -> list[float | None]:
    """Return the values of a field relative to that of the first row."""
    first = rows[0][field]
    return [None if row[field] is None or not first else row[field] / first for row in rows]


def _table(rows: list[Row]) -> Table:
    times, memory = relative(rows, "seconds_per_iteration"), relative(rows, "memory_mib")
    theirs = published("scalability")
    cells = []
    for row, time, room in zip(rows, times, memory, strict=True):
        printed = [theirs.get((str(row["customers"]), name)) for name in ("time", "memory")]
        cells.append((
            f"{row['customers']:,}", f"{1e3 * row['seconds_per_iteration']:.2f}", _ratio(time),
            _ratio(printed[0].cost if printed[0] else None),
            EMPTY if row["memory_mib"] is None else f"{row['memory_mib']:,.0f}", _ratio(room),
            _ratio(printed[1].cost if printed[1] else None),
        ))  # fmt: skip
    heads = (
        "customers",
        "ms per iteration",
        "relative",
        "published",
        "memory, MiB",
        "relative memory",
        "published memory",
    )
    chains, rollouts = (rows[0]["settings"][name] for name in ("chains", "rollouts"))
    notes = (
        f"CVRP, A = {chains}, K = {rollouts}; memory is that of the GPU in use, or the peak of the process on a CPU",
        f"{SOURCE}, relative to 100 customers",
    )
    return Table("Results", heads, (True,) * len(heads), tuple(cells), notes)


def _ratio(value: float | None) -> str:
    return EMPTY if value is None else f"{value:.2f}"


def _picture(rows: list[Row]) -> Any:
    sizes = [float(row["customers"]) for row in rows]
    lines = []
    for number, (label, field) in enumerate((("time", "seconds_per_iteration"), ("memory", "memory_mib"))):
        values = relative(rows, field)
        if all(value is not None for value in values):
            lines.append(PlotLine(label, sizes, [value or 0.0 for value in values], number))
    for number, label in enumerate(("time", "memory")):
        points = [(float(c), each.cost) for (c, name), each in published("scalability").items() if name == label]
        if all(x in sizes for x, _ in points):
            x, y = [point[0] for point in points], [point[1] for point in points]
            lines.append(PlotLine(f"{label}, published", x, y, number + 2))
    panel = LinePanel("CVRP", lines)
    return plot_line_panels([panel], x_label="customers", y_label=f"relative to {sizes[0]:g}", log_x=True, columns=1)
