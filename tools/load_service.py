"""Load test of `nds serve`: many clients and jobs, the service killed in between; then hostile clients.

Usage: python tools/load_service.py [--clients 100] [--jobs 1000] [--kills 1] [--bad 10000] [--out FILE.jsonl]

Prints and appends a row for each part. Exits with 1 if a job is lost, has two answers, or fails `check`, or if the
service does not refuse what it must refuse.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import ndsvrp
from ndsvrp.io import read_solution
from ndsvrp.io.environment import environment

SEARCH = 0.05  # seconds of a search
CUSTOMERS = 30
PAUSE = 1.0  # seconds between two tries of a client, on average
GIB = 2**30


class Service:
    """The service as a process of its own."""

    def __init__(self, folder: Path, *options: object) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.command = [
            sys.executable, "-m", "ndsvrp", "serve", "--port", str(self.port), "--device", "cpu",
            "--database", str(folder / "jobs.sqlite"), *map(str, options),
        ]  # fmt: skip
        self.start()

    def start(self) -> None:
        environ = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, env=environ)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)

    def cpu_seconds(self) -> float:
        """Return the seconds that the process has computed, without its searches."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def mib(self, field: str) -> float:
        """Return the memory of the process: VmRSS now, VmHWM at its peak."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return round(next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024, 1)

    async def ready(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                if (await Client(self.port).ask("GET", "/api/limits"))[0] == 200:
                    return
            await asyncio.sleep(0.05)


class Client:
    """HTTP/1.1 over one connection; just enough, so that the load costs little.

    Plain sockets: clients share the cores with the service, and the streams of asyncio would take much of the time
    that is measured. To connect does not wait: on one machine the kernel answers for the service.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.connection: socket.socket | None = None

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Return the status and the content of the answer."""
        if self.connection is None:
            self.connection = socket.create_connection(("127.0.0.1", self.port))
            self.connection.setblocking(False)
        loop, answer = asyncio.get_running_loop(), b""
        try:
            head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
            await loop.sock_sendall(self.connection, head.encode() + body)
            while True:
                if not (part := await loop.sock_recv(self.connection, 2**18)):
                    raise ConnectionError("closed before the answer was complete")
                answer += part
                fields, end, content = answer.partition(b"\r\n\r\n")
                if end and len(content) >= int(_field(fields, b"content-length") or 0):
                    break
            if _field(fields, b"connection") == b"close":
                self.close()
            return int(fields.split()[1]), content
        except OSError:
            self.close()
            raise

    async def follow(self, path: str) -> bytes:
        """Read server-sent events to the end of the stream."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**22)
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
            return await reader.read()
        finally:
            writer.close()

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = None


def _field(head: bytes, name: bytes) -> bytes | None:
    """Return a header of an answer."""
    for line in head.split(b"\r\n")[1:]:
        given, _, value = line.partition(b": ")
        if given.lower() == name:
            return value.lower()
    return None


class Run:
    """What the clients have seen."""

    def __init__(self, service: Service, body: bytes, arrival: float) -> None:
        self.service, self.body, self.arrival = service, body, arrival
        self.first: list[float] = []  # seconds to submit the first job of each client
        self.later: list[float] = []  # and the others
        self.answers: dict[str, set[str]] = {}  # digests of the result, by job
        self.retries = 0

    async def client(self, number: int, jobs: int) -> None:
        await asyncio.sleep(self.arrival * random.random())
        client = Client(self.service.port)
        for index in range(jobs):
            times = self.later if index else self.first
            path = f"/api/jobs?name=a.npz&time={SEARCH}&seed={number}&key=client-{number}-job-{index}"
            job = json.loads(await self.insist(client, "POST", path, self.body, times))["id"]
            while True:
                with contextlib.suppress(OSError):
                    if b"event: end" in await client.follow(f"/api/jobs/{job}/events"):
                        break
                await self.pause()
            await self.fetch(client, job)
        client.close()

    async def pause(self) -> None:
        """Wait before another try, each client as long as it likes: they do not come back all at once."""
        self.retries += 1
        await asyncio.sleep(2 * PAUSE * random.random())

    async def insist(
        self, client: Client, method: str, path: str, body: bytes = b"", times: list[float] | None = None
    ) -> bytes:
        """Ask until the service answers; a killed one does not. `times` gets the seconds, with the connection."""
        while True:
            began = time.perf_counter()
            try:
                status, content = await client.ask(method, path, body)
            except OSError:
                await self.pause()
                continue
            assert status in (200, 202), (status, content)
            if times is not None:
                times.append(time.perf_counter() - began)
            return content

    async def fetch(self, client: Client, job: str) -> bytes:
        content = await self.insist(client, "GET", f"/api/jobs/{job}/result?form=sol")
        self.answers.setdefault(job, set()).add(sha256(content).hexdigest())
        return content


