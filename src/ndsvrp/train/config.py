"""The configuration of a training run: frozen records, read from TOML. Defaults are stated here only.

A file may begin with `extends = "OTHER.toml"` (relative to itself) and state only differences. The tables `network`,
`train` and `validation` are merged field by field. The list `data`, the curriculum, is replaced as a whole.
"""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from ndsvrp.errors import InstanceError, NdsError
from ndsvrp.generate.config import TEST_SEEDS, DepotPosition, Layout, choose
from ndsvrp.io.tables import parse_toml, read_toml
from ndsvrp.policy.config import NetworkConfig
from ndsvrp.records import documented, require_record
from ndsvrp.search.settings import Scope, TemperatureScale
from ndsvrp.variants import VARIANTS

WarmUp = Literal["related", "policy"]
Acceptance = Literal["better", "always"]
Schedule = Literal["cosine", "constant"]


@dataclass(frozen=True, kw_only=True)
class Source:
    """An entry of the curriculum. The instances of a batch come from one source and have one size."""

    problem: str = documented("cvrp", "The variant: cvrp, vrptw, pcvrp, pcvrptw.")
    customers: tuple[int, ...] = documented(
        (100,), "Sizes N; a batch has one of them. A size listed twice is twice as likely."
    )
    files: str = documented(
        "", "Your own instances, a set or folder, to resample: problem is theirs, customers any. Empty: generated."
    )
    digest: str = documented("", "Digest of these instances: a run on other ones is refused. Empty: not checked.")
    layout: str = documented("", "Layout: uniform or clustered. Empty: the layout of the paper for this problem.")
    depot: str = documented("", "Depot of clustered instances: centred, cornered or random. Empty: centred.")
    customers_per_route: tuple[float, ...] = documented(
        (), "(fewest, most): each capacity is random and holds this many average customers. Empty: that of the layout."
    )
    weight: float = documented(1.0, "Probability of this source, relative to the others.")

    def __post_init__(self) -> None:
        require_record(self, SOURCE_RANGES)
        if self.files and (self.layout or self.depot or self.customers_per_route):
            raise NdsError("layout, depot and customers_per_route are for generated instances, not for files")
        if self.depot and self.where() != "clustered":
            raise NdsError("depot is for clustered instances: the depot of uniform ones is anywhere")
        if not self.customers:
            raise NdsError("customers must name at least one size")
        if self.customers_per_route and not (
            len(self.customers_per_route) == 2
            and 1 <= self.customers_per_route[0] <= self.customers_per_route[1] <= 100_000
        ):
            raise NdsError(f"customers_per_route must be fewest and most, got {list(self.customers_per_route)}")

    def where(self) -> str:
        """Return the layout; the one of the paper if it is empty."""
        return self.layout or VARIANTS[self.problem].layout


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The hyperparameters of training. The defaults are the stabilised recipe; `configs/paper` holds the paper's."""

    seed: int = documented(1, "Seed of instances, initial weights and rollouts.")
    instances: int = documented(1_000_000, "Instances after which the run ends.")
    batch: int = documented(64, "Instances per batch, over all processes.")
    batch_customers: int = documented(
        0,
        "Most customers in a batch. A batch with more is halved until it fits. 0: no limit.",
    )
    iterations: int = documented(25, "I: iterations per instance.")
    rollouts: int = documented(128, "K: rollouts per iteration and instance.")
    removals: int = documented(15, "M: customers per rollout (fewer if there are fewer).")
    orders: int = documented(5, "Insertion orders per rollout, the policy's first. The best of them counts.")
    scope: Scope = documented("touched", "Routes considered for insertion: those with removed customers, or all.")
    acceptance: Acceptance = documented(
        "better",
        "When the best rollout replaces the solution: if it is better, or always, as in Algorithm 1, line 17.",
    )
    start_rounds: int = documented(30, "Rounds that improve the start, each with a random quarter of the customers.")
    improvement_steps: int = documented(10, "J: improvement steps before training on an instance.")
    warm_up: WarmUp = documented("related", "Ruin of the improvement steps: related removal, or the policy itself.")
    warm_up_rollouts: int = documented(128, "Reconstructions per improvement step.")
    warm_up_orders: int = documented(0, "Insertion orders of the improvement steps. 0: as many as in training.")
    hot: float = documented(0.1, "Temperature of the first improvement step, for a bounding box of side 1.")
    cold: float = documented(0.001, "Temperature of the last improvement step.")
    temperature_scale: TemperatureScale = documented(
        "side", "Unit of the temperatures: the side of the bounding box, or absolute, the unit of lengths."
    )
    scale_advantage: bool = documented(True, "Divide the advantage by the mean best reward of the batch.")
    step_every: int = documented(1, "Iterations per optimizer step; gradients accumulate. 0: one step per batch.")
    learning_rate: float = documented(1.5e-4, "Highest learning rate of Adam.")
    weight_decay: float = documented(1e-6, "Weight decay of Adam.")
    clip_gradient: float = documented(1.0, "Largest norm of a gradient. 0: no limit.")
    warm_up_steps: int = documented(100, "Optimizer steps over which the learning rate rises, also after --init.")
    schedule: Schedule = documented("cosine", "Learning rate after that: cosine, down to final_rate, or constant.")
    horizon: int = documented(20_000, "Optimizer steps at which the cosine ends.")
    final_rate: float = documented(0.1, "Learning rate at the end of the cosine, relative to the highest.")
    average: float = documented(
        0.999,
        "Decay of the running mean of the weights, which is the model. 0: no mean.",
    )
    init: str = documented("", "Checkpoint or model with the initial weights. The option --init overrides it.")
    init_optimizer: bool = documented(
        False, "Take Adam's moments from the initial checkpoint too, not the weights alone."
    )
    checkpoint_seconds: float = documented(300.0, "Seconds between two checkpoints.")
    keep: tuple[int, ...] = documented((), "Numbers of instances whose checkpoints are never deleted.")

    def __post_init__(self) -> None:
        require_record(self, RECIPE_RANGES)
        if self.seed in TEST_SEEDS:
            raise NdsError(f"seed {self.seed} belongs to the paper's test sets: train with another")
        if not 0 < self.cold <= self.hot < float("inf"):
            raise NdsError(f"temperatures must satisfy 0 < cold <= hot, got {self.cold} and {self.hot}")


