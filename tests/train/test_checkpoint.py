"""Checkpoints of training runs: bit by bit what was saved, whole or not at all, and the last good one is found."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import multiprocessing
import shutil
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from ndsvrp.errors import CheckpointError, NdsWarning
from ndsvrp.policy.model_file import load_model, read_model_file
from ndsvrp.train import checkpoint
from ndsvrp.train.checkpoint import TrainingState, checkpoints, is_kept, load_checkpoint, newest, save_checkpoint
from ndsvrp.train.config import Recipe, TrainConfig
from tiny_models import TINY, tiny_card, tiny_network

PARTS = ("weights", "exp_avg", "exp_avg_sq", "step", "average")


def state_after(instances: int, *, average: float = 0.9, keep: tuple[int, ...] = ()) -> TrainingState:
    """Two real steps of Adam, so that its numbers are not round."""
    network = tiny_network(seed=instances)
    mean = {name: 0.9 * tensor.clone() for name, tensor in network.state_dict().items()}
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    for factor in (1.0, 0.3):
        optimizer.zero_grad()
        sum((factor * p.square()).sum() + p.sum() for p in network.parameters()).backward()
        optimizer.step()
    adam = {name: optimizer.state[weight] for name, weight in network.named_parameters()}
    return TrainingState(
        config=TrainConfig(network=TINY, train=Recipe(average=average, keep=keep)),
        batches=instances // 64,
        instances=instances,
        steps=2,
        seconds=12.25,
        weights=network.state_dict(),
        exp_avg={name: values["exp_avg"] for name, values in adam.items()},
        exp_avg_sq={name: values["exp_avg_sq"] for name, values in adam.items()},
        step={name: values["step"] for name, values in adam.items()},
        average=mean if average else {},
    )


def save(run: Path, instances: int, **changes: Any) -> Path:
    return save_checkpoint(run, state_after(instances, **changes), tiny_card(instances=instances))


def bits(state: TrainingState) -> dict[str, bytes]:
    return {
        f"{part}.{name}": tensor.detach().numpy().tobytes()
        for part in PARTS
        for name, tensor in getattr(state, part).items()
    }


def names(run: Path) -> list[str]:
    return sorted(path.name for path in run.iterdir())


def refusal(folder: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- round trip -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("average", [0.9, 0.0])
def test_round_trip_is_bitwise(tmp_path: Path, average: float) -> None:
    saved = state_after(640, average=average)
    folder = save_checkpoint(tmp_path / "run", saved, tiny_card())
    assert folder == tmp_path / "run/checkpoint-000000640"
    assert names(folder) == ["model.json", "model.safetensors", "training.json", "training.safetensors"]
    loaded = load_checkpoint(folder)
    assert bits(loaded) == bits(saved)
    assert loaded.config == saved.config
    counters = (loaded.batches, loaded.instances, loaded.steps, loaded.seconds)
    assert counters == (10, 640, 2, 12.25)
    assert len(loaded.exp_avg) == len(loaded.weights) and loaded.step["start"].item() == 2
    assert len(loaded.average) == (len(loaded.weights) if average else 0)


@pytest.mark.slow
def test_model_has_the_mean_of_the_weights(tmp_path: Path) -> None:
    saved = save(tmp_path, 64)
    network, card = load_model(saved)
    expected = state_after(64).average["start"]
    assert torch.equal(network.state_dict()["start"], expected)
    assert card.instances == 64
    raw = save(tmp_path / "raw", 64, average=0.0)
    assert torch.equal(load_model(raw)[0].state_dict()["gru_input.bias"], state_after(64).weights["gru_input.bias"])


def test_before_the_first_step(tmp_path: Path) -> None:
    fresh = dataclasses.replace(state_after(64), batches=0, instances=0, steps=0, exp_avg={}, exp_avg_sq={}, step={})
    folder = save_checkpoint(tmp_path, fresh, tiny_card())
    assert folder.name == "checkpoint-000000000"
    assert load_checkpoint(folder).exp_avg == {}


def test_adam_goes_on_bit_by_bit(tmp_path: Path) -> None:
    def two_steps(interrupted: bool) -> dict[str, bytes]:
        network = tiny_network()
        optimizer = torch.optim.Adam(network.parameters(), 1e-3)
        for number in range(2):
            if number and interrupted:
                values = {name: optimizer.state[weight] for name, weight in network.named_parameters()}
                moments = {part: {name: v[part] for name, v in values.items()} for part in PARTS[1:4]}
                config = TrainConfig(network=TINY)
                state = TrainingState(config, 1, 64, 1, 1.0, dict(network.state_dict()), average={}, **moments)
                loaded = load_checkpoint(save_checkpoint(tmp_path, state, tiny_card()))
                network = tiny_network(seed=9)
                network.load_state_dict(loaded.weights)
                optimizer = torch.optim.Adam(network.parameters(), 1e-3)
                for name, weight in network.named_parameters():
                    optimizer.state[weight] = {part: getattr(loaded, part)[name] for part in PARTS[1:4]}
            optimizer.zero_grad()
            sum(((p - 0.1 * number) ** 2).sum() for p in network.parameters()).backward()
            optimizer.step()
        return {name: weight.numpy().tobytes() for name, weight in network.state_dict().items()}

    assert two_steps(interrupted=True) == two_steps(interrupted=False)


# --- which is found, which is kept ----------------------------------------------------------------


def test_newest_is_by_number(tmp_path: Path) -> None:
    for instances in (64, 999_999_936, 1_000_000_000):
        save(tmp_path, instances)
    assert [path.name for path in checkpoints(tmp_path)] == ["checkpoint-999999936", "checkpoint-1000000000"]
    assert newest(tmp_path).name == "checkpoint-1000000000"


@pytest.mark.slow
def test_the_last_two_and_the_listed_are_kept(tmp_path: Path) -> None:
    for instances in range(64, 641, 64):
        save(tmp_path, instances, keep=(64, 200))
    # 200 instances are reached by the batch that ends at 256.
    assert [int(name[-3:]) for name in names(tmp_path)] == [64, 256, 576, 640]


def test_is_kept() -> None:
    recipe = Recipe(keep=(2_250_000,))
    assert [n for n in range(0, 3_000_000, 64) if is_kept(n, recipe)] == [2_250_048]  # 35157 batches of 64
    assert is_kept(128, Recipe(keep=(128,)))
    assert not is_kept(128, Recipe())


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no: no such folder"):
        newest(tmp_path / "no")
    with pytest.raises(CheckpointError, match="there is no whole checkpoint in this folder"):
        newest(tmp_path)
    save(tmp_path, 64)
    (tmp_path / "checkpoint-000000999").write_text("a file")
    (tmp_path / "checkpoint-best").mkdir()
    assert newest(tmp_path).name == "checkpoint-000000064"


def test_run_folder_as_a_model(tmp_path: Path) -> None:
    run = tmp_path / "my-run"
    save(run, 64)
    save(run, 128)
    assert load_model(run)[1].instances == 128
    assert read_model_file(run).name == "my-run/checkpoint-000000128"
    assert load_model(run / "checkpoint-000000064")[1].instances == 64


# --- kills ----------------------------------------------------------------------------------------


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("break_it", "reason"),
    [
        (lambda folder: truncate(folder / "training.safetensors"), "training.safetensors: is not a whole safetensors"),
        (lambda folder: truncate(folder / "model.safetensors"), "model.safetensors: is not a whole safetensors"),
        (lambda folder: truncate(folder / "training.json"), "training.json: is not JSON"),
        (lambda folder: (folder / "training.json").unlink(), "training.json: no such file"),
        (lambda folder: (folder / "model.json").unlink(), "there is no model.json beside it"),
        (lambda folder: (folder / "training.safetensors").write_bytes(b""), "training.safetensors: is empty"),
        (lambda folder: [file.unlink() for file in folder.iterdir()], "model.json: no such file"),
    ],
    ids=["training", "model", "json", "no-json", "no-card", "empty-file", "empty-folder"],
)
def test_broken_one_is_left_aside(tmp_path: Path, break_it: Any, reason: str) -> None:
    save(tmp_path, 64)
    break_it(save(tmp_path, 128))
    with pytest.warns(NdsWarning) as told:
        assert newest(tmp_path).name == "checkpoint-000000064"
    assert len(told) == 1
    message = str(told[0].message)
    assert message.startswith("checkpoint left aside: ") and "checkpoint-000000128" in message and reason in message
    break_it(tmp_path / "checkpoint-000000064")
    with pytest.warns(NdsWarning), pytest.raises(CheckpointError, match="no whole checkpoint"):
        newest(tmp_path)


def test_leftovers_of_a_kill_while_writing(tmp_path: Path) -> None:
    whole = save(tmp_path, 64)
    shutil.copytree(whole, tmp_path / ".checkpoint-000000128.0a1b2c3d.tmp")
    truncate(tmp_path / ".checkpoint-000000128.0a1b2c3d.tmp/training.safetensors")
    assert newest(tmp_path) == whole
    save(tmp_path, 128)
    assert names(tmp_path) == ["checkpoint-000000064", "checkpoint-000000128"]


def test_one_is_replaced_by_another_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, 64)
    again = dataclasses.replace(state_after(64), seconds=99.0)
    renamed: list[str] = []
    rename = Path.rename

    def watched(source: Path, target: Path) -> Path:
        if source.name.endswith(".tmp"):  # the old one has stepped aside, the new one is not there: killed here
            assert load_checkpoint(newest(tmp_path)).seconds == 12.25
            renamed.append(newest(tmp_path).name)
        return rename(source, target)

    monkeypatch.setattr(checkpoint.Path, "rename", watched)
    save_checkpoint(tmp_path, again, tiny_card())
    assert renamed == ["checkpoint-000000064~"]
    assert names(tmp_path) == ["checkpoint-000000064"]
    assert load_checkpoint(newest(tmp_path)).seconds == 99.0


def test_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, 64)

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "_write_training", full)
    with pytest.raises(CheckpointError, match=r"checkpoint-000000128: cannot be written \(No space left on device\)"):
        save(tmp_path, 128)
    assert names(tmp_path) == ["checkpoint-000000064"]


def test_diverged_weights_are_not_written(tmp_path: Path) -> None:
    save(tmp_path, 64)
    state = state_after(128)
    state.exp_avg_sq["start"][3] = float("inf")
    with pytest.raises(CheckpointError, match=r"checkpoint-000000128: 'exp_avg_sq\.start' is not finite"):
        save_checkpoint(tmp_path, state, tiny_card())
    assert names(tmp_path) == ["checkpoint-000000064"]


def save_forever(run: Path, said: Connection) -> None:
    for number in range(1, 10_000):
        save(run, 64 * number)
        said.send(number)


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path: Path) -> None:
    """What was reported as saved is there after SIGKILL, or something newer; nothing has to be left aside."""
    fork = multiprocessing.get_context("fork")  # a process of its own would first import torch
    for delay in (0.0, 0.013, 0.029):
        run = tmp_path / str(delay)
        hears, said = fork.Pipe(duplex=False)
        writer = fork.Process(target=save_forever, args=(run, said))
        writer.start()
        said.close()
        last = [hears.recv() for _ in range(3)][-1]
        time.sleep(delay)
        writer.kill()
        writer.join()
        with contextlib.suppress(EOFError):
            while True:
                last = hears.recv()
        assert load_checkpoint(newest(run)).batches >= last


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format 2 is newer than this program knows (1)"),
        ({"batches": -1}, "batches must not be negative, got -1"),
        ({"steps": "2"}, "steps must be a whole number, got '2'"),
        ({"seconds": None}, "seconds must be a number, got None"),
        ({"sha256": None}, "sha256 must be text, got None"),
        ({"config": []}, "config must be a table"),
        ({"config": {"train": {"batch": 0}}}, "config: train: batch must be between 1 and 1048576, got 0"),
        ({"config": {"model": {}}}, "config: unknown table 'model' (known: network, train, validation, data)"),
        ({"epoch": 3}, "unknown field 'epoch' (known: format, "),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_fields(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    folder = save(tmp_path, 64)
    table = json.loads((folder / "training.json").read_text())
    (folder / "training.json").write_text(json.dumps({**table, **change}))
    assert refusal(folder).startswith(f"{folder}/training.json: {message}")
    (folder / "training.json").write_text(json.dumps({**table, **change}).replace('"steps"', '"stepz"'))
    if "format" not in change:
        assert refusal(folder) == f"{folder}/training.json: steps is missing"


def test_changed_tensors(tmp_path: Path) -> None:
    folder = save(tmp_path, 64)
    data = bytearray((folder / "training.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "training.safetensors").write_bytes(data)
    assert refusal(folder).startswith(f"{folder}/training.safetensors: its sha256 is ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "name", "value", "message"),
    [
        ("weights", "start", None, "weight 'start' is missing"),
        ("weights", "more", torch.zeros(1), "weight 'more' is not one of the network's"),
        ("weights", "start", torch.zeros(8, dtype=torch.float16), "weight 'start' is float16, not float32"),
        ("exp_avg_sq", "start", None, "'exp_avg_sq' is not there for the same weights as 'exp_avg'"),
        ("exp_avg", "start", torch.zeros(7), "'exp_avg.start' has shape [7], not [8]"),
        ("step", "start", torch.zeros(8), "'step.start' has shape [8], not []"),
        ("average", "start", None, "'average' is not there for every weight"),
        ("average", "more", torch.zeros(1), "'average.more' belongs to no weight"),
        ("average", "start", torch.full((8,), float("nan")), "'average.start' is not finite"),
    ],
)
def test_tensors_that_do_not_fit(tmp_path: Path, part: str, name: str, value: Any, message: str) -> None:
    state = state_after(64)
    tensors = {**getattr(state, part), name: value}
    broken = dataclasses.replace(state, **{part: {n: t for n, t in tensors.items() if t is not None}})
    with pytest.raises(CheckpointError) as caught:
        save_checkpoint(tmp_path, broken, tiny_card())
    assert str(caught.value) == f"{tmp_path}/checkpoint-000000064: {message}"
    folder = save_checkpoint(tmp_path, state, tiny_card())
    checkpoint._write_training(folder, broken)
    assert refusal(folder) == f"{folder}/training.safetensors: {message}"


def test_tensors_of_no_part(tmp_path: Path) -> None:
    folder = save(tmp_path, 64)
    file, described = folder / "training.safetensors", folder / "training.json"
    file.write_bytes(safetensors.torch.save({**safetensors.torch.load_file(file), "momentum.start": torch.zeros(8)}))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    described.write_text(json.dumps({**json.loads(described.read_text()), "sha256": digest}))
    known = "weights, exp_avg, exp_avg_sq, step, average"
    assert refusal(folder) == f"{file}: 'momentum.start' begins with none of {known}"
