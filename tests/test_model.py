"""Problems built piece by piece, and distances between latitudes and longitudes."""

from __future__ import annotations

import warnings
from math import inf, pi, sqrt
from typing import Any

import numpy as np
import pytest

import ndsvrp
from ndsvrp.errors import NdsError, NdsWarning
from ndsvrp.geo import EARTH, haversine, looks_like_degrees, tsplib_degrees, tsplib_geo


def model(**depot: Any) -> ndsvrp.Model:
    """A depot and two customers: 5 and 10 away from the depot, 5 from each other."""
    made = ndsvrp.Model("two")
    made.add_depot(x=0, y=0, **depot)
    made.add_customer(3, 4, name="bakery", demand=2)
    made.add_customer(6, 8, demand=3)
    return made


def said(call: Any, *arguments: Any, **options: Any) -> str:
    """Return the message with which a call is refused."""
    with pytest.raises(NdsError) as caught:
        call(*arguments, **options)
    return str(caught.value)


def test_arrays_of_a_model() -> None:
    made = model(name="hub")
    assert made.add_customer(0, 1, prize=4.5, service=0.5) == 3
    made.set_fleet(vehicles=2, capacity=7, max_distance=50, max_duration=60, vehicle_cost=8)
    problem = made.problem()
    assert (problem.name, problem.names, problem.customers) == ("two", ("hub", "bakery", "2", "3"), 3)
    assert problem.coordinates is not None and problem.coordinates.tolist() == [[0, 0], [3, 4], [6, 8], [0, 1]]
    assert problem.demand.tolist() == [0, 2, 3, 0]
    assert problem.prize is not None and problem.prize.tolist() == [0, 0, 0, 4.5]
    assert problem.service is not None and problem.service.tolist() == [0, 0, 0, 0.5]
    assert (problem.vehicles, problem.capacity, problem.max_distance, problem.max_duration) == (2, 7, 50, 60)
    assert problem.vehicle_cost == 8
    assert problem.windows is None and problem.distance is None


def test_names_of_pyvrp_are_known() -> None:
    for name, words in {
        "add_client": "add_customer", "add_location": "add_depot", "add_vehicle_type": "set_fleet",
        "add_edge": "set_matrix", "add_profile": "set_matrix", "data": "problem",
    }.items():  # fmt: skip
        with pytest.raises(AttributeError, match=f"^'Model' has no '{name}'; {words} "):
            getattr(ndsvrp.Model(), name)
        assert hasattr(ndsvrp.Model, words)
    with pytest.raises(AttributeError, match=r"^'Model' has no 'customers'$"):
        ndsvrp.Model().customers  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="'capacity'"):
        ndsvrp.Model().capacity = 5  # type: ignore[attr-defined]


def test_keywords_of_pyvrp_are_known() -> None:
    made = model()
    known = "known: x, y, lat, lon, name, demand, window, service, prize)"
    for name, words in {
        "tw_early": "window takes the earliest and the latest start",
        "service_duration": "service takes it",
        "required": "a prize makes a customer optional",
        "demands": "demand takes it",
    }.items():
        assert said(made.add_customer, 1, 2, **{name: 1}) == f"add_customer: unknown '{name}' ({words}; {known}"
    known = "known: vehicles, capacity, max_distance, max_duration, vehicle_cost)"
    for name, words in {
        "num_available": "vehicles takes it",
        "shift_duration": "max_duration takes it",
        "fixed_cost": "vehicle_cost takes it",
        "unit_distance_cost": "not supported: costs per distance",
        "vehicle": "vehicles takes it",
    }.items():
        assert said(made.set_fleet, **{name: 1}) == f"set_fleet: unknown '{name}' ({words}; {known}"
    assert said(ndsvrp.Model, title="a") == "Model: unknown 'title' (known: name, metric, clock_times)"


def test_a_model_is_shown_in_one_line() -> None:
    assert repr(ndsvrp.Model("new")) == "<Model 'new': no depot, 0 customers>"
    made = model()
    made.set_fleet(3, capacity=20)
    made.set_matrix(duration=np.ones((3, 3)))
    assert repr(made) == "<Model 'two': depot, 2 customers, vehicles 3, capacity 20, duration matrix>"


def test_solve() -> None:
    made = model()
    made.set_fleet(capacity=5)
    result = made.solve(iterations=2, seed=1, chains=1, rollouts=2)
    assert result.cost == 20.0 and result.report.feasible  # 0-1-2-0: 5 + 5 + 10
    assert [result.problem.name_of(c) for c in sorted(result.solution.routes[0])] == ["bakery", "2"]


def test_capacity_without_demands() -> None:
    made = ndsvrp.Model()
    made.add_depot(0, 0)
    made.add_customer(1, 1)
    assert made.problem().capacity == 1.0
    assert said(model().problem) == "capacity: customers have demands; set_fleet sets the capacity"


