"""All experiments at the scale smoke: their files, and every figure computed again from the rows."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from ndsvrp import check, read
from ndsvrp.bench.cores import usable
from ndsvrp.bench.rows import read_rows as read_bench_rows
from ndsvrp.cli import app
from ndsvrp.experiments.catalogue import EXPERIMENTS
from ndsvrp.experiments.rows import read_rows
from ndsvrp.experiments.scales import PROBLEMS, SMOKE
from ndsvrp.solution import Solution

pytestmark = pytest.mark.slow
RESUMED = ("architecture", "runtime-limits", "initial-improvement")


def command(out: Path, name: str) -> str:
    jobs = min(2, len(usable()))
    answer = CliRunner().invoke(app, ["experiment", name, "--out", str(out), "--jobs", str(jobs)], prog_name="nds")
    assert answer.exit_code == 0, answer.output
    return answer.stdout


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder after `nds experiment all`."""
    folder = tmp_path_factory.mktemp("experiments")
    printed = command(folder, "all").splitlines()
    assert printed == [str(folder / name / "table.md") for name in EXPERIMENTS]
    return folder


@pytest.fixture
def rows(out: Path):
    return lambda name: read_rows(out / name / "rows.jsonl")


@pytest.fixture
def table(out: Path):
    """Cells of a table by title, below its head."""

    def cells(name: str, title: str = "Results") -> list[dict[str, str]]:
        text = (out / name / "table.md").read_text()
        lines = text.split(f"## {title}\n\n")[1].split("\n\n")[0].splitlines()
        head, _, *body = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
        return [dict(zip(head, line, strict=True)) for line in body]

    return cells


def test_files(out: Path) -> None:
    for name in EXPERIMENTS:
        folder = out / name
        ends = [f"-{problem}" for problem in PROBLEMS] if name == "rollouts" else [""]
        pictures = [f"{name}{end}{suffix}" for end in ends for suffix in (".png", ".svg")]
        assert sorted(path.name for path in folder.iterdir()) == sorted(["rows.jsonl", "table.md", *pictures])
        assert (folder / "table.md").read_text().startswith(f"# {name}\n")
        for picture in pictures:
            data = (folder / picture).read_bytes()
            if picture.endswith(".png"):
                assert data.startswith(b"\x89PNG\r\n")
            else:
                assert ElementTree.fromstring(data).tag.endswith("svg")


def mean_difference(rows, name: str, series: str, reference: str, solver: str = "series") -> tuple[float, float]:
    """Mean cost, and mean difference to the reference in percent, from rows alone."""
    costs = {
        who: {r["instance"]: r["cost"] for r in rows if r["set"] == name and r.get(solver) == who and "cost" in r}
        for who in (series, reference)
    }
    pairs = [100 * (cost / costs[reference][i] - 1) for i, cost in costs[series].items()]
    return fmean(costs[series].values()), fmean(pairs)


def test_main_table(out: Path, table) -> None:
    rows = read_bench_rows(out / "main-table" / "rows.jsonl")  # they are benchmark rows
    rows = [row | {"who": {"hgs": "HGS", "pyvrp": "PyVRP", "sisr": "SISRs"}.get(row["solver"], "NDS")} for row in rows]
    assert len(rows) == 3 * 4 and sum("skipped" in row for row in rows) == 2  # HGS is for the CVRP
    for line in table("main-table"):
        first = "HGS" if line["set"] == "cvrp100" else "PyVRP"
        cost, difference = mean_difference(rows, line["set"], line["series"], first, "who")
        assert line["mean cost"] == f"{cost:.4f}"
        if line["series"] != first:
            assert line["difference, %"].split(" ")[0] == f"{difference:+.2f}"
    beside = [line for line in table("main-table", "The paper's main table") if line["set"] == "cvrp100"]
    theirs = {line["solver"]: line for line in beside if line["source"] == "published"}
    assert (theirs["NDS"]["mean cost"], theirs["NDS"]["gap, %"]) == ("15.57", "+0.04")
    assert [line["solver"] for line in beside if line["source"] == "ours, 0.05 s"] == ["HGS", "PyVRP", "SISRs", "NDS"]
    nds = [row for row in rows if row["who"] == "NDS"]
    assert {row["settings"]["preset"] for row in nds} == {"paper"} and {row["budget"] for row in nds} == {0.05}


