"""How good a policy is: its best-of-K reward beside that of related removal, and what a short search finds with it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
import torch

from ndsvrp.engine.base import Engine
from ndsvrp.policy.network import Network
from ndsvrp.policy.policy import Policy
from ndsvrp.policy.random_numbers import RandomNumbers
from ndsvrp.problem import Problem
from ndsvrp.ruin import Ruin
from ndsvrp.search.solve import solve
from ndsvrp.train.config import Source, TrainConfig
from ndsvrp.train.data import recipe_of
from ndsvrp.train.loss import signal
from ndsvrp.train.states import Learning, prepare, reconstruction

MOST = 5_000  # instances of a kind in a set, as the configuration has it
EVALUATION = 1 << 33  # number of the iteration by which evaluations draw their random numbers


@dataclass(eq=False)
class Validator:
    """Instances and solutions of validation: made once, the same ones every time."""

    config: TrainConfig
    engine: Engine
    device: torch.device
    threads: int = 1

    def __post_init__(self) -> None:
        self._policy: Policy | None = None
        self.sets = [
            _Set(self, source, customers, 2 * MOST * number)
            for number, (source, customers) in enumerate(
                (source, size) for source in self.config.data for size in dict.fromkeys(source.customers)
            )
            if customers in (self.config.validation.customers or source.customers)
        ]

    def policy(self, network: Network) -> Policy:
        """The network in the place of a rule; the same one for the same network, with all it has recorded."""
        if self._policy is None or self._policy.network is not network:
            self._policy = Policy(network, self.device)
        return self._policy

    def measure(self, network: Network) -> dict[str, Any]:
        """Figures by problem and size, and `reward_ratio`: the best-of-K reward of all together relative to that of
        related removal; None where related removal improves nothing."""
        figures = {measured.name: measured.measure(network) for measured in self.sets}
        rewards, related = (sum(f[name] for f in figures.values()) for name in ("reward", "related_reward"))
        return {"reward_ratio": _ratio(rewards, related), "sets": figures}


class _Set:
    """One problem and size."""

    def __init__(self, validator: Validator, source: Source, customers: int, first: int) -> None:
        self.validator, self.config = validator, validator.config
        recipe, validation = self.config.train, self.config.validation
        self.name = name_of(source, customers)
        recipe_of_set = recipe_of(source, customers)
        problems = recipe_of_set.problems(validation.seed, first, validation.states)
        # By a third rule: solutions that related removal has improved itself leave nothing to it.
        self.learning: Learning = prepare(
            validator.engine, problems, recipe, validation.seed, first, validator.device, rule="string"
        )
        self.related = self._reward(None)
        self.searched = recipe_of_set.problems(validation.seed, first + MOST, validation.search_instances)
        self.related_cost = self._cost("related") if self.searched else None

    def measure(self, network: Network) -> dict[str, Any]:
        policy = self.validator.policy(network)
        reward = self._reward(policy)
        figure: dict[str, Any] = {
            "reward": reward, "related_reward": self.related,
            "reward_ratio": _ratio(reward, self.related),
        }  # fmt: skip
        if self.searched:
            figure |= {"cost": self._cost(policy), "related_cost": self.related_cost}
        return figure

    def _reward(self, policy: Policy | None) -> float:
        """Mean best-of-K reward on the saved solutions; None: of related removal."""
        recipe, learning = self.config.train, self.learning
        removed = None
        if policy is not None:
            random = np.random.default_rng((self.config.validation.seed, 4))
            count, bits = len(learning.inputs.nodes), policy.network.config.seed_bits
            numbers = RandomNumbers.from_generator(random, count, recipe.rollouts, learning.removals, bits).to(
                policy.device
            )
            rollouts = policy.sampler(learning.shown(), numbers, threads=self.validator.threads)
            assert rollouts is not None  # there is no deadline
            removed = rollouts.removed
        how = reconstruction(recipe, learning.removals, rule="related" if policy is None else None)
        change = learning.engine.evaluate(
            learning.state, how, removed, recipe.rollouts, self.config.validation.seed, EVALUATION, keep_best=False
        )
        return float(signal(torch.as_tensor(change), scale=False).reward.mean())

    def _cost(self, ruin: str | Ruin) -> float:
        """Mean cost that a short search finds."""
        return fmean(self._solve(problem, ruin) for problem in self.searched)

    def _solve(self, problem: Problem, ruin: str | Ruin) -> float:
        recipe, validation = self.config.train, self.config.validation
        return solve(
            problem, iterations=validation.search_iterations, seed=validation.seed, solver="nds", ruin=ruin,
            chains=validation.search_chains, threads=self.validator.threads, device=self.validator.device.type,
            rollouts=recipe.rollouts, removals=recipe.removals, orders=recipe.orders,
        ).cost  # fmt: skip


def name_of(source: Source, customers: int) -> str:
    """`cvrp100-clustered-5:40`: problem, size, and what the source says beyond."""
    routes = ":".join(f"{mean:g}" for mean in source.customers_per_route)
    return "-".join(filter(None, (f"{source.problem}{customers}", source.layout, source.depot, routes)))


def _ratio(reward: float, related: float) -> float | None:
    return reward / related if related > 0 else None
