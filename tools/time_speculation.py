"""Time `hybrid` on a GPU with several speculative steps at once, and with steps in sequence.

    python tools/time_speculation.py --time 3 --at-once 0 4 8 wide1000 short x800-long

The families are those of `tools/compare_search.py`, their first instance each; 0 at once are steps in sequence. Prints
steps per second and chain, and the cost.
"""

from __future__ import annotations

import argparse

from compare_search import FAMILIES

from ndsvrp import solve
from ndsvrp.engine import launches, placement

SPECULATIVE = placement.layout_to_speculate


def use(at_once: int) -> None:
    """Make `at_once` steps at once from now on; 0: steps in sequence."""
    placement.layout_to_speculate = SPECULATIVE if at_once else placement.layout_to_improve
    placement.SPECULATED = at_once or placement.SPECULATED
    SPECULATIVE.cache_clear()
    launches.kernel_macros.cache_clear()


def main() -> None:
    """Print a line per family and number."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="+", choices=list(FAMILIES))
    parser.add_argument("--at-once", type=int, nargs="+", default=[0, placement.SPECULATED])
    parser.add_argument("--time", type=float, default=3.0)
    given = parser.parse_args()
    for family in given.families:
        for at_once in given.at_once:
            use(at_once)
            result = solve(FAMILIES[family](0), time=given.time, seed=1, solver="hybrid", device="cuda")
            chains: int = result.settings["chains"]
            rate = result.reconstructions / result.settings["orders"] / given.time / chains
            print(
                f"{family:16} {at_once:2} at once: {rate:8,.0f} steps/s and chain, cost {result.cost:,.3f}", flush=True
            )


if __name__ == "__main__":
    main()
