"""Kernels of the network on a GPU against plain formulas, and the network that uses them."""

from __future__ import annotations

import pytest
import torch

from gpu.network_cases import SOLUTIONS, Case
from ndsvrp.policy import NetworkConfig, kernels
from ndsvrp.policy.graphs import GraphCache, low_precision
from ndsvrp.policy.inputs import Inputs

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"),
]
FORMS = {
    "default": NetworkConfig(),
    "authors' code": NetworkConfig.paper(tour_first=True, tour_aggregate="sum", tied_neighbours=True),
    "other heads": NetworkConfig(width=64, heads=2, feed_forward=72),
    "no layers": NetworkConfig(message_passing=False, tour_encoding=False, layers_before=0, layers_after=0),
}


@pytest.fixture
def case() -> Case:
    found = kernels.kernels_for(torch.device("cuda"))
    assert found is not None
    return Case(found, "cuda")


@pytest.mark.parametrize("nodes", [1, 7, 33, 501, 1001, 2001, 10_001])
def test_kernels(case: Case, nodes: int) -> None:
    """Small and large sizes: rows kept in shared memory, and rows read twice."""
    batch = 3 if nodes < 5000 else 1
    for skip in (0, 1) if nodes > 1 else (0,):
        case.norm(batch, nodes, 128, skip)
    for kind in SOLUTIONS:
        case.message(batch, nodes, 64, kind)
        for mean in (True, False) if nodes < 5000 else ():  # the plain formula takes (B, N, N)
            case.tour(batch, nodes, 64, kind, mean)
    case.relu(batch * nodes, 512)
    if nodes < 5000:
        for spread in (1.0, 3.0, 12.0):
            gradient = nodes <= kernels.MAX_GRADIENT_NODES and spread < 10.0
            case.attention(batch, nodes, 8, spread, gradient=gradient)


def test_gru(case: Case) -> None:
    case.gru(15, 256, 128)


def rollouts(case: Case, batch: int, nodes: int, count: int, steps: int, bits: int) -> tuple[torch.Tensor, ...]:
    order = torch.rand(batch, count, nodes - 1, generator=case.random).argsort(dim=-1)
    seeds = torch.randint(2, (batch, count, bits), generator=case.random).float()
    return (order[..., :steps] + 1).cuda(), seeds.cuda()


@pytest.mark.parametrize("nodes", [12, 101, 501, 1601])
@pytest.mark.parametrize("form", FORMS)
def test_network(case: Case, monkeypatch: pytest.MonkeyPatch, form: str, nodes: int) -> None:
    network, inputs = case.network(FORMS[form]), case.inputs(8, nodes)
    removed, seeds = rollouts(case, 8, nodes, 2, 10, network.config.seed_bits)
    ours = case.results(network, inputs, removed, seeds, low=True)
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "kernels_for", lambda device: None)
        exact, plain = (case.results(network, inputs, removed, seeds, low=low) for low in (False, True))
    case.compare(exact, plain, ours)


def test_same_bits(case: Case) -> None:
    """The encoder is deterministic: the same inputs give the same bits of embeddings and gradients."""
    network, inputs = case.network(NetworkConfig()), case.inputs(32, 501)
    gradient = case.normal(32, 500, network.config.width)
    found = []
    for _ in range(2):
        network.zero_grad()
        with low_precision(torch.device("cuda")):
            with torch.no_grad():
                memory = network.encode(inputs)
            h = network.embed(inputs)
        h.backward(gradient)
        slopes = [weight.grad for weight in network.parameters() if weight.grad is not None]
        found.append([*memory[:4], *slopes])
    assert len(found[0]) > 60
    for once, twice in zip(*found, strict=True):
        assert torch.equal(once, twice)


def test_captured(case: Case) -> None:
    """A replayed graph reads current weights and inputs."""
    network = case.network(NetworkConfig())
    first, second = case.inputs(4, 60), case.inputs(4, 60, "one")

    def encode(*parts: torch.Tensor) -> torch.Tensor:
        with torch.no_grad(), low_precision(torch.device("cuda")):
            return network.encode(Inputs.of_tensors(*parts)).gates

    captured = GraphCache(encode)
    for inputs in (first, second):
        assert torch.equal(captured(*inputs.tensors()), encode(*inputs.tensors()))
    with torch.no_grad():
        for weight in network.parameters():
            weight *= 1.1
    assert torch.equal(captured(*first.tensors()), encode(*first.tensors()))
