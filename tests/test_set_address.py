"""The script that writes the public address of the repository, and what the files say with and without one."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
TOOL = "set_address"
ADDRESS = "https://github.com/acme/ndsvrp"
STATED = re.compile(r"(Homepage|Documentation|Issues|Changelog) = |(repository-code|repo_url|site_url): ")
NAMES = ("README.md", "pyproject.toml", "CITATION.cff", "mkdocs.yml")


@pytest.fixture
def copy(tmp_path: Path, tool: Any) -> Path:
    """The four files, without an address."""
    for name in NAMES:
        text = (ROOT / name).read_text(encoding="utf-8")
        if name == "README.md":
            text = tool.relative(text)
        kept = [line for line in text.splitlines() if not STATED.match(line)]
        (tmp_path / name).write_text("\n".join(kept) + "\n", encoding="utf-8")
    return tmp_path


def texts(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text(encoding="utf-8") for name in NAMES}


def relative_links(readme: str) -> list[tuple[str, str]]:
    return re.findall(r'\]\((?!https://|#)([^)]+)\)| src="(?!https://)([^"]+)"', readme)


def test_every_file_states_the_address(tool: Any, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main([ADDRESS + ".git", "--site", "https://acme.org/ndsvrp/"], copy) == 0
    assert capsys.readouterr().out == "changed: README.md, pyproject.toml, CITATION.cff, mkdocs.yml\n"
    found = texts(copy)
    assert tomllib.loads(found["pyproject.toml"])["project"]["urls"] == {
        "Paper": "https://openreview.net/forum?id=bCmEP1Ltwq",
        "Homepage": ADDRESS,
        "Documentation": "https://acme.org/ndsvrp/",
        "Issues": f"{ADDRESS}/issues",
        "Changelog": f"{ADDRESS}/blob/main/CHANGELOG.md",
    }
    assert f'\nrepository-code: "{ADDRESS}"\n' in found["CITATION.cff"]
    assert f"\nrepo_url: {ADDRESS}\nsite_url: https://acme.org/ndsvrp/\n" in found["mkdocs.yml"]
    assert f'<img src="{ADDRESS}/raw/main/docs/img/routes-and-gaps.png" width' in found["README.md"]
    assert f"({ADDRESS}/blob/main/docs/benchmarks.md#published-results)" in found["README.md"]
    assert "[citations](#citation)" in found["README.md"] and not relative_links(found["README.md"])


def test_a_second_run_changes_nothing(tool: Any, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tool.main([ADDRESS, "--site", "https://acme.org/"], copy)
    before = texts(copy)
    capsys.readouterr()
    tool.main([ADDRESS + "/"], copy)  # the site stays
    assert capsys.readouterr().out == "nothing to change\n" and texts(copy) == before


def test_another_address_replaces_the_first(tool: Any, copy: Path, tmp_path: Path) -> None:
    tool.main([ADDRESS], copy)
    tool.main(["https://github.com/other/routes.py"], copy)
    after = texts(copy)
    assert not [name for name in NAMES if "acme" in after[name]]
    assert "https://github.com/other/routes.py/tree/main/docs" in after["pyproject.toml"]
    assert tool.relative(after["README.md"]) == tool.relative((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "arguments",
    [["github.com/acme/ndsvrp"], ["https://github.com/acme"], ["https://gitlab.com/acme/ndsvrp"],
     [ADDRESS, "--site", "acme.org"], [f"{ADDRESS}/tree/main"]],
)  # fmt: skip
def test_other_addresses_are_refused(
    tool: Any, copy: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = texts(copy)
    with pytest.raises(SystemExit) as end:
        tool.main(arguments, copy)
    assert end.value.code == 2 and f"{arguments[-1]}: not of the form https://" in capsys.readouterr().err
    assert texts(copy) == before


def test_the_site_has_pages_in_place_of_absolute_links(tool: Any, copy: Path) -> None:
    pytest.importorskip("mkdocs")
    import site_hooks

    before = site_hooks.from_root(texts(copy)["README.md"])
    tool.main([ADDRESS], copy)
    assert site_hooks.from_root(texts(copy)["README.md"]) == before
    assert "](getting-started.md)" in before and "acme" not in before


def test_all_links_of_the_readme_are_absolute_once_there_is_an_address(tool: Any) -> None:
    found = texts(ROOT)
    stated = re.search(r"^Homepage = \"(.*)\"$", found["pyproject.toml"], re.MULTILINE)
    if stated is None:
        pytest.skip("the project has no public address")
    assert not relative_links(found["README.md"]), f"run tools/set_address.py {stated[1]}"


def test_files_that_the_readme_links_exist(tool: Any) -> None:
    """Also behind absolute links."""
    links = [link or image for link, image in relative_links(tool.relative(texts(ROOT)["README.md"]))]
    assert len(links) > 30
    assert [link for link in links if not (ROOT / link.partition("#")[0]).exists()] == []


def test_the_version_is_the_same_everywhere() -> None:
    found = texts(ROOT)
    version = tomllib.loads(found["pyproject.toml"])["project"]["version"]
    assert f"\nversion: {version}\n" in found["CITATION.cff"]
