"""Rewards, baseline, advantage and the best rollout, worked by hand on four customers; costs are the engine's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ndsvrp import Problem, Solution
from ndsvrp.engine.base import Recipe
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.search.start import start
from ndsvrp.train.loss import loss_of, over_processes, signal

# Customers 1, 2, 3 one above the other at x = 3, customer 4 behind them; a vehicle holds two.
#
#        3 (3, 4)           from the depot: 5, 3, 5, 6
#   0    2 (3, 0)  4 (6, 0)    1-2: 4, 1-3: 8, 1-4: 5, 2-3: 4, 2-4: 3, 3-4: 5
#        1 (3, -4)
FOUR = Problem(
    coordinates=[[0, 0], [3, -4], [3, 0], [3, 4], [6, 0]], demand=[0, 1, 1, 1, 1], capacity=2, metric="round"
)
ROLLOUTS = [[1, 2], [1, 4], [4, 2], [2, 1]]  # K = 4, M = 2; customers go back in this order
APART, PAIR, DONE = [(1,), (2,), (3,), (4,)], [(1,), (2, 3), (4,)], [(1, 4), (2, 3)]


def changes(routes: list[tuple[int, ...]]) -> list[float]:
    """Of the cost, by each of the rollouts."""
    engine = CpuEngine()
    state = start(engine, [FOUR], [0], 0, init=Solution(routes))
    removed = np.array([ROLLOUTS], np.int32)
    return engine.evaluate(state, Recipe(removals=2), removed, 4, 0, 0, keep_best=False)[0].tolist()


def batch() -> torch.Tensor:
    """(3, 4): three solutions of the problem."""
    return torch.tensor([changes(PAIR), changes(APART), changes(DONE)], dtype=torch.float64)


def test_changes() -> None:
    # PAIR costs 10 + 12 + 12 = 34.
    #   1, 2: of the routes touched (3) is left. 1 joins it for 8 + 5 - 5 = 8; the vehicle is full, 2 drives alone for
    #         6. Now (1 3), (2), (4): 18 + 6 + 12 = 36.
    #   1, 4: both routes are gone. 1 opens one, 4 joins it for 5 + 6 - 5 = 6. (1 4), (2 3): 16 + 12 = 28.
    #   4, 2: 4 joins (3) for 6; it is full, 2 drives alone. (1), (3 4), (2): 10 + 16 + 6 = 32.
    #   2, 1: 2 goes back to (3) for 3 + 4 - 5 = 2, 1 is alone again: 34.
    assert changes(PAIR) == [2, -6, -2, 0]
    # APART costs 10 + 6 + 10 + 12 = 38.
    #   1, 2 and 2, 1: a route (1 2) of 5 + 4 + 3 = 12 in place of 10 + 6.
    #   1, 4: (1 4) of 16 in place of 10 + 12.     4, 2: (2 4) of 12 in place of 12 + 6.
    assert changes(APART) == [-4, -6, -6, -4]
    # DONE costs 16 + 12 = 28.
    #   1, 2: (4), (3) are left. 1 goes back to 4 for 5 + 5 - 6 = 4 (to 3: 8), 2 to 3. Nothing has changed.
    #   1, 4: 4 joins 1 again.
    #   4, 2: 4 costs 6 with 1 and with 3; 2 costs 2 with the other. 28 either way.
    #   2, 1: 2 is on the way to 4, for nothing; 1 is left with 3 for 8. (2 4), (1 3): 12 + 18 = 30.
    assert changes(DONE) == [0, 0, 0, 2]


def test_unscaled() -> None:
    taught = signal(batch(), scale=False)
    # Rewards 0 6 2 0, 4 6 6 4 and 0 0 0 0: never below 0.
    assert taught.reward.tolist() == [6, 6, 0]
    assert taught.mean.tolist() == [2, 5, 0]
    assert taught.advantage.tolist() == [4, 1, 0]
    assert taught.best[0] == 1 and taught.best[1] in (1, 2)
    assert taught.advantage.dtype == torch.float32 and taught.best.dtype == torch.int64


def test_scaled() -> None:
    # By the mean of the best rewards, (6 + 6 + 0) / 3 = 4.
    taught = signal(batch(), scale=True)
    assert taught.advantage.tolist() == [1.0, 0.25, 0.0]
    assert taught.reward.tolist() == [6, 6, 0] and taught.mean.tolist() == [2, 5, 0]
    # In a batch of its own, by its own best reward.
    assert signal(batch()[:1], scale=True).advantage.tolist() == pytest.approx([4 / 6])


def test_scale_of_the_costs_does_not_matter_when_scaled() -> None:
    for factor in (1e-6, 1000.0):
        taught = signal(factor * batch(), scale=True)
        assert taught.advantage.tolist() == pytest.approx([1.0, 0.25, 0.0], rel=1e-6)


def test_loss() -> None:
    # log pi of the best rollouts -1, -2 and -8: -(4 x -1 + 1 x -2 + 0 x -8) / 3 = 2, and a slope of -advantage / 3.
    log_probability = torch.tensor([-1.0, -2.0, -8.0], requires_grad=True)
    loss = loss_of(log_probability, signal(batch(), scale=False).advantage)
    loss.backward()
    assert loss.item() == pytest.approx(2.0)
    assert log_probability.grad.tolist() == pytest.approx([-4 / 3, -1 / 3, 0])


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("change", [[[0.0, 0.0], [0.0, 0.0]], [[3.0, 1.0], [0.0, 2.0]], [[-0.0, 0.0], [5.0, 5.0]]])
def test_nothing_to_gain_teaches_nothing(change: list[list[float]], scale: bool) -> None:
    taught = signal(torch.tensor(change, dtype=torch.float64), scale=scale)
    assert taught.advantage.tolist() == [0, 0]
    log_probability = torch.tensor([-1.0, -30.0], requires_grad=True)
    loss_of(log_probability, taught.advantage).backward()
    assert log_probability.grad.tolist() == [0, 0]


def test_all_rollouts_alike_teach_nothing() -> None:
    taught = signal(torch.full((2, 3), -0.7, dtype=torch.float64), scale=True)
    assert taught.advantage.tolist() == pytest.approx([0, 0], abs=1e-7)


def test_one_rollout_is_its_own_baseline() -> None:
    taught = signal(torch.tensor([[-5.0], [1.0]], dtype=torch.float64), scale=False)
    assert taught.advantage.tolist() == [0, 0] and taught.best.tolist() == [0, 0]


def test_small_rewards_in_large_costs() -> None:
    """Rewards are float64: a gain of 1e-9 beside one of 1 is not lost before the difference is taken."""
    taught = signal(torch.tensor([[-1.0, -1.0 - 1e-9]], dtype=torch.float64), scale=False)
    assert taught.best.tolist() == [1]
    assert float(taught.advantage) == pytest.approx(5e-10, rel=1e-5)


def test_one_process_alone() -> None:
    assert float(over_processes(torch.tensor(3.5))) == 3.5
