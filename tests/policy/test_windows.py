"""Windows: the parts of solutions as the network sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import ndsvrp
from ndsvrp import NdsError, Problem, Ruin, RuinRequest, Settings, check, generate
from ndsvrp.engine.base import Regions
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.policy import Policy, windows
from ndsvrp.policy.inputs import input_names, static_inputs
from ndsvrp.search.asa import Search
from ndsvrp.search.augment import augmentations
from ndsvrp.search.stopping import Budget
from policy.test_rollout import ruin_request, tiny

PRIZE = input_names().index("prize")


def worked_example(monkeypatch: pytest.MonkeyPatch, shift: float) -> windows.Windows:
    """Routes 5-1, 2-4-6 and 8-9, customers 3 and 7 unserved; two parts: routes 0 and 2 with 3, and the others."""
    monkeypatch.setattr(windows, "MULTIPLE", 1)
    monkeypatch.setattr(windows, "SPARE", 0.7)  # windows of four customers
    points = np.array([[0, 0], [4, 0], [1, 1], [5, 5], [2, 1], [3, 2], [8, 4], [6, 6], [7, 1], [7, 3]], float) / 8
    problem = Problem(demand=np.r_[0.0, np.ones(9)], capacity=3.0, coordinates=points, prize=np.arange(10) / 8)
    static = static_inputs([problem], points[None], "cpu")
    assert static.nodes[0, 8, PRIZE] == pytest.approx(1.0 / problem.side())
    previous = [0, 5, 0, 0, 2, 0, 4, 0, 0, 8]
    following = [0, 0, 4, 0, 6, 1, 0, 0, 9, 0]
    route = [-1, 0, 1, -1, 1, 0, 1, -1, 2, 2]
    customers = torch.tensor([[5, 1, 8, 9, 3, 0, 0, 0, 0], [2, 4, 6, 7, 9, 9, 9, 9, 9]])
    view = torch.tensor([[previous], [following], [route]])
    divided = windows.Divided(static.nodes, view, torch.tensor([5, 4]), customers)
    return windows.windows(divided, torch.tensor([shift, shift]), 3)


def test_a_worked_example(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = worked_example(monkeypatch, 0.0)
    assert windows.window_size(9, 2, 3) == 4
    assert shown.nodes.tolist() == [[0, 5, 1, 8, 9], [0, 2, 4, 6, 7]]
    assert shown.inputs.previous.tolist() == [[0, 0, 1, 0, 3], [0, 0, 1, 2, 0]]
    assert shown.inputs.next.tolist() == [[0, 2, 0, 4, 0], [0, 2, 3, 0, 0]]
    assert shown.inputs.route.tolist() == [[-1, 0, 0, 1, 1], [-1, 0, 0, 0, -1]]
    # The first box is 7 wide and 3 high, the second 8 and 6: coordinates and prizes are in units of the wider side.
    sevenths = [[0, 0], [3, 2], [4, 0], [7, 1], [7, 3]]
    np.testing.assert_allclose(shown.inputs.coordinates[0], np.array(sevenths) / 7, rtol=1e-6)
    np.testing.assert_allclose(shown.inputs.nodes[0, :, PRIZE], np.array([0, 5, 1, 8, 9]) / 7, rtol=1e-6)
    np.testing.assert_allclose(shown.inputs.nodes[1, :, PRIZE], np.array([0, 2, 4, 6, 7]) / 8, rtol=1e-6)
    np.testing.assert_allclose(shown.inputs.nodes[0, :, input_names().index("demand")], [0] + [1 / 3] * 4, rtol=1e-6)


def test_constraints_of_a_window() -> None:
    """Their inputs are those of a problem that has no other customers."""
    problem = generate("pcvrptw", 40, seed=1)[0].replace(service=np.r_[0.0, np.full(40, 0.1)])
    assert problem.coordinates is not None
    order = np.argsort(problem.coordinates[1:, 0]) + 1
    static = static_inputs([problem], augmentations(problem, 1), "cpu")
    none = torch.zeros(3, 1, 41, dtype=torch.int64)
    rows = torch.tensor(np.stack([order, np.roll(order, -20)]))
    shown = windows.windows(windows.Divided(static.nodes, none, torch.tensor([20, 20]), rows), torch.zeros(2), 5)
    for nodes, seen in zip(shown.nodes.numpy(), shown.inputs.nodes, strict=True):
        names = ("coordinates", "demand", "windows", "service", "prize")
        parts: dict[str, Any] = {name: getattr(problem, name)[nodes] for name in names}
        alone = Problem(capacity=problem.capacity, **parts)
        assert alone.side() != problem.side()
        expected = static_inputs([alone], augmentations(alone, 1), "cpu").nodes[0]
        np.testing.assert_allclose(seen[:, 2:], expected[:, 2:], atol=1e-6)


def test_a_stretch_of_a_large_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first part has five customers, of which a window shows four: the first or the last ones."""
    shown = worked_example(monkeypatch, 0.99)
    assert shown.nodes.tolist() == [[0, 1, 8, 9, 3], [0, 2, 4, 6, 7]]
    assert shown.inputs.previous.tolist()[0] == [0, 0, 0, 2, 0], "customer 5 is not shown: its route begins with 1"
    assert shown.inputs.route.tolist()[0] == [-1, 0, 1, 1, -1]


