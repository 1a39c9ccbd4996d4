"""A training run: from a configuration to checkpoints, with validation and a log."""

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from ndsvrp.engine.base import Engine
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.errors import CheckpointError, EngineError, NdsError, NdsWarning
from ndsvrp.io.environment import environment, usable_cores
from ndsvrp.models import find
from ndsvrp.policy.config import NetworkConfig
from ndsvrp.policy.model_file import Ancestor, ModelCard, ModelFile, load_model, read_model_file
from ndsvrp.policy.network import Network
from ndsvrp.policy.rollout import torch_threads
from ndsvrp.train.checkpoint import TrainingState, checkpoints, is_kept, load_checkpoint, newest, save_checkpoint
from ndsvrp.train.config import TrainConfig
from ndsvrp.train.log import Log
from ndsvrp.train.own_instances import Own, read_own
from ndsvrp.train.processes import Process, agreed, joined
from ndsvrp.train.selection import Selection
from ndsvrp.train.trainer import Trainer

Report = Callable[[str, dict[str, Any]], None]
"""Receive every row of the log: its kind and its contents."""


@dataclass(frozen=True)
class Outcome:
    """The end of a run."""

    checkpoint: Path
    leads: bool  #: whether this process writes files and messages
    stopped: str  #: `instances`, `time` or `interrupted`
    validation: dict[str, Any]
    signal: int = 0  #: that interrupted this process; 0: none


