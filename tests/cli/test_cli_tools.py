"""The other commands: check, info, generate, bench, settings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ndsvrp
from ndsvrp.bench import limits
from ndsvrp.cli import app
from ndsvrp.cli.formatting import cost_of, plain_number
from ndsvrp.constraints.fleet import fewest_vehicles
from ndsvrp.metric import Metric
from ndsvrp.records import describe
from ndsvrp.search.planning import Request
from ndsvrp.search.settings import Settings
from ndsvrp.text import number

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("nds so", ["solve"]),
        ("nds solve --sol", ["--solver"]),
        ("nds solve a.vrp --solver h", ["hybrid"]),
        ("nds solve a.vrp --preset paper-", ["paper-text", "paper-code"]),
        ("nds experiment gener", ["generalization-distribution", "generalization-size"]),
        ("nds convert a.csv - --to s", ["solomon"]),
        ("nds generate pcvrp", ["pcvrp", "pcvrptw"]),
    ],
)
def test_shell_completion(monkeypatch, capsys, words, expected):
    """As bash asks for it: by variables of the environment."""
    monkeypatch.setenv("_NDS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    with pytest.raises(SystemExit):
        app(prog_name="nds")
    assert capsys.readouterr().out.split() == expected


def facts(answer):
    """Two columns as a mapping."""
    lines = [line.split("  ", 1) for line in answer.stdout.splitlines() if "  " in line]
    return {what: value.strip() for what, value in lines}


@pytest.mark.parametrize(
    ("name", "cost"),
    [("X/X-n106-k14.vrp", "26,362"), ("Solomon/C101.txt", "827.3"), ("PCVRPTW/R1_10_1.vrp", "26,270.5")],
)
def test_check_of_published_solutions(nds, data, name, cost):
    file = data / "lib" / name
    told = facts(nds("check", file, file.with_suffix(".sol")))
    assert told["feasible"] == "yes"
    assert told["cost"] == cost
    assert told["written"].endswith("which is right")
    assert told["gap"].startswith(f"+0.00% to the best known {cost} (")


def test_check_beside_a_given_cost(nds, data):
    file = data / "lib/X/X-n106-k14.vrp"
    told = facts(nds("check", file, file.with_suffix(".sol"), "--best", 25000))
    assert told["gap"] == "+5.45% to the given 25,000"  # 26362 / 25000 = 1.05448
    file = data / "small/toy.vrp"  # no best known one on record
    told = facts(nds("check", file, file.with_suffix(".sol"), "--best", 40))
    assert told["gap"] == "-20.00% to the given 40"  # 32 / 40


def test_check_of_a_wrong_cost(nds, data, tmp_path):
    file, wrong = data / "lib/X/X-n106-k14.vrp", tmp_path / "wrong.sol"
    wrong.write_text((data / "lib/X/X-n106-k14.sol").read_text().replace("26362", "26361"))
    told = facts(nds("check", file, wrong, code=3))
    assert (told["feasible"], told["written"]) == ("yes", "26,361, which is wrong")
    wrong.write_text("\n".join(line for line in wrong.read_text().splitlines() if "Cost" not in line))
    assert facts(nds("check", file, wrong))["written"] == "no cost"


def test_check_names_every_violation(nds, data, tmp_path):
    bad = tmp_path / "bad.sol"
    bad.write_text("Route #1: 1 2 3\nRoute #2: 3 9\nCost: 1\n")
    answer = nds("check", data / "small/toy.vrp", bad, code=3)
    for words in ("route 1: load 12 is above the capacity 10", "route 2: customer 3 is served twice",
                  "route 2: there is no customer 9", "1 required customer is not served: 4"):  # fmt: skip
        assert words in answer.stdout
    assert facts(answer)["feasible"] == "no"


def test_check_of_a_set(nds, tmp_path):
    problems, out = ndsvrp.generate("cvrp", 8, count=3, seed=1), tmp_path / "out"
    ndsvrp.write_set(tmp_path / "set.npz", problems)
    nds("solve", tmp_path / "set.npz", "--iterations", 1, "--out", out)
    lines = nds("check", tmp_path / "set.npz", out).stdout.splitlines()
    costs = [ndsvrp.read_solution(out / f"{i:04d}.sol")[1] for i in range(3)]
    assert [line.split("  ")[:2] for line in lines[1:4]] == [[f"{i:04d}", f"cost {costs[i]:.4f}"] for i in range(3)]
    assert lines[4] == "feasible and of the cost that is written: 3 of 3 instances"
    (out / "0000.sol").unlink()
    (out / "0001.sol").write_text("Route #1: 1 2 3 4 5 6 7\nCost: 1\n")
    lines = nds("check", tmp_path / "set.npz", out, code=3).stdout.splitlines()
    assert lines[1] == "0000  no solution: 0000.sol is missing"
    assert lines[2].endswith(
        "  1 route  1 is written, which is wrong  infeasible: 1 required customer is not served: 8"
    )
    assert lines[4] == "feasible and of the cost that is written: 1 of 3 instances"
    assert "--best is for one instance" in nds("check", tmp_path / "set.npz", out, "--best", 3, code=2).stderr
    assert "0000.sol: no such file" in nds("check", tmp_path / "set.npz", out / "0000.sol", "--index", 0, code=2).stderr


def test_info(nds, data):
    told = facts(nds("info", data / "lib/Solomon/C101.txt"))
    assert told["problem"] == "VRPTW (capacity, time windows)"
    assert told["customers"] == "100"
    assert told["vehicles"] == "at most 25; the demand takes at least 10"
    assert told["metric"] == "dimacs (auto: coordinates with time windows)"
    assert told["depot hours"] == "0 to 1,236"
    assert told["best known"].startswith("827.3 (set Solomon, ")
    told = facts(nds("info", data / "lib/Solomon/C101.txt", "--round", "none"))
    assert told["metric"] == "none (as asked)"
    assert "best known" not in told
    told = facts(nds("info", data / "lib/PCVRPTW/R1_10_1.vrp"))
    assert told["optional"] == "1,000 of 1,000 customers"
    assert told["vehicles"] == "at most 100"
    told = facts(nds("info", data / "small/toymatrix.vrp"))
    assert told["distances"] == "asymmetric matrix"
    assert "bounding box" not in told


def test_info_of_a_set(nds, data):
    told = facts(nds("info", data / "sets/pcvrp100.npz"))
    assert told["instances"] == "2, pcvrp100-0000 … pcvrp100-0001"
    assert told["metric"] == "none (auto: sets are plain floats)"
    assert facts(nds("info", data / "sets/pcvrp100.npz", "--index", 1))["name"] == "pcvrp100-0001"


def test_fewest_vehicles():
    problem = ndsvrp.Problem(coordinates=[[0, 0]] * 5, demand=[0, 3, 4, 5, 6], capacity=9)
    assert fewest_vehicles(problem) == 2
    assert fewest_vehicles(problem.replace(prize=[0, 0, 1, 1, 1])) == 1
    assert fewest_vehicles(problem.replace(prize=[0, 1, 1, 1, 1])) == 0


def test_generate(nds, tmp_path):
    set_path, again = tmp_path / "set.npz", tmp_path / "again.npz"
    answer = nds("generate", "vrptw", "-n", 30, "--count", 4, "--seed", 1, "--out", set_path)
    assert "4 instances of clustered VRPTW with 30 customers" in answer.stdout
    problems = ndsvrp.read_set(set_path)
    assert len(problems) == 4 and problems[0].customers == 30
    nds("generate", "vrptw", "-n", 30, "--count", 4, "--seed", 1, "--out", again)
    assert set_path.read_bytes() == again.read_bytes()


def test_generate_with_every_parameter(nds, tmp_path):
    out = tmp_path / "set.npz"
    nds("generate", "pcvrptw", "-n", 40, "--layout", "clustered", "--depot", "cornered",
        "--customer-layout", "random-clustered", "--seeds", "3-4", "--halving", 20, "--demand", "unitary",
        "--route-size", "3-5", "--horizon", 3, "--width", 0.2,
        "--service", 0.1, "--tick", 0.01, "--prize-low", 0.3, "--prize-high", 0.4, "--prize-share", 0, "--first", 2,
        "--out", out)  # fmt: skip
    problem = ndsvrp.read(out)
    assert problem.coordinates[0].tolist() == [0, 0]
    assert set(problem.demand[1:]) == {1}
    assert problem.windows[0, 1] == 3
    assert problem.service[1] == pytest.approx(0.1)
    assert problem.prize[1:].min() >= 0.3 and problem.prize[1:].max() <= 0.4
    nds("generate", "cvrp", "-n", 40, "--smallest", 5, "--largest", 6, "--capacity", 12, "--out", out)
    problem = ndsvrp.read(out)
    assert set(problem.demand[1:]) == {5, 6} and problem.capacity == 12
    answer = nds("generate", "cvrp", "-n", 40, "--horizon", 5, "--out", out, code=2)
    assert "'windows' were given, which a uniform cvrp does not have" in answer.stderr


def test_bench(nds, data, tmp_path):
    rows = tmp_path / "new" / "rows.jsonl"
    command = (
        "bench",
        "run",
        data / "sets/cvrp100.npz",
        "--solvers",
        "sisr",
        "--time",
        0.2,
        "--instances",
        "0",
        "--out",
        rows,
    )
    answer = nds(*command)
    assert answer.stderr.startswith("[1/1] cvrp100 0000 sisr: ")
    lines = nds(*command[:-2], "--seeds", "2,3").stderr.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [f"[{i}/2] cvrp100 0000 sisr seed {i + 1}" for i in (1, 2)]
    assert "sisr" in answer.stdout and "1/1" in answer.stdout
    assert len(rows.read_text().splitlines()) == 1
    nds(*command)
    assert len(rows.read_text().splitlines()) == 1, "a run that is there is not run again"
    assert "mean cost" in nds("bench", "report", rows).stdout
    row = json.loads(rows.read_text())
    rows.write_text(json.dumps(row | {"error": "it broke", "feasible": None}) + "\n")
    assert "it broke" in nds("bench", "report", rows).stdout


def test_bench_says_how_long_it_still_takes(nds, data, monkeypatch):
    """By the time limit, or by the seconds of finished runs where iterations end them; 3600 s are a cap."""

    def run(sets, solvers, times, *more):
        progress, found = more[4], {"set": "s", "instance": "0", "solver": "nds", "cost": 1.0, "feasible": True}
        progress(1, 21, {"set": "s", "instance": "0", "solver": "nds", "skipped": "no"})
        for done, seconds in ((2, 0.1), (3, 29.9)):
            progress(done, 23, found | {"seconds": seconds})
        return []

    monkeypatch.setattr("ndsvrp.bench.run.run", run)
    lines = nds("bench", "run", data / "sets/cvrp100.npz", "--iterations", "2,4").stderr.splitlines()
    assert [line.rpartition(" s")[2] or "" for line in lines[1:]] == ["", ", about 5 min left"]  # 20 runs of 15 s
    assert "left" not in lines[0]
    lines = nds("bench", "run", data / "sets/cvrp100.npz", "--times", "30,90").stderr.splitlines()
    assert [line.rpartition(", ")[2] for line in lines] == [f"about {runs} min left" for runs in (20, 21, 20)]


def test_bench_report(nds, tmp_path):
    row = {"set": "X", "instance": "p", "data": "d", "solver": "a", "solver_version": "1", "seed": 1, "budget": 60,
           "threads": 1, "hardware": {"cpu": "EPYC"}, "cost": 100.0, "feasible": True, "seconds": 60.0,
           "cpu_seconds": 60.0, "gap": None, "best_known": None}  # fmt: skip
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text(json.dumps(row) + "\n")
    second.write_text(json.dumps(row | {"solver": "b", "cost": 98.0}) + "\n")
    printed = nds("bench", "report", first, second).stdout
    assert "| X   |  60 s | b      | a, 60 s  |         1 |         -2.00 |        1/0/0 | 1.000 |" in printed
    assert "+2.04" in nds("bench", "report", first, second, "--baseline", "b").stdout
    begins = {"md": "## Results\n", "html": "<!DOCTYPE html>\n", "tex": "% needs", "csv": "table,set,time,"}
    for kind, start in begins.items():
        out = tmp_path / f"report.{kind}"
        assert nds("bench", "report", first, second, "--out", out).stdout == f"wrote {out}\n"
        assert out.read_text(encoding="utf-8").startswith(start)
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == printed
    answer = nds("bench", "report", first, "--baseline", "c", code=2)
    assert answer.stderr == "nds: baseline: no solver 'c' in the rows; there are a\n"
    second.write_text(second.read_text() + json.dumps(row | {"cost": "low"}) + "\n")
    answer = nds("bench", "report", first, second, "--out", tmp_path / "no.md", code=2)
    assert answer.stderr == f"nds: {second}:2: not a result row, cost is missing or of another type\n"
    second.write_text("")
    assert nds("bench", "report", second, code=2).stderr == f"nds: {second}: is empty\n"
    second.write_text(json.dumps(row)[:100])  # cut off, as by a crash
    assert nds("bench", "report", first, second, code=2).stderr == f"nds: {second}: holds no complete row\n"
    assert not (tmp_path / "no.md").exists()


@pytest.mark.slow
def test_bench_of_settings_and_batches(nds, data, tmp_path):
    rows = tmp_path / "rows.jsonl"
    how = ("--ruin", "related", "--chains", 2, "--set", "rollouts=20", "--together", 2, "--time", 0.2, "--out", rows)
    answer = nds("bench", "run", data / "sets/cvrp100.npz", "--solvers", "nds", *how)
    assert "cvrp100 0001 nds-related-2-rollouts=20-x2: " in answer.stderr
    for row in map(json.loads, rows.read_text().splitlines()):
        settings = row["settings"]
        assert (settings["ruin"], settings["chains"], settings["rollouts"], settings["together"]) == (
            "related",
            2,
            20,
            2,
        )
        assert row["feasible"] and 0.2 <= row["seconds"] < 0.5
    wrongs = [("--device", "tpu"), ("--set", "x=1"), ("--ruin", "policy", "--model", "no"), ("--preset", "best")]
    for wrong in (*wrongs, ("--iterations", "0"), ("--iterations", "9,x"), ("--cores", 1000)):
        assert (
            nds("bench", "run", data / "sets/cvrp100.npz", "--solvers", "nds", *wrong, code=2).stderr.count("\n") == 1
        )
    how = ("--preset", "default,paper", "--iterations", "1,2", "--instances", 0, "--out", rows)
    answer = nds("bench", "run", data / "sets/cvrp100.npz", "--solvers", "nds", *how)
    names = ["nds-iterations=1", "nds-iterations=2", "nds-preset=paper-iterations=1", "nds-preset=paper-iterations=2"]
    assert [line.split()[3] for line in answer.stderr.splitlines()] == [f"{name}:" for name in names]
    limits = [json.loads(line)["settings"]["limits"] for line in rows.read_text().splitlines()[-4:]]
    assert [(limit["iterations"], limit["time"]) for limit in limits] == [(1, 3600), (2, 3600), (1, 3600), (2, 3600)]
    assert nds("bench", "gpu", "--only", "x", code=2).stderr.startswith("nds: unknown part 'x'")


@pytest.mark.slow
def test_bench_speed(nds, data, tmp_path):
    rows = tmp_path / "rows.jsonl"
    answer = nds("bench", "speed", "--sizes", "60", "--variants", "cvrp", "--time", 0.05, "--out", rows)
    assert "cvrp60" in answer.stdout and answer.stderr.count("per second") == 2
    lines = rows.read_text().splitlines()
    assert [json.loads(line)["scope"] for line in lines] == ["touched", "all"]
    rows.write_text(lines[0] + "\n" + lines[1][:40])  # cut off by a crash
    nds("bench", "speed", "--sizes", "30", "--variants", "pcvrptw", "--time", 0.05, "--out", rows)
    assert [json.loads(line)["instance"] for line in rows.read_text().splitlines()] == ["cvrp60"] + ["pcvrptw30"] * 2
    answer = nds("bench", "speed", data / "sets/cvrp100.npz", "--index", 1, "--time", 0.05)
    assert "cvrp100-0001" in answer.stdout
    for wrong in (("--sizes", "x"), ("--variants", "x"), ("--time", "0"), (data / "no.npz",)):
        assert nds("bench", "speed", *wrong, code=2).stderr.count("\n") == 1


@pytest.mark.slow
def test_bench_limits(nds, tmp_path, monkeypatch):
    kinds, rows = ("vrptw", "outlier"), tmp_path / "rows.jsonl"
    monkeypatch.setattr(limits, "KINDS", kinds)
    answer = nds("bench", "limits", "--customers", 20, "--time", 0.1, "--out", rows)
    told = [json.loads(line) for line in rows.read_text().splitlines()]
    cases = [(f"{kind}20", solver) for kind in kinds for solver in ("hybrid", "nds")]
    assert [(row["instance"], row["solver"]) for row in told] == cases
    assert answer.stderr.count("MiB") == len(cases) and "outlier20" in answer.stdout
    for row in told:
        assert (row["set"], row["budget"]) == ("limits", 0.1)
        assert row["within"] == (row["over"] <= 0.1)
        assert -0.02 <= row["over"] < 5 and 0 < row["preparation"] < 5
        assert 10 < row["peak_mib"] < 500
        assert row["iterations"] > 0


@pytest.mark.parametrize("customers", [1, 50])
def test_instances_of_bench_limits(customers):
    made = {kind: limits.make(kind, customers) for kind in limits.KINDS}
    assert list(made) == ["cvrp", "vrptw", "pcvrp", "pcvrptw", "fleet", "outlier", "matrix"]
    assert all(problem.customers == customers for problem in made.values())
    fleet = made["fleet"]
    assert fewest_vehicles(fleet) <= fleet.vehicles <= 1.2 * fewest_vehicles(fleet) + 1
    assert made["outlier"].coordinates[-1].tolist() == [1000, 1000]
    assert made["outlier"].coordinates[:-1].max() <= 1
    assert made["matrix"].coordinates is None and made["matrix"].distance.shape == (customers + 1, customers + 1)


def test_settings(nds):
    printed = nds("settings").stdout
    for name, _, _ in describe(Settings):
        assert name in printed


def test_settings_page_is_up_to_date(nds):
    page = nds("settings", "--markdown").stdout
    assert (ROOT / "docs/settings.md").read_text(encoding="utf-8") == page, "nds settings --markdown > docs/settings.md"
    for name, _, _ in describe(Request):
        assert f"| `{name}` |" in page


def test_page_of_training_settings(nds):
    page = nds("settings", "--training", "--markdown").stdout
    written = (ROOT / "docs/training-settings.md").read_text(encoding="utf-8")
    assert written == page, "nds settings --training --markdown > docs/training-settings.md"
    for line in ("| `width` | 128 |", "| `rollouts` | 128 |", "| `states` | 16 |", "| `customers` | 100 |"):
        assert line in page


def test_help_and_version(nds):
    assert nds("--version").stdout == f"nds {ndsvrp.__version__}\n"
    for command in ((), ("solve",), ("check",), ("info",), ("generate",), ("settings",), ("bench",), ("bench", "run")):
        assert "Usage: nds" in nds(*command, "--help").stdout
    assert "Usage: nds" in nds(code=2).stdout
    assert "with its value for each solver" in " ".join(nds("settings", "--help").stdout.split())
    assert ".sol or JSON, - for standard" in nds("check", "--help").stdout  # all that read_solution reads


def test_command_starts_without_heavy_libraries():
    code = "import sys, ndsvrp.cli; print({'torch', 'matplotlib', 'scipy', 'pyvrp'} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "set()\n"


def test_numbers_as_they_are_shown():
    assert [number(v) for v in (0, 1000, 0.05, 1e-7, 12.34567, -0.5)] == [
        "0",
        "1,000",
        "0.05",
        "1e-07",
        "12.3457",
        "-0.5",
    ]
    assert cost_of(26362.0, Metric.ROUND) == "26,362"
    assert cost_of(827.3, Metric.DIMACS) == "827.3"
    assert cost_of(827.3, Metric.EXACT) == "827.300"
    assert cost_of(15.5, Metric.NONE) == "15.5000"
    assert (plain_number(26362.0), plain_number(827.3)) == ("26362", "827.3")
