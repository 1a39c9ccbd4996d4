"""The command over real sockets: killed and restarted, slow clients, `nds solve --watch`."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from typer.testing import CliRunner

import ndsvrp
from ndsvrp.cli import app
from ndsvrp.records import describe
from ndsvrp.serve import watch
from ndsvrp.serve.config import ServeConfig
from serve.running import LIB, serving

ROOT = Path(__file__).parents[2]
SERVICE_PAGE = ROOT / "docs/service.md"
INSTANCE = LIB / "X/X-n106-k14.vrp"


@pytest.fixture
def start() -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    """Start `nds …` and return the process and the address that it prints."""
    children = []

    def run(*args: object) -> tuple[subprocess.Popen[str], str]:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": "1"}
        child = subprocess.Popen(
            [sys.executable, "-m", "ndsvrp", *map(str, args)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
        )  # fmt: skip
        children.append(child)
        assert child.stdout is not None
        for line in child.stdout:
            if match := re.search(r"http://\S+", line):
                return child, match[0]
        raise AssertionError("no address")

    yield run
    for child in children:
        child.kill()
        child.communicate()


def test_a_full_queue_refuses_before_the_body(tmp_path: Path) -> None:
    with serving(tmp_path / "jobs.sqlite", max_queue=1) as address:
        ask(address, "jobs?name=a.vrp&time=300", INSTANCE.read_bytes())
        host, port = address.removeprefix("http://").rstrip("/").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as client:
            head = f"POST /api/jobs?name=b.vrp HTTP/1.1\r\nhost: {host}\r\ncontent-length: 100000\r\n\r\n"
            client.sendall(head.encode() + b"x")  # and no more
            assert client.recv(12) == b"HTTP/1.1 429"
            client.sendall(b"x" * 99_999)  # a client that sends all of it can use the connection again
            client.sendall(f"GET /api/limits HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
            rest = b"".join(iter(lambda: client.recv(10_000), b""))
            assert b"HTTP/1.1 200" in rest


def ask(address: str, path: str, body: bytes | None = None) -> Any:
    with urlopen(Request(f"{address}api/{path}", data=body)) as answer:
        return json.loads(answer.read())


def until(address: str, path: str, wanted: Callable[[Any], bool]) -> Any:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if wanted(answer := ask(address, path)):
            return answer
        time.sleep(0.03)
    raise AssertionError(answer)


@pytest.mark.slow
def test_killed_and_restarted(start, tmp_path: Path) -> None:
    options = ("serve", "--port", 0, "--database", tmp_path / "jobs.sqlite", "--workers", 1, "--device", "cpu")
    child, address = start(*options)
    body = INSTANCE.read_bytes()
    running = ask(address, "jobs?name=a.vrp&time=300", body)["id"]
    waiting = ask(address, "jobs?name=b.vrp&iterations=2", body)["id"]
    until(address, f"jobs/{running}", lambda job: job["cost"] is not None)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child, address = start(*options)
    until(address, f"jobs/{running}", lambda job: job["cost"] is not None)
    ask(address, f"jobs/{running}/cancel", b"")
    jobs = [until(address, f"jobs/{job}", lambda job: job["finished"] is not None) for job in (running, waiting)]
    assert [(job["state"], job["attempts"]) for job in jobs] == [("cancelled", 2), ("done", 1)]
    child.send_signal(signal.SIGTERM)
    assert child.wait(10) in (0, -signal.SIGTERM, 143)


@pytest.mark.slow
def test_a_slow_client_is_disconnected(tmp_path: Path) -> None:
    head = b"POST /api/jobs?name=a.vrp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\nNAME"
    with serving(tmp_path / "jobs.sqlite", body_seconds=0.3) as address:
        place = "127.0.0.1", int(address.split(":")[-1].strip("/"))
        with socket.create_connection(place, 20) as slow, socket.create_connection(place, 20) as silent:
            slow.sendall(head)
            silent.sendall(b"GET /api/jobs HTT")
            answer = b""
            while part := slow.recv(4096):
                answer += part
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert silent.recv(4096) == b""
        assert ask(address, "jobs") == []


def test_a_request_without_end_is_refused(tmp_path: Path) -> None:
    """In its path, in a header, and after its body. Headers that end, and chunks with little in them, are read."""
    start, head = b"POST /api/jobs?name=a.vrp", b" HTTP/1.1\r\nhost: localhost\r\n"
    chunked = start + head + b"transfer-encoding: chunked\r\n\r\n"
    with serving(tmp_path / "jobs.sqlite") as address:
        place = "127.0.0.1", int(address.split(":")[-1].strip("/"))
        for begin in (start, start + head + b"x: ", chunked + b"1\r\nx\r\n0\r\ny: ", chunked + b"1;"):
            with socket.create_connection(place, 20) as client, contextlib.suppress(ConnectionError):
                client.sendall(begin)
                for _ in range(100):
                    client.sendall(b"x" * 10_000)
                    time.sleep(0.001)
                raise AssertionError(begin)
        with socket.create_connection(place, 20) as client:
            client.sendall(chunked + b"1\r\nx\r\n" * 10_000 + b"0\r\n\r\n")
            client.sendall(b"GET /api/jobs" + head + b"connection: close\r\nx: " + b"x" * 10_000 + b"\r\n\r\n")
            answers = b"".join(iter(lambda: client.recv(10_000), b""))
            assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"400", b"200"]
            assert b"a.vrp:1: 'xxxxx" in answers
        assert ask(address, "jobs") == []


def test_a_request_that_offers_http_2_has_its_body(tmp_path: Path) -> None:
    """Java's HttpClient and `curl --http2` send such headers; the answer is in HTTP/1.1."""
    upgrade = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAA\r\n"
    body = b"name,x,y\nhub,0,0\n" + b"".join(b"c%d,1,1\n" % i for i in range(3000)) + b"last,3,far\n"
    whole = b"content-length: %d\r\n\r\n%b" % (len(body), body)
    chunked = b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    jobs = b" /api/jobs?name=a.csv&capacity=9 HTTP/1.1\r\nhost: localhost\r\n"
    sent = [b"POST" + jobs + upgrade + whole, b"GET" + jobs + upgrade + b"\r\n", b"POST" + jobs + upgrade + chunked]
    sent.append(b"POST" + jobs + b"connection: close\r\n" + upgrade + whole)
    refused = b"a.csv:3003: y: 'far' is not a number"
    with serving(tmp_path / "jobs.sqlite") as address:
        place = "127.0.0.1", int(address.split(":")[-1].strip("/"))
        for size in (1000, 10**6):  # the body comes after the headers, or with them
            with socket.create_connection(place, 20) as client:
                stream = b"".join(sent)
                for begin in range(0, len(stream), size):
                    client.sendall(stream[begin : begin + size])
                answers = b"".join(iter(lambda: client.recv(10_000), b""))
            assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"400", b"200", b"400", b"400"]
            assert answers.count(refused) == 3


