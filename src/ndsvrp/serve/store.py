"""Jobs and results in SQLite. Every change is one transaction, so a killed service loses nothing that it confirmed."""

import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from ndsvrp.errors import NdsError
from ndsvrp.serve.jobs import ENDED, Job, JobOptions

MEMORY = Path(":memory:")
VERSION = 2  # of the tables
ATTEMPTS = 5  # of a job, at most
OWNER_ONLY = 0o600  # mode of the files: jobs are for those who have the token

SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, key TEXT UNIQUE, digest TEXT NOT NULL,
    state TEXT NOT NULL, name TEXT NOT NULL, file TEXT NOT NULL, variant TEXT NOT NULL, customers INTEGER NOT NULL,
    options TEXT NOT NULL, created REAL NOT NULL, started REAL, finished REAL, attempts INTEGER NOT NULL DEFAULT 0,
    cost REAL, routes INTEGER, best_known REAL, error TEXT, forms TEXT NOT NULL DEFAULT '[]',
    warnings TEXT NOT NULL DEFAULT '[]'
);
CREATE INDEX IF NOT EXISTS by_state ON jobs (state, number);
CREATE TABLE IF NOT EXISTS contents (
    job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE, form TEXT NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (job, form)
) WITHOUT ROWID;
"""
FROM_1_TO_2 = "BEGIN; ALTER TABLE jobs ADD COLUMN warnings TEXT NOT NULL DEFAULT '[]'; PRAGMA user_version = 2; COMMIT"
COLUMNS = (
    "id, state, name, file, variant, customers, created, started, finished, attempts, cost, routes, best_known, error"
)
LISTS = "options, forms, warnings"  # columns in JSON


class KeyTakenError(NdsError):
    """The key of a new job names another job."""


@dataclass(frozen=True)
class NewJob:
    """A job to add."""

    options: JobOptions
    body: bytes
    name: str
    variant: str
    customers: int
    best_known: float | None
    drawing: bytes | None = None  #: JSON for the page; None: made of the body when it is asked for
    warnings: Sequence[str] = ()  #: for the client

    def digest(self) -> str:
        """Return what two requests with the same key must agree in."""
        return sha256(self.options.model_dump_json().encode() + b"\n" + self.body).hexdigest()


@dataclass(frozen=True)
class Outcome:
    """How a search ended."""

    state: str
    cost: float | None = None
    routes: int | None = None
    error: str | None = None
    forms: Sequence[str] = ()  #: in which the result can be fetched
    contents: Mapping[str, bytes] = field(default_factory=dict)  #: what is stored, by form


class Store:
    """The database. All methods may be called from any thread; one call runs at a time."""

    def __init__(self, file: Path) -> None:
        self._lock = threading.Lock()
        self._guard = _only_one(file)
        try:
            if file != MEMORY:
                file.touch(mode=OWNER_ONLY)
            self._database = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
            # NORMAL: a commit survives the end of the process; the last ones may be lost if the machine loses power.
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
                self._database.execute(f"PRAGMA {pragma}")
            known = self._database.execute("PRAGMA user_version").fetchone()[0]
            if not 0 <= known <= VERSION:
                self.close()
                raise NdsError(f"{file}: was written by another version of the service")
            if known == 1:
                self._database.executescript(FROM_1_TO_2)
            self._database.executescript(SCHEMA)
            self._database.execute(f"PRAGMA user_version = {VERSION}")
            if file != MEMORY:
                _only_for_owner(file)
        except (sqlite3.Error, OSError) as error:
            raise NdsError(f"{file}: cannot be used as a database of jobs ({error})") from None

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._database.close()
        if self._guard is not None:
            self._guard.close()

    def add(self, new: NewJob, state: str = "queued") -> tuple[Job, bool]:
        """Add a job. Return it and True, or the job that has its key already and False."""
        (added,) = self.add_all([new], state)
        if isinstance(added, KeyTakenError):
            raise added
        return added

    def add_all(self, jobs: Sequence[NewJob], state: str = "queued") -> list[tuple[Job, bool] | KeyTakenError]:
        """Add jobs in one transaction. Return what `add` returns or raises, for each."""
        digests = [new.digest() for new in jobs]
        with self._transaction() as database:
            return [self._add(database, new, digest, state) for new, digest in zip(jobs, digests, strict=True)]

    def _add(
        self, database: sqlite3.Connection, new: NewJob, digest: str, state: str
    ) -> tuple[Job, bool] | KeyTakenError:
        if new.options.key is not None:
            row = database.execute("SELECT id, digest FROM jobs WHERE key = ?", (new.options.key,)).fetchone()
            if row is not None and row[1] != digest:
                return KeyTakenError(f"key '{new.options.key}' belongs to a job with other content")
            if row is not None:
                return self._job(row[0]), False
        identifier, now = secrets.token_urlsafe(12), time.time()
        values = (
            identifier, new.options.key, digest, state, new.name, new.options.name, new.variant, new.customers,
            new.options.model_dump_json(exclude_none=True), now, now if state == "running" else None, new.best_known,
            json.dumps(list(new.warnings)),
        )  # fmt: skip
        database.execute(
            "INSERT INTO jobs (id, key, digest, state, name, file, variant, customers, options, created, started, "
            f"best_known, warnings) VALUES ({', '.join('?' * len(values))})",
            values,
        )
        self._keep(identifier, {"instance": new.body} | ({"drawing": new.drawing} if new.drawing else {}))
        return self._job(identifier), True

    def take(self) -> tuple[Job, bytes] | None:
        """Mark the oldest waiting job as running. Return it and its instance; None if no job waits."""
        with self._transaction() as database:
            row = database.execute("SELECT id FROM jobs WHERE state = 'queued' ORDER BY number LIMIT 1").fetchone()
            if row is None:
                return None
            database.execute(
                "UPDATE jobs SET state = 'running', started = ?, attempts = attempts + 1 WHERE id = ?",
                (time.time(), row[0]),
            )
            instance = self._content(row[0], "instance")
            assert instance is not None
            return self._job(row[0]), instance

    def finish(self, identifier: str, outcome: Outcome, *, attempt: int) -> Job | None:
        """Store the outcome of an attempt; None if the job has ended already or another attempt runs."""
        with self._transaction() as database:
            forms = json.dumps(list(outcome.forms))
            changed = database.execute(
                "UPDATE jobs SET state = ?, finished = ?, cost = ?, routes = ?, error = ?, forms = ? "
                "WHERE id = ? AND state = 'running' AND attempts = ?",
                (outcome.state, time.time(), outcome.cost, outcome.routes, outcome.error, forms, identifier, attempt),
            )
            if changed.rowcount != 1:
                return None
            self._keep(identifier, outcome.contents)
            return self._job(identifier)

    def cancel_waiting(self, identifier: str) -> bool:
        """Cancel a job that has not begun. Return whether it was one."""
        with self._transaction() as database:
            changed = database.execute(
                "UPDATE jobs SET state = 'cancelled', finished = ? WHERE id = ? AND state = 'queued'",
                (time.time(), identifier),
            )
            return changed.rowcount == 1

    def delete(self, identifier: str) -> bool:
        """Delete a job that has ended, with all its content. Return whether it was one."""
        with self._transaction() as database:
            states = ", ".join(f"'{state}'" for state in ENDED)
            return database.execute(
                f"DELETE FROM jobs WHERE id = ? AND state IN ({states})", (identifier,)
            ).rowcount == 1  # fmt: skip

    def delete_oldest(self, keep: int) -> None:
        """Delete ended jobs but for the newest ones."""
        with self._transaction() as database:
            states = ", ".join(f"'{state}'" for state in ENDED)
            database.execute(
                f"DELETE FROM jobs WHERE state IN ({states}) AND number <= (SELECT number FROM jobs "
                f"WHERE state IN ({states}) ORDER BY number DESC LIMIT 1 OFFSET ?)",
                (keep,),
            )

    def queue_again(self) -> int:
        """Make jobs wait that were running when the service ended. Return their number.

        A job that ran whenever the service ended may be the reason. It fails in the end, so that others have a turn.
        """
        with self._transaction() as database:
            error = f"the service ended during each of {ATTEMPTS} attempts"
            database.execute(
                "UPDATE jobs SET state = 'failed', finished = ?, error = ? WHERE state = 'running' AND attempts >= ?",
                (time.time(), error, ATTEMPTS),
            )
            return database.execute("UPDATE jobs SET state = 'queued' WHERE state = 'running'").rowcount

    def job(self, identifier: str) -> Job | None:
        """Return a job."""
        with self._transaction():
            try:
                return self._job(identifier)
            except KeyError:
                return None

    def jobs(self, most: int) -> list[Job]:
        """Return the newest jobs."""
        with self._transaction() as database:
            rows = database.execute(
                f"SELECT {COLUMNS}, {LISTS} FROM jobs ORDER BY number DESC LIMIT ?", (most,)
            ).fetchall()
            return [_as_job(row) for row in rows]

    def open_jobs(self) -> int:
        """Return how many jobs wait or run."""
        with self._transaction() as database:
            counted = database.execute("SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')").fetchone()
            return int(counted[0])

    def content(self, identifier: str, form: str) -> bytes | None:
        """Return a stored form of a job: instance, drawing, view, sol, json."""
        with self._transaction():
            return self._content(identifier, form)

    def keep(self, identifier: str, form: str, data: bytes) -> None:
        """Store a form of a job, unless the job was deleted meanwhile."""
        with self._transaction() as database:
            if database.execute("SELECT 1 FROM jobs WHERE id = ?", (identifier,)).fetchone() is not None:
                self._keep(identifier, {form: data})

    def _content(self, identifier: str, form: str) -> bytes | None:
        query = "SELECT data FROM contents WHERE job = ? AND form = ?"
        row = self._database.execute(query, (identifier, form)).fetchone()
        return None if row is None else bytes(row[0])

    def _keep(self, identifier: str, contents: Mapping[str, bytes]) -> None:
        rows = [(identifier, form, data) for form, data in contents.items()]
        self._database.executemany("INSERT OR REPLACE INTO contents (job, form, data) VALUES (?, ?, ?)", rows)

    def _job(self, identifier: str) -> Job:
        query = f"SELECT {COLUMNS}, {LISTS} FROM jobs WHERE id = ?"
        row = self._database.execute(query, (identifier,)).fetchone()
        if row is None:
            raise KeyError(identifier)
        return _as_job(row)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")  # fails if the disk is full
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise


def _as_job(row: tuple[Any, ...]) -> Job:
    names = f"{COLUMNS}, {LISTS}".split(", ")
    fields = dict(zip(names, row, strict=True))
    return Job(**fields | {name: json.loads(fields[name]) for name in LISTS.split(", ")})


def _only_for_owner(file: Path) -> None:
    """Set the mode of the database and of the files that SQLite keeps beside it, which hold the newest jobs."""
    for ending in ("", "-wal", "-shm"):
        part = file.with_name(file.name + ending)
        if part.exists():
            part.chmod(OWNER_ONLY)


def _only_one(file: Path) -> IO[bytes] | None:
    """Lock the database for this process: two services would run the same jobs. The system unlocks it at the end."""
    if file == MEMORY:
        return None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        guard = file.with_name(file.name + ".lock").open("ab")
    except OSError as error:
        raise NdsError(f"{file}: cannot be used as a database of jobs ({error.strerror})") from None
    try:
        import fcntl

        fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # not on Windows
        pass
    except OSError:
        guard.close()
        raise NdsError(f"{file}: is in use by another service") from None
    return guard
