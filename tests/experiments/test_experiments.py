"""Parts of the experiments: published figures, protocols, ruins, rows, the command."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from ndsvrp import generate, solve
from ndsvrp.cli import app
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.errors import InstanceError, NdsError
from ndsvrp.experiments.catalogue import EXPERIMENTS, Experiment
from ndsvrp.experiments.context import Context, Findings
from ndsvrp.experiments.published import difference, published
from ndsvrp.experiments.rows import read_rows
from ndsvrp.experiments.ruins import ShuffledPolicy, StringSets, nearest, string_sets
from ndsvrp.experiments.run import run
from ndsvrp.experiments.runtime_limits import augmentations
from ndsvrp.experiments.scales import PAPER, PROBLEMS, SIZES, SMALL, SMOKE
from ndsvrp.experiments.searches import Limit, Series, search
from ndsvrp.experiments.sets import test_cases as cases_of
from ndsvrp.experiments.summaries import summarise
from ndsvrp.experiments.trainings import MIXED, WITHOUT, Training, log_of, reference, short_config, trained
from ndsvrp.io.environment import usable_cores
from ndsvrp.search.start import start
from ndsvrp.train.config import read_config

ROOT = Path(__file__).parents[2]

ABLATIONS = """
architecture        | MPL and TEL    | 36.81 47.68 42.96
architecture        | without TEL    | 36.82 47.75 43.13
architecture        | without MPL    | 36.81 47.74 42.98
architecture        | without both   | 36.87 47.87 43.62
insertion-order     | DNN and random | 36.81 47.68 42.96
insertion-order     | random         | 36.86 47.76 43.05
policy-vs-heuristic | DNN            | 36.81 47.68 42.96
policy-vs-heuristic | heuristic      | 37.03 48.16 43.61
"""
DISTRIBUTION = """
HGS       | 91.73 -     | 47.89 -     | 88.20 -     | 44.53 -
SISRs     | 91.34 -0.38 | 47.79 -0.17 | 87.78 -0.48 | 44.31 -0.49
NDS (OOD) | 91.15 -0.59 | 47.70 -0.36 | 87.75 -0.53 | 44.29 -0.54
NDS (ID)  | 91.14 -0.59 | 47.69 -0.38 | 87.70 -0.58 | 44.26 -0.60
"""
SIZE = """
cvrp  | HGS       | 15.57 -     | 41.51 -     | 57.38  -
cvrp  | NDS (ID)  | 15.57 0.04  | 41.11 -0.90 | 56.00  -2.34
cvrp  | NDS (OOD) | 15.59 0.13  | 41.32 -0.45 | 57.63  0.43
vrptw | PyVRP     | 12.98 -     | 90.35 -     | 173.46 -
vrptw | NDS (ID)  | 12.95 -0.19 | 87.54 -3.14 | 167.48 -3.50
vrptw | NDS (OOD) | 12.97 -0.00 | 87.54 -3.11 | 167.76 -3.28
pcvrp | PyVRP     | 10.11 -     | 84.91 -     | 165.56 -
pcvrp | NDS (ID)  | 9.90  -2.07 | 80.99 -4.71 | 158.09 -4.60
pcvrp | NDS (OOD) | 9.96  -1.50 | 81.05 -4.55 | 160.20 -3.24
"""


def lines(text: str) -> list[list[str]]:
    return [[part.strip() for part in line.split("|")] for line in text.strip().splitlines()]


def test_published_ablations() -> None:
    """Typed from the printed tables, row by row."""
    typed: dict[str, dict[tuple[str, str], float]] = {}
    for name, series, costs in lines(ABLATIONS):
        for problem, cost in zip(PROBLEMS, costs.split(), strict=True):
            typed.setdefault(name, {})[problem, series] = float(cost)
    for name, figures in typed.items():
        assert {where: entry.cost for where, entry in published(name).items()} == figures


def test_published_generalization() -> None:
    typed: dict[tuple[str, str], tuple[float, float | None]] = {}
    columns = ("uniform-low", "uniform-high", "clustered-low", "clustered-high")
    for series, *cells in lines(DISTRIBUTION):
        for column, cell in zip(columns, cells, strict=True):
            cost, gap = cell.split()
            typed[column, series] = float(cost), None if gap == "-" else float(gap)
    assert {k: (v.cost, v.gap) for k, v in published("generalization-distribution").items()} == typed
    typed = {}
    for problem, series, *cells in lines(SIZE):
        for size, cell in zip((100, 1000, 2000), cells, strict=True):
            cost, gap = cell.split()
            typed[f"{problem}{size}", series] = float(cost), None if gap == "-" else float(gap)
    assert {k: (v.cost, v.gap) for k, v in published("generalization-size").items()} == typed
    assert difference("generalization-size", "cvrp2000", "NDS (OOD)", "HGS") == 0.43  # as printed
    assert difference("insertion-order", "pcvrp", "random", "DNN and random") == pytest.approx(
        100 * (43.05 / 42.96 - 1)
    )
    assert difference("insertion-order", "pcvrp", "DNN and random", "DNN and random") is None
    figures = published("scalability")
    assert (figures["1000", "time"].cost, figures["1000", "memory"].cost) == (1.61, 1.23)


def test_protocol_of_the_paper() -> None:
    assert (PAPER.iterations, PAPER.chains) == ((1000, 50), (8, 128))
    assert PAPER.pick("vrptw", PAPER.iterations) == 1000 and PAPER.pick("pcvrp", PAPER.chains) == 128
    assert PAPER.sizes() == list(SIZES) and PAPER.share == PAPER.short_share == 1.0 and not PAPER.settings
    assert (PAPER.limits[500][0], PAPER.limits[500][-1]) == (15.0, 250.0)
    assert (PAPER.limits[100][0], PAPER.limits[2000][-1]) == (2.0, 960.0)


@pytest.mark.parametrize("problem, size, seconds, chains", [
    ("cvrp", 2000, 960, None), ("vrptw", 1000, 240, None), ("pcvrp", 100, 60, None), ("pcvrp", 500, 250, None),
    ("pcvrp", 1000, 120, None), ("pcvrp", 1000, 240, 256), ("pcvrp", 1000, 480, 256), ("pcvrp", 2000, 60, 64),
    ("pcvrp", 2000, 240, 64), ("pcvrp", 2000, 480, None), ("pcvrp", 2000, 960, 256),
])  # fmt: skip
def test_augmentations_of_runtime_limits(problem: str, size: int, seconds: float, chains: int | None) -> None:
    assert augmentations(problem, size, seconds) == chains


def context(tmp_path: Path, scale=SMALL, **more) -> Context:
    return Context(scale, tmp_path, "architecture", **more)


def test_every_training_of_the_paper_has_a_configuration(tmp_path: Path) -> None:
    here = context(tmp_path, PAPER)
    wanted = [reference(here, problem, size) for problem in PROBLEMS for size in SIZES]
    wanted += [reference(here, problem, without=without) for problem in PROBLEMS for without in WITHOUT]
    names = (MIXED, "uniform-low", "uniform-high", "clustered-low", "clustered-high")
    wanted += [Training("cvrp", distribution=name) for name in names]
    assert len({training.name for training in wanted}) == 12 + 12 + 5
    for training in wanted:
        config = read_config(ROOT / f"configs/paper/{training.name}.toml")
        assert SMALL.training is not None
        short = short_config(training, SMALL.training, here)
        assert config.data == short.data, training.name
        for field in ("message_passing", "tour_encoding", "distance_term"):
            assert getattr(config.network, field) == getattr(short.network, field), training.name
        assert (config.train.improvement_steps == 0) == (short.train.improvement_steps == 0)


def test_models_of_the_user(tmp_path: Path) -> None:
    """They are taken by name."""
    given = tmp_path / "given"
    (given / "ablations/all-without-both").mkdir(parents=True)
    here = context(tmp_path / "out", given=given)
    assert trained(here, reference(here, "cvrp", without="both")) == given / "ablations/all-without-both"
    with pytest.raises(NdsError, match=r"configs/paper/cvrp-500\.toml: no such configuration.*--models"):
        trained(context(tmp_path / "out", PAPER, configs=tmp_path / "configs/paper"), Training("cvrp"))


def test_training_for_2000_customers_continues_that_for_1000(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def train(config, folder, **how):
        calls.append((config.data[0].customers, folder.name, how["init"], config.train.init, how["resume"]))
        (folder / "checkpoint-000000064").mkdir(parents=True)
        (folder / "log.jsonl").write_text('{"kind": "end", "stopped": "instances"}\n')
        return SimpleNamespace(stopped="instances")

    monkeypatch.setattr("ndsvrp.experiments.trainings.train", train)
    here = context(tmp_path, PAPER, configs=ROOT / "configs/paper")
    weights = str(tmp_path / "models/paper/vrptw-1000/checkpoint-002250048")
    for _ in range(2):  # what is finished is not trained again
        assert trained(here, Training("vrptw", 2000)) == tmp_path / "models/paper/vrptw-2000"
        assert calls == [((1000,), "vrptw-1000", "", "", False), ((2000,), "vrptw-2000", weights, "", False)]
    told: list[str] = []
    here.tell = told.append
    (tmp_path / "models/paper/cvrp-500/checkpoint-001500032").mkdir(parents=True)
    assert trained(here, Training("cvrp", 500), early=True).name == "checkpoint-001500032"
    assert calls[-1][4]  # it had a checkpoint, and goes on
    assert trained(here, Training("vrptw", 1000), early=True).name == "vrptw-1000"
    assert "the last one stands for it" in told[-1]


def test_models_of_two_scales_in_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy for 500 customers is trained on 24 at the scale smoke, under the same name."""

    def train(config, folder, **how):
        (folder / "checkpoint-000000064").mkdir(parents=True)
        (folder / "log.jsonl").write_text('{"kind": "end", "stopped": "instances"}\n')
        sizes.append(config.data[0].customers)
        return SimpleNamespace(stopped="instances")

    sizes: list[tuple[int, ...]] = []
    monkeypatch.setattr("ndsvrp.experiments.trainings.train", train)
    folders = [trained(here := context(tmp_path, scale), reference(here, "cvrp")) for scale in (SMOKE, SMALL, SMOKE)]
    assert folders == [tmp_path / f"models/{scale}/all-500" for scale in ("smoke", "small", "smoke")]
    assert sizes == [(24,), (500,)]


