"""Draws what rollouts of the learned policy remove from a solution, and the cost after each was inserted again.

Usage: python tools/draw_removals.py INSTANCE SOLUTION.sol PICTURE. Needs the extra `policy`; seconds on a CPU.
"""

import sys
from dataclasses import dataclass

from ndsvrp import Problem, Solution, Solver, check, models, read, read_solution
from ndsvrp.experiments.rollouts import choose, reconstruct
from ndsvrp.plot.removals import RemovalPanel, plot_removals
from ndsvrp.plot.style import write

SHOWN = 3


@dataclass(frozen=True)
class Rollout:
    removed: list[int]
    after: Solution
    cost: float


def rollouts_of(problem: Problem, solution: Solution) -> list[Rollout]:
    """Return some rollouts of the shipped policy for such problems, each with the solution after it."""
    with Solver(model=models.choose(problem) or "all", device="cpu", chains=1) as solver:
        opened = solver.open(problem)
        found = [[int(customer) for customer in removed if customer] for removed in choose(opened, problem, solution)]
        after = [reconstruct(opened, problem, solution, removed) for removed in found]
    return [Rollout(removed, new, check(problem, new).cost) for removed, new in zip(found, after, strict=True)]


def draw(problem: Problem, solution: Solution, rollouts: list[Rollout], file: str) -> None:
    """Draw the first rollouts side by side."""
    before = check(problem, solution).cost
    panels = [
        RemovalPanel(problem, solution, rollout.removed, f"rollout {number}: cost {before:,.6g} to {rollout.cost:,.6g}")
        for number, rollout in enumerate(rollouts[:SHOWN], 1)
    ]
    write(plot_removals(panels, SHOWN), file)


def main(instance: str, solution: str, picture: str) -> None:
    problem = read(instance)
    routes, _ = read_solution(solution)
    draw(problem, routes, rollouts_of(problem, routes), picture)
    print(f"wrote {picture}: customers that {SHOWN} rollouts of the learned policy would remove next")


if __name__ == "__main__":
    main(*sys.argv[1:])