@dataclass(frozen=True, kw_only=True)
class Validation:
    """Measurements during training, on separate instances, always the same."""

    every: int = documented(50, "Batches between two validations. 0: only at the end.")
    seed: int = documented(2, "Seed of the validation instances.")
    customers: tuple[int, ...] = documented((), "Sizes for validation, a subset of those in the data. Empty: all.")
    states: int = documented(
        16, "Solutions per problem and size. Best-of-K rewards on them are compared with those of related removal."
    )
    search_instances: int = documented(4, "Instances per problem and size for the short search. 0: no search.")
    search_iterations: int = documented(10, "Iterations of that search, of policy and rules alike.")
    search_seconds: float = documented(0.0, "Seconds of that search instead, of policy and rules alike. 0: iterations.")
    search_chains: int = documented(2, "Chains of that search.")
    held_back: float = documented(
        0.25, "Share of your own instances that is not trained on. Searches on it show what the run gains."
    )
    keep_best: bool = documented(
        False, "Keep the weights with the lowest costs of short searches as the model, not the last ones."
    )

    def __post_init__(self) -> None:
        require_record(self, VALIDATION_RANGES)
        if self.seed in TEST_SEEDS:
            raise NdsError(f"validation seed {self.seed} belongs to the paper's test sets: take another")
        if self.keep_best and not self.search_instances:
            raise NdsError("keep_best compares short searches: search_instances must not be 0")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """A training run."""

    network: NetworkConfig = field(default_factory=NetworkConfig)
    train: Recipe = field(default_factory=Recipe)
    validation: Validation = field(default_factory=Validation)
    data: tuple[Source, ...] = field(default_factory=lambda: (Source(),))

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", tuple(self.data))
        sizes = {size for source in self.data for size in source.customers}
        if unknown := [size for size in self.validation.customers if size not in sizes]:
            raise NdsError(f"validation.customers: no data of {unknown[0]} customers")
        if not self.data:
            raise NdsError("data must name at least one source of instances")
        if self.validation.seed == self.train.seed:
            raise NdsError(f"validation and training instances have the same seed {self.train.seed}")

    def as_dict(self) -> dict[str, Any]:
        """Return plain tables, as in a file, for `from_tables`."""
        return asdict(self)


