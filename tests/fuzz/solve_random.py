"""Solve random problems and judge every answer by the oracle: `make fuzz`, or

    python tests/fuzz/solve_random.py --count 10000 --seed 1 --out results/fuzz.jsonl

Appends a row with counts, seed, date and commit. Exits with 1 if an answer is infeasible or has a wrong cost.
"""

import argparse
import sys
from collections import Counter
from math import isclose, isinf
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.oracle import Fields, Oracle
from fuzz.random_problems import SMALL, random_problem
from ndsvrp import EngineError, InstanceError, NoSolutionError, Problem, solve

CLOSE = 1e-9  # relative: rounding of sums
OPTIMAL = 1e-6  # relative: what ticks represent


def judge(fields: Fields, **limits: Any) -> tuple[str, str]:
    """Solve a problem. Return what came of it, and details.

    Outcomes: solved, unsolved (no feasible solution was found), refused, infeasible, wrong.
    """
    try:
        result = solve(Problem(**fields), seed=1, threads=1, **limits)
    except (InstanceError, EngineError) as error:
        return "refused", str(error)
    except NoSolutionError as error:
        return "unsolved", str(error)
    except RuntimeError as error:  # the package checks its answers, too
        return "infeasible", str(error)
    oracle, routes = Oracle(fields), [tuple(map(int, route)) for route in result.solution.routes]
    if faults := oracle.faults(routes):
        return "infeasible", f"{faults} in {routes}"
    if not isclose(oracle.cost(routes), result.cost, rel_tol=CLOSE, abs_tol=1e-12):
        return "wrong", f"{result.cost!r} for {oracle.cost(routes)!r}"
    return "solved", repr(result.cost)


def judge_optimum(fields: Fields, **limits: Any) -> tuple[str, str]:
    """Solve a small problem. Return whether the answer is optimal: optimal, missed, or as `judge`."""
    optimum = Oracle(fields, tolerance=0.0).optimum()
    target = {} if isinf(optimum) else {"target": optimum * (1 + 1e-7)}
    outcome, details = judge(fields, **limits, **target)
    if outcome == "unsolved":
        return ("optimal" if isinf(optimum) else "missed"), f"{details}, optimum {optimum!r}"
    if outcome != "solved":
        return outcome, details
    found = float(details)
    return ("optimal" if found <= optimum * (1 + OPTIMAL) else "missed"), f"{found!r}, optimum {optimum!r}"


def main() -> int:
    """Solve, report and record."""
    parser = argparse.ArgumentParser(description="Solve random problems and judge every answer.")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--time", type=float, default=0.1)
    parser.add_argument("--small-time", type=float, default=1.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    outcomes, small, reasons = Counter[str](), Counter[str](), Counter[str]()
    for index in range(options.first, options.first + options.count):
        fields = random_problem(options.seed, index)
        outcome, details = judge(fields, time=options.time)
        outcomes[outcome] += 1
        if outcome == "refused":
            reasons[_kind(details)] += 1
        if outcome in ("refused", "infeasible", "wrong"):
            print(index, outcome, details, flush=True)
        if outcome != "refused" and len(fields["demand"]) - 1 <= SMALL:
            outcome, details = judge_optimum(fields, time=options.small_time)
            small[outcome] += 1
            if outcome != "optimal":
                print(index, outcome, details, flush=True)
    row = {
        "set": "fuzz", "instance": f"random {options.first} to {options.first + options.count - 1}",
        "seed": options.seed, "budget": options.time, "budget_small": options.small_time,
        "outcomes": dict(outcomes), "up_to_six": dict(small), "refusals": dict(reasons),
    }  # fmt: skip
    print(row)
    if options.out is not None:
        from ndsvrp.bench.rows import record

        record([row], options.out)
    return int(outcomes["infeasible"] + outcomes["wrong"] + small["infeasible"] + small["wrong"] > 0)


def _kind(reason: str) -> str:
    """Return a reason without its numbers."""
    return " ".join(word for word in reason.split() if not any(letter.isdigit() for letter in word))


if __name__ == "__main__":
    sys.exit(main())