def test_a_log_that_a_crash_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training goes on after it; the first row of the next run is appended to the incomplete line."""
    folder = tmp_path / "models/smoke/all-500"
    (folder / "checkpoint-000000064").mkdir(parents=True)
    first, end = '{"kind": "run", "resumed": false}\n', '{"kind": "end", "stopped": "instances"}\n'
    (folder / "log.jsonl").write_text(first + '{"kind": "ba')
    resumed: list[bool] = []

    def train(config, folder, **how):
        resumed.append(how["resume"])
        with (folder / "log.jsonl").open("a") as stream:
            stream.write('{"kind": "run", "resumed": true}\n' + end)
        return SimpleNamespace(stopped="instances")

    monkeypatch.setattr("ndsvrp.experiments.trainings.train", train)
    here = context(tmp_path, SMOKE)
    for _ in range(2):
        assert [row["kind"] for row in log_of(here, reference(here, "cvrp"))] == ["run", "end"]
        assert resumed == [True]


def test_cpu_seconds_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two instances that are searched side by side have an equal share of them."""
    clock = iter([1.0, 4.0])
    monkeypatch.setattr("ndsvrp.experiments.searches.time", SimpleNamespace(process_time=lambda: next(clock)))
    here = context(tmp_path, SMOKE)
    rows = search(here, cases_of(here, "cvrp", 100), Series("strings", "", "strings"), [Limit(iterations=1)], 2)
    assert [row["cpu_seconds"] for row in rows] == [1.5, 1.5]


