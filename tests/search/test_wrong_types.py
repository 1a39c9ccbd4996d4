"""Arguments and answers of wrong types: an error of this package that says so."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import ndsvrp
from ndsvrp.errors import NdsError
from test_model import said


@pytest.fixture(scope="module")
def problem() -> ndsvrp.Problem:
    return ndsvrp.Problem(demand=[0, 1, 1, 1, 1], capacity=2, coordinates=np.arange(10).reshape(5, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": "1"}, "seed must be a whole number, got '1'"),
        ({"seed": 1.5}, "seed must be a whole number, got 1.5"),
        ({"seed": None}, "seed must be a whole number, got None"),
        ({"seed": True}, "seed must be a whole number, got True"),
        ({"seed": -1}, "seed must be between 0 and 2^63 - 1, got -1"),
        ({"threads": "2"}, "threads must be a whole number, got '2'"),
        ({"threads": 1.5}, "threads must be a whole number, got 1.5"),
        ({"threads": 0}, "threads must be at least 1, got 0"),
        ({"init": [[1, 2]]}, "init must be a Solution, got list (ndsvrp.Solution(routes) makes one)"),
        ({"init": "a.sol"}, "init must be a Solution, got str (ndsvrp.read_solution(file)[0] reads one)"),
        ({"callback": 3}, "callback must be a function of a Progress, got int"),
        ({"model": 3}, "a ruin or model is a name, a path or a function, got 3"),
        ({"model": ["x"]}, "a ruin or model is a name, a path or a function, got ['x']"),
        ({"ruin": 3}, "a ruin or model is a name, a path or a function, got 3"),
        ({"chains": "2"}, "chains must be a whole number, got '2'"),
    ],
)
def test_arguments(problem: ndsvrp.Problem, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(NdsError) as caught:
        ndsvrp.solve(problem, iterations=1, **arguments)
    assert str(caught.value) == message


def test_something_else_than_a_problem() -> None:
    path = "solve needs a Problem, got str (ndsvrp.read(path) reads one)"
    assert said(ndsvrp.solve, "a.vrp", iterations=1) == path
    model = "solve needs a Problem, got Model (call model.problem() or model.solve())"
    assert said(ndsvrp.solve, ndsvrp.Model(), iterations=1) == model
    assert said(ndsvrp.solve_set, "a.npz", iterations=1) == "solve_set needs a list of problems, got str"
    assert said(ndsvrp.solve_set, [3], iterations=1) == "solve_set needs a Problem, got int (see ndsvrp.Problem)"
    assert said(ndsvrp.solve_set, 3, iterations=1) == "solve_set needs a list of problems, got int"
    assert said(ndsvrp.solve_set, set(), iterations=1) == "solve_set needs a list of problems, got set"
    assert said(ndsvrp.write_set, "a.npz", 3) == "write_set needs a list of problems, got int"
    assert said(ndsvrp.write_set, "a.npz", ["a.vrp"]) == (
        "write_set needs a Problem, got str (ndsvrp.read(path) reads one)"
    )
    assert said(ndsvrp.check, [[1]], ndsvrp.Solution([])) == "check needs a Problem, got list (see ndsvrp.Problem)"
    assert said(ndsvrp.Solver, "a.vrp").startswith("a solver takes a Request, got str")
    assert said(ndsvrp.read, 3) == "a file is given by its path, got int"
    for content in (b"x,y", {"customers": []}, io.StringIO("x,y")):
        words = f"got {type(content).__name__} (ndsvrp.read_content(name, data) takes bytes)"
        assert said(ndsvrp.read, content) == f"a file is given by its path, {words}"
    assert said(ndsvrp.read_content, "a.csv", "x,y") == "read_content takes a name and bytes, got str (text.encode())"
    assert said(ndsvrp.read_content, "a.json", {}) == "read_content takes a name and bytes, got dict"


def test_something_else_than_a_path(problem: ndsvrp.Problem) -> None:
    result, words = ndsvrp.solve(problem, iterations=1), "a file is given by its path, got"
    assert said(ndsvrp.write, problem, "a.vrp") == f"{words} Problem"  # the two are swapped
    assert said(ndsvrp.write_set, [problem], "a.npz") == f"{words} list"
    assert said(ndsvrp.write_solution, result.solution, "a.sol", 2.0) == f"{words} Solution"
    for call in (result.save, result.report, result.to_html, result.plot, lambda file: ndsvrp.plot_trace(result, file)):
        assert said(call, 3) == f"{words} int"


def test_something_else_than_a_solution(problem: ndsvrp.Problem) -> None:
    kind = "must be a Solution, got list (ndsvrp.Solution(routes) makes one)"
    assert said(ndsvrp.check, problem, [[1]]) == f"what is checked {kind}"
    assert said(ndsvrp.write_solution, "a.sol", [[1]], 2.0) == f"what is written {kind}"
    result = ndsvrp.solve(problem, iterations=1)
    words = "init must be a Solution, got Result (its attribute solution is one)"
    assert said(ndsvrp.solve, problem, iterations=1, init=result) == words
    pair = (result.solution, 2.0)
    words = "(its first element is one: solution, cost = ndsvrp.read_solution(file))"
    assert said(ndsvrp.solve, problem, iterations=1, init=pair) == f"init must be a Solution, got tuple {words}"
    words = "a solution has the numbers of customers; problem.solution(routes) takes their names"
    assert said(ndsvrp.Solution, [["bakery", "school"]]) == words
    for routes in ([1, 2], "1 2", [{1, 2}]):
        assert said(ndsvrp.Solution, routes) == "a solution is a list of routes, a route a list of customer numbers"


def test_unknown_keywords(problem: ndsvrp.Problem) -> None:
    for call in (lambda **options: ndsvrp.solve(problem, **options), ndsvrp.Solver):
        message = said(call, tme=1)
        assert message.startswith(
            "unknown option 'tme' (did you mean time? known: solver, ruin, model, preset, device, threads, chains, "
        )
        assert message.endswith("; arguments of solve: time, iterations, patience, target, seed, init, callback, stop)")
    message = said(ndsvrp.solve, problem, max_runtime=5)
    assert message.startswith("unknown option 'max_runtime' (time takes it, in seconds; known: solver, ")
    message = said(ndsvrp.solve, problem, iterations=1, chain=2)
    assert message.startswith("unknown option 'chain' (chains takes it; known: solver, ")
    message = said(ndsvrp.solve, problem, iterations=1, tw_early=2)  # no window here
    assert message.startswith("unknown option 'tw_early' (known: solver, ")
    message = said(ndsvrp.read, "a.vrp", round_func="round")
    assert message.startswith("read: unknown 'round_func' (metric takes it; known: metric, index, ")
    assert said(ndsvrp.Solver, time=1) == "'time' is an argument of solve, not of this call"
    start = ndsvrp.Solution([[1]])
    assert said(ndsvrp.solve_set, [problem], time=1, init=start) == "'init' is an argument of solve, not of this call"
    message = said(ndsvrp.Problem, demand=[0, 1], capcity=1, capacity=2)
    assert message.startswith(
        "Problem: unknown 'capcity' (did you mean capacity? known: demand, capacity, coordinates, distance, "
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("coords", "coordinates takes it; "), ("distance_matrix", "distance takes it; "),
        ("time_matrix", "duration takes it; "), ("num_vehicles", "vehicles takes it; "),
        ("vehicle_capacity", "capacity takes it; "), ("service_times", "service takes it; "),
        ("time_windows", "windows takes it, or window of a customer; "),
        ("vehicle_types", "not supported: vehicles that differ; "),  # not: did you mean vehicles?
        ("coordinate", "coordinates takes it; "), ("max_dist", "did you mean max_distance? "), ("colour", ""),
    ],
)  # fmt: skip
def test_names_of_other_programs_and_slips(name: str, hint: str) -> None:
    message = said(ndsvrp.Problem, demand=[0, 1], capacity=1, **{name: 1})
    assert message.startswith(f"Problem: unknown '{name}' ({hint}known: demand, capacity, ")


def test_options_without_a_name(problem: ndsvrp.Problem) -> None:
    """PyVRP takes a stop criterion after the problem."""
    words = "takes options by name, such as time=10; got int without one"
    assert said(ndsvrp.solve, problem, 5) == f"solve {words}"
    assert said(ndsvrp.solve_set, [problem], 5) == f"solve_set {words}"
    assert said(ndsvrp.Model().solve, 5) == f"solve {words}"
    with ndsvrp.Solver() as solver:
        assert said(solver.solve, problem, 5) == f"solve {words}"
        assert said(solver.solve_set, [problem], 5) == f"solve_set {words}"


def test_numpy_integers_are_whole_numbers(problem: ndsvrp.Problem) -> None:
    plain = ndsvrp.solve(problem, iterations=2, seed=5, threads=1)
    assert ndsvrp.solve(problem, iterations=2, seed=np.int64(5), threads=np.int32(1)).solution == plain.solution


def test_a_set_is_refused_before_any_outcome() -> None:
    """The fleet of the problem is too small, which is told without a search."""
    short = ndsvrp.Problem(demand=[0, 2, 2], capacity=2, coordinates=np.zeros((3, 2)), vehicles=1)
    told: list[int] = []
    for arguments in ({"seed": -1}, {"patience": 0}):
        with pytest.raises(NdsError, match=r"seed must be between|patience must be above"):
            ndsvrp.solve_set([short], **{"iterations": 1} | arguments, on_result=lambda i, _: told.append(i))
    assert told == []


def test_together(problem: ndsvrp.Problem) -> None:
    with pytest.raises(NdsError, match="together must be a whole number, got '2'"):
        ndsvrp.solve_set([problem], iterations=1, together="2")  # type: ignore[arg-type]


def test_model_to_load() -> None:
    with pytest.raises(NdsError, match="a model is given by its name or path, got 3"):
        ndsvrp.models.load(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "got ()"),
        ("customers", "got ()"),
        (3, "got ()"),
        ([[1, 2], [3]], "got ()"),
        ([[1, 2]], "got (1, 2)"),
        (np.ones((1, 3, 2), int), "got (1, 3, 2)"),
        (np.ones((1, 2, 1), int), "got (1, 2, 1)"),
        (np.ones((2, 2, 2), int), "got (2, 2, 2)"),
        ([[[1.0, 2.0]]], "customers to remove must be whole numbers, got float64"),
        ([[["1", "2"]]], "customers to remove must be whole numbers, got <U1"),
        ([[[1, 2**32 + 2]]], "customers to remove must be between 1 and N"),
        ([[[0, 1]]], "customers to remove must be between 1 and N"),
        ([[[1, 1]]], "a customer is removed twice in one rollout"),
    ],
)
def test_answers_of_an_own_ruin(problem: ndsvrp.Problem, answer: Any, message: str) -> None:
    with pytest.raises(NdsError) as caught:
        ndsvrp.solve(problem, iterations=1, ruin=lambda request: answer, chains=1, rollouts=2, removals=2)
    assert str(caught.value).endswith(message)


def test_lists_are_answers_too(problem: ndsvrp.Problem) -> None:
    result = ndsvrp.solve(problem, iterations=1, ruin=lambda request: [[[1, 2]]], chains=1, rollouts=2, removals=2)
    assert result.report.feasible
