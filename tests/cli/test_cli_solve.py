"""`nds solve`: files, sets, limits, interruption."""

from __future__ import annotations

import csv
import json
import re
import signal
import time

import pytest

import ndsvrp
from ndsvrp.cli.solve_text import plan_line
from ndsvrp.io import read_solution
from ndsvrp.search.planning import Request, plan


@pytest.fixture
def instance(data):
    return data / "lib/X/X-n106-k14.vrp"


def test_writes_what_it_found(nds, instance, tmp_path):
    out, report, picture = tmp_path / "a.sol", tmp_path / "a.json", tmp_path / "a.png"
    answer = nds("solve", instance, "--iterations", 5, "--seed", 3, "--out", out, "--json", report, "--plot", picture)
    solution, cost = read_solution(out)
    assert ndsvrp.check(ndsvrp.read(instance), solution).feasible
    told = json.loads(report.read_text())
    assert told["cost"] == cost
    assert (told["seed"], told["iterations"], told["stopped"]) == (3, 5, "iterations")
    assert [tuple(route) for route in told["routes"]] == list(solution.routes)
    assert told["settings"]["solver"] == "hybrid"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.png", "a.sol"]
    assert f"cost             {cost:,.0f}\n" in answer.stdout
    assert f"reconstructions  {told['reconstructions']:,} (" in answer.stdout
    assert "metric round (auto)" in answer.stdout
    assert "solver hybrid (auto), ruin string, device cpu (auto), population of 16, 4 children on " in answer.stdout
    assert re.search(r"gap +\+\d+\.\d\d% to the best known 26,362 \(", answer.stdout)
    nds("check", instance, out)
    assert read_solution(report) == (solution, cost)
    nds("check", instance, report)
    again = tmp_path / "again.json"
    nds("solve", instance, "--iterations", 1, "--init", report, "--json", again)
    assert json.loads(again.read_text())["cost"] <= cost


@pytest.mark.parametrize(
    "change", [("--vehicles", 16), ("--capacity", 601), ("--max-distance", 9999), ("--round", "none")]
)
def test_no_gap_for_another_problem(nds, instance, tmp_path, change):
    """The best known cost is for the problem of the file."""
    out = tmp_path / "a.json"
    answer = nds("solve", instance, "--iterations", 5, *change, "--json", out)
    assert "best known" not in answer.stdout + answer.stderr
    assert (json.loads(out.read_text())["best_known"], json.loads(out.read_text())["gap"]) == (None, None)
    assert "best known" not in nds("check", instance, out, *change).stdout


def test_prints_the_routes_if_no_file_is_asked_for(nds, data, tmp_path):
    answer = nds("solve", data / "small/toy.vrp", "--iterations", 5)
    head, *routes, last = answer.stdout.splitlines()[-4:]
    assert head == "route  stops  load  distance  duration  customers"
    figures = sorted(line.split()[1:5] + sorted(line.split()[5:]) for line in routes)  # in any order and direction
    assert figures == [["2", "9", "10", "10", "1", "4"], ["2", "9", "22", "22", "2", "3"]]
    assert last == "no file was written: --out, --json, --plot or --report names one"
    answer = nds("solve", data / "small/toy.vrp", "--iterations", 5, "--out", tmp_path / "a.sol")
    assert answer.stdout.splitlines()[-1] == f"wrote {tmp_path / 'a.sol'}" and "customers\n" not in answer.stdout


def test_same_seed_same_routes_for_any_threads(nds, instance, tmp_path):
    files = [tmp_path / f"{i}.sol" for i in range(3)]
    for file, threads, seed in zip(files, (1, 2, 1), (1, 1, 2), strict=True):
        nds("solve", instance, "--iterations", 3, "--chains", 2, "--threads", threads, "--seed", seed, "--out", file)
    one, two, other = (file.read_text() for file in files)
    assert one == two
    assert one != other


def test_quiet_prints_the_cost_alone(nds, instance, data):
    answer = nds("solve", instance, "--iterations", 2, "--quiet")
    assert re.fullmatch(r"\d+\n", answer.stdout)
    assert answer.stderr == ""
    answer = nds("solve", data / "sets/cvrp100.npz", "--iterations", 2, "-q")
    assert re.fullmatch(r"\d+\.\d+\n\d+\.\d+\n", answer.stdout)


