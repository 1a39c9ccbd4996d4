"""The decoder on a GPU in one kernel (native/cuda/decode.cu): what `rollout.sample` does in torch operations.

Probabilities are the same to bfloat16; selections are drawn otherwise, so that the same random numbers give others.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from ndsvrp.engine.device import Device, Macros
from ndsvrp.policy.config import NetworkConfig
from ndsvrp.policy.inputs import Inputs
from ndsvrp.policy.network import Network

TILE = 16  # rows and columns of the matrices that a warp multiplies
SPAN = 64  # kSpan of decode.cu
SETS = 2  # of 16 rollouts that a warp has, if there are that many
MOST_FOR_SETS = 128  # width of a network of which a lane's registers hold several sets
WARPS = {1: 16, 2: 8}  # of a block at most, by sets: as many as the registers of a multiprocessor are enough for
SEED_AHEAD = 6  # kSeedAhead of decoder_layout.hpp
AHEAD = 16  # tiles that a layer may read beyond its end


class FusedDecoder:
    """The decoder of a network in one kernel, weights read anew at each call."""

    def __init__(self, network: Network, device: Device) -> None:
        self.network, self.device = network, device

    def __call__(self, inputs: Inputs, seeds: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        """Return (B, K, M) int64 customers 1 … N and (B, K) log-probabilities by `RandomNumbers`."""
        h = self.network.embed(inputs).to(torch.bfloat16).contiguous()
        batch, customers, width = h.shape
        _, rollouts, removals = uniforms.shape
        groups = SPAN // TILE * -(-customers // SPAN)
        sets, share, warps, parts = self._shape(batch, customers, rollouts)
        macros = self._macros(inputs.matrix is not None, sets)
        weights, biases, first_gates, making = self._weights()
        made = F.linear(h, making[:-1].view(5 * width, width), making[-1])  # gates, keys and values of customers
        # Keys and values, pointers, and of each a span more, to be read ahead.
        memory = h.new_empty((2 * batch * groups + 2 * SPAN // TILE, width // TILE, 32, 8))
        pointers = h.new_empty((batch * groups + SPAN // TILE, width // TILE, 32, 8))
        places = torch.empty((batch, groups * TILE, 4), dtype=torch.float32, device=h.device)
        nodes, route = inputs.nodes.contiguous(), inputs.route.contiguous()
        self.device.launch(
            self.device.kernel("decoder_tiles", "tile_customers", self._sizes()), batch * groups, 2 * width, 0,
            h, made, nodes, route, np.int32(customers), np.int32(groups), np.int32(nodes.shape[2]),
            memory, pointers, places,
        )  # fmt: skip

        removed = torch.empty((batch, rollouts, removals), dtype=torch.int64, device=h.device)
        log_probability = torch.empty((batch, rollouts), dtype=torch.float32, device=h.device)
        matrix = None if inputs.matrix is None else inputs.matrix[1:, 1:].contiguous()
        terms = (self.network.beta, self.network.gamma) if self.network.config.distance_term else (None, None)
        shared = share * sets * self._bytes(customers)
        self.device.launch(
            self.device.kernel("decode", "decode", macros), batch * parts, 32 * warps, shared,
            memory, pointers, places, weights, biases, made, first_gates, *terms, matrix, seeds.contiguous(),
            uniforms.contiguous(), np.int32(customers), np.int32(rollouts), np.int32(removals), np.int32(parts),
            np.int32(share), removed, log_probability,
        )  # fmt: skip
        return removed, log_probability

    def fits(self, customers: int) -> bool:
        """Whether the kernel can do it: widths in tiles, and what is taken of an instance in shared memory."""
        return supports(self.network.config) and self._bytes(customers) <= self.device.shared_limit

    def _shape(self, batch: int, customers: int, rollouts: int) -> tuple[int, int, int, int]:
        """Sets of a warp, warps of a block that have some, all its warps, blocks per instance."""
        fit = self.device.shared_limit // self._bytes(customers)
        needed = -(-rollouts // TILE)
        sets = min(SETS if self.network.config.width <= MOST_FOR_SETS else 1, fit, needed)
        needed = -(-needed // sets)
        # As few blocks as can be, or as many as there are multiprocessors for.
        parts = -(-needed // min(WARPS[sets], fit // sets))
        parts = max(parts, min(needed, self.device.multiprocessors // batch))
        share = -(-needed // parts)
        parts = -(-needed // share)
        if batch * parts <= self.device.multiprocessors:
            warps = WARPS[sets]
        else:  # the four parts of a multiprocessor get the same to do
            warps = 4 * -(-share // 4) if share > 2 else share
        return sets, share, warps, parts

    def _bytes(self, customers: int) -> int:
        """Shared memory of 16 rollouts: hidden states and scratch, and a bit per rollout and customer."""
        config = self.network.config
        return 512 * 2 * (config.width // TILE) + 128 * -(-customers // SPAN)

    def _sizes(self) -> Macros:
        """What decoder_tiles.cu and decode.cu both know."""
        config = self.network.config
        return (
            ("NDS_WIDTH", str(config.width)), ("NDS_SEED_WIDTH", str(config.seed_width)),
            ("NDS_SEED_BITS", str(config.seed_bits)),
        )  # fmt: skip

    def _macros(self, by_matrix: bool, sets: int) -> Macros:
        config = self.network.config
        return (
            *self._sizes(), ("NDS_CLIP", f"{float(config.clip)!r}f"),
            ("NDS_DISTANCE_TERM", str(int(config.distance_term))), ("NDS_MATRIX", str(int(by_matrix))),
            ("NDS_SETS", str(sets)), ("NDS_THREADS", str(32 * WARPS[sets])),
        )  # fmt: skip

    def _weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Layers as the kernel reads them: weights in tiles, biases, what the GRU is fed first; and the layer that
        makes gates, keys and values, its biases last."""
        n, (across, hidden) = self.network, (self.network.config.width // TILE, self.network.config.seed_width // TILE)
        tiles = 5 * across**2 + hidden * (-(-(2 * across + 1) // SEED_AHEAD) * SEED_AHEAD)
        weights = n.start.new_empty((tiles + AHEAD, 32, 8), dtype=torch.bfloat16)
        biases = n.start.new_empty((6 * across + hidden + AHEAD, TILE))
        first_gates = n.start.new_empty(3 * n.config.width, dtype=torch.bfloat16)
        making = n.start.new_empty((n.config.width + 1, 5 * n.config.width), dtype=torch.bfloat16)
        self.device.launch(
            self.device.kernel("decoder_tiles", "tile_weights", self._sizes()), -(-tiles // 8), 256, 0,
            n.gru_hidden.weight, n.query.weight, n.combine.weight, n.seed_in.weight, n.seed_out.weight,
            n.gru_hidden.bias, n.combine.bias, n.seed_in.bias, n.seed_out.bias, n.gru_input.weight, n.gru_input.bias,
            n.remember.weight, n.start, weights, biases, first_gates, making,
        )  # fmt: skip
        return weights, biases, first_gates, making


def supports(config: NetworkConfig) -> bool:
    """Whether the kernel is written for such a network."""
    in_tiles = config.width % TILE == 0 and config.seed_width % TILE == 0
    return in_tiles and config.width == TILE * config.heads and config.seed_bits <= TILE and config.width <= 512
