"""Runs of a few small batches, and a trainer that is watched: what tests of training share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.policy import Network, NetworkConfig
from ndsvrp.train.config import Recipe, Source, TrainConfig, Validation
from ndsvrp.train.data import Batch, BatchMaker, Share
from ndsvrp.train.loss import Signal
from ndsvrp.train.trainer import Trainer

CPU = torch.device("cpu")
NETWORK = NetworkConfig(width=8, heads=2, feed_forward=8, layers_before=1, layers_after=1, seed_bits=4, seed_width=4)
CURRICULUM = (
    Source(customers=(5, 7), weight=3.0),
    Source(problem="vrptw", customers=(6,), layout="uniform"),
    Source(problem="pcvrp", customers=(9,), customers_per_route=(2, 4), weight=0.5),
)


def config(network: NetworkConfig = NETWORK, data: tuple[Source, ...] | None = None, **recipe: Any) -> TrainConfig:
    """Batches of four small instances, over in a moment."""
    usual: dict[str, Any] = {
        "seed": 3, "batch": 4, "instances": 16, "iterations": 3, "rollouts": 6, "removals": 3, "orders": 2,
        "start_rounds": 2, "improvement_steps": 1, "warm_up_rollouts": 4, "learning_rate": 1e-2, "warm_up_steps": 2,
        "horizon": 50, "average": 0.9, "step_every": 2,
    }  # fmt: skip
    return TrainConfig(
        network=network,
        train=Recipe(**usual | recipe),
        validation=Validation(every=0, states=2, search_instances=0),
        data=data or (Source(customers=(10,)),),
    )


def trainer_of(settings: TrainConfig, rank: int = 0, processes: int = 1) -> Trainer:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.train.seed)
        network = Network(settings.network)
    return Trainer(settings, network, CpuEngine(), CPU, rank=rank, processes=processes)


def flat(network: Network, *, gradient: bool = False) -> np.ndarray:
    """All weights, or their gradients, as one vector."""
    parts = [weight.grad if gradient else weight for weight in network.parameters()]
    return torch.cat([part.detach().reshape(-1) for part in parts]).double().numpy().copy()


class Watched:
    """A trainer that writes down the gradient of every step and the signal of every iteration."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.gradients: list[np.ndarray] = []  #: before they are clipped
        self.applied: list[np.ndarray] = []  #: as the optimizer gets them
        self.rates: list[float] = []
        self.signals: list[Signal] = []
        self.costs: list[tuple[np.ndarray, np.ndarray]] = []  #: before and after each iteration
        step, iterate = trainer._step, trainer._iteration

        def watched_step(rate: float) -> torch.Tensor:
            self.gradients.append(flat(trainer.network, gradient=True))
            return step(rate)

        def watched_iteration(batch: Any, learning: Any, *rest: Any, **more: Any) -> Any:
            before = learning.state.stats().costs
            answer = iterate(batch, learning, *rest, **more)
            self.costs.append((before, learning.state.stats().costs))
            self.signals.append(answer[0])
            return answer

        def before_step(optimizer: Any, *_: Any) -> None:
            self.applied.append(flat(trainer.network, gradient=True))
            self.rates.append(optimizer.param_groups[0]["lr"])

        trainer._step = watched_step  # type: ignore[method-assign]
        trainer._iteration = watched_iteration  # type: ignore[method-assign]
        trainer.optimizer.register_step_pre_hook(before_step)


def watch(**recipe: Any) -> Watched:
    return Watched(trainer_of(config(**recipe)))


def draw_batch(sources: Sequence[Source], seed: int, number: int, share: Share) -> Batch:
    config = TrainConfig(train=Recipe(seed=seed), data=tuple(sources))
    return BatchMaker(config, share)(number)


def log_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
