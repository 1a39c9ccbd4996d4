from pathlib import Path

import numpy as np
import pytest

from ndsvrp.io import write_set
from ndsvrp.problem import Problem


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes `fakes:NAME` a solver, here and in worker processes."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.fixture
def small_set(tmp_path: Path) -> Path:
    """Three instances with the depot at (0, 0) and customers at (3, 4)·k and (0, 1)·k, k = 1, 2, 3.

    One route per customer costs 2·5k + 2·1k = 12k.
    """
    problems = [
        Problem(coordinates=np.array([[0, 0], [3, 4], [0, 1]]) * k, demand=[0, 1, 1], capacity=2) for k in (1, 2, 3)
    ]
    write_set(tmp_path / "small.npz", problems)
    return tmp_path / "small.npz"
