"""A result as GeoJSON (RFC 7946), for problems with latitude and longitude."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ndsvrp.errors import NdsError
from ndsvrp.io.result import plain

if TYPE_CHECKING:
    from ndsvrp.metric import Floats
    from ndsvrp.problem import Problem
    from ndsvrp.search.result import Result


def to_geojson(result: Result) -> dict[str, Any]:
    """Return a LineString per route, and a Point for the depot and for each customer with its times."""
    problem = result.problem
    points: list[list[float]] = require_degrees(problem).tolist()
    features = [_feature("Point", points[0], {"kind": "depot", "name": problem.name_of(0)})]
    for route in result.schedule:
        about = {"kind": "route", "route": route.number, "stops": list(route.names), **route.figures}
        features.append(_feature("LineString", [points[stop.node] for stop in route.stops], about))
        for position, stop in enumerate(route.stops[1:-1], start=1):
            about = {"kind": "stop", "route": route.number, "position": position, **stop._asdict()}
            features.append(_feature("Point", points[stop.node], about))
    for customer in result.report.unserved:
        about = {"kind": "unserved", "node": customer, "name": problem.name_of(customer)}
        features.append(_feature("Point", points[customer], about))
    return {"type": "FeatureCollection", "features": features}


def require_degrees(problem: Problem) -> Floats:
    """Return (N+1, 2) longitude and latitude, or raise for a problem without them."""
    if problem.coordinates is None or not problem.geographic:
        what = "no coordinates" if problem.coordinates is None else "coordinates in a plane"
        raise NdsError(f"'{problem.name}' has {what}; GeoJSON needs latitude and longitude")
    return problem.coordinates


def _feature(shape: str, coordinates: Any, about: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Feature", "geometry": {"type": shape, "coordinates": coordinates}, "properties": plain(about)}