def test_limits(nds, instance, data):
    known = data / "lib/X/X-n106-k14.sol"
    answer = nds("solve", instance, "--time", 30, "--target", 26362, "--init", known)
    assert "stopped by       target reached" in answer.stdout
    assert "iterations       0" in answer.stdout
    answer = nds("solve", instance, "--iterations", 1000, "--patience", 2, "--init", known)
    assert "stopped by       no better solution for long enough" in answer.stdout
    answer = nds("solve", instance, "--time", 0.2)
    assert "at most 0.2 s" in answer.stdout
    assert "stopped by       time limit" in answer.stdout
    answer = nds("solve", instance, "--target", 1e9)
    assert "at most 30 s (the default; --time or --iterations)" in answer.stdout


def test_start_from_a_solution_is_never_worse(nds, instance, data):
    answer = nds("solve", instance, "--iterations", 3, "--init", data / "lib/X/X-n106-k14.sol", "-q")
    assert answer.stdout == "26362\n"


def test_a_start_may_lack_customers(nds, instance, data, tmp_path):
    start = tmp_path / "yesterday.sol"
    known = (data / "lib/X/X-n106-k14.sol").read_text().splitlines()
    start.write_text("\n".join(line for line in known if not line.startswith("Route #3")) + "\n")
    answer = nds("solve", instance, "--iterations", 3, "--init", start)
    new = next(line for line in known if line.startswith("Route #3")).count(" ") - 1
    assert f"{start}: {new} required customers not served, inserted before the search\n" in answer.stdout


def test_settings_reach_the_search(nds, instance, tmp_path):
    file = tmp_path / "a.json"
    nds("solve", instance, "--iterations", 2, "--solver", "nds", "--ruin", "related", "--round", "exact",
        "--set", "rollouts=20", "--set", "scope=all", "--set", "sorted_orders=true", "--set", "hot=0.2",
        "--json", file)  # fmt: skip
    told = json.loads(file.read_text())
    settings = told["settings"]
    assert (settings["solver"], settings["ruin"], settings["rollouts"]) == ("nds", "related", 20)
    assert (settings["scope"], settings["sorted_orders"], settings["hot"]) == ("all", True, 0.2)
    assert (told["problem"]["metric"], settings["chains"]) == ("exact", 8)


def test_preset_paper(nds, data, tmp_path):
    file = tmp_path / "a.json"
    nds("solve", data / "sets/cvrp100.npz", "--index", 1, "--iterations", 1, "--preset", "paper",
        "--json", file)  # fmt: skip
    told = json.loads(file.read_text())
    names = ("chains", "rollouts", "removals", "orders", "threshold", "hot", "cold")
    assert [told["settings"][name] for name in names] == [8, 200, 15, 5, 15.0, 0.1, 0.001]
    assert (told["settings"]["solver"], told["settings"]["ruin"]) == ("nds", "related")
    assert told["settings"]["limits"] == {"time": None, "iterations": 1, "patience": None, "target": None}
    assert told["problem"]["name"] == "cvrp100-0001"


def test_hint_at_idle_cores(nds, instance, monkeypatch):
    monkeypatch.setattr("ndsvrp.cli.solve_text.usable_cores", lambda: 6)
    hint = "(--chains 6 would use all 6 cores)"
    assert hint in nds("solve", instance, "--iterations", 1, "--set", "population=0").stdout
    assert "would use" not in nds("solve", instance, "--iterations", 1).stdout, "it would replace the population"
    assert "would use" not in nds("solve", instance, "--iterations", 1, "--threads", 1).stdout
    assert "would use" not in nds("solve", instance, "--iterations", 1, "--chains", 6).stdout
    assert "would use" not in nds("solve", instance, "--iterations", 1, "--chains", 2, "--set", "regions=2").stdout


def test_set_is_solved_one_by_one(nds, data, tmp_path):
    out, report = tmp_path / "out", tmp_path / "all.json"
    answer = nds("solve", data / "sets/pcvrp100.npz", "--iterations", 3, "--out", out, "--json", report)
    assert sorted(path.name for path in out.iterdir()) == ["0000.sol", "0001.sol", "summary.csv"]
    rows = list(csv.DictReader((out / "summary.csv").open()))
    costs = []
    for index, row in enumerate(rows):
        problem = ndsvrp.read(data / "sets/pcvrp100.npz", index=index)
        solution, cost = read_solution(out / f"{index:04d}.sol")
        checked = ndsvrp.check(problem, solution)
        assert checked.feasible
        assert float(row["cost"]) == cost == pytest.approx(checked.cost)
        assert int(row["unserved"]) == len(checked.unserved)
        costs.append(cost)
    told = json.loads(report.read_text())
    assert [result["cost"] for result in told] == costs
    assert [result["reconstructions"] for result in told] == [int(row["reconstructions"]) for row in rows]
    assert f"mean cost {sum(costs) / 2:.4f}".rstrip("0") in answer.stdout
    nds("solve", data / "sets/pcvrp100.npz", "--iterations", 3, "--out", out)  # the folder may be there already


