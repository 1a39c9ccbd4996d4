"""Draws the pictures of docs/concepts.md: one step of the search, and what rollouts of the policy remove.

Usage: python tools/draw_concepts.py. Needs the extra `policy`; seconds on a CPU.
"""

from pathlib import Path

from ndsvrp import Solution, Solver, check, generate, solve
from ndsvrp.experiments.rollouts import choose, reconstruct
from ndsvrp.plot.removals import RemovalPanel, plot_removals
from ndsvrp.plot.style import write

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/img"
CUSTOMERS, SEED = 100, 14
START = {"iterations": 1, "rollouts": 200, "hot": 0.01, "cold": 0.01}  # routes that leave something to gain


def main() -> None:
    (problem,) = generate("cvrp", CUSTOMERS, seed=SEED)
    start = solve(problem, solver="sisr", chains=1, seed=SEED, **START).solution
    with Solver(model="all", device="cpu", chains=1) as solver:
        opened = solver.open(problem)
        rollouts = [[int(c) for c in removed if c] for removed in choose(opened, problem, start)]
        after = [reconstruct(opened, problem, start, removed) for removed in rollouts]
    costs = [check(problem, solution).cost for solution in after]
    best = min(range(len(costs)), key=costs.__getitem__)
    removed, before = rollouts[best], check(problem, start).cost
    ruined = Solution([[c for c in route if c not in removed] for route in start.routes])
    step = [
        RemovalPanel(problem, start, removed, f"1. solution, cost {before:.3f}"),
        RemovalPanel(problem, ruined, removed, f"2. ruin: {len(removed)} customers removed"),
        RemovalPanel(problem, after[best], removed, f"3. recreate: inserted again, cost {costs[best]:.3f}"),
    ]
    write(plot_removals(step, 3), IMAGES / "ruin-and-recreate.png")
    some = [
        RemovalPanel(problem, start, chosen, f"rollout {number}: cost {before:.3f} to {cost:.3f}")
        for number, (chosen, cost) in enumerate(zip(rollouts[:3], costs, strict=False), 1)
    ]
    write(plot_removals(some, 3), IMAGES / "rollouts.png")


if __name__ == "__main__":
    main()
