"""Selections on a GPU in one kernel (native/cuda/decode.cu): what `rollout.sample` does in plain operations.

Probabilities are the same to bfloat16; selections are drawn otherwise, so that the same random numbers give others.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from ndsvrp.policy.config import NetworkConfig
from ndsvrp.policy.inputs import Inputs
from ndsvrp.policy.network import Network

TILE = 16  # rows and columns of the matrices that a warp multiplies
SPAN = 64  # kSpan of decode.cu
WARPS = 8  # of a block; 16 rollouts each
STAGED = 256 * 64  # bytes: keys and values of kChunk nodes in attend.cu
LOG2_E = 1.0 / math.log(2.0)


class FusedDecoder:
    """The decoder of a network in one kernel, weights read anew at each call."""

    def __init__(self, network: Network, device: Any) -> None:
        self.network, self.device = network, device

    def __call__(self, inputs: Inputs, seeds: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        """As `rollout.sample`, for random numbers as in `Draws`: (B, K, M) int64 customers from 1 on, and (B, K)
        log-probabilities."""
        network = self.network
        h = network.embed(inputs).to(torch.bfloat16).contiguous()
        batch, customers, width = h.shape
        _, rollouts, removals = uniforms.shape
        groups = SPAN // TILE * -(-customers // SPAN)
        packed = h.new_empty((3, batch * groups + SPAN // TILE, width // TILE, 32, 8))  # a span more, to fetch ahead
        macros = self._macros(inputs.matrix is not None)
        self.device.launch(
            self.device.kernel("decode", "pack_customers", macros), batch * groups, 2 * width, 0,
            h, network.remember(h).to(torch.bfloat16), np.int32(customers), np.int32(groups), *packed,
        )  # fmt: skip

        removed = torch.empty((batch, rollouts, removals), dtype=torch.int64, device=h.device)
        log_probability = torch.empty((batch, rollouts), dtype=torch.float32, device=h.device)
        warps, parts, shared = self._shape(customers, rollouts)
        matrix = None if inputs.matrix is None else inputs.matrix[1:, 1:].contiguous()
        self.device.launch(
            self.device.kernel("decode", "decode", macros), batch * parts, 32 * warps, shared,
            *packed, network.gru_input(h).to(torch.bfloat16), network.gru_input(network.start).to(torch.bfloat16),
            *self._weights(), self._terms(customers), places(inputs, TILE * groups), matrix, seeds.contiguous(),
            uniforms.contiguous(), np.int32(customers), np.int32(rollouts), np.int32(removals), np.int32(parts),
            removed, log_probability,
        )  # fmt: skip
        return removed, log_probability

    def fits(self, customers: int) -> bool:
        """Whether the kernel can do it: widths in tiles, and what is taken of an instance in shared memory."""
        return covers(self.network.config) and self._bytes(customers) <= self.device.shared_limit

    def _shape(self, customers: int, rollouts: int) -> tuple[int, int, int]:
        """Warps of a block, blocks per instance, bytes of shared memory."""
        most = min(WARPS, self.device.shared_limit // self._bytes(customers))
        needed = -(-rollouts // TILE)
        parts = -(-needed // most)
        warps = -(-needed // parts)
        return warps, parts, warps * self._bytes(customers)

    def _bytes(self, customers: int) -> int:
        """Shared memory of a warp: hidden states and scratch, and a bit per rollout and customer."""
        config = self.network.config
        tiles = config.width // TILE + max(config.width, config.seed_width) // TILE
        return 512 * tiles + 64 * (2 * -(-customers // SPAN) + 2)

    def _macros(self, by_matrix: bool) -> tuple[tuple[str, str], ...]:
        config = self.network.config
        return (
            ("NDS_WIDTH", str(config.width)), ("NDS_SEED_WIDTH", str(config.seed_width)),
            ("NDS_SEED_BITS", str(config.seed_bits)), ("NDS_CLIP", f"{float(config.clip)!r}f"),
            ("NDS_DISTANCE_TERM", str(int(config.distance_term))), ("NDS_MATRIX", str(int(by_matrix))),
            ("NDS_THREADS", str(32 * WARPS)),
        )  # fmt: skip

    def _weights(self) -> list[Tensor]:
        """Layers in the order of the kernel's arguments: weights in tiles, biases in float32."""
        n = self.network
        room = TILE - n.config.seed_bits  # the seed's bits fill one tile
        return [
            right_side(n.gru_hidden.weight), n.gru_hidden.bias, right_side(n.query.weight),
            right_side(n.combine.weight), n.combine.bias, right_side(F.pad(n.seed_in.weight, (0, room))),
            n.seed_in.bias, right_side(n.seed_out.weight), n.seed_out.bias,
        ]  # fmt: skip

    def _terms(self, customers: int) -> Tensor:
        """Of distance and of the same route, in units of log 2."""
        network = self.network
        if not network.config.distance_term:
            return network.start.new_zeros(2)
        return torch.stack([network.beta * math.sqrt(customers), network.gamma]) * LOG2_E


def attend(device: Any, projected: Tensor) -> Tensor:
    """(B, N, D): self-attention of queries, keys and values (B, N, 3 D), bfloat16, heads of 16; no gradient."""
    batch, nodes, width = projected.shape[0], projected.shape[1], projected.shape[2] // 3
    parts = -(-nodes // (32 * WARPS))
    warps = -(-nodes // (32 * parts))
    heard = projected.new_empty((batch, nodes, width))
    kernel = device.kernel("attend", "attend", (("NDS_WIDTH", str(width)), ("NDS_THREADS", str(32 * WARPS))))
    grid = batch * (width // TILE) * parts
    device.launch(kernel, grid, 32 * warps, STAGED, projected.contiguous(), np.int32(nodes), np.int32(parts), heard)
    return heard


def covers(config: NetworkConfig) -> bool:
    """Whether the kernel is written for such a network."""
    in_tiles = config.width % TILE == 0 and config.seed_width % TILE == 0
    return in_tiles and config.width == TILE * config.heads and config.seed_bits <= TILE and config.width <= 512


def places(inputs: Inputs, padded: int) -> Tensor:
    """(B, padded, 4) float32 of customers: struct Place of decode.cu."""
    known = torch.cat([inputs.coordinates[:, 1:], inputs.route[:, 1:, None].to(inputs.nodes.dtype)], dim=-1)
    return F.pad(known, (0, 1, 0, padded - known.shape[1]))


def right_side(weight: Tensor) -> Tensor:
    """The weight (out, in) of a layer as the kernel's lanes read it: struct Right of mma.hpp, tile by tile."""
    out, inputs = weight.shape
    tiles = weight.to(torch.bfloat16).view(out // TILE, 2, 8, inputs // TILE, 2, 4, 2)
    return tiles.permute(0, 3, 2, 5, 1, 4, 6).contiguous()