def test_runtime_limits(rows, table) -> None:
    found = [row | {"who": row.get("series", "SISRs")} for row in rows("runtime-limits")]
    assert len(found) == 3 * 2 * 2 and {row["budget"] for row in found} == {0.015, 0.06}
    for line in table("runtime-limits"):
        base = next(r["cost"] for r in found if (r["set"], r["who"], r["budget"]) == (line["set"], "SISRs", 0.06))
        limit = float(line["limit"].split()[0])
        own = next(r for r in found if (r["set"], r["who"], r["budget"]) == (line["set"], line["series"], limit))
        if (line["series"], limit) != ("SISRs", 0.06):
            assert line["difference, %"] == f"{100 * (own['cost'] / base - 1):+.2f}"


@pytest.mark.parametrize("name, first, others", [
    ("architecture", "MPL and TEL", ["without TEL", "without MPL", "without both"]),
    ("insertion-order", "DNN and random", ["random"]),
    ("policy-vs-heuristic", "DNN", ["heuristic"]),
])  # fmt: skip
def test_ablations(rows, table, name: str, first: str, others: list[str]) -> None:
    found, lines = rows(name), table(name)
    assert [line["series"] for line in lines] == 3 * [first, *others]
    assert len(found) == len(lines) * SMOKE.validation
    for line in lines:
        cost, difference = mean_difference(found, line["set"], line["series"], first)
        assert line["mean cost"] == f"{cost:.4f}"
        assert line["difference, %"].split(" ")[0] == ("–" if line["series"] == first else f"{difference:+.2f}")
    limits = {(row["set"], row["iterations"], row["settings"]["chains"], row["made_iterations"]) for row in found}
    assert limits == {
        ("cvrp24-validation", 2, 2, 2), ("vrptw24-validation", 2, 2, 2), ("pcvrp24-validation", 1, 4, 1),
    }  # fmt: skip
    assert all(row["budget"] is None and row["feasible"] for row in found)


def test_ablations_differ_in_one_thing(out: Path, rows, table) -> None:
    for without, missing in (("tour-encoding", {"tour_encoding"}), ("both", {"message_passing", "tour_encoding"})):
        log = out / f"models/smoke/ablations/all-without-{without}/log.jsonl"
        network = json.loads(log.read_text().splitlines()[0])["config"]["network"]
        assert {name for name in ("message_passing", "tour_encoding") if not network[name]} == missing
    ruins = {row["series"]: row["settings"]["ruin"] for row in rows("insertion-order")}
    assert ruins == {"DNN and random": "function", "random": "function"}
    labels = {row["series"]: row["solver"] for row in rows("insertion-order")}
    assert labels["random"] == labels["DNN and random"] + "-shuffled"
    removals = {row["series"]: row["settings"]["removals"] for row in rows("policy-vs-heuristic")}
    assert removals == {"DNN": 5, "heuristic": 64}
    lines = {(line["set"], line["series"]): line["published, %"] for line in table("policy-vs-heuristic")}
    assert lines["pcvrp24-validation", "heuristic"] == f"{100 * (43.61 / 42.96 - 1):+.2f}" == "+1.51"


def test_hyperparameters(rows, table) -> None:
    found = {row["series"]: row for row in rows("hyperparameters")}
    assert list(found) == ["default", "A = 1", "A = 2", "K = 4", "K = 8", "delta = 1", "delta = 15"]
    settings = {name: [row["settings"][s] for s in ("chains", "rollouts", "threshold")] for name, row in found.items()}
    assert settings["default"] == [2, 8, 15.0] and settings["A = 1"] == [1, 8, 15.0]
    assert settings["K = 4"] == [2, 4, 15.0] and settings["delta = 1"] == [2, 8, 1]
    for line in table("hyperparameters")[1:]:
        expected = 100 * (found[line["series"]]["cost"] / found["default"]["cost"] - 1)
        assert line["difference, %"] == f"{expected:+.2f}"


@pytest.mark.parametrize("name, sizes", [("initial-improvement", [24]), ("training-curves", [100, 24])])
def test_curves(out: Path, rows, table, name: str, sizes: list[int]) -> None:
    """They are the validations of the logs: before training, after 2 instances and after 4."""
    found = rows(name)
    for line in table(name):
        points = [row for row in found if (row["set"], row["series"]) == (line["set"], line["series"])]
        assert [row["point"] for row in points] == [0, 2, 4]
        log = (out / "models/smoke" / points[0]["solver"] / "log.jsonl").read_text().splitlines()
        logged = [row for row in map(json.loads, log) if row["kind"] == "validation"]
        assert [row["cost"] for row in points] == [row["sets"][line["set"]]["cost"] for row in logged]
        assert (line["cost before"], line["cost after"]) == (f"{points[0]['cost']:.4f}", f"{points[-1]['cost']:.4f}")
    assert {line["set"] for line in table(name)} == {f"{problem}{size}" for problem in PROBLEMS for size in sizes}


