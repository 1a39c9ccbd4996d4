"""Recipes of constraints: time windows and prizes for a batch of nodes."""

from ndsvrp.arrays import Array, cast, full, namespace, number
from ndsvrp.counter_random import Words
from ndsvrp.generate.config import Prizes, Windows
from ndsvrp.generate.layouts import Nodes, unit

WINDOWS, PRIZES = 0x3C6EF372, 0xA54FF53A  # kinds of random words


def windows(words: Words, nodes: Nodes, config: Windows) -> dict[str, Array]:
    """Return (B, N+1, 2) windows and (B, N+1) service times.

    The centre of a window is uniform between the earliest moment a vehicle can be there and the latest from which it
    can still serve and return. Both ends are clipped to these two.
    """
    points, xp = nodes.coordinates, namespace(nodes.coordinates)
    offset = points[:, 1:] - points[:, :1]
    distance = xp.sqrt(offset[..., 0] * offset[..., 0] + offset[..., 1] * offset[..., 1])
    away = xp.ceil(distance / number(points, config.tick) - 1e-9)
    horizon, width, service = (round(value / config.tick) for value in (config.horizon, config.width, config.service))
    half = width // 2
    closes = xp.clip(2 * (xp.amax(away, axis=1, keepdims=True) + 1) + service + half, horizon, None)
    earliest, latest = away + 1, closes - service - away - 1
    centre = earliest + xp.round((latest - earliest) * unit(words(away.shape[1], WINDOWS)))
    ready, due = xp.maximum(centre - half, earliest), xp.minimum(centre + half, latest)
    per_unit = number(points, 1 / config.tick)  # dividing by 1000 gives the float nearest to a thousandth
    both = xp.stack([with_depot(ready), xp.concatenate([closes, due], axis=1)], axis=-1) / per_unit
    return {"windows": both, "service": with_depot(full(away, away.shape, service)) / per_unit}


def prizes(words: Words, nodes: Nodes, config: Prizes) -> dict[str, Array]:
    """Return (B, N+1) prizes: `share` of them linear in demand from the smallest to the largest, the rest uniform."""
    demand, xp = nodes.demand, namespace(nodes.demand)
    least, most = (cast(end(demand, axis=1, keepdims=True), "float64") for end in (xp.amin, xp.amax))
    spread = xp.clip(most - least, 1.0, None)
    by_demand = xp.where(most > least, (cast(demand, "float64") - least) / spread, 0.5)
    mixed = config.share * by_demand + (1 - config.share) * unit(words(demand.shape[1], PRIZES))
    return {"prize": with_depot(config.low + (config.high - config.low) * mixed)}


def with_depot(values: Array) -> Array:
    """Return (B, N+1) values with a 0 in front."""
    xp = namespace(values)
    return xp.concatenate([xp.zeros_like(values[:, :1]), values], axis=1)
