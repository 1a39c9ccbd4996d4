"""The GPU engine, where there is a GPU; `python tests/gpu/run.py` is the whole of it, with sanitizers and speed."""

from __future__ import annotations

from typing import Any

import pytest

from gpu import agree
from ndsvrp import EngineError
from ndsvrp.engine import device
from ndsvrp.engine.cuda import CudaEngine

HERE = pytest.mark.skipif(not device.available(), reason="no GPU")


@pytest.fixture(scope="module")
def cuda() -> CudaEngine:
    return CudaEngine()


@HERE
@pytest.mark.gpu
@pytest.mark.parametrize(("variant", "source"), agree.KINDS)
@pytest.mark.parametrize("placement", ["auto", "drafts", "global"])
def test_cpu_and_gpu_make_the_same_routes(placement: Any, variant: str, source: str) -> None:
    agree.check_kind(variant, source, CudaEngine(placement=placement), small=placement != "auto")


@HERE
@pytest.mark.gpu
def test_special_and_large(cuda: CudaEngine) -> None:
    agree.check_special(cuda)
    agree.check_large(cuda)


@HERE
@pytest.mark.gpu
def test_regions(cuda: CudaEngine) -> None:
    agree.check_regions(cuda)


@HERE
@pytest.mark.gpu
def test_tensors_stay_on_the_gpu(cuda: CudaEngine) -> None:
    agree.check_tensors(cuda)


@HERE
@pytest.mark.gpu
def test_deadlines_are_kept(cuda: CudaEngine) -> None:
    agree.check_deadlines(cuda)


@pytest.mark.skipif(device.available(), reason="there is a GPU")
def test_without_a_gpu_one_line_says_so() -> None:
    with pytest.raises(EngineError, match=r"cuda-core|GPU|torch") as error:
        CudaEngine()
    assert "\n" not in str(error.value)
