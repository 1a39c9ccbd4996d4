"""The network of the paper's section 4.3: an encoder of instance and solution, a decoder that selects customers.

Shapes: B problems, N customers, R rollouts of M customers each, Q queries (rollouts, or rollouts x steps), D the
width. The encoder numbers nodes 0 … N, the depot first; the decoder numbers customers 0 … N-1.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from ndsvrp.policy import fused
from ndsvrp.policy.config import NetworkConfig
from ndsvrp.policy.inputs import Inputs, input_names


class Norm(nn.Module):
    """Instance normalisation: each channel over the nodes of an instance, in float32."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        """(B, N+1, D) to the same."""
        x = x.float()
        variance, mean = torch.var_mean(x, dim=1, keepdim=True, correction=0)
        return (x - mean) * torch.rsqrt(variance + 1e-5) * self.weight + self.bias


def feed_forward(width: int, hidden: int) -> nn.Sequential:
    """Return two linear layers with a ReLU in between."""
    return nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))


class Attention(nn.Module):
    """A layer of self-attention over all nodes, as in Kwon et al. 2020."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.project = nn.Linear(config.width, 3 * config.width, bias=False)
        self.combine = nn.Linear(config.width, config.width)
        self.norm = Norm(config.width)
        self.feed_forward = feed_forward(config.width, config.feed_forward)
        self.norm_after = Norm(config.width)

    def forward(self, h: Tensor, inputs: Inputs) -> Tensor:
        """(B, N+1, D) to the same; like the other layers, but it does not read the solution."""
        query, keys, values = (split_heads(part, self.heads) for part in self.project(h).chunk(3, dim=-1))
        heads = join_heads(F.scaled_dot_product_attention(query, keys, values))
        h = self.norm(h + self.combine(heads))
        h = self.norm_after(h + self.feed_forward(h))
        return h


class MessagePassing(nn.Module):
    """h' = Norm(h + FF(ReLU(W3 [h; W1 h_prev + W2 h_next])))."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.tied = config.tied_neighbours
        self.from_previous = nn.Linear(config.width, config.width, bias=False)  # W1
        if not self.tied:
            self.from_next = nn.Linear(config.width, config.width, bias=False)  # W2
        self.merge = nn.Linear(2 * config.width, config.width)  # W3
        self.feed_forward = feed_forward(config.width, config.feed_forward)
        self.norm = Norm(config.width)

    @property
    def neighbour_maps(self) -> tuple[nn.Linear, nn.Linear]:
        """W1 and W2; the same one if they are tied."""
        return self.from_previous, self.from_previous if self.tied else self.from_next

    def forward(self, h: Tensor, inputs: Inputs) -> Tensor:
        """(B, N+1, D) to the same."""
        of_previous, of_next = self.neighbour_maps
        message = pick(of_previous(h), inputs.previous) + pick(of_next(h), inputs.next)
        merged = F.relu(self.merge(torch.cat([h, message.to(h.dtype)], dim=-1)))
        h = self.norm(h + self.feed_forward(merged))
        return h


class TourEncoding(nn.Module):
    """h' = Norm(h + FF(ReLU(W4 [h; mean of h over the route]))); zeros for an unserved customer."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.mean = config.tour_aggregate == "mean"
        self.merge = nn.Linear(2 * config.width, config.width)  # W4
        self.feed_forward = feed_forward(config.width, config.feed_forward)
        self.norm = Norm(config.width)

    def forward(self, h: Tensor, inputs: Inputs) -> Tensor:
        """(B, N+1, D) to the same."""
        h = h.float()
        index = inputs.route + 1  # 0: the depot and unserved customers
        served = (index > 0).to(h.dtype)
        of_route = index[..., None].expand_as(h)
        tours = torch.zeros_like(h).scatter_add(1, of_route, h * served[..., None])  # at most N routes: N+1 rows
        if self.mean:
            sizes = torch.zeros_like(served).scatter_add(1, index, served)
            tours = tours / sizes.clamp(min=1.0)[..., None]
        merged = F.relu(self.merge(torch.cat([h, tours.gather(1, of_route)], dim=-1)))
        h = self.norm(h + self.feed_forward(merged))
        return h


class Memory(NamedTuple):
    """What the decoder reads of the customers."""

    keys: Tensor  #: (B, heads, N, D / heads)
    values: Tensor  #: (B, heads, N, D / heads)
    pointers: Tensor  #: (B, D, N)
    gates: Tensor  #: (B, N, 3 D) W x + b of each customer as input of the GRU; (B, N, 0) where it is not needed
    first_gates: Tensor  #: (3 D,) the same before the first selection
    coordinates: Tensor  #: (B, N, 2)
    matrix: Tensor | None  #: (N, N)
    route: Tensor  #: (B, N)


