"""A GPU without one: the kernels of native/cuda compiled for the CPU, each thread a fiber (tests/native/emulate.hpp).

The engine's own code runs as it is: `CudaEngine(device=EmulatedDevice())`. Kernels are compiled when they are asked
for, as on a GPU, and kept in build/emulated under a hash of sources and macros.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from ndsvrp.engine.device import Macros, _argument

NATIVE = Path(__file__).parents[2] / "native"
EMULATOR = Path(__file__).parents[1] / "native"
KEPT = Path(__file__).parents[2] / "build/emulated"
COMPILER = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
WITH_ALL_PARTS = {"NDS_GAPS": "1", "NDS_BLINKS": "1", "NDS_TAILS": "1"}  # of improve.cu
FLAGS = ["-std=c++20", "-Og", "-ffp-contract=off", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"]
FLAGS += ["-U_FORTIFY_SOURCE"]  # for fibers.hpp

CALLS = """
#include "emulate.hpp"
#include "FILE"
#define NDS_KERNEL(kernel) if (!strcmp(name, #kernel)) return nds::launch(kernel, grid, threads, shared, words), 0
extern "C" __attribute__((visibility("default"))) int emulate(
    const char* name, int grid, int threads, unsigned shared, const unsigned long long* words) {
CALLS
  return 1;
}
"""  # the kernels of one file


class _Torch:
    """torch whose GPU is the CPU."""

    Tensor = torch.Tensor
    cuda = SimpleNamespace(
        OutOfMemoryError=torch.cuda.OutOfMemoryError, synchronize=lambda: None, mem_get_info=lambda: (1 << 30, 1 << 30)
    )

    def __getattr__(self, name: str) -> Any:
        made = getattr(torch, name)
        if name not in ("empty", "zeros", "tensor", "as_tensor"):
            return made

        def make(*arguments: Any, device: str = "cpu", **options: Any) -> Any:
            tensor = made(*arguments, **options)
            if name == "empty":
                tensor.view(torch.uint8).fill_(0xA5)  # as good as anything
            return tensor.clone() if name == "as_tensor" and device == "cuda" else tensor

        return make


class EmulatedDevice:
    """What `CudaEngine` needs of a `Device`."""

    def __init__(self, shared_limit: int = 232_448, multiprocessors: int = 1, exact: bool = False) -> None:
        self.torch = _Torch()
        self.name = "emulated"
        self.shared_limit, self.multiprocessors = shared_limit, multiprocessors
        self.exact = exact  #: without it kernels have parts that a GPU's would not, so that fewer are compiled
        self.launched: list[tuple[str, Macros, int]] = []  #: kernel, macros, blocks
        self.asked: set[tuple[str, Macros]] = set()  #: files and macros of kernels that were to be launched
        self.precompiled: list[tuple[str, Macros]] = []  #: and of those of which that was said before
        self.sent: list[int] = []  #: bytes of the arrays sent
        self.copied: list[int] = []  #: bytes of the tensors asked for
        self.log: list[str] = []  #: kernels launched, tensors asked for and waited for, in order
        self._libraries: dict[Macros, Any] = {}

    def kernel(self, file: str, name: str, macros: Macros) -> tuple[str, Macros]:
        """Sizes of blocks make no difference here."""
        self.asked.add((file, macros))
        same = {"NDS_THREADS": "32", "NDS_BLOCKS": "1"}
        if file == "improve" and not self.exact:
            same |= WITH_ALL_PARTS
        return name, (("file", file), *((key, same.get(key, value)) for key, value in macros))

    def precompile(self, file: str, macros: Macros) -> None:
        """Noted; it is compiled when it is asked for."""
        self.precompiled.append((file, macros))

    def launch(self, kernel: tuple[str, Macros], grid: int, threads: int, shared: int, *arguments: Any) -> None:
        """Runs to the end."""
        name, macros = kernel
        assert shared <= self.shared_limit, f"{name} asks for {shared} bytes of shared memory"
        if macros not in self._libraries:
            self._libraries[macros] = _compile(macros)
        words = np.array([int(_argument(a)) & 0xFFFFFFFFFFFFFFFF for a in arguments], np.uint64)
        missing = self._libraries[macros].emulate(
            name.encode(), grid, threads, ctypes.c_uint(shared), ctypes.c_void_p(words.ctypes.data)
        )
        assert not missing, name
        self.launched.append((name, macros, grid))
        self.log.append(name)

    def send(self, array: Any) -> Any:
        """A copy."""
        self.sent.append(array.nbytes)
        return torch.from_numpy(array.copy())

    def read(self, tensor: Any) -> Any:
        """A copy of it as it is now: whatever was launched has ended."""
        self.log.append("read")
        held = tensor.numpy().copy()
        self.copied.append(held.nbytes)

        def arrived() -> Any:
            self.mark()()
            return held

        return arrived

    def mark(self) -> Any:
        """Nobody has to wait, but it is noted."""
        return lambda: self.log.append("wait")


def _compile(macros: Macros) -> Any:
    (_, file), *others = macros
    text = (NATIVE / f"cuda/{file}.cu").read_text()
    kernels = re.findall(r"__global__ void (?:__launch_bounds__\(.*?\)\s*)?(\w+)\(", text)
    calls = "\n".join(f"  NDS_KERNEL({kernel});" for kernel in kernels)
    source = CALLS.replace("FILE", f"{file}.cu").replace("CALLS", calls)
    return compiled(source, [f"-D{name}={value}" for name, value in others])


def compiled(source: str, options: list[str]) -> Any:
    """A library of kernels with `emulate` to call them, from build/emulated if it has been compiled before."""
    command = [
        str(COMPILER),
        *FLAGS,
        *(f"-I{path}" for path in (EMULATOR, NATIVE / "include", NATIVE / "cuda")),
        *options,
    ]
    digest = hashlib.sha256(repr((source, command, sysconfig.get_platform())).encode())
    for path in sorted(p for root in (NATIVE, EMULATOR) for p in root.rglob("*") if p.suffix in (".hpp", ".cu")):
        digest.update(path.read_bytes())
    library = KEPT / f"{digest.hexdigest()[:32]}.so"
    if not library.is_file():
        KEPT.mkdir(parents=True, exist_ok=True)
        part = library.with_suffix(f".{os.getpid()}")
        done = subprocess.run(
            [*command, "-x", "c++", "-", "-o", str(part)], input=source, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-3000:]
        part.replace(library)
    return ctypes.CDLL(str(library))
