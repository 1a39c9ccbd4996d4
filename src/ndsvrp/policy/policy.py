"""The learned deconstruction: a network behind the interface that every deconstruction has."""

from __future__ import annotations

import numpy as np
import torch

from ndsvrp.engine.base import Ints
from ndsvrp.policy.inputs import Inputs, static_inputs
from ndsvrp.policy.network import Network
from ndsvrp.policy.rollout import Draws, Rollouts, draw, sample
from ndsvrp.problem import Problem
from ndsvrp.ruin import Situation

AT_ONCE = 4_000_000  # rollouts x customers decoded together on a CPU: what stays in its caches and in bounds


class Policy:
    """Takes customers out of solutions as a network says. Weights and inputs live on one device."""

    def __init__(self, network: Network, device: str | torch.device = "cpu") -> None:
        self.device = torch.device(device)
        self.network = network.to(self.device).eval()
        self._problem: Problem | None = None
        self._inputs: Inputs | None = None

    def __call__(self, situation: Situation) -> Ints:
        """(chains, K, M) int32 customers, in the order of reinsertion; no rollouts if time was up before."""
        inputs = self._static(situation).showing(situation.view)
        chains, rollouts, removals = len(inputs.nodes), situation.rollouts, situation.removals
        draws = draw(situation.random, chains, rollouts, removals, self.network.config.seed_bits)
        step = max(1, AT_ONCE // (rollouts * situation.problem.customers)) if self.device.type == "cpu" else chains
        parts: list[torch.Tensor] = []
        for begin in range(0, chains, step):
            end = begin + step
            part = Draws(*(numbers[begin:end] for numbers in draws))
            result = self.sample(inputs.part(begin, end), part, situation.deadline)
            if result is None:
                return np.empty((chains, 0, removals), np.int32)
            parts.append(result.removed.to("cpu", torch.int32))
        return torch.cat(parts).numpy()

    def sample(self, inputs: Inputs, draws: Draws, deadline: float | None = None) -> Rollouts | None:
        """Rollouts in bfloat16 on a GPU, in float32 on a CPU."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            return sample(self.network, inputs, draws, deadline)

    def _static(self, situation: Situation) -> Inputs:
        """What does not change within a search is made once."""
        if self._inputs is None or self._problem is not situation.problem:
            problem = self._problem = situation.problem
            matrix = None if problem.distance is None else problem.distance / problem.side()
            self._inputs = static_inputs([problem], situation.coordinates, self.device, matrix)
        return self._inputs
