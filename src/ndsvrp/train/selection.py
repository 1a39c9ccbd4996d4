"""Which weights of a run become the model, and what a run on your own instances gains."""

from __future__ import annotations

from copy import deepcopy
from time import perf_counter
from typing import Any

import torch

from ndsvrp.engine.base import Engine
from ndsvrp.policy.model_file import ModelFile, read_weights
from ndsvrp.policy.network import Network
from ndsvrp.policy.policy import Policy
from ndsvrp.train.checkpoint import Tensors
from ndsvrp.train.config import TrainConfig
from ndsvrp.train.own_instances import Own
from ndsvrp.train.short_search import ShortSearches
from ndsvrp.train.validation import Validator


class Selection:
    """The figures of a run and, with `keep_best`, the weights whose short searches have the lowest costs.

    Weights are compared on generated instances: on those resampled from the instances to train on, if these are your
    own. Held back instances are searched with the first weights and with the model at the end, and decide nothing. So
    what they show is not better by choice.
    """

    def __init__(
        self, config: TrainConfig, engine: Engine, device: torch.device, threads: int, own: Own, kept: ModelFile | None
    ) -> None:
        self.config = config
        self.figures: dict[str, Any] = {} if kept is None else dict(kept.card.validation)  #: of the model
        self.weights: Tensors | None = None  #: of the model; None: those of the trainer
        if kept is not None and config.validation.keep_best:
            self.weights = read_weights(kept)
        start = {name: figure.get("start_costs", []) for name, figure in self.figures.get("sets", {}).items()}
        self.validator = Validator(config, engine, device, threads, own, start)
        held_back = [problem for instances in own.values() for problem in instances.held_back]
        self._held_back: ShortSearches | None = None
        if held_back and config.validation.search_instances:
            known = self.figures.get("held_back", {}).get("start_costs", [])
            self._held_back = ShortSearches(held_back, config, device, threads, known)

    def measure(self, network: Network, instances: int) -> dict[str, Any]:
        """Return the figures of a network after `instances`. It becomes the model if it is the best so far."""
        figures = self.validator.measure(network)
        if not self.config.validation.keep_best:
            self._take(figures)
        elif self.weights is None or self._is_better(figures):
            self._take({**figures, "at_instances": instances})
            self.weights = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        return figures

    def measure_start(self, network: Network) -> float:
        """Search held back instances with the first weights of the run, unless that was done. Return the seconds."""
        if self._held_back is not None and not self._held_back.start:
            tick = perf_counter()
            figures = self._held_back.measure(self._policy(network))
            self.figures["held_back"] = {**figures, "seconds": perf_counter() - tick}
        return float(self.figures.get("held_back", {}).get("seconds", 0.0))

    def measure_end(self, network: Network) -> bool:
        """Search held back instances with the model. Return whether there are some."""
        if self._held_back is None:
            return False
        if self.weights is not None:
            network = deepcopy(network)
            network.load_state_dict(self.weights)
        tick = perf_counter()
        figures = self._held_back.measure(self._policy(network))
        self.figures["held_back"] = {**figures, "seconds": perf_counter() - tick}
        return True

    def _is_better(self, figures: dict[str, Any]) -> bool:
        """Return whether costs are the lowest so far, and below those of the start by more than the standard error.

        Of many weights that are as good as the start, some have lower costs by chance.
        """
        return bool(figures["to_start"] < min(self.figures["to_start"], -figures["to_start_error"]))

    def _take(self, figures: dict[str, Any]) -> None:
        kept = {"held_back": self.figures["held_back"]} if "held_back" in self.figures else {}
        self.figures = {**figures, **kept}

    def _policy(self, network: Network) -> Policy:
        """Return a policy of its own, whose captured graphs of many sizes are freed with it."""
        return Policy(network, self.validator.device)
