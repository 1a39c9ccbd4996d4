"""What a `Problem` refuses, with which message, and what it guarantees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndsvrp.errors import InstanceError, NdsError
from ndsvrp.metric import Metric
from ndsvrp.problem import Problem

# A depot and two customers: 5 and 10 away from the depot, 5 from each other.
COORDINATES = [[0, 0], [3, 4], [6, 8]]
DISTANCE = [[0, 5, 10], [5, 0, 5], [10, 5, 0]]


def make(**changes: Any) -> Problem:
    fields: dict[str, Any] = {"coordinates": COORDINATES, "demand": [0, 2, 3], "capacity": 5}
    return Problem(**(fields | changes))


def windows(*pairs: tuple[float, float], depot: tuple[float, float] = (0, 100)) -> list[tuple[float, float]]:
    return [depot, *pairs]


class Refusing:
    """As a tensor of torch that requires a gradient."""

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise RuntimeError("call detach first")


class Missing:
    """As `pandas.NA`."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")

    def __repr__(self) -> str:
        return "<NA>"


ANY = (0.0, 90.0)
REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "too much in grams": (
        {"demand": [0, 1_000_001, 3], "capacity": 1_000_000},
        "demand: 1,000,001 is above the capacity 1,000,000 (customer 1)",
    ),
    "a little too much": ({"demand": [0, 5.000001, 3]}, "demand: 5.000001 is above the capacity 5.0 (customer 1)"),
    "seconds since 1970": (
        {"windows": [(1_700_000_000, 1_700_003_600)] * 2 + [(1_700_000_000, 1_700_000_009)]},
        "windows: unreachable in time: earliest start 1,700,000,010, due date 1,700,000,009 (customer 2)",
    ),
    "clock times": (
        {"windows": windows(ANY, (30, 40), depot=(0, 46)), "service": [0, 0, 7], "clock_times": True},
        "windows: unreachable in time: back at the depot at 00:47, which closes at 00:46 (customer 2)",
    ),
    "seconds of clock times": (
        {"windows": windows(ANY, (0, 9.75)), "clock_times": True},
        "windows: unreachable in time: earliest start 10, due date 9.75 (customer 2)",
    ),
    "far in millimetres": (
        {"distance": 1e6 * np.array(DISTANCE), "max_distance": 19_999_000},
        "max_distance: unreachable: 20,000,000 there and back, above the limit 19,999,000 (customer 2)",
    ),
    "scalar demand": ({"demand": 5}, "demand: needs a depot and at least one customer, got shape ()"),
    "only a depot": ({"demand": [0]}, "demand: needs a depot and at least one customer, got shape (1,)"),
    "demand as a table": (
        {"demand": [[0, 1, 2]]},
        "demand: needs a depot and at least one customer, got shape (1, 3)",
    ),
    "words": ({"demand": ["a", "b"]}, "demand: not numbers (could not convert string to float: 'a')"),
    "ragged": ({"coordinates": [[0, 0], [3], [6, 8]]}, "coordinates: not numbers (rows of different lengths)"),
    "no way": (
        {"distance": [[0, 1, 2], [1, 0, np.inf], [2, 1, 0]]},
        "distance: not a finite number (from node 1 to node 2)",
    ),
    "nan": ({"demand": [0, 1, np.nan]}, "demand: not a finite number (node 2)"),
    "infinite place": ({"coordinates": [[0, 0], [3, np.inf], [6, 8]]}, "coordinates: not a finite number (node 1)"),
    "dates": (
        {"windows": np.array([["2026-01-01", "2026-01-02"]] * 3, "M8[m]")},
        "windows: not numbers (datetime64[m])",
    ),
    "spans of time": ({"service": [np.timedelta64(5, "s")] * 3}, "service: not numbers (timedelta64[s])"),
    "complex numbers": ({"demand": np.array([0, 1j, 2])}, "demand: not numbers (complex128)"),
    "text": ({"demand": ["0", "2", "3"]}, "demand: not numbers (<U1)"),
    "text among numbers": ({"demand": np.array([0, "2", 3], object)}, "demand: not numbers ('2')"),
    "text for a number": ({"capacity": "5"}, "capacity: not numbers (<U1)"),
    "truth": ({"demand": [False, True, True]}, "demand: not numbers (bool)"),
    "truth among numbers": ({"demand": np.array([0, True, 3], object)}, "demand: not numbers (True)"),
    "masked demand": (
        {"demand": np.ma.masked_array([0, 2, 3], [False, True, False])},
        "demand: has masked values, where a number is needed",
    ),
    "masked rows": (
        {"coordinates": [np.ma.masked_array([0, 0], [False, True]), [3, 4], [6, 8]]},
        "coordinates: has masked values, where a number is needed",
    ),
    "masked vehicles": ({"vehicles": np.ma.masked}, "vehicles: has masked values, where a number is needed"),
    "tiny coordinates": (
        {"coordinates": np.array(COORDINATES) * 1e-300},
        "coordinates: too small, below 1e-150: use another unit",
    ),
    "tiny distances": (
        {"distance": np.array(DISTANCE) * 1e-300},
        "distance: too small, below 1e-150: use another unit",
    ),
    "tiny durations": (
        {"distance": DISTANCE, "duration": np.array(DISTANCE) * 1e-300},
        "duration: too small, below 1e-150: use another unit",
    ),
    "tiny capacity": (
        {"demand": np.array([0, 2, 3]) * 1e-300, "capacity": 5e-300},
        "capacity: too small, below 1e-150: use another unit",
    ),
    "depot's demand": ({"demand": [1, 2, 3]}, "demand: the depot's is 1, must be 0"),
    "negative demand": ({"demand": [0, 2, -3]}, "demand: -3 is negative (customer 2)"),
    "too much": ({"demand": [0, 6, 3]}, "demand: 6 is above the capacity 5 (customer 1)"),
    "no capacity": ({"capacity": 0}, "capacity: 0 is not a capacity"),
    "nan capacity": ({"capacity": np.nan}, "capacity: nan is not a capacity"),
    "two capacities": ({"capacity": [5, 6]}, "capacity: has shape (2,), expected ()"),
    "three dimensions": ({"coordinates": [[0, 0, 0]] * 3}, "coordinates: has shape (3, 3), expected (3, 2)"),
    "too few places": ({"coordinates": COORDINATES[:2]}, "coordinates: has shape (2, 2), expected (3, 2)"),
    "nowhere": ({"coordinates": None}, "coordinates: needs coordinates or a distance matrix"),
    "matrix shape": ({"distance": [[0, 1], [1, 0]]}, "distance: has shape (2, 2), expected (3, 3)"),
    "negative distance": (
        {"distance": [[0, 5, 10], [5, 0, -5], [10, 5, 0]]},
        "distance: -5 from node 1 to node 2 is negative",
    ),
    "negative duration": (
        {"distance": DISTANCE, "duration": [[0, 5, 10], [5, 0, 5], [-1, 5, 0]]},
        "duration: -1 from node 2 to node 0 is negative",
    ),
    "duration alone": ({"duration": DISTANCE}, "duration: a duration matrix needs a distance matrix beside it"),
    "window shape": ({"windows": [[0, 100]] * 2}, "windows: has shape (2, 2), expected (3, 2)"),
    "closed before open": (
        {"windows": windows((35, 20), ANY)},
        "windows: due date 20 is before ready time 35 (customer 1)",
    ),
    "depot never open": (
        {"windows": windows(ANY, ANY, depot=(9, 8))},
        "windows: due date 8 is before ready time 9 (depot)",
    ),
    "too far": (
        {"windows": windows(ANY, (0, 9))},
        "windows: unreachable in time: earliest start 10, due date 9 (customer 2)",
    ),
    "no way back": (  # open from 30, served for 7 until 37, home at 47
        {"windows": windows(ANY, (30, 40), depot=(0, 46)), "service": [0, 0, 7]},
        "windows: unreachable in time: back at the depot at 47, which closes at 46 (customer 2)",
    ),
    "negative service": ({"service": [0, -1, 1]}, "service: -1 is negative (customer 1)"),
    "depot's service": ({"service": [2, 1, 1]}, "service: the depot's is 2, must be 0"),
    "negative prize": ({"prize": [0, 1, -1]}, "prize: -1 is negative (customer 2)"),
    "depot's prize": ({"prize": [1, 1, 1]}, "prize: the depot's is 1, must be 0"),
    "demand None": ({"demand": None}, "demand: needs a depot and at least one customer, got shape ()"),
    "beyond floats": ({"demand": [0, 1, 10**400]}, "demand: not numbers (int too large to convert to float)"),
    "not an array": ({"demand": Refusing()}, "demand: not numbers (call detach first)"),
    "vehicles of no truth": ({"vehicles": Missing()}, "vehicles: <NA> is not a number of vehicles"),
    "vehicles that differ": ({"vehicles": np.array([1, 2])}, "vehicles: is one number, got ndarray"),
    "no name": ({"name": None}, "name: must be text, got NoneType"),
    "capacity None": ({"capacity": None}, "capacity: missing, must not be None"),
    "vehicles as text": ({"vehicles": "2"}, "vehicles: '2' is not a number of vehicles"),
    "no vehicle": ({"vehicles": 0}, "vehicles: 0 is not a number of vehicles"),
    "half a vehicle": ({"vehicles": 1.5}, "vehicles: 1.5 is not a number of vehicles"),
    "no number of vehicles": ({"vehicles": np.nan}, "vehicles: nan is not a number of vehicles"),
    "endless vehicles": ({"vehicles": np.inf}, "vehicles: inf is not a number of vehicles"),
    "vehicles in words": ({"vehicles": "two"}, "vehicles: 'two' is not a number of vehicles"),
    "one name": ({"names": "abc"}, "names: must be a list of text, got str"),
    "names without order": ({"names": {"d", "a", "b"}}, "names: must be a list of text, got set"),
    "too few names": ({"names": ["d", "a"]}, "names: has 2 entries, expected 3 (the depot first)"),
    "a number as a name": ({"names": ["d", "a", 3]}, "names: 3 is not text, as a name must be (node 2)"),
    "blank name": ({"names": ["d", " ", "b"]}, "names: ' ' is not a name (node 1)"),
    "name twice": ({"names": ["d", "a", "a"]}, "names: 'a' is given to node 1 and to node 2"),
    "named customer": (
        {"names": ["d", "a", "b\n"], "demand": [0, 2, 9]},
        "demand: 9 is above the capacity 5 (customer 2, 'b\\n')",
    ),
    "no latitude": (
        {"geographic": True, "coordinates": [[0, 0], [3, 94], [6, 8]]},
        "coordinates: 94 is not a latitude in degrees (node 1)",
    ),
    "rounded degrees": (
        {"geographic": True, "metric": "round"},
        "metric: 'round' rounds lengths in a plane; those between latitudes and longitudes are not rounded",
    ),
    "clock times of a number": ({"clock_times": 5}, "clock_times: must be True or False, got int"),
    "geographic in words": ({"geographic": "no"}, "geographic: must be True or False, got str"),
    "unknown metric": (
        {"metric": "manhattan"},
        "metric: unknown 'manhattan' (known: none, round, trunc, dimacs, exact)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refuses(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InstanceError) as caught:
        make(**changes)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"metric": "round", "distance": [[0, 5, 10], [5, 0, 5.5], [10, 5, 0]]},
            "distance: 5.5 is not a whole number, as the metric 'round' needs (use 'none') (customer 1)",
        ),
        (
            {"metric": "trunc", "prize": [0, 1, 2.5]},
            "prize: 2.5 is not a whole number, as the metric 'trunc' needs (use 'none') (customer 2)",
        ),
        (
            {"metric": "dimacs", "windows": windows(ANY, (0, 30.25))},
            "windows: 30.25 is not a multiple of 0.1, as the metric 'dimacs' needs (use 'none') (customer 2)",
        ),
        (
            {"metric": "exact", "windows": windows(ANY, ANY), "service": [0, 0.0005, 1]},
            "service: 0.0005 is not a multiple of 0.001, as the metric 'exact' needs (use 'none') (customer 1)",
        ),
    ],
)
def test_integer_metrics_refuse_fractions(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InstanceError) as caught:
        make(**changes)
    assert str(caught.value) == message
    make(**(changes | {"metric": "none"}))


