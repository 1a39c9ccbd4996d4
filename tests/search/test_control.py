"""How a user steers a search: stop criteria, callbacks, signals, logging."""

from __future__ import annotations

import gc
import logging
import os
import pickle
import signal
import threading
from typing import Any

import numpy as np
import pytest

from ndsvrp import (
    CallbackError,
    NdsError,
    NoSolutionError,
    Problem,
    Progress,
    Result,
    check,
    generate,
    solve,
    solve_set,
)

SHORT: dict[str, Any] = {"seed": 1, "chains": 2, "rollouts": 30}


@pytest.fixture(scope="module")
def problem() -> Problem:
    return generate("cvrp", 20, seed=1)[0]


def test_stop(problem: Problem) -> None:
    result = solve(problem, iterations=50, stop=lambda progress: progress.iteration >= 3, **SHORT)
    assert (result.stopped, result.iterations) == ("stop", 3)
    assert "stop criterion after" in str(result)
    event = threading.Event()
    assert solve(problem, iterations=2, stop=event.is_set, **SHORT).stopped == "iterations"
    event.set()
    result = solve(problem, iterations=50, stop=event.is_set, **SHORT)
    assert (result.stopped, result.iterations) == ("stop", 0) and result.report.feasible


@pytest.mark.parametrize(("answer", "iterations"), [(False, 2), (np.False_, 2), (None, 5), (True, 5), (0, 5), ("", 5)])
def test_false_of_a_callback_ends_the_search(problem: Problem, answer: Any, iterations: int) -> None:
    seen: list[int] = []

    def callback(progress: Progress) -> Any:
        seen.append(progress.iteration)
        return answer if progress.iteration == 2 else None

    result = solve(problem, iterations=5, callback=callback, **SHORT)
    assert result.iterations == iterations and seen == list(range(iterations + 1))
    assert result.stopped == ("callback" if iterations == 2 else "iterations")


def test_the_incumbent(problem: Problem) -> None:
    costs: list[tuple[float, float]] = []

    def callback(progress: Progress) -> None:
        costs.append((progress.best, check(problem, progress.incumbent).cost))

    result = solve(problem, iterations=4, callback=callback, **SHORT)
    assert [found for _, found in costs] == pytest.approx([told for told, _ in costs], rel=1e-6)
    assert costs[-1][1] == result.cost and len(costs) == 5
    problems = generate("cvrp", 12, count=3, seed=1)
    counts: list[int] = []
    found = solve_set(problems, iterations=2, callback=lambda p: counts.append(len(p.incumbents)), **SHORT)
    assert counts == [3, 3, 3] and all(isinstance(result, Result) for result in found)


def test_a_progress_outlives_its_search(problem: Problem) -> None:
    kept: list[Progress] = []
    solve(problem, iterations=1, callback=kept.append, **SHORT)
    gc.collect()
    with pytest.raises(NdsError, match="the search of this progress is over; its result has the solution"):
        _ = kept[0].incumbent
    assert pickle.loads(pickle.dumps(kept[0])) == kept[0]


@pytest.mark.parametrize("which", ["callback", "stop"])
def test_an_exception_carries_the_best_solution(problem: Problem, which: str) -> None:
    def fail(progress: Progress) -> None:
        if progress.iteration == 2:
            raise ValueError("no space on the screen")

    told = "a callback or stop criterion raised ValueError: no space on the screen"
    with pytest.raises(CallbackError, match=told) as caught:
        solve(problem, iterations=9, **{which: fail}, **SHORT)
    assert isinstance(caught.value.__cause__, ValueError)
    result = caught.value.result
    assert result is not None and (result.stopped, result.iterations) == ("error", 2)
    assert result.report.feasible and result.cost == pytest.approx(result.trace[-1].cost, rel=1e-6)
    again = pickle.loads(pickle.dumps(caught.value))  # as a pool of processes does
    assert (str(again), again.result.cost, len(again.results)) == (told, result.cost, 1)


def test_an_exception_in_a_set_keeps_the_results_before_it() -> None:
    problems, calls = generate("cvrp", 12, count=3, seed=1), [0]

    def fail(progress: Progress) -> None:
        calls[0] += 1
        if calls[0] == 5:  # in the second search, of which each has three iterations
            raise ValueError

    with pytest.raises(CallbackError) as caught:
        solve_set(problems, iterations=2, together=1, callback=fail, **SHORT)
    first, second, third = caught.value.results
    assert isinstance(first, Result) and first.stopped == "iterations" and caught.value.result is first
    assert isinstance(second, Result) and second.stopped == "error" and isinstance(third, NoSolutionError)


def test_false_ends_a_set_and_stop_only_one_search() -> None:
    problems = generate("cvrp", 12, count=2, seed=1)
    ended = solve_set(problems, iterations=5, together=1, callback=lambda p: p.iteration < 2, **SHORT)
    assert [isinstance(result, Result) for result in ended] == [True, False]
    stopped = solve_set(problems, iterations=5, together=1, stop=lambda p: p.iteration == 2, **SHORT)
    assert [result.stopped for result in stopped if isinstance(result, Result)] == ["stop", "stop"]


def test_sigterm_acts_like_ctrl_c(problem: Problem) -> None:
    def terminate(progress: Progress) -> None:
        if progress.iteration == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        result = solve(problem, iterations=10_000, callback=terminate, **SHORT)
        assert result.stopped == "interrupted" and result.report.feasible
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        asked: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))  # the program's own
        assert solve(problem, iterations=5, callback=terminate, **SHORT).stopped == "iterations"
        assert asked == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_searches_in_threads(problem: Problem) -> None:
    results: list[Result] = []
    thread = threading.Thread(target=lambda: results.append(solve(problem, iterations=2, **SHORT)))
    thread.start()
    thread.join()
    assert results[0].report.feasible


def test_logging(problem: Problem, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "ndsvrp"):
        result = solve(problem, iterations=2, **SHORT)
    assert {record.name for record in caplog.records} == {"ndsvrp.search.solver"}
    first, last = (record.getMessage() for record in caplog.records)
    assert first == f"{problem.name}: CVRP, 20 customers: solver hybrid, ruin string, 2 chains, device cpu, seed 1"
    assert last.startswith(f"{problem.name}: cost {result.cost!r}, iteration limit after ")
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "ndsvrp"):
        solve(problem, iterations=2, **SHORT)
    assert len(caplog.records) == 2 + len(result.trace)


def test_wrong_types(problem: Problem) -> None:
    with pytest.raises(NdsError, match="stop must be a function of a Progress, got float"):
        solve(problem, iterations=1, stop=3.0)  # type: ignore[arg-type]
