"""What the README and the examples show works."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_problem_from_arrays(capsys):
    result = load("from_arrays").main(seconds=0.3)
    assert result.report.feasible and len(result.solution.routes) <= 10
    assert capsys.readouterr().out.startswith("cost ")


def test_problem_piece_by_piece(capsys):
    result = load("from_model").main(seconds=0.1)
    assert result.report.feasible and result.problem.names[1:] == ("bakery", "school", "office", "museum", "market")
    assert sorted(re.findall(r"\w+", capsys.readouterr().out)) == sorted(result.problem.names[1:])


@pytest.mark.parametrize("example", ["own_ruin", "own_policy"])
def test_ruin_of_ones_own(example):
    result = load(example).main(iterations=20)
    assert result.report.feasible
    assert result.settings["ruin"] == "function"
    assert result.trace[-1].cost < result.trace[0].cost


def test_python_of_the_readme(monkeypatch, tmp_path):
    first, second = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert "time=30" in first and 'device="cuda"' in second and "time=10" in second
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names = {}
    exec(compile(first.replace("time=30", "time=0.3"), "README.md", "exec"), names)
    names["problems"] = [names["problem"]]
    exec(compile(second.replace("cuda", "cpu").replace("time=10", "time=0.3"), "README.md", "exec"), names)
    assert len(names["costs"]) == 1 and names["costs"][0] < 1.5 * names["result"].cost