def test_set_solved_together(nds, data, tmp_path):
    """With a rule and a number of iterations, the same solutions as one by one."""
    alone, both = (tmp_path / name for name in ("alone", "both"))
    nds("solve", data / "sets/pcvrp100.npz", "--iterations", 3, "--out", alone)
    answer = nds("solve", data / "sets/pcvrp100.npz", "--iterations", 3, "--out", both, "--together", 8)
    assert "4 chains for each of 2 instances on" in answer.stdout
    for name in ("0000.sol", "0001.sol"):
        assert (both / name).read_text() == (alone / name).read_text()
    tables = [list(csv.DictReader((folder / "summary.csv").open())) for folder in (alone, both)]
    for one, other in zip(*tables, strict=True):
        assert {k: v for k, v in one.items() if k != "seconds"} == {k: v for k, v in other.items() if k != "seconds"}


@pytest.mark.slow
def test_set_solved_together_in_time(nds, data):
    began = time.perf_counter()
    answer = nds("solve", data / "sets/cvrp100.npz", "--time", 0.3, "--together", 2)
    assert time.perf_counter() - began >= 0.6
    assert "at most 0.3 s; seed 0, each" in answer.stdout
    assert len(re.findall(r"0\.3 s", answer.stdout)) == 3  # the limit, and the share of each


def test_what_is_used_on_a_gpu(data, tmp_path, monkeypatch):
    """Threads are of no matter there. The first time it takes longer."""
    monkeypatch.setenv("NDSVRP_CACHE", str(tmp_path))
    (tmp_path / "improve-0.cubin").touch()
    problem = ndsvrp.read(data / "sets/cvrp100.npz", index=0)
    request = Request(solver="nds", ruin="related", device="cuda", chains=2)
    chosen = plan(problem, request)
    assert plan_line(chosen, request) == "solver nds, ruin related, device cuda, 2 chains"
    assert plan_line(chosen, request, together=16).endswith("device cuda, 2 chains for each of 16 instances")
    request = Request(ruin="related", device="cuda", chains=64, settings={"regions": 32})
    assert plan_line(plan(problem, request), request).endswith("device cuda, 64 chains (32 per solution)")
    learned = Request(solver="nds", model="all", device="cuda", settings={"rule_steps": 9})
    line = plan_line(plan(problem, learned), learned, "all")
    assert line == "solver nds, ruin policy and string, model all, device cuda, 128 chains"
    (tmp_path / "improve-0.cubin").unlink()
    first = "device cuda, 2 chains; kernels are compiled first, once: that takes some seconds"
    assert plan_line(chosen, request).endswith(first)


def test_set_of_one_is_a_set(nds, tmp_path):
    nds("generate", "cvrp", "-n", 50, "--out", tmp_path / "one.npz")
    nds("solve", tmp_path / "one.npz", "--iterations", 2, "--out", tmp_path / "out")
    assert (tmp_path / "out/0000.sol").exists()


@pytest.fixture
def any_fleet(monkeypatch):
    """Search also where arithmetic shows that the fleet is too small."""
    monkeypatch.setattr("ndsvrp.search.solver.shortage", lambda problem: None)


def test_a_fleet_too_small_by_arithmetic_is_refused_at_once(nds, fleet, tmp_path):
    answer = nds("solve", fleet(4), "--time", 1e6, "--json", tmp_path / "a.json", code=3)
    assert answer.stderr == "nds: 4 vehicles cannot serve all required customers: their demand takes 6\n"
    assert not (tmp_path / "a.json").exists()


def test_partial_solutions_are_written_where_files_can_say_so(nds, fleet, any_fleet, tmp_path):
    files = {"--out": "a.sol", "--json": "a.json", "--plot": "a.svg", "--report": "a.html"}
    options = [word for flag, name in files.items() for word in (flag, tmp_path / name)]
    answer = nds("solve", fleet(4), "--iterations", 2, *options, code=3)
    written = ", ".join(str(tmp_path / name) for name in ("a.json", "a.svg", "a.html"))
    assert answer.stdout.splitlines()[-1] == f"wrote {written}, of a partial solution"
    assert not (tmp_path / "a.sol").exists() and (tmp_path / "a.svg").exists()
    table = json.loads((tmp_path / "a.json").read_text())
    assert (table["feasible"], len(table["unserved"]), len(table["routes"])) == (False, 10, 4)
    assert "10 required customers are not served" in (tmp_path / "a.html").read_text()