class Network(nn.Module):
    """The ruin policy. `forward` returns the probability of given rollouts; `rollout.sample` samples new ones."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.embed_depot = nn.Linear(len(input_names()), width)
        self.embed_customer = nn.Linear(len(input_names()), width)
        self.before = nn.ModuleList(Attention(config) for _ in range(config.layers_before))
        self.message_passing = MessagePassing(config) if config.message_passing else None
        self.tour_encoding = TourEncoding(config) if config.tour_encoding else None
        self.after = nn.ModuleList(Attention(config) for _ in range(config.layers_after))

        self.start = nn.Parameter(torch.zeros(width))  # input of the GRU before the first selection
        self.gru_input = nn.Linear(width, 3 * width)
        self.gru_hidden = nn.Linear(width, 3 * width)
        self.query = nn.Linear(width, width, bias=False)
        self.remember = nn.Linear(width, 2 * width, bias=False)  # keys and values
        self.combine = nn.Linear(width, width)
        self.seed_in = nn.Linear(width + config.seed_bits, config.seed_width)
        self.seed_out = nn.Linear(config.seed_width, width)
        if config.distance_term:
            self.beta = nn.Parameter(torch.tensor(float(config.beta)))
            self.gamma = nn.Parameter(torch.tensor(float(config.gamma)))

    # --- encoder -----------------------------------------------------------------------------

    @property
    def layers(self) -> list[nn.Module]:
        """The layers of the encoder in their order."""
        route_layers = [self.message_passing, self.tour_encoding]
        ordered = reversed(route_layers) if self.config.tour_first else route_layers
        return [*self.before, *(layer for layer in ordered if layer is not None), *self.after]

    def embed(self, inputs: Inputs, between: Callable[[], None] = lambda: None) -> Tensor:
        """Return the embeddings (B, N, D) of the customers in their problem and solution.

        `between` is called before every layer, and may raise.
        """
        if (kernels := fused.select_kernels(self, inputs.nodes)) is not None:
            return fused.encode(kernels, self, inputs, between)
        h = torch.cat([self.embed_depot(inputs.nodes[:, :1]), self.embed_customer(inputs.nodes[:, 1:])], dim=1)
        for layer in self.layers:
            between()
            h = layer(h, inputs)
        return h[:, 1:]

    def encode(self, inputs: Inputs, between: Callable[[], None] = lambda: None) -> Memory:
        """Embed the customers and prepare what every decoding step reads; `between` as in `embed`."""
        return self._memory(self.embed(inputs, between), inputs)

    def _memory(self, h: Tensor, inputs: Inputs, *, gates: bool = True) -> Memory:
        keys, values = (split_heads(part, self.config.heads) for part in self.remember(h).chunk(2, dim=-1))
        matrix = None if inputs.matrix is None else inputs.matrix[1:, 1:]
        return Memory(
            keys, values, h.transpose(1, 2).to(keys.dtype), self.gru_input(h) if gates else h[..., :0],
            self.gru_input(self.start), inputs.coordinates[:, 1:], matrix, inputs.route[:, 1:],
        )  # fmt: skip

    # --- decoder -----------------------------------------------------------------------------

    def gru_step(self, gates: Tensor, hidden: Tensor) -> Tensor:
        """Return the next hidden state (B, R, D) of the GRU (Cho et al. 2014).

        gates: (B, R, 3 D), of the customer selected last; hidden: (B, R, D).
        """
        input_reset, input_update, input_new = gates.chunk(3, dim=-1)
        hidden_reset, hidden_update, hidden_new = self.gru_hidden(hidden).chunk(3, dim=-1)
        update = torch.sigmoid(input_update + hidden_update)
        new = torch.tanh(input_new + torch.sigmoid(input_reset + hidden_reset) * hidden_new)
        return new + update * (hidden - new)

    def logits(self, memory: Memory, hidden: Tensor, seeds: Tensor, allowed: Tensor, last: Tensor | None) -> Tensor:
        """Return the logits (B, Q, N) float32, -inf where not allowed.

        hidden: (B, Q, D); seeds: (B, Q, bits); allowed: (B, Q, N) bool;
        last: (B, Q) the customer selected last, -1 if none; None: none in any rollout.
        """
        query = split_heads(self.query(hidden), self.config.heads)
        keys, values = memory.keys, memory.values
        heads = F.scaled_dot_product_attention(query.to(keys.dtype), keys, values, attn_mask=allowed[:, None])
        glimpse = self.combine(join_heads(heads))
        # The residual by which rollouts differ (PolyNet, Hottung et al. 2025).
        seeded = torch.cat([glimpse, seeds.to(glimpse.dtype)], dim=-1)
        glimpse = glimpse + self.seed_out(F.relu(self.seed_in(seeded)))
        learning = memory.pointers.requires_grad and memory.pointers.dtype == torch.bfloat16
        scores = (fused.scores if learning else torch.bmm)(glimpse, memory.pointers).float()
        scores = scores / math.sqrt(self.config.width)
        logits = self.config.clip * torch.tanh(scores)
        if self.config.distance_term and last is not None:
            logits = logits + self._distance_term(memory, last)
        return logits.masked_fill(~allowed, -math.inf)

    def _distance_term(self, memory: Memory, last: Tensor) -> Tensor:
        """Return -beta d(last, j) sqrt(N) + gamma [same route], (B, Q, N); 0 before the first selection."""
        seen, last = last >= 0, last.clamp(min=0)
        if memory.matrix is not None:
            distance = memory.matrix[last]
        else:
            here = pick(memory.coordinates, last)
            distance = torch.linalg.vector_norm(here[:, :, None] - memory.coordinates[:, None], dim=-1)
        route = memory.route.gather(1, last)
        same = (route[..., None] == memory.route[:, None]) & (route[..., None] >= 0)
        term = -self.beta * math.sqrt(distance.shape[-1]) * distance + self.gamma * same
        return term * seen[..., None]

    def _states(self, memory: Memory, chosen: Tensor) -> Tensor:
        """Return the GRU states (B, R, M, D) before each selection of chosen (B, R, M)."""
        batch, rollouts, steps = chosen.shape
        hidden = memory.gates.new_zeros(batch, rollouts, self.config.width)
        gates = memory.first_gates.expand(batch, rollouts, -1)
        states = []
        for m in range(steps):
            hidden = self.gru_step(gates, hidden)
            states.append(hidden)
            gates = pick(memory.gates, chosen[:, :, m])
        return torch.stack(states, dim=2)

    def forward(self, inputs: Inputs, removed: Tensor, seeds: Tensor) -> Tensor:
        """Return the log-probabilities (B, R) of rollouts by teacher forcing: only the GRU goes step by step.

        removed: (B, R, M) int64 customers 1 … N; seeds: (B, R, bits) float32.
        """
        batch, rollouts, steps = removed.shape
        chosen = removed - 1
        if (kernels := fused.select_kernels(self, inputs.nodes)) is not None:
            h = self.embed(inputs)
            memory = self._memory(h, inputs, gates=False)
            states = fused.gru_states(kernels, self, h, chosen)
        else:
            memory = self.encode(inputs)
            states = self._states(memory, chosen)
        # The step in which each customer is selected, `steps` if in none: it is allowed until then.
        customers = memory.pointers.shape[2]
        step = torch.arange(steps, device=chosen.device)
        selected = torch.full((batch, rollouts, customers), steps, device=chosen.device)
        selected = selected.scatter(2, chosen, step.expand_as(chosen))
        allowed = selected[:, :, None] >= step[:, None]  # (B, R, M, N) before each step
        last = torch.cat([torch.full_like(chosen[:, :, :1], -1), chosen[:, :, :-1]], dim=2)

        queries = rollouts * steps
        logits = self.logits(
            memory,
            states.reshape(batch, queries, -1),
            seeds[:, :, None].expand(-1, -1, steps, -1).reshape(batch, queries, -1),
            allowed.reshape(batch, queries, customers),
            last.reshape(batch, queries),
        )
        log_probabilities = torch.log_softmax(logits, dim=-1).gather(2, chosen.reshape(batch, queries, 1))
        return log_probabilities.reshape(batch, rollouts, steps).sum(dim=2)


def pick(rows: Tensor, index: Tensor) -> Tensor:
    """Return rows (B, Q, D) of (B, N, D) at index (B, Q)."""
    return rows.gather(1, index[..., None].expand(-1, -1, rows.shape[-1]))


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Reshape (B, Q, D) to (B, heads, Q, D / heads)."""
    return x.view(*x.shape[:-1], heads, -1).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """Reshape (B, heads, Q, D / heads) to (B, Q, D)."""
    return x.transpose(1, 2).flatten(-2)
