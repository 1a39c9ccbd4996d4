"""Checkpoints of a training run: RUN/checkpoint-000000640/, named by the instances trained on so far.

`model.safetensors` and `model.json` are the model for a search. `training.safetensors` and `training.json` hold raw
weights, Adam's moments, the running mean of the weights, counters and the configuration.
"""

import os
import re
import secrets
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ndsvrp.errors import CheckpointError, NdsError, NdsWarning
from ndsvrp.policy import model_file
from ndsvrp.policy.config import NetworkConfig
from ndsvrp.policy.model_file import CHECKPOINT_MODEL, ModelCard
from ndsvrp.records import require_number, require_whole
from ndsvrp.train.config import Recipe, TrainConfig, from_tables

KEPT = 2  #: newest checkpoints that are not deleted

_NAME = re.compile(r"checkpoint-(\d{9,})(~?)")  # ~: being replaced by one of the same name
_TEMPORARY = re.compile(r"\.checkpoint-.*\.tmp")
_COUNTERS = ("batches", "instances", "steps", "seconds")
_PARTS = ("weights", "exp_avg", "exp_avg_sq", "step", "average")

Tensors = dict[str, Tensor]
"""Tensors by the name of the weight."""


@dataclass(eq=False)
class TrainingState:
    """A training run between two batches. All tensors are float32."""

    config: TrainConfig
    batches: int
    instances: int
    steps: int  #: of the optimizer
    seconds: float  #: of training, over all starts of the run
    weights: Tensors
    exp_avg: Tensors  #: Adam's mean of the gradients; empty before the first step
    exp_avg_sq: Tensors  #: Adam's mean of their squares
    step: Tensors  #: Adam's count of steps, scalars
    average: Tensors  #: the running mean of the weights; empty if none is kept

    @property
    def used(self) -> Tensors:
        """The weights of the model: the running mean, if one is kept."""
        return self.average or self.weights


def is_kept(instances: int, recipe: Recipe) -> bool:
    """Return whether this batch is the first to reach a number of instances whose checkpoint is never deleted."""
    return any(0 <= instances - wanted < recipe.batch for wanted in recipe.keep)


def save_checkpoint(run: Path, state: TrainingState, card: ModelCard, model: Tensors | None = None) -> Path:
    """Write a checkpoint atomically and delete those no longer needed. Return its folder.

    `model` holds the weights of the model, if they are not those of the state.
    """
    name = f"checkpoint-{state.instances:09d}"
    final, old = run / name, run / f"{name}~"
    _require_parts({part: getattr(state, part) for part in _PARTS}, state.config.network, str(final))
    temporary = run / f".{name}.{secrets.token_hex(4)}.tmp"
    try:
        temporary.mkdir(parents=True)
        try:
            model_file.save_model(
                temporary / f"{CHECKPOINT_MODEL}.safetensors", state.used if model is None else model, card
            )
            _write_training(temporary, state)
            _sync(temporary)
            if final.exists():  # one of the two exists at every moment
                _delete(old)
                final.rename(old)
            temporary.rename(final)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        _sync(run)
        _prune(run, state.config.train)
    except OSError as error:
        raise CheckpointError(f"{final}: cannot be written ({error.strerror})") from None
    return final


def load_checkpoint(folder: Path) -> TrainingState:
    """Read a checkpoint. Tensors are restored bit by bit."""
    described, stored = folder / "training.json", folder / "training.safetensors"
    table = model_file.read_json(described, model_file.FORMAT)
    model_file.require_fields(table, ("format", "sha256", "config", *_COUNTERS), str(described))
    try:
        _require_counters(table)
        config = from_tables(table["config"], "config")
    except NdsError as error:
        raise CheckpointError(f"{described}: {error}") from None
    parts: dict[str, Tensors] = {part: {} for part in _PARTS}
    for name, tensor in model_file.read_tensors(stored, table["sha256"]).items():
        part, _, weight = name.partition(".")
        if part not in parts:
            raise CheckpointError(f"{stored}: '{name}' begins with none of {', '.join(_PARTS)}")
        parts[part][weight] = tensor
    inputs = model_file.read_model_file(folder / f"{CHECKPOINT_MODEL}.json").card.inputs
    parts = {part: model_file.widen(tensors, inputs, str(stored)) for part, tensors in parts.items()}
    _require_parts(parts, config.network, str(stored))
    state: dict[str, Any] = {**{name: table[name] for name in _COUNTERS}, **parts}
    return TrainingState(config, **state)


