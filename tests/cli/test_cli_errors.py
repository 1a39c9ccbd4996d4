"""Bad input: one line on the error stream, exit code 2, no traceback, nothing written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ndsvrp

DATA = Path(__file__).parents[1] / "data"
MESSAGES = {
    re.match(r"[\w-]+\.\w+", line)[0]: line for line in (DATA / "broken-messages.txt").read_text("utf-8").splitlines()
}


@pytest.fixture
def refused(nds, tmp_path):
    """The one line a refused command line gives; what it should have written is not there."""

    def run(*args):
        before = sorted(tmp_path.rglob("*"))
        answer = nds(*args, code=2)
        assert answer.stderr.startswith("nds: ") and answer.stderr.count("\n") == 1
        assert sorted(tmp_path.rglob("*")) == before
        return answer.stderr.removeprefix("nds: ").rstrip("\n")

    return run


@pytest.mark.parametrize("name", MESSAGES)
def test_broken_file(refused, monkeypatch, tmp_path, name):
    monkeypatch.chdir(DATA / "broken")
    toy = DATA / "small/toy.vrp"
    files = ("--out", tmp_path / "out", "--json", tmp_path / "a.json")
    if name.endswith(".sol"):
        assert refused("check", toy, name) == MESSAGES[name]
        assert refused("solve", toy, "--init", name, *files) == MESSAGES[name]
    else:
        assert refused("solve", name, *files) == MESSAGES[name]
        assert refused("info", name) == MESSAGES[name]
        if not name.endswith(".npz"):
            assert refused("check", name, DATA / "small/toy.sol") == MESSAGES[name]


def test_no_traceback_in_a_process_of_its_own(start_nds, tmp_path):
    child = start_nds("solve", DATA / "broken/window-closed.vrp", "--out", tmp_path / "a.sol")
    stdout, stderr = child.communicate(timeout=30)
    assert (child.returncode, stdout, stderr.count("\n")) == (2, "", 1)
    assert "window-closed.vrp:" in stderr


TOY = DATA / "small/toy.vrp"
SET = DATA / "sets/cvrp100.npz"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("solve", "no.vrp"), "no.vrp: no such file"),
        (("solve", TOY, "--time", 0), "--time: 0 is not a number of seconds"),
        (("solve", TOY, "--time", "nan"), "--time: nan is not a number of seconds"),
        (("solve", TOY, "--time", "inf"), "--time: inf is not a number of seconds"),
        (("solve", TOY, "--target", "nan"), "--target: nan is not a cost"),
        (("solve", TOY, "--solver", "hgs"), "unknown solver 'hgs': one of auto, hybrid, nds, sisr"),
        (("solve", TOY, "--ruin", "x"), "unknown ruin 'x': one of string, related, random, policy"),
        (("solve", TOY, "--device", "tpu"), "unknown device 'tpu': one of auto, cpu, cuda"),
        (("solve", TOY, "--preset", "x"), "unknown preset 'x': one of default, paper, paper-text, paper-code"),
        (("solve", TOY, "--round", "up"), "unknown metric 'up' (known: auto, none, round, trunc, dimacs, exact)"),
        (("solve", TOY, "--index", 1), f"{TOY}: no instance 1, the file holds one (0)"),
        (("solve", SET, "--index", 9), f"{SET}: no instance 9, there are 2 (0 … 1)"),
        (("solve", TOY, "--set", "removals=x"), "--set: removals is a whole number, not 'x'"),
        (("solve", TOY, "--set", "blink=x"), "--set: blink is a number, not 'x'"),
        (("solve", TOY, "--set", "scope=x"), "--set: scope is one of touched, all, not 'x'"),
        (("solve", TOY, "--set", "ruin=x"), "--set: no setting 'ruin' (use --ruin)"),
        (("solve", TOY, "--set", "blink=2"), "blink must be between 0 and 0.999, got 2.0"),
        (("solve", SET, "--plot", "a.png"), "--plot is for one instance: choose one of the set by --index"),
        (("solve", SET, "--init", "a.sol"), "--init is for one instance: choose one of the set by --index"),
        (("solve", TOY, "--together", 2), "--together is for the instances of a set"),
        (("generate", "tsp", "-n", 5, "--out", "a.npz"), "unknown variant 'tsp' (known: cvrp, vrptw, pcvrp, pcvrptw)"),
        (
            ("generate", "cvrp", "-n", 10**9, "--out", "a.npz"),
            "1,000,000,000 customers make a set too large to be read: at most 8,388,608",
        ),
        (("generate", "cvrp", "-n", 5, "--out", "a.txt"), "a.txt: a set is written as .npz"),
        (("generate", "vrptw", "-n", 5, "--seeds", "x", "--out", "a.npz"), "--seeds: 'x' is not a range like 2-6"),
        (
            ("generate", "vrptw", "-n", 5, "--customer-layout", "ring", "--out", "a.npz"),
            "unknown customer position 'ring' (known: random, clustered, random-clustered)",
        ),
        (("bench", "report", "no.jsonl"), "no.jsonl: no such file"),
        (
            ("bench", "report", "no.jsonl", "--out", "a.txt"),
            "a.txt: reports are written as .md, .html, .tex, .csv, not as '.txt'",
        ),
        (("bench", "run", SET, "--ruin", "x"), "--ruin: one of string, related, random, policy, not 'x'"),
        (("bench", "run", SET, "--ruin", "policy"), "the ruin 'policy' is for the solver 'nds', not 'hybrid'"),
        (("bench", "run", SET, "--device", "tpu"), "--device: one of cpu, cuda, not 'tpu'"),
        (("bench", "run", SET, "--times", "1,x"), "--times: 'x' is not a number of seconds"),
        (("bench", "run", SET, "--seeds", "1,5-3"), "--seeds: '5-3' is neither a number nor a range like 1-5"),
        (("bench", "run", SET, "--seeds", "-1"), "--seeds: '-1' is neither a number nor a range like 1-5"),
        (("bench", "gpu", "--sizes", "10"), "--sizes: 15 customers are removed at once, 10 are too few"),
        (("bench", "limits", "--time", "inf"), "--time: inf is not a number of seconds"),
        (("check", TOY, DATA / "small/toy.sol", "--best", 0), "--best: 0 is not a cost to compare with"),
        (("check", TOY, DATA / "small/toy.sol", "--best", "nan"), "--best: nan is not a cost to compare with"),
    ],
    ids=lambda value: "-".join(str(v) for v in value[:1] + value[2:]).strip("-") if isinstance(value, tuple) else "",
)
def test_message(refused, monkeypatch, tmp_path, args, message):
    monkeypatch.chdir(tmp_path)
    assert refused(*args) == message


@pytest.mark.parametrize(
    "args",
    [("solve",), ("solve", TOY, "--time", "x"), ("solve", TOY, "--iterations", 0), ("solve", TOY, "--seed", -1),
     ("solve", TOY, "--seed", 10**30), ("solve", TOY, "--bogus"), ("no",), ("generate", "cvrp", "-n", 0, "--out", "a"),
     ("solve", TOY, "--device", "cuda"), ("solve", TOY, "--model", "no"), ("bench", "run", SET, "--solvers", "x"),
     ("bench", "run", "nowhere"), ("bench", "run", SET, "--time", 0), ("solve", TOY, "--set", "x")],
    ids=lambda args: "-".join(map(str, args[:1] + args[2:])),
)  # fmt: skip
def test_one_line(refused, args):
    refused(*args)


def test_outputs_are_checked_before_the_search(refused, tmp_path):
    long = ("--time", 600)
    nowhere = tmp_path / "no" / "a.sol"
    for option in ("--out", "--json"):
        assert refused("solve", TOY, *long, option, nowhere) == f"{nowhere}: cannot be written (No such directory)"
        assert refused("solve", TOY, *long, option, tmp_path) == f"{tmp_path}: cannot be written (Is a directory)"
    png = tmp_path / "no" / "a.png"
    assert refused("solve", TOY, *long, "--plot", png) == f"{png}: cannot be written (No such directory)"
    assert "pictures are written as" in refused("solve", TOY, *long, "--plot", tmp_path / "a.xyz")
    assert "'.png' is a picture: --plot" in refused("solve", TOY, *long, "--out", tmp_path / "a.png")
    for name, option, words in (
        ("a.png", "--report", "a page is written as .html, not as '.png'"),
        ("a.html", "--json", "JSON is written as .json, not as '.html'"),
        ("a.tsv", "--out", "'.tsv' is an instance; a result is .sol, .json, .geojson, .csv or .html"),
        ("a.vrp", "--out", "'.vrp' is an instance; a result is .sol, .json, .geojson, .csv or .html"),
    ):
        assert refused("solve", TOY, *long, option, tmp_path / name) == f"{tmp_path / name}: {words}"
    assert "JSON is written as .json" in refused("solve", SET, *long, "--json", tmp_path / "a.csv")
    matrix = DATA / "small/toymatrix.vrp"
    assert "has no coordinates" in refused("solve", matrix, *long, "--plot", tmp_path / "a.png")
    same = tmp_path / "same"
    assert refused("solve", TOY, *long, "--out", same, "--json", same) == f"{same}: is given for two outputs"
    folder = nowhere.with_suffix("")
    assert refused("solve", SET, *long, "--out", folder) == f"{folder}: cannot be written (No such directory)"
    taken = tmp_path / "taken"
    taken.write_text("")
    assert "taken: cannot be made a folder (" in refused("solve", SET, *long, "--out", taken)
    sol = tmp_path / "a.sol"
    assert refused("solve", SET, *long, "--out", sol) == f"{sol}: '.sol' is a file; for a set, --out names a folder"


def test_instance_is_not_overwritten(refused, tmp_path):
    file = tmp_path / "toy.vrp"
    file.write_bytes(TOY.read_bytes())
    assert refused("solve", file, "--out", file) == f"{file}: is the instance itself, it would be overwritten"
    assert file.read_bytes() == TOY.read_bytes()


def test_matrix_is_not_overwritten(refused, tmp_path):
    stops, matrix = tmp_path / "stops.csv", tmp_path / "matrix.csv"
    stops.write_text("name,demand\ndepot,0\na,1\nb,1\n")
    matrix.write_text("0,2,3\n2,0,4\n3,4,0\n")
    given = (stops, "--capacity", 2, "--distance", matrix)
    message = f"{matrix}: is a matrix of the instance, it would be overwritten"
    assert refused("solve", *given, "--iterations", 1, "--out", matrix) == message
    assert refused("convert", stops, matrix, *given[1:]) == message
    assert matrix.read_text().startswith("0,2,3")


def test_instances_of_a_folder_are_not_overwritten(refused, tmp_path):
    files = [tmp_path / "a.vrp", tmp_path / "b.json"]
    files[0].write_bytes(TOY.read_bytes())
    ndsvrp.write(files[1], ndsvrp.read(TOY))
    before = [file.read_bytes() for file in files]
    assert refused("convert", tmp_path, tmp_path) == f"{files[0]}: is the instance itself, it would be overwritten"
    assert "is the instance itself" in refused("solve", tmp_path, "--iterations", 1, "--json", files[1])
    message = "is the folder of the instances, summary.csv would be read as one of them: name another"
    assert refused("solve", tmp_path, "--iterations", 1, "--out", tmp_path) == f"{tmp_path}: {message}"
    assert [file.read_bytes() for file in files] == before
    assert sorted(tmp_path.iterdir()) == files


def test_results_of_a_set_are_no_solution(nds, refused, tmp_path):
    listed = tmp_path / "all.json"
    nds("solve", SET, "--iterations", 1, "--json", listed)
    message = f"{listed}: is a list of 2 results; accepted: a .sol file, or the JSON of one result"
    for args in (("check", SET), ("check", SET, "--index", 0), ("solve", SET, "--index", 0, "--init")):
        assert refused(*args, listed).startswith(message)


def test_start_that_does_not_fit(refused, tmp_path):
    start = tmp_path / "start.sol"
    start.write_text("Route #1: 1 2 1\nCost: 5\n")
    message = refused("solve", TOY, "--init", start)
    assert message.startswith(f"{start}: init: the initial solution is infeasible: ")


def test_warning_is_one_line(nds, tmp_path):
    file = tmp_path / "remark.vrp"
    file.write_text((DATA / "small/toy.vrp").read_text().replace("TYPE : CVRP", "TYPE : CVRP\nWEATHER : fine"))
    for command in (("info", file), ("check", file, DATA / "small/toy.sol"), ("solve", file, "--iterations", 1)):
        assert "--ignore-field WEATHER" in nds(*command, code=2).stderr
        answer = nds(*command, "--ignore-field", "other", "--ignore-field", "WEATHER")
        assert re.match(r"nds: warning: .*WEATHER: ignored, as asked\n", answer.stderr)


def test_a_bug_shows_itself(nds, monkeypatch):
    def broken(*args, **kwargs):
        raise ZeroDivisionError

    monkeypatch.setattr("ndsvrp.cli.inspect.check", broken)
    with pytest.raises(ZeroDivisionError):
        nds("check", TOY, DATA / "small/toy.sol")


def test_a_search_that_breaks_a_rule_shows_itself(nds, monkeypatch):
    monkeypatch.setattr("ndsvrp.search.asa.Search.best", lambda self: [ndsvrp.Solution([[1, 2, 3, 4]])])
    with pytest.raises(RuntimeError, match="please report this"):
        nds("solve", TOY, "--iterations", 1)