def test_a_refused_matrix_is_still_one_line() -> None:
    distance = np.full((500, 500), 0.5)
    with pytest.raises(InstanceError) as caught:
        Problem(demand=[0] + [1] * 499, capacity=5, distance=distance, metric=Metric.ROUND)
    assert str(caught.value) == "distance: 0.5 is not a whole number, as the metric 'round' needs (use 'none') (depot)"


def test_multiples_of_the_unit_pass() -> None:
    problem = make(metric="dimacs", windows=windows((0.3, 30.7), ANY), service=[0, 0.1, 0.7])
    assert problem.has_whole_times
    assert problem.time_tolerance == 0.0


def test_what_is_whole_up_to_rounding_becomes_the_float_of_its_tick() -> None:
    tenth = 0.1 + 0.2  # 0.30000000000000004
    distance = [[0, tenth, tenth], [tenth, 0, tenth], [tenth, tenth, 0]]
    fields = {"distance": distance, "windows": [[0, 9], [tenth, 9 * tenth], [-1e-15, 8]], "service": [0, tenth, 1]}
    problem = make(metric="dimacs", **fields, prize=[0, tenth, 1e-12])
    assert problem.distance is not None and problem.distance.tolist() == [[0, 0.3, 0.3], [0.3, 0, 0.3], [0.3, 0.3, 0]]
    assert problem.windows is not None and problem.windows.tolist() == [[0, 9], [0.3, 2.7], [0, 8]]
    assert not np.signbit(problem.windows).any()
    assert problem.service is not None and problem.service.tolist() == [0, 0.3, 1]
    assert problem.prize is not None and problem.prize.tolist() == [0, 0.3, 0]
    assert problem.required.tolist() == [False, False, True]  # a prize of no tick is none
    for field in ("distance", "windows", "service", "prize", "required"):
        assert not getattr(problem, field).flags.writeable
    assert make(metric="none", prize=[0, tenth, 1e-12]).prize.tolist() == [0, tenth, 1e-12]  # type: ignore[union-attr]


