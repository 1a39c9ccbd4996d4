"""Numbers of different magnitude on an emulated GPU."""

import numpy as np
import pytest

from fuzz.random_problems import random_problem
from gpu import agree
from gpu.emulated import EmulatedDevice
from ndsvrp import Problem
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.engine.shared import instance_fields
from ndsvrp.engine.ticks import ticks_of
from ndsvrp.engine.upload import kind_of

pytestmark = pytest.mark.emulator


def test_same_routes_as_the_cpu() -> None:
    """All rules, by matrices: scales of their own, prizes as codes, customers reached by way of others only."""
    problems = [Problem(**random_problem(5, index)) for index in (334, 235)]
    for fields in (instance_fields(ticks_of(problem)) for problem in problems):
        assert len(kind_of(fields).rules) == 4 and fields["alone"] is not None
        assert np.any((fields["prize"] > 1 << 28) & (fields["prize"] < 1 << 29))
    agree.compare(problems, [0, 1], 1, 1, CudaEngine(placement="drafts", device=EmulatedDevice()))  # type: ignore[arg-type]
