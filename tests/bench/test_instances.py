from pathlib import Path

import pytest

from ndsvrp.bench.instances import find_cases, select
from ndsvrp.errors import InstanceError, NdsWarning

NAMES = [f"X-n{i}" for i in range(8)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, [0, 1, 2, 3, 4, 5, 6, 7]),
        ("0-7", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("3", [3]),
        ("0,2,5-6", [0, 2, 5, 6]),
        ("5-6, 5, 0", [5, 6, 0]),
        ("X-n4,1", [4, 1]),
    ],
)
def test_selection(text: str | None, expected: list[int]) -> None:
    assert select(text, NAMES) == expected


@pytest.mark.parametrize("text", ["8", "0-8", "3-1", "", "x", "-1", "1,,2", "1-2-3"])
def test_bad_selection(text: str) -> None:
    with pytest.raises(InstanceError, match=r"instances: '"):
        select(text, NAMES)


def test_numbers_are_positions_even_where_names_are_numbers() -> None:
    assert select("1", ["0001", "0000"]) == [1]


def test_npz_set(small_set: Path) -> None:
    cases = find_cases(small_set, "1-2")
    assert [(case.set, case.name, case.index) for case in cases] == [("small", "0001", 1), ("small", "0002", 2)]
    assert cases[0].load().coordinates[1].tolist() == [6.0, 8.0]  # type: ignore[index]
    assert cases[0].digest() == cases[1].digest()


def test_folder_and_pattern_in_natural_order(tmp_path: Path) -> None:
    folder = tmp_path / "X"
    folder.mkdir()
    for name in ("X-n1001.vrp", "X-n106.vrp", "C1.txt", "town.json", "X-n106.sol", "notes.md"):
        (folder / name).write_text("")
    assert [case.name for case in find_cases(folder)] == ["C1", "X-n106", "X-n1001", "town"]
    assert [case.name for case in find_cases(f"{folder}/X*")] == ["X-n106", "X-n1001"]
    assert [case.set for case in find_cases(folder / "C1.txt")] == ["X"]


def test_tables_of_stops_are_not_ignored_in_silence(tmp_path: Path) -> None:
    for name in ("b.csv", "a.TSV", "c.vrp"):
        (tmp_path / name).write_text("")
    with pytest.warns(NdsWarning) as warned:
        assert [case.name for case in find_cases(tmp_path)] == ["c"]
    assert [str(warning.message) for warning in warned] == [
        f"{tmp_path}: tables of stops are ignored, write them as .json by 'nds convert': a.TSV, b.csv"
    ]


@pytest.mark.parametrize("name", ["missing.npz", "empty", "*.vrp"])
def test_nothing_there(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InstanceError, match=r"no \.npz set"):
        find_cases(tmp_path / name)
