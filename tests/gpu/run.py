"""Everything about the GPU engine on a machine with a GPU: agreement with the CPU, sanitizers, speed. Needs no pytest.

    python tests/gpu/run.py [FOLDER for logs] [all|agree|speed]

Builds the CPU core with CMake into build/gpu and puts it beside the package. Processes run side by side, so that
kernels are compiled on many cores; the speed is measured last, alone. Ends with a table; exits with 1 if anything
failed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
VARIANTS, SOURCES = ("cvrp", "vrptw", "pcvrp", "pcvrptw"), ("none", "dimacs", "durations")
LIMITED = (("cvrp+limits", "none"), ("vrptw+limits", "dimacs"), ("pcvrptw+limits", "durations", "drafts"),
           ("pcvrptw+limits+cost", "dimacs"))  # fmt: skip
PLACED = (("cvrp", "none"), ("pcvrptw", "dimacs"), ("pcvrp", "durations"))
SANITIZED = (("cvrp", "none", "auto"), ("pcvrptw", "durations", "drafts"), ("pcvrp", "none", "global"))
TOOLS = {
    "memcheck": ["--report-api-errors", "no"],  # torch and cuda-core try calls that fail when they start
    "racecheck": [],
    "synccheck": [],
}
LIMIT = 360  # seconds that anything but the speed may take
SPEED = """
import sys
from ndsvrp.bench import gpu
def show(row): print(gpu.line(row), flush=True)
gpu.run(out=sys.argv[1], progress=show)
gpu.run((2000,), ("cvrp",), out=sys.argv[1], progress=show, only=("engine",))
gpu.run((500,), ("cvrp",), 1024, out=sys.argv[1], progress=show, only=("engine",))
"""


class Done(NamedTuple):
    """A job that ended."""

    name: str
    code: int
    seconds: float
    text: str


def build() -> None:
    """The CPU core from this source tree, beside the package."""
    folder = ROOT / "build/gpu"
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", f"-DPython_EXECUTABLE={sys.executable}"]
    for command in (configure, ["cmake", "--build", str(folder)]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stdout[-3000:] + done.stderr[-3000:])
    for library in folder.glob("_core*.so"):
        shutil.copy(library, ROOT / "src/ndsvrp" / library.name)


def jobs() -> dict[str, list[str]]:
    """Commands by name, the long ones first."""
    python = [sys.executable, str(ROOT / "tests/gpu/agree.py")]
    sanitizer = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    out = {}
    for tool, options in TOOLS.items():
        for case in SANITIZED:
            checked = [sanitizer, "--tool", tool, *options, "--error-exitcode", "9", *python, *case, "--small"]
            out[f"{tool} {' '.join(case)}"] = checked
        network = [sys.executable, str(ROOT / "tests/gpu/small_network.py")]
        out[f"{tool} network"] = [sanitizer, "--tool", tool, *options, "--error-exitcode", "9", *network]
    for n in ("10000", "2000", "500"):
        out[f"large {n}"] = [*python, "large", n]
    out["special"] = [*python, "special"]
    out["regions"] = [*python, "regions"]
    for variant in VARIANTS:
        for source in SOURCES:
            out[f"{variant} {source}"] = [*python, variant, source]
    for case in LIMITED:
        out[" ".join(case)] = [*python, *case]
    for placement in ("drafts", "global"):
        for variant, source in PLACED:
            out[f"{variant} {source} {placement}"] = [*python, variant, source, placement, "--small"]
    return out


def run_all(commands: dict[str, list[str]], logs: Path, environment: dict[str, str]) -> list[Done]:
    """As many side by side as there are cores."""
    waiting, done = list(commands.items()), []
    running: dict[str, tuple[subprocess.Popen[bytes], Path, float]] = {}
    while waiting or running:
        while waiting and len(running) < max(2, (os.cpu_count() or 2) - 1):
            name, command = waiting.pop(0)
            part = logs / f"{name.replace(' ', '-')}.part"
            own = {**environment, "AGREE_LIMIT": str(LIMIT - 20)}
            if command[0] != sys.executable:
                own["NDSVRP_LINES"] = "1"  # sanitizers name lines
            with part.open("wb") as file:
                process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=own, cwd=ROOT)
            running[name] = (process, part, time.monotonic())
        for name, (process, part, since) in list(running.items()):
            seconds = time.monotonic() - since
            if process.poll() is None and seconds < LIMIT:
                continue
            process.kill()
            done.append(Done(name, process.wait(), seconds, part.read_text(errors="replace")))
            print(f"{name:44} {'FAILED' if done[-1].code else 'ok':6} {seconds:6.0f} s", flush=True)
            part.unlink()
            del running[name]
        time.sleep(0.1)
    return done


def main() -> int:
    logs = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/gpu-logs")
    logs.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    build()
    print(f"built in {time.monotonic() - began:.0f} s", flush=True)
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    environment = {**os.environ, "PYTHONPATH": paths, "NDSVRP_CACHE": str(ROOT / "build/kernels")}
    what = sys.argv[2] if len(sys.argv) > 2 else "all"
    failed = [] if what == "speed" else agree(logs, environment)
    print(f"{time.monotonic() - began:.0f} s so far", flush=True)
    if what != "agree":
        command = [sys.executable, "-c", SPEED, str(logs / "gpu.jsonl")]
        failed += [command[2]] * (subprocess.run(command, env=environment, cwd=ROOT).returncode != 0)
    return 1 if failed else 0


def agree(logs: Path, environment: dict[str, str]) -> list[str]:
    """Run all jobs; returns the names of those that failed."""
    done = run_all(jobs(), logs, environment)
    (logs / "agree.log").write_text("".join(f"=== {d.name} ({d.seconds:.0f} s, {d.code})\n{d.text}\n" for d in done))
    failed = [d for d in done if d.code != 0]
    for d in failed:
        print(f"FAILED {d.name} (exit {d.code})", *d.text.strip().splitlines()[-6:], "", sep="\n")
    print(f"{len(done) - len(failed)} of {len(done)} ok")
    return [d.name for d in failed]


if __name__ == "__main__":
    sys.exit(main())
