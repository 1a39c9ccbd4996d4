"""The network against a slow one written from the paper's formulas, and properties of its probabilities."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from reference_network import FORMS, SMALL, SlowNetwork, four, shown, solved, strong, view_of

from ndsvrp.engine.base import Recipe
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.errors import NdsError
from ndsvrp.generate import generate
from ndsvrp.policy import Network, NetworkConfig
from ndsvrp.policy.inputs import Inputs
from ndsvrp.policy.random_numbers import RandomNumbers
from ndsvrp.policy.rollout import sample
from ndsvrp.search.start import start
from ndsvrp.train.loss import loss_of, signal
from parity.problems import VARIANTS, random_problem


@pytest.mark.parametrize("form", FORMS)
def test_agrees_with_the_formulas(form: str) -> None:
    config = FORMS[form]
    network = strong(config)
    problems = [random_problem(seed, "pcvrptw", "none", customers=7, layout="uniform") for seed in (0, 1)]
    inputs = shown(problems)
    numbers = RandomNumbers.from_generator(np.random.default_rng(0), 2, 4, 5, config.seed_bits)
    rollouts = sample(network, inputs, numbers)
    assert rollouts is not None
    with torch.no_grad():
        fast = network(inputs, rollouts.removed, numbers.seeds).numpy()
    slow = SlowNetwork(network).all_of(inputs, rollouts.removed, numbers.seeds)
    assert np.ptp(slow) > 0.5, "rollouts differ"
    assert np.allclose(fast, slow, rtol=0, atol=2e-4)
    assert np.allclose(rollouts.log_probability.numpy(), slow, rtol=0, atol=2e-4)


def test_agrees_with_the_formulas_with_a_matrix() -> None:
    network = strong(FORMS["default"])
    problem = random_problem(3, "cvrp", "asymmetric", customers=6, layout="uniform")
    inputs = shown([problem])
    numbers = RandomNumbers.from_generator(np.random.default_rng(0), 1, 6, 4, 4)
    rollouts = sample(network, inputs, numbers)
    assert rollouts is not None
    slow = SlowNetwork(network).all_of(inputs, rollouts.removed, numbers.seeds)
    with torch.no_grad():
        assert np.allclose(network(inputs, rollouts.removed, numbers.seeds).numpy(), slow, rtol=0, atol=2e-4)


def test_forms_differ() -> None:
    """Every switch changes the probabilities."""
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


def test_gru_step_agrees_with_torch() -> None:
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
        assert bool((inputs.route[:, 1:] < 0).any()), "some customers are unserved"
    numbers = RandomNumbers.from_generator(np.random.default_rng(1), 3, 20, removals, 4)
    rollouts = sample(network, inputs, numbers)
    assert rollouts is not None
    with torch.no_grad():
        forced = network(inputs, rollouts.removed, numbers.seeds)
    assert torch.isfinite(forced).all()
    assert torch.allclose(rollouts.log_probability, forced, rtol=0, atol=1e-4)
    if customers == 1:
        assert torch.equal(forced, torch.zeros(3, 20)), "there is one possible selection"


def test_teacher_forcing_takes_any_rollout() -> None:
    """Summed over all rollouts of two out of four customers, probabilities are 1."""
    network = strong(FORMS["default"])
    pairs = [[a, b] for a in range(1, 5) for b in range(1, 5) if a != b]
    inputs = shown([four()])
    seeds = torch.tensor([0.0, 1.0, 1.0, 0.0]).expand(1, len(pairs), 4)
    with torch.no_grad():
        probabilities = network(inputs, torch.tensor([pairs]), seeds).exp()
    assert probabilities.min() > 0
    assert float(probabilities.sum()) == pytest.approx(1.0, abs=1e-5)


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
    """They sum to 1 over the allowed customers. The depot has no entry."""
    network = strong(FORMS["default"])
    problems = [random_problem(seed, "cvrp", "none", customers=6, layout="uniform") for seed in range(2)]
    memory = network.encode(shown(problems))
    allowed = torch.ones(2, 3, 6, dtype=torch.bool)
    allowed[:, 0, [1, 4]] = False
    allowed[:, 1, :5] = False
    hidden = torch.randn(2, 3, 12, generator=torch.Generator().manual_seed(0))
    last = torch.tensor([[4, 0, -1]]).expand(2, 3)
    with torch.no_grad():
        probabilities = torch.softmax(network.logits(memory, hidden, torch.zeros(2, 3, 4), allowed, last), dim=-1)
    assert probabilities.shape == (2, 3, 6)
    assert torch.allclose(probabilities.sum(-1), torch.ones(2, 3), atol=1e-6)
    assert torch.equal(probabilities > 0, allowed)
    assert torch.equal(probabilities[:, 1, 5], torch.ones(2))


def test_attention_ignores_masked_customers() -> None:
    """Keys and values of selected customers have no effect."""
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
    all_customers = torch.arange(1, 10).expand(1, 16, 9)
    assert torch.equal(rollouts.removed.sort(dim=-1).values, all_customers)


def test_unserved_customers_can_be_selected() -> None:
    """A customer that stays unserved because of its low prize can still be selected."""
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
        probabilities = network(inputs, torch.tensor([[[1], [2], [3], [4]]]), torch.zeros(1, 4, 4)).exp()
    assert float(probabilities.sum()) == pytest.approx(1.0, abs=1e-5)
    # Unserved customers share no route: gamma does not apply.
    with torch.no_grad():
        network.gamma.zero_()
        without = network(inputs, torch.tensor([[[2, 4]]]), torch.zeros(1, 1, 4))
        network.gamma.fill_(5.0)
        assert torch.equal(network(inputs, torch.tensor([[[2, 4]]]), torch.zeros(1, 1, 4)), without)


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
    gru = 128 + 2 * linear(128, 3 * 128)  # and the input before the first selection
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
    problems = generate("cvrp", 7, count=2, seed=4)
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
    slow = SlowNetwork(network)

    def loss() -> float:
        return -float(np.mean(taught.advantage.double().numpy() * slow.all_of(inputs, chosen, seeds)[:, 0]))

    random = np.random.default_rng(0)
    found, expected = [], []
    for name, weight in network.named_parameters():
        values, step = slow.weights[name].reshape(-1), 1e-5
        slow.weights[name] = values.reshape(weight.shape)  # a view: writes below change it
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
    """Renumber: node order[i] becomes node i; the depot stays."""
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


def test_depot_and_customers_have_different_embeddings() -> None:
    network = strong(FORMS["default"])
    inputs = shown([four()])
    network(inputs, torch.tensor([[[4, 1]]]), torch.zeros(1, 1, 4)).sum().backward()
    # The demand of the depot is 0: its weight gets no gradient, unlike that of customers.
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
