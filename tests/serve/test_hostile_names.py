"""Names and versions that clients or other programs may send."""

import sqlite3
import stat
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from ndsvrp import NdsError
from ndsvrp.serve.store import SCHEMA, Store
from ndsvrp.serve.uploads import Upload, plain_name, safe_name


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("\u0141\u00f3d\u017a.csv", "__d_.csv"),
        ("../../etc/passwd", "passwd"),
        ("\U0001f600" * 90 + ".vrp", "_" * 80 + ".vrp"),
    ],
)
def test_file_names_are_plain(name: str, safe: str) -> None:
    """They are sent in headers, and a folder takes at most 255 bytes."""
    assert safe_name(name) == safe


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("\u0141\u00f3d\u017a 1.csv", "\u0141\u00f3d\u017a 1.csv"),
        ("C:\\data\\Mu\u0308ller.csv", "Mu\u0308ller.csv"),
        ("../../<b>\x1b[1m&.csv", "_b__[1m_.csv"),
        ("\udc80.csv", "_.csv"),
        ("..", "instance"),
        ("-", "-"),
    ],
)
def test_names_of_problems_keep_their_script(name: str, plain: str) -> None:
    """They are shown; a header has `safe_name`."""
    assert plain_name(name) == plain


def test_a_problem_is_named_as_its_file() -> None:
    table = b"name,x,y\nhub,0,0\na,3,4\n"
    assert Upload(table, "\u0141\u00f3d\u017a 1.csv").read().name == "\u0141\u00f3d\u017a 1"
    assert Upload(table, "-").read().name == "problem"


def test_a_database_of_another_version_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "jobs.sqlite"
    with sqlite3.connect(file) as database:
        database.execute("PRAGMA user_version = 7")
    for _ in range(2):
        with pytest.raises(NdsError, match="was written by another version of the service"):
            Store(file)
    with sqlite3.connect(file) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (7,)
        assert database.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def test_a_database_of_the_first_version_is_extended(tmp_path: Path) -> None:
    """Its jobs have no warnings."""
    file = tmp_path / "jobs.sqlite"
    first = SCHEMA.replace(",\n    warnings TEXT NOT NULL DEFAULT '[]'", "")
    assert first != SCHEMA
    columns = "id, digest, state, name, file, variant, customers, options, created"
    with sqlite3.connect(file) as database:
        database.executescript(first + "PRAGMA user_version = 1")
        database.execute(f"INSERT INTO jobs ({columns}) VALUES ('a', 'd', 'queued', 'n', 'f', 'CVRP', 3, '{{}}', 1.0)")
    for _ in range(2):
        store = Store(file)
        job = store.job("a")
        store.close()
        assert job is not None and (job.name, job.customers, job.warnings) == ("n", 3, [])


def test_only_the_owner_reads_the_database(tmp_path: Path) -> None:
    """Nor do others read the files beside it, which hold the newest jobs: new ones, and those that a crash left."""
    names = ["jobs.sqlite", "jobs.sqlite-shm", "jobs.sqlite-wal"]
    for _ in range(2):
        store = Store(tmp_path / "jobs.sqlite")
        modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in names}
        store.close()
        assert modes == dict.fromkeys(names, 0o600)
        for name in names:
            (tmp_path / name).touch()
            (tmp_path / name).chmod(0o644)
