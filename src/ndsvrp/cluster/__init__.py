"""Searches and benchmark runs on the machines of a cluster.

Code belongs here if it sends work to other machines or runs there. Only `ray_cluster` imports ray, and only when a
cluster is asked for.
"""

from ndsvrp.errors import NdsError

CLUSTERS = ("ray",)


def require_known(cluster: str) -> None:
    """Raise unless there is such a kind of cluster."""
    if cluster not in CLUSTERS:
        raise NdsError(f"unknown cluster '{cluster}': one of {', '.join(CLUSTERS)}")