def test_large_numbers_are_not_cut_to_whole_ones() -> None:
    assert make(metric="round", prize=[0, 2e9, 1]).prize.tolist() == [0, 2e9, 1]  # type: ignore[union-attr]
    with pytest.raises(InstanceError, match="not a whole number"):
        make(metric="round", prize=[0, 2e9 + 0.25, 1])


def test_reach_is_exact_in_ticks() -> None:
    # The depot opens at 0.1 and the customer is 0.2 away: there at 0.3, home at 0.5; in float64 0.1 + 0.2 > 0.3.
    def line(due: float, closes: float) -> Problem:
        windows, distance = np.array([[0.1, closes], [0, due]]), np.array([[0, 0.2], [0.2, 0]])
        return Problem(demand=np.array([0, 1.0]), capacity=1, distance=distance, windows=windows, metric=Metric.DIMACS)

    line(due=0.3, closes=9)
    line(due=np.nextafter(0.3, 0), closes=np.nextafter(0.5, 0))
    with pytest.raises(InstanceError, match=r"earliest start 0\.3, due date 0\.2 \(customer 1\)"):
        line(due=0.2, closes=9)
    with pytest.raises(InstanceError, match=r"back at the depot at 0\.5, which closes at 0\.4 \(customer 1\)"):
        line(due=0.3, closes=0.4)


