"""The distance term of the network, and its inputs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from reference_network import FORMS, four, shown, strong, view_of

from ndsvrp import Problem, Solution
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.policy import Network, NetworkConfig
from ndsvrp.policy.inputs import Inputs, input_names
from ndsvrp.policy.random_numbers import RandomNumbers
from ndsvrp.policy.rollout import sample
from ndsvrp.search.start import start
from parity.problems import VARIANTS, random_problem

# --- the distance term ---------------------------------------------------------------------------------


def term_of(config: NetworkConfig, inputs: Inputs, last: torch.Tensor | None) -> torch.Tensor:
    """Return the distance term: logits with it minus logits without it."""
    with_it = strong(config)
    without = Network(replace(config, distance_term=False))
    without.load_state_dict(with_it.state_dict(), strict=False)
    batch, customers = inputs.nodes.shape[0], inputs.nodes.shape[1] - 1
    count = 1 if last is None else last.shape[1]
    hidden = torch.full((batch, count, config.width), 0.3)
    seeds, allowed = torch.zeros(batch, count, 4), torch.ones(batch, count, customers, dtype=torch.bool)
    with torch.no_grad():
        return torch.sub(*(net.logits(net.encode(inputs), hidden, seeds, allowed, last) for net in (with_it, without)))


def test_view_of() -> None:
    """The view made by hand is that of an engine."""
    problem, engine = four(capacity=100), CpuEngine()
    state = start(engine, [problem], [0], 0, init=Solution([(3, 1, 4)]))
    for ours, theirs in zip(view_of([[3, 1, 4]], 4)[:2], engine.view(state)[:2], strict=True):
        assert ours[0, 1:].tolist() == theirs[0, 1:].tolist()


def test_distance_term() -> None:
    # Customers at (0.5, 0), (0.8, 0.4), (0.5, 1), (0.5, 0.25) of a box of side 1, the depot at (0.2, 0):
    # from customer 1 it is 0, 0.5, 1 and 0.25. With beta = 3 and N = 4, times -beta sqrt(N) = -6: 0, -3, -6, -1.5.
    # Customers 1, 3 and 2 share a route: gamma = 0.7 is added, to customer 1 itself too.
    problem = Problem(
        coordinates=[[0.2, 0], [0.5, 0], [0.8, 0.4], [0.5, 1], [0.5, 0.25]], demand=[0, 1, 1, 1, 1], capacity=3
    )
    config = replace(FORMS["default"], beta=3.0, gamma=0.7)
    inputs = shown([problem], view_of([[1, 3, 2], [4]], 4))
    term = term_of(config, inputs, torch.tensor([[0, 3, -1]]))
    assert term[0, 0].tolist() == pytest.approx([0.7, -2.3, -5.3, -1.5], abs=1e-5)
    # From customer 4, alone in its route: 0.25, sqrt(0.09 + 0.0225), 0.75, 0.
    assert term[0, 1].tolist() == pytest.approx([-1.5, -6 * math.sqrt(0.1125), -4.5, 0.7], abs=1e-5)
    assert term[0, 2].tolist() == [0, 0, 0, 0], "no selection before"
    assert term_of(config, inputs, None).tolist() == [[[0, 0, 0, 0]]]


def test_distance_term_by_a_matrix() -> None:
    # The largest distance is 8: a side of 8 / sqrt(2). Rows are read from the customer selected last.
    far = np.array([[0, 1, 2], [1, 0, 8], [2, 4, 0]], float)
    problem = Problem(distance=far, demand=[0, 1, 1], capacity=3)
    config = replace(FORMS["default"], beta=0.5, gamma=0.0)
    term = term_of(config, shown([problem], view_of([[1], [2]], 2)), torch.tensor([[0, 1]]))
    unit = 0.5 * math.sqrt(2) / (8 / math.sqrt(2))  # beta sqrt(N) / side
    assert term[0, 0].tolist() == pytest.approx([0, -8 * unit], abs=1e-5)
    assert term[0, 1].tolist() == pytest.approx([-4 * unit, 0], abs=1e-5)


def test_distance_term_is_learned() -> None:
    network = strong(FORMS["default"])
    inputs = shown([four()], view_of([[1, 2], [3, 4]], 4))
    network(inputs, torch.tensor([[[1, 2, 3]]]), torch.zeros(1, 1, 4)).sum().backward()
    assert abs(float(network.beta.grad)) > 1e-4 and abs(float(network.gamma.grad)) > 1e-4
    network.zero_grad()
    network(inputs, torch.tensor([[[3]]]), torch.zeros(1, 1, 4)).sum().backward()
    assert float(network.beta.grad) == float(network.gamma.grad) == 0, "the first selection does not use it"


def test_untrained_policy_with_the_term_is_a_related_removal() -> None:
    """The initial beta of 2 makes untrained selections cluster."""
    problems = [random_problem(seed, "cvrp", "none", customers=40, layout="uniform", scale=1.0) for seed in range(4)]
    inputs = shown(problems)
    spread = {}
    for term in (True, False):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            network = Network(NetworkConfig(distance_term=term, width=16, heads=2, feed_forward=16))
        rollouts = sample(network, inputs, RandomNumbers.from_generator(np.random.default_rng(0), 4, 32, 5, 10))
        assert rollouts is not None
        where = torch.stack([inputs.coordinates[b][rollouts.removed[b]] for b in range(4)])
        spread[term] = float((where[:, :, 1:] - where[:, :, :-1]).norm(dim=-1).mean())
    assert spread[True] < 0.35 < 0.45 < spread[False]


# --- inputs --------------------------------------------------------------------------------------------

WINDOWS = [[100, 300], [110, 160], [100, 300], [120, 140], [90, 400]]
SERVICE = [0, 10, 0, 5, 20]
PRIZE = [0, 0, 8, 0, 30]


def test_inputs_of_a_problem_with_everything() -> None:
    """x, y, demand; 1, ready, due, service; 1, prize, required. The side is 20, the depot opens at 100."""
    problem = four(windows=WINDOWS, service=SERVICE, prize=PRIZE)
    nodes = shown([problem]).nodes
    assert nodes.dtype == torch.float32 and len(input_names()) == 10
    # The box is 10 x 20: x runs from 0.25 to 0.75. Window 4 is cut to the depot's hours, 0 … 200.
    assert nodes[0].double().numpy() == pytest.approx(
        np.array([
            [0.25, 0.0, 0.0, 1, 0.0, 10.0, 0.0, 1, 0.0, 0],
            [0.75, 0.0, 0.2, 1, 0.5, 3.0, 0.5, 1, 0.0, 1],
            [0.75, 1.0, 0.4, 1, 0.0, 10.0, 0.0, 1, 0.4, 0],
            [0.45, 0.6, 0.6, 1, 1.0, 2.0, 0.25, 1, 0.0, 1],
            [0.25, 1.0, 0.8, 1, 0.0, 10.0, 1.0, 1, 1.5, 0],
        ]),
        abs=1e-6,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "zero"),
    [
        ({}, [3, 4, 5, 6, 7, 8, 9]),
        ({"windows": WINDOWS, "service": SERVICE}, [7, 8, 9]),
        ({"windows": WINDOWS}, [6, 7, 8, 9]),
        ({"prize": PRIZE}, [3, 4, 5, 6]),
        ({"windows": WINDOWS, "service": SERVICE, "prize": PRIZE}, []),
    ],
    ids=["cvrp", "vrptw", "no service", "pcvrp", "pcvrptw"],
)
def test_inputs_of_absent_constraints_are_zero(fields: dict[str, Any], zero: list[int]) -> None:
    everything = shown([four(windows=WINDOWS, service=SERVICE, prize=PRIZE)]).nodes[0].numpy()
    nodes = shown([four(**fields)]).nodes[0].numpy()
    assert np.all(nodes[:, zero] == 0)
    there = [i for i in range(10) if i not in zero]
    assert np.array_equal(nodes[:, there], everything[:, there])


def test_one_network_serves_all_problems_and_sizes() -> None:
    network = strong(FORMS["default"])
    found = set()
    for variant in VARIANTS:
        for customers in (5, 12):
            problem = random_problem(2, variant, "none", customers=customers, layout="uniform")
            with torch.no_grad():
                value = network(shown([problem]), torch.tensor([[[3, 1, 5]]]), torch.ones(1, 1, 4))
            assert torch.isfinite(value).all()
            found.add(float(value))
    assert len(found) == 8


def test_times_have_their_own_unit() -> None:
    """With a duration matrix, times are relative to the longest duration over the square root of two."""
    far = np.array([[0, 3, 4], [3, 0, 5], [4, 5, 0]], float)
    problem = Problem(
        distance=far, duration=far * 20, demand=[0, 1, 1], capacity=2, windows=[[0, 400], [50, 100], [0, 200]],
        service=[0, 25, 0],
    )  # fmt: skip
    unit = 100 / math.sqrt(2)
    nodes = shown([problem]).nodes[0].double().numpy()
    assert nodes[1, 3:7] == pytest.approx([1, 50 / unit, 100 / unit, 25 / unit], abs=1e-5)


def test_inputs_can_be_shown_other_solutions() -> None:
    inputs = shown([four()], view_of([[1, 2], [3], [4]], 4))
    assert inputs.route.tolist() == [[-1, 0, 0, 1, 2]]
    assert inputs.previous.tolist() == [[0, 0, 1, 0, 0]]
    assert inputs.next.tolist() == [[0, 2, 0, 0, 0]]
    other = inputs.showing(view_of([[4, 3]], 4))
    assert other.route.tolist() == [[-1, -1, -1, 0, 0]]
    assert torch.equal(other.nodes, inputs.nodes)
    assert inputs.route.tolist() == [[-1, 0, 0, 1, 2]], "the first inputs are unchanged"