def test_windows_that_are_not_given() -> None:
    made = model()
    made.add_customer(0, 1, window=(-2, None))
    made.add_customer(0, 2, window=(4, 30), service=3)
    made.set_fleet(capacity=5)
    windows = made.problem().windows
    assert windows is not None
    # Opens at -2. Two of the customers with demand and both others fit a route: 30 + 4 services of 3 + 5 legs of 11.
    assert windows[0].tolist() == [-2, 30 + 4 * 3 + 5 * 11]
    assert windows[1].tolist() == windows[3].tolist() == windows[0].tolist() and windows[4].tolist() == [4, 30]
    hours = model(window=(1, 99))
    hours.add_customer(0, 1, window=(None, 9))
    hours.set_fleet(capacity=5)
    windows = hours.problem().windows
    assert windows is not None and windows.tolist() == [[1, 99], [1, 99], [1, 99], [1, 9]]


def test_a_depot_without_hours_closes_when_the_last_customer_is_done() -> None:
    made = ndsvrp.Model()
    made.add_depot(0, 0)
    made.add_customer(3, 4, window=(0, 20), service=2)
    made.add_customer(6, 8, window=(0, 18))
    windows = made.problem().windows
    assert windows is not None and windows[0].tolist() == [0, 28]  # 20 + 2 + 5, 18 + 10


def test_matrices() -> None:
    made = ndsvrp.Model()
    made.add_depot(window=(0, 100))
    made.add_customer(name="a")
    assert said(made.problem) == "coordinates: needs locations (x and y, or lat and lon), or a matrix of distances"
    made.set_matrix(distance=[[0, 2], [3, 0]])
    made.set_matrix(duration=[[0, 20], [30, 0]])
    result = made.solve(iterations=1, chains=1, rollouts=1)
    assert result.cost == 5.0 and result.problem.coordinates is None
    assert result.problem.duration is not None and result.problem.duration.tolist() == [[0, 20], [30, 0]]


def test_durations_beside_locations() -> None:
    made = ndsvrp.Model(metric="round")
    made.add_depot(0, 0)
    made.add_customer(1, 1)
    made.set_matrix(duration=[[0, 7], [8, 0]])
    problem = made.problem()
    assert problem.distance is not None and problem.distance.tolist() == [[0, 1], [1, 0]]  # √2, rounded


def test_what_a_model_refuses() -> None:
    made = model()
    assert said(made.add_depot, 1, 1) == "add_depot: a second depot is not supported"
    assert said(made.add_customer, 1, 2, pickup=3) == (
        "add_customer: unknown 'pickup' (not supported: pickups and deliveries; "
        "known: x, y, lat, lon, name, demand, window, service, prize)"
    )
    words = "pickups and deliveries; what the depot delivers is the demand; known: x, y, "  # PyVRP's name of a demand
    assert said(made.add_customer, 1, 2, delivery=3).startswith(
        f"add_customer: unknown 'delivery' (not supported: {words}"
    )
    assert said(made.add_customer, 1, 2, weight=3).startswith("add_customer: unknown 'weight' (known: x, y, lat, ")
    assert said(made.set_fleet, capacity=[4, 9]) == (
        "set_fleet: capacity is one number for all; vehicles that differ are not supported"
    )
    made.set_fleet(capacity=5)
    assert said(made.set_fleet, capacity=9) == "set_fleet: called before; vehicles that differ are not supported"
    assert said(made.add_customer, 1) == "y is missing (customer 3)"
    assert said(made.add_customer, 1, "2") == "y must be a number, got '2' (customer 3)"
    assert said(made.add_customer, 1, 2, demand=True, name="a") == "demand must be a number, got True (customer 'a')"
    assert said(made.add_customer, 1, 2, demand=10**400) == "demand is too large (customer 3)"
    assert said(made.add_customer, 1, 2, lat=1, lon=2) == "a location is x and y, or lat and lon, not both (customer 3)"
    assert said(made.add_customer, 1, 2, window=5) == (
        "window must be two numbers, earliest and latest start, got 5 (customer 3)"
    )
    assert said(made.add_customer, 1, 2, window={8, 20}) == (  # a set has no order
        "window must be two numbers, earliest and latest start, got {8, 20} (customer 3)"
    )
    assert said(made.add_customer, 1, 2, window=(0, inf)) == (  # not blamed on the depot, whose hours follow
        "window must be finite, None restricts nothing, got (0, inf) (customer 3)"
    )
    assert said(made.add_customer, 1, 2, window=("8 am", None)) == (
        "window must be a number or a time such as 08:30, got '8 am' (customer 3)"
    )
    assert said(made.add_customer, 1, 2, service="5 min") == (
        "service must be a number or a time such as 08:30, got '5 min' (customer 3)"
    )
    made.add_customer(lat=1, lon=2, name="far")
    assert said(made.problem) == "coordinates: the depot has x and y, 'far' has lat and lon"
    assert said(ndsvrp.Model().problem) == "depot: no depot, add_depot adds it"
    alone = ndsvrp.Model()
    alone.add_depot(0, 0)
    assert said(alone.problem) == "customers: none, add_customer adds one"
    twice = model()
    twice.add_customer(1, 1, name="bakery")
    twice.set_fleet(capacity=9)
    assert said(twice.problem) == "names: 'bakery' is given to node 1 and to node 3"
    numbered = model()
    numbered.add_customer(1, 1, name=0)  # of a data frame, say
    numbered.set_fleet(capacity=9)
    assert said(numbered.problem) == "names: 0 is not text, as a name must be (node 3)"
    missing = model()
    missing.add_customer(1, 1, name=np.array(["a", None]))  # its comparison with text has no truth
    missing.set_fleet(capacity=9)
    assert said(missing.problem) == "names: array(['a', None], dtype=object) is not text, as a name must be (node 3)"


