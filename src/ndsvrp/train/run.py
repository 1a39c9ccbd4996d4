"""A training run from its configuration to its checkpoints: the wiring."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from ndsvrp.engine.base import Engine
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.errors import CheckpointError, EngineError, NdsError, NdsWarning
from ndsvrp.io.environment import environment, usable_cores
from ndsvrp.models import find
from ndsvrp.policy.model_file import ModelCard, load_model, read_model_file
from ndsvrp.policy.network import Network
from ndsvrp.policy.rollout import torch_threads
from ndsvrp.train.checkpoint import TrainingState, checkpoints, is_kept, load_checkpoint, newest, save_checkpoint
from ndsvrp.train.config import TrainConfig
from ndsvrp.train.log import Log
from ndsvrp.train.processes import Place, agreed, joined
from ndsvrp.train.trainer import Trainer
from ndsvrp.train.validation import Validator

Report = Callable[[str, dict[str, Any]], None]
"""Told of every row of the log: its kind and what it says."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    checkpoint: Path
    leads: bool  #: whether this process is the one that speaks
    stopped: str  #: `instances`, `time` or `interrupted`
    validation: dict[str, Any]


def train(
    config: TrainConfig,
    out: Path,
    *,
    seconds: float | None = None,
    resume: bool = False,
    init: str = "",
    device: str = "auto",
    threads: int | None = None,
    report: Report = lambda kind, row: None,
) -> Outcome:
    """Train until the configured number of instances is reached, or time is up, or Ctrl-C asks for an end.

    The run ends after a whole batch: before one that would not fit into `seconds` any more together with the last
    validation, judged by those before.
    `resume` goes on from the newest whole checkpoint in `out`, on a CPU along the very same trajectory.
    """
    began = perf_counter()
    cores = threads or max(1, usable_cores() // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    with joined(device) as place, _asked_to_end() as asked, torch_threads(cores), ExitStack() as ending:
        trainer, earlier, origin = _trainer(config, out, place, cores, resume, init)
        ending.callback(trainer.close)
        log = Log(out) if place.leads else None

        def tell(kind: str, row: dict[str, Any]) -> None:
            if log is not None:
                log.write(kind, row)
                report(kind, row)

        tell("run", {
            "command": [Path(sys.argv[0]).name, *sys.argv[1:]], **environment(),
            "device": _device_name(place), "engine": trainer.engine.name,
            "processes": place.processes, "threads": cores, "resumed": resume, "init": origin,
            **_counters(trainer), "config": config.as_dict(),
        })  # fmt: skip
        run = _Run(trainer, place, out, origin, tell, earlier - began)
        if place.leads:
            run.validator = Validator(config, trainer.engine, place.device, cores)
            run.validate()  # before the first batch: what all later figures are compared to
        batch_seconds = 0.0
        stopped = "instances" if trainer.instances >= config.train.instances else None
        while stopped is None:
            tick = perf_counter()
            tell("batch", {**_train_batch(trainer), "trained_seconds": run.trained()})
            batch_seconds = max(0.9 * batch_seconds, perf_counter() - tick)
            run.after_batch()
            left = inf if seconds is None else seconds - (perf_counter() - began)
            if trainer.instances >= config.train.instances:
                stopped = "instances"
            elif agreed(place, asked()):
                stopped = "interrupted"
            elif agreed(place, left < 1.1 * batch_seconds + run.end_seconds):
                stopped = "time"
        return run.end(stopped, log)


class _Run:
    """Validation and checkpoints around the trainer, by the leading process."""

    def __init__(
        self, trainer: Trainer, place: Place, out: Path, origin: str, tell: Report, clock_shift: float
    ) -> None:
        self.trainer, self.place, self.out, self.origin, self.tell = trainer, place, out, origin, tell
        self.validator: Validator | None = None
        self.figures: dict[str, Any] = {}
        self.saved_at = perf_counter()
        self.saved: Path | None = None
        self.end_seconds = 0.0  #: that the last validation will take
        self._clock_shift = clock_shift

    def trained(self) -> float:
        """Seconds of training, earlier sittings counted in."""
        return perf_counter() + self._clock_shift

    def after_batch(self) -> None:
        """What is due now and then."""
        recipe, every = self.trainer.config.train, self.trainer.config.validation.every
        done = self.trainer.instances >= recipe.instances
        if every and self.trainer.batches % every == 0 and not done:
            self.validate()
        due = perf_counter() - self.saved_at >= recipe.checkpoint_seconds
        if due or is_kept(self.trainer.instances, recipe):
            self.save()

    def validate(self) -> None:
        """Measure the weights one would use."""
        if self.validator is not None:
            tick = perf_counter()
            self.figures = self.validator.measure(self.trainer.average)
            self.tell("validation", {**_counters(self.trainer), "trained_seconds": self.trained(), **self.figures})
            self.end_seconds = perf_counter() - tick

    def save(self) -> float:
        """Write a checkpoint. Returns the seconds of training that it holds."""
        seconds = self.trained()
        if self.place.leads:
            state = capture(self.trainer, seconds)
            self.saved = save_checkpoint(self.out, state, _card(state, self.origin, self.figures))
        self.saved_at = perf_counter()
        return seconds

    def end(self, stopped: str, log: Log | None) -> Outcome:
        """The last figures, the last checkpoint; which is written first, as whoever asked to end may not wait long."""
        self.save()
        self.validate()
        seconds = self.save()
        self.tell("end", {"stopped": stopped, **_counters(self.trainer), "trained_seconds": seconds})
        if log is not None:
            log.close()
        return Outcome(self.saved or self.out, self.place.leads, stopped, self.figures)


def capture(trainer: Trainer, seconds: float) -> TrainingState:
    """All that a run resumes from."""
    names: dict[torch.Tensor, str] = {parameter: name for name, parameter in trainer.network.named_parameters()}
    moments: dict[str, dict[str, torch.Tensor]] = {"exp_avg": {}, "exp_avg_sq": {}, "step": {}}
    for parameter, held in trainer.optimizer.state.items():
        for part, tensors in moments.items():
            tensors[names[parameter]] = held[part]
    average = {} if trainer.average is trainer.network else trainer.average.state_dict()
    return TrainingState(
        trainer.config, trainer.batches, trainer.instances, trainer.steps, seconds,
        weights=trainer.network.state_dict(), average=average, **moments,
    )  # fmt: skip


def restore(trainer: Trainer, state: TrainingState) -> None:
    """The opposite of `capture`."""
    trainer.network.load_state_dict(state.weights)
    if trainer.average is not trainer.network:  # a mean that was not kept before begins with the weights as they are
        trainer.average.load_state_dict(state.average or state.weights)
    for name, parameter in trainer.network.named_parameters():
        if name in state.exp_avg:
            held = {part: getattr(state, part)[name] for part in ("step", "exp_avg", "exp_avg_sq")}
            trainer.optimizer.state[parameter] = {
                part: tensor.to(parameter.device, copy=True) for part, tensor in held.items()
            }
    trainer.batches, trainer.instances, trainer.steps = state.batches, state.instances, state.steps


def _trainer(
    config: TrainConfig, out: Path, place: Place, cores: int, resume: bool, init: str
) -> tuple[Trainer, float, str]:
    """The trainer, at its beginning or where it was left; seconds trained before; where the weights came from."""
    torch.manual_seed(config.train.seed)
    network = Network(config.network)
    engine = _engine(config, place, cores)

    def made() -> Trainer:
        return Trainer(config, network, engine, place.device, place.rank, place.processes, cores)

    if resume:
        if init:
            raise NdsError("a run that is resumed has weights already: --init is for a new one")
        folder = newest(out)
        state = load_checkpoint(folder)
        _compare(config, state.config, folder)
        trainer = made()
        restore(trainer, state)
        return trainer, state.seconds, read_model_file(folder).card.init
    if checkpoints(out):
        raise NdsError(f"{out} holds a run already: go on with --resume {out}, or choose another --out")
    origin = init or config.train.init
    if origin:
        weights, _ = load_model(find(origin))
        if weights.config != config.network:
            raise CheckpointError(
                f"{origin}: its network is another one: {_difference(weights.config, config.network)}"
            )
        network.load_state_dict(weights.state_dict())
        file = read_model_file(find(origin))
        origin = f"{Path(file.name).name} (sha256 {file.sha256[:12]})"
    return made(), 0.0, origin


def _engine(config: TrainConfig, place: Place, cores: int) -> Engine:
    """Where the network is. Lists of few neighbours will do: nothing but related removal reads them."""
    if place.device.type == "cuda":
        from ndsvrp.engine.cuda import CudaEngine

        return CudaEngine(neighbours=config.train.removals)
    return CpuEngine(threads=cores, neighbours=config.train.removals)


def _compare(config: TrainConfig, before: TrainConfig, folder: Path) -> None:
    if config.network != before.network:
        difference = _difference(before.network, config.network)
        raise CheckpointError(f"{folder}: its network is another one: {difference}")
    if config.train.batch != before.train.batch:
        raise CheckpointError(f"{folder}: batches of {before.train.batch} instances there, {config.train.batch} here")
    if config != before:
        warnings.warn(
            "the configuration differs from that of the checkpoint: the run goes on by the new one",
            NdsWarning, stacklevel=2,
        )  # fmt: skip


def _difference(there: Any, here: Any) -> str:
    """The first field in which two records differ."""
    name = next(name for name in vars(there) if getattr(there, name) != getattr(here, name))
    return f"{name} is {getattr(there, name)} there and {getattr(here, name)} here"


def _card(state: TrainingState, origin: str, figures: dict[str, Any]) -> ModelCard:
    sources = state.config.data
    return ModelCard(
        network=state.config.network,
        problems=tuple(sorted({source.problem for source in sources})),
        sizes=tuple(sorted({size for source in sources for size in source.customers})),
        training=state.config.as_dict(),
        commit=environment()["commit"] or "",
        instances=state.instances,
        steps=state.steps,
        seconds=state.seconds,
        init=origin,
        validation=figures,
    )


def _train_batch(trainer: Trainer) -> dict[str, Any]:
    try:
        return trainer.train_batch()
    except torch.cuda.OutOfMemoryError:
        recipe, largest = trainer.config.train, max(max(source.customers) for source in trainer.config.data)
        most = min(recipe.batch * largest, recipe.batch_customers or recipe.batch * largest)
        raise EngineError(
            f"a batch does not fit into the GPU's memory: it may have up to {most:,} customers in all; "
            f"try --set train.batch_customers={most // 2}"
        ) from None


def _counters(trainer: Trainer) -> dict[str, int]:
    return {
        "batches": trainer.batches,
        "instances": trainer.instances,
        "steps": trainer.steps,
    }


def _device_name(place: Place) -> str:
    return torch.cuda.get_device_name(place.device) if place.device.type == "cuda" else "cpu"


@contextmanager
def _asked_to_end() -> Iterator[Callable[[], bool]]:
    """Ctrl-C, or a plain kill, ends the run after the batch; a second one at once, back to the last checkpoint."""
    asked = False

    def handle(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            before[number] = signal.signal(number, handle)
        except ValueError:  # not in the main thread: nobody presses keys here
            break
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
