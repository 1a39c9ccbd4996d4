"""Short searches on fixed instances: mean costs of a policy beside those of rules and of the model a run began with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

import torch

from ndsvrp.problem import Problem
from ndsvrp.ruin import Ruin
from ndsvrp.search.result import Result
from ndsvrp.search.solver import Solver
from ndsvrp.train.config import TrainConfig

RULES = ("related", "string")  #: that a policy is compared with, by the same searches


@dataclass(eq=False)
class ShortSearches:
    """Searches with one seed and one budget, those of one size together. Every cost is that of `check`.

    The problems have any number of vehicles, so that each search has a solution.

    The first policy that is measured is the start, unless its costs are given: those of later ones are compared with
    them, instance by instance.
    """

    problems: Sequence[Problem]
    config: TrainConfig
    device: torch.device
    threads: int = 1
    start: list[float] = field(default_factory=list)  #: costs of the start, by instance

    def __post_init__(self) -> None:
        self.rules = {rule: self._costs(rule) for rule in RULES}
        if len(self.start) != len(self.problems):
            self.start = []

    def measure(self, policy: Ruin) -> dict[str, Any]:
        """Return mean costs with standard errors, and paired differences in percent."""
        costs = self._costs(policy)
        self.start = self.start or costs
        figures: dict[str, Any] = {"instances": len(costs), **_mean("cost", costs)}
        for name, others in {**self.rules, "start": self.start}.items():
            figures |= _mean(f"{name}_cost", others) | _mean(f"to_{name}", _percent(costs, others))
        return {**figures, "start_costs": self.start}

    def _costs(self, ruin: str | Ruin) -> list[float]:
        recipe, validation = self.config.train, self.config.validation
        budget: dict[str, Any] = (
            {"time": validation.search_seconds} if validation.search_seconds else
            {"iterations": validation.search_iterations}
        )  # fmt: skip
        with Solver(
            solver="nds", ruin=ruin, chains=validation.search_chains, threads=self.threads, device=self.device.type,
            rollouts=recipe.rollouts, removals=recipe.removals, orders=recipe.orders, scope=recipe.scope,
        ) as solver:  # fmt: skip
            outcomes = solver.solve_set(self.problems, seed=validation.seed, **budget)
        results = [outcome for outcome in outcomes if isinstance(outcome, Result)]
        if len(results) < len(outcomes) or any(result.stopped == "interrupted" for result in results):
            raise KeyboardInterrupt  # whoever asks twice for an end does not get figures of half a search
        return [result.cost for result in results]


def _percent(costs: Sequence[float], others: Sequence[float]) -> list[float]:
    pairs = zip(costs, others, strict=True)
    return [100.0 * (cost - other) / other if other else 0.0 for cost, other in pairs]


def _mean(name: str, values: Sequence[float]) -> dict[str, Any]:
    """Return the mean and its standard error; that of a single value is None."""
    error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else None
    return {name: fmean(values), f"{name}_error": error}
