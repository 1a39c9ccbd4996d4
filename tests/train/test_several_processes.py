"""Training in several processes: the same steps as in one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from ndsvrp.generate import generate
from ndsvrp.policy import Network
from ndsvrp.policy.inputs import static_inputs
from ndsvrp.train.checkpoint import checkpoints, load_checkpoint
from ndsvrp.train.processes import joined
from ndsvrp.train.run import train
from train.small_runs import NETWORK, Watched, config, flat, log_of, trainer_of, watch

SHARED = {"batch": 6, "iterations": 3, "step_every": 0, "rollouts": 8}


def work(out: str) -> None:
    """What each of several processes does: the first step of a run. Started by the test below."""
    torch.set_num_threads(1)
    with joined("cpu") as place:
        watched = Watched(trainer_of(config(**SHARED), place.rank, place.processes))
        row = watched.trainer.train_batch()
        np.savez(
            Path(out) / f"{place.rank}.npz", gradient=watched.gradients[0], weights=flat(watched.trainer.network),
            advantage=torch.stack([taught.advantage for taught in watched.signals]).numpy(),
            costs=watched.costs[-1][1], reward=row["best_reward"], loss=row["loss"], before=row["cost_before"],
        )  # fmt: skip


def start_processes(count: int, *args: str) -> list[subprocess.Popen[str]]:
    """As torchrun would."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)]),
        "WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    return [
        subprocess.Popen(
            [sys.executable, *args], env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for rank in range(count)
    ]  # fmt: skip


def finish(children: list[subprocess.Popen[str]]) -> list[str]:
    """What they printed; none may hang or fail."""
    try:
        answers = [child.communicate(timeout=120) for child in children]
    finally:
        for child in children:
            child.kill()
    assert [child.returncode for child in children] == [0] * len(children), answers
    return [stdout for stdout, _ in answers]


@pytest.mark.slow
def test_two_processes_share_a_batch(tmp_path: Path) -> None:
    """The gradient of a step is that of one process with the whole batch; so are the advantages, scale included."""
    code = f"import test_several_processes; test_several_processes.work({str(tmp_path)!r})"
    children = start_processes(2, "-c", code)
    alone = watch(**SHARED)
    row = alone.trainer.train_batch()
    finish(children)
    ranks = [np.load(tmp_path / f"{rank}.npz") for rank in (0, 1)]
    expected = alone.gradients[0]
    assert np.linalg.norm(expected) > 1e-3
    for rank in ranks:
        assert np.linalg.norm(rank["gradient"] - expected) < 1e-5 * np.linalg.norm(expected)
        assert rank["reward"] == pytest.approx(row["best_reward"], rel=1e-9)
        assert rank["loss"] == pytest.approx(row["loss"], rel=1e-4)
    assert np.array_equal(ranks[0]["weights"], ranks[1]["weights"])
    clear = np.abs(expected) > 1e-5 * np.linalg.norm(expected)  # Adam makes as much of a gradient that is rounding
    assert clear.mean() > 0.5
    assert ranks[0]["weights"][clear] == pytest.approx(flat(alone.trainer.network)[clear], abs=1e-3)
    advantage = torch.stack([taught.advantage for taught in alone.signals]).numpy()
    assert np.concatenate([rank["advantage"] for rank in ranks], axis=1) == pytest.approx(advantage, rel=1e-5)
    assert np.concatenate([rank["costs"] for rank in ranks]) == pytest.approx(alone.costs[-1][1], rel=1e-9)


@pytest.mark.slow
def test_a_run_of_two_processes(tmp_path: Path) -> None:
    """The command under torchrun: one log, one set of checkpoints, the weights of a run alone but for rounding."""
    settings = config(batch=4, instances=8, rollouts=4, learning_rate=1e-3)
    file = tmp_path / "run.toml"
    file.write_text(
        "[network]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in vars(settings.network).items())
        + "[train]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in vars(settings.train).items())
        + "[validation]\nevery = 0\nstates = 2\nsearch_instances = 0\n[[data]]\ncustomers = [10]\n"
    )  # fmt: skip
    out = tmp_path / "out"
    answers = finish(
        start_processes(2, "-m", "ndsvrp", "train", str(file), "--out", str(out), "--threads", "1", "-q",
                        "--device", "cpu")
    )  # fmt: skip
    assert [path.name for path in checkpoints(out)] == ["checkpoint-000000008"]
    assert answers == [f"{out / 'checkpoint-000000008'}\n", ""], "one of them speaks"
    rows = log_of(out)
    assert [row["kind"] for row in rows] == ["run", "validation", "batch", "batch", "validation", "end"]
    assert rows[0]["processes"] == 2
    together = load_checkpoint(out / "checkpoint-000000008")
    alone = load_checkpoint(train(settings, tmp_path / "alone", threads=1, device="cpu").checkpoint)
    assert (together.batches, together.steps) == (alone.batches, alone.steps) == (2, 4)
    # Not weight by weight: where there is no slope (a bias before a norm), Adam makes steps of rounding errors.
    inputs = static_inputs(generate("cvrp", 10, seed=9), np.random.default_rng(0).random((1, 11, 2)), "cpu")
    found = []
    for weights in (alone.weights, together.weights, trainer_of(settings).network.state_dict()):
        network = Network(NETWORK)
        network.load_state_dict(weights)
        with torch.no_grad():
            found.append(float(network(inputs, torch.tensor([[[3, 1, 5, 9]]]), torch.ones(1, 1, 4))))
    assert found[0] == pytest.approx(found[1], abs=1e-4)
    assert abs(found[0] - found[2]) > 1e-2, "both have moved"
