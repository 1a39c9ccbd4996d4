"""Training on a GPU: instances, random numbers and neighbour lists as on a CPU, and nothing waits within a batch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from gpu.instance_cases import SOURCES, Host, cells_by, named, unpacked
from ndsvrp.counter_random import key_of
from ndsvrp.engine.batched import upload_batch
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.engine.device import Device
from ndsvrp.engine.upload import near_by_points
from ndsvrp.generate import generate
from ndsvrp.generate.attraction import PATIENCE, place
from ndsvrp.generate.instances import draw
from ndsvrp.policy import Network, NetworkConfig
from ndsvrp.policy.random_numbers import RandomNumbers, by_torch
from ndsvrp.train.config import Recipe, Source, TrainConfig
from ndsvrp.train.data import recipe_of
from ndsvrp.train.gpu_batch import draw_on_gpu, inputs_of, place_clustered
from ndsvrp.train.own_instances import OwnInstances
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


def trainer_of(data: tuple[Source, ...] = (Source(customers=(40,)),), **recipe: object) -> Trainer:
    torch.manual_seed(1)
    usual = {
        "batch": 8, "iterations": 4, "rollouts": 16, "removals": 6, "orders": 2, "start_rounds": 2,
        "improvement_steps": 2, "warm_up_rollouts": 4, "instances": 64,
    }  # fmt: skip
    config = TrainConfig(network=NETWORK, train=Recipe(**usual | recipe), data=data)  # type: ignore[arg-type]
    return Trainer(config, Network(NETWORK), CudaEngine(neighbours=6), torch.device("cuda"), threads=4)


def on_gpu() -> Any:
    """`place` by the kernel."""
    return partial(place_clustered, Device())


@pytest.mark.parametrize("rollouts", [16, 128, 1024, 1025])
def test_the_same_random_numbers_as_on_a_cpu(rollouts: int) -> None:
    for first, iteration in ((0, 0), (2**33, 1), (7, 2)):
        how = (first, 9, key_of(1, 3, iteration), rollouts, 15, 10)
        expected = by_torch(*how)
        for found in (RandomNumbers.from_counter(*how, torch.device("cuda")), by_torch(*how, torch.device("cuda"))):
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


@pytest.mark.parametrize("source", SOURCES, ids=named)
def test_the_same_instances_as_on_a_cpu(source: Source) -> None:
    """Bit by bit, and so are what is packed of them and what the network sees."""
    engine = CudaEngine(neighbours=15)
    for n, first, count in ((1, 3, 2), (60, 2**33, 9), (250, 7, 3)):
        recipe = recipe_of(source, n)
        here = draw(recipe, 5, torch.arange(first, first + count))
        there = draw_on_gpu(engine, torch.device("cuda"), recipe, 5, first, count)
        for name, value in vars(here).items():
            other = getattr(there.instances, name)
            assert other is value is None or torch.equal(other.cpu(), value), name
        assert all(map(torch.equal, inputs_of(here).tensors(), (part.cpu() for part in there.inputs.tensors())))
        assert torch.equal(here.side(), there.instances.side().cpu())
        one, other = upload_batch(Host(), here, 15)(), there.upload()  # type: ignore[arg-type]
        assert one.per_unit.tolist() == other.per_unit.tolist() and one.groups[0].shape == other.groups[0].shape
        assert unpacked(one.groups[0].block, count) == unpacked(other.groups[0].block, count)
        assert torch.equal(one.groups[0].tours, other.groups[0].tours.cpu())
        there.instances.problem(count - 1)


def test_own_instances_as_on_a_cpu() -> None:
    """Bit by bit; nothing waits once the given instances are on the GPU."""
    recipe = OwnInstances("pcvrptw", generate("pcvrptw", 60, count=5, seed=2), []).recipe(80)
    engine, cuda = CudaEngine(neighbours=15), torch.device("cuda")
    draw_on_gpu(engine, cuda, recipe, 5, 0, 9)
    with nobody_waits():
        there = draw_on_gpu(engine, cuda, recipe, 5, 7, 9)
    here = recipe.draw(5, torch.arange(7, 16))
    for name, value in vars(here).items():
        assert torch.equal(getattr(there.instances, name).cpu(), value), name
    assert all(map(torch.equal, inputs_of(here).tensors(), (part.cpu() for part in there.inputs.tensors())))
    there.upload()


@pytest.mark.parametrize(
    ("n", "count", "patience", "changes"),
    [(100, 1500, 10**7, {}), (2000, 4, 10**7, {"depot": "random"}), (300, 2, 9000, {"halving": 2.0}),
     (20, 2, 500, {"halving": 0.01}), (4000, 2, 700, {"halving": 1000.0})],
)  # fmt: skip
def test_the_same_cells_as_the_reference(n: int, count: int, patience: int, changes: Any) -> None:
    found = cells_by(on_gpu(), n, key_of(1, 2), 2**32 - 2, count, patience, torch.device("cuda"), **changes)
    assert torch.equal(found, cells_by(place, n, key_of(1, 2), 2**32 - 2, count, patience, **changes))


def test_many_customers_find_a_place() -> None:
    """The largest that a configuration may ask for: nearly all cells with a pull are taken."""
    cuda = torch.device("cuda")
    for row in cells_by(on_gpu(), 100_000, key_of(1, 2), 0, 2, PATIENCE, cuda, depot="cornered").tolist():
        assert len(set(row)) == 100_001 and row[0] == 0 and max(row) < 1001**2


@pytest.mark.parametrize("warm_up", ["related", "policy"])
@pytest.mark.parametrize("problem", ["cvrp", "pcvrptw"])
def test_nobody_waits_within_a_batch(warm_up: str, problem: str) -> None:
    """Drawing, packing, start, improvement, iterations and optimizer steps, once kernels are compiled and recordings
    are made. The CPU does wait for the few numbers of a batch that was drawn just now, but not for torch."""
    with closing(trainer_of((Source(problem=problem, customers=(40,)),), warm_up=warm_up)) as trainer:
        trainer.train_batch()
        with nobody_waits():
            batch = trainer._batches.take(1)
            policy = trainer._improvement_policy(batch) if warm_up == "policy" else None
            learning = prepare(trainer.engine, batch.problems, trainer.config.train, 1, 0, trainer.device, policy)
            before = learning.state.snapshot()
            for i in range(3):
                taught, loss = trainer._iteration(batch, learning, i, 1.0, last=True)
                norm = trainer._step(1e-4)
        assert np.isfinite([float(loss), float(norm)]).all() and float(taught.reward.max()) >= 0
        assert before().costs.mean() > learning.state.stats().costs.mean()


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
