"""Configurations of training runs: what a file means, and what is said of one that is wrong."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from ndsvrp.errors import NdsError
from ndsvrp.policy import NetworkConfig
from ndsvrp.train.config import Recipe, Source, TrainConfig, Validation, from_tables, read_config
from ndsvrp.train.data import Share

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(text: str, name: str = "run.toml") -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    return write


def refusal(file: Path) -> str:
    with pytest.raises(NdsError) as caught:
        read_config(file)
    message = str(caught.value)
    assert message.startswith(f"{file}: ") and "\n" not in message
    return message.removeprefix(f"{file}: ")


# --- defaults --------------------------------------------------------------------------------------------


def test_an_empty_file_is_the_defaults(write: Any) -> None:
    assert read_config(write("")) == TrainConfig()
    assert TrainConfig() == TrainConfig(
        network=NetworkConfig(), train=Recipe(), validation=Validation(), data=(Source(),)
    )


def test_default_recipe() -> None:
    """The stabilised recipe of the design."""
    recipe = Recipe()
    assert (recipe.warm_up, recipe.scale_advantage, recipe.schedule) == ("related", True, "cosine")
    assert (recipe.learning_rate, recipe.warm_up_steps, recipe.clip_gradient) == (1.5e-4, 100, 1.0)
    assert (recipe.rollouts, recipe.removals, recipe.orders, recipe.improvement_steps) == (128, 15, 5, 10)
    assert 0 < recipe.average < 1 and recipe.step_every >= 1
    assert NetworkConfig().distance_term
    assert Source() == Source(problem="cvrp", customers=(100,), layout="", customers_per_route=(), weight=1.0)


def test_a_file(write: Any) -> None:
    config = read_config(
        write("""
            [network]
            width = 16
            heads = 2
            distance_term = false
            [train]
            seed = 7
            learning_rate = 1e-3
            keep = [640, 1280]
            warm_up = "policy"
            [validation]
            every = 5
            [[data]]
            problem = "vrptw"
            customers = [20, 50]
            [[data]]
            problem = "pcvrp"
            layout = "uniform"
            customers_per_route = [5, 12.5]
            weight = 0.5
        """)
    )
    assert config.network == NetworkConfig(width=16, heads=2, distance_term=False)
    assert config.train == Recipe(seed=7, learning_rate=1e-3, keep=(640, 1280), warm_up="policy")
    assert config.validation == Validation(every=5)
    assert config.data == (
        Source(problem="vrptw", customers=(20, 50)),
        Source(problem="pcvrp", layout="uniform", customers_per_route=(5, 12.5), weight=0.5),
    )


def test_as_dict_and_back() -> None:
    config = TrainConfig(
        network=NetworkConfig(width=32, tour_aggregate="sum"),
        train=Recipe(seed=9, keep=(5, 6), init="a/model"),
        validation=Validation(seed=8, states=3),
        data=(Source(customers=(10, 20)), Source(problem="pcvrptw", customers_per_route=(3.5, 8.0), weight=2.0)),
    )
    tables = config.as_dict()
    assert from_tables(tables, "here") == config
    assert from_tables(json.loads(json.dumps(tables)), "here") == config, "also when written down in between"
    assert tables["train"] == asdict(config.train)


@pytest.mark.parametrize("file", sorted(CONFIGS.glob("*.toml")), ids=lambda file: file.stem)
def test_configurations_that_come_with_the_program(file: Path) -> None:
    config = read_config(file)
    assert from_tables(config.as_dict(), "here") == config
    assert config.network.distance_term == (not file.stem.endswith("plain"))


@pytest.mark.parametrize("problem", ["cvrp", "vrptw", "pcvrp"])
def test_configurations_for_a_gpu(problem: str) -> None:
    """One recipe for three problems; batches of any size hold about as many customers; half of all have 500."""
    config = read_config(CONFIGS / f"{problem}.toml")
    assert config.train == read_config(CONFIGS / "cvrp.toml").train
    assert {source.problem for source in config.data} == {problem}
    assert {source.where() for source in config.data} == {"uniform", "clustered"}
    whole = Share.of(config.train.batch, 0, 1)
    sizes = {n: whole.halved(n, config.train.batch_customers).batch for n in (100, 200, 500, 1000)}
    assert sizes == {100: 512, 200: 512, 500: 256, 1000: 128}
    chances = dict.fromkeys(sizes, 0.0)
    for source in config.data:
        for n in source.customers:
            chances[n] += source.weight / 8 / len(source.customers)
    assert chances == pytest.approx({100: 5 / 32, 200: 5 / 32, 500: 17 / 32, 1000: 5 / 32})


# --- changes ---------------------------------------------------------------------------------------------


def test_changes_go_before_the_file(write: Any) -> None:
    write("[train]\nbatch = 4\nseed = 5\n", "base.toml")
    file = write('extends = "base.toml"\n[train]\nrollouts = 20\n')
    changes = ("train.batch=8", "train.learning_rate=1e-4", "train.schedule=constant", "validation.customers=[100]")
    config = read_config(file, changes)
    assert config.train == Recipe(batch=8, seed=5, rollouts=20, learning_rate=1e-4, schedule="constant")
    assert config.validation == Validation(customers=(100,)) and config.data == (Source(),)
    assert read_config(file, ("train.batch=8", "train.batch=16")).train.batch == 16
    assert (
        read_config(file, ('train.schedule="constant"', "network.distance_term=false")).network.distance_term is False
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("batch=32", "--set: 'batch=32' is not like train.batch=32"),
        ("train.batch", "--set: 'train.batch' is not like train.batch=32"),
        ("train.a.b=1", "--set: 'train.a.b=1' is not like train.batch=32"),
        ("train.batch=x", "FILE with --set: train: batch must be a whole number, got 'x'"),
        ("train.batches=1", "FILE with --set: train: unknown field 'batches' (known: "),
        ("trains.batch=1", "FILE with --set: unknown table 'trains' (known: network, train, validation, data)"),
        ("data.weight=1", "FILE with --set: data must be a list of tables: [[data]]"),
    ],
)
def test_changes_that_are_refused(write: Any, change: str, message: str) -> None:
    file = write("")
    with pytest.raises(NdsError) as caught:
        read_config(file, (change,))
    assert str(caught.value).startswith(message.replace("FILE", str(file)))


# --- extends ---------------------------------------------------------------------------------------------


def test_extends(write: Any) -> None:
    """Tables are merged field by field, over several files and folders; the curriculum is taken as a whole."""
    write('[train]\nseed = 5\nbatch = 32\nrollouts = 10\n[network]\nwidth = 64\n[[data]]\nproblem = "vrptw"\n'
          '[[data]]\nproblem = "pcvrp"\n', "base.toml")  # fmt: skip
    write('extends = "../base.toml"\n[train]\nbatch = 16\n[validation]\nevery = 3\n', "paper/middle.toml")
    file = write('extends = "middle.toml"\n[train]\nrollouts = 20\n[[data]]\ncustomers = [30]\n', "paper/last.toml")
    config = read_config(file)
    assert config.train == Recipe(seed=5, batch=16, rollouts=20)
    assert config.network == NetworkConfig(width=64)
    assert config.validation == Validation(every=3)
    assert config.data == (Source(customers=(30,)),)
    assert read_config(file.parent / "middle.toml").data == (Source(problem="vrptw"), Source(problem="pcvrp"))


def test_a_file_extended_twice_is_no_cycle(write: Any) -> None:
    write("[train]\nseed = 5\n", "base.toml")
    one = write('extends = "base.toml"\n', "one.toml")
    two = write('extends = "one.toml"\n[train]\nbatch = 2\n', "two.toml")
    assert read_config(one).train.seed == read_config(two).train.seed == 5


def test_extends_in_a_circle(write: Any, tmp_path: Path) -> None:
    itself = write('extends = "run.toml"\n')
    assert refusal(itself) == "extends itself"
    write('extends = "b.toml"\n', "a.toml")
    write('extends = "sub/../c.toml"\n', "b.toml")
    (tmp_path / "sub").mkdir()
    write('extends = "a.toml"\n', "c.toml")
    with pytest.raises(NdsError, match=r"a\.toml: extends itself"):
        read_config(tmp_path / "a.toml")


def test_extends_what_is_not_there(write: Any, tmp_path: Path) -> None:
    with pytest.raises(NdsError) as caught:
        read_config(write('extends = "no.toml"\n'))
    assert str(caught.value) == f"{tmp_path}/no.toml: no such file"
    assert refusal(write("extends = 3\n")) == "extends must be a path"


def test_error_in_a_file_that_is_extended(write: Any, tmp_path: Path) -> None:
    write("[train]\nbatch = \n", "base.toml")
    with pytest.raises(NdsError) as caught:
        read_config(write('extends = "base.toml"\n'))
    assert str(caught.value).startswith(f"{tmp_path}/base.toml: ")
    assert "line 2" in str(caught.value)


# --- errors ----------------------------------------------------------------------------------------------


def test_no_such_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no.toml") == "no such file"
    assert refusal(tmp_path) == "is a directory, not a file"


def test_not_toml(write: Any, tmp_path: Path) -> None:
    assert "line 1" in refusal(write("train = {\n"))
    (tmp_path / "latin.toml").write_bytes(b'init = "\xe9"\n')
    with pytest.raises(NdsError, match=r"latin\.toml:1: byte 0xe9 is not UTF-8 text"):
        read_config(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # names
        ("[model]\nwidth = 3", "unknown table 'model' (known: network, train, validation, data)"),
        ("seed = 3", "unknown table 'seed' (known: network, train, validation, data)"),
        ("[validation]\nrate = 3", "validation: unknown field 'rate' (known: every, seed, customers, states, "
         "search_instances, search_iterations, search_seconds, search_chains, held_back, keep_best)"),
        ("[[data]]\n[[data]]\nsize = 3", "data 2: unknown field 'size' (known: problem, customers, files, digest, "
         "layout, depot, customers_per_route, weight)"),
        # kinds of tables
        ("train = 3", "train must be a table"),
        ("[[network]]\nwidth = 8", "network must be a table"),
        ("[data]\ncustomers = [3]", "data must be a list of tables: [[data]]"),
        ("data = 3", "data must be a list of tables: [[data]]"),
        ("data = [3]", "data 1 must be a table"),
        ("data = []", "data must name at least one source of instances"),
        # types
        ("[train]\nbatch = 2.0", "train: batch must be a whole number, got 2.0"),
        ("[train]\nbatch = true", "train: batch must be a whole number, got True"),
        ("[train]\nhot = '1'", "train: hot must be a number, got '1'"),
        ("[train]\nscale_advantage = 1", "train: scale_advantage must be True or False, got 1"),
        ("[train]\nkeep = 3", "train: keep must be a list, got 3"),
        ("[[data]]\ncustomers = 50", "data 1: customers must be a list, got 50"),
        ("[[data]]\ncustomers = '50'", "data 1: customers must be a list, got '50'"),
        ("[[data]]\ncustomers = [50.0]", "data 1: customers must be a whole number, got 50.0"),
        ("[[data]]\ncustomers_per_route = ['a', 'b']", "data 1: customers_per_route must be a number, got 'a'"),
        # ranges
        ("[network]\nwidth = 0", "network: width must be between 1 and 4096, got 0"),
        ("[network]\nwidth = 20", "network: width must be a multiple of heads, got 20 and 8"),
        ("[train]\nbatch = 0", "train: batch must be between 1 and 1048576, got 0"),
        ("[train]\nlearning_rate = nan", "train: learning_rate must be between 0 and 1, got nan"),
        ("[train]\naverage = 1.0", "train: average must be between 0 and 0.999999, got 1.0"),
        ("[train]\nstep_every = -1", "train: step_every must be between 0 and 1048576, got -1"),
        ("[train]\nhot = 0.1\ncold = 0.2", "train: temperatures must satisfy 0 < cold <= hot, got 0.2 and 0.1"),
        ("[train]\ncold = 0.0", "train: temperatures must satisfy 0 < cold <= hot, got 0.0 and 0.1"),
        ("[validation]\nstates = 0", "validation: states must be between 1 and 5000, got 0"),
        ("[[data]]\nweight = 0.0", "data 1: weight must be between 1e-09 and 1e+09, got 0.0"),
        ("[[data]]\ncustomers = [20, 0]", "data 1: customers must be between 1 and 100000, got 0"),
        ("[[data]]\ncustomers = []", "data 1: customers must name at least one size"),
        ("[[data]]\ncustomers_per_route = [5]", "data 1: customers_per_route must be fewest and most, got [5]"),
        ("[[data]]\ncustomers_per_route = [9, 5]", "data 1: customers_per_route must be fewest and most, got [9, 5]"),
        ("[[data]]\ncustomers_per_route = [0.5, 5]",
         "data 1: customers_per_route must be fewest and most, got [0.5, 5]"),
        # words
        ("[train]\nwarm_up = 'random'", "train: warm_up must be one of related, policy, got 'random'"),
        ("[train]\nschedule = 'linear'", "train: schedule must be one of cosine, constant, got 'linear'"),
        ("[[data]]\nproblem = 'tsp'", "data 1: problem must be one of cvrp, vrptw, pcvrp, pcvrptw, got 'tsp'"),
        # seeds
        ("[train]\nseed = 1233", "train: seed 1233 belongs to the paper's test sets: train with another"),
        ("[train]\nseed = 1234", "train: seed 1234 belongs to the paper's test sets: train with another"),
        ("[validation]\nseed = 1234",
         "validation: validation seed 1234 belongs to the paper's test sets: take another"),
        ("[train]\nseed = 4\n[validation]\nseed = 4", "validation and training instances have the same seed 4"),
    ],
    ids=lambda text: text.replace("\n", " ")[:30] if isinstance(text, str) and "got" not in text else "",
)  # fmt: skip
def test_message(write: Any, text: str, message: str) -> None:
    assert refusal(write(text)) == message


def test_unknown_layout(write: Any) -> None:
    message = refusal(write("[[data]]\nlayout = 'grid'"))
    assert message.startswith("data 1: layout ") and "uniform, clustered" in message and "'grid'" in message


def test_depot(write: Any) -> None:
    file = write("[[data]]\nproblem = 'vrptw'\ndepot = 'cornered'")
    assert read_config(file).data == (Source(problem="vrptw", depot="cornered"),)
    message = refusal(write("[[data]]\ndepot = 'cornered'"))  # a uniform cvrp
    assert message == "data 1: depot is for clustered instances: the depot of uniform ones is anywhere"
    assert "'middle'" in refusal(write("[[data]]\nlayout = 'clustered'\ndepot = 'middle'"))


def test_unknown_field_of_the_recipe_lists_all(write: Any) -> None:
    message = refusal(write("[train]\nlr = 1e-3"))
    known = ", ".join(asdict(Recipe()))
    assert message == f"train: unknown field 'lr' (known: {known})"


@pytest.mark.parametrize(
    "text",
    [
        "[train]\nkeep = ['a']",
        "[train]\nkeep = [1.5]",
        "[train]\ninit = 3",
        "[train]\nhot = inf",
        "[[data]]\ncustomers_per_route = [5, inf]",
    ],
)
def test_what_would_break_the_run_later_is_refused_at_once(write: Any, text: str) -> None:
    field = text.split("\n")[1].split(" ")[0]
    assert field in refusal(write(text)) or "temperatures" in refusal(write(text))


def test_records_are_checked_without_a_file() -> None:
    with pytest.raises(NdsError, match="seed 1233 belongs to the paper's test sets"):
        Recipe(seed=1233)
    with pytest.raises(NdsError, match="same seed 2"):
        TrainConfig(train=Recipe(seed=2))
    with pytest.raises(NdsError, match="at least one source"):
        TrainConfig(data=())
