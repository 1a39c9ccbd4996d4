"""Runs of training: left, resumed, ended in time, logged, refused."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ndsvrp.errors import CheckpointError, EngineError, NdsError, NdsWarning
from ndsvrp.policy.model_file import load_model
from ndsvrp.train.checkpoint import checkpoints, load_checkpoint
from ndsvrp.train.config import Source, TrainConfig, Validation
from ndsvrp.train.run import train
from ndsvrp.train.trainer import Trainer
from train.small_runs import CURRICULUM, NETWORK, config, log_of

PARTS = ("weights", "exp_avg", "exp_avg_sq", "step", "average")


def bits(checkpoint: Path) -> dict[str, bytes]:
    state = load_checkpoint(checkpoint)
    found = {f"{part}.{name}": t.numpy().tobytes() for part in PARTS for name, t in getattr(state, part).items()}
    return found | {"counters": repr((state.batches, state.instances, state.steps)).encode()}


def stop_after(batches: int, how: Any) -> Any:
    """A report that asks for an end after `batches` of them."""

    def report(kind: str, row: dict[str, Any]) -> None:
        if kind == "batch" and row["batch"] == batches:
            how()

    return report


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [{}, {"average": 0.0, "step_every": 0}, {"warm_up": "policy", "clip_gradient": 0.0}, {"data": CURRICULUM}],
    ids=["default", "plain", "policy", "curriculum"],
)
def test_resumed_is_bit_by_bit_the_same(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Four batches at one go; and two, a checkpoint, then two more."""
    settings = config(instances=16, **changes)
    whole = train(settings, tmp_path / "whole", threads=1)
    first = train(settings, tmp_path / "parts", threads=1, report=stop_after(2, terminate))
    assert (first.stopped, first.checkpoint.name) == ("interrupted", "checkpoint-000000008")
    torch.manual_seed(99)  # whatever happened in between
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = train(settings, tmp_path / "parts", threads=1, resume=True)
    assert whole.stopped == second.stopped == "instances"
    assert second.checkpoint.name == whole.checkpoint.name == "checkpoint-000000016"
    assert bits(second.checkpoint) == bits(whole.checkpoint)
    assert bits(first.checkpoint) != bits(whole.checkpoint)
    assert second.validation == whole.validation
    rows = [[row for row in log_of(tmp_path / name) if row["kind"] == "batch"] for name in ("whole", "parts")]
    for one, other in zip(*rows, strict=True):
        kept = one.keys() - {"seconds", "trained_seconds"}
        assert {key: one[key] for key in kept} == {key: other[key] for key in kept}


@pytest.mark.slow
def test_batches_of_different_sizes_are_counted(tmp_path: Path) -> None:
    """A run ends after so many instances, whatever the batches; resumed, it is where it would have been."""
    data = (Source(customers=(6, 12)),)
    settings = config(data=data, instances=14, batch=4, batch_customers=24)
    whole = train(settings, tmp_path / "whole", threads=1)
    rows = [row for row in log_of(tmp_path / "whole") if row["kind"] == "batch"]
    assert {row["customers"] for row in rows} == {6, 12}
    assert [row["instances"] for row in rows] == np.cumsum([{6: 4, 12: 2}[row["customers"]] for row in rows]).tolist()
    assert rows[-2]["instances"] < 14 <= rows[-1]["instances"] and whole.stopped == "instances"
    train(settings, tmp_path / "parts", threads=1, report=stop_after(2, terminate))
    second = train(settings, tmp_path / "parts", threads=1, resume=True)
    assert bits(second.checkpoint) == bits(whole.checkpoint)


@pytest.mark.slow
def test_resumed_with_more_instances(tmp_path: Path) -> None:
    """A run that has ended goes on when its end is put off; the difference is told."""
    whole = train(config(instances=12), tmp_path / "whole", threads=1)
    train(config(instances=4), tmp_path / "parts", threads=1)
    with pytest.warns(NdsWarning, match="the configuration differs from that of the checkpoint"):
        second = train(config(instances=12), tmp_path / "parts", threads=1, resume=True)
    assert bits(second.checkpoint) == bits(whole.checkpoint)


@pytest.mark.slow
def test_resumed_from_what_a_kill_left(tmp_path: Path) -> None:
    """The last checkpoint is broken: the one before it is taken, and the run arrives at the same weights."""
    whole = train(config(instances=12), tmp_path / "whole", threads=1)
    out = tmp_path / "killed"

    def kill() -> None:
        raise RuntimeError("killed")

    settings = config(instances=12, checkpoint_seconds=0.0)
    with pytest.raises(RuntimeError, match="killed"):
        train(settings, out, threads=1, report=stop_after(3, kill))
    assert [path.name for path in checkpoints(out)] == ["checkpoint-000000004", "checkpoint-000000008"]
    (out / "checkpoint-000000008/training.safetensors").write_bytes(b"")
    with pytest.warns(NdsWarning, match="checkpoint left aside"):
        second = train(settings, out, threads=1, resume=True)
    first, last = bits(whole.checkpoint), bits(second.checkpoint)
    assert first == last


