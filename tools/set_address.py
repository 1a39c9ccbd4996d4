"""Writes the public address of the repository into every file that states it.

Usage: python tools/set_address.py https://github.com/OWNER/NAME [--site https://…/]

pyproject.toml gets the project's URLs, CITATION.cff the repository, mkdocs.yml the link to it and, with --site, the
address of the documentation. Links and images of README.md become absolute, because PyPI shows it without the files
beside it. Run it again after a change of the README, or with another address.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ADDRESS = re.compile(r"https://github\.com/[\w-]+/[\w.-]+")
OWN_FILE = re.compile(ADDRESS.pattern + r"/(?:blob|raw)/main/")
# The target of a Markdown link, and of an HTML image, that is a file of the repository.
LINK = re.compile(r"(?<=\]\()(?!https?://|mailto:|#)(?=[^)\s]+\))")
IMAGE = re.compile(r'(?<= src=")(?!https?://)')


def relative(text: str) -> str:
    """Return a page with links to files of the repository as they are without an address."""
    return OWN_FILE.sub("", text)


def absolute(text: str, address: str) -> str:
    """Return a page whose links and images work wherever it is shown."""
    text = IMAGE.sub(f"{address}/raw/main/", relative(text))
    return LINK.sub(f"{address}/blob/main/", text)


def project_urls(text: str, address: str, site: str | None) -> str:
    """Return pyproject.toml with the project's URLs. Others, such as that of the paper, stay."""
    found = re.search(r"^\[project\.urls\]\n((?:.+\n)*)", text, re.MULTILINE)
    if found is None:
        raise ValueError("pyproject.toml: no [project.urls]")
    urls = {
        "Homepage": f'"{address}"',
        "Documentation": f'"{site or address + "/tree/main/docs"}"',
        "Issues": f'"{address}/issues"',
        "Changelog": f'"{address}/blob/main/CHANGELOG.md"',
    }
    urls = dict(line.split(" = ", 1) for line in found[1].splitlines()) | urls
    lines = "".join(f"{name} = {value}\n" for name, value in urls.items())
    return text[: found.start(1)] + lines + text[found.end(1) :]


def set_line(text: str, key: str, value: str, after: str) -> str:
    """Return a YAML file with this value of a top-level key: in its line, or in a new one after that of another key."""
    line = f"{key}: {value}"
    new, count = re.subn(rf"^{key}: .*$", line, text, flags=re.MULTILINE)
    if not count:
        new, count = re.subn(rf"^({after}: .*)$", rf"\1\n{line}", text, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"no place for {key}: {count} lines with {after}")
    return new


def addressed(files: dict[str, str], address: str, site: str | None) -> dict[str, str]:
    """Return the four files with the address in them. Without a site, that of mkdocs.yml stays."""
    if stated := re.search(r"^site_url: (.*)$", files["mkdocs.yml"], re.MULTILINE):
        site = site or stated[1]
    site_page = set_line(files["mkdocs.yml"], "repo_url", address, "site_description")
    return {
        "README.md": absolute(files["README.md"], address),
        "pyproject.toml": project_urls(files["pyproject.toml"], address, site),
        "CITATION.cff": set_line(files["CITATION.cff"], "repository-code", f'"{address}"', "type"),
        "mkdocs.yml": set_line(site_page, "site_url", site, "repo_url") if site else site_page,
    }


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Change the files, and print which of them changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", help="of the repository: https://github.com/OWNER/NAME")
    parser.add_argument("--site", help="of the documentation, if it is published")
    given = parser.parse_args(arguments)
    address = given.address.removesuffix("/").removesuffix(".git")
    if not ADDRESS.fullmatch(address):
        parser.error(f"{given.address}: not of the form https://github.com/OWNER/NAME")
    if given.site and not re.fullmatch(r"https://\S+/", given.site):
        parser.error(f"{given.site}: not of the form https://HOST/…/, with a slash at the end")
    names = ("README.md", "pyproject.toml", "CITATION.cff", "mkdocs.yml")
    before = {name: (root / name).read_text(encoding="utf-8") for name in names}
    after = addressed(before, address, given.site)
    changed = [name for name in names if after[name] != before[name]]
    for name in changed:
        (root / name).write_text(after[name], encoding="utf-8")
    print(f"changed: {', '.join(changed)}" if changed else "nothing to change")
    return 0


if __name__ == "__main__":
    sys.exit(main())
