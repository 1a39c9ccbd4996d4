"""PyVRP (https://pyvrp.org, 0.9 or newer) as a baseline. It computes in integers.

Another Python can run another version of it beside that of this environment: `pyvrp@/path/to/python`.
"""

import io
import json
import subprocess
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ndsvrp.bench import pyvrp_process
from ndsvrp.bench.solvers import Answer, last_line, refusal
from ndsvrp.bench.ticks import to_ticks
from ndsvrp.constraints import CAPACITY, FLEET, MAX_DISTANCE, PRIZES, TIME_WINDOWS, VEHICLE_COST
from ndsvrp.errors import InstanceError
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution

PROGRAM = str(Path(__file__).with_name("pyvrp_process.py"))
LARGEST_LENGTH = 1 << 22
"""PyVRP charges at most 100,000 for a unit of excess load. That has to be more than what overload saves."""


@dataclass(frozen=True)
class PyVRP:
    """PyVRP with its default parameters."""

    python: str | None = None  #: the Python that has it; None: this one

    def version(self) -> str:
        return version("pyvrp") if self.python is None else self._version

    def refuses(self, problem: Problem) -> str | None:
        return refusal("PyVRP", {CAPACITY, TIME_WINDOWS, PRIZES, FLEET, MAX_DISTANCE, VEHICLE_COST}, problem)

    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        ticks = to_ticks(problem, largest_length=LARGEST_LENGTH)
        nodes = len(problem.demand)
        arrays: dict[str, Any] = {
            **asdict(ticks), "required": problem.required, "vehicles": problem.vehicles or problem.customers,
            "xy": problem.coordinates if problem.coordinates is not None else np.zeros((nodes, 2)),
        }  # fmt: skip
        found = (
            pyvrp_process.solve(arrays, seconds, seed)
            if self.python is None
            else self._run(**arrays, seconds=seconds, seed=seed)
        )
        settings = {"parameters": "default", "cost_scale": ticks.cost_scale, "time_scale": ticks.time_scale}
        settings["iterations"] = found["iterations"]
        trace = [(moment, cost / ticks.cost_scale) for moment, cost in found["trace"]]
        return Answer(Solution(route for route in found["routes"] if route), found["seconds"], settings, trace)

    @cached_property
    def _version(self) -> str:
        try:
            return self._call(["--version"], b"").decode().strip()
        except (OSError, RuntimeError) as error:
            hint = f"{self.python} -m pip install pyvrp"
            raise InstanceError(f"'pyvrp@{self.python}' does not run: {error} ({hint})", field="solvers") from None

    def _run(self, **arrays: Any) -> dict[str, Any]:
        message = io.BytesIO()
        np.savez(message, **arrays)
        outcome: dict[str, Any] = json.loads(self._call([], message.getvalue()))
        return outcome

    def _call(self, arguments: list[str], message: bytes) -> bytes:
        """Run the program by the other Python, apart from the packages of this one. It keeps the core."""
        command = [str(self.python), "-I", PROGRAM, *arguments]
        done = subprocess.run(command, input=message, capture_output=True)
        if done.returncode != 0:
            raise RuntimeError(last_line(done.stderr) or f"exit code {done.returncode}")
        return done.stdout


PYVRP = PyVRP()
