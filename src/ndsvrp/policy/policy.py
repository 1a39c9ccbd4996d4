"""The learned deconstruction: a network behind the interface that every deconstruction has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ndsvrp.metric import Floats
from ndsvrp.policy.draws import Draws, draw_by_number
from ndsvrp.policy.inputs import Inputs, static_inputs
from ndsvrp.policy.network import Network
from ndsvrp.policy.recorded import Recordings
from ndsvrp.policy.rollout import Sampler
from ndsvrp.ruin import Situation


class Policy:
    """Takes customers out of solutions as a network says. Weights and inputs live on one device."""

    def __init__(self, network: Network, device: str | torch.device = "cpu") -> None:
        self.device = torch.device(device)
        self.network = network.to(self.device).eval()
        self.sampler = Sampler(self.network)
        self._draw: Callable[..., Draws] = draw_by_number
        if self.device.type == "cuda":
            self._draw = Recordings(draw_by_number)
        self._coordinates: Floats | None = None  #: those that the inputs were made of
        self._inputs: Inputs | None = None

    on_device = True  #: it takes views as engines have them, and answers in kind
    batched = True  #: it takes several problems at once

    def __call__(self, situation: Situation) -> Any:
        """(chains, K, M) int32 customers, in the order of reinsertion; no rollouts if time was up before.

        A tensor on the GPU if the view came as one, else an array.
        """
        inputs = self._static(situation).showing(situation.view)
        shape = len(inputs.nodes), situation.rollouts, situation.removals
        draws = self._draws(situation.random, *shape)
        rollouts = self.sampler(inputs, draws, threads=situation.threads, deadline=situation.deadline)
        if rollouts is None:
            return np.empty((shape[0], 0, shape[2]), np.int32)
        stays = isinstance(situation.view[0], torch.Tensor)
        return rollouts.removed.to(torch.int32) if stays else rollouts.as_array()

    def _draws(self, random: np.random.Generator, chains: int, rollouts: int, removals: int) -> Draws:
        key = torch.from_numpy(random.integers(1 << 32, size=4)).to(self.device)
        numbers, bits = torch.arange(chains, device=self.device), self.network.config.seed_bits
        return self._draw(numbers, key, rollouts=rollouts, removals=removals, bits=bits)

    def _static(self, situation: Situation) -> Inputs:
        """What does not change within a search is made once."""
        if self._inputs is None or self._coordinates is not situation.coordinates:
            problem, self._coordinates = situation.problem, situation.coordinates
            matrix = None if problem.distance is None else problem.distance / problem.side()
            chains = len(situation.coordinates) // len(situation.problems)
            problems = [p for p in situation.problems for _ in range(chains)] if situation.problems[1:] else [problem]
            self._inputs = static_inputs(problems, situation.coordinates, self.device, matrix)
        return self._inputs