def test_a_finished_run_is_finished(tmp_path: Path) -> None:
    """There is nothing left to do: no batch beyond the configured number of instances."""
    settings = config(instances=8)
    first = train(settings, tmp_path, threads=1)
    before = bits(first.checkpoint)
    again = train(settings, tmp_path, threads=1, resume=True)
    assert (again.stopped, again.checkpoint) == ("instances", first.checkpoint)
    assert bits(again.checkpoint) == before
    assert sum(row["kind"] == "batch" for row in log_of(tmp_path)) == 2


@pytest.mark.parametrize("how", [interrupt, terminate])
def test_asked_to_end(tmp_path: Path, how: Any) -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    outcome = train(config(), tmp_path, threads=1, report=stop_after(1, how))
    assert (outcome.stopped, outcome.checkpoint) == ("interrupted", tmp_path / "checkpoint-000000004")
    assert load_checkpoint(outcome.checkpoint).batches == 1
    assert log_of(tmp_path)[-1]["stopped"] == "interrupted"
    assert outcome.signal == (signal.SIGINT if how is interrupt else signal.SIGTERM)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_asked_twice_ends_at_once(tmp_path: Path) -> None:
    def twice() -> None:
        interrupt()
        interrupt()

    with pytest.raises(KeyboardInterrupt):
        train(config(checkpoint_seconds=0.0), tmp_path, threads=1, report=stop_after(2, twice))
    assert [path.name for path in checkpoints(tmp_path)] == ["checkpoint-000000004"]


def test_time_limit(tmp_path: Path) -> None:
    """However short, there is one whole batch and a checkpoint to go on from."""
    outcome = train(config(), tmp_path, threads=1, seconds=0.01)
    assert (outcome.stopped, outcome.checkpoint.name) == ("time", "checkpoint-000000004")
    again = train(config(), tmp_path, threads=1, seconds=0.01, resume=True)
    assert (again.stopped, again.checkpoint.name) == ("time", "checkpoint-000000008")
    assert train(config(), tmp_path, threads=1, seconds=3600, resume=True).stopped == "instances"