def test_solutions_from_names() -> None:
    made = model()
    made.set_fleet(capacity=5)
    problem = made.problem()
    assert problem.solution([["bakery", 2]]) == problem.solution([["bakery", "2"]]) == ndsvrp.Solution([[1, 2]])
    assert said(problem.solution, [["baker"]]) == "routes: there is no customer 'baker'"
    assert said(problem.solution, [[1.5]]) == "a solution is a list of routes, a route a list of customer numbers"
    assert said(problem.solution, ["12", "3"]) == "routes: '12' is not a list of customers"
    for flat in ([1, 2], 3, None, [{1, 2}], [frozenset({1, 2})]):
        assert said(problem.solution, flat) == "a solution is a list of routes, a route a list of customer numbers"
    result = made.solve(iterations=1, chains=1, rollouts=1, init=problem.solution([["2", "bakery"]]))
    assert result.cost == 20.0


# --- latitude and longitude ------------------------------------------------------------------


def test_distances_on_the_sphere() -> None:
    made = ndsvrp.Model()
    made.add_depot(lat=0, lon=0)
    made.add_customer(lat=0, lon=90)
    made.add_customer(lat=90, lon=45)
    made.add_customer(lat=0, lon=180)
    problem = made.problem()
    quarter = EARTH * pi / 2
    expected = quarter * np.array([[0, 1, 1, 2], [1, 0, 1, 1], [1, 1, 0, 1], [2, 1, 1, 0]])
    assert problem.geographic and problem.distance is not None
    np.testing.assert_allclose(problem.distance, expected, rtol=1e-12, atol=1e-9)
    assert problem.coordinates is not None and problem.coordinates[2].tolist() == [45, 90]  # longitude first
    berlin_paris = haversine(np.array([[13.405, 52.52], [2.3522, 48.8566]]))[0, 1]
    assert berlin_paris == pytest.approx(877.46, abs=0.01)


def test_distances_of_tsplib() -> None:
    """Those of the first cities of TSPLIB's ulysses22: 509 km from 1 to 2, 501 km from 1 to 3, 126 km from 2 to 3."""
    cities = np.array([[38.24, 20.42], [39.57, 26.15], [40.56, 25.32]])
    assert tsplib_geo(cities).tolist() == [[0, 509, 501], [509, 0, 126], [501, 126, 0]]
    np.testing.assert_allclose(tsplib_degrees(cities)[0], [20.7, 38.4])


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([[13.4, 52.5], [13.5, 52.4]], True),
        ([[52.5, 13.4], [52.4, 13.5]], True),
        ([[-0.12, 51.5], [-0.2, 51.6]], True),
        ([[0.0, 0.0], [0.4, 0.9]], False),  # a unit square
        ([[35, 35], [36, 36]], False),  # whole numbers
        ([[35.5, 35], [65, 2]], False),  # a grid of 0 to 100
        ([[500.5, 20], [501, 21]], False),
        ([[13.4, 52.5], [13.4, 52.5]], False),
    ],
)
def test_degrees_are_recognised(points: list[list[float]], expected: bool) -> None:
    assert looks_like_degrees(np.array(points, np.float64)) is expected


def test_degrees_in_a_plane_are_warned_of() -> None:
    made = ndsvrp.Model("berlin")
    made.add_depot(13.4, 52.5)
    made.add_customer(13.5, 52.4)
    with pytest.warns(NdsWarning, match="berlin: coordinates look like degrees and are used as a plane"):
        made.problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().add_customer(sqrt(2), 1)
