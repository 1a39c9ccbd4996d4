"""Fuzz the command: run it on damaged files and command lines, and judge how it ends.

    python tests/fuzz/run.py --count 1000 --seed 1 --out results/fuzz.jsonl

Every run must end with 0, 2 or 3 within 10 s and 1 GB, without a traceback, and without a half-written file. The
command is imported once; each case runs in a fork of this process, and every hundredth in a process of its own.
Seconds are those of the processor, so that other load does not matter; a run that hangs is ended after a minute.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import itertools
import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    sys.path[0] = str(Path(__file__).parents[1])

from fuzz.cases import Case, Corpus, make_case

SECONDS = 10.0  # of the processor
HANGS = 60  # seconds after which a run is ended, which is a failure
MEMORY = 10**9  # bytes that are resident
ADDRESSES = 4 * 2**30  # that a case may reserve beyond those of this process: protects the machine
CODES = (0, 2, 3)
OWN_PROCESS = 100  # one in so many cases


@dataclass(frozen=True)
class Ending:
    """How a case ended."""

    number: int
    kind: str
    args: tuple[str, ...]
    code: int
    seconds: float  #: of the processor
    wait: float  #: seconds until the end
    memory: int
    faults: tuple[str, ...]


def run_case(seed: int, number: int, corpus: Corpus, place: Path, command: Any) -> Ending:
    """Make a case in a new folder, run it and judge it."""
    folder = place / str(number)
    folder.mkdir()
    case = make_case(seed, number, corpus, folder)
    before = snapshot(folder)
    began = time.perf_counter()
    with (place / "out").open("wb") as out, (place / "err").open("wb") as err:
        if number % OWN_PROCESS == OWN_PROCESS - 1:
            arguments = [sys.executable, "-m", "ndsvrp", *case.args]
            process = subprocess.Popen(arguments, cwd=folder, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
            child = process.pid
            guard = subprocess.Popen(["sh", "-c", f"sleep {HANGS} && kill -9 {child}"], process_group=0)
        else:
            child, guard = os.fork(), None
            if child == 0:
                _become(case, folder, command, out.fileno(), err.fileno())
        _, status, usage = os.wait4(child, 0)
    seconds, wait = usage.ru_utime + usage.ru_stime, time.perf_counter() - began
    if guard is not None:
        os.killpg(guard.pid, signal.SIGKILL)
        guard.wait()
        process.returncode = 0  # waited for above
    code, memory = os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024
    faults = judge(case, code, seconds, memory, (place / "err").read_bytes(), before, folder)
    faults += shown_raw((place / "out").read_bytes(), "output")
    shutil.rmtree(folder)
    return Ending(number, case.kind, case.args, code, round(seconds, 3), round(wait, 3), memory, tuple(faults))


def _become(case: Case, folder: Path, command: Any, out: int, err: int) -> None:
    """Turn this fork into a run of the command. Never returns."""
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    signal.setitimer(signal.ITIMER_REAL, HANGS)
    reserved = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (reserved + ADDRESSES, reserved + ADDRESSES))
    code = 1
    try:
        command.main(list(case.args), prog_name="nds")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def snapshot(folder: Path) -> dict[Path, Any]:
    """Return every file below a folder, with its content if it is a small regular one."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        small = stat.S_ISREG(status.st_mode) and status.st_size < 2**22
        found[path] = path.read_bytes() if small else (status.st_mode, status.st_size)
    return found


def judge(
    case: Case, code: int, seconds: float, memory: int, err: bytes, before: dict[Path, Any], folder: Path
) -> list[str]:
    """Return what is wrong with the end of a case."""
    faults = []
    if code not in CODES:
        faults.append(f"exit code {code}")
    if seconds > SECONDS:
        faults.append(f"took {seconds:.1f} s")
    if memory > MEMORY:
        faults.append(f"took {memory / 1e6:,.0f} MB")
    text = err.decode(errors="replace")
    if "Traceback" in text or "Warning:" in text or "Error:" in text:
        faults.append(text[-1500:])
    if code == 2 and not re.search(r"^nds: |Usage:", text, re.MULTILINE) and not {"--help", "-h"} & set(case.args):
        faults.append("no message")
    faults += shown_raw(err, "error stream")
    if code == 0 and case.kind != "arguments" and (folder / "out.sol").is_file():
        faults += wrong_solution(case, folder)
    after = snapshot(folder)
    if len(after) < len(before):
        faults.append("a file is gone")
    for path, content in after.items():
        if path.name.endswith(".tmp"):
            faults.append(f"left {path.name}")
        elif path not in before and isinstance(content, bytes):
            faults += half_written(path, content)
        elif path in before and before[path] != content and path.name not in WRITTEN and "run" not in path.parts:
            faults.append(f"changed {path.name}")
    return faults


WRITTEN = ("rows.jsonl", "log.jsonl")  # which a command line appends to


def shown_raw(data: bytes, where: str) -> list[str]:
    """Return a fault for characters that could control a terminal."""
    raw = [c for c in data.decode(errors="replace") if not c.isprintable() and c != "\n"]
    return [f"{where}: {raw[:3]!r}"] if raw else []


