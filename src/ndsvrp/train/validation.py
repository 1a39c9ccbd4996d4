"""Validation: best-of-K rewards of a policy beside those of related removal, and costs of short searches."""

from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
import torch

from ndsvrp.engine.base import Engine
from ndsvrp.policy.network import Network
from ndsvrp.policy.policy import Policy
from ndsvrp.policy.random_numbers import RandomNumbers
from ndsvrp.ruin import Ruin
from ndsvrp.search.solve import solve
from ndsvrp.train.config import Source, TrainConfig
from ndsvrp.train.data import recipe_of
from ndsvrp.train.loss import signal
from ndsvrp.train.states import Learning, prepare, reconstruction

MOST = 5_000  # instances per set, the limit of the configuration
EVALUATION = 1 << 33  # iteration number for the random numbers of evaluations


@dataclass(eq=False)
class Validator:
    """Instances and solutions for validation. They are made once and stay the same."""

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
        """Return the network as a ruin. The same network gives the same object, with its captured graphs."""
        if self._policy is None or self._policy.network is not network:
            self._policy = Policy(network, self.device)
        return self._policy

    def measure(self, network: Network) -> dict[str, Any]:
        """Return figures by problem and size, and `reward_ratio`: their best-of-K reward relative to related removal's.

        The ratio is None if related removal improves nothing.
        """
        figures = {measured.name: measured.measure(network) for measured in self.sets}
        rewards, related = (sum(f[name] for f in figures.values()) for name in ("reward", "related_reward"))
        return {"reward_ratio": _ratio(rewards, related), "sets": figures}


class _Set:
    """A problem and a size."""

    def __init__(self, validator: Validator, source: Source, customers: int, first: int) -> None:
        self.validator, self.config = validator, validator.config
        recipe, validation = self.config.train, self.config.validation
        self.name = name_of(source, customers)
        recipe_of_set = recipe_of(source, customers)
        problems = recipe_of_set.problems(validation.seed, first, validation.states)
        # By another rule: related removal finds little in solutions that it has improved itself.
        self.learning: Learning = prepare(
            validator.engine, problems, recipe, validation.seed, first, validator.device, rule="string"
        )
        self.related = self._reward(None)
        self.searched = recipe_of_set.problems(validation.seed, first + MOST, validation.search_instances)
        self.related_cost = self._cost("related") if self.searched else None

    def measure(self, network: Network) -> dict[str, Any]:
        policy = self.validator.policy(network)
        reward = self._reward(policy)
        costs = {"cost": self._cost(policy), "related_cost": self.related_cost} if self.searched else {}
        ratio = _ratio(reward, self.related)
        return {"reward": reward, "related_reward": self.related, "reward_ratio": ratio, **costs}

    def _reward(self, policy: Policy | None) -> float:
        """Return the mean best-of-K reward on the saved solutions, of related removal if there is no policy."""
        recipe, learning = self.config.train, self.learning
        removed = None
        if policy is not None:
            random = np.random.default_rng((self.config.validation.seed, 4))
            count, bits = len(learning.inputs.nodes), policy.network.config.seed_bits
            numbers = RandomNumbers.from_generator(random, count, recipe.rollouts, learning.removals, bits)
            rollouts = policy.sampler(learning.shown(), numbers.to(policy.device), threads=self.validator.threads)
            assert rollouts is not None  # there is no deadline
            removed = rollouts.removed
        how = reconstruction(recipe, learning.removals, rule="related" if policy is None else None)
        change = learning.engine.evaluate(
            learning.state, how, removed, recipe.rollouts, self.config.validation.seed, EVALUATION, keep_best=False
        )
        return float(signal(torch.as_tensor(change), scale=False).reward.mean())

    def _cost(self, ruin: str | Ruin) -> float:
        """Return the mean cost of a short search."""
        recipe, validation = self.config.train, self.config.validation
        how: dict[str, Any] = {
            "iterations": validation.search_iterations, "seed": validation.seed, "solver": "nds", "ruin": ruin,
            "chains": validation.search_chains, "threads": self.validator.threads,
            "device": self.validator.device.type, "rollouts": recipe.rollouts, "removals": recipe.removals,
            "orders": recipe.orders, "scope": recipe.scope,
        }  # fmt: skip
        return fmean(solve(problem, **how).cost for problem in self.searched)


def name_of(source: Source, customers: int) -> str:
    """Return the name of a set, such as `cvrp100-clustered-5:40`: problem, size, settings of the source."""
    routes = ":".join(f"{mean:g}" for mean in source.customers_per_route)
    return "-".join(filter(None, (f"{source.problem}{customers}", source.layout, source.depot, routes)))


def _ratio(reward: float, related: float) -> float | None:
    return reward / related if related > 0 else None
