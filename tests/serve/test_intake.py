"""Many clients submit at the same moment: each gets its own answer."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading

import pytest

from ndsvrp.errors import NdsError
from ndsvrp.io.reader import read_content
from ndsvrp.serve import intake
from ndsvrp.serve import service as service_module
from ndsvrp.serve.config import ServeConfig
from ndsvrp.serve.jobs import JobOptions
from ndsvrp.serve.service import QueueFullError, Service
from ndsvrp.serve.store import KeyTakenError, Store
from serve.running import LIB

TABLE = b"name,x,y,demand\nhub,0,0,\na,3,4,1\n"


@pytest.fixture
def service(tmp_path):
    """A service that runs no searches."""
    service = Service(ServeConfig(), Store(tmp_path / "jobs.sqlite"))
    yield service
    asyncio.run(service.stop())


def submit_all(service, *rounds):
    """The answers to all rounds of requests, each sent when the one before it is answered, in one event loop."""

    async def main():
        answers = []
        for requests in rounds:
            calls = [service.submit(body, JobOptions(name="a.csv", capacity=9, **more)) for body, more in requests]
            answers += await asyncio.gather(*calls, return_exceptions=True)
        return answers

    return asyncio.run(main())


def test_many_at_once(service, monkeypatch):
    commits = []
    add_all = service.store.add_all
    monkeypatch.setattr(service.store, "add_all", lambda jobs: (commits.append(len(jobs)), add_all(jobs))[1])
    requests = [(TABLE, {"seed": seed}) for seed in range(40)]
    requests[7] = (b"name,x,y\nhub,0,0\na,3,far\n", {})
    requests[20] = requests[30] = (TABLE, {"key": "mine"})
    *answers, refused = submit_all(service, requests, [(TABLE, {"key": "mine", "seed": 1})])
    assert str(answers[7]) == "a.csv:3: y: 'far' is not a number"
    assert isinstance(refused, KeyTakenError)
    assert answers[20][0].id == answers[30][0].id
    assert sorted((answers[20][1], answers[30][1])) == [False, True]
    jobs = [answer[0] for number, answer in enumerate(answers) if number != 7]
    assert len({job.id for job in jobs}) == 38
    assert [job.options.get("seed", 0) for job in jobs[:7]] == list(range(7))
    assert sum(commits) == 40  # all that could be read
    assert max(commits) <= intake.GROUP
    assert service.store.open_jobs() == service._open == 38


def test_small_ones_of_one_moment_are_one_group(service, monkeypatch):
    groups = []
    add = service._intake._add
    monkeypatch.setattr(service._intake, "_add", lambda group: (groups.append(len(group)), add(group))[1])
    submit_all(service, [(TABLE, {"seed": seed}) for seed in range(100)])
    assert groups == [100]


def test_large_ones_of_one_moment_are_read_two_at_a_time(service, monkeypatch):
    both = threading.Barrier(intake.READERS)
    lock, reading, most = threading.Lock(), 0, 0
    read = service._intake._read

    def counted(body, options):
        nonlocal reading, most
        with lock:
            reading += 1
            most = max(most, reading)
        if body != TABLE:
            both.wait(10)  # breaks if one thread reads alone
        with lock:
            reading -= 1
        return read(body, options)

    monkeypatch.setattr(service._intake, "_read", counted)
    monkeypatch.setattr(intake, "GROUP_BYTES", len(TABLE) + 1)
    large = TABLE + b"b,1,1,1\n"
    answers = submit_all(service, [*((large, {"seed": seed}) for seed in range(4)), (TABLE, {})])
    assert [new for _, new in answers] == [True] * 5
    assert most == intake.READERS
    assert sorted(job.customers for job, _ in answers) == [1, 2, 2, 2, 2]


def test_a_client_that_leaves_is_counted(tmp_path):
    service = Service(ServeConfig(max_queue=1), Store(tmp_path / "jobs.sqlite"))
    options = JobOptions(name="a.csv", capacity=9)

    async def main():
        added = service._added.next
        with service.store._lock:
            submitted = asyncio.create_task(service.submit(TABLE, options))
            await asyncio.sleep(0)
            submitted.cancel()
            await asyncio.gather(submitted, return_exceptions=True)
        await asyncio.wait_for(added.wait(), 10)  # a worker that waits for jobs is told
        with pytest.raises(QueueFullError, match="1 jobs wait or run"):
            await service.submit(TABLE, options)
        await service.stop()

    asyncio.run(main())


def test_a_full_disk_refuses_the_group_alone(service, monkeypatch):
    keep = service.store._keep

    def full(identifier, contents):
        if b"full" in contents["instance"]:
            raise sqlite3.OperationalError("database or disk is full")
        keep(identifier, contents)

    monkeypatch.setattr(service.store, "_keep", full)
    monkeypatch.setattr(intake, "GROUP", 1)
    fine, broken = submit_all(service, [(TABLE, {}), (TABLE.replace(b"hub", b"full"), {})])
    assert fine[1] is True
    assert isinstance(broken, sqlite3.OperationalError)
    assert [job.id for job in service.store.jobs(9)] == [fine[0].id]


def test_what_the_page_draws_is_made_once(service):
    ((job, _),) = submit_all(service, [(TABLE, {})])
    assert service.store.content(job.id, "drawing") is None
    drawn = asyncio.run(service.drawing(job))
    assert json.loads(drawn)["coordinates"] == [[0, 0], [3, 4]]
    assert service.store.content(job.id, "drawing") == drawn
    service.store.keep("deleted", "drawing", b"{}")
    assert service.store.content("deleted", "drawing") is None


def test_many_who_ask_for_it_at_once_share_one_drawing(service, monkeypatch):
    drawn = []

    def counted(problem):
        drawn.append(problem.name)
        return draw(problem)

    draw = service_module.drawing
    monkeypatch.setattr(service_module, "drawing", counted)
    ((job, _),) = submit_all(service, [(TABLE, {})])

    async def ask():
        return await asyncio.gather(*[service.drawing(job) for _ in range(20)])

    assert len(set(asyncio.run(ask()))) == 1
    assert drawn == ["a"]


def test_content_is_read_like_a_file(tmp_path, monkeypatch):
    file = LIB / "X/X-n106-k14.vrp"
    problem = read_content("X-n106-k14.vrp", file.read_bytes(), "trunc", capacity=700)
    assert (problem.name, str(problem.metric), problem.capacity, problem.customers) == ("X-n106-k14", "trunc", 700, 105)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    assert read_content("folder", TABLE, capacity=9).customers == 1  # the name is no path
    assert read_content("-", TABLE, capacity=9).customers == 1  # nor standard input
    for arguments, message in (
        (("a.vrp", b""), "a.vrp: is empty"),
        (("a.csv", TABLE, "auto", 1), "a.csv: no instance 1, the file holds one (0)"),
    ):
        with pytest.raises(NdsError) as caught:
            read_content(*arguments, **({"capacity": 9} if "csv" in arguments[0] else {}))
        assert str(caught.value) == message
    with pytest.raises(NdsError, match="read_content"):
        read_content("a.csv", TABLE, pickups=1)