def test_a_prize_of_no_tick_does_not_excuse_a_customer_out_of_reach() -> None:
    with pytest.raises(InstanceError, match="earliest start 10, due date 9"):
        make(metric="round", windows=windows(ANY, (0, 9)), prize=[0, 3, 1e-12])


def test_unknown_and_missing_keywords_are_named() -> None:
    known = "demand, capacity, coordinates, distance,"
    for keywords, words in (
        ({"coords": [[0, 0]], "demand": [0]}, f"Problem: unknown 'coords' (coordinates takes it; known: {known}"),
        ({"demand": [0, 1]}, f"Problem: missing capacity (known: {known}"),
        ({}, f"Problem: missing demand and capacity (known: {known}"),
    ):
        with pytest.raises(NdsError) as caught:
            Problem(**keywords)
        assert str(caught.value).startswith(words)
    with pytest.raises(NdsError, match=r"^Problem takes keywords only \(demand, "):
        Problem([0, 1], 2)  # type: ignore[misc]


def test_vehicles_are_a_plain_int() -> None:
    with pytest.raises(InstanceError, match="vehicles: True is not a number of vehicles"):
        make(vehicles=True)
    for vehicles in (2, 2.0, np.int64(2)):
        assert type(make(vehicles=vehicles).vehicles) is int


