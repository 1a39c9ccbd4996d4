"""An independent judge of solutions: plain Python, sharing no code with the package.

A problem is a dictionary with the fields of `ndsvrp.Problem`. Whole numbers are compared exactly; floats with the
documented tolerance of 1e-6, relative to the capacity, the opening hours or the limit. `tolerance=0` is strict.
"""

from itertools import combinations, pairwise, permutations
from math import floor, fsum, inf, sqrt
from typing import Any

Fields = dict[str, Any]
SCALE = {"none": 1, "round": 1, "trunc": 1, "dimacs": 10, "exact": 1000}
TOLERANCE = 1e-6


class Oracle:
    """Cost and feasibility of routes. Under an integer metric, lengths and times are counted in its units."""

    def __init__(self, fields: Fields, tolerance: float = TOLERANCE) -> None:
        self.fields, self.tolerance = fields, tolerance
        self.customers = len(fields["demand"]) - 1
        metric = fields.get("metric", "none")
        self.whole = metric != "none"
        self.whole_times = self.whole and fields.get("duration") is None
        self.scale = SCALE[metric]
        self.up = 0.5 if metric in ("round", "exact") else 0.0

    def units(self, value: float) -> float:
        """Return a length or prize in units."""
        return round(value * self.scale) if self.whole else value

    def time_units(self, value: float) -> float:
        """Return a time in units."""
        return round(value * self.scale) if self.whole_times else value

    def length(self, a: int, b: int) -> float:
        """Return a length in units."""
        if self.fields.get("distance") is not None:
            return self.units(self.fields["distance"][a][b])
        (ax, ay), (bx, by) = self.fields["coordinates"][a], self.fields["coordinates"][b]
        length = sqrt((ax - bx) * (ax - bx) + (ay - by) * (ay - by))
        return floor(length * self.scale + self.up) if self.whole else length

    def travel_time(self, a: int, b: int) -> float:
        """Return a travel time in units."""
        duration = self.fields.get("duration")
        return self.length(a, b) if duration is None else duration[a][b]

    def route_length(self, route: tuple[int, ...]) -> float:
        """Return the length of a route in units."""
        stops = (0, *route, 0)
        return fsum(self.length(a, b) for a, b in pairwise(stops))

    def cost(self, routes: list[tuple[int, ...]]) -> float:
        """Return the total length plus the prizes of unserved customers plus the cost of the vehicles."""
        served = {c for route in routes for c in route}
        prize = self.fields.get("prize")
        lost = [] if prize is None else [self.units(p) for c, p in enumerate(prize) if c > 0 and c not in served]
        vehicles = [self.vehicle_cost()] * len(routes)
        return fsum([*(self.route_length(route) for route in routes), *lost, *vehicles]) / self.scale

    def vehicle_cost(self) -> float:
        """Return the cost of a vehicle in units."""
        return self.units(self.fields.get("vehicle_cost") or 0.0)

    def is_required(self, customer: int) -> bool:
        """Return whether a customer must be served."""
        prize = self.fields.get("prize")
        return prize is None or prize[customer] == 0

    def faults(self, routes: list[tuple[int, ...]]) -> list[str]:
        """Return what is wrong with a solution."""
        found = [fault for route in routes for fault in self.route_faults(route)]
        visits = sorted(c for route in routes for c in route)
        if any(a == b for a, b in pairwise(visits)):
            found.append("twice")
        if any(self.is_required(c) and c not in visits for c in range(1, self.customers + 1)):
            found.append("unserved")
        vehicles = self.fields.get("vehicles")
        if vehicles is not None and len(routes) > vehicles:
            found.append("fleet")
        return found

    def route_faults(self, route: tuple[int, ...]) -> list[str]:
        """Return what is wrong with a route."""
        found = [] if route and all(1 <= c <= self.customers for c in route) else ["not a route"]
        if found:
            return found
        fields = self.fields
        demand, capacity = fields["demand"], fields["capacity"]
        whole = capacity == floor(capacity) and all(d == floor(d) for d in demand)
        if fsum(demand[c] for c in route) > capacity * (1 + (0 if whole else self.tolerance)):
            found.append("capacity")
        if (limit := fields.get("max_distance")) is not None:
            most = self.units(limit) * (1 + (0 if self.whole else self.tolerance))
            found += ["distance"] if self.route_length(route) > most else []
        found += self._late(route)
        if (limit := fields.get("max_duration")) is not None:
            most = self.time_units(limit) * (1 + (0 if self.whole_times else self.tolerance))
            found += ["duration"] if self.least_duration(route) > most else []
        return found

    def _windows(self) -> tuple[list[float], list[float], list[float]]:
        nodes = range(self.customers + 1)
        windows = self.fields.get("windows")
        ready = [0.0 if windows is None else self.time_units(windows[i][0]) for i in nodes]
        due = [inf if windows is None else self.time_units(windows[i][1]) for i in nodes]
        service = self.fields.get("service")
        return ready, due, [0.0 if service is None else self.time_units(service[i]) for i in nodes]

    def _late(self, route: tuple[int, ...]) -> list[str]:
        if self.fields.get("windows") is None:
            return []
        ready, due, service = self._windows()
        slack = 0 if self.whole_times else self.tolerance * (due[0] - ready[0])
        time, here = ready[0], 0
        for there in (*route, 0):
            time = max(time + service[here] + self.travel_time(here, there), ready[there])
            if time > due[there] + slack:
                return ["window"]
            here = there
        return []

    def least_duration(self, route: tuple[int, ...]) -> float:
        """Return the least time from departure to return: after the earliest return, depart as late as that allows."""
        ready, due, service = self._windows()
        stops = (0, *route, 0)
        legs = [service[a] + self.travel_time(a, b) for a, b in pairwise(stops)]
        starts = [ready[0]]
        for leg, there in zip(legs, stops[1:], strict=True):
            starts.append(max(starts[-1] + leg, ready[there]))
        latest = starts[-1]
        for i in range(len(legs) - 1, -1, -1):
            latest = min(latest - legs[i], max(due[stops[i]], starts[i]))
        return starts[-1] - latest

    def optimum(self) -> float:
        """Return the lowest cost of all feasible solutions, by enumeration; infinite if there is none."""
        customers = range(1, self.customers + 1)
        best: dict[frozenset[int], float] = {}  # the cost of the shortest feasible route that serves a set
        for count in customers:
            for served in combinations(customers, count):
                lengths = [self.route_length(p) for p in permutations(served) if not self.route_faults(p)]
                if lengths:
                    best[frozenset(served)] = min(lengths) + self.vehicle_cost()
        vehicles = self.fields.get("vehicles") or self.customers
        prize = self.fields.get("prize")
        lengths_of = {frozenset[int](): 0.0}  # of sets served by so many routes
        total = inf
        for used in range(min(vehicles, self.customers) + 1):
            for served, length in lengths_of.items():
                left = [c for c in customers if c not in served]
                if not any(self.is_required(c) for c in left):
                    lost = [] if prize is None else [self.units(prize[c]) for c in left]
                    total = min(total, fsum([length, *lost]))
            if used == vehicles:
                break
            longer: dict[frozenset[int], float] = {}
            for served, length in lengths_of.items():
                for route, more in best.items():
                    if not served & route:
                        both = served | route
                        longer[both] = min(longer.get(both, inf), length + more)
            lengths_of = longer
        return total / self.scale
