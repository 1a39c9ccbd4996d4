"""What `nds solve` prints beside the problem: the plan and the limits before a search, facts after it."""

import numpy as np

from ndsvrp.best_known import best_known
from ndsvrp.cli.formatting import cost_of, plain_number
from ndsvrp.constraints.base import Facts
from ndsvrp.engine.device import has_compiled
from ndsvrp.io.environment import usable_cores
from ndsvrp.search.planning import Plan, Request
from ndsvrp.search.result import STOPPED, Result
from ndsvrp.search.stopping import Limits
from ndsvrp.text import amount


def plan_line(plan: Plan, request: Request, model: str | None = None, together: int = 1) -> str:
    """Return a plan as one line, which marks what `auto` chose."""

    def named(what: str, used: str) -> str:
        return f"{what} {used}" + (" (auto)" if getattr(request, what) in ("auto", None) else "")

    chains, cores = plan.settings.chains, usable_cores()
    regions = f" ({plan.settings.regions} per solution)" if plan.settings.regions > 1 else ""
    population = plan.settings.population
    chain = f"population of {population}, {chains} children" if population else amount(chains, "chain")
    islands = f" in {plan.settings.islands} islands" if plan.settings.islands else ""
    where = chain + islands + regions + (f" for each of {together} instances" if together > 1 else "")
    if plan.device == "cpu":
        where += f" on {amount(plan.threads, 'thread')}"
        if request.threads is None and not regions and not population and chains * together < cores:
            where += f" (--chains {cores} would use all {cores} cores)"
    elif not has_compiled():
        where += "; kernels are compiled first, once: that takes some seconds"
    ruin = f"ruin {plan.settings.ruin}" + (" and string" if plan.settings.rule_steps > 0 else "")
    parts = [named("solver", plan.solver), ruin, named("device", plan.device), where]
    if plan.settings.fewest_vehicles:
        parts.append("fewest vehicles first")
    if model is not None:
        parts.insert(2, named("model", model))
    return ", ".join(parts)


def limit_line(limits: Limits, seed: int, *, is_default: bool) -> str:
    """Return what ends a search, and its seed, as one line."""
    parts = []
    if (time := limits.get("time")) is not None:
        parts.append(f"{time:g} s" + (" (the default; --time or --iterations)" if is_default else ""))
    if (iterations := limits.get("iterations")) is not None:
        parts.append(amount(iterations, "iteration"))
    if (target := limits.get("target")) is not None:
        parts.append(f"until a cost of {plain_number(target)}")
    if (patience := limits.get("patience")) is not None:
        parts.append(f"until {amount(patience, 'iteration')} bring nothing better")
    return f"at most {', '.join(parts)}; seed {seed}"


def facts_of(result: Result) -> Facts:
    """Return the lines about a result."""
    problem, report = result.problem, result.report

    def money(cost: float) -> str:
        return cost_of(cost, problem.metric)

    facts = [("cost", money(report.cost))]
    known = best_known(problem)
    if known is not None and not result.settings.get("fewest_vehicles"):
        facts.append(("gap", f"{known.gap(report.cost):+.2f}% to the best known {money(known.cost)} ({known.date})"))
    if problem.has_prizes or report.vehicle_costs:
        facts.append(("distance", money(report.distance)))
    if report.vehicle_costs:
        facts.append(("vehicle costs", money(report.vehicle_costs)))
    if problem.has_prizes:
        optional = problem.customers - int(np.count_nonzero(problem.required))
        facts += [
            ("lost prizes", money(report.lost_prizes)),
            ("unserved", f"{len(report.unserved):,} of {optional:,} optional customers"),
        ]
    if (model := result.settings.get("model")) is not None:
        facts.append(("model", f"{model['name']}, loaded in {model['load_seconds']:.2f} s before the search"))
    rate = result.reconstructions / result.seconds if result.seconds > 0 else 0.0
    return [
        *facts,
        ("routes", f"{len(result.solution.routes):,}"),
        ("stopped by", STOPPED.get(result.stopped, result.stopped)),
        ("seconds", f"{result.seconds:.2f}"),
        ("iterations", f"{result.iterations:,}"),
        ("reconstructions", f"{result.reconstructions:,} ({rate:,.0f} per second)"),
    ]
