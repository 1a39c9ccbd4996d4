"""Skips these tests without the extra `serve`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from serve.running import Client

LIB = Path(__file__).parents[1] / "data/lib"

collect_ignore_glob = ["test_*.py"] if None in map(find_spec, ("fastapi", "uvicorn", "httptools")) else []


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    from serve.running import open_client

    with open_client(tmp_path_factory.mktemp("serve") / "jobs.sqlite") as client:
        yield client


@pytest.fixture(scope="session")
def cvrp() -> bytes:
    return (LIB / "X/X-n106-k14.vrp").read_bytes()


@pytest.fixture(scope="session")
def vrptw() -> bytes:
    return (LIB / "Solomon/C101.txt").read_bytes()
