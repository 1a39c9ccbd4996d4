"""Training on a GPU: random numbers and neighbour lists as on a CPU, and nothing waits within a batch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import numpy as np
import pytest
import torch

from ndsvrp.engine.packed import near_by_points
from ndsvrp.policy import Network, NetworkConfig
from ndsvrp.policy.draws import by_operations, draw_by_number, key_of
from ndsvrp.train.config import Recipe, Source, TrainConfig
from ndsvrp.train.states import prepare
from ndsvrp.train.trainer import Trainer

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"),
]
NETWORK = NetworkConfig(width=32, heads=4, feed_forward=32, seed_width=16)


@contextmanager
def nobody_waits() -> Iterator[None]:
    """torch refuses whatever would make the CPU wait for the GPU."""
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def trainer_of(**recipe: object) -> Trainer:
    from ndsvrp.engine.cuda import CudaEngine

    torch.manual_seed(1)
    usual = {
        "batch": 8, "iterations": 4, "rollouts": 16, "removals": 6, "orders": 2, "start_rounds": 2,
        "improvement_steps": 2, "warm_up_rollouts": 4, "instances": 64,
    }  # fmt: skip
    config = TrainConfig(network=NETWORK, train=Recipe(**usual | recipe), data=(Source(customers=(40,)),))  # type: ignore[arg-type]
    return Trainer(config, Network(NETWORK), CudaEngine(neighbours=6), torch.device("cuda"), threads=4)


@pytest.mark.parametrize("rollouts", [16, 128, 1024, 1025])
def test_the_same_random_numbers_as_on_a_cpu(rollouts: int) -> None:
    for first, iteration in ((0, 0), (2**33, 1), (7, 2)):
        how = (first, 9, key_of(1, 3, iteration), rollouts, 15, 10)
        expected = by_operations(*how)
        for found in (draw_by_number(*how, torch.device("cuda")), by_operations(*how, torch.device("cuda"))):
            assert all(map(torch.equal, expected, (part.cpu() for part in found)))


@pytest.mark.parametrize(("batch", "customers", "count"), [(256, 500, 15), (3, 1000, 256), (1, 4000, 64), (2, 1, 0)])
def test_the_same_neighbours_as_on_a_cpu(batch: int, customers: int, count: int) -> None:
    """On a coarse grid, where many are equally far."""
    x, y = torch.from_numpy(
        np.random.default_rng(1).integers(0, 60, (2, batch, customers + 1)).astype(np.float32) * 977
    )
    few = slice(0, min(batch, 4))
    found = near_by_points(torch, x.cuda(), y.cuda(), count)
    assert torch.equal(found[few].cpu(), near_by_points(torch, x[few], y[few], count))


@pytest.mark.parametrize("warm_up", ["related", "policy"])
def test_nobody_waits_within_a_batch(warm_up: str) -> None:
    """Iterations and optimizer steps, once their recordings are made and their plans are there."""
    with closing(trainer_of(warm_up=warm_up)) as trainer:
        trainer.train_batch()
        batch = trainer._next_batch()
        learning = prepare(
            trainer.engine, batch.problems, trainer.config.train, 1, 0, trainer.device, made=batch.material
        )
        trainer._iteration(batch, learning, 0, 1.0, last=True)
        trainer._step(1e-4)
        with nobody_waits():
            for i in (1, 2):
                taught, loss = trainer._iteration(batch, learning, i, 1.0, last=True)
                norm = trainer._step(1e-4)
        assert np.isfinite([float(loss), float(norm)]).all() and float(taught.reward.max()) >= 0


def test_what_was_launched_is_what_is_reported() -> None:
    """Numbers kept on the GPU until the batch is over are those of each iteration, not of the last."""
    with closing(trainer_of(learning_rate=0.0)) as trainer:
        seen = []
        iterate = trainer._iteration

        def watched(*arguments: object, **more: object) -> object:
            taught, loss = iterate(*arguments, **more)  # type: ignore[arg-type]
            seen.append([float(taught.reward.mean()), float(taught.mean.mean()), float(loss)])
            return taught, loss

        trainer._iteration = watched  # type: ignore[method-assign, assignment]
        for _ in range(2):
            seen.clear()
            row = trainer.train_batch()
            assert [row["best_reward"], row["mean_reward"], row["loss"]] == pytest.approx(
                np.mean(seen, axis=0), rel=1e-5
            )


def test_seconds_add_up() -> None:
    with closing(trainer_of()) as trainer:
        trainer.train_batch()
        began = time.perf_counter()
        row = trainer.train_batch()
        passed = time.perf_counter() - began
    assert set(row["seconds"]) == {"generate", "start", "rollout", "evaluate", "gradient", "optimizer"}
    assert 0.5 * passed < sum(row["seconds"].values()) < 1.05 * passed