def test_another_number_of_threads_is_another_run(tmp_path: Path) -> None:
    run = {"set": "cvrp100", "instance": "0", "solver": "nds", "seed": 1, "budget": 1.0}
    one, two = context(tmp_path, threads=1), context(tmp_path, threads=2)
    assert (one.own_threads, two.own_threads, context(tmp_path, device="cuda").own_threads) == (1, 2, 1)
    assert context(tmp_path).own_threads == usable_cores()  # all of them, not one
    one.rows.add(run | {"threads": 1, "cost": 9.0})
    assert one.rows.find(run | {"threads": 1}) is not None
    assert two.rows.find(run | {"threads": 2}) is None
    two.rows.add(run | {"threads": 2, "cost": 8.0})
    one.rows.reload()
    assert [one.rows.find(run | {"threads": n})["cost"] for n in (1, 2)] == [9.0, 8.0]


def test_sets(tmp_path: Path) -> None:
    """Those of the paper; a folder with another number of instances is refused."""
    cases = cases_of(context(tmp_path), "vrptw", 100, 2)
    assert [case.set for case in cases] == ["vrptw100"] * 2 and cases[1].load().customers == 100
    with pytest.raises(InstanceError, match=r"vrptw100\.npz: has 4 instances, the scale paper 10000: .*--out"):
        cases_of(context(tmp_path, PAPER), "vrptw", 100)


