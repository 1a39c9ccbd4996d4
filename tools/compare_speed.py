"""Compare the speed of two source trees on the same instances, interleaved, best of several runs.

    python tools/compare_speed.py OLD NEW [--what cpu|gpu] [--repeats 5] [--seconds 1] [--python OLD_PYTHON NEW_PYTHON]

OLD and NEW are checkouts with a built core. Each run is a process of its own that executes the rows of `nds bench
speed` (cpu) or the parts engine, iteration, search and training of `nds bench gpu` (gpu). The instances are those that
OLD generates: NEW reads them from files, so that a change of the generators does not change what is measured. Prints
a table of ratios and their geometric mean. Exits with 1 if the mean is below 98% or a row is below 93%.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LOWER_IS_BETTER = ("us per step", "ms")
GPU_PARTS = ("engine", "iteration", "search", "training")
NOT_COMPARED = ("start", "between", "time limit", "exchange and report")  # differences of rows, or no speed
RENAMED = {"rebuild": "improve"}


def child(what: str, folder: Path, seconds: float, parts: Sequence[str]) -> None:
    """Measure the package that is on the path; print a row per line."""
    from ndsvrp import read_set, write_set
    from ndsvrp.bench import speed

    def same_instances(generate: Any) -> Any:
        def stored(variant: str, n: int, **how: Any) -> Any:
            file = folder / ("-".join(map(str, (variant, n, *sorted(how.items())))).replace(" ", "") + ".npz")
            if not file.exists():
                write_set(file, generate(variant, n, **how))
            return list(read_set(file))

        return stored

    speed.generate = same_instances(speed.generate)
    if what == "cpu":
        for problem in speed.problems(None, 0, speed.SIZES, speed.KINDS):
            for row in speed.measure(problem, seconds):
                show(f"{problem.name} {row['scope']}", row["per_cpu_second"])
        return
    from ndsvrp.bench import gpu, gpu_search

    gpu.generate = same_instances(gpu.generate)
    gpu_search.generate = gpu.generate
    for row in gpu.run(only=parts):
        if row["what"] not in NOT_COMPARED:
            inverse = row["unit"] in LOWER_IS_BETTER
            show(gpu.named(row) + f" ({row['unit']})", 1 / row["value"] if inverse else row["value"])


def show(name: str, speed: float) -> None:
    """Print a row."""
    print(json.dumps([name, speed]), flush=True)


def measure(root: Path, python: str, arguments: argparse.Namespace, folder: str) -> dict[str, float]:
    """Run a child in a tree; returns the speed of each row."""
    command = [python, __file__, "--child", folder, "--what", arguments.what, "--seconds", str(arguments.seconds)]
    command += ["--parts", *arguments.parts]
    paths = os.pathsep.join(filter(None, [str(root / "src"), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths, "NDSVRP_CACHE": str(root / "build/kernels")}
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout[-2000:] + done.stderr[-4000:])
    return dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))


def main() -> int:
    """Measure both trees in turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", type=Path)
    parser.add_argument("--what", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--parts", nargs="+", choices=GPU_PARTS, default=GPU_PARTS, help="of nds bench gpu")
    parser.add_argument("--python", nargs=2, default=None)
    parser.add_argument("--out", type=Path, default=None, help="append a JSON row with all ratios")
    parser.add_argument("--child", type=Path, default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        child(arguments.what, arguments.child, arguments.seconds, arguments.parts)
        return 0
    old, new = (tree.resolve() for tree in arguments.trees)
    pythons = arguments.python or (sys.executable, sys.executable)
    best: tuple[dict[str, float], dict[str, float]] = ({}, {})
    with tempfile.TemporaryDirectory() as folder:
        if arguments.what == "gpu":  # compile kernels, write instances
            measure(old, pythons[0], arguments, folder)
            measure(new, pythons[1], arguments, folder)
        for _ in range(arguments.repeats):
            for root, python, found in zip((old, new), pythons, best, strict=True):
                for name, speed in measure(root, python, arguments, folder).items():
                    label = " ".join(RENAMED.get(word, word) for word in name.split(" "))
                    found[label] = max(found.get(label, 0.0), speed)
    ratios = {name: best[1][name] / best[0][name] for name in best[0] if name in best[1]}
    for name, ratio in ratios.items():
        print(f"{name:48} {best[0][name]:14.5g} {best[1][name]:14.5g} {100 * ratio:7.1f}%")
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    print(f"geometric mean {100 * mean:.1f}%, lowest {100 * min(ratios.values()):.1f}%, {len(ratios)} rows")
    if arguments.out is not None:
        row = {"what": f"speed beside {old.name}", "mean": mean, "lowest": min(ratios.values()), "ratios": ratios}
        with arguments.out.open("a") as file:
            print(json.dumps(row), file=file)
    return int(mean < 0.98 or min(ratios.values()) < 0.93)


if __name__ == "__main__":
    sys.exit(main())