def wrong_solution(case: Case, folder: Path) -> list[str]:
    """Return a fault if the solution of `nds solve FILE … --out out.sol` is infeasible, or its cost is another."""
    import ndsvrp
    from ndsvrp.io.sol import matches_cost

    given = dict(itertools.pairwise(case.args))
    index, ignored = given.get("--index"), [given["--ignore-field"]] if "--ignore-field" in given else []
    with warnings.catch_warnings(action="ignore"):
        beside = {flag[2:]: float(given[flag]) for flag in ("--capacity",) if flag in given}
        beside |= {flag[2:]: folder / given[flag] for flag in ("--distance", "--duration") if flag in given}
        problem = ndsvrp.read(
            folder / case.args[1], given.get("--round", "auto"), index and int(index), ignore_fields=ignored, **beside
        )
    solution, cost = ndsvrp.read_solution(folder / "out.sol")
    report = ndsvrp.check(problem, solution)
    if report.feasible and cost is not None and matches_cost(cost, report.cost, problem.metric):
        return []
    return [f"out.sol costs {cost}, not {report.cost}; {report.violations}"]


def half_written(path: Path, content: bytes) -> list[str]:
    """Return a fault if a new file is not what its name says."""
    import numpy as np

    from ndsvrp.io import read_solution

    try:
        if path.suffix == ".sol":
            read_solution(path)
        elif path.suffix == ".json":
            json.loads(content)
        elif path.suffix == ".jsonl":
            [json.loads(line) for line in content.splitlines()]
        elif path.suffix == ".npz":
            with np.load(path) as archive:
                [archive[name] for name in archive.files]
        elif path.suffix == ".csv" and not content.endswith(b"\n"):
            return [f"{path.name} is cut off"]
    except Exception as error:
        return [f"{path.name} is half-written: {error}"]
    return []


def fuzz(count: int, seed: int, first: int = 0) -> list[Ending]:
    """Run cases and return how they ended."""
    import matplotlib.figure  # noqa: F401
    import typer.main

    import ndsvrp.bench.speed  # noqa: F401
    from ndsvrp.cli import app
    from ndsvrp.cli.interrupt import exit_on_sigterm

    exit_on_sigterm()
    command = typer.main.get_command(app)
    with tempfile.TemporaryDirectory(prefix="nds-fuzz-") as name:
        good, place = Path(name) / "corpus", Path(name) / "cases"
        good.mkdir()
        place.mkdir()
        corpus = Corpus(good)
        warm_up(command, good)
        gc.collect()
        gc.freeze()  # so that garbage collection copies no pages in the forks
        endings = []
        for number in range(first, first + count):
            endings.append(run_case(seed, number, corpus, place, command))
            show(endings[-1])
        return endings


def show(ending: Ending) -> None:
    """Print a case that failed."""
    if ending.faults:
        print(f"case {ending.number} ({ending.kind}): {' '.join(ending.args)!r:.300}")
        print("   ", "\n    ".join(fault.replace("\n", "\n    ") for fault in ending.faults), flush=True)


def warm_up(command: Any, good: Path) -> None:
    """Run commands here, so that the forks need not import what they import."""
    lines = (
        ("info", "toy.vrp"),
        ("check", "toy.vrp", "toy.sol"),
        ("bench", "report", "rows.jsonl"),
        ("models", "tiny.json"),
    )
    for name, *files in lines:
        words = [str(good / word) if "." in word else word for word in files]
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
            command.main([name, *words], prog_name="nds")
    for words in (["--help"], ["bogus"]):
        nowhere = io.StringIO()
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            command.main(words, prog_name="nds")


def summary(endings: list[Ending], seed: int) -> dict[str, Any]:
    """Return the row of a run."""
    from ndsvrp.io.environment import environment

    kinds = {kind: dict(sorted(Counter(e.code for e in endings if e.kind == kind).items()))
             for kind in sorted({e.kind for e in endings})}  # fmt: skip
    slowest, largest = max(endings, key=lambda e: e.seconds), max(endings, key=lambda e: e.memory)
    failed = [asdict(ending) for ending in endings if ending.faults]
    return {
        "fuzz": "command", "seed": seed, "cases": len(endings), "failed": failed, "exit_codes": kinds,
        "slowest_seconds": slowest.seconds, "slowest": slowest.number, "largest_mb": round(largest.memory / 1e6),
        "limits": {"seconds": SECONDS, "mb": MEMORY / 1e6}, "longest_wait": max(e.wait for e in endings),
        "date": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()), **environment(),
    }  # fmt: skip


def main() -> None:
    """Run cases, print what failed, and append a row if all were run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="append the row of this run")
    options = parser.parse_args()
    row = summary(fuzz(options.count, options.seed, options.first), options.seed)
    print(
        json.dumps(
            {
                name: row[name]
                for name in ("cases", "exit_codes", "slowest_seconds", "slowest", "longest_wait", "largest_mb")
            }
        )
    )
    if options.out is not None:
        from ndsvrp.bench.rows import append_row

        append_row(options.out, row)
    sys.exit(1 if row["failed"] else 0)


if __name__ == "__main__":
    main()