def test_fleet_too_small(nds, fleet, any_fleet, tmp_path):
    answer = nds("solve", fleet(4), "--iterations", 5, "--out", tmp_path / "a.sol", code=3)
    assert answer.stderr.count("\n") == 1
    count, names = re.search(r"leaves? (\d+) required customers? unserved: ([\d, ]+)$", answer.stderr).groups()
    named = [int(name) for name in names.split(", ")]
    assert len(set(named)) == int(count) == 10
    assert all(1 <= name <= 30 for name in named)
    assert not (tmp_path / "a.sol").exists()
    nds("solve", fleet(6), "--iterations", 20, "--out", tmp_path / "a.sol")


def test_all_unserved_customers_are_named(nds, any_fleet, tmp_path):
    problem = ndsvrp.generate("cvrp", 90, capacity=20)[0].replace(vehicles=1)
    ndsvrp.write_set(tmp_path / "tight.npz", [problem])
    answer = nds("solve", tmp_path / "tight.npz", "--index", 0, "--iterations", 2, code=3)
    count, names = re.search(r"leaves? (\d+) required customers? unserved: ([\d, ]+)$", answer.stderr).groups()
    assert len(set(names.split(", "))) == int(count) > 60


def test_set_with_a_fleet_too_small_goes_on(nds, any_fleet, tmp_path):
    problems = ndsvrp.generate("cvrp", 40, count=3, capacity=20)
    ndsvrp.write_set(
        tmp_path / "tight.npz", [p.replace(vehicles=v) for p, v in zip(problems, (40, 1, 40), strict=True)]
    )
    written = ("--out", tmp_path / "out", "--json", tmp_path / "all.json")
    answer = nds("solve", tmp_path / "tight.npz", "--iterations", 3, *written, code=3)
    tables = json.loads((tmp_path / "all.json").read_text())
    assert [(table["problem"]["name"], table["feasible"]) for table in tables] == [
        ("tight-0000", True), ("tight-0001", False), ("tight-0002", True)
    ]  # fmt: skip
    assert len(tables[1]["routes"]) == 1
    assert f"leaves {len(tables[1]['unserved'])} required customers unserved" in answer.stderr
    mean = (tables[0]["cost"] + tables[2]["cost"]) / 2
    assert f"mean cost {mean:.4f} of 2 instances\n" in answer.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["0000.sol", "0002.sol", "summary.csv"]
    rows = list(csv.DictReader((tmp_path / "out/summary.csv").open()))
    assert [row["stopped"] for row in rows] == ["iterations", "no solution", "iterations"]
    assert answer.stderr.startswith("nds: tight-0001: no feasible solution found")
    again = nds("solve", tmp_path / "tight.npz", "--iterations", 3, "--out", tmp_path / "b", "--together", 3, code=3)
    assert again.stderr == answer.stderr
    assert (tmp_path / "b/0002.sol").read_text() == (tmp_path / "out/0002.sol").read_text()
    assert not (tmp_path / "b/0001.sol").exists()


LINE = (
    r"iteration \d[\d,]*  [1-9]\d*\.\d s  \d+ s left  best [\d,]+  "
    r"gap \+\d\.\d\d%  temperature [\d.]+  [\d,]+k? reconstructions/s$"
)


@pytest.mark.slow
def test_interrupted_search_is_written(start_nds, nds, instance, tmp_path):
    out, report, picture = tmp_path / "a.sol", tmp_path / "a.json", tmp_path / "a.png"
    child = start_nds("solve", instance, "--time", 60, "--out", out, "--json", report, "--plot", picture)
    line = child.stderr.readline()
    assert re.match(LINE, line)
    began = time.perf_counter()
    child.send_signal(signal.SIGINT)
    time.sleep(0.05)
    child.send_signal(signal.SIGINT)  # an impatient one does not cost the result
    stdout, stderr = child.communicate(timeout=20)
    assert time.perf_counter() - began < 10
    assert child.returncode == 130
    assert "stopped by       interrupted" in stdout
    assert "Traceback" not in stderr
    assert json.loads(report.read_text())["stopped"] == "interrupted"
    assert picture.stat().st_size > 1000
    nds("check", instance, out)