TABLES = {"network": NetworkConfig, "train": Recipe, "validation": Validation}


def read_config(file: Path, changes: Sequence[str] = ()) -> TrainConfig:
    """Read a run from a TOML file and the files that it extends, with changes such as `train.batch=32`."""
    tables = changed(_tables(file, ()), changes)
    return from_tables(tables, f"{file} with --set" if changes else str(file))


def changed(tables: dict[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """Return tables with changes such as `train.batch=32`."""
    for change in changes:
        tables = _merged(tables, _change(change))
    return tables


def from_tables(tables: dict[str, Any], where: str) -> TrainConfig:
    """Return the run that plain tables describe. `where` names their file in errors."""
    try:
        for name in tables:
            choose("table", name, (*TABLES, "data"))
        sources = tables.get("data", [{}])
        if not isinstance(sources, list | tuple):
            raise NdsError("data must be a list of tables: [[data]]")
        return TrainConfig(
            data=tuple(_record(Source, table, f"data {i + 1}") for i, table in enumerate(sources)),
            **{name: _record(kind, tables.get(name, {}), name) for name, kind in TABLES.items()},
        )
    except NdsError as error:
        raise NdsError(f"{where}: {error}") from None


def _record(kind: Any, table: Any, name: str) -> Any:
    if not isinstance(table, dict):
        raise NdsError(f"{name} must be a table")
    try:
        for given in table:
            choose("field", given, [f.name for f in fields(kind)])
        return kind(**table)
    except NdsError as error:
        raise NdsError(f"{name}: {error}") from None


def _tables(file: Path, seen: tuple[str, ...]) -> dict[str, Any]:
    place = os.path.realpath(file)
    if place in seen:
        raise NdsError(f"{file}: extends itself")
    tables = read_toml(file)
    if (base := tables.pop("extends", None)) is None:
        return tables
    if not isinstance(base, str):
        raise NdsError(f"{file}: extends must be a path")
    return _merged(_tables(file.parent / base, (*seen, place)), tables)


def _merged(base: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for name, value in more.items():
        mergeable = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = {**merged[name], **value} if mergeable else value
    return merged


def _change(text: str) -> dict[str, Any]:
    """Return `train.batch=32` as tables. It is a line of TOML in which words need no quotes."""
    name, sign, value = text.partition("=")
    for line in (text, f"{name}='{value.strip()}'") if sign and name.count(".") == 1 else ():
        try:
            return parse_toml(line)
        except InstanceError:
            pass
    raise NdsError(f"--set: '{text}' is not like train.batch=32")


SOURCE_RANGES: dict[str, tuple[Any, ...]] = {
    "problem": tuple(VARIANTS), "layout": ("", *get_args(Layout)), "depot": ("", *get_args(DepotPosition)),
    "customers": (1, 100_000), "weight": (1e-9, 1e9),
}  # fmt: skip
RECIPE_RANGES: dict[str, tuple[Any, ...]] = {
    "seed": (0, 2**62), "instances": (1, 2**40), "batch": (1, 2**20), "batch_customers": (0, 2**40),
    "iterations": (1, 2**20), "rollouts": (1, 2**20), "removals": (1, 2**20), "orders": (1, 64),
    "scope": get_args(Scope), "acceptance": get_args(Acceptance), "temperature_scale": get_args(TemperatureScale),
    "start_rounds": (0, 2**20), "improvement_steps": (0, 2**20), "warm_up": get_args(WarmUp),
    "warm_up_rollouts": (1, 2**20), "warm_up_orders": (0, 64), "step_every": (0, 2**20), "learning_rate": (0, 1),
    "weight_decay": (0, 1), "clip_gradient": (0, 1e9), "warm_up_steps": (0, 2**40), "schedule": get_args(Schedule),
    "horizon": (1, 2**40), "final_rate": (0, 1), "average": (0, 0.999999), "checkpoint_seconds": (0, 1e9),
}  # fmt: skip
VALIDATION_RANGES: dict[str, tuple[Any, ...]] = {
    "every": (0, 2**40), "seed": (0, 2**62), "states": (1, 5000), "search_instances": (0, 5000),
    "search_iterations": (1, 2**20), "search_seconds": (0, 1e6), "search_chains": (1, 2**20), "held_back": (0, 0.9),
}  # fmt: skip