def checkpoints(run: Path) -> list[Path]:
    """Return the folders with the name of a checkpoint, the newest last."""
    found = [(match, path) for path in _entries(run) if (match := _NAME.fullmatch(path.name)) and path.is_dir()]
    found.sort(key=lambda entry: (int(entry[0][1]), entry[0][2] == ""))
    return [path for _, path in found]


def newest(run: Path) -> Path:
    """Return the newest intact checkpoint of a run. Warn about each newer one that is damaged."""
    if not run.is_dir():
        raise CheckpointError(f"{run}: no such folder")
    for folder in reversed(checkpoints(run)):
        try:
            model_file.read_weights(model_file.read_model_file(folder / f"{CHECKPOINT_MODEL}.safetensors"))
            load_checkpoint(folder)
        except CheckpointError as error:
            warnings.warn(f"checkpoint left aside: {error}", NdsWarning, stacklevel=2)
        else:
            return folder
    raise CheckpointError(f"{run}: there is no whole checkpoint in this folder")


def _write_training(folder: Path, state: TrainingState) -> None:
    stored = {
        f"{part}.{name}": tensor.detach().to("cpu").contiguous()
        for part in _PARTS
        for name, tensor in getattr(state, part).items()
    }
    counters = {name: getattr(state, name) for name in _COUNTERS}
    model_file.write_tensors(folder / "training.json", stored, {**counters, "config": state.config.as_dict()})


def _require_counters(table: Mapping[str, Any]) -> None:
    if not isinstance(table["sha256"], str):
        raise NdsError(f"sha256 must be text, got {table['sha256']!r}")
    if not isinstance(table["config"], dict):
        raise NdsError("config must be a table")
    for name in _COUNTERS:
        (require_number if name == "seconds" else require_whole)(name, table[name])
        if not table[name] >= 0:
            raise NdsError(f"{name} must not be negative, got {table[name]}")


def _require_parts(parts: Mapping[str, Tensors], network: NetworkConfig, where: str) -> None:
    """Raise unless the weights fit the network and the other parts fit the weights. Adam and the mean may be empty."""
    weights = parts["weights"]
    model_file.require_weights(weights, network, torch.float32, where)
    for part in _PARTS[1:]:
        if part != "average" and parts[part].keys() != parts["exp_avg"].keys():
            raise CheckpointError(f"{where}: '{part}' is not there for the same weights as 'exp_avg'")
        for name, tensor in parts[part].items():
            if name not in weights:
                raise CheckpointError(f"{where}: '{part}.{name}' belongs to no weight")
            shape = torch.Size() if part == "step" else weights[name].shape
            if tensor.shape != shape:
                raise CheckpointError(f"{where}: '{part}.{name}' has shape {list(tensor.shape)}, not {list(shape)}")
            model_file.require_numbers(tensor, torch.float32, f"{where}: '{part}.{name}'")
    if parts["average"] and parts["average"].keys() != weights.keys():
        raise CheckpointError(f"{where}: 'average' is not there for every weight")


def _prune(run: Path, recipe: Recipe) -> None:
    """Delete all checkpoints except the newest and those to keep, and temporary files of killed runs."""
    found = checkpoints(run)
    current = [folder for folder in found if not folder.name.endswith("~")]
    for folder in found:
        wanted = folder in current and is_kept(int(folder.name.removeprefix("checkpoint-")), recipe)
        if folder not in current[-KEPT:] and not wanted:
            _delete(folder)
    for path in _entries(run):
        if _TEMPORARY.fullmatch(path.name):
            shutil.rmtree(path)


def _delete(folder: Path) -> None:
    """Rename a folder, then delete it, so that a kill does not leave half of it under its name."""
    if folder.exists():
        doomed = folder.with_name(f".{folder.name}.tmp")
        shutil.rmtree(doomed, ignore_errors=True)
        folder.rename(doomed)
        shutil.rmtree(doomed)


def _entries(run: Path) -> list[Path]:
    return sorted(run.iterdir()) if run.is_dir() else []


def _sync(folder: Path) -> None:
    """Flush a folder, so that the names of its files survive a crash of the machine."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
