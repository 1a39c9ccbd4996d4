"""The commands and the Python of the user's pages run, block after block, each page in an empty folder."""

from __future__ import annotations

import json
import re
import shlex
import warnings
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import ndsvrp
from ndsvrp.cli import app

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted(path.stem for path in (ROOT / "docs/tutorials").glob("*.md"))
# A file by its title, Python, or an indented command.
PART = re.compile(r'```\w+ title="([\w.]+)"\n(.*?)```|```python\n(.*?)```|^    (nds .*?)$', re.DOTALL | re.MULTILINE)
TIME = re.compile(r"(--time |\btime=)[\d.]+")


def run_page(page: str, folder: Path, *, commands: bool) -> int:
    """Run what a page shows, with short time limits. Return the number of parts that ran."""
    names: dict[str, object] = {}
    count = 0
    for file, content, block, command in PART.findall((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")):
        if file:
            (folder / file).write_text(content, encoding="utf-8")
        elif block:
            exec(compile(TIME.sub(r"\g<1>0.1", block), f"{page}.md", "exec"), names)
        elif commands:
            with pytest.raises(SystemExit) as end:
                app(shlex.split(TIME.sub(r"\g<1>0.1", command), comments=True)[1:], prog_name="nds")
            assert end.value.code == 0, command
        count += not file
    return count


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


@pytest.mark.parametrize("page", ["modelling", "results", "instances"])
def test_blocks_run(page: str, folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_page(page, folder, commands=False) >= 2


@pytest.mark.slow
def test_the_model_is_loaded_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_page("models", folder, commands=False)
    assert "'name': 'all'" in capsys.readouterr().out


@pytest.mark.slow
def test_random_insertion_orders_of_a_policy() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "configs/README.md").read_text(encoding="utf-8"), re.DOTALL)
    block = re.sub(r"out/paper/[\w/-]+", "all", block).replace("iterations=1000", "iterations=1")
    exec(compile(block, "configs/README.md", "exec"), {"ndsvrp": ndsvrp, "problem": ndsvrp.generate("cvrp", 20)[0]})


def test_no_page_has_python_that_does_not_run() -> None:
    """Those of the last line run in tests of what they show."""
    folders = ("", "configs", "results", "tools", "docs", "docs/tutorials", "docs/experiments")
    files = [page for folder in folders for page in (ROOT / folder).glob("*.md")]
    pages = {str(page.relative_to(ROOT)) for page in files if "```python" in page.read_text(encoding="utf-8")}
    here = {f"docs/{name}.md" for name in ("modelling", "results", "instances", "models", "getting-started")}
    here |= {"configs/README.md", *(f"docs/tutorials/{name}.md" for name in TUTORIALS)}
    assert pages - here == {"README.md", "docs/comparison.md", "docs/service.md", "docs/cluster.md"}


@pytest.mark.parametrize(
    "page",
    [
        *(f"tutorials/{name}" for name in TUTORIALS if name != "training"),
        pytest.param("tutorials/training", marks=pytest.mark.slow),
    ],
)
def test_tutorials_run(page: str, folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_page(page, folder, commands=True) >= 2


def parse(command: Any, args: list[str], name: str = "nds", parent: Any = None) -> None:
    """Parse a command line as the command does, without running it."""
    context = command.make_context(name, args, parent=parent)
    if hasattr(command, "resolve_command"):  # a group of commands
        name, inner, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        parse(inner, rest, name, context)


def test_commands_of_all_pages_have_known_options() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "configs").glob("*.md")]
    lines = [
        line for page in pages for line in re.findall(r"^    (?:.* \| )?(nds .*)$", page.read_text(), re.MULTILINE)
    ]
    shown = [re.sub(r" > \S+|\[.*?\]", "", line) for line in lines if "-completion" not in line]
    for line in shown:
        parse(get_command(app), shlex.split(line, comments=True)[1:])
    assert len(shown) > 70


def test_page_of_sets_writes_what_it_shows(folder: Path) -> None:
    run_page("getting-started", folder, commands=True)
    assert len(list((folder / "solutions").glob("*.sol"))) == 2
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    assert [row["solver"] for row in rows] == ["hybrid", "sisr"] * 2 and all(row["feasible"] for row in rows)
    assert "<h1>" in (folder / "report.html").read_text()


def run_readme(commands: str) -> int:
    """Run those commands of the README, with shorter limits. Return their number."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.findall(rf"^    (nds (?:{commands}) .*)$", text, re.MULTILINE)
    for line in lines:
        with pytest.raises(SystemExit) as end:
            app(shlex.split(TIME.sub(r"\g<1>0.1", line), comments=True)[1:], prog_name="nds")
        assert end.value.code == 0, line
    return len(lines)


def test_commands_of_the_readme_run(folder: Path) -> None:
    assert run_readme("solve|check") == 2
    assert (folder / "a.sol").exists() and (folder / "a.png").exists()


@pytest.mark.slow
def test_experiment_and_benchmark_of_the_readme_run(folder: Path) -> None:
    pytest.importorskip("pyvrp")
    pytest.importorskip("hygese")
    assert run_readme("experiment|bench run") == 2
    assert list((folder / "out").rglob("*.png"))
