"""Draw pictures: routes on the plane, cost over time, lines of several solvers.

Only this package uses matplotlib. It avoids pyplot, so that no display and no global state are needed.
"""

from ndsvrp.plot.routes import plot_routes
from ndsvrp.plot.trace import plot_trace

__all__ = ["plot_routes", "plot_trace"]
