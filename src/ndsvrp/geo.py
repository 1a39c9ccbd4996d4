"""Latitude and longitude: distances on the sphere, and a guess whether plain coordinates are degrees."""

import numpy as np

from ndsvrp.errors import InstanceError
from ndsvrp.metric import Floats

EARTH = 6371.0088  # mean radius in km
TSPLIB_EARTH = 6378.388  # km, of EDGE_WEIGHT_TYPE GEO
TSPLIB_PI = 3.141592  # as TSPLIB has it: published distances depend on it
MOST_NODES = 8000  # whose matrix takes 512 MB


def haversine(degrees: Floats) -> Floats:
    """Return (n, n) great-circle distances in km. degrees: (n, 2) longitude and latitude."""
    _check(degrees)
    longitude, latitude = np.deg2rad(degrees).T
    matrix = np.empty((len(degrees), len(degrees)))
    for row in range(len(degrees)):  # one row at a time: no other arrays of the size of the matrix
        across = np.sin((longitude - longitude[row]) / 2) ** 2
        up = np.sin((latitude - latitude[row]) / 2) ** 2
        chord = up + np.cos(latitude[row]) * np.cos(latitude) * across
        matrix[row] = 2 * EARTH * np.arcsin(np.sqrt(np.minimum(chord, 1.0)))
    return np.maximum(matrix, matrix.T, out=matrix)  # both directions to the last bit


def tsplib_degrees(coordinates: Floats) -> Floats:
    """Return (n, 2) longitude and latitude. coordinates: (n, 2) latitude and longitude as DDD.MM (minutes)."""
    whole = np.trunc(coordinates)
    degrees = whole + 5.0 * (coordinates - whole) / 3.0
    return np.ascontiguousarray(degrees[:, ::-1])


def tsplib_geo(coordinates: Floats) -> Floats:
    """Return (n, n) whole distances in km of EDGE_WEIGHT_TYPE GEO. coordinates: as those of `tsplib_degrees`."""
    degrees = tsplib_degrees(coordinates)
    _check(degrees)
    longitude, latitude = (TSPLIB_PI * degrees / 180.0).T
    matrix = np.empty((len(degrees), len(degrees)))
    for row in range(len(degrees)):
        q1 = np.cos(longitude[row] - longitude)
        q2, q3 = np.cos(latitude[row] - latitude), np.cos(latitude[row] + latitude)
        cosine = np.clip(0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3), -1.0, 1.0)
        matrix[row] = np.floor(TSPLIB_EARTH * np.arccos(cosine) + 1.0)
    np.fill_diagonal(matrix, 0.0)
    return matrix


def looks_like_degrees(coordinates: Floats) -> bool:
    """Return whether plane coordinates are probably longitudes and latitudes, in either order.

    They have fractions, fit the ranges of degrees, and lie far from the origin for their spread: unit squares and
    grids do not.
    """
    largest, spread = np.abs(coordinates).max(axis=0), np.ptp(coordinates, axis=0).max()
    fits = min(largest) <= 90 and max(largest) <= 180
    away = float(np.abs(coordinates.mean(axis=0)).max())
    return bool(fits and 0 < spread < away / 3 and np.any(coordinates != np.floor(coordinates)))


def _check(degrees: Floats) -> None:
    if len(degrees) > MOST_NODES:
        what = f"{len(degrees):,} nodes with latitude and longitude, at most {MOST_NODES:,}: give plane coordinates"
        raise InstanceError(what, field="coordinates")
    for column, name, limit in ((1, "latitude", 90), (0, "longitude", 180)):
        if np.any(outside := np.abs(degrees[:, column]) > limit):
            node = int(np.argmax(outside))
            what = f"{degrees[node, column]:g} is not a {name} in degrees (node {node})"
            raise InstanceError(what, field="coordinates", node=node)
