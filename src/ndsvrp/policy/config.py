"""The shape of the network. Defaults live here alone; a checkpoint carries its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from ndsvrp.errors import NdsError
from ndsvrp.records import documented, require_record

Aggregate = Literal["mean", "sum"]


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """One network. The defaults are the paper's sizes, with the distance term that the paper does not have."""

    width: int = documented(128, "Numbers per node embedding.")
    heads: int = documented(8, "Attention heads.")
    feed_forward: int = documented(512, "Hidden width of the feed-forward parts.")
    layers_before: int = documented(2, "Attention layers that see the instance alone.")
    layers_after: int = documented(2, "Attention layers that see the instance with its solution.")
    message_passing: bool = documented(True, "The layer in which a customer hears from those visited before and after.")
    tour_encoding: bool = documented(True, "The layer in which a customer hears from its whole route.")
    tour_first: bool = documented(False, "Tour encoding before message passing: the order of the authors' code.")
    tour_aggregate: Aggregate = documented(
        "mean", "How a route is summed up: 'mean', or 'sum' as in the authors' code."
    )
    seed_bits: int = documented(10, "Bits of the seed that tells rollouts of one solution apart.")
    seed_width: int = documented(256, "Hidden width of the part that reads the seed.")
    clip: float = documented(10.0, "Logits are clip * tanh(score).")
    distance_term: bool = documented(
        True, "Add -beta d(last, j) sqrt(N) + gamma [same route as the last] to the logits; both learned."
    )
    beta: float = documented(2.0, "beta before training: nearby customers go together.")
    gamma: float = documented(0.0, "gamma before training.")

    def __post_init__(self) -> None:
        require_record(self, RANGES)
        if self.width % self.heads:
            raise NdsError(f"width must be a multiple of heads, got {self.width} and {self.heads}")

    @classmethod
    def paper(cls, **changes: Any) -> NetworkConfig:
        """The paper's own form: no distance term; layer order and aggregation as in its text."""
        return cls(**{"distance_term": False, **changes})


RANGES: dict[str, tuple[Any, ...]] = {
    "width": (1, 4096),
    "heads": (1, 64),
    "feed_forward": (1, 16384),
    "layers_before": (0, 16),
    "layers_after": (0, 16),
    "tour_aggregate": get_args(Aggregate),
    "seed_bits": (1, 20),
    "seed_width": (1, 4096),
    "clip": (1e-3, 1e3),
    "beta": (-1e3, 1e3),
    "gamma": (-1e3, 1e3),
}
