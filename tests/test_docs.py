"""What the documentation refers to exists."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import ndsvrp

ROOT = Path(__file__).parents[1]
FOLDERS = ("", "docs", "docs/tutorials", "docs/experiments", "docs/findings", "configs", "results", "tools",
           "examples/data", "tests/data")  # fmt: skip
PAGES = sorted(page for folder in FOLDERS for page in (ROOT / folder).glob("*.md"))
BASES = ("", "src/ndsvrp", "native", "native/include/ndsvrp", "native/cuda")
NATIVE = ("*.hpp", "*.cpp", "*.cu")
KINDS = "py|hpp|cpp|cu|toml|jsonl|csv"
FILES = {path.name for folder in ("src", "native", "tests", "configs", "examples", "results", "tools")
         for path in (ROOT / folder).rglob("*") if path.is_file()}  # fmt: skip

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def anchors(page: Path) -> set[str]:
    """The fragments that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pages
def test_links(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith("https://"):
            continue
        file, _, fragment = target.partition("#")
        linked = (page.parent / file).resolve() if file else page
        assert linked.exists(), target
        assert not fragment or fragment in anchors(linked), target


@pages
def test_named_files(page: Path) -> None:
    """Except for names with placeholders, outputs, files of an old commit, and notes of the log."""
    if page.name == "log.md":
        return
    text = re.sub(r"(--out|--resume) \S+|`\S+` of\s+commit", "", page.read_text(encoding="utf-8"))
    paths = re.findall(rf"(?<![\w./…*-])((?:[\w.-]+/)+[\w.-]+\.(?:{KINDS}))\b", text)
    paths += re.findall(rf"`([\w-]+\.(?:{KINDS}))`", text)
    unknown = set()
    for path in paths:
        if re.search(r"[A-Z]{3}", path) or path.startswith("out/") or path == "log.jsonl":
            continue
        if path not in FILES and not any((base / path).exists() for base in (page.parent, *(ROOT / b for b in BASES))):
            unknown.add(path)
    assert not unknown


@pages
def test_blocks_of_list_items_are_indented_by_four(page: Path) -> None:
    """With fewer spaces the site ends the list there, and the next item is number 1 again."""
    assert not re.findall(r"^ {1,3}(?:\||```).*$", page.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_map_lists_every_package_and_file() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    listed = Counter(re.findall(r"^(?:    |\*\*`)([\w./]+)(?:  |`)", text, re.MULTILINE))
    sources = [
        *(ROOT / "src/ndsvrp").rglob("*.py"),
        *(file for kind in NATIVE for file in (ROOT / "native").rglob(kind)),
    ]
    present = Counter(
        ".".join(file.parent.relative_to(ROOT / "src").parts) if file.name == "__init__.py" else file.name
        for file in sources
    )
    missing, gone = present - listed, listed - present - Counter(["native/include/ndsvrp", "native/cpu", "native/cuda"])
    assert not missing and not gone, (sorted(missing), sorted(gone))


@pytest.mark.parametrize("folder", ["tools", "results"])
def test_a_folder_lists_its_files(folder: str) -> None:
    text = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    files = [file.name for kind in ("*.py", "*.jsonl") for file in (ROOT / folder).glob(kind)]
    assert len(files) > 5
    assert [name for name in files if name not in text] == []


def test_the_reference_has_every_public_name() -> None:
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^::: ndsvrp(?:\.\w+)*\.(\w+)$", text, re.MULTILINE)) == sorted(ndsvrp.__all__)


def test_the_reference_hides_what_only_the_package_uses() -> None:
    filters = re.findall(r'"!\^\(([\w|]+)\)\$"', (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    hidden = "|".join(filters).split("|")
    assert {"comparable_times", "time_scale", "recipe", "rule_recipe", "with_export"} <= set(hidden)
    public = [ndsvrp.models.Model, *(getattr(ndsvrp, name) for name in ndsvrp.__all__)]
    assert not [name for name in hidden if not any(hasattr(each, name) for each in public)]  # each still exists


def test_the_reference_shows_the_comments_of_fields() -> None:
    griffe = pytest.importorskip("griffe")
    extension = "tools/site_comments.py"
    assert f"extensions: [{extension}]" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    package = griffe.load(
        "ndsvrp", search_paths=[ROOT / "src"], submodules=True, extensions=griffe.load_extensions(str(ROOT / extension))
    )
    texts = {
        name: package[name].docstring.value
        for name in ("problem.Problem.capacity", "metric.Metric.TRUNC", "solution.Route")
    }
    assert texts == {
        "problem.Problem.capacity": "what a vehicle can carry",
        "metric.Metric.TRUNC": "integer part",
        "solution.Route": "customers (1 … N) in the order of visit; the depot at both ends is implied",
    }


def test_the_readme_names_every_page_of_the_site() -> None:
    readme, site = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "mkdocs.yml"))
    pages = [page.name for page in (ROOT / "docs").glob("*.md")]
    assert not [page for page in pages if f"docs/{page}" not in readme or page not in site]
