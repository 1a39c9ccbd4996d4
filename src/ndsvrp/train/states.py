"""Solutions to train on: started, then improved, so that they resemble those of a search (lines 5 to 8)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ndsvrp.arrays import full
from ndsvrp.engine import base
from ndsvrp.engine.base import Engine, State
from ndsvrp.policy.inputs import Inputs, static_inputs
from ndsvrp.problem import Problem
from ndsvrp.search.plane import plane
from ndsvrp.search.start import improve_start
from ndsvrp.search.stopping import ExponentialCooling
from ndsvrp.train.config import Recipe
from ndsvrp.train.gpu_batch import GpuBatch

RuinByPolicy = Callable[[Inputs, int], Tensor]
"""Return (B, K, M) removed customers for the current solutions, in improvement step j."""


@dataclass(eq=False)
class Learning:
    """A batch of chains of an engine, and the inputs of the network for them."""

    engine: Engine
    state: State
    inputs: Inputs  #: without the solutions
    removals: int

    def shown(self) -> Inputs:
        """Return the inputs with the current solutions."""
        return self.inputs.showing(self.engine.view(self.state, on_device=True))


def prepare(
    engine: Engine, problems: Sequence[Problem] | GpuBatch, recipe: Recipe, seed: int, first: int, device: torch.device,
    policy: RuinByPolicy | None = None, rule: base.Rule = "related",
) -> Learning:  # fmt: skip
    """Return start solutions after J improvement steps by a rule, or by the policy if one is given."""
    state: State
    sides: Any  # an array, or a tensor on the GPU
    if isinstance(problems, GpuBatch):
        state, inputs = problems.start(first), problems.inputs
        sides = problems.instances.side()[:, None].repeat(1, recipe.warm_up_rollouts)
    else:
        state = engine.start(problems, np.arange(len(problems)), first=first)
        inputs = static_inputs(problems, np.stack([plane(problem) for problem in problems]), device)
        sides = np.repeat([[problem.side()] for problem in problems], recipe.warm_up_rollouts, axis=1)
        if device.type == "cuda":
            sides = torch.as_tensor(sides, device=device)  # once, so that the steps do not wait for copies
    units = sides if recipe.temperature_scale == "side" else full(sides, sides.shape, 1.0)
    improve_start(engine, state, seed, recipe.start_rounds)
    removals = min(recipe.removals, inputs.nodes.shape[1] - 1)
    learning = Learning(engine, state, inputs, removals)
    cooling = ExponentialCooling(recipe.hot, recipe.cold)
    for j in range(recipe.improvement_steps):
        removed = None if policy is None else policy(learning.shown(), j)
        how = reconstruction(recipe, removals, recipe.warm_up_orders, rule=rule if policy is None else None)
        temperature = cooling(j / max(1, recipe.improvement_steps - 1)) * units
        engine.improve(state, how, removed, temperature, seed, j)
    return learning


def reconstruction(recipe: Recipe, removals: int, orders: int = 0, rule: base.Rule | None = None) -> base.Recipe:
    """Return how an engine ruins and recreates in training: given customers or a rule, several insertion orders."""
    return base.Recipe(rule=rule, removals=removals, orders=orders or recipe.orders, all_routes=recipe.scope == "all")