async def jobs_part(folder: Path, clients: int, jobs: int, arrival: float, kills: int) -> dict[str, Any]:
    problem = ndsvrp.generate("cvrp", CUSTOMERS, seed=1)[0]
    ndsvrp.write_set(folder / "a.npz", [problem])
    service = Service(folder, "--workers", 2, "--threads", 1)
    await service.ready()
    run = Run(service, (folder / "a.npz").read_bytes(), arrival)
    began = time.perf_counter()
    tasks = [asyncio.create_task(run.client(number, jobs // clients)) for number in range(clients)]
    peak, killed, cpu_seconds = 0.0, list[int](), 0.0
    for kill in range(1, kills + 1):
        while len(run.answers) < jobs * kill // (kills + 1):
            await asyncio.sleep(0.05)
            if any(task.done() and task.exception() for task in tasks):
                break
        killed.append(len(run.answers))
        peak, cpu_seconds = max(peak, service.mib("VmHWM")), cpu_seconds + service.cpu_seconds()
        service.kill()
        service.start()
    await asyncio.gather(*tasks)
    seconds = time.perf_counter() - began
    client, listed = Client(service.port), []
    stored = json.loads(await run.insist(client, "GET", "/api/jobs?limit=1000"))
    for job in stored:
        (folder / "a.sol").write_bytes(await run.fetch(client, job["id"]))
        solution, cost = read_solution(folder / "a.sol")
        report = ndsvrp.check(problem, solution)
        listed.append(report.feasible and abs(report.cost - job["cost"]) < 1e-9 and cost == job["cost"])
    peak, cpu_seconds = max(peak, service.mib("VmHWM")), cpu_seconds + service.cpu_seconds()
    service.stop()
    times, first = sorted(run.first + run.later), sorted(run.first)
    done = sum(job["state"] == "done" for job in stored)
    return {
        "part": "jobs", "clients": clients, "jobs": jobs, "customers": CUSTOMERS, "search_seconds": SEARCH,
        "seconds": round(seconds, 1), "killed_after": killed,
        "retries": run.retries,
        "stored": len(stored), "done": done, "lost": jobs - len(run.answers), "checked": sum(listed),
        "two_answers": sum(len(digests) > 1 for digests in run.answers.values()),
        "started_again": sum(job["attempts"] > 1 for job in stored), "submit_p50_ms": _ms(times, 0.5),
        "submit_p95_ms": _ms(times, 0.95), "submit_max_ms": _ms(times, 1.0),
        "first_p50_ms": _ms(first, 0.5), "first_p95_ms": _ms(first, 0.95), "first_max_ms": _ms(first, 1.0),
        "peak_mib": peak,
        "service_cpu_seconds": round(cpu_seconds, 1), "arrival_seconds": arrival,
        "ok": len(stored) == done == jobs == sum(listed) and all(len(d) == 1 for d in run.answers.values()),
    }  # fmt: skip


def _ms(times: list[float], share: float) -> float:
    return round(1000 * times[min(len(times) - 1, int(share * len(times)))], 1)


async def huge_body(port: int, *, declared: bool) -> int:
    """Send 1 GB. Return the status of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    kind = f"content-length: {GIB}" if declared else "transfer-encoding: chunked"
    writer.write(f"POST /api/jobs?name=a.vrp HTTP/1.1\r\nhost: localhost\r\n{kind}\r\n\r\n".encode())
    block, answered = b"x" * 2**20, asyncio.create_task(reader.read(100))
    with contextlib.suppress(OSError):  # the service may close the connection while we send
        for _ in range(GIB // len(block)):
            if answered.done():
                break
            writer.write(block if declared else b"100000\r\n" + block + b"\r\n")
            await writer.drain()
    answer = b""
    with contextlib.suppress(OSError, TimeoutError):
        answer = await asyncio.wait_for(answered, 30)
    writer.close()
    return int(answer.split()[1]) if answer else 0


async def slow_client(port: int, seconds: float) -> float:
    """Send a byte of the body now and then. Return after how many seconds the service ended the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /api/jobs?name=a.vrp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n")
    began = time.perf_counter()
    with contextlib.suppress(OSError):
        while time.perf_counter() - began < seconds:
            writer.write(b"x")
            await writer.drain()
            with contextlib.suppress(TimeoutError):
                if await asyncio.wait_for(reader.read(1000), 0.2):
                    break
    writer.close()
    return time.perf_counter() - began


async def bad_requests(port: int, count: int, seed: int) -> Counter[int]:
    """Send broken requests one after the other. Return how often each status was answered; 0: closed without one."""
    draw, statuses = random.Random(seed), Counter[int]()
    vrp = (
        b"NAME : a\nTYPE : CVRP\nDIMENSION : %d\nCAPACITY : 10\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n1 0 0\n"
    )
    for _ in range(count):
        garbage = draw.randbytes(draw.randrange(1, 2000))
        kind = draw.randrange(6)
        if kind == 0:
            message = garbage
        else:
            method, path, body = [
                ("POST", "/api/jobs?name=a.vrp", garbage),
                ("POST", "/api/jobs?name=a.npz", b"PK\x03\x04" + garbage),
                ("POST", "/api/jobs?name=a.vrp", vrp % draw.choice([-1, 0, 2, 10**9])),
                ("POST", f"/api/jobs?name=a.vrp&{draw.choice(['time=-1', 'seed=x', 'model=/etc/passwd'])}", b"x"),
                (draw.choice(["GET", "PUT", "DELETE"]), f"/api/jobs/{draw.getrandbits(64)}/result?form=x", b""),
            ][kind - 1]
            fields = f"host: localhost\r\nconnection: close\r\ncontent-length: {len(body)}"
            message = f"{method} {path} HTTP/1.1\r\n{fields}\r\n\r\n".encode() + body
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        answer = b""
        with contextlib.suppress(OSError, TimeoutError):
            writer.write(message)
            if kind == 0:
                writer.write_eof()
            answer = await asyncio.wait_for(reader.read(100), 30)
        writer.close()
        statuses[int(answer.split()[1]) if answer.startswith(b"HTTP/1.1 ") else 0] += 1
    return statuses


async def hostile_part(folder: Path, bad: int) -> dict[str, Any]:
    service = Service(folder, "--workers", 1, "--body-seconds", 5)
    await service.ready()
    before, began = service.mib("VmRSS"), time.perf_counter()
    huge = [await huge_body(service.port, declared=declared) for declared in (True, False)]
    after_huge = service.mib("VmHWM")
    slow = await asyncio.gather(*(slow_client(service.port, 30) for _ in range(50)))
    clients = 50
    counts = await asyncio.gather(*(bad_requests(service.port, bad // clients, seed) for seed in range(clients)))
    statuses = sum(counts, Counter[int]())
    status, listed = await Client(service.port).ask("GET", "/api/jobs")
    row = {
        "part": "hostile", "huge_bodies": huge, "slow_clients": len(slow), "slow_longest": round(max(slow), 1),
        "bad_requests": statuses.total(), "statuses": {str(code): n for code, n in sorted(statuses.items())},
        "seconds": round(time.perf_counter() - began, 1), "mib_before": before, "mib_after_huge": after_huge,
        "peak_mib": service.mib("VmHWM"),
    }  # fmt: skip
    refused = all(code == 0 or 400 <= code < 500 for code in statuses) and all(code in (0, 413) for code in huge)
    row["ok"] = refused and status == 200 and json.loads(listed) == [] and max(slow) < 15
    service.stop()
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--arrival", type=float, default=5.0, help="Seconds in which clients arrive; 0: at once.")
    parser.add_argument("--kills", type=int, default=1, help="How often the service is killed and started again.")
    parser.add_argument("--bad", type=int, default=10_000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--note", help="Appended to the rows, such as what else the machine did.")
    asked = parser.parse_args()
    ok = True
    parts = [lambda folder: jobs_part(folder, asked.clients, asked.jobs, asked.arrival, asked.kills)]
    if asked.bad:
        parts.append(lambda folder: hostile_part(folder, asked.bad))
    for part in parts:
        with tempfile.TemporaryDirectory() as folder:
            row = asyncio.run(part(Path(folder)))
        ok &= row["ok"]
        row |= {"note": asked.note} if asked.note else {}
        row |= {
            "load_average": os.getloadavg()[0],
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            **environment(),
        }
        print(json.dumps(row))
        if asked.out is not None:
            with asked.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
