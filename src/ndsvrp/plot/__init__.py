"""Pictures: routes on the plane, cost over time. Drawn without pyplot, so that no display or state is needed."""

from __future__ import annotations

from ndsvrp.plot.routes import plot_routes
from ndsvrp.plot.trace import plot_trace

__all__ = ["plot_routes", "plot_trace"]