def test_the_error_names_field_and_node() -> None:
    with pytest.raises(InstanceError) as caught:
        make(demand=[0, 2, 9])
    assert (caught.value.field, caught.value.node) == ("demand", 2)
    assert str(caught.value.located("C101.txt", 14)) == "C101.txt:14: demand: 9 is above the capacity 5 (customer 2)"


def test_an_optional_customer_may_be_out_of_reach() -> None:
    closed = {"windows": windows(ANY, (0, 9))}  # customer 2 is 10 away
    assert make(**closed, prize=[0, 0, 3]).required.tolist() == [False, True, False]
    with pytest.raises(InstanceError, match="unreachable in time"):
        make(**closed, prize=[0, 3, 0])


def test_reach_counts_from_when_the_depot_opens() -> None:
    with pytest.raises(InstanceError, match="earliest start 30, due date 29"):
        make(windows=windows(ANY, (0, 29), depot=(20, 100)))
    make(windows=windows(ANY, (0, 30), depot=(20, 100)))


def test_a_duration_matrix_decides_what_is_in_reach() -> None:
    slow = [[0, 5, 40], [5, 0, 5], [30, 5, 0]]
    with pytest.raises(InstanceError, match="earliest start 40, due date 39"):
        make(distance=DISTANCE, duration=slow, windows=windows(ANY, (0, 39)))
    with pytest.raises(InstanceError, match="back at the depot at 70, which closes at 69"):
        make(distance=DISTANCE, duration=slow, windows=windows(ANY, (0, 50), depot=(0, 69)))
    make(distance=DISTANCE, duration=slow, windows=windows(ANY, (0, 50), depot=(0, 70)))


def test_a_masked_array_without_masked_values_is_plain() -> None:
    assert make(demand=np.ma.masked_array([0, 2, 3])) == make()


