"""The experiments by name. Their modules are loaded when they are run."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ndsvrp.experiments.context import Context, Findings


@dataclass(frozen=True)
class Experiment:
    """An experiment of the paper."""

    name: str
    text: str  #: one line
    where: str  #: module and function

    def load(self) -> "Callable[[Context], Findings]":
        """Return its function."""
        module, _, function = self.where.partition(":")
        found: Callable[[Context], Findings] = getattr(
            importlib.import_module(f"ndsvrp.experiments.{module}"), function
        )
        return found


EXPERIMENTS = {
    row.name: row
    for row in (
        Experiment("main-table", "NDS, SISRs, HGS and PyVRP on twelve test sets (table 1)", "main_table:main_table"),
        Experiment(
            "runtime-limits", "NDS and SISRs under several time limits (section 5.3)", "runtime_limits:runtime_limits"
        ),
        Experiment(
            "architecture", "policies without message passing or tour encoding (table 2a)", "ablations:architecture"
        ),
        Experiment(
            "insertion-order", "the policy's order and random ones, or random ones only (table 2b)",
            "ablations:insertion_order",
        ),
        Experiment(
            "policy-vs-heuristic", "the policy, or strings as SISRs removes them (table 2c)",
            "ablations:policy_vs_heuristic",
        ),
        Experiment(
            "hyperparameters", "augmentations A, rollouts K, threshold factor delta (appendix)",
            "hyperparameters:hyperparameters",
        ),
        Experiment(
            "initial-improvement", "training with and without improvement steps (appendix)",
            "curves:initial_improvement",
        ),
        Experiment(
            "generalization-distribution", "a policy on other layouts and capacities (table 3)",
            "generalization:distribution",
        ),
        Experiment(
            "generalization-size", "a policy for 500 customers on other sizes (appendix, table 4)",
            "generalization:size",
        ),
        Experiment(
            "scalability", "time and memory against the number of customers (section 5.6)", "scalability:scalability"
        ),
        Experiment(
            "rollouts", "what the policy removes: two instances per problem, six rollouts each (appendix)",
            "rollouts:rollouts",
        ),
        Experiment("training-curves", "validation during training, all sizes (appendix)", "curves:training_curves"),
    )
}  # fmt: skip
