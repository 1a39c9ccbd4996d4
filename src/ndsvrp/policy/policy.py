"""The learned ruin: a network behind the `Ruin` protocol."""

from collections import deque
from typing import Any

import numpy as np
import torch

from ndsvrp.engine.device import room_for
from ndsvrp.errors import EngineError
from ndsvrp.metric import Floats
from ndsvrp.policy.graphs import timing_event
from ndsvrp.policy.inputs import Inputs, static_inputs
from ndsvrp.policy.network import Network
from ndsvrp.policy.random_numbers import RandomNumbers
from ndsvrp.policy.rollout import Sampler
from ndsvrp.policy.windows import Divided, window_size
from ndsvrp.ruin import RuinRequest

BYTES_PER_CHANNEL = 40  # of GPU memory, per node and channel of the network; measured: 35 for 128 x 2001 nodes
PENDING = 4  # calls whose times are kept until they end: more than a search runs at once


class Policy:
    """Chooses customers to remove by rollouts of a network, on one device."""

    def __init__(self, network: Network, device: str | torch.device = "cpu") -> None:
        self.device = torch.device(device)
        self.network = network.to(self.device).eval()
        self.sampler = Sampler(self.network)
        self._marks: deque[tuple[Any, Any]] = deque(maxlen=PENDING)  #: start and end events of calls on the GPU
        self._took = 0.0  #: seconds of the last call that has ended
        self._coordinates: Floats | None = None  #: of the inputs
        self._inputs: Inputs | None = None

    on_device = True
    batched = True
    in_regions = True

    def __call__(self, request: RuinRequest) -> Any:
        """Return (chains, K, M) int32 customers in insertion order, or (parts, K, M); none after the deadline.

        The result is a tensor on the GPU if the view is one, else an array.
        """
        began = self._mark()
        static = self._static(request)
        shape = request.rows, request.rollouts, request.removals
        numbers = self._random_numbers(request.random, *shape)
        fits = True
        try:
            removed = self._sample(static, request, numbers)
        except torch.cuda.OutOfMemoryError:
            fits = False
        if not fits:  # outside of `except`, where the traceback would keep tensors alive
            raise self._too_many(request)
        if removed is None:
            return np.empty((shape[0], 0, shape[2]), np.int32)
        if began is not None:
            self._marks.append((began, self._mark()))
        return removed if isinstance(request.view[0], torch.Tensor) else removed.cpu().numpy()

    def _sample(self, static: Inputs, request: RuinRequest, numbers: RandomNumbers) -> torch.Tensor | None:
        how: dict[str, Any] = {"threads": request.threads, "deadline": request.deadline}
        if request.regions is None:
            return self.sampler.customers(static.showing(request.view), numbers, **how)
        view = request.view
        shown = view if isinstance(view, torch.Tensor) else torch.from_numpy(np.stack(view)).to(self.device)
        counts, customers = (torch.as_tensor(array, device=self.device) for array in request.regions)
        return self.sampler.customers_in_regions(Divided(static.nodes, shown, counts, customers), numbers, **how)

    def _too_many(self, request: RuinRequest) -> EngineError:
        customers = request.problem.customers
        if request.regions is not None:
            customers = window_size(customers, request.rows // len(request.coordinates), request.removals)
        torch.cuda.empty_cache()
        free, fit = room_for(torch, (1 + customers) * BYTES_PER_CHANNEL * self.network.config.width)
        return EngineError(
            f"{free:.1f} GiB of GPU memory are free, too few for the network to look at {request.rows} chains of "
            f"{customers} customers: about {fit} would fit"
        )

    def expected_seconds(self) -> float:
        """Return the seconds of the last finished call on a GPU; 0 before it, and on a CPU, which keeps deadlines."""
        while self._marks and self._marks[0][1].query():
            began, ended = self._marks.popleft()
            self._took = float(began.elapsed_time(ended)) / 1e3
        return self._took

    def _random_numbers(self, random: np.random.Generator, chains: int, rollouts: int, removals: int) -> RandomNumbers:
        key = random.integers(1 << 32, size=4).tolist()
        bits = self.network.config.seed_bits
        return RandomNumbers.from_counter(0, chains, key, rollouts, removals, bits, self.device)

    def _mark(self) -> Any:
        return timing_event() if self.device.type == "cuda" else None

    def _static(self, request: RuinRequest) -> Inputs:
        """Return the inputs that do not change within a search, made once."""
        if self._inputs is None or self._coordinates is not request.coordinates:
            problem, self._coordinates = request.problem, request.coordinates
            matrix = None if problem.distance is None else problem.distance / problem.side()
            chains = len(request.coordinates) // len(request.problems)
            problems = [p for p in request.problems for _ in range(chains)] if request.problems[1:] else [problem]
            self._inputs = static_inputs(problems, request.coordinates, self.device, matrix)
        return self._inputs
