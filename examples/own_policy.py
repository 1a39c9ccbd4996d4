"""Your own policy in the paper's search: a torch module that reads the solutions of all chains at once.

It gets the same `RuinRequest` as the learned policy: the current solution of every chain as arrays (previous and next
node, route), coordinates, and random numbers. It returns the customers to remove, (chains, K, M). The search inserts
them again and accepts or rejects the result.

This policy scores customers by how much shorter their route would be without them, and by how close they are to the
customer chosen before. Its two weights are set by hand; in research they would be learned.
"""

import sys
from pathlib import Path

import numpy as np
import torch

import ndsvrp

INSTANCE = Path(__file__).parent / "data" / "X-n106-k14.vrp"


class DetourPolicy(torch.nn.Module):
    """Chooses customers that cause detours, and their neighbours."""

    def __init__(self, detour: float = 3.0, nearness: float = 4.0) -> None:
        super().__init__()
        self.detour = torch.nn.Parameter(torch.tensor(detour))
        self.nearness = torch.nn.Parameter(torch.tensor(nearness))

    @torch.no_grad()
    def forward(self, request: ndsvrp.RuinRequest) -> np.ndarray:
        """Return (chains, K, M) int32 customers in insertion order."""
        at = torch.from_numpy(request.coordinates).float()  # (chains, N+1, 2), in the unit square
        before, after = (torch.from_numpy(part).long() for part in request.view[:2])
        away = torch.cdist(at, at)[:, 1:, 1:]  # (chains, N, N): customers are numbered from 0 from here on
        chains, customers, _ = away.shape

        def leg(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            picked = (at.gather(1, node[..., None].expand(-1, -1, 2)) for node in (a, b))
            return (next(picked) - next(picked)).norm(dim=-1)

        here = torch.arange(customers + 1).expand(chains, -1)
        detour = (leg(before, here) + leg(here, after) - leg(before, after))[:, 1:] * customers**0.5
        scores = (self.detour * detour)[:, None].expand(-1, request.rollouts, -1).clone()  # (chains, K, N)
        noise = torch.from_numpy(request.random.gumbel(size=(*scores.shape[:2], request.removals, customers)))
        removed = []
        for m in range(request.removals):
            choice = (scores + noise[:, :, m]).argmax(dim=-1)
            removed.append(choice + 1)
            near = away.gather(1, choice[..., None].expand(-1, -1, customers)) * customers**0.5
            taken = torch.isinf(scores).scatter(2, choice[..., None], True)
            scores = (self.detour * detour[:, None] - self.nearness * near).masked_fill(taken, -torch.inf)
        return torch.stack(removed, dim=-1).to(torch.int32).numpy()


def main(file: str | Path = INSTANCE, iterations: int = 100) -> ndsvrp.Result:
    problem = ndsvrp.read(file)
    policy = DetourPolicy()
    result = ndsvrp.solve(problem, iterations=iterations, seed=1, solver="nds", ruin=policy, chains=4, rollouts=50)
    print(f"{problem.name}: cost {result.cost:g} after {result.iterations} iterations, {result.seconds:.1f} s")
    return result


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else INSTANCE)