def test_a_batch_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memory of a GPU runs out, one line says what would fit."""

    def fails(self: Trainer) -> Any:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate …")

    monkeypatch.setattr(Trainer, "train_batch", fails)
    data = (Source(customers=(8, 500)), Source(customers=(20,)))
    for limit, most, half in ((0, "2,000", 1000), (1200, "1,200", 600)):
        with pytest.raises(EngineError) as caught:
            train(config(data=data, batch_customers=limit), tmp_path / str(limit), threads=1)
        assert str(caught.value) == (
            f"a batch does not fit into the GPU's memory: it may have up to {most} customers in all; "
            f"try --set train.batch_customers={half}"
        )


@pytest.mark.slow
def test_checkpoints_of_a_run(tmp_path: Path) -> None:
    """As often as asked for; the last two, and those to be kept."""
    train(config(instances=24, checkpoint_seconds=0.0, keep=(8,)), tmp_path / "a", threads=1)
    assert [int(path.name[-3:]) for path in checkpoints(tmp_path / "a")] == [8, 20, 24]
    train(config(instances=24, keep=(5, 16)), tmp_path / "b", threads=1)
    assert [int(path.name[-3:]) for path in checkpoints(tmp_path / "b")] == [8, 16, 24]


def test_model_of_a_run(tmp_path: Path) -> None:
    """What one would use: the running mean, with a card that says how it came to be."""
    data = (Source(problem="vrptw", customers=(8, 12)), Source(customers=(8,)))
    outcome = train(config(data=data), tmp_path, threads=1)
    network, card = load_model(outcome.checkpoint)
    state = load_checkpoint(outcome.checkpoint)
    for name, weight in network.state_dict().items():
        assert torch.equal(weight, state.average[name])
        assert name == "gamma" or not torch.equal(weight, state.weights[name])
    assert (card.problems, card.sizes, card.instances, card.steps) == (("cvrp", "vrptw"), (8, 12), 16, 8)
    assert card.network == NETWORK and card.init == ""
    assert card.validation["reward_ratio"] == outcome.validation["reward_ratio"]


def test_log(tmp_path: Path) -> None:
    settings = replace(config(instances=16), validation=Validation(every=2, states=2, search_instances=0))
    told: list[str] = []
    train(settings, tmp_path, threads=1, report=lambda kind, row: told.append(kind))
    rows = log_of(tmp_path)
    kinds = ["run", "validation", "batch", "batch", "validation", "batch", "batch", "validation", "end"]
    assert [row["kind"] for row in rows] == told == kinds
    batches = [row for row in rows if row["kind"] == "batch"]
    assert [row["batch"] for row in batches] == [1, 2, 3, 4]
    assert [row["instances"] for row in batches] == [4, 8, 12, 16]
    assert [row["steps"] for row in batches] == [2, 4, 6, 8]
    times = [row["trained_seconds"] for row in rows[1:]]
    assert times == sorted(times) and times[0] > 0
    assert rows[0]["config"] == json.loads(json.dumps(settings.as_dict()))
    assert (rows[0]["threads"], rows[0]["device"], rows[0]["resumed"]) == (1, "cpu", False)
    assert [row["instances"] for row in rows if row["kind"] == "validation"] == [0, 8, 16]
    assert rows[-1]["stopped"] == "instances" and rows[-1]["batches"] == 4


def test_log_goes_on_when_resumed(tmp_path: Path) -> None:
    train(config(instances=8), tmp_path, threads=1, seconds=0.01)
    train(config(instances=8), tmp_path, threads=1, resume=True)
    rows = log_of(tmp_path)
    assert [row["batch"] for row in rows if row["kind"] == "batch"] == [1, 2]
    assert [row["resumed"] for row in rows if row["kind"] == "run"] == [False, True]
    times = [row["trained_seconds"] for row in rows if "trained_seconds" in row]
    assert times == sorted(times), "earlier sittings are counted in"


@pytest.mark.slow
def test_init(tmp_path: Path) -> None:
    """Weights of a model of another size and problem; optimizer, schedule and counters begin anew."""
    first = train(config(), tmp_path / "first", threads=1)
    weights = load_model(first.checkpoint)[0].state_dict()
    data = (Source(problem="pcvrp", customers=(14,)),)
    still = train(config(data=data, learning_rate=0.0), tmp_path / "still", threads=1, init=str(first.checkpoint))
    for name, weight in load_checkpoint(still.checkpoint).weights.items():
        assert torch.equal(weight, weights[name])
    rows = log_of(tmp_path / "still")
    digest = hashlib.sha256((first.checkpoint / "model.safetensors").read_bytes()).hexdigest()
    assert rows[0]["init"] == f"{first.checkpoint.name} (sha256 {digest[:12]})" and rows[0]["steps"] == 0
    assert load_model(still.checkpoint)[1].init == rows[0]["init"]
    second = train(config(init=str(first.checkpoint), instances=4), tmp_path / "second", threads=1)
    state = load_checkpoint(second.checkpoint)
    assert (state.batches, state.steps, int(state.step["start"])) == (1, 2, 2)
    moved = np.concatenate([(state.weights[name] - weights[name]).numpy().ravel() for name in weights])
    assert 0 < np.abs(moved).max() < 0.03, "two steps of at most 0.01 from there"


def other_network() -> TrainConfig:
    return config(network=replace(NETWORK, width=16))


def test_refused(tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = train(config(instances=4), run, threads=1)
    before = sorted(tmp_path.rglob("*")), (run / "log.jsonl").read_text()
    with pytest.raises(NdsError) as caught:
        train(config(), run, threads=1)
    assert str(caught.value) == f"{run} holds a run already: go on with --resume {run}, or choose another --out"
    with pytest.raises(CheckpointError) as caught:
        train(other_network(), tmp_path / "new", threads=1, init=str(done.checkpoint))
    assert str(caught.value) == f"{done.checkpoint}: its network is another one: width is 8 there and 16 here"
    with pytest.raises(CheckpointError) as caught:
        train(other_network(), run, threads=1, resume=True)
    assert str(caught.value) == f"{done.checkpoint}: its network is another one: width is 8 there and 16 here"
    with pytest.raises(CheckpointError) as caught:
        train(config(batch=2), run, threads=1, resume=True)
    assert str(caught.value) == f"{done.checkpoint}: batches of 4 instances there, 2 here"
    with pytest.raises(NdsError, match="a run that is resumed has weights already: --init is for a new one"):
        train(config(), run, threads=1, resume=True, init=str(done.checkpoint))
    with pytest.raises(CheckpointError) as caught:
        train(config(), tmp_path / "no", threads=1, resume=True)
    assert str(caught.value) == f"{tmp_path / 'no'}: no such folder"
    with pytest.raises(CheckpointError, match="there is no whole checkpoint in this folder"):
        (tmp_path / "empty").mkdir()
        train(config(), tmp_path / "empty", threads=1, resume=True)
    (tmp_path / "empty").rmdir()
    with pytest.raises(NdsError):
        train(config(), tmp_path / "new", threads=1, init=str(tmp_path / "no.safetensors"))
    with pytest.raises(NdsError, match="unknown device 'tpu': one of auto, cpu, cuda"):
        train(config(), tmp_path / "new", threads=1, device="tpu")
    assert (sorted(tmp_path.rglob("*")), (run / "log.jsonl").read_text()) == before, "and nothing was written"
