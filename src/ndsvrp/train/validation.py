"""Validation: best-of-K rewards of a policy beside those of related removal, and costs of short searches."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import hypot
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

from ndsvrp.engine.base import Engine
from ndsvrp.policy.network import Network
from ndsvrp.policy.policy import Policy
from ndsvrp.policy.random_numbers import RandomNumbers
from ndsvrp.train.config import Source, TrainConfig
from ndsvrp.train.data import recipe_of
from ndsvrp.train.loss import signal
from ndsvrp.train.own_instances import Own
from ndsvrp.train.short_search import ShortSearches
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
    own: Own = field(default_factory=dict)
    start: Mapping[str, list[float]] = field(default_factory=dict)  #: costs of the start, by the name of the set

    def __post_init__(self) -> None:
        self._policy: Policy | None = None
        possible = [(source, size) for source in self.config.data for size in dict.fromkeys(source.customers)]
        names = names_of(possible)
        self.sets = [
            _Set(self, source, customers, name, 2 * MOST * number)
            for number, ((source, customers), name) in enumerate(zip(possible, names, strict=True))
            if customers in (self.config.validation.customers or source.customers)
        ]

    def policy(self, network: Network) -> Policy:
        """Return the network as a ruin. The same network gives the same object, with its captured graphs."""
        if self._policy is None or self._policy.network is not network:
            self._policy = Policy(network, self.device)
        return self._policy

    def measure(self, network: Network) -> dict[str, Any]:
        """Return figures by problem and size, and `reward_ratio`: their best-of-K reward relative to related removal's.

        The ratio is None if related removal improves nothing. With short searches there is `to_start`: by how many
        percent their costs are above those of the start, as a mean over the sets.
        """
        figures = {measured.name: measured.measure(network) for measured in self.sets}
        rewards, related = (sum(f[name] for f in figures.values()) for name in ("reward", "related_reward"))
        return {"reward_ratio": _ratio(rewards, related), **_change(list(figures.values())), "sets": figures}


class _Set:
    """A problem and a size."""

    def __init__(self, validator: Validator, source: Source, customers: int, name: str, first: int) -> None:
        self.validator, self.config, self.name = validator, validator.config, name
        recipe, validation = self.config.train, self.config.validation
        recipe_of_set = recipe_of(source, customers, validator.own)
        problems = recipe_of_set.problems(validation.seed, first, validation.states)
        # By another rule: related removal finds little in solutions that it has improved itself.
        self.learning: Learning = prepare(
            validator.engine, problems, recipe, validation.seed, first, validator.device, rule="string"
        )
        self.related = self._reward(None)
        searched = recipe_of_set.problems(validation.seed, first + MOST, validation.search_instances)
        start = list(validator.start.get(self.name, ()))
        self.searches = ShortSearches(searched, self.config, validator.device, validator.threads, start)

    def measure(self, network: Network) -> dict[str, Any]:
        policy = self.validator.policy(network)
        reward = self._reward(policy)
        costs = self.searches.measure(policy) if self.searches.problems else {}
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


def names_of(sets: Iterable[tuple[Source, int]]) -> list[str]:
    """Return a name for each source and size. Sets that would have the same name are numbered: `cvrp100-mine-2`."""
    names: list[str] = []
    for source, customers in sets:
        plain = name_of(source, customers)
        numbered = (f"{plain}-{number}" for number in itertools.count(2))
        names.append(plain if plain not in names else next(name for name in numbered if name not in names))
    return names


def name_of(source: Source, customers: int) -> str:
    """Return the name of a set, such as `cvrp100-clustered-5:40`: problem, size, files or settings."""
    routes = ":".join(f"{mean:g}" for mean in source.customers_per_route)
    parts = (f"{source.problem}{customers}", Path(source.files).stem, source.layout, source.depot, routes)
    return "-".join(filter(None, parts))


def _change(figures: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the mean change to the start over sets, and its standard error; nothing if nothing is searched."""
    searched = [figure for figure in figures if "to_start" in figure]
    if not searched:
        return {}
    error = hypot(*(figure["to_start_error"] or 0.0 for figure in searched)) / len(searched)
    return {"to_start": fmean(figure["to_start"] for figure in searched), "to_start_error": error}


def _ratio(reward: float, related: float) -> float | None:
    return reward / related if related > 0 else None
