"""The ablations on validation instances of 500 customers: layers, insertion order, policy or heuristic.

Searches end after a number of iterations: 1,000 with 8 augmentations, for the PCVRP 50 with 128.
"""

from collections.abc import Callable

from ndsvrp.bench.instances import Case
from ndsvrp.experiments import published
from ndsvrp.experiments.context import Context, Findings
from ndsvrp.experiments.ruins import WIDTH
from ndsvrp.experiments.scales import MIDDLE, PROBLEMS
from ndsvrp.experiments.searches import Limit, Series, search
from ndsvrp.experiments.sets import validation_cases
from ndsvrp.experiments.summaries import cost_table, summarise
from ndsvrp.experiments.trainings import policy, reference, trained
from ndsvrp.plot.panels import Dot, DotPanel, plot_dot_panels

LAYERS = {"MPL and TEL": "", "without TEL": "tour-encoding", "without MPL": "message-passing", "without both": "both"}
"""Series of the paper, and the layers that are missing; MPL: message passing layer, TEL: tour encoding layer."""


def architecture(context: Context) -> Findings:
    """Policies trained without message passing, without tour encoding, and without both."""

    def series(problem: str, cases: list[Case]) -> list[Series]:
        return [
            Series(name, trained(context, reference(context, problem, without=without), early=not without))
            for name, without in LAYERS.items()
        ]

    return _compare(context, series, _note(context, "each"))


def insertion_order(context: Context) -> Findings:
    """The policy's insertion order and four random ones, or five random ones."""

    def series(problem: str, cases: list[Case]) -> list[Series]:
        model = _policy(context, problem, cases)
        return [Series("DNN and random", model), Series("random", model, "shuffled")]

    return _compare(context, series, _note(context))


def policy_vs_heuristic(context: Context) -> Findings:
    """The policy, or K sets of strings as SISRs draws them, drawn beforehand as the policy's."""

    def series(problem: str, cases: list[Case]) -> list[Series]:
        model = _policy(context, problem, cases)
        return [Series("DNN", model), Series("heuristic", model, "strings", settings={"removals": WIDTH})]

    return _compare(context, series, _note(context))


def _compare(context: Context, series: Callable[[str, list[Case]], list[Series]], note: str) -> Findings:
    """Search with every series on every problem; the first one is the reference."""
    rows, columns, first = [], {}, ""
    for problem in PROBLEMS:
        cases = validation_cases(context, problem)
        columns[cases[0].set] = problem
        scale = context.scale
        limit, chains = Limit(iterations=scale.pick(problem, scale.iterations)), scale.pick(problem, scale.chains)
        for each in series(problem, cases):
            first = first or each.name
            wide = Series(each.name, each.model, each.ruin, chains, each.settings)
            rows += search(context, cases, wide, [limit], scale.together)
    lines = summarise(rows, first)
    panels = [
        DotPanel(column.upper(), [
            Dot(line.series, line.difference or 0.0, line.error, published.difference(
                context.name, column, line.series, first
            ))
            for line in lines if line.set == name
        ])
        for name, column in columns.items()
    ]  # fmt: skip
    table = cost_table(context.name, lines, columns, dict.fromkeys(columns, first), [_limits(context), note])
    theirs = published.table(context.name)
    figure = plot_dot_panels(panels, x_label=f"difference to {first}, %")
    return Findings([table, *([theirs] if theirs else [])], {"": figure})


def _policy(context: Context, problem: str, cases: list[Case]) -> str:
    """Return the policy of the ablations: trained for 1,000 epochs, or shipped where trainings are short."""
    if context.scale.training is None:
        return str(trained(context, reference(context, problem), early=True))
    return str(policy(context, cases[0].load(), problem, MIDDLE))


def _limits(context: Context) -> str:
    (plain, prizes), (chains, wide) = context.scale.iterations, context.scale.chains
    return f"{plain} iterations with {chains} augmentations; for the PCVRP {prizes} with {wide}"


def _note(context: Context, each: str = "") -> str:
    short = context.scale.training
    if short is None:
        return "Policies are trained for 1,000 epochs by the paper's configurations"
    if not each:
        return "The policy is the model of the package, unless one is given"
    return f"Policies are {short.note}, of the three problems together"
