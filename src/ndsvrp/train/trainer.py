"""Algorithm 1 of the paper: rollouts of the policy, greedy insertion, and a gradient through the best of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import torch
import torch.distributed
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from ndsvrp.engine.base import Engine
from ndsvrp.policy.inputs import Inputs
from ndsvrp.policy.network import Network
from ndsvrp.policy.recorded import Recordings, low_precision
from ndsvrp.policy.rollout import Draws, Rollouts, Sampler, draw
from ndsvrp.train.config import TrainConfig
from ndsvrp.train.data import Batch, Share, draw_batch
from ndsvrp.train.loss import Signal, loss_of, over_processes, signal
from ndsvrp.train.states import Learning, prepare, reconstruction

APART = 1 << 32  # added to the number of an iteration or a step, so that training and improvement draw apart


@dataclass
class Trainer:
    """A run between two checkpoints: weights, optimizer, counters.

    The same numbers of processes and threads take the same trajectory.
    """

    config: TrainConfig
    network: Network
    engine: Engine
    device: torch.device
    rank: int = 0
    processes: int = 1
    threads: int = 1
    batches: int = 0  #: done so far
    steps: int = 0  #: of the optimizer
    seconds: dict[str, float] = field(default_factory=dict)  #: where the time of the last batch went

    def __post_init__(self) -> None:
        recipe = self.config.train
        self.network.to(self.device).train()
        self.average = deepcopy(self.network).requires_grad_(False) if recipe.average else self.network
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), recipe.learning_rate, weight_decay=recipe.weight_decay
        )
        self.sampler = Sampler(self.network)
        gradients = [torch.zeros_like(parameter) for parameter in self.network.parameters()]
        for parameter, gradient in zip(self.network.parameters(), gradients, strict=True):
            parameter.grad = gradient  # they stay where they are: recordings add to them
        # Processes exchange gradients while these are computed, which cannot be recorded.
        recorded = self.device.type == "cuda" and self.processes == 1
        self.gradient: Callable[..., Tensor] = Recordings(self._gradient, gradients) if recorded else self._gradient
        self._drawing = ThreadPoolExecutor(1)
        self._awaited: Future[Batch] | None = None
        self.share = Share.of(recipe.batch, self.rank, self.processes)
        self.parallel: Any = DistributedDataParallel(self.network) if self.processes > 1 else self.network

    # --- Algorithm 1 -------------------------------------------------------------------------

    def train_batch(self) -> dict[str, Any]:
        """Lines 4 to 19 for the next batch of instances. Returns what there is to log."""
        recipe = self.config.train
        self.seconds = {}
        with self._timed("generate"):
            batch = self._next_batch()  # line 4
        with self._timed("start"):
            policy = self._improvement_policy(batch) if recipe.warm_up == "policy" else None
            learning = prepare(  # lines 5 to 8
                self.engine, batch.problems, recipe, self._seed(batch), self.share.first, self.device, policy
            )
        before = learning.state.costs().mean()
        every = recipe.step_every or recipe.iterations
        rows = []
        norm = rate = 0.0
        for i in range(recipe.iterations):  # line 9
            last = (i + 1) % every == 0 or i + 1 == recipe.iterations
            together = min(every, recipe.iterations - i // every * every)  # iterations of this optimizer step
            taught, loss = self._iteration(batch, learning, i, 1.0 / together, last=last)
            rows.append([taught.reward.mean(), taught.mean.mean(), (taught.reward > 0).double().mean(), loss])
            if last:
                with self._timed("optimizer"):
                    rate = self.learning_rate()
                    norm = self._step(rate)  # line 19
        reward, mean, improved, loss = over_processes(torch.tensor(rows, dtype=torch.float64).mean(dim=0)).tolist()
        self.batches += 1
        return {
            "batch": self.batches, "instances": self.batches * recipe.batch, "steps": self.steps,
            "problem": batch.problem, "customers": batch.customers,
            "cost_before": float(before), "cost_after": float(learning.state.costs().mean()),
            "best_reward": reward, "mean_reward": mean, "improved": improved, "loss": loss,
            "gradient": norm, "learning_rate": rate, "seconds": dict(self.seconds),
        }  # fmt: skip

    def _iteration(
        self, batch: Batch, learning: Learning, i: int, weight: float, *, last: bool
    ) -> tuple[Signal, float]:
        """Lines 10 to 17: K rollouts, their rewards, the gradient of the best, which is kept."""
        recipe = self.config.train
        with self._timed("rollout"):
            inputs = learning.shown()
            draws = self._draws(batch, i, recipe.rollouts, learning.removals)
            rollouts = self._roll_out(inputs, draws)  # line 10
        with self._timed("evaluate"):
            change = self.engine.evaluate(  # lines 11 to 13, and 17
                learning.state, reconstruction(recipe, learning.removals), rollouts.removed, recipe.rollouts,
                self._seed(batch), APART + i, keep_best=True,
            )  # fmt: skip
        with self._timed("gradient"), self._apart(last):
            taught = signal(torch.as_tensor(change), scale=recipe.scale_advantage)  # lines 14 and 15
            best = taught.best.to(self.device)
            rows = torch.arange(len(best), device=self.device)
            loss = self.gradient(  # line 16
                rollouts.removed[rows, best, None], draws.seeds[rows, best, None],
                weight * taught.advantage.to(self.device), *inputs.tensors(),
            )  # fmt: skip
            return taught, float(loss) / weight

    def _gradient(self, removed: Tensor, seeds: Tensor, advantage: Tensor, *inputs: Tensor) -> Tensor:
        """Add the gradient of the loss of the best rollouts, (B, 1, M) and (B, 1, bits), to that of the weights."""
        with low_precision(self.device):
            log_probability = self.parallel(Inputs.of_tensors(*inputs), removed, seeds)[:, 0]
        loss = loss_of(log_probability, advantage)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def _step(self, rate: float) -> float:
        """The optimizer step at this learning rate; returns the norm of the gradient before it is clipped."""
        recipe = self.config.train
        limit = recipe.clip_gradient or math.inf
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), limit)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
        self.steps += 1
        if recipe.average:
            # Early on the mean forgets faster: it must not remember weights that knew nothing.
            decay = min(recipe.average, self.steps / (10.0 + self.steps))
            with torch.no_grad():
                torch._foreach_lerp_(list(self.average.parameters()), list(self.network.parameters()), 1.0 - decay)
        return float(norm)

    def learning_rate(self) -> float:
        """Of the next step: rising over the first steps of a run, then along the schedule."""
        recipe = self.config.train
        rise = min(1.0, (self.steps + 1) / max(1, recipe.warm_up_steps))
        fall = 1.0
        if recipe.schedule == "cosine":
            way = min(1.0, self.steps / recipe.horizon)
            fall = recipe.final_rate + (1.0 - recipe.final_rate) * (1.0 + math.cos(math.pi * way)) / 2.0
        return recipe.learning_rate * rise * fall

    def _next_batch(self) -> Batch:
        """Drawn by a thread while the one before is worked on."""
        awaited, self._awaited = self._awaited, None
        batch = awaited.result() if awaited is not None else self._draw(self.batches)
        if batch.number != self.batches:  # a checkpoint was restored meanwhile
            batch = self._draw(self.batches)
        if self.batches + 1 < self.config.train.batches:
            self._awaited = self._drawing.submit(self._draw, self.batches + 1)
        return batch

    def _draw(self, number: int) -> Batch:
        return draw_batch(self.config.data, self.config.train.seed, number, self.share)

    # --- randomness: everything by the number of the instance ----------------------------------

    def _seed(self, batch: Batch) -> int:
        """Of the engine's random numbers for a batch; a word of the run's seed and the batch's number."""
        words = np.random.SeedSequence((self.config.train.seed, batch.number, 2)).generate_state(1, np.uint64)
        return int(words[0] >> 1)

    def _draws(self, batch: Batch, i: int, rollouts: int, removals: int) -> Draws:
        bits = self.network.config.seed_bits
        parts = [
            draw(np.random.default_rng((self.config.train.seed, batch.first + b, 3, i)), 1, rollouts, removals, bits)
            for b in range(len(batch.problems))
        ]
        return Draws(*(torch.cat(part) for part in zip(*parts, strict=True))).on(self.device)

    # --- rollouts ------------------------------------------------------------------------------

    def _roll_out(self, inputs: Inputs, draws: Draws) -> Rollouts:
        rollouts = self.sampler(inputs, draws, threads=self.threads)
        assert rollouts is not None  # there is no deadline
        return rollouts

    def _improvement_policy(self, batch: Batch) -> Any:
        def deconstruct(inputs: Inputs, j: int) -> Any:
            removals = min(self.config.train.removals, batch.customers)
            draws = self._draws(batch, APART + j, self.config.train.warm_up_rollouts, removals)
            return self._roll_out(inputs, draws).removed

        return deconstruct

    def _apart(self, last: bool) -> AbstractContextManager[Any]:
        """While gradients accumulate, processes need not exchange them."""
        return nullcontext() if last or self.processes == 1 else self.parallel.no_sync()

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        began = perf_counter()
        yield
        if self.device.type == "cuda":  # else the part that waits first would pay for all before it
            torch.cuda.synchronize()
        self.seconds[part] = self.seconds.get(part, 0.0) + perf_counter() - began
