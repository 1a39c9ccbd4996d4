"""The shape of the network. All defaults are here; a checkpoint stores the values it was trained with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from ndsvrp.errors import NdsError
from ndsvrp.records import documented, require_record

Aggregate = Literal["mean", "sum"]


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """The shape of a network. The defaults are the paper's, plus a distance term."""

    width: int = documented(128, "Numbers per node embedding.")
    heads: int = documented(8, "Attention heads.")
    feed_forward: int = documented(512, "Hidden width of the feed-forward layers.")
    layers_before: int = documented(2, "Attention layers before those that read the solution.")
    layers_after: int = documented(2, "Attention layers after those that read the solution.")
    message_passing: bool = documented(True, "Use the layer that reads the neighbours on the route.")
    tied_neighbours: bool = documented(
        False, "Message passing: one matrix for both neighbours (W1 = W2), as in the authors' code without windows."
    )
    tour_encoding: bool = documented(True, "Use the layer that reads all customers of the route.")
    tour_first: bool = documented(False, "Put tour encoding before message passing, as in the authors' code.")
    tour_aggregate: Aggregate = documented(
        "mean", "Aggregate the customers of a route by 'mean', or by 'sum' as in the authors' code."
    )
    seed_bits: int = documented(10, "Bits of the seed vector, by which rollouts of one solution differ.")
    seed_width: int = documented(256, "Hidden width of the layer that reads the seed vector.")
    clip: float = documented(10.0, "Logits are clip * tanh(score).")
    distance_term: bool = documented(
        True, "Add -beta d(last, j) sqrt(N) + gamma [same route as the last] to the logits; both learned."
    )
    beta: float = documented(2.0, "Initial beta: positive values favour nearby customers.")
    gamma: float = documented(0.0, "Initial gamma.")

    def __post_init__(self) -> None:
        require_record(self, RANGES)
        if self.width % self.heads:
            raise NdsError(f"width must be a multiple of heads, got {self.width} and {self.heads}")

    @classmethod
    def paper(cls, **changes: Any) -> NetworkConfig:
        """Return the paper's network: no distance term, layer order and aggregation as in its text."""
        return cls(**{"distance_term": False, **changes})


RANGES: dict[str, tuple[Any, ...]] = {
    "width": (1, 4096), "heads": (1, 64), "feed_forward": (1, 16384), "layers_before": (0, 16), "layers_after": (0, 16),
    "tour_aggregate": get_args(Aggregate), "seed_bits": (1, 20), "seed_width": (1, 4096), "clip": (1e-3, 1e3),
    "beta": (-1e3, 1e3), "gamma": (-1e3, 1e3),
}  # fmt: skip
