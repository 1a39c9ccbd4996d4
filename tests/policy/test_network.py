"""The network against a slow one written from the paper's formulas, and what must hold of its probabilities."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ndsvrp import Problem, Solution
from ndsvrp.engine.base import Recipe, View
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.errors import NdsError
from ndsvrp.generate import generate
from ndsvrp.policy import Network, NetworkConfig
from ndsvrp.policy.inputs import Inputs, input_names, static_inputs
from ndsvrp.policy.random_numbers import RandomNumbers
from ndsvrp.policy.rollout import sample
from ndsvrp.search.plane import plane
from ndsvrp.search.start import start
from ndsvrp.train.loss import loss_of, signal
from parity.problems import VARIANTS, random_problem

SMALL: dict[str, Any] = {
    "width": 12, "heads": 3, "feed_forward": 10, "seed_bits": 4, "seed_width": 7, "beta": 1.3, "gamma": 0.6
}  # fmt: skip
FORMS = {
    "default": NetworkConfig(**SMALL),
    "paper": NetworkConfig.paper(**SMALL),
    "authors' code": NetworkConfig.paper(tour_first=True, tour_aggregate="sum", **SMALL),
    "no message passing": NetworkConfig(message_passing=False, **SMALL),
    "no tour layer": NetworkConfig(tour_encoding=False, **SMALL),
    "neither": NetworkConfig(message_passing=False, tour_encoding=False, layers_before=1, layers_after=0, **SMALL),
}


pytestmark = pytest.mark.usefixtures("one_thread")


def strong(config: NetworkConfig, seed: int = 0) -> Network:
    """A network whose weights are large enough for every part to matter, norms and biases included."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Network(config)
        with torch.no_grad():
            for name, weight in network.named_parameters():
                if name not in ("beta", "gamma"):
                    weight.add_(0.1 * torch.randn_like(weight))
    return network


def solved(problems: list[Problem], seed: int = 0, steps: int = 3) -> tuple[CpuEngine, Any, View]:
    """Solutions of some problems of one size, a few steps better than their start."""
    engine = CpuEngine()
    state = start(engine, problems, np.arange(len(problems)), seed, rounds=steps)
    related = Recipe(rule="related", removals=min(4, problems[0].customers))
    engine.improve(state, related, None, np.full((len(problems), steps), 1e-3), seed, 0)
    return engine, state, engine.view(state)


def shown(problems: list[Problem], view: View | None = None) -> Inputs:
    """What the network reads. A matrix is for one problem alone."""
    far = problems[0].distance
    matrix = None if far is None else far / problems[0].side()
    inputs = static_inputs(problems, np.stack([plane(problem) for problem in problems]), "cpu", matrix)
    return inputs.showing(solved(problems)[2] if view is None else view)


def four(**fields: Any) -> Problem:
    """Four customers in two routes' worth of demand; the box is 10 wide and 20 high."""
    return Problem(
        **{
            "coordinates": [[0, 0], [10, 0], [10, 20], [4, 12], [0, 20]],
            "demand": [0, 1, 2, 3, 4],
            "capacity": 5,
            **fields,
        }
    )


# --- the paper's formulas, node by node, in float64 ---------------------------------------------------


