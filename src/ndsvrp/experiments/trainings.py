"""The policies that experiments train, or take from a folder of the user, or from the package."""

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ndsvrp import models
from ndsvrp.bench.rows import Row
from ndsvrp.errors import NdsError
from ndsvrp.experiments.context import Context
from ndsvrp.experiments.scales import MIDDLE, PROBLEMS, ShortTraining
from ndsvrp.experiments.sets import DISTRIBUTIONS
from ndsvrp.io.files import exists, read_text
from ndsvrp.problem import Problem
from ndsvrp.train.checkpoint import checkpoints
from ndsvrp.train.config import Source, TrainConfig, read_config
from ndsvrp.train.log import LOG
from ndsvrp.train.run import train

ALL = "all"  #: in place of a problem: one policy for the three of them
MIXED = "mixed-medium"  #: the distribution of the policy that is tested on others
WITHOUT: dict[str, dict[str, Any]] = {
    "message-passing": {"message_passing": False}, "tour-encoding": {"tour_encoding": False},
    "both": {"message_passing": False, "tour_encoding": False}, "improvement": {},
}  # fmt: skip
"""The ablations: what is missing, and the network without it."""
_KEPT = {"ablations": "checkpoint-001500032", 2000: "checkpoint-002250048"}  # epochs 1000 and 1500, in whole batches


@dataclass(frozen=True)
class Training:
    """A policy: problem and size, and what sets it apart. Its name is that of its configuration in configs/paper."""

    problem: str
    size: int = MIDDLE
    without: str = ""  #: one of WITHOUT
    distribution: str = ""  #: one of DISTRIBUTIONS, or MIXED

    @property
    def name(self) -> str:
        """Name of its configuration and of its folder."""
        if self.distribution:
            return f"generalization/{self.distribution}"
        if self.without:
            return f"ablations/{self.problem}-without-{self.without}"
        return f"{self.problem}-{self.size}"


def reference(context: Context, problem: str, size: int = MIDDLE, without: str = "") -> Training:
    """Return the policy for a problem; a short training is for all problems at once."""
    return Training(problem if context.scale.training is None else ALL, size, without)


def policy(context: Context, problem: Problem, name: str, size: int) -> str | Path:
    """Return the model for a problem and a size of the paper: given, or shipped where trainings are short."""
    training = Training(name, size)
    if (given := _given(context, training)) is not None:
        return given
    if context.scale.training is None:
        return trained(context, training)
    shipped = models.choose(problem)
    if shipped is None:
        raise NdsError(f"no model for {name.upper()} is shipped with this version; give one (--models FOLDER)")
    return shipped


def trained(context: Context, training: Training, *, early: bool = False) -> Path:
    """Return the model of a training, which is run or resumed if need be.

    early: after 1,000 epochs, as the references of the ablations; a short training has no epochs.
    """
    folder = _given(context, training) or _run(context, training)
    if not early or context.scale.training is not None:
        return folder
    kept = folder / _KEPT["ablations"]
    if not exists(kept):
        context.tell(f"{folder}: no {kept.name}, the model after 1,000 epochs; the last one stands for it")
        return folder
    return kept


def log_of(context: Context, training: Training) -> list[Row]:
    """Return the rows of the log of a finished training, those of an earlier start from scratch left out."""
    rows = _log_rows(trained(context, training) / LOG)
    fresh = [i for i, row in enumerate(rows) if row["kind"] == "run" and not row["resumed"]]
    return rows[fresh[-1] if fresh else 0 :]


def _given(context: Context, training: Training) -> Path | None:
    """Return the model of this name in the folder of the user, if there is one."""
    if context.given is None:
        return None
    for path in (context.given / training.name, context.given / f"{training.name}.safetensors"):
        if exists(path):
            return path
    return None


def _run(context: Context, training: Training) -> Path:
    folder = context.trained / training.name
    if _is_finished(folder):
        return folder
    short = context.scale.training
    config = _paper_config(context, training) if short is None else short_config(training, short, context)
    context.tell(f"training {training.name}")
    init = ""
    if short is None and training.size == 2000:  # from the weights of 1000 customers after 1,500 epochs
        init = str(_run(context, replace(training, size=1000)) / _KEPT[2000])
    resume = bool(checkpoints(folder))
    outcome = train(
        replace(config, train=replace(config.train, init="")), folder, resume=resume,
        init="" if resume else init, device=context.device, threads=context.threads,
    )  # fmt: skip
    if outcome.stopped == "interrupted":
        raise KeyboardInterrupt
    return folder


def _is_finished(folder: Path) -> bool:
    file = folder / LOG
    if not checkpoints(folder) or not exists(file):
        return False
    rows = _log_rows(file)
    return bool(rows and rows[-1]["kind"] == "end" and rows[-1]["stopped"] != "interrupted")


def _log_rows(file: Path) -> list[Row]:
    """Return the rows of a log. Lines that a crash left incomplete are skipped: the run resumed from a checkpoint."""
    rows = []
    for line in read_text(file).splitlines():
        with suppress(json.JSONDecodeError):
            rows.append(json.loads(line))
    return rows


def _paper_config(context: Context, training: Training) -> TrainConfig:
    file = context.configs / f"{training.name}.toml"
    if not exists(file):
        hint = "run in a checkout, or give --configs or --models"
        raise NdsError(f"{file}: no such configuration, and the scale paper trains by it ({hint})")
    return read_config(file)


def short_config(training: Training, short: ShortTraining, context: Context) -> TrainConfig:
    """Return the configuration of a short training."""
    customers = (context.scale.customers[training.size],)
    steps: dict[str, Any] = {"improvement_steps": 0} if training.without == "improvement" else {}
    if training.distribution:
        sources = _distribution(training.distribution, customers)
    else:
        problems = PROBLEMS if training.problem == ALL else (training.problem,)
        sources = tuple(Source(problem=problem, customers=customers) for problem in problems)
    shown = not training.distribution and training.without in ("", "improvement")
    validation = short.validation if shown else replace(short.validation, every=0, search_instances=0)
    return TrainConfig(
        network=replace(short.network, **WITHOUT.get(training.without, {})), train=replace(short.recipe, **steps),
        validation=validation, data=sources,
    )  # fmt: skip


def _distribution(name: str, customers: tuple[int, ...]) -> tuple[Source, ...]:
    """Return the sources of a distribution; of MIXED both layouts, with 8 to 12 customers per route."""
    kinds = [("uniform", (8, 12)), ("clustered", (8, 12))] if name == MIXED else [DISTRIBUTIONS[name]]
    return tuple(
        Source(
            problem="cvrp", customers=customers, layout=layout, depot="random" if layout == "clustered" else "",
            customers_per_route=per_route,
        )
        for layout, per_route in kinds
    )  # fmt: skip
