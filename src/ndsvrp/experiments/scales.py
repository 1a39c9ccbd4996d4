"""The scales: how much of the paper's protocol an experiment runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ndsvrp.bench.report import published
from ndsvrp.policy.config import NetworkConfig
from ndsvrp.train.config import Recipe, Validation

PRESET = "paper"  #: of every search with the policy
PROBLEMS = published.PROBLEMS
MIDDLE = 500  #: the size of the ablations
SECONDS = published.SECONDS  #: per instance, by size (section 5.2)
SIZES = tuple(SECONDS)  #: of the paper


@dataclass(frozen=True, kw_only=True)
class ShortTraining:
    """Training that is much shorter than the paper's, equally long for every policy that is compared."""

    network: NetworkConfig
    recipe: Recipe
    validation: Validation  #: of trainings whose curves are shown; others are validated at the end only

    @property
    def note(self) -> str:
        """How long it is."""
        steps = self.recipe.instances // self.recipe.batch * self.recipe.iterations
        return f"trained on {self.recipe.instances:,} instances each ({steps:,} steps)"


@dataclass(frozen=True, kw_only=True)
class Scale:
    """What is run. Sizes are those of the paper; `customers` says which size stands for each of them."""

    name: str
    text: str
    customers: Mapping[int, int]  #: by size of the paper; a size that is not there is not run
    tests: Mapping[int, int]  #: test instances, by size
    table_sizes: tuple[int, ...]  #: of the main table
    trained_sizes: tuple[int, ...]  #: of trainings
    share: float  #: of the paper's seconds in the main table
    short_share: float  #: of the paper's seconds in the other experiments with a time limit
    limits: Mapping[int, tuple[float, ...]]  #: of runtime-limits, by size: seconds of the paper
    limit_tests: int  #: instances of runtime-limits
    validation: int  #: instances of the ablations
    iterations: tuple[int, int]  #: of the ablations: without and with prizes
    chains: tuple[int, int]  #: of the ablations: without and with prizes
    together: int  #: instances of the ablations that are searched side by side
    hyperparameters: Mapping[str, tuple[float, ...]]  #: values of chains, rollouts and threshold
    hyper_tests: int
    distribution_tests: int  #: instances of each distribution
    steps: int  #: iterations of scalability
    growing: tuple[int, ...]  #: customers of scalability
    training: ShortTraining | None  #: None: the paper's configurations
    settings: Mapping[str, Any] = field(default_factory=dict)  #: changes of the preset
    table_tests: int | None = None  #: test instances of the main table and of generalization-size; None: all
    threads: int | None = None  #: cores of our searches and trainings on a CPU, unless given; None: all

    def sizes(self, *wanted: int) -> list[int]:
        """Return the wanted sizes that are run, all by default."""
        return [size for size in wanted or SIZES if size in self.customers]

    def pick(self, problem: str, pair: tuple[int, int]) -> int:
        """Return the number for problems without or with prizes."""
        return pair[problem == "pcvrp"]


_LIMITS = {
    100: (2.0, 5.0, 15.0, 30.0, 60.0), 500: (15.0, 30.0, 60.0, 120.0, 250.0),
    1000: (30.0, 60.0, 120.0, 240.0, 480.0), 2000: (60.0, 120.0, 240.0, 480.0, 960.0),
}  # fmt: skip
_HYPERPARAMETERS: dict[str, tuple[float, ...]] = {
    "chains": (1, 2, 4, 8, 16, 32), "rollouts": (100, 150, 200, 250, 300), "threshold": (1, 5, 10, 15, 20, 30),
}  # fmt: skip

PAPER = Scale(
    name="paper", text="the paper's protocol: weeks of one GPU for the trainings, days for the searches",
    customers={size: size for size in SIZES}, tests={100: 10_000, 500: 250, 1000: 250, 2000: 250},
    table_sizes=SIZES, trained_sizes=SIZES, share=1.0, short_share=1.0, limits=_LIMITS, limit_tests=100,
    validation=250, iterations=(1000, 50), chains=(8, 128), together=1,
    hyperparameters=_HYPERPARAMETERS, hyper_tests=128, distribution_tests=128,
    steps=100, growing=(100, 200, 500, 1000, 2000), training=None,
)  # fmt: skip

SMALL = Scale(
    name="small", text="minutes of one GPU: the paper's test sets, few instances, short trainings",
    customers=PAPER.customers, tests={100: 4, 500: 2, 1000: 1, 2000: 1},
    table_sizes=SIZES, trained_sizes=(100, 500, 1000), share=0.02, short_share=0.01,
    limits={size: _LIMITS[size][::2] for size in (100, 500, 1000)}, limit_tests=1,
    validation=8, iterations=(250, 25), chains=(8, 64), together=8,
    hyperparameters={"chains": (1, 4, 8, 16, 32), "rollouts": (100, 200, 300), "threshold": (1, 15, 30)},
    hyper_tests=2, distribution_tests=2,
    steps=30, growing=PAPER.growing,
    training=ShortTraining(
        network=NetworkConfig.paper(),
        recipe=Recipe(
            instances=20 * 64, batch=64, iterations=50, learning_rate=3e-4, warm_up_steps=50, horizon=1000,
            average=0.99, checkpoint_seconds=1e9,
        ),
        validation=Validation(every=5, states=16, search_instances=2, search_iterations=10),
    ),
)  # fmt: skip

SMOKE = Scale(
    name="smoke", text="seconds on a CPU: every step once, on tiny problems; its numbers mean nothing",
    customers={100: 100, 500: 24}, tests={100: 2, 500: 1},
    table_sizes=(100,), trained_sizes=(100, 500), share=0.01, short_share=0.001,
    limits={500: (15.0, 60.0)}, limit_tests=1,
    validation=2, iterations=(2, 1), chains=(2, 4), together=2,
    hyperparameters={"chains": (1, 2), "rollouts": (4, 8), "threshold": (1, 15)}, hyper_tests=1,
    distribution_tests=1, steps=2, growing=(20, 40, 80),
    training=ShortTraining(
        network=NetworkConfig.paper(
            width=8, heads=2, feed_forward=8, layers_before=1, layers_after=1, seed_bits=3, seed_width=4
        ),
        recipe=Recipe(
            instances=4, batch=2, iterations=2, rollouts=4, removals=5, orders=1, start_rounds=2, improvement_steps=1,
            warm_up_rollouts=4, average=0.5,
        ),
        validation=Validation(every=1, states=2, search_instances=1, search_iterations=1, search_chains=1),
    ),
    settings={"chains": 2, "rollouts": 8, "removals": 5, "orders": 2}, table_tests=1, threads=1,
)  # fmt: skip

SCALES = {scale.name: scale for scale in (SMOKE, SMALL, PAPER)}
