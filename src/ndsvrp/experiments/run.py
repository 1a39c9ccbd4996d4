"""Run experiments: compute the findings, write tables and pictures."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ndsvrp import models
from ndsvrp.bench.report.formats import to_markdown
from ndsvrp.errors import NdsError
from ndsvrp.experiments.catalogue import EXPERIMENTS, Experiment
from ndsvrp.experiments.context import BASELINES, CONFIGS, Context, Findings
from ndsvrp.experiments.scales import SCALES, Scale
from ndsvrp.generate.config import choose
from ndsvrp.io.files import exists, write_atomic
from ndsvrp.plot.style import write

TABLE = "table.md"
PICTURES = (".svg", ".png")


def run(
    names: Sequence[str], scale: str, out: Path, *, device: str = "cpu", threads: int | None = None, jobs: int = 0,
    baselines: Sequence[str] = BASELINES, models_folder: Path | None = None, configs: Path = CONFIGS,
    tell: Callable[[str], None] = lambda line: None,
) -> list[Path]:  # fmt: skip
    """Run experiments one after another. Return their folders, with rows, a table and pictures each.

    Runs and trainings that are in `out` are not repeated. If one of several experiments fails, those after it are run,
    and its error is raised at the end.
    """
    for what, given, known in (
        ("experiment", names, tuple(EXPERIMENTS)), ("scale", [scale], tuple(SCALES)), ("baseline", baselines, BASELINES)
    ):  # fmt: skip
        for name in given:
            choose(what, name, known)
    _require_folders(SCALES[scale], models_folder, configs)
    loaded: dict[str, models.Model] = {}
    folders, errors = [], []
    for name in names:
        began = time.perf_counter()
        tell(f"{name}: {EXPERIMENTS[name].text}")
        try:
            context = Context(
                SCALES[scale], out, name, device, threads or SCALES[scale].threads, jobs, baselines, models_folder,
                configs, tell, loaded,
            )  # fmt: skip
            _write(context, EXPERIMENTS[name], EXPERIMENTS[name].load()(context))
        except Exception as error:
            if len(names) == 1:
                raise
            tell(f"{name} failed: {error}")
            errors.append(error)
            continue
        tell(f"{name}: {time.perf_counter() - began:.1f} s, {context.folder / TABLE}")
        folders.append(context.folder)
    if errors:
        raise errors[0]
    return folders


def _require_folders(scale: Scale, models_folder: Path | None, configs: Path) -> None:
    """Raise for folders that are not there, before hours of searches by others."""
    if models_folder is not None and not exists(models_folder):
        raise NdsError(f"--models: {models_folder}: no such folder")
    trains = scale.training is None and models_folder is None
    if not exists(configs) and (trains or configs != CONFIGS):
        hint = "run in a checkout, or give --configs or --models"
        raise NdsError(f"--configs: {configs}: no such folder; the scale paper trains by it ({hint})")


def _write(context: Context, experiment: Experiment, findings: Findings) -> None:
    text = _head(experiment, context.scale) + to_markdown(findings.tables)
    write_atomic(context.folder / TABLE, text.encode())
    for end, figure in findings.figures.items():
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # the layout is computed once for both files
        for suffix in PICTURES:
            write(figure, context.folder / f"{experiment.name}{end}{suffix}")


def _head(experiment: Experiment, scale: Scale) -> str:
    text = f"{experiment.text[0].upper()}{experiment.text[1:]}.\nScale {scale.name}: {scale.text}."
    return f"# {experiment.name}\n\n{text}\n\n"
