"""The presets of the paper: what each sets, and what that changes in a search."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from ndsvrp import Problem, Settings, Solver, check, generate, solve
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.errors import NdsError
from ndsvrp.search import presets

PAPER = {"ruin": "related", "chains": 8, "rollouts": 200, "removals": 15, "orders": 5, "threshold": 15.0, "hot": 0.1,
         "cold": 0.001, "regions": 1, "tails": 0, "blink": 0.0, "sorted_orders": False, "open_route": 0.5}  # fmt: skip


@pytest.fixture(scope="module")
def problem() -> Problem:
    return generate("cvrp", 30, seed=1)[0]


def settings_of(problem: Problem, preset: str, **how: Any) -> Settings:
    chosen = Solver(preset=preset, **how).plan(problem)
    assert (chosen.solver, chosen.preset) == ("nds", preset)
    return chosen.settings


@pytest.mark.parametrize(
    ("preset", "scope", "start_rounds", "scale"),
    [
        ("paper", "touched", 100, "side"),
        ("paper-text", "all", 0, "absolute"),
        ("paper-code", "touched", 100, "absolute"),
    ],
)
def test_what_a_preset_sets(problem: Problem, preset: str, scope: str, start_rounds: int, scale: str) -> None:
    found = settings_of(problem, preset)
    assert (found.scope, found.start_rounds, found.temperature_scale) == (scope, start_rounds, scale)
    assert {name: getattr(found, name) for name in PAPER} == PAPER
    prizes = problem.replace(prize=np.r_[0.0, np.ones(30)])
    assert settings_of(prizes, preset).chains == 128
    assert settings_of(problem, preset, ruin="random", chains=3, scope="all").ruin == "random"


def test_text_and_code_differ_in_two_settings(problem: Problem) -> None:
    text, code = (asdict(presets.PRESETS[name](problem)) for name in ("paper-text", "paper-code"))
    assert {name for name in text if text[name] != code[name]} == {"scope", "start_rounds"}


def test_other_solvers_start_without_rounds(problem: Problem) -> None:
    assert [Solver(solver=name).plan(problem).settings.start_rounds for name in ("nds", "sisr", "hybrid")] == [
        100,
        0,
        0,
    ]


@pytest.mark.parametrize("preset", ["paper", "paper-text", "paper-code"])
def test_presets_are_for_nds(problem: Problem, preset: str) -> None:
    with pytest.raises(NdsError, match=f"^the preset '{preset}' is a setting of the solver 'nds'$"):
        solve(problem, iterations=1, preset=preset, solver="sisr")


def test_the_start_of_a_search(problem: Problem) -> None:
    """By the text one route per customer, there and back; by the code 100 rounds that improve it."""
    there_and_back = 2 * problem.length(np.zeros(31, int), np.arange(31)).sum()
    costs = {}
    for preset in ("paper-text", "paper-code"):
        result = solve(problem, preset=preset, iterations=1, rollouts=1, chains=1, seed=1, device="cpu")
        assert result.cost == check(problem, result.solution).cost
        costs[preset] = result.trace[0].cost
    assert costs["paper-text"] == pytest.approx(there_and_back, rel=1e-6)
    assert costs["paper-code"] < 0.6 * there_and_back


def test_scope_of_insertion() -> None:
    """Customers at 10 and 11, a route each: removed, the first returns to its own route, or joins the other's.

    Two routes cost 20 + 22, one route 22.
    """
    problem = Problem(coordinates=[[0, 0], [10, 0], [11, 0]], demand=[0, 1, 1], capacity=2)
    engine = CpuEngine()
    changes = {}
    for scope in ("touched", "all"):
        state = engine.start([problem], [0])
        recipe = Settings(scope=scope, removals=1, orders=1).recipe(2, by_rule=False)
        changes[scope] = engine.evaluate(state, recipe, np.array([[[1]]], np.int32), 1, 0, 0, keep_best=False)[0, 0]
    assert changes == {"touched": pytest.approx(0.0, abs=1e-6), "all": pytest.approx(-20.0, abs=1e-5)}


def test_temperatures_of_a_large_box() -> None:
    """In a box of side 1000 the search starts at T = 0.1 x 1000, or at T = 0.1."""
    problem = generate("cvrp", 20, seed=1)[0]
    assert problem.coordinates is not None
    large = problem.replace(coordinates=1000 * problem.coordinates)
    how: dict[str, Any] = {"iterations": 1, "solver": "nds", "ruin": "random", "chains": 1, "seed": 1, "device": "cpu"}
    told: dict[str, list[float]] = {"side": [], "absolute": []}
    for scale, temperatures in told.items():
        solve(large, temperature_scale=scale, callback=lambda p, t=temperatures: t.append(p.temperature), **how)
    assert told["absolute"] == pytest.approx([0.1, 0.1])
    assert told["side"] == pytest.approx([0.1 * large.side()] * 2)
    assert large.side() > 800
