"""Time the network on a GPU, with our kernels and with torch operations, and each kernel.

    python tools/time_network.py [NODES] [--change FILE OLD NEW]...

With a change, kernels are compiled from sources in which NEW replaces OLD, to compare variants:
`--change decoder_attention.hpp "kPolynomialOf8 = 2" "kPolynomialOf8 = 1"`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1] / name) for name in ("tests", "src")]

from gpu.network_cases import Case, solution
from ndsvrp.engine import device as compiling
from ndsvrp.policy import NetworkConfig, fused_decoder, kernels
from ndsvrp.policy.graphs import low_precision
from ndsvrp.policy.random_numbers import RandomNumbers

WIDTH, HEADS, HIDDEN = 128, 8, 512


def microseconds(function: Callable[[], Any], times: int = 10) -> float:
    """Return the time of one call, from several calls in a CUDA graph."""
    side: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(side):
        for _ in range(3):
            function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(times):
            function()
    graph.replay()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    begin.record()
    for _ in range(5):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1000 / (5 * times)


def time_kernels(case: Case, batch: int, nodes: int) -> None:
    ours = case.kernels
    x, y, g = (case.normal(batch, nodes, WIDTH) for _ in range(3))
    weight, bias = case.normal(WIDTH, low=False), case.normal(WIDTH, low=False)
    three, two = case.normal(batch, nodes, 3 * WIDTH), case.normal(batch, nodes, 2 * WIDTH)
    hidden, other = case.normal(batch * nodes, HIDDEN), case.normal(batch * nodes, HIDDEN)
    steps = solution(batch, nodes, "routes", "cuda")
    out, statistics = ours.norm(x, y, weight, bias)
    attended, log_sums = ours.attention(three, HEADS)
    heads = three.view(batch, nodes, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
    timed: dict[str, tuple[Callable[[], Any], int]] = {  # passes over (B, N, D)
        "norm": (lambda: ours.norm(x, y, weight, bias), 3),
        "norm backward": (lambda: ours.norm_backward(g, x, y, weight, statistics), 4),
        "message": (lambda: ours.message(three, bias, *steps[:2]), 4),
        "message backward": (lambda: ours.message_backward(g, out, *steps[:2]), 5),
        "tour": (lambda: ours.tour(two, bias, steps, mean=True), 3),
        "tour backward": (lambda: ours.tour_backward(g, out, steps, mean=True), 4),
        "relu backward": (lambda: ours.relu_backward(hidden, other), 12),
        "attention": (lambda: ours.attention(three, HEADS), 4),
        "attention backward": (lambda: ours.attention_backward(g, three, attended, log_sums, HEADS), 8),
        "attention of torch": (lambda: F.scaled_dot_product_attention(*heads), 4),
    }
    if not ours.supports_attention(nodes, WIDTH, HEADS, gradient=True):
        del timed["attention backward"]
    for name, (function, passes) in timed.items():
        took = microseconds(function)
        rate = passes * x.numel() * 2 / took / 1e6
        print(f"{batch:4} x {nodes:5}  {name:20} {took:8.1f} us  {rate:5.2f} TB/s", flush=True)


def time_network(case: Case, nodes: int) -> None:
    network = case.network(NetworkConfig())
    for weight in network.parameters():
        weight.grad = torch.zeros_like(weight)
    device = torch.device("cuda")

    def encode() -> None:
        with torch.no_grad(), low_precision(device):
            network.encode(inputs)

    def gradient() -> None:
        with low_precision(device):
            chances = network(inputs, removed, seeds)
        chances.sum().backward()  # type: ignore[no-untyped-call]

    ours = kernels.kernels_for
    for name in ("ours", "plain"):
        kernels.kernels_for = ours if name == "ours" else lambda device: None  # type: ignore[assignment]
        inputs = case.inputs(128, nodes)
        print(f" 128 x {nodes:5}  encode, {name:12} {microseconds(encode, 3):8.1f} us", flush=True)
        inputs = case.inputs(256, nodes)
        removed = torch.rand(256, 1, nodes - 1).argsort(dim=-1)[..., :15].cuda() + 1
        seeds = torch.randint(2, (256, 1, network.config.seed_bits)).float().cuda()
        print(f" 256 x {nodes:5}  gradient, {name:10} {microseconds(gradient, 1):8.1f} us", flush=True)
    kernels.kernels_for = ours


def time_selections(case: Case, nodes: int) -> None:
    """Time rollouts, with and without the encoder, by row tiles of a warp."""
    network, device = case.network(NetworkConfig()), torch.device("cuda")
    for batch, rollouts in ((128, 200), (256, 128)):
        inputs = case.inputs(batch, nodes)
        numbers = RandomNumbers.from_generator(
            np.random.default_rng(1), batch, rollouts, 15, network.config.seed_bits
        ).to(device)
        for row_tiles in fused_decoder.MAX_WARPS:
            fused_decoder.ROW_TILES = row_tiles
            select = fused_decoder.FusedDecoder(network, case.kernels.device)

            def sample(select: Any = select, inputs: Any = inputs, numbers: Any = numbers) -> None:
                with torch.no_grad(), low_precision(device):
                    select(inputs, *numbers)

            def embed(inputs: Any = inputs) -> None:
                with torch.no_grad(), low_precision(device):
                    network.embed(inputs)

            both, first = microseconds(sample, 3), microseconds(embed, 3)
            name = f"{rollouts} rollouts, {row_tiles} row tiles"
            print(f"{batch:4} x {nodes:5}  {name:20} {both:8.1f} us, without encoder {both - first:8.1f}")


def changed(changes: Sequence[Sequence[str]], folder: Path) -> Path:
    """Return a copy of the kernels' folder in which NEW replaces OLD in each FILE."""
    copy = shutil.copytree(compiling.sources()[1], folder / "cuda")
    for file, old, new in changes:
        text = (copy / file).read_text() if (copy / file).is_file() else ""
        if old not in text:
            sys.exit(f"{file}: there is no '{old}'")
        (copy / file).write_text(text.replace(old, new))
    return copy


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", type=int, nargs="?", default=501)
    parser.add_argument("--change", nargs=3, action="append", default=[], metavar=("FILE", "OLD", "NEW"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if asked.change:
            include, copy = compiling.sources()[0], changed(asked.change, Path(folder))
            compiling.sources = lambda: (include, copy)
        time_all(asked.nodes)


def time_all(nodes: int) -> None:
    found = kernels.kernels_for(torch.device("cuda"))
    assert found is not None
    case = Case(found, "cuda")
    for batch in (128, 256):
        time_kernels(case, batch, nodes)
    time_network(case, nodes)
    time_selections(case, nodes)


if __name__ == "__main__":
    main()
