"""The same short search by both engines, for tests of first solutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu.emulated import EmulatedDevice
from ndsvrp import Problem, Settings, check
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.search.asa import Search
from ndsvrp.search.stopping import Budget


def assert_same_feasible_solutions(problems: Sequence[Problem], settings: Settings) -> None:
    """After two iterations on a CPU and on an emulated GPU."""
    gpu: Any = EmulatedDevice()
    found = []
    for engine in (CpuEngine(), CudaEngine(placement="global", device=gpu)):
        search = Search(problems, engine, settings, Budget(iterations=2), 1)
        search.run()
        found.append(search.best())
    assert found[0] == found[1]
    assert all(check(problem, best).feasible for problem, best in zip(problems, found[0], strict=True))
