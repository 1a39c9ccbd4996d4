"""Compile the engine's kernels with NVRTC, as a GPU machine does at run time; no GPU needed.

    python tools/compile_kernels.py [--arch sm_90] [--rules Capacity,TimeWindows] [--files improve,chains]

Needs NVRTC (`pip install nvidia-cuda-nvrtc`, or its libnvrtc.so by NDSVRP_NVRTC). By default every composition of
rules that the core has, for one kind of distance each. Prints a line per kernel file; exits with 1 if one fails.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import time
from pathlib import Path

from ndsvrp.engine.device import Macros, sources
from ndsvrp.engine.launches import kernel_macros
from ndsvrp.engine.placement import LANES, Kind, linked_layout

FILES = ("chains", "regions", "improve", "linked", "evaluate", "keep", "clock")
SHARED = 115_712  # bytes that a block may have if two share a multiprocessor of an H200
KINDS = (
    Kind(("Capacity",), "FloatPoints"),
    Kind(("Capacity", "TimeWindows"), "WholePoints"),
    Kind(("Capacity", "Prizes"), "Matrix"),
    Kind(("Capacity", "TimeWindows", "Prizes"), "Matrix"),
)


def nvrtc() -> ctypes.CDLL:
    """Load NVRTC."""
    if named := os.environ.get("NDSVRP_NVRTC"):
        return ctypes.CDLL(named)
    import nvidia.cu13

    return ctypes.CDLL(str(next(Path(nvidia.cu13.__path__[0]).glob("lib/libnvrtc.so*"))))


def compile_file(library: ctypes.CDLL, file: str, macros: Macros, arch: str) -> tuple[int, str]:
    """Return the size of the cubin, 0 if it does not compile, and the log."""
    include, folder = sources()
    source = (folder / f"{file}.cu").read_text().encode()
    options = [
        f"--gpu-architecture={arch}", "--std=c++20", "--fmad=false", "--device-as-default-execution-space",
        f"-I{include}", f"-I{folder}", *(f"-D{name}={value}" for name, value in macros),
    ]  # fmt: skip
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), source, f"{file}.cu".encode(), 0, None, None)
    array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = library.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcGetCUBINSize(program, ctypes.byref(size))
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return 0 if failed else size.value, log.value.decode()


def macros_for(file: str, kind: Kind) -> Macros:
    """Return the macros of a kernel file for a kind of problem."""
    if file == "clock":
        return ()
    layout = linked_layout(kind, LANES, LANES, SHARED) if file == "linked" else None
    return kernel_macros(kind, layout, 2 if layout else 1, file == "improve", tails=file == "linked")


def main() -> int:
    """Compile everything that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--rules", default=None)
    parser.add_argument("--files", default=",".join(FILES))
    arguments = parser.parse_args()
    kinds = KINDS
    if arguments.rules:
        kinds = (Kind(tuple(arguments.rules.split(",")), "WholePoints"),)
    library, failed = nvrtc(), 0
    for kind in kinds:
        for file in arguments.files.split(","):
            if file == "linked" and kind.distance == "Matrix":
                continue
            macros = macros_for(file, kind)
            began = time.perf_counter()
            size, log = compile_file(library, file, macros, arguments.arch)
            failed += size == 0
            seconds = time.perf_counter() - began
            print(
                f"{file:10} {'+'.join(kind.rules):40} {kind.distance:12} {size:9,} bytes {seconds:6.1f} s", flush=True
            )
            if size == 0:
                print(log[:3000])
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