class Slow:
    """Section 4.3 of the paper. Everything is a loop over nodes; nothing is shared with the network but its weights."""

    def __init__(self, network: Network) -> None:
        self.config = network.config
        self.weights = {name: value.double().numpy().copy() for name, value in network.state_dict().items()}

    def linear(self, name: str, x: np.ndarray) -> np.ndarray:
        return self.weights[f"{name}.weight"] @ x + self.weights.get(f"{name}.bias", 0.0)

    def forward_part(self, name: str, x: np.ndarray) -> np.ndarray:
        return self.linear(f"{name}.2", np.maximum(self.linear(f"{name}.0", x), 0.0))

    def norm(self, name: str, rows: list[np.ndarray]) -> list[np.ndarray]:
        """Instance normalisation: every channel by itself, over the nodes of the instance."""
        table = np.array(rows)
        for channel in range(table.shape[1]):
            column = table[:, channel]
            centred = column - sum(column) / len(column)
            variance = sum(centred**2) / len(column)
            scaled = centred / math.sqrt(variance + 1e-5)
            table[:, channel] = scaled * self.weights[f"{name}.weight"][channel] + self.weights[f"{name}.bias"][channel]
        return list(table)

    def attend(self, query: np.ndarray, keys: list[np.ndarray], values: list[np.ndarray]) -> np.ndarray:
        """Multi-head attention of one query (Vaswani et al. 2017)."""
        size = self.config.width // self.config.heads
        heard = []
        for head in range(self.config.heads):
            part = slice(head * size, (head + 1) * size)
            scores = np.array([query[part] @ key[part] / math.sqrt(size) for key in keys])
            shares = np.exp(scores - scores.max())
            shares /= shares.sum()
            heard.append(sum(share * value[part] for share, value in zip(shares, values, strict=True)))
        return np.concatenate(heard)

    def attention(self, name: str, h: list[np.ndarray]) -> list[np.ndarray]:
        projected = [np.split(self.linear(f"{name}.project", x), 3) for x in h]
        keys, values = [p[1] for p in projected], [p[2] for p in projected]
        heard = [self.linear(f"{name}.combine", self.attend(p[0], keys, values)) for p in projected]
        h = self.norm(f"{name}.norm", [x + y for x, y in zip(h, heard, strict=True)])
        return self.norm(f"{name}.norm_after", [x + self.forward_part(f"{name}.feed_forward", x) for x in h])

    def pass_messages(self, h: list[np.ndarray], previous: np.ndarray, following: np.ndarray) -> list[np.ndarray]:
        rows = []
        for i, x in enumerate(h):
            message = self.linear("message_passing.from_previous", h[previous[i]])
            message = message + self.linear("message_passing.from_next", h[following[i]])
            merged = np.maximum(self.linear("message_passing.merge", np.concatenate([x, message])), 0.0)
            rows.append(x + self.forward_part("message_passing.feed_forward", merged))
        return self.norm("message_passing.norm", rows)

    def encode_tours(self, h: list[np.ndarray], route: np.ndarray) -> list[np.ndarray]:
        rows = []
        for i, x in enumerate(h):
            tour = np.zeros_like(x)
            if route[i] >= 0:
                members = [h[j] for j in range(1, len(h)) if route[j] == route[i]]
                tour = sum(members) / (len(members) if self.config.tour_aggregate == "mean" else 1)
            merged = np.maximum(self.linear("tour_encoding.merge", np.concatenate([x, tour])), 0.0)
            rows.append(x + self.forward_part("tour_encoding.feed_forward", merged))
        return self.norm("tour_encoding.norm", rows)

    def encode(self, nodes: np.ndarray, previous: np.ndarray, following: np.ndarray, route: np.ndarray) -> Any:
        config = self.config
        h = [self.linear("embed_depot" if i == 0 else "embed_customer", x) for i, x in enumerate(nodes)]
        for i in range(config.layers_before):
            h = self.attention(f"before.{i}", h)
        if config.tour_first and config.tour_encoding:
            h = self.encode_tours(h, route)
        if config.message_passing:
            h = self.pass_messages(h, previous, following)
        if not config.tour_first and config.tour_encoding:
            h = self.encode_tours(h, route)
        for i in range(config.layers_after):
            h = self.attention(f"after.{i}", h)
        return h

    def gru(self, x: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        of_input, of_hidden = np.split(self.linear("gru_input", x), 3), np.split(self.linear("gru_hidden", hidden), 3)
        reset, update = (1.0 / (1.0 + np.exp(-of_input[i] - of_hidden[i])) for i in (0, 1))
        new = np.tanh(of_input[2] + reset * of_hidden[2])
        return (1.0 - update) * new + update * hidden

    def log_probability(
        self, nodes: np.ndarray, view: tuple[np.ndarray, ...], removed: list[int], seed: np.ndarray,
        matrix: np.ndarray | None = None,
    ) -> float:  # fmt: skip
        """Of one rollout on one instance with its solution."""
        config, route = self.config, view[2]
        h = self.encode(nodes, *view)
        everybody = range(1, len(h))
        hidden, total = np.zeros(config.width), 0.0
        for m, chosen in enumerate(removed):
            hidden = self.gru(h[removed[m - 1]] if m else self.weights["start"], hidden)
            free = [j for j in everybody if j not in removed[:m]]
            pairs = [np.split(self.linear("remember", h[j]), 2) for j in free]
            heard = self.attend(self.linear("query", hidden), [p[0] for p in pairs], [p[1] for p in pairs])
            glimpse = self.linear("combine", heard)
            residual = np.maximum(self.linear("seed_in", np.concatenate([glimpse, seed])), 0.0)
            glimpse = glimpse + self.linear("seed_out", residual)
            logits = []
            for j in free:
                logit = config.clip * math.tanh(glimpse @ h[j] / math.sqrt(config.width))
                if config.distance_term and m:
                    last = removed[m - 1]
                    away = math.dist(nodes[last, :2], nodes[j, :2]) if matrix is None else matrix[last, j]
                    together = route[last] >= 0 and route[last] == route[j]
                    logit += -self.weights["beta"] * away * math.sqrt(len(everybody))
                    logit += self.weights["gamma"] * together
                logits.append(logit)
            top = max(logits)
            total += logits[free.index(chosen)] - top - math.log(sum(math.exp(logit - top) for logit in logits))
        return float(total)

    def all_of(self, inputs: Inputs, removed: torch.Tensor, seeds: torch.Tensor) -> np.ndarray:
        """(B, R), as the network gives it."""
        matrix = None if inputs.matrix is None else inputs.matrix.double().numpy()
        view = [part.numpy() for part in (inputs.previous, inputs.next, inputs.route)]
        return np.array(
            [
                [
                    self.log_probability(
                        inputs.nodes[b].double().numpy(), tuple(part[b] for part in view),
                        removed[b, r].tolist(), seeds[b, r].double().numpy(), matrix,
                    )
                    for r in range(removed.shape[1])
                ]
                for b in range(len(removed))
            ]
        )  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_as_the_formulas_say(form: str) -> None:
    config = FORMS[form]
    network = strong(config)
    problems = [random_problem(seed, "pcvrptw", "none", customers=7, layout="uniform") for seed in (0, 1)]
    inputs = shown(problems)
    numbers = RandomNumbers.from_generator(np.random.default_rng(0), 2, 4, 5, config.seed_bits)
    rollouts = sample(network, inputs, numbers)
    assert rollouts is not None
    with torch.no_grad():
        fast = network(inputs, rollouts.removed, numbers.seeds).numpy()
    slow = Slow(network).all_of(inputs, rollouts.removed, numbers.seeds)
    assert np.ptp(slow) > 0.5, "the rollouts are not all alike"
    assert np.allclose(fast, slow, rtol=0, atol=2e-4)
    assert np.allclose(rollouts.log_probability.numpy(), slow, rtol=0, atol=2e-4)


def test_as_the_formulas_say_with_a_matrix() -> None:
    network = strong(FORMS["default"])
    problem = random_problem(3, "cvrp", "asymmetric", customers=6, layout="uniform")
    inputs = shown([problem])
    numbers = RandomNumbers.from_generator(np.random.default_rng(0), 1, 6, 4, 4)
    rollouts = sample(network, inputs, numbers)
    assert rollouts is not None
    slow = Slow(network).all_of(inputs, rollouts.removed, numbers.seeds)
    with torch.no_grad():
        assert np.allclose(network(inputs, rollouts.removed, numbers.seeds).numpy(), slow, rtol=0, atol=2e-4)


def test_forms_differ() -> None:
    """Every switch changes the probabilities: none is a dead letter."""
    inputs = shown([random_problem(0, "pcvrptw", "none", customers=7, layout="uniform")])
    removed, seeds = torch.tensor([[[3, 1, 5]]]), torch.ones(1, 1, 4)
    base = NetworkConfig(**SMALL)
    weights = strong(base).state_dict()
    found = []
    for changes in (
        {}, {"message_passing": False}, {"tour_encoding": False}, {"tour_first": True}, {"tour_aggregate": "sum"},
        {"distance_term": False}, {"clip": 3.0},
    ):  # fmt: skip
        network = Network(replace(base, **changes))
        network.load_state_dict(weights, strict=False)
        with torch.no_grad():
            found.append(round(float(network(inputs, removed, seeds)), 3))
    assert len(set(found)) == len(found)


def test_gru_is_that_of_torch() -> None:
    network = strong(FORMS["default"])
    cell = torch.nn.GRUCell(12, 12)
    cell.load_state_dict(
        {
            "weight_ih": network.gru_input.weight, "bias_ih": network.gru_input.bias,
            "weight_hh": network.gru_hidden.weight, "bias_hh": network.gru_hidden.bias,
        }
    )  # fmt: skip
    x, hidden = torch.randn(2, 5, 3, 12, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        ours = network.gru_step(network.gru_input(x), hidden)
        theirs = cell(x.flatten(0, 1), hidden.flatten(0, 1)).view_as(x)
    assert torch.allclose(ours, theirs, rtol=0, atol=1e-6)


# --- sampling and teacher forcing ----------------------------------------------------------------------


@pytest.mark.parametrize("term", [True, False], ids=["distance term", "plain"])
@pytest.mark.parametrize(("customers", "removals"), [(17, 6), (8, 8), (2, 2), (2, 1), (1, 1)])
@pytest.mark.parametrize("variant", VARIANTS)
def test_sampling_and_teacher_forcing_agree(variant: str, customers: int, removals: int, term: bool) -> None:
    config = NetworkConfig(**SMALL | {"distance_term": term, "beta": 2.0})
    network = strong(config)
    problems = [random_problem(seed, variant, "none", customers=customers, layout="uniform") for seed in range(3)]
    inputs = shown(problems)
    if variant.startswith("p") and customers == 17:
        assert bool((inputs.route[:, 1:] < 0).any()), "some are not served"
    numbers = RandomNumbers.from_generator(np.random.default_rng(1), 3, 20, removals, 4)
    rollouts = sample(network, inputs, numbers)
    assert rollouts is not None
    with torch.no_grad():
        forced = network(inputs, rollouts.removed, numbers.seeds)
    assert torch.isfinite(forced).all()
    assert torch.allclose(rollouts.log_probability, forced, rtol=0, atol=1e-4)
    if customers == 1:
        assert torch.equal(forced, torch.zeros(3, 20)), "there is nothing to choose"


def test_teacher_forcing_takes_any_rollout() -> None:
    """Summed over all rollouts of two out of four customers, probabilities are 1."""
    network = strong(FORMS["default"])
    pairs = [[a, b] for a in range(1, 5) for b in range(1, 5) if a != b]
    inputs = shown([four()])
    seeds = torch.tensor([0.0, 1.0, 1.0, 0.0]).expand(1, len(pairs), 4)
    with torch.no_grad():
        chances = network(inputs, torch.tensor([pairs]), seeds).exp()
    assert chances.min() > 0
    assert float(chances.sum()) == pytest.approx(1.0, abs=1e-5)


def test_the_order_of_selection_counts() -> None:
    network = strong(FORMS["paper"])
    inputs, seeds = shown([four()]), torch.zeros(1, 2, 4)
    with torch.no_grad():
        there, back = network(inputs, torch.tensor([[[1, 2, 3], [3, 2, 1]]]), seeds)[0].tolist()
    assert abs(there - back) > 1e-3


def test_the_seed_counts() -> None:
    network = strong(FORMS["paper"])
    removed = torch.tensor([[[1, 2], [1, 2]]])
    with torch.no_grad():
        first, second = network(shown([four()]), removed, torch.eye(4)[None, :2])[0].tolist()
    assert abs(first - second) > 1e-3


# --- masks -----------------------------------------------------------------------------------------------


def test_probabilities() -> None:
    """They sum to 1 over the customers still there. The depot has no entry at all."""
    network = strong(FORMS["default"])
    problems = [random_problem(seed, "cvrp", "none", customers=6, layout="uniform") for seed in range(2)]
    memory = network.encode(shown(problems))
    allowed = torch.ones(2, 3, 6, dtype=torch.bool)
    allowed[:, 0, [1, 4]] = False
    allowed[:, 1, :5] = False
    hidden = torch.randn(2, 3, 12, generator=torch.Generator().manual_seed(0))
    last = torch.tensor([[4, 0, -1]]).expand(2, 3)
    with torch.no_grad():
        chances = torch.softmax(network.logits(memory, hidden, torch.zeros(2, 3, 4), allowed, last), dim=-1)
    assert chances.shape == (2, 3, 6)
    assert torch.allclose(chances.sum(-1), torch.ones(2, 3), atol=1e-6)
    assert torch.equal(chances > 0, allowed)
    assert torch.equal(chances[:, 1, 5], torch.ones(2))


def test_what_is_masked_is_not_heard_either() -> None:
    """Attention leaves out the customers selected so far: their keys and values are of no effect."""
    network = strong(FORMS["paper"])
    memory = network.encode(shown([four()]))
    allowed = torch.tensor([[[True, True, False, True]]])
    hidden, seeds = torch.ones(1, 1, 12), torch.zeros(1, 1, 4)

    def logits(keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            changed = memory._replace(keys=keys, values=values)
            return network.logits(changed, hidden, seeds, allowed, None)[allowed]

    other = torch.arange(4)[:, None] == 2
    before = logits(memory.keys, memory.values)
    assert torch.equal(logits(memory.keys + 9.0 * other, memory.values - 5.0 * other), before)
    assert not torch.equal(logits(memory.keys, memory.values - 5.0 * ~other), before)


def test_a_customer_is_selected_once() -> None:
    network = strong(FORMS["default"])
    inputs = shown([random_problem(5, "cvrp", "none", customers=9, layout="uniform")])
    rollouts = sample(network, inputs, RandomNumbers.from_generator(np.random.default_rng(0), 1, 16, 9, 4))
    assert rollouts is not None
    everybody = torch.arange(1, 10).expand(1, 16, 9)
    assert torch.equal(rollouts.removed.sort(dim=-1).values, everybody)


def test_unserved_customers_can_be_selected() -> None:
    """A prize that is not worth the way: nobody drives there, and the customer is to be had all the same."""
    problem = four(prize=[0, 0, 1e-3, 0, 1e-3])
    engine = CpuEngine()
    state = start(engine, [problem], [0], 0, rounds=20)
    view = engine.view(state)
    assert view.route[0, 2] == view.route[0, 4] == -1
    assert view.previous[0, 2] == view.next[0, 2] == 0
    network = strong(FORMS["default"])
    inputs = shown([problem], view)
    rollouts = sample(network, inputs, RandomNumbers.from_generator(np.random.default_rng(0), 1, 200, 1, 4))
    assert rollouts is not None
    assert set(rollouts.removed.flatten().tolist()) == {1, 2, 3, 4}
    with torch.no_grad():
        chances = network(inputs, torch.tensor([[[1], [2], [3], [4]]]), torch.zeros(1, 4, 4)).exp()
    assert float(chances.sum()) == pytest.approx(1.0, abs=1e-5)
    # Two unserved customers are not in one route: gamma does not join them.
    with torch.no_grad():
        network.gamma.zero_()
        without = network(inputs, torch.tensor([[[2, 4]]]), torch.zeros(1, 1, 4))
        network.gamma.fill_(5.0)
        assert torch.equal(network(inputs, torch.tensor([[[2, 4]]]), torch.zeros(1, 1, 4)), without)


# --- the distance term ---------------------------------------------------------------------------------


def term_of(config: NetworkConfig, inputs: Inputs, last: torch.Tensor | None) -> torch.Tensor:
    """What the distance term adds to the logits of one step: those with it less those without."""
    with_it = strong(config)
    without = Network(replace(config, distance_term=False))
    without.load_state_dict(with_it.state_dict(), strict=False)
    batch, customers = inputs.nodes.shape[0], inputs.nodes.shape[1] - 1
    count = 1 if last is None else last.shape[1]
    hidden = torch.full((batch, count, config.width), 0.3)
    seeds, allowed = torch.zeros(batch, count, 4), torch.ones(batch, count, customers, dtype=torch.bool)
    with torch.no_grad():
        return torch.sub(*(net.logits(net.encode(inputs), hidden, seeds, allowed, last) for net in (with_it, without)))


def view_of(routes: list[list[int]], customers: int) -> View:
    """A solution as an engine shows it."""
    previous, following, route = (np.full((1, customers + 1), value, np.int32) for value in (0, 0, -1))
    for number, tour in enumerate(routes):
        for before, node, after in zip([0, *tour], tour, [*tour[1:], 0], strict=False):
            previous[0, node], following[0, node], route[0, node] = before, after, number
    return View(previous, following, route)


def test_view_of() -> None:
    """The view made by hand is the one an engine gives."""
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
    assert term[0, 2].tolist() == [0, 0, 0, 0], "nobody was selected before"
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
    assert float(network.beta.grad) == float(network.gamma.grad) == 0, "the first selection is without it"


def test_untrained_policy_with_the_term_is_a_related_removal() -> None:
    """Design: beta = 2 at the start makes nearby customers go together."""
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


# --- parameters ----------------------------------------------------------------------------------------


def count(config: NetworkConfig) -> int:
    return sum(weight.numel() for weight in Network(config).parameters())


def test_number_of_parameters() -> None:
    # Ten inputs per node, width 128, feed-forward 512.
    linear = lambda inputs, outputs, bias=True: inputs * outputs + bias * outputs  # noqa: E731
    norm, forward = 2 * 128, linear(128, 512) + linear(512, 128)
    embeddings = 2 * linear(10, 128)
    attention = linear(128, 3 * 128, bias=False) + linear(128, 128) + forward + 2 * norm
    messages = 2 * linear(128, 128, bias=False) + linear(256, 128) + forward + norm
    tours = linear(256, 128) + forward + norm
    gru = 128 + 2 * linear(128, 3 * 128)  # and what is fed before the first selection
    pointing = linear(128, 128, bias=False) + linear(128, 256, bias=False) + linear(128, 128)
    seeds = linear(128 + 10, 256) + linear(256, 128)
    default = embeddings + 4 * attention + messages + tours + gru + pointing + seeds + 2
    assert count(NetworkConfig()) == default == 1_390_210
    assert count(NetworkConfig.paper()) == default - 2
    assert count(NetworkConfig(message_passing=False)) == default - messages
    assert count(NetworkConfig(tour_encoding=False)) == default - tours
    assert count(NetworkConfig(tour_first=True, tour_aggregate="sum")) == default
    assert count(NetworkConfig(layers_before=1, layers_after=0)) == default - 3 * attention


def test_defaults_are_the_papers_sizes() -> None:
    paper = NetworkConfig.paper()
    sizes = (paper.width, paper.heads, paper.feed_forward, paper.layers_before, paper.layers_after, paper.seed_bits)
    assert sizes == (128, 8, 512, 2, 2, 10)
    form = (paper.message_passing, paper.tour_encoding, paper.tour_first, paper.tour_aggregate, paper.distance_term)
    assert form == (True, True, False, "mean", False)
    assert (paper.seed_width, paper.clip) == (256, 10.0)
    assert replace(paper, distance_term=True) == NetworkConfig()
    assert NetworkConfig().beta == 2.0
    assert NetworkConfig.paper(width=16, distance_term=True) == NetworkConfig(width=16)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 10, "heads": 4}, "width must be a multiple of heads, got 10 and 4"),
        ({"width": 0}, "width must be between 1 and 4096, got 0"),
        ({"heads": 2.0}, "heads must be a whole number, got 2.0"),
        ({"message_passing": 1}, "message_passing must be True or False, got 1"),
        ({"tour_aggregate": "max"}, "tour_aggregate must be one of mean, sum, got 'max'"),
        ({"seed_bits": 21}, "seed_bits must be between 1 and 20, got 21"),
        ({"clip": math.nan}, "clip must be between 0.001 and 1000, got nan"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_bad_configuration(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(NdsError) as caught:
        NetworkConfig(**changes)
    assert str(caught.value) == message


# --- gradients -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("form", ["default", "authors' code"])
def test_gradient_of_the_loss_by_finite_differences(form: str) -> None:
    """The loss of a step of training, with rewards from the engine: what autograd finds is the slope of the slow one.

    Differences are taken in float64, of the formulas above; two weights of every part, drawn at random.
    """
    tiny = {"width": 6, "heads": 2, "feed_forward": 5, "seed_bits": 2, "seed_width": 3}
    config = replace(FORMS[form], layers_before=1, layers_after=1, **tiny)
    network = strong(config, seed=3)
    problems = generate("cvrp", 7, count=2, seed=5)
    engine, state, view = solved(problems, steps=0)
    inputs = shown(problems, view)
    numbers = RandomNumbers.from_generator(np.random.default_rng(0), 2, 4, 3, 2)
    rollouts = sample(network, inputs, numbers)
    assert rollouts is not None
    removed = rollouts.removed.numpy().astype(np.int32)
    change = engine.evaluate(state, Recipe(removals=3), removed, 4, 0, 0, keep_best=False)
    taught = signal(torch.as_tensor(change), scale=True)
    assert torch.all(taught.advantage > 0)
    rows = torch.arange(2)
    chosen, seeds = rollouts.removed[rows, taught.best, None], numbers.seeds[rows, taught.best, None]
    loss_of(network(inputs, chosen, seeds)[:, 0], taught.advantage).backward()
    slow = Slow(network)

    def loss() -> float:
        return -float(np.mean(taught.advantage.double().numpy() * slow.all_of(inputs, chosen, seeds)[:, 0]))

    random = np.random.default_rng(0)
    found, expected = [], []
    for name, weight in network.named_parameters():
        values, step = slow.weights[name].reshape(-1), 1e-5
        slow.weights[name] = values.reshape(weight.shape)  # a view: what is written below is seen
        for entry in random.choice(values.size, min(2, values.size), replace=False):
            kept, sides = values[entry], []
            for side in (step, -step):
                values[entry] = kept + side
                sides.append(loss())
            values[entry] = kept
            expected.append((sides[0] - sides[1]) / (2 * step))
            found.append(float(weight.grad.reshape(-1)[entry]))
    assert np.linalg.norm(expected) > 0.1
    assert np.count_nonzero(np.abs(expected) > 1e-6) > 0.7 * len(expected)
    assert np.allclose(found, expected, rtol=1e-3, atol=1e-4 * np.linalg.norm(expected))


def test_every_weight_is_learned() -> None:
    network = strong(FORMS["default"])
    inputs = shown([random_problem(0, "pcvrptw", "none", customers=9, layout="uniform") for _ in range(2)])
    removed = torch.tensor([[[3, 1, 5]], [[2, 9, 8]]])
    network(inputs, removed, torch.ones(2, 1, 4)).sum().backward()
    still = [name for name, weight in network.named_parameters() if not weight.grad.abs().max() > 0]
    assert still == []


# --- who is who ----------------------------------------------------------------------------------------


def relabelled(inputs: Inputs, order: list[int]) -> Inputs:
    """Node order[i] becomes node i; the depot stays."""
    new = torch.argsort(torch.tensor(order))
    matrix = None if inputs.matrix is None else inputs.matrix[order][:, order]
    return Inputs(
        inputs.nodes[:, order], matrix, new[inputs.previous[:, order]], new[inputs.next[:, order]],
        inputs.route[:, order],
    )  # fmt: skip


@pytest.mark.parametrize("source", ["none", "asymmetric"])
@pytest.mark.parametrize("form", ["default", "authors' code"])
def test_names_of_customers_do_not_matter(form: str, source: str) -> None:
    network = strong(FORMS[form])
    problem = random_problem(1, "pcvrptw", source, customers=6, layout="uniform")
    inputs = shown([problem])
    order = [0, 4, 1, 6, 2, 5, 3]
    removed = torch.tensor([[[4, 1, 6], [2, 3, 5], [5, 4, 1]]])
    seeds = torch.eye(4)[None, :3]
    with torch.no_grad():
        before = network(inputs, removed, seeds)
        after = network(relabelled(inputs, order), torch.argsort(torch.tensor(order))[removed], seeds)
        mixed_up = network(relabelled(inputs, order), removed, seeds)
    assert torch.allclose(before, after, rtol=0, atol=1e-4)
    assert not torch.allclose(before, mixed_up, rtol=0, atol=1e-2)


def test_names_of_routes_do_not_matter() -> None:
    network = strong(FORMS["default"])
    inputs = shown([four()], view_of([[1, 2], [3], [4]], 4))
    renamed = replace(inputs, route=torch.tensor([[-1, 2, 2, 0, 1]]))
    removed, seeds = torch.tensor([[[4, 1, 2]]]), torch.zeros(1, 1, 4)
    with torch.no_grad():
        assert torch.allclose(network(inputs, removed, seeds), network(renamed, removed, seeds), rtol=0, atol=1e-5)


def test_the_direction_of_a_route_matters() -> None:
    network = strong(FORMS["default"])
    removed, seeds = torch.tensor([[[4, 1, 2]]]), torch.zeros(1, 1, 4)
    with torch.no_grad():
        there = network(shown([four()], view_of([[1, 2, 3], [4]], 4)), removed, seeds)
        back = network(shown([four()], view_of([[3, 2, 1], [4]], 4)), removed, seeds)
    assert abs(float(there - back)) > 1e-4


def test_depot_has_an_embedding_of_its_own() -> None:
    network = strong(FORMS["default"])
    inputs = shown([four()])
    network(inputs, torch.tensor([[[4, 1]]]), torch.zeros(1, 1, 4)).sum().backward()
    # The depot's demand is 0, so that its weight gets no gradient, where that of the customers does.
    assert torch.equal(network.embed_depot.weight.grad[:, 2], torch.zeros(12))
    assert network.embed_customer.weight.grad[:, 2].abs().min() > 0
    assert network.embed_depot.bias.grad.abs().max() > 0
    with torch.no_grad():
        before = network(inputs, torch.tensor([[[4, 1]]]), torch.zeros(1, 1, 4))
        network.embed_depot.load_state_dict(network.embed_customer.state_dict())
        after = network(inputs, torch.tensor([[[4, 1]]]), torch.zeros(1, 1, 4))
    assert abs(float(before - after)) > 1e-3


def test_problems_of_a_batch_do_not_mix() -> None:
    network = strong(FORMS["default"])
    problems = [random_problem(seed, "pcvrp", "none", customers=8, layout="uniform") for seed in range(3)]
    inputs = shown(problems)
    removed, seeds = torch.tensor([[[3, 1, 5]], [[2, 8, 7]], [[6, 5, 4]]]), torch.ones(3, 1, 4)
    with torch.no_grad():
        together = network(inputs, removed, seeds)
        apart = torch.cat([network(inputs.part(b, b + 1), removed[b : b + 1], seeds[b : b + 1]) for b in range(3)])
    assert torch.allclose(together, apart, rtol=0, atol=1e-5)


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
def test_what_a_problem_lacks_is_zero(fields: dict[str, Any], zero: list[int]) -> None:
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


def test_times_of_their_own_unit() -> None:
    """Durations given apart: times are relative to the longest of them over the square root of two."""
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
    assert inputs.route.tolist() == [[-1, 0, 0, 1, 2]], "the first are as they were"
