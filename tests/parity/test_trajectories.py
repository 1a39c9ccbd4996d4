"""Searches find what they found when the file was recorded."""

from __future__ import annotations

import json

import pytest
from trajectories import RECORDED, cases, search

ROWS = [json.loads(line) for line in RECORDED.read_text().splitlines()]
FOUND = ("cost", "routes")


def test_the_file_has_every_case() -> None:
    assert [{key: row[key] for key in row if key not in FOUND} for row in ROWS] == list(cases())


@pytest.mark.parametrize("part", [0, 1, *(pytest.param(part, marks=pytest.mark.slow) for part in range(2, 16))])
def test_recorded_searches(part: int) -> None:
    for row in ROWS[part::16]:
        assert search(row) == {key: row[key] for key in FOUND}, row