def test_improvement_steps(out: Path) -> None:
    steps = []
    for name in ("all-500", "ablations/all-without-improvement"):
        first = (out / "models/smoke" / name / "log.jsonl").read_text().splitlines()[0]
        steps.append(json.loads(first)["config"]["train"]["improvement_steps"])
    assert steps == [1, 0]


def test_generalization(out: Path, rows, table) -> None:
    found = rows("generalization-distribution")
    assert len(found) == 4 * 4
    models = {(row["set"], row["series"]): row["solver"].split("@")[0] for row in found if "series" in row}
    digests = {row["solver"].split("@")[1][:8] for row in found if row.get("series") == "NDS (OOD)"}
    assert len(digests) == 1 and models["cvrp24-uniform-low", "NDS (ID)"] == "nds-uniform-low/checkpoint-000000004"
    line = next(line for line in table("generalization-distribution") if line["series"] == "SISRs")
    assert line["published, %"] == "-0.38"
    capacity = {
        name: fmean(float(np.sum(p.demand)) / p.capacity for p in [read(out / f"sets/cvrp24-{name}.npz", index=0)])
        for name in ("uniform-low", "uniform-high", "clustered-low", "clustered-high")
    }
    assert all(24 / 8 <= routes <= 24 / 4 for name, routes in capacity.items() if name.endswith("low"))
    assert all(24 / 16 <= routes <= 24 / 11 for name, routes in capacity.items() if name.endswith("high"))
    sizes = rows("generalization-size")
    assert {row["set"] for row in sizes} == {"cvrp100", "vrptw100", "pcvrp100"} and len(sizes) == 3 * 4
    published = {line["series"]: line["pcvrp2000"] for line in table("generalization-size", "Published")}
    assert published["NDS (OOD)"] == "160.20 (-3.24%)"


def test_scalability(rows, table) -> None:
    found = rows("scalability")
    assert [row["customers"] for row in found] == [20, 40, 80]
    for line, row in zip(table("scalability"), found, strict=True):
        assert line["relative"] == f"{row['seconds_per_iteration'] / found[0]['seconds_per_iteration']:.2f}"
        assert line["relative memory"] == f"{row['memory_mib'] / found[0]['memory_mib']:.2f}"
        assert row["settings"]["chains"] == 2 and row["settings"]["rollouts"] == 8


def test_rollouts(out: Path, rows, table) -> None:
    found = rows("rollouts")
    assert len(found) == 3 * 2 * 6
    for row in found:
        problem = read(out / f"sets/{row['set']}.npz", index=int(row["instance"]))
        report = check(problem, Solution([tuple(route) for route in row["routes"]]))
        assert report.feasible and row["feasible"]
        assert report.cost == pytest.approx(row["cost_before"], abs=1e-12)
        assert len(set(row["removed"])) == 5 and set(row["removed"]) <= set(range(1, 101))
    line = table("rollouts")[0]
    first = found[:6]
    assert line["different customers"] == str(len({c for row in first for c in row["removed"]}))
    assert line["lowest after"] == f"{min(row['cost'] for row in first):.4f}"
    assert line["improving"] == str(sum(row["cost"] < row["cost_before"] - 1e-9 for row in first))
    svg = (out / "rollouts" / "rollouts-cvrp.svg").read_text()
    assert svg.count("#c1121f") >= 12 and "0001, rollout 6" in svg.replace("<!-- ", "")


def test_nothing_is_run_again(out: Path) -> None:
    files = [out / name / "rows.jsonl" for name in RESUMED] + sorted((out / "models").rglob("log.jsonl"))
    before = {file: file.read_bytes() for file in files}
    tables = {name: (out / name / "table.md").read_text() for name in RESUMED}
    for name in RESUMED:
        command(out, name)
        assert (out / name / "table.md").read_text() == tables[name]
    assert {file: file.read_bytes() for file in files} == before


def test_a_lost_row_is_run_again(out: Path) -> None:
    """One row is gone and one is cut off, as after a crash: both are run again, with the same costs."""
    file = out / "insertion-order" / "rows.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:-2]) + lines[-1][:40])
    command(out, "insertion-order")
    again = read_rows(file)
    assert len(again) == len(lines)
    assert [row["cost"] for row in again] == [json.loads(line)["cost"] for line in lines]
