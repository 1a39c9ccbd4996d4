"""The headers of the core must be fit for a run-time GPU compiler: nothing of the standard library, no Python."""

from __future__ import annotations

import re
from pathlib import Path

HEADERS = sorted((Path(__file__).parent.parent / "native" / "include" / "ndsvrp").glob("*.hpp"))


def test_headers_include_nothing_but_each_other() -> None:
    names = {header.name for header in HEADERS}
    assert {"types.hpp", "step.hpp"} <= names
    for header in HEADERS:
        included = re.findall(r"#\s*include\s*(\S+)", header.read_text())
        assert {name.strip('"') for name in included} <= names, f"{header.name} includes {included}"
        assert "std::" not in header.read_text(), header.name
