"""The version of the code that searches."""

import ast
from pathlib import Path

import ndsvrp
from ndsvrp.search.code_version import _files

ABOUT_TEXT = {"clock", "errors", "extras", "records", "schedule", "scope", "solution", "text"}
"""Modules that hold messages, checks of types and what users see: costs and routes do not depend on them."""


def test_every_shared_module_that_a_search_imports_counts() -> None:
    """Rows of another version are not reused: a module that is left out would keep the rows of old code."""
    shared = {file.stem for file in Path(ndsvrp.__file__).parent.glob("*.py")}
    files = _files()
    imported = {
        node.module.split(".")[1]
        for name, file in files.items()
        for node in (ast.walk(ast.parse(file.read_text())) if name.endswith(".py") else ())
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("ndsvrp.")
    }
    counted = {name.removesuffix(".py") for name in files}
    assert (imported & shared) - counted == ABOUT_TEXT
    assert {"arrays", "check", "counter_random", "geo", "experiments/ruins"} <= counted
