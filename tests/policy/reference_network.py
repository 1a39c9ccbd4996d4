"""A slow network written from the paper's formulas, and the cases of its tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ndsvrp import Problem
from ndsvrp.engine.base import Recipe, View
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.policy import Network, NetworkConfig
from ndsvrp.policy.inputs import Inputs, static_inputs
from ndsvrp.search.plane import plane
from ndsvrp.search.start import start

SMALL: dict[str, Any] = {
    "width": 12, "heads": 3, "feed_forward": 10, "seed_bits": 4, "seed_width": 7, "beta": 1.3, "gamma": 0.6
}  # fmt: skip
FORMS = {
    "default": NetworkConfig(**SMALL),
    "paper": NetworkConfig.paper(**SMALL),
    "authors' code": NetworkConfig.paper(tour_first=True, tour_aggregate="sum", **SMALL),
    "tied neighbours": NetworkConfig.paper(tour_first=True, tour_aggregate="sum", tied_neighbours=True, **SMALL),
    "no message passing": NetworkConfig(message_passing=False, **SMALL),
    "no tour layer": NetworkConfig(tour_encoding=False, **SMALL),
    "neither": NetworkConfig(message_passing=False, tour_encoding=False, layers_before=1, layers_after=0, **SMALL),
}


def strong(config: NetworkConfig, seed: int = 0) -> Network:
    """Return a network with weights so large that every part matters, norms and biases included."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Network(config)
        with torch.no_grad():
            for name, weight in network.named_parameters():
                if name not in ("beta", "gamma"):
                    weight.add_(0.1 * torch.randn_like(weight))
    return network


def solved(problems: list[Problem], seed: int = 0, steps: int = 3) -> tuple[CpuEngine, Any, View]:
    """Return solutions of problems of one size, improved by a few steps."""
    engine = CpuEngine()
    state = start(engine, problems, np.arange(len(problems)), seed, rounds=steps)
    related = Recipe(rule="related", removals=min(4, problems[0].customers))
    engine.improve(state, related, None, np.full((len(problems), steps), 1e-3), seed, 0)
    return engine, state, engine.view(state)


def shown(problems: list[Problem], view: View | None = None) -> Inputs:
    """Return the inputs of problems. A matrix requires a single problem."""
    far = problems[0].distance
    matrix = None if far is None else far / problems[0].side()
    inputs = static_inputs(problems, np.stack([plane(problem) for problem in problems]), "cpu", matrix)
    return inputs.showing(solved(problems)[2] if view is None else view)


def four(**fields: Any) -> Problem:
    """Return four customers with a demand of two vehicles, in a box 10 wide and 20 high."""
    return Problem(
        **{
            "coordinates": [[0, 0], [10, 0], [10, 20], [4, 12], [0, 20]],
            "demand": [0, 1, 2, 3, 4],
            "capacity": 5,
            **fields,
        }
    )


# --- the paper's formulas, node by node, in float64 ---------------------------------------------------


class SlowNetwork:
    """Section 4.3 of the paper in loops over nodes. It shares only the weights with the network."""

    def __init__(self, network: Network) -> None:
        self.config = network.config
        self.weights = {name: value.double().numpy().copy() for name, value in network.state_dict().items()}

    def linear(self, name: str, x: np.ndarray) -> np.ndarray:
        return self.weights[f"{name}.weight"] @ x + self.weights.get(f"{name}.bias", 0.0)

    def forward_part(self, name: str, x: np.ndarray) -> np.ndarray:
        return self.linear(f"{name}.2", np.maximum(self.linear(f"{name}.0", x), 0.0))

    def norm(self, name: str, rows: list[np.ndarray]) -> list[np.ndarray]:
        """Instance normalisation: each channel over the nodes of the instance."""
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
        heads = []
        for head in range(self.config.heads):
            part = slice(head * size, (head + 1) * size)
            scores = np.array([query[part] @ key[part] / math.sqrt(size) for key in keys])
            shares = np.exp(scores - scores.max())
            shares /= shares.sum()
            heads.append(sum(share * value[part] for share, value in zip(shares, values, strict=True)))
        return np.concatenate(heads)

    def attention(self, name: str, h: list[np.ndarray]) -> list[np.ndarray]:
        projected = [np.split(self.linear(f"{name}.project", x), 3) for x in h]
        keys, values = [p[1] for p in projected], [p[2] for p in projected]
        heads = [self.linear(f"{name}.combine", self.attend(p[0], keys, values)) for p in projected]
        h = self.norm(f"{name}.norm", [x + y for x, y in zip(h, heads, strict=True)])
        return self.norm(f"{name}.norm_after", [x + self.forward_part(f"{name}.feed_forward", x) for x in h])

    def pass_messages(self, h: list[np.ndarray], previous: np.ndarray, following: np.ndarray) -> list[np.ndarray]:
        rows = []
        for i, x in enumerate(h):
            message = self.linear("message_passing.from_previous", h[previous[i]])
            of_next = "from_previous" if self.config.tied_neighbours else "from_next"
            message = message + self.linear(f"message_passing.{of_next}", h[following[i]])
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
        """Return the log-probability of one rollout on one instance with its solution."""
        config, route = self.config, view[2]
        h = self.encode(nodes, *view)
        all_customers = range(1, len(h))
        hidden, total = np.zeros(config.width), 0.0
        for m, chosen in enumerate(removed):
            hidden = self.gru(h[removed[m - 1]] if m else self.weights["start"], hidden)
            free = [j for j in all_customers if j not in removed[:m]]
            pairs = [np.split(self.linear("remember", h[j]), 2) for j in free]
            heads = self.attend(self.linear("query", hidden), [p[0] for p in pairs], [p[1] for p in pairs])
            glimpse = self.linear("combine", heads)
            residual = np.maximum(self.linear("seed_in", np.concatenate([glimpse, seed])), 0.0)
            glimpse = glimpse + self.linear("seed_out", residual)
            logits = []
            for j in free:
                logit = config.clip * math.tanh(glimpse @ h[j] / math.sqrt(config.width))
                if config.distance_term and m:
                    last = removed[m - 1]
                    away = math.dist(nodes[last, :2], nodes[j, :2]) if matrix is None else matrix[last, j]
                    together = route[last] >= 0 and route[last] == route[j]
                    logit += -self.weights["beta"] * away * math.sqrt(len(all_customers))
                    logit += self.weights["gamma"] * together
                logits.append(logit)
            top = max(logits)
            total += logits[free.index(chosen)] - top - math.log(sum(math.exp(logit - top) for logit in logits))
        return float(total)

    def all_of(self, inputs: Inputs, removed: torch.Tensor, seeds: torch.Tensor) -> np.ndarray:
        """Return the log-probabilities (B, R) of all rollouts, as the network does."""
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


def view_of(routes: list[list[int]], customers: int) -> View:
    """Return the view of a solution, as engines return it."""
    previous, following, route = (np.full((1, customers + 1), value, np.int32) for value in (0, 0, -1))
    for number, tour in enumerate(routes):
        for before, node, after in zip([0, *tour], tour, [*tour[1:], 0], strict=False):
            previous[0, node], following[0, node], route[0, node] = before, after, number
    return View(previous, following, route)
