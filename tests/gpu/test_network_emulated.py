"""Kernels of the network in the emulator, and the layers that use them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gpu.emulated import EmulatedDevice
from gpu.network_cases import SOLUTIONS, Case
from ndsvrp.policy import NetworkConfig, kernels
from ndsvrp.policy.kernels import Kernels

pytestmark = pytest.mark.emulator
SMALL: dict[str, Any] = {"width": 32, "heads": 2, "feed_forward": 40, "seed_bits": 4, "seed_width": 8}
FORMS = {
    "default": NetworkConfig(**SMALL),
    "authors' code": NetworkConfig.paper(tour_first=True, tour_aggregate="sum", tied_neighbours=True, **SMALL),
    "other heads": NetworkConfig(**{**SMALL, "heads": 4}),
    "no layers": NetworkConfig(message_passing=False, tour_encoding=False, layers_before=0, layers_after=0, **SMALL),
}


@pytest.fixture
def case() -> Case:
    return Case(Kernels(EmulatedDevice()), "cpu")


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "read twice"])
@pytest.mark.parametrize(
    ("batch", "nodes", "width", "skip"), [(1, 1, 32, 0), (2, 7, 64, 1), (1, 33, 96, 0), (1, 501, 32, 1)]
)
def test_norm(
    case: Case, monkeypatch: pytest.MonkeyPatch, batch: int, nodes: int, width: int, skip: int, kept: bool
) -> None:
    monkeypatch.setattr(kernels, "MAX_KEPT_BYTES", 100_000 if kept else 0)
    case.norm(batch, nodes, width, skip)


@pytest.mark.parametrize("nodes", [515, 770])
def test_devices_with_less_shared_memory(nodes: int) -> None:
    """99 KiB: rows that do not fit beside the sums are read twice, from 766 nodes on, backward from 511."""
    Case(Kernels(EmulatedDevice(shared_limit=101_376)), "cpu").norm(1, nodes, 32, 0)


def test_supported_nodes() -> None:
    assert Kernels(EmulatedDevice()).supports_nodes(20_001) and not Kernels(EmulatedDevice()).supports_nodes(30_001)
    assert not Kernels(EmulatedDevice(shared_limit=101_376)).supports_nodes(12_300)


@pytest.mark.parametrize(("rows", "width"), [(1, 8), (7, 40), (33, 512), (900, 32)])
def test_relu(case: Case, rows: int, width: int) -> None:
    case.relu(rows, width)


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "read twice"])
@pytest.mark.parametrize("kind", SOLUTIONS)
@pytest.mark.parametrize(("batch", "nodes", "width"), [(1, 1, 32), (2, 7, 64), (1, 33, 32), (1, 501, 32)])
def test_message(
    case: Case, monkeypatch: pytest.MonkeyPatch, batch: int, nodes: int, width: int, kind: str, kept: bool
) -> None:
    monkeypatch.setattr(kernels, "MAX_KEPT_BYTES", 100_000 if kept else 0)
    case.message(batch, nodes, width, kind)


@pytest.mark.parametrize("mean", [True, False], ids=["mean", "sum"])
@pytest.mark.parametrize("kind", SOLUTIONS)
@pytest.mark.parametrize(("batch", "nodes", "width"), [(1, 1, 32), (2, 7, 64), (1, 33, 32), (1, 501, 32)])
def test_tour(case: Case, batch: int, nodes: int, width: int, kind: str, mean: bool) -> None:
    case.tour(batch, nodes, width, kind, mean)


@pytest.mark.parametrize(
    ("batch", "nodes", "heads", "spread"), [(1, 1, 2, 1.0), (2, 7, 2, 4.0), (1, 33, 3, 1.0), (1, 150, 1, 2.0)]
)
def test_attention(case: Case, batch: int, nodes: int, heads: int, spread: float) -> None:
    case.attention(batch, nodes, heads, spread)


@pytest.mark.parametrize("spread", [1.0, 12.0], ids=["near", "beyond float32"])
@pytest.mark.parametrize(("batch", "nodes", "heads"), [(1, 63, 1), (2, 65, 2), (1, 300, 2)])
def test_attention_in_parts(
    case: Case, monkeypatch: pytest.MonkeyPatch, batch: int, nodes: int, heads: int, spread: float
) -> None:
    """Nodes that do not fit into shared memory at once, and exponentials beyond float32."""
    monkeypatch.setattr(kernels, "STAGED_NODES", 64)
    case.attention(batch, nodes, heads, spread, gradient=False)


@pytest.mark.parametrize(("steps", "rows", "width"), [(1, 1, 32), (5, 9, 64)])
def test_gru(case: Case, steps: int, rows: int, width: int) -> None:
    case.gru(steps, rows, width)


# --- the network -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_network(case: Case, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """Embeddings, probabilities and gradients are about as close to float32 as torch in bfloat16 is."""
    network, inputs = case.network(FORMS[form]), case.inputs(3, 20)
    removed = torch.stack([torch.randperm(19, generator=case.random)[:10].view(2, 5) + 1 for _ in range(3)])
    seeds = torch.randint(2, (3, 2, 4), generator=case.random).float()
    exact, plain = (case.results(network, inputs, removed, seeds, low=low) for low in (False, True))
    monkeypatch.setattr(kernels, "kernels_for", lambda device: case.kernels)
    ours = case.results(network, inputs, removed, seeds, low=True)
    assert any(name == "gru_forward" for name, _, _ in case.kernels.device.launched)
    case.compare(exact, plain, ours)