@pytest.mark.slow
def test_watch_shows_one_search(start) -> None:
    child, address = start("solve", INSTANCE, "--time", 300, "--seed", 1, "--watch")
    assert ask(address, "limits")["accepts"] is False
    (job,) = ask(address, "jobs")
    assert (job["name"], job["state"], job["options"]["time"]) == ("X-n106-k14", "running", 300.0)
    until(address, f"jobs/{job['id']}", lambda job: job["cost"] is not None)
    with urlopen(f"{address}api/jobs/{job['id']}/events") as events:
        child.send_signal(signal.SIGTERM)
        text = events.read().decode()
    end = json.loads(text.strip().splitlines()[-1].removeprefix("data: "))
    assert (end["state"], end["forms"]) == ("cancelled", ["sol", "json", "html", "csv"])
    output, _ = child.communicate(timeout=20)
    assert f"cost             {end['cost']:,.0f}\n" in output
    assert child.returncode == 143


def test_watch_needs_one_instance() -> None:
    answer = CliRunner().invoke(app, ["solve", str(LIB.parent / "sets/cvrp100.npz"), "--watch"], prog_name="nds")
    assert answer.exit_code == 2
    assert "--watch is for one instance" in answer.output


@pytest.mark.slow
def test_a_search_that_fails_is_shown() -> None:
    """The page of a search without a feasible solution states the reason."""
    problem = ndsvrp.read(INSTANCE)
    with watch.Watched(problem, "a.vrp", {"iterations": 10}, 1) as page:
        page.fail("no feasible solution found")
        (job,) = ask(page.address, "jobs")
    assert (job["state"], job["error"]) == ("failed", "no feasible solution found")


def test_the_extra_is_named_if_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("ndsvrp.serve.") and name != "ndsvrp.serve.config"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    for command in (["serve"], ["solve", str(INSTANCE), "--watch", "--time", "1"]):
        answer = CliRunner().invoke(app, command, prog_name="nds")
        assert answer.exit_code == 2
        assert "the service needs fastapi: pip install '.[serve]' in a clone of the repository" in answer.output


def test_the_documentation_lists_every_setting() -> None:
    for name, default, sentence in describe(ServeConfig):
        shown = (f"{default:g}" if isinstance(default, float) else default) or "–"
        shown = 0 if default == 0 else shown
        assert f"| `--{name.replace('_', '-')}` | {shown} | {sentence} |" in SERVICE_PAGE.read_text(), name


@pytest.mark.slow
def test_the_example_of_the_documentation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As it is written, but for the port and the seconds."""
    (example,) = re.findall(r"```python\n(.*?)```", SERVICE_PAGE.read_text(), re.DOTALL)
    with serving(tmp_path / "jobs.sqlite") as address, contextlib.chdir(ROOT):
        exec(example.replace("http://127.0.0.1:8765/", address).replace("time=2", "time=0.5"), {})
    output = capsys.readouterr().out
    costs = [float(cost) for cost in re.findall(r"^ +[\d.]+ s  ([\d.]+)$", output, re.MULTILINE)]
    assert float(output.split("Cost: ")[1]) == costs[-1]