@pytest.mark.slow
def test_interrupted_set_keeps_what_is_done(start_nds, data, tmp_path):
    child = start_nds("solve", data / "sets/cvrp100.npz", "--time", 60, "--out", tmp_path / "out")
    child.stderr.readline()
    child.send_signal(signal.SIGTERM)
    stdout, _ = child.communicate(timeout=20)
    assert child.returncode == 143
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["0000.sol", "summary.csv"]
    assert "mean cost" in stdout


@pytest.mark.slow
def test_interrupted_batch_is_written(start_nds, data, tmp_path):
    child = start_nds("solve", data / "sets/cvrp100.npz", "--time", 60, "--out", tmp_path / "out", "--together", 2)
    assert child.stderr.readline().startswith("[1-2/2] iteration ")
    child.send_signal(signal.SIGINT)
    stdout, _ = child.communicate(timeout=20)
    assert child.returncode == 130
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["0000.sol", "0001.sol", "summary.csv"]
    assert stdout.count("iterations  interrupted\n") == 2


@pytest.mark.slow
def test_interrupted_before_the_search(start_nds, data, tmp_path):
    """Ctrl-C at any other time ends the command in silence."""
    child = start_nds("generate", "cvrp", "-n", 2000, "--count", 4000, "--out", tmp_path / "a.npz")
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=20)
    assert child.returncode in (130, -signal.SIGINT)  # the latter while Python itself is starting
    assert child.returncode == -signal.SIGINT or "Traceback" not in stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_closed_pipe_does_not_lose_the_result(start_nds, instance, tmp_path):
    out = tmp_path / "a.sol"
    child = start_nds("solve", instance, "--time", 1.5, "--out", out)
    child.stdout.close()
    child.stderr.close()
    assert child.wait(timeout=30) == 0
    assert out.exists()


def test_a_vehicle_cost_beside_the_file(nds, tmp_path):
    """Three routes of 64 in all, or two of 84: the third vehicle pays up to a cost of 20."""
    points = [[0, 0], [10, 0], [11, 0], [-10, 0], [-11, 0]]
    problem = ndsvrp.Problem(coordinates=points, demand=[0, 4, 4, 2, 2], capacity=6, metric="round")
    file, found, dear = tmp_path / "a.vrp", tmp_path / "a.sol", ("--vehicle-cost", 21)
    ndsvrp.write(file, problem)
    told = nds("solve", file, *dear, "--iterations", 20, "--out", found).stdout.splitlines()
    assert [line.split() for line in told if line.startswith(("cost", "distance", "vehicle"))] == [
        ["cost", "126"], ["distance", "84"], ["vehicle", "costs", "42"]
    ]  # fmt: skip
    checked = nds("check", file, found, *dear).stdout
    assert "vehicle costs  42" in checked and "distance       84" in checked
    assert "CVRP with vehicle cost" in nds("info", file, *dear).stdout
    assert "vehicle_cost: -1 is not a cost" in nds("solve", file, "--vehicle-cost", -1, "--time", 1, code=2).stderr


def test_fewest_vehicles_first(nds, tmp_path):
    """Two vehicles instead of three: tests/search/test_fewest.py has the arithmetic."""
    file = tmp_path / "a.vrp"
    points = [(0, 0), (10, 0), (-10, 0), (0, 10), (1, 10)]
    ndsvrp.write(file, ndsvrp.Problem(demand=[0, 6, 6, 4, 4], capacity=10, coordinates=points))
    cost, routes = {}, {}
    for option in ((), ("--fewest-vehicles",)):
        told = nds("solve", file, "--iterations", 20, *option).stdout
        facts = dict(line.split(maxsplit=1) for line in told.splitlines() if line.startswith(("cost", "routes")))
        cost[option], routes[option] = facts["cost"], facts["routes"]
        assert ("fewest vehicles first" in told) == bool(option)
    assert list(routes.values()) == ["3", "2"]
    assert list(cost.values()) == ["61.0499", "67.6456"]


def test_no_gap_to_costs_with_more_vehicles(nds):
    """The best known costs are for the least cost alone."""
    file = "examples/data/C101.txt"
    assert "best known" in nds("solve", file, "--iterations", 1).stdout
    assert "best known" not in nds("solve", file, "--iterations", 1, "--fewest-vehicles").stdout