@pytest.fixture(scope="module", params=["cvrp", "pcvrp"])
def drawn(request):
    """A problem, the view of two solutions, and 400 sets of strings of each."""
    (problem,) = generate(request.param, 120, seed=4)
    engine = CpuEngine()
    state = start(engine, [problem], np.zeros(2, np.int32), 1, rounds=30)
    view = engine.view(state)
    random = np.random.default_rng(1)
    around = nearest(problem)[random.integers(1, 121, (2, 400))]
    return problem, view, around, strings_of(view, around, random)


def strings_of(view, around, random):
    arrays = (torch.as_tensor(part).long() for part in (view.previous, view.route, around))
    return string_sets(*arrays, 64, random).numpy()


def test_string_sets(drawn) -> None:
    """Each set has customers of routes near its seed, at most one stretch or a split one of each route."""
    _, view, around, sets = drawn
    sizes = []
    for chain in range(2):
        route, previous = view.route[chain], view.previous[chain]
        for near, row in zip(around[chain], sets[chain], strict=True):
            customers = row[row > 0]
            sizes.append(len(customers))
            assert not row[len(customers) :].any() and len(set(customers)) == len(customers) > 0
            touched = [r for r in dict.fromkeys(route[customers]) if r >= 0]
            first = [r for r in dict.fromkeys(route[near]) if r >= 0]
            assert set(touched) == set(first[: len(touched)])  # the nearest routes
            for r in touched:
                removed = {int(c) for c in customers if route[c] == r}
                assert len(removed) <= 10
                begins = [c for c in removed if previous[c] not in removed]
                assert len(begins) <= 2  # one string, or one with a stretch that stays
    assert np.mean(sizes) == pytest.approx(15.0, abs=2.0)
    assert min(sizes) < 8 and max(sizes) > 25


def test_strings_of_a_seed_are_the_same(drawn) -> None:
    _, view, around, sets = drawn
    random = np.random.default_rng(1)
    random.integers(1, 121, (2, 400))
    assert np.array_equal(strings_of(view, around, random), sets)


def test_string_sets_in_a_search() -> None:
    """The engine takes removals of different lengths, and they improve a solution."""
    (problem,) = generate("vrptw", 60, seed=2)
    first, last = (
        solve(
            problem,
            iterations=n,
            solver="nds",
            preset="paper",
            ruin=StringSets(),
            removals=64,
            chains=2,
            seed=1,
            threads=1,
        )
        for n in (1, 20)
    )
    assert last.cost < first.cost and last.report.feasible


def test_shuffled_policy() -> None:
    """The same customers, in another order."""
    customers = np.arange(1, 241, dtype=np.int32).reshape(2, 8, 15)
    policy = SimpleNamespace(expected_seconds=lambda: 0.5)
    ruin = ShuffledPolicy(lambda request: customers)
    removed = ruin(SimpleNamespace(random=np.random.default_rng(3)))
    assert np.array_equal(np.sort(removed, axis=-1), customers) and not np.array_equal(removed, customers)
    ruin.policy = policy
    assert ruin.expected_seconds() == 0.5


