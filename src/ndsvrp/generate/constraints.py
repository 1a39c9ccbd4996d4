"""What is laid over the places: time windows and prizes."""

from __future__ import annotations

import numpy as np

from ndsvrp.generate.config import Prizes, Windows
from ndsvrp.generate.places import Ints
from ndsvrp.metric import Floats


def windows(coordinates: Floats, rng: np.random.Generator, config: Windows) -> tuple[Floats, Floats]:
    """(N+1, 2) windows and (N+1,) service times.

    The centre of a window is uniform between the earliest moment a vehicle can be there and the latest
    from which it can still serve and return; both ends are clipped to these two.
    """
    offset = coordinates[1:] - coordinates[0]
    away = np.ceil(np.hypot(offset[:, 0], offset[:, 1]) / config.tick - 1e-9)
    horizon, width, service = (round(value / config.tick) for value in (config.horizon, config.width, config.service))
    half = width // 2
    horizon = max(horizon, 2 * int(np.max(away) + 1) + service + half)
    earliest, latest = away + 1, horizon - service - away - 1
    centre = earliest + np.rint((latest - earliest) * rng.random(len(away)))
    ready, due = np.maximum(centre - half, earliest), np.minimum(centre + half, latest)
    per_unit = 1 / config.tick  # dividing by 1000 gives the float nearest to a thousandth; multiplying may not
    both = np.concatenate([[[0.0, horizon]], np.stack([ready, due], axis=-1)]) / per_unit
    return both, np.concatenate([[0.0], np.full(len(away), service / per_unit)])


def prizes(demand: Ints, rng: np.random.Generator, config: Prizes) -> Floats:
    """(N+1,) prizes: `share` of them linear in demand from the smallest to the largest, the rest uniform."""
    spread = int(np.ptp(demand))
    by_demand = (demand - np.min(demand)) / spread if spread else np.full(len(demand), 0.5)
    mixed = config.share * by_demand + (1 - config.share) * rng.random(len(demand))
    return np.concatenate([[0.0], config.low + (config.high - config.low) * mixed])
