"""Jobs: submitted, followed, cancelled, refused; results checked."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import time

import pytest

import ndsvrp
from ndsvrp.io import read, read_solution, write_set
from ndsvrp.serve import process
from ndsvrp.serve.access import HEADERS, REPORT_POLICY
from ndsvrp.serve.jobs import Job, JobOptions
from ndsvrp.serve.store import ATTEMPTS, NewJob, Outcome, Store
from serve.running import LIB, open_client
from waiting import wait_until


def test_a_job_from_file_to_result(client, cvrp, tmp_path):
    answer = client.submit(cvrp, name="X-n106-k14.vrp", iterations=5, seed=3)
    assert answer.status_code == 202
    job = answer.json()
    assert answer.headers["location"] == f"/api/jobs/{job['id']}"
    assert (job["name"], job["variant"], job["customers"], job["best_known"]) == ("X-n106-k14", "CVRP", 105, 26362)
    events = client.events(job["id"])
    kinds = [kind for kind, _ in events]
    assert {"points", "incumbent", "progress", "end"} <= set(kinds)
    assert kinds[-1] == "end"
    costs = [cost for kind, data in events if kind == "points" for _, _, cost in data]
    assert costs == sorted(costs, reverse=True)
    end = events[-1][1]
    assert (end["state"], end["attempts"], end["forms"], end["cost"]) == (
        "done",
        1,
        ["sol", "json", "html", "csv"],
        costs[-1],
    )
    problem = read(LIB / "X/X-n106-k14.vrp")
    alone = ndsvrp.solve(problem, iterations=5, seed=3, device="cpu")
    assert end["cost"] == alone.cost  # the same search as without the service
    result = client.get(f"/api/jobs/{job['id']}/result").json()
    assert [tuple(route) for route in result["routes"]] == list(alone.solution.routes)
    file = tmp_path / "a.sol"
    answer = client.get(f"/api/jobs/{job['id']}/result", params={"form": "sol"})
    assert answer.headers["x-file-name"] == "X-n106-k14.sol"
    assert answer.headers.get_list("content-security-policy") == [HEADERS["content-security-policy"]]
    page = client.get(f"/api/jobs/{job['id']}/result", params={"form": "html"})  # a browser must apply its own style
    assert page.headers.get_list("content-security-policy") == [REPORT_POLICY]
    file.write_bytes(answer.content)
    solution, cost = read_solution(file)
    assert (solution, cost) == (alone.solution, alone.cost)
    assert ndsvrp.check(problem, solution).feasible
    last = [data for kind, data in events if kind == "incumbent"][-1]
    assert [tuple(route["stops"]) for route in last["routes"]] == list(solution.routes)
    replayed = client.events(job["id"])
    assert [kind for kind, _ in replayed] == ["points", "incumbent", "progress", "end"]
    assert (replayed[1][1], replayed[3][1]) == (last, end)
    assert (replayed[2][1]["iteration"], replayed[2][1]["reconstructions"]) == (5, alone.reconstructions)


def test_a_client_is_told_what_was_ignored(client):
    """Also while the job waits and after its end; the log of the service has none of it."""
    table = b"name,x,y,demand,colour\ndepot,0,0,0,red\na,1,0,1,blue\n"
    job = client.submit(table, name="stops.csv", capacity=2, iterations=1).json()
    told = ["stops.csv:1: columns ignored: 'colour'"]
    assert job["warnings"] == told
    assert client.events(job["id"])[-1][1]["warnings"] == told
    refused = client.submit(table.replace(b"colour", b"weight"), name="stops.csv", capacity=2)
    assert refused.json()["error"].startswith("stops.csv:1: 'weight': may be meant for 'demand' (")
    asked = client.submit(
        table.replace(b"colour", b"weight"), name="b.csv", capacity=2, iterations=1, ignore_field="weight"
    )
    assert asked.json()["warnings"] == []
    client.events(asked.json()["id"])
    plain = b"name,x,y,demand\ndepot,0,0,0\na,1,0,1\n"
    job = client.submit(plain, name="stops.csv", capacity=2, iterations=1).json()
    assert client.events(job["id"])[-1][1]["warnings"] == job["warnings"] == []


def test_timelines_state_the_published_schedule(client, vrptw):
    """C101: customer 5 is 15.1 from the depot, its window opens at 15, service takes 90."""
    job = client.submit(vrptw, name="C101.txt", time=5, target=827.3).json()
    events = client.events(job["id"])
    incumbent = [data for kind, data in events if kind == "incumbent"][-1]
    assert (incumbent["cost"], events[-1][1]["best_known"]) == (827.3, 827.3)
    route = next(route for route in incumbent["routes"] if route["stops"][0] == 5)
    assert route["stops"] == [5, 3, 7, 8, 10, 11, 9, 6, 4, 2, 1, 75]
    assert (route["load"], route["distance"], route["departure"]) == (180, 59.4, 0)
    assert route["arrival"][:2] == [15.1, 106.1]
    assert route["start"][:2] == [15.1, 106.1]
    assert sum(route["legs"]) == pytest.approx(59.4)
    drawn = client.get(f"/api/jobs/{job['id']}/problem").json()
    assert (drawn["variant"], drawn["capacity"], drawn["windows"][5], drawn["decimals"]) == ("VRPTW", 200, [15, 67], 1)
    assert drawn["coordinates"][0] == [40, 50]


def test_sets_prizes_and_matrices(client, tmp_path):
    problems = ndsvrp.generate("pcvrp", 20, count=2, seed=1)
    write_set(tmp_path / "set.npz", problems)
    body = (tmp_path / "set.npz").read_bytes()
    refused = client.submit(body, name="set.npz", iterations=2)
    assert (refused.status_code, refused.json()) == (
        400, {"error": "set.npz: holds 2 instances, choose one by its index (0 … 1)"}
    )  # fmt: skip
    end = client.ended(client.submit(body, name="set.npz", index=1, iterations=2).json()["id"])
    assert end["cost"] == ndsvrp.solve(problems[1], iterations=2, device="cpu").cost
    matrix = b"NAME : m\nTYPE : CVRP\nDIMENSION : 3\nCAPACITY : 2\nEDGE_WEIGHT_TYPE : EXPLICIT\n" \
        b"EDGE_WEIGHT_FORMAT : FULL_MATRIX\nEDGE_WEIGHT_SECTION\n0 3 4\n3 0 5\n4 5 0\nDEMAND_SECTION\n1 0\n2 1\n3 1\n" \
        b"DEPOT_SECTION\n1\n-1\nEOF\n"  # fmt: skip
    job = client.submit(matrix, name="m.vrp", iterations=2).json()
    assert client.ended(job["id"])["cost"] == 12
    drawn = client.get(f"/api/jobs/{job['id']}/problem").json()
    assert drawn["estimated"] is True
    (x0, y0), (x1, y1), _ = drawn["coordinates"]
    assert ((x0 - x1) ** 2 + (y0 - y1) ** 2) ** 0.5 == pytest.approx(3)


def test_cancel_keeps_the_best(client, cvrp):
    job = client.submit(cvrp, name="a.vrp", time=300).json()
    while client.get(f"/api/jobs/{job['id']}").json()["cost"] is None:
        time.sleep(0.02)
    assert client.get(f"/api/jobs/{job['id']}/result").status_code == 409
    assert client.delete(f"/api/jobs/{job['id']}").status_code == 409
    client.post(f"/api/jobs/{job['id']}/cancel")
    end = client.ended(job["id"])
    assert end["state"] == "cancelled"
    result = client.get(f"/api/jobs/{job['id']}/result").json()
    assert (result["stopped"], result["feasible"], result["cost"]) == ("interrupted", True, end["cost"])
    assert client.delete(f"/api/jobs/{job['id']}").status_code == 204
    assert client.get(f"/api/jobs/{job['id']}").status_code == 404


def test_a_killed_search_keeps_the_last_incumbent(tmp_path, cvrp, monkeypatch):
    """The process is killed from outside; the next job runs as if nothing had happened."""
    children = []
    start = process.CONTEXT.Process.start
    monkeypatch.setattr(process.CONTEXT.Process, "start", lambda self: (start(self), children.append(self)))
    with open_client(tmp_path / "jobs.sqlite", workers=1) as client:
        job = client.submit(cvrp, name="a.vrp", time=300).json()
        after = client.submit(cvrp, name="b.vrp", iterations=2, seed=1).json()
        while client.get(f"/api/jobs/{job['id']}").json()["cost"] is None:
            time.sleep(0.02)
        children[-1].kill()  # the first one has only warmed up the service
        end = client.ended(job["id"])
        assert (end["state"], end["error"]) == ("failed", "the process of the search ended early (signal 9)")
        result = client.get(f"/api/jobs/{job['id']}/result").json()
        assert (result["feasible"], result["cost"]) == (True, end["cost"])
        assert client.ended(after["id"])["state"] == "done"


def test_jobs_survive_a_restart(tmp_path, cvrp):
    database = tmp_path / "jobs.sqlite"
    with open_client(database, workers=1) as client:
        done = client.ended(client.submit(cvrp, name="a.vrp", iterations=2).json()["id"])
        content = client.get(f"/api/jobs/{done['id']}/result").content
        running = client.submit(cvrp, name="b.vrp", time=300, iterations=100_000).json()
        waiting = client.submit(cvrp, name="c.vrp", iterations=2).json()
        while client.get(f"/api/jobs/{running['id']}").json()["state"] == "queued":
            time.sleep(0.02)
    with open_client(database, workers=1) as client:
        assert client.get(f"/api/jobs/{done['id']}").json() == done
        assert client.get(f"/api/jobs/{done['id']}/result").content == content
        states = [(job["id"], job["state"]) for job in client.get("/api/jobs").json()]
        assert states[0] == (waiting["id"], "queued")
        assert states[1][0] == running["id"]
        client.post(f"/api/jobs/{running['id']}/cancel")
        assert client.ended(running["id"])["attempts"] == 2
        assert client.ended(waiting["id"])["state"] == "done"


def test_a_job_that_always_ends_the_service_fails(tmp_path):
    database, options = tmp_path / "jobs.sqlite", JobOptions(iterations=1)
    for attempt in range(1, ATTEMPTS + 1):
        store = Store(database)
        if attempt == 1:
            job, _ = store.add(NewJob(options, b"", "a.vrp", "CVRP", 1, None))
        assert store.queue_again() == (attempt > 1)
        running, _ = store.take()
        assert (running.id, running.attempts) == (job.id, attempt)
        store.close()  # the service ends
    store = Store(database)
    assert (store.queue_again(), store.take()) == (0, None)
    ended = store.job(job.id)
    assert (ended.state, ended.error) == ("failed", "the service ended during each of 5 attempts")
    assert ended.finished is not None
    store.close()


def test_an_outcome_is_stored_once(tmp_path, cvrp):
    with open_client(tmp_path / "jobs.sqlite", workers=1) as client:
        job = client.ended(client.submit(cvrp, name="a.vrp", iterations=1).json()["id"])
        store = client.app.state.service.store
        assert store.finish(job["id"], Outcome("done", 1.0, 1, None, {"sol": b"other"}), attempt=1) is None
        assert store.job(job["id"]).cost == job["cost"]
        assert store.content(job["id"], "sol") != b"other"


def test_a_database_that_fails_is_reported(tmp_path, cvrp, monkeypatch):
    with open_client(tmp_path / "jobs.sqlite", workers=1) as client:
        with monkeypatch.context() as patch:

            def full(*_, **__):
                raise sqlite3.OperationalError("database or disk is full")

            patch.setattr(client.app.state.service.store, "_keep", full)
            answer = client.submit(cvrp, name="a.vrp")
            assert (answer.status_code, answer.json()) == (
                503, {"error": "the database does not work (database or disk is full)"}
            )  # fmt: skip
        assert client.get("/api/jobs").json() == []  # the transaction was undone
        assert client.ended(client.submit(cvrp, name="a.vrp", iterations=1).json()["id"])["state"] == "done"


def test_an_outcome_waits_for_the_database(tmp_path, cvrp, monkeypatch):
    """The disk is full when the search ends, and for two more attempts."""
    monkeypatch.setattr("ndsvrp.serve.service.PAUSE", 0.01)
    with open_client(tmp_path / "jobs.sqlite", workers=1) as client:
        store = client.app.state.service.store
        finish, refused = store.finish, iter([True] * 3)

        def full(*what, **how):
            if next(refused, False):
                raise sqlite3.OperationalError("database or disk is full")
            return finish(*what, **how)

        monkeypatch.setattr(store, "finish", full)
        address = f"/api/jobs/{client.submit(cvrp, name='a.vrp', iterations=1).json()['id']}"
        wait_until(lambda: client.get(address).json()["state"] == "done")
        assert client.get(f"{address}/result").json()["cost"] == client.get(address).json()["cost"]


def test_a_key_makes_a_request_repeatable(client, cvrp, vrptw):
    first = client.submit(cvrp, name="a.vrp", iterations=1, key="mine")
    second = client.submit(cvrp, name="a.vrp", iterations=1, key="mine")
    assert (first.status_code, second.status_code) == (202, 200)
    assert first.json()["id"] == second.json()["id"]
    other = client.submit(vrptw, name="a.vrp", iterations=1, key="mine")
    assert other.status_code == 400  # not a VRPLIB file
    other = client.submit(cvrp, name="a.vrp", iterations=2, key="mine")
    assert (other.status_code, other.json()["error"]) == (409, "key 'mine' belongs to a job with other content")


def test_a_search_without_a_solution_fails(client):
    body = b"name,x,y,demand\nhub,0,0,\na,1,0,4\nb,2,0,4\nc,3,0,4\nd,4,0,4\ne,5,0,4\n"
    options = {"name": "stops.csv", "iterations": 2, "capacity": 10}
    end = client.ended(client.submit(body, **options, vehicles=1).json()["id"])
    error = "1 vehicle cannot serve all required customers"
    assert (end["state"], end["error"][: len(error)], end["forms"]) == ("failed", error, [])
    answer = client.get(f"/api/jobs/{end['id']}/result")
    assert (answer.status_code, answer.json()["error"][:24]) == (404, "the job has no result: 1")
    end = client.ended(client.submit(body, **options, vehicles=2).json()["id"])  # each holds two, which no sum shows
    assert (end["state"], end["routes"]) == ("failed", 2)
    assert end["error"].startswith("no feasible solution found: 2 vehicles leave 1 required")
    partial = client.get(f"/api/jobs/{end['id']}/result").json()
    assert (partial["feasible"], sorted(map(len, partial["routes"]))) == (False, [2, 2])


def test_tables_names_and_places(client):
    """The hub is at the equator: a degree is 111.2 km in both directions."""
    body = b"name,lat,lon,kg\nhub,0,0,\nbakery,0,1,2\nschool,1,0,3\n"
    answer = client.submit(body, name="stops.csv", iterations=2, capacity=5, column="kg")
    assert answer.json() == {"error": "column: 'kg' is not like demand=kg"}
    job = client.submit(body, name="stops.csv", iterations=2, capacity=5, column="demand=kg").json()
    end = client.ended(job["id"])
    assert (end["routes"], end["forms"]) == (1, ["sol", "json", "html", "csv", "geojson"])
    assert end["cost"] == pytest.approx(111.195 * (2 + 2**0.5), abs=0.1)
    drawn = client.get(f"/api/jobs/{job['id']}/problem").json()
    assert (drawn["names"], drawn["geographic"]) == (["hub", "bakery", "school"], True)
    places = client.get(f"/api/jobs/{job['id']}/result", params={"form": "geojson"}).json()
    assert {feature["properties"].get("name") for feature in places["features"]} >= {"hub", "bakery", "school"}
    page = client.get(f"/api/jobs/{job['id']}/result", params={"form": "html"})
    assert "bakery" in page.text
    assert page.headers["x-file-name"] == "stops.html"
    table = client.get(f"/api/jobs/{job['id']}/result", params={"form": "csv"})
    assert (table.headers["content-type"], table.headers["x-file-name"]) == ("text/csv; charset=utf-8", "stops.csv")
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert (rows[0]["name"], rows[-1]["name"], {row["name"] for row in rows[1:-1]}) == (
        "hub",
        "hub",
        {"bakery", "school"},
    )


def test_a_job_that_ends_while_it_is_asked_for(client, cvrp):
    """Its state was read before it ended, and its course is asked for after that."""
    job = client.submit(cvrp, name="a.vrp", iterations=1).json()
    end, service = client.ended(job["id"]), client.app.state.service
    stale = Job(**{**end, "state": "running", "finished": None})

    async def follow() -> list[bytes]:
        return [event async for event in service.events(stale)]

    kinds = [event.split(b"\n")[0] for event in client.portal.call(follow)]
    assert kinds == [b"event: points", b"event: incumbent", b"event: progress", b"event: end"]
    assert service.live == {}


def test_waiting_jobs(tmp_path, cvrp):
    with open_client(tmp_path / "jobs.sqlite", workers=1, max_queue=2, keep=1) as client:
        running = client.submit(cvrp, name="a.vrp", time=300).json()
        waiting = client.submit(cvrp, name="b.vrp", time=300).json()
        full = client.submit(cvrp, name="c.vrp")
        assert (full.status_code, full.headers["retry-after"]) == (429, "5")
        assert full.json() == {"error": "2 jobs wait or run, try again later"}
        assert client.post(f"/api/jobs/{waiting['id']}/cancel").json()["state"] == "cancelled"
        assert client.ended(waiting["id"])["forms"] == []
        client.post(f"/api/jobs/{running['id']}/cancel")
        client.ended(running["id"])


def test_ended_jobs_are_deleted_whether_they_began_or_not(tmp_path, cvrp, monkeypatch):
    monkeypatch.setattr("ndsvrp.serve.service.TIDY", 2)  # after the first, the third, …
    with open_client(tmp_path / "jobs.sqlite", workers=1, keep=0) as client:
        first, second, third = (client.submit(cvrp, name=f"{i}.vrp", time=300).json()["id"] for i in range(3))

        def listed() -> set[str]:
            return {job["id"] for job in client.get("/api/jobs").json()}

        assert client.post(f"/api/jobs/{third}/cancel").json()["state"] == "cancelled"
        assert listed() == {first, second}
        assert client.post(f"/api/jobs/{second}/cancel").json()["state"] == "cancelled"
        assert listed() == {first, second}
        client.post(f"/api/jobs/{first}/cancel")
        client.ended(first)
        while listed():
            time.sleep(0.02)


def test_the_description_of_the_interface(client):
    paths = client.get("/api/openapi.json").json()["paths"]
    parameters = {p["name"]: p["schema"] for p in paths["/api/jobs"]["post"]["parameters"]}
    assert parameters["round"]["enum"] == ["auto", "none", "round", "trunc", "dimacs", "exact"]
    assert parameters["seed"]["default"] == 0
    limits = client.get("/api/limits").json()
    assert (limits["customers"], limits["seconds"], limits["bytes"]) == (10_000, 600.0, 16 * 2**20)
    assert json.dumps(paths).count("text/event-stream") == 1
