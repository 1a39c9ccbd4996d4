"""The decoder on a GPU in one kernel (native/cuda/decode.cu): what `rollout.sample` does in torch operations.

Probabilities agree to the precision of bfloat16. The kernel uses uniform numbers in another way, so the same random
numbers select other customers.
"""

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from ndsvrp.engine.device import Device, Macros, macros_of
from ndsvrp.policy.config import NetworkConfig
from ndsvrp.policy.inputs import Inputs
from ndsvrp.policy.network import Network

TILE = 16  # rows and columns of a matrix tile, rollouts of a row tile
CHUNK = 64  # kChunk of decoder_state.hpp
ROW_TILES = 2  # of a warp, if there are enough rollouts
MAX_WIDTH_FOR_TWO = 128  # width of a network up to which the registers of a warp hold two row tiles
MAX_WARPS = {1: 16, 2: 8}  # of a block, by row tiles: what the registers of a multiprocessor hold
SEED_PREFETCH = 6  # kSeedPrefetch of decoder_layout.hpp
PADDING = 16  # tiles after the last one: prefetching reads beyond the end


class FusedDecoder:
    """The decoder of a network in one kernel. Weights are read at each call."""

    def __init__(self, network: Network, device: Device) -> None:
        self.network, self.device = network, device

    def __call__(self, inputs: Inputs, seeds: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        """Return (B, K, M) int64 customers 1 … N and (B, K) log-probabilities by `RandomNumbers`."""
        h = self.network.embed(inputs).to(torch.bfloat16).contiguous()
        batch, customers, width = h.shape
        _, rollouts, removals = uniforms.shape
        groups = CHUNK // TILE * -(-customers // CHUNK)
        row_tiles, share, warps, parts = self._launch_shape(batch, customers, rollouts)
        macros = self._macros(inputs.matrix is not None, row_tiles)
        weights, biases, first_gates, projection = self._weights()
        projected = F.linear(h, projection[:-1].view(5 * width, width), projection[-1])  # gates, keys, values
        # Both are followed by a chunk of padding, which is prefetched.
        key_values = h.new_empty((2 * batch * groups + 2 * CHUNK // TILE, width // TILE, 32, 8))
        pointers = h.new_empty((batch * groups + CHUNK // TILE, width // TILE, 32, 8))
        customer_info = torch.empty((batch, groups * TILE, 4), dtype=torch.float32, device=h.device)
        nodes, route = inputs.nodes.contiguous(), inputs.route.contiguous()
        self.device.launch(
            self.device.kernel("decoder_tiles", "tile_customers", self._sizes()), batch * groups, 2 * width, 0,
            h, projected, nodes, route, np.int32(customers), np.int32(groups), np.int32(nodes.shape[2]),
            key_values, pointers, customer_info,
        )  # fmt: skip

        removed = torch.empty((batch, rollouts, removals), dtype=torch.int64, device=h.device)
        log_probability = torch.empty((batch, rollouts), dtype=torch.float32, device=h.device)
        matrix = None if inputs.matrix is None else inputs.matrix[1:, 1:].contiguous()
        terms = (self.network.beta, self.network.gamma) if self.network.config.distance_term else (None, None)
        shared = share * row_tiles * self._row_tile_bytes(customers)
        self.device.launch(
            self.device.kernel("decode", "decode", macros), batch * parts, 32 * warps, shared,
            key_values, pointers, customer_info, weights, biases, projected, first_gates, *terms, matrix,
            seeds.contiguous(), uniforms.contiguous(), np.int32(customers), np.int32(rollouts), np.int32(removals),
            np.int32(parts), np.int32(share), removed, log_probability,
        )  # fmt: skip
        return removed, log_probability

    def fits(self, customers: int) -> bool:
        """Return whether the kernel supports the network, and a row tile of this size fits into shared memory."""
        return supports(self.network.config) and self._row_tile_bytes(customers) <= self.device.shared_limit

    def _launch_shape(self, batch: int, customers: int, rollouts: int) -> tuple[int, int, int, int]:
        """Return the row tiles of a warp, a block's warps with rollouts, all its warps, and the blocks per instance."""
        fit = self.device.shared_limit // self._row_tile_bytes(customers)
        needed = -(-rollouts // TILE)
        row_tiles = min(ROW_TILES if self.network.config.width <= MAX_WIDTH_FOR_TWO else 1, fit, needed)
        needed = -(-needed // row_tiles)
        # As few blocks as possible, or one for every multiprocessor.
        parts = -(-needed // min(MAX_WARPS[row_tiles], fit // row_tiles))
        parts = max(parts, min(needed, self.device.multiprocessors // batch))
        share = -(-needed // parts)
        parts = -(-needed // share)
        if batch * parts <= self.device.multiprocessors:
            warps = MAX_WARPS[row_tiles]
        else:  # the four partitions of a multiprocessor get equal work
            warps = 4 * -(-share // 4) if share > 2 else share
        return row_tiles, share, warps, parts

    def _row_tile_bytes(self, customers: int) -> int:
        """Return the shared memory of a row tile: hidden states, activations, a bit per rollout and customer."""
        return 512 * 2 * (self.network.config.width // TILE) + 128 * -(-customers // CHUNK)

    def _sizes(self) -> Macros:
        """Return the macros of decoder_layout.hpp."""
        config = self.network.config
        return macros_of(width=config.width, seed_width=config.seed_width, seed_bits=config.seed_bits)

    def _macros(self, by_matrix: bool, row_tiles: int) -> Macros:
        config, threads = self.network.config, 32 * MAX_WARPS[row_tiles]
        numbers = macros_of(
            distance_term=config.distance_term, matrix=by_matrix, row_tiles=row_tiles, threads=threads
        )  # fmt: skip
        return (*self._sizes(), ("NDS_CLIP", f"{float(config.clip)!r}f"), *numbers)

    def _weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return weights and biases in tiles, the GRU's first input, and the layer for gates, keys and values."""
        n, (across, hidden) = self.network, (self.network.config.width // TILE, self.network.config.seed_width // TILE)
        tiles = 5 * across**2 + hidden * (-(-(2 * across + 1) // SEED_PREFETCH) * SEED_PREFETCH)
        weights = n.start.new_empty((tiles + PADDING, 32, 8), dtype=torch.bfloat16)
        biases = n.start.new_empty((6 * across + hidden + PADDING, TILE))
        first_gates = n.start.new_empty(3 * n.config.width, dtype=torch.bfloat16)
        projection = n.start.new_empty((n.config.width + 1, 5 * n.config.width), dtype=torch.bfloat16)  # bias last
        self.device.launch(
            self.device.kernel("decoder_tiles", "tile_weights", self._sizes()), -(-tiles // 8), 256, 0,
            n.gru_hidden.weight, n.query.weight, n.combine.weight, n.seed_in.weight, n.seed_out.weight,
            n.gru_hidden.bias, n.combine.bias, n.seed_in.bias, n.seed_out.bias, n.gru_input.weight, n.gru_input.bias,
            n.remember.weight, n.start, weights, biases, first_gates, projection,
        )  # fmt: skip
        return weights, biases, first_gates, projection


def supports(config: NetworkConfig) -> bool:
    """Return whether the kernel supports a network of this shape."""
    in_tiles = config.width % TILE == 0 and config.seed_width % TILE == 0
    return in_tiles and config.width == TILE * config.heads and config.seed_bits <= TILE and config.width <= 512
