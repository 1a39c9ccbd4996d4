"""Draws the pictures of docs/concepts.md: one step of the search, and what rollouts of the policy remove.

Usage: python tools/draw_concepts.py. Needs the extra `policy`; seconds on a CPU.
"""

from pathlib import Path

from draw_removals import draw, rollouts_of

from ndsvrp import Solution, check, generate, solve
from ndsvrp.plot.removals import RemovalPanel, plot_removals
from ndsvrp.plot.style import write

IMAGES = Path(__file__).parents[1] / "docs/img"
CUSTOMERS, SEED = 100, 14
START = {"iterations": 1, "rollouts": 200, "hot": 0.01, "cold": 0.01}  # routes that leave something to gain


def main() -> None:
    (problem,) = generate("cvrp", CUSTOMERS, seed=SEED)
    start = solve(problem, solver="sisr", chains=1, seed=SEED, **START).solution
    rollouts = rollouts_of(problem, start)
    best = min(rollouts, key=lambda rollout: rollout.cost)
    ruined = Solution([[c for c in route if c not in best.removed] for route in start.routes])
    count, before = len(best.removed), check(problem, start).cost
    step = [
        RemovalPanel(problem, start, best.removed, f"1. solution, cost {before:.3f}"),
        RemovalPanel(problem, ruined, best.removed, f"2. ruin: {count} customers removed"),
        RemovalPanel(problem, best.after, best.removed, f"3. recreate: inserted again, cost {best.cost:.3f}"),
    ]
    write(plot_removals(step, 3), IMAGES / "ruin-and-recreate.png")
    draw(problem, start, rollouts, str(IMAGES / "rollouts.png"))


if __name__ == "__main__":
    main()
