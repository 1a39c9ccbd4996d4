"""Algorithm 1 of the paper: rollouts of the policy, greedy insertion, and a gradient through the best of them."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.distributed
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from ndsvrp.counter_random import key_of
from ndsvrp.engine.base import Engine
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.policy.graphs import GraphCache, low_precision
from ndsvrp.policy.inputs import Inputs
from ndsvrp.policy.network import Network
from ndsvrp.policy.random_numbers import RandomNumbers
from ndsvrp.policy.rollout import Rollouts, Sampler
from ndsvrp.train.config import TrainConfig
from ndsvrp.train.data import Batch, BatchMaker, Share
from ndsvrp.train.gpu_batch import draw_on_gpu
from ndsvrp.train.loss import Signal, loss_of, over_processes, signal
from ndsvrp.train.own_instances import Own
from ndsvrp.train.prefetch import GpuPrefetch, Prefetch, ThreadPrefetch
from ndsvrp.train.states import Learning, RuinByPolicy, prepare, reconstruction
from ndsvrp.train.stopwatch import Stopwatch

APART = 1 << 32  # added to iteration numbers, so that training and improvement steps use different random numbers


@dataclass
class Trainer:
    """The state of a run: weights, optimizer, counters.

    The same numbers of processes and threads give the same trajectory. On a GPU iterations are launched without waiting
    for those before; nothing is read until the batch is over.
    """

    config: TrainConfig
    network: Network
    engine: Engine
    device: torch.device
    rank: int = 0
    processes: int = 1
    threads: int = 1
    own: Own = field(default_factory=dict)
    batches: int = 0  #: trained on
    instances: int = 0  #: trained on, by all processes
    steps: int = 0  #: of the optimizer

    def __post_init__(self) -> None:
        recipe, on_gpu = self.config.train, self.device.type == "cuda"
        self.network.to(self.device).train()
        self.average = deepcopy(self.network).requires_grad_(False) if recipe.average else self.network
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), recipe.learning_rate, weight_decay=recipe.weight_decay, fused=on_gpu
        )
        self.sampler = Sampler(self.network)
        gradients = [torch.zeros_like(parameter) for parameter in self.network.parameters()]
        for parameter, gradient in zip(self.network.parameters(), gradients, strict=True):
            parameter.grad = gradient  # never replaced: captured graphs add to them
        # Processes exchange gradients while these are computed, which cannot be captured.
        captured = on_gpu and self.processes == 1
        self.gradient: Callable[..., Tensor] = GraphCache(self._gradient, gradients) if captured else self._gradient
        self._watch = Stopwatch(self.device)
        self.share = Share.of(recipe.batch, self.rank, self.processes)
        self._batches = self._prefetch()
        self.parallel: Any = DistributedDataParallel(self.network) if self.processes > 1 else self.network

    def train_batch(self) -> dict[str, Any]:
        """Do lines 4 to 19 for the next batch of instances. Return a row for the log."""
        recipe = self.config.train
        with self._watch.timed("generate"):
            batch = self._batches.take(self.batches)  # line 4
        with self._watch.timed("start"):
            policy = self._improvement_policy(batch) if recipe.warm_up == "policy" else None
            learning = prepare(  # lines 5 to 8
                self.engine, batch.problems, recipe, self._seed(batch), batch.share.first, self.device, policy
            )
        before = learning.state.snapshot()
        every = recipe.step_every or recipe.iterations
        rows = []
        for i in range(recipe.iterations):  # line 9
            last = (i + 1) % every == 0 or i + 1 == recipe.iterations
            together = min(every, recipe.iterations - i // every * every)  # iterations of this optimizer step
            taught, loss = self._iteration(batch, learning, i, 1.0 / together, last=last)
            improved = (taught.reward > 0).double().mean()
            rows.append(torch.stack([taught.reward.mean(), taught.mean.mean(), improved, loss.double()]))
            if last:
                with self._watch.timed("optimizer"):
                    rate = self.learning_rate()
                    norm = self._step(rate)  # line 19
        reward, mean, improved, loss = over_processes(torch.stack(rows).mean(dim=0)).tolist()
        self.batches += 1
        self.instances += batch.share.batch
        return {
            "batch": self.batches, "instances": self.instances, "steps": self.steps,
            "problem": batch.problem, "customers": batch.customers,
            "cost_before": float(before().costs.mean()), "cost_after": float(learning.state.stats().costs.mean()),
            "best_reward": reward, "mean_reward": mean, "improved": improved, "loss": loss,
            "gradient": float(norm), "learning_rate": rate, "seconds": self._watch.seconds(),
        }  # fmt: skip

    def _iteration(
        self, batch: Batch, learning: Learning, i: int, weight: float, *, last: bool
    ) -> tuple[Signal, Tensor]:
        """Do lines 10 to 17: K rollouts, their rewards, the gradient of the best, whose solution is kept."""
        recipe = self.config.train
        with self._watch.timed("rollout"):
            inputs = learning.shown()
            numbers = self._random_numbers(batch, i, recipe.rollouts, learning.removals)
            rollouts = self._roll_out(inputs, numbers)  # line 10
        with self._watch.timed("evaluate"):
            change = self.engine.evaluate(  # lines 11 to 13, and 17
                learning.state, reconstruction(recipe, learning.removals), rollouts.removed, recipe.rollouts,
                self._seed(batch), APART + i, keep_best=True, always=recipe.acceptance == "always",
            )  # fmt: skip
        with self._watch.timed("gradient"), self._apart(last):
            taught = signal(torch.as_tensor(change), scale=recipe.scale_advantage)  # lines 14 and 15
            rows = torch.arange(len(taught.best), device=self.device)
            loss = self.gradient(  # line 16
                rollouts.removed[rows, taught.best, None], numbers.seeds[rows, taught.best, None],
                weight * taught.advantage, *inputs.tensors(),
            )  # fmt: skip
            return taught, loss / weight

    def _gradient(self, removed: Tensor, seeds: Tensor, advantage: Tensor, *inputs: Tensor) -> Tensor:
        """Add the gradient of the loss of the best rollouts, (B, 1, M) and (B, 1, bits), to `grad` of the weights."""
        with low_precision(self.device):
            log_probability = self.parallel(Inputs.of_tensors(*inputs), removed, seeds)[:, 0]
        loss = loss_of(log_probability, advantage)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def _step(self, rate: float) -> Tensor:
        """Make an optimizer step at this learning rate. Return the norm of the gradient before it is clipped."""
        recipe = self.config.train
        limit = recipe.clip_gradient or math.inf
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), limit)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
        self.steps += 1
        if recipe.average:
            # Decay faster at first, so that the untrained weights lose their influence.
            decay = min(recipe.average, self.steps / (10.0 + self.steps))
            with torch.no_grad():
                torch._foreach_lerp_(list(self.average.parameters()), list(self.network.parameters()), 1.0 - decay)
        return norm

    def learning_rate(self) -> float:
        """Return the rate of the next step: it rises over the first steps of a run, then follows the schedule."""
        recipe = self.config.train
        rise = min(1.0, (self.steps + 1) / max(1, recipe.warm_up_steps))
        fall = 1.0
        if recipe.schedule == "cosine":
            way = min(1.0, self.steps / recipe.horizon)
            fall = recipe.final_rate + (1.0 - recipe.final_rate) * (1.0 + math.cos(math.pi * way)) / 2.0
        return recipe.learning_rate * rise * fall

    def _prefetch(self) -> Prefetch:
        """Return what makes batches ahead: a thread, or the GPU of the engine."""
        if isinstance(self.engine, CudaEngine):
            make = partial(draw_on_gpu, self.engine, self.device)
            return GpuPrefetch(BatchMaker(self.config, self.share, make, self.own))
        return ThreadPrefetch(BatchMaker(self.config, self.share, own=self.own))

    def close(self) -> None:
        """Make no more batches."""
        self._batches.close()

    def _seed(self, batch: Batch) -> int:
        """Return the seed of the engine for a batch, from the seed of the run and the number of the batch."""
        words = np.random.SeedSequence((self.config.train.seed, batch.number, 2)).generate_state(1, np.uint64)
        return int(words[0] >> 1)

    def _random_numbers(self, batch: Batch, i: int, rollouts: int, removals: int) -> RandomNumbers:
        return RandomNumbers.from_counter(
            batch.first, batch.share.count, key_of(self.config.train.seed, 3, i), rollouts, removals,
            self.network.config.seed_bits, self.device,
        )  # fmt: skip

    def _roll_out(self, inputs: Inputs, numbers: RandomNumbers) -> Rollouts:
        rollouts = self.sampler(inputs, numbers, threads=self.threads)
        assert rollouts is not None  # there is no deadline
        return rollouts

    def _improvement_policy(self, batch: Batch) -> RuinByPolicy:
        def ruin(inputs: Inputs, j: int) -> Tensor:
            removals = min(self.config.train.removals, batch.customers)
            numbers = self._random_numbers(batch, APART + j, self.config.train.warm_up_rollouts, removals)
            return self._roll_out(inputs, numbers).removed

        return ruin

    def _apart(self, last: bool) -> AbstractContextManager[Any]:
        """Return a context in which processes do not exchange gradients, except for the last iteration of a step."""
        return nullcontext() if last or self.processes == 1 else self.parallel.no_sync()