def train(
    config: TrainConfig, out: Path, *, seconds: float | None = None, resume: bool = False, init: str = "",
    device: str = "auto", threads: int | None = None, report: Report = lambda kind, row: None,
) -> Outcome:  # fmt: skip
    """Train until the configured number of instances is reached, the time is over, or Ctrl-C is pressed.

    The run ends after a whole batch. With `seconds`, it ends before a batch that would not fit together with the last
    validation, judged by earlier ones. `resume` continues from the newest intact checkpoint in `out`; on a CPU the
    trajectory is that of an uninterrupted run.
    """
    began = perf_counter()
    cores = threads or max(1, usable_cores() // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    with joined(device) as process, _asked_to_end() as asked, torch_threads(cores), ExitStack() as ending:
        trainer, origin = _trainer(config, out, process, cores, resume, init)
        ending.callback(trainer.close)
        log = Log(out) if process.leads else None
        if log is not None:
            ending.callback(log.close)

        def tell(kind: str, row: dict[str, Any]) -> None:
            if log is not None:
                log.write(kind, row)
                report(kind, row)

        tell("run", {
            "command": [Path(sys.argv[0]).name, *sys.argv[1:]], **environment(),
            "device": _name(process.device), "engine": trainer.engine.name, "processes": process.processes,
            "threads": cores, "resumed": resume, "init": origin.init, **_counters(trainer), "config": config.as_dict(),
        })  # fmt: skip
        run = _Run(trainer, process, out, origin, tell, origin.seconds - began)
        if process.leads:
            run.selection = Selection(config, trainer.engine, process.device, cores, trainer.own, origin.kept)
            run.validate()  # before the first batch, as a baseline
            run.measure_start()
        batch_seconds = 0.0

        def ended() -> str | None:
            left = inf if seconds is None else seconds - (perf_counter() - began)
            if trainer.instances >= config.train.instances:
                return "instances"
            if agreed(process, asked() > 0):
                return "interrupted"
            return "time" if agreed(process, left < 1.1 * batch_seconds + run.end_seconds) else None

        stopped = "instances" if trainer.instances >= config.train.instances else None
        while stopped is None:
            tick = perf_counter()
            tell("batch", {**_train_batch(trainer), "trained_seconds": run.trained()})
            batch_seconds = max(0.9 * batch_seconds, perf_counter() - tick)
            run.after_batch()
            stopped = ended()
        return replace(run.end(stopped), signal=asked())


class _Run:
    """Validation and checkpoints of a run, made by the leading process."""

    def __init__(
        self, trainer: Trainer, process: Process, out: Path, origin: "_Origin", tell: Report, clock_shift: float
    ) -> None:
        self.trainer, self.process, self.out, self.origin, self.tell = trainer, process, out, origin, tell
        self.selection: Selection | None = None
        self.saved_at = perf_counter()
        self.saved: Path | None = None
        self.end_seconds = 0.0  #: expected duration of the last validation
        self._clock_shift = clock_shift
        self._validated: int | None = None  # batches trained on when the last validation was made
        self._start_seconds = 0.0  # that searches on held back instances take

    def trained(self) -> float:
        """Return the seconds of training, over all starts of the run."""
        return perf_counter() + self._clock_shift

    def after_batch(self) -> None:
        """Validate and save a checkpoint, if it is time. A checkpoint has the figures of its own weights."""
        recipe, every = self.trainer.config.train, self.trainer.config.validation.every
        goes_on = self.trainer.instances < recipe.instances
        due = perf_counter() - self.saved_at >= recipe.checkpoint_seconds or is_kept(self.trainer.instances, recipe)
        if goes_on and (due or (every and self.trainer.batches % every == 0)):
            self.validate()
        if due:
            self.save()

    def validate(self) -> None:
        """Measure the weights of the model, unless this was done after the last batch, and log the figures."""
        if self.selection is not None and self._validated != self.trainer.batches:
            tick = perf_counter()
            figures = self.selection.measure(self.trainer.average, self.trainer.instances)
            self.tell("validation", {**_counters(self.trainer), "trained_seconds": self.trained(), **figures})
            self.end_seconds = perf_counter() - tick + self._start_seconds
            self._validated = self.trainer.batches

    def measure_start(self) -> None:
        """Search held back instances with the first weights, if that was not done in an earlier start of the run."""
        if self.selection is not None:
            self._start_seconds = self.selection.measure_start(self.trainer.average)
            self.end_seconds += self._start_seconds

    def save(self) -> float:
        """Write a checkpoint. Return the seconds of training in it."""
        seconds = self.trained()
        if self.selection is not None:
            state = capture(self.trainer, seconds)
            card = _card(state, self.origin, _name(self.process.device), self.selection.figures)
            self.saved = save_checkpoint(self.out, state, card, self.selection.weights)
        self.saved_at = perf_counter()
        return seconds

    def end(self, stopped: str) -> Outcome:
        """Validate and write the last checkpoint. A first one is written before, in case the process is killed."""
        self.save()
        self.validate()
        if self.selection is not None and self.selection.measure_end(self.trainer.average):
            gain = {"held_back": self.selection.figures["held_back"], "trained_seconds": self.trained()}
            self.tell("gain", {**_counters(self.trainer), **gain})
        seconds = self.save()
        self.tell("end", {"stopped": stopped, **_counters(self.trainer), "trained_seconds": seconds})
        figures = {} if self.selection is None else self.selection.figures
        return Outcome(self.saved or self.out, self.process.leads, stopped, figures)


def capture(trainer: Trainer, seconds: float) -> TrainingState:
    """Return everything that a run resumes from."""
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
    """Set a trainer to the state that `capture` returned."""
    trainer.network.load_state_dict(state.weights)
    if trainer.average is not trainer.network:  # a new running mean begins with the current weights
        trainer.average.load_state_dict(state.average or state.weights)
    restore_optimizer(trainer, state)
    trainer.batches, trainer.instances, trainer.steps = state.batches, state.instances, state.steps


def restore_optimizer(trainer: Trainer, state: TrainingState) -> None:
    """Set Adam's moments and counts of steps to those of a state."""
    for name, parameter in trainer.network.named_parameters():
        if name in state.exp_avg:
            held = {part: getattr(state, part)[name] for part in ("step", "exp_avg", "exp_avg_sq")}
            here = {part: tensor.to(parameter.device, copy=True) for part, tensor in held.items()}
            trainer.optimizer.state[parameter] = here


@dataclass(frozen=True)
class _Origin:
    """Where a run comes from: a model, or its own checkpoint."""

    init: str = ""  #: as in `ModelCard`
    lineage: tuple[Ancestor, ...] = ()
    seconds: float = 0.0  #: of training in earlier starts of the run
    kept: ModelFile | None = None  #: the model of the checkpoint, if its figures compare with those to come


def _trainer(
    config: TrainConfig, out: Path, process: Process, cores: int, resume: bool, init: str
) -> tuple[Trainer, _Origin]:
    """Return a new or resumed trainer, and where it comes from."""
    torch.manual_seed(config.train.seed)
    network = Network(config.network)
    engine = _engine(config, process, cores)

    def made(own: Own) -> Trainer:
        return Trainer(config, network, engine, process.device, process.rank, process.processes, cores, own)

    if resume:
        if init:
            raise NdsError("a run that is resumed has weights already: --init is for a new one")
        folder = newest(out)
        state = load_checkpoint(folder)
        _compare(config, state.config, folder)
        trainer = made(read_own(config))
        restore(trainer, state)
        model = read_model_file(folder)
        kept = model if _measures_alike(config, state.config) else None
        return trainer, _Origin(model.card.init, model.card.lineage, state.seconds, kept)
    if checkpoints(out):
        raise NdsError(f"{out} holds a run already: go on with --resume {out}, or choose another --out")
    initial, origin = _load_initial(config, network, init or config.train.init)
    trainer = made(read_own(config))
    if initial is not None:
        restore_optimizer(trainer, initial)
    return trainer, origin


def _load_initial(config: TrainConfig, network: Network, origin: str) -> tuple[TrainingState | None, _Origin]:
    """Load initial weights. Return the state with the optimizer to continue, if any, and the origin of the weights."""
    if not origin:
        if config.train.init_optimizer:
            raise NdsError("init_optimizer is for a run from a checkpoint: give one as init or by --init")
        return None, _Origin()
    weights, _ = load_model(find(origin))
    _require_same_network(weights.config, config.network, origin)
    network.load_state_dict(weights.state_dict())
    file, state = read_model_file(find(origin)), None
    if config.train.init_optimizer:
        if not (file.weights.parent / "training.json").exists():
            raise CheckpointError(f"{origin}: holds weights alone, but init_optimizer asks for an optimizer state")
        state = load_checkpoint(file.weights.parent)
    return state, _Origin(file.origin, file.descent())


def _engine(config: TrainConfig, process: Process, cores: int) -> Engine:
    """Return an engine on the device of the network. Only related removal reads the neighbour lists: they are short."""
    if process.device.type == "cuda":
        return CudaEngine(neighbours=config.train.removals)
    return CpuEngine(threads=cores, neighbours=config.train.removals)


def _compare(config: TrainConfig, before: TrainConfig, folder: Path) -> None:
    _require_same_network(before.network, config.network, folder)
    if config.train.batch != before.train.batch:
        raise CheckpointError(f"{folder}: batches of {before.train.batch} instances there, {config.train.batch} here")
    if config != before:
        message = "the configuration differs from that of the checkpoint: the run goes on by the new one"
        warnings.warn(message, NdsWarning, stacklevel=2)


def _measures_alike(config: TrainConfig, before: TrainConfig) -> bool:
    """Return whether validation gives figures that can be compared with those of another configuration."""
    searched = ("rollouts", "removals", "orders", "scope")
    same = all(getattr(config.train, name) == getattr(before.train, name) for name in searched)
    return same and (config.validation, config.data) == (before.validation, before.data)


def _require_same_network(there: NetworkConfig, here: NetworkConfig, where: str | Path) -> None:
    for name, value in vars(there).items():
        if value != getattr(here, name):
            difference = f"{name} is {value} there and {getattr(here, name)} here"
            raise CheckpointError(f"{where}: its network is another one: {difference}")


def _card(state: TrainingState, origin: _Origin, device: str, figures: dict[str, Any]) -> ModelCard:
    sources = [replace(source, files=Path(source.files).name) for source in state.config.data]  # no paths of the user
    return ModelCard(
        network=state.config.network, problems=tuple(sorted({source.problem for source in sources})),
        sizes=tuple(sorted({size for source in sources for size in source.customers})),
        training=replace(state.config, data=tuple(sources)).as_dict(), commit=environment()["commit"] or "",
        instances=state.instances,
        steps=state.steps, seconds=state.seconds, init=origin.init, validation=figures, device=device,
        lineage=origin.lineage,
    )  # fmt: skip


def _name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


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
    return {"batches": trainer.batches, "instances": trainer.instances, "steps": trainer.steps}


@contextmanager
def _asked_to_end() -> Iterator[Callable[[], int]]:
    """Yield a function that returns the signal, Ctrl-C or SIGTERM, that has asked for an end after the batch, or 0.

    A second signal ends the run at once, without a checkpoint.
    """
    asked = 0

    def handle(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = number

    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            before[number] = signal.signal(number, handle)
        except ValueError:  # signals can be handled in the main thread only
            break
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