def test_a_small_part_is_followed_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "MULTIPLE", 1)
    monkeypatch.setattr(windows, "SPARE", 1.0)
    static = torch.rand(2, 7, len(input_names()), generator=torch.Generator().manual_seed(1))
    sides = torch.zeros(3, 2, 7, dtype=torch.int64)
    counts = torch.tensor([1, 5, 6, 0])
    customers = torch.tensor([[4, 0, 0, 0, 0, 0], [6, 5, 3, 2, 1, 0], [1, 2, 3, 4, 5, 6], [0, 0, 0, 0, 0, 0]])
    shown = windows.windows(windows.Divided(static, sides, counts, customers), torch.zeros(4), 3)
    assert windows.window_size(6, 2, 3) == 4
    assert shown.nodes.tolist() == [[0, 4, 6, 5, 3], [0, 6, 5, 3, 2], [0, 1, 2, 3, 4], [0, 3, 4, 5, 6]]


def test_the_policy_chooses_customers_of_the_windows() -> None:
    problem, policy = generate("pcvrp", 60, seed=2)[0], Policy(tiny())
    customers = np.random.default_rng(1).permuted(np.tile(np.arange(1, 61, dtype=np.int32), (2, 1)), axis=1)
    counts = np.array([30, 30, 12, 48], np.int32)
    rows = np.stack([customers[0], np.roll(customers[0], -30), customers[1], np.roll(customers[1], -12)])
    request = ruin_request(problem, chains=2, regions=Regions(counts, rows))
    removed = policy(request)
    assert (removed.shape, removed.dtype) == ((4, 6, 4), np.int32)
    assert all(len(set(chosen)) == 4 for part in removed for chosen in part.tolist())
    size = windows.window_size(60, 2, 4)
    assert size == 48
    assert set(removed[0].ravel().tolist()) <= set(customers[0][:48].tolist())
    assert set(removed[2].ravel().tolist()) <= set(customers[1][:48].tolist())


def search(problem: Problem, threads: int = 1, **changes: Any) -> tuple[Any, int, Any]:
    how: dict[str, Any] = {"rollouts": 5, "removals": 6, "orders": 2, "start_rounds": 3, **changes}
    settings = Settings(ruin="policy", chains=8, regions=4, **how)
    it = Search(
        [problem], CpuEngine(threads=threads), settings, Budget(iterations=4), 1, Policy(tiny()), threads=threads
    )
    assert it.run() == "iterations"
    return it.best()[0], it.reconstructions, it.traces[0][-1].cost


@pytest.mark.parametrize("variant", ["cvrp", "vrptw", "pcvrp"])
def test_a_search_in_regions(variant: str) -> None:
    problem = generate(variant, 80, seed=3)[0]
    solution, made, cost = search(problem)
    assert check(problem, solution).feasible
    assert made == 4 * 8 * 5 * 2
    assert search(problem, threads=2) == (solution, made, cost)
    other, more, lower = search(problem, rule_steps=50)
    assert more == made + 4 * 8 * 50
    assert lower < cost and other != solution


def test_windows_show_as_many_customers_as_are_removed() -> None:
    problem = generate("cvrp", 40, seed=3)[0]
    assert [windows.window_size(40, 4, removals) for removals in (6, 16, 17, 40)] == [16, 16, 17, 40]
    assert check(problem, search(problem, removals=17)[0]).feasible


def test_own_ruins_choose_for_whole_solutions() -> None:
    problem = generate("cvrp", 30, seed=1)[0]

    class Own(Ruin):
        def __call__(self, request: RuinRequest) -> Any:
            return np.ones((len(request.coordinates), 1, 1), np.int32)

    how: dict[str, Any] = {"iterations": 1, "model": Own(), "chains": 2, "removals": 1, "device": "cpu"}
    assert ndsvrp.solve(problem, **how).reconstructions == 2 * 5
    with pytest.raises(NdsError, match="this ruin chooses customers of whole solutions: regions must be 1"):
        ndsvrp.solve(problem, regions=2, **how)


def test_own_ruins_may_choose_in_regions() -> None:
    problem, asked = generate("cvrp", 30, seed=1)[0], []

    class Own(Ruin):
        in_regions = True

        def __call__(self, request: RuinRequest) -> Any:
            assert request.regions is not None
            asked.append(request.regions.counts.tolist())
            return request.regions.customers[:, None, :1]  # one customer of each part

    ndsvrp.solve(problem, iterations=2, ruin=Own(), chains=4, regions=2, removals=1, device="cpu")
    assert [(len(counts), sum(counts)) for counts in asked] == [(4, 60), (4, 60)]
