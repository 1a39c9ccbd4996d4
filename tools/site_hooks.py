"""Hooks of the documentation site: pages from the files at the root of the repository.

README.md, CHANGELOG.md and CONTRIBUTING.md are written once, with links as they are in the repository. On the site they
are pages beside those of docs/, so links between the two are changed. The site has no pages of source files: links to
them become plain text. Links of the README that tools/set_address.py made absolute are pages here, too.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from set_address import relative

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages from the root of the repository."""
    for name, page in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=from_root(text)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Change links of a page in docs/ that lead out of it."""
    above = "../" * (page.file.src_uri.count("/") + 1)
    return LINK.sub(lambda match: _outside(match, above), markdown)


def on_post_page(output: str, **_: Any) -> str:
    """Keep the theme from asking GitHub for the stars of repo_url: pages load nothing from elsewhere."""
    return output.replace(' data-md-component="source"', "")


def from_root(text: str) -> str:
    """Return a page from the root as a page of docs/."""

    def change(match: re.Match[str]) -> str:
        name, target = match.groups()
        if target.startswith("docs/"):
            return f"[{name}]({target.removeprefix('docs/')})"
        return match[0] if target.startswith(("https://", "#")) else _on_site(name, target)

    return LINK.sub(change, relative(text)).replace('src="docs/', 'src="')


def _outside(match: re.Match[str], above: str) -> str:
    name, target = match.groups()
    return _on_site(name, target.removeprefix(above), above[3:]) if target.startswith(above) else match[0]


def _on_site(name: str, target: str, above: str = "") -> str:
    """Return a link to a file outside docs/, or plain text if the site does not have it."""
    file, _, fragment = target.partition("#")
    if file not in PAGES:
        return name
    return f"[{name}]({above}{PAGES[file]}{'#' if fragment else ''}{fragment})"
