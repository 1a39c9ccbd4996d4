"""Kernels are compiled in threads, once each, and kept on disk: without a GPU, and without a compiler."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ndsvrp.engine.device import Device, _write
from ndsvrp.errors import EngineError


class Module:
    """What has been compiled."""

    def __init__(self, file: str) -> None:
        self.file = file

    def get_kernel(self, name: str) -> str:
        return f"{name} of {self.file}"


class Stubbed(Device):
    """No GPU: whoever compiles waits until it may."""

    def __init__(self) -> None:
        self._kernels, self._modules = {}, {}
        self._compilers = ThreadPoolExecutor(2)
        self.compiled: list[str] = []
        self.may = threading.Event()

    def _load(self, file: str, macros: Any) -> Module:
        self.compiled.append(file)
        assert self.may.wait(10)
        if file == "broken":
            raise EngineError("NVRTC cannot compile broken.cu")
        return Module(file)


@pytest.fixture
def device() -> Any:
    made = Stubbed()
    yield made
    made.may.set()


def test_what_is_expected_is_compiled_beside_others_and_once(device: Stubbed) -> None:
    device.precompile("improve", ())
    device.precompile("improve", ())
    threading.Timer(0.05, device.may.set).start()
    assert device.kernel("chains", "view", ()) == "view of chains"
    assert device.kernel("improve", "steps", ()) == "steps of improve"
    assert device.kernel("improve", "others", ()) == "others of improve"
    device.precompile("improve", ())
    assert sorted(device.compiled) == ["chains", "improve"]
    device.kernel("improve", "steps", (("A", "1"),))
    assert sorted(device.compiled) == ["chains", "improve", "improve"]


def test_what_goes_wrong_is_told_to_who_asks(device: Stubbed) -> None:
    device.may.set()
    device.precompile("broken", ())
    for _ in range(2):
        with pytest.raises(EngineError, match=r"^NVRTC cannot compile broken\.cu$"):
            device.kernel("broken", "x", ())


def test_an_interruption_does_not_compile_again(device: Stubbed) -> None:
    main = threading.main_thread().ident
    assert main is not None
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in background jobs
    threading.Timer(0.1, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            device.kernel("improve", "steps", ())
    finally:
        signal.signal(signal.SIGINT, handler)
    device.may.set()
    assert device.kernel("improve", "steps", ()) == "steps of improve"
    assert device.compiled == ["improve"]


def test_several_may_keep_the_same_kernel(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """Whoever reads it finds all of it, whoever was last."""
    path, size = tmp_path / "cache" / "improve-1.cubin", 1 << 20
    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(_write, path, bytes([i]) * size) for i in range(40)]
        while not all(writer.done() for writer in writers):
            if path.is_file():
                data = path.read_bytes()
                assert len(data) == size and len(set(data)) == 1
    assert not recwarn.list and [file.name for file in path.parent.iterdir()] == [path.name]