def test_arrays_are_frozen_copies() -> None:
    demand = np.array([0.0, 2.0, 3.0])
    problem = make(demand=demand, windows=windows(ANY, ANY), service=[0, 1, 1], prize=[0, 1, 1], distance=DISTANCE)
    demand[1] = 99
    assert problem.demand.tolist() == [0, 2, 3]
    for field in ("demand", "coordinates", "distance", "windows", "service", "prize"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(problem, field)[0] = 1
    with pytest.raises(AttributeError):
        problem.capacity = 7  # type: ignore[misc]


def test_problems_are_equal_if_their_fields_are() -> None:
    problem = make(windows=windows(ANY, ANY), names=["depot", "a", "b"])
    same = make(windows=np.array(windows(ANY, ANY)), names=("depot", "a", "b"), name="another")
    assert problem == same and hash(problem) == hash(same), "the name is a label"
    others: list[dict[str, Any]] = [
        {"demand": [0, 2, 4]}, {"capacity": 6}, {"windows": None}, {"windows": windows(ANY, (0, 80))},
        {"prize": [0, 1, 1]},
        {"vehicles": 2}, {"metric": "round"}, {"names": None}, {"names": ["depot", "a", "c"]}, {"distance": DISTANCE},
    ]  # fmt: skip
    assert not any(problem == problem.replace(**changes) for changes in others)
    assert problem != "problem" and len({problem, same, problem.replace(capacity=6)}) == 2


def test_replace_validates_again() -> None:
    problem = make()
    assert problem.replace(capacity=3).capacity == 3
    assert problem.capacity == 5
    with pytest.raises(InstanceError, match=r"3 is above the capacity 2 \(customer 2\)"):
        problem.replace(capacity=2)


def test_distances_on_the_sphere_follow_new_coordinates() -> None:
    degree = np.pi / 180 * 6371.0088
    problem = make(geographic=True, coordinates=[[0, 0], [1, 0], [0, 2]])
    moved = problem.replace(coordinates=[[0, 0], [2, 0], [0, 3]])
    assert problem.is_on_the_sphere
    assert moved.is_on_the_sphere
    np.testing.assert_allclose(moved.length([0, 0], [1, 2]), [2 * degree, 3 * degree])
    roads = problem.replace(distance=1.5 * np.array(problem.distance))
    assert not roads.is_on_the_sphere
    np.testing.assert_allclose(roads.replace(coordinates=moved.coordinates).length(0, 1), 1.5 * degree)


def test_neutral_defaults() -> None:
    problem = make()
    assert problem.customers == 2
    assert not problem.has_windows
    assert not problem.has_prizes
    assert problem.required.tolist() == [False, True, True]
    assert problem.vehicles is None


def test_tolerances_are_a_millionth_where_numbers_are_floats() -> None:
    problem = make(windows=windows(ANY, ANY, depot=(50, 150)))
    assert problem.time_tolerance == pytest.approx(1e-4)  # the depot is open for 100
    assert problem.capacity_tolerance == 0.0
    assert make(demand=[0, 0.5, 3]).capacity_tolerance == pytest.approx(5e-6)


def test_lengths() -> None:
    problem = make(metric="round", coordinates=[[0, 0], [1, 1], [2, 1]])
    assert problem.length([0, 0, 1], [1, 2, 2]).tolist() == [1, 2, 1]  # 1.414, 2.236, 1
    asymmetric = make(distance=[[0, 1, 2], [3, 0, 4], [5, 6, 0]])
    assert asymmetric.length([0, 1], [1, 0]).tolist() == [1, 3]
    assert asymmetric.travel_time([2, 1], [1, 2]).tolist() == [6, 4]
    timed = asymmetric.replace(duration=[[0, 7, 7], [8, 0, 7], [7, 7, 0]])
    assert timed.length(1, 0) == 3
    assert timed.travel_time(1, 0) == 8


def test_tiny_numbers_beside_others_are_kept() -> None:
    problem = make(coordinates=[[0, 0], [0, 1e-300], [6, 8]], demand=[0, 1e-300, 1], prize=[0, 1e-300, 1])
    assert problem.length(0, 2) == problem.length(1, 2) == 10
    near = make(coordinates=np.array(COORDINATES) * 1e-149)
    assert near.length(0, 1) == pytest.approx(5e-149)


def test_side() -> None:
    assert make().side() == 8
    assert make(coordinates=[[1, 1]] * 3).side() == 1
    assert make(coordinates=None, distance=DISTANCE).side() == pytest.approx(10 / np.sqrt(2))


# --- metrics -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("none", [0.0, 1.25, 1.5, 2.449489742783178, 2.98]),
        ("round", [0, 1, 2, 2, 3]),  # halves go up
        ("trunc", [0, 1, 1, 2, 2]),
        ("dimacs", [0, 1.2, 1.5, 2.4, 2.9]),  # cut after one decimal, never rounded up
        ("exact", [0, 1.25, 1.5, 2.449, 2.98]),
    ],
)
def test_metric_values(metric: str, expected: list[float]) -> None:
    lengths = np.array([0.0, 1.25, 1.5, np.sqrt(6.0), 2.98])
    assert Metric(metric).apply(lengths).tolist() == expected


def test_exact_rounds_where_dimacs_cuts() -> None:
    length = np.array([2.9996])
    assert Metric.EXACT.apply(length).tolist() == [3.0]
    assert Metric.DIMACS.apply(length).tolist() == [2.9]
    assert Metric.TRUNC.apply(length).tolist() == [2.0]


@given(st.integers(0, 10**7), st.sampled_from([m for m in Metric if m.is_integer]))
def test_whole_ticks_stay_as_they_are(ticks: int, metric: Metric) -> None:
    length = ticks / metric.scale
    assert metric.apply(np.array([length])).tolist() == [length]


@given(st.floats(0, 1e6), st.sampled_from([m for m in Metric if m.is_integer]))
def test_a_rounded_length_is_less_than_a_tick_off(length: float, metric: Metric) -> None:
    rounded = float(metric.apply(np.array([length]))[0])
    assert abs(rounded - length) < 1.000001 / metric.scale
    assert abs(rounded * metric.scale - round(rounded * metric.scale)) < 1e-5


def test_a_problem_prints_in_one_line() -> None:
    assert repr(make(demand=[0, 0, 0], name="free")) == "<Problem 'free': CVRP, 2 customers, metric none>"
    assert repr(make(name="town", vehicles=2)) == (
        "<Problem 'town': CVRP, 2 customers, capacity 5, at most 2 vehicles, metric none>"
    )
    assert repr(make(windows=windows(ANY, ANY), name="a\nb")) == (
        "<Problem 'a\\nb': VRPTW, 2 customers, capacity 5, metric none>"
    )
