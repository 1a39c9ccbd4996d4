"""The documentation site: it builds strictly, loads nothing from elsewhere, and its search works from a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from serve.browser import CHROMIUM, Browser

ROOT = Path(__file__).parents[1]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as it is once the repository has an address."""
    pytest.importorskip("mkdocs")
    target = tmp_path_factory.mktemp("site")
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    if "\nrepo_url: " not in config:
        config += "\nrepo_url: https://github.com/acme/ndsvrp\n"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-f", "-", "-d", target]
    environ = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, input=config, env=environ, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return target


@pytest.fixture
def browser() -> Iterator[Browser]:
    browser = Browser()
    yield browser
    browser.close()


def test_the_search_works_from_a_folder(site: Path, browser: Browser) -> None:
    browser.open((site / "tutorials/own-data.html").as_uri())
    browser.wait("document.querySelector('.md-search__input')?.offsetWidth")
    browser.run("document.querySelector('.md-search__input').focus()")
    found = "document.querySelector('.md-search-result__item a')?.textContent"
    browser.send("Input.insertText", text="schedule")
    browser.wait(found)
    assert "schedule" in browser.run("document.querySelector('.md-search-result__list').textContent").lower()
    assert browser.run("document.querySelector('.md-source').href").startswith("https://github.com/")
    assert [address for address in browser.requested() if not address.startswith(("file:", "data:"))] == []
    assert browser.complaints() == []


def test_pictures_of_the_first_page_load(site: Path, browser: Browser) -> None:
    browser.open((site / "index.html").as_uri())
    browser.wait("document.readyState === 'complete'")
    assert browser.run("[...document.images].map((image) => image.naturalWidth > 0)") == [True]