def test_differences_are_paired() -> None:
    def row(series: str, instance: str, cost: float, budget: float = 1.0):
        return {"set": "s", "series": series, "instance": instance, "cost": cost, "budget": budget, "feasible": True,
                "seconds": 1.0}  # fmt: skip

    rows = [row("a", "0", 10), row("a", "1", 20), row("b", "0", 11), row("b", "1", 21), row("b", "2", 99)]
    first, second = summarise(rows, "a")
    assert (first.cost, first.difference) == (15.0, None)
    assert (second.instances, second.difference, second.error) == (3, pytest.approx(7.5), pytest.approx(2.5))
    rows += [row("a", "0", 8, 5.0), row("a", "1", 16, 5.0)]
    assert [line.difference for line in summarise(rows, "a", longest=True)] == [
        pytest.approx(25.0), pytest.approx(100 * (11 / 8 + 21 / 16 - 2) / 2), None,
    ]  # fmt: skip


def test_broken_rows(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    good = '{"set": "s", "instance": "0", "solver": "nds", "hardware": {"cpu": "c"}}\n'
    file.write_text(good + good[:30])
    assert len(read_rows(file)) == 1  # cut off by a crash
    for text, message in (
        (good[:30] + "\n" + good, r"rows\.jsonl:1: not a result row"),
        (good + "[1]\n", r"rows\.jsonl:2: not a result row"),
        (good.replace('"0"', "0"), r"rows\.jsonl:1: instance: is missing or of another type"),
    ):
        file.write_text(text)
        with pytest.raises(InstanceError, match=message):
            read_rows(file)
    assert read_rows(tmp_path / "none.jsonl") == []


def test_a_failed_experiment_does_not_end_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(self):
        def run_it(here):
            if self.name == "rollouts":
                raise NdsError("no rollouts today")
            return Findings([], {})

        return run_it

    monkeypatch.setattr(Experiment, "load", load)
    told: list[str] = []
    with pytest.raises(NdsError, match="no rollouts today"):
        run(["rollouts", "scalability"], "smoke", tmp_path, tell=told.append)
    assert "rollouts failed: no rollouts today" in told
    assert (tmp_path / "scalability/table.md").exists() and not (tmp_path / "rollouts/table.md").exists()


def nds(*args: str, code: int = 0) -> str:
    answer = CliRunner().invoke(app, ["experiment", *args], prog_name="nds")
    assert answer.exit_code == code, answer.output
    return answer.stdout if code == 0 else answer.stderr


def test_list() -> None:
    assert [line.split()[0] for line in nds().splitlines()] == list(EXPERIMENTS)
    assert nds("list") == nds() and len(EXPERIMENTS) == 12


@pytest.mark.parametrize("args, message", [
    (["main"], "unknown experiment 'main' (known: main-table, runtime-limits,"),
    (["rollouts", "--scale", "big"], "unknown scale 'big' (known: smoke, small, paper)"),
    (["rollouts", "--device", "tpu"], "--device: one of auto, cpu, cuda, not 'tpu'"),
    (["rollouts", "--baselines", "lkh"], "unknown baseline 'lkh' (known: hgs, pyvrp, sisr)"),
    (["main-table", "--models", "nix"], "--models: nix: no such folder"),
    (["main-table", "--scale", "paper", "--models", "nix"], "--models: nix: no such folder"),
    (["main-table", "--scale", "paper", "--configs", "nix"], "--configs: nix: no such folder; the scale paper trains"),
    (["main-table", "--configs", "nix"], "--configs: nix: no such folder"),
])  # fmt: skip
def test_refusals(tmp_path: Path, args: list[str], message: str) -> None:
    assert message in nds(*args, "--out", str(tmp_path / "out"), code=2)
    assert not (tmp_path / "out").exists()


def test_configurations_are_needed_only_to_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside a checkout the scale paper needs models or configurations."""
    monkeypatch.setattr(Experiment, "load", lambda self: lambda here: Findings([], {}))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NdsError, match=r"^--configs: configs/paper: no such folder; .*\(run in a checkout, or give"):
        run(["rollouts"], "paper", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    run(["rollouts"], "smoke", tmp_path / "out")
    run(["rollouts"], "paper", tmp_path / "out", models_folder=tmp_path)


def test_a_page_for_every_experiment() -> None:
    pages = {page.stem: page.read_text() for page in (ROOT / "docs/experiments").glob("*.md")}
    assert set(pages) == {*EXPERIMENTS, "README"}
    for name in EXPERIMENTS:
        assert f"nds experiment {name}" in pages[name] and f"({name}.md)" in pages["README"]
