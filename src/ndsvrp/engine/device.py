"""A GPU: kernels are compiled at run time, kept on disk and launched on torch's current stream.

The kernels (native/cuda) are templates over rules, distances and where things lie; only those that are asked for are
compiled. A compiled kernel is kept under a hash of sources, options, device and driver.
"""

import hashlib
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import ndsvrp._core as _core
from ndsvrp.errors import EngineError, NdsWarning
from ndsvrp.extras import install

OF_NETWORK = ("attention", "decode", "decoder_tiles", "normalization", "pointwise", "rollout_random", "route_layers")
SPIN, PAUSE = 0.02, 0.0002  # seconds of waiting without a pause, then of each pause
COMPILERS = 4  # threads
CAPABILITY = 8  # compute capability that the kernels need: bfloat16, reductions over a warp
Macros = tuple[tuple[str, str], ...]


def macros_of(**numbers: int) -> Macros:
    """Return macros with the prefix NDS_ for these numbers."""
    return tuple((f"NDS_{name.upper()}", str(int(number))) for name, number in numbers.items())


class Device:
    """The current GPU of torch."""

    def __init__(self) -> None:
        self.torch, self._core = _import_torch(), _import_cuda_core()
        self.index: int = self.torch.cuda.current_device()
        properties = self.torch.cuda.get_device_properties(self.index)
        self.name: str = properties.name
        self.multiprocessors: int = properties.multi_processor_count
        self.shared_limit: int = properties.shared_memory_per_block_optin
        self.arch = f"sm_{properties.major}{properties.minor}"
        if properties.major < CAPABILITY:
            raise EngineError(
                f"the GPU engine needs a card of compute capability {CAPABILITY}.0 or newer, {self.name} is older"
            )
        self.torch.zeros(1, device="cuda")  # makes the context of torch, which all share
        self._handle = self._core.Device(self.index)
        self._handle.set_current()
        self._kernels: dict[tuple[str, str, Macros], Any] = {}
        self._modules: dict[tuple[str, Macros], Future[Any]] = {}
        self._compilers = ThreadPoolExecutor(COMPILERS)
        self._shared: dict[int, int] = {}
        self._streams: dict[int, Any] = {}
        self._configs: dict[tuple[int, int, int], Any] = {}

    def kernel(self, file: str, name: str, macros: Macros) -> Any:
        """Return a kernel of native/cuda/<file>.cu, compiled with these macros."""
        key = (file, name, macros)
        if key not in self._kernels:
            self.precompile(file, macros)
            self._kernels[key] = self._modules[file, macros].result().get_kernel(name)
        return self._kernels[key]

    def precompile(self, file: str, macros: Macros) -> None:
        """Compile a file in the background. NVRTC releases the lock of the interpreter."""
        if (file, macros) not in self._modules:
            self._modules[file, macros] = self._compilers.submit(self._load, file, macros)

    def launch(self, kernel: Any, grid: int, threads: int, shared: int, *arguments: Any) -> None:
        """Launch on torch's current stream. Tensors go as addresses, None as a null pointer."""
        if grid == 0:
            return
        if shared > self._shared.get(id(kernel), 48 * 1024):
            self._allow_shared(kernel, shared)
            self._shared[id(kernel)] = shared
        size = (grid, threads, shared)
        config = self._configs.get(size)
        if config is None:
            config = self._configs[size] = self._core.LaunchConfig(grid=grid, block=threads, shmem_size=shared)
        self._core.launch(self._stream(), config, kernel, *[_argument(a) for a in arguments])

    def send(self, array: npt.NDArray[Any]) -> Any:
        """Send a small array to the GPU without waiting, and return it there.

        Torch keeps pinned memory to use it again, here and below, and gives none away that the GPU has not done with.
        """
        return self.torch.from_numpy(array).pin_memory().to("cuda", non_blocking=True)

    def read(self, tensor: Any) -> Callable[[], npt.NDArray[Any]]:
        """Order a copy of a tensor after what was launched so far; return a function that waits for the copy."""
        held = self.torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        held.copy_(tensor, non_blocking=True)
        wait = self.mark()

        def arrived() -> npt.NDArray[Any]:
            wait()
            return np.asarray(held.numpy())

        return arrived

    def mark(self) -> Callable[[], None]:
        """Return a function that waits for what was launched so far. Ctrl-C interrupts it."""
        event = self.torch.cuda.Event()
        event.record()

        def wait() -> None:
            began = time.perf_counter()
            while not event.query():
                if time.perf_counter() - began > SPIN:
                    time.sleep(PAUSE)

        return wait

    def _stream(self) -> Any:
        handle = self.torch.cuda.current_stream().cuda_stream
        if handle not in self._streams:
            self._streams[handle] = self._handle.create_stream(_Stream(handle))
        return self._streams[handle]

    def _allow_shared(self, kernel: Any, shared: int) -> None:
        try:
            kernel.attributes.max_dynamic_shared_size_bytes = shared
        except AttributeError:  # older versions of cuda-core can only read it
            from cuda.bindings import driver

            attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            (error,) = driver.cuKernelSetAttribute(attribute, shared, kernel.handle, driver.CUdevice(self.index))
            if error != driver.CUresult.CUDA_SUCCESS:
                raise EngineError(f"the GPU refuses {shared} bytes of shared memory: {error.name}") from None

    @cached_property
    def versions(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return two versions of CUDA: of the driver, and of the compiler."""
        supported, made = _versions()
        if supported[0] < made[0]:
            raise EngineError(
                f"the NVIDIA driver is too old: it supports CUDA {supported[0]}, the installed compiler is of "
                f"CUDA {made[0]}; update the driver, or install 'cuda-core' for CUDA {supported[0]}"
            )
        return supported, made

    def _load(self, file: str, macros: Macros) -> Any:
        """Return a module; it is loaded when one of its kernels is needed."""
        cached = cache_folder() / f"{file}-{self._hash(file, macros)}.cubin"
        if cached.is_file():
            return self._core.ObjectCode.from_cubin(cached.read_bytes())
        include, folder = sources()
        options = self._core.ProgramOptions(
            name=f"{file}.cu", std="c++20", arch=self.arch, fma=file in OF_NETWORK,
            include_path=[str(include), str(folder)], device_as_default_execution_space=True,
            define_macro=list(macros) or None, lineinfo=_with_lines() or None,
        )  # fmt: skip
        try:
            module = self._core.Program((folder / f"{file}.cu").read_text(), "c++", options=options).compile("cubin")
        except Exception as error:  # cuda-core has a different exception for every library
            first = next((line for line in str(error).splitlines() if "error" in line), str(error)).strip("\0 ")
            raise EngineError(f"NVRTC cannot compile {file}.cu, please report this: {first}") from error
        _write(cached, module.code)
        return module

    def _hash(self, file: str, macros: Macros) -> str:
        include, folder = sources()
        digest = hashlib.sha256(repr((file, macros, self.arch, self.name, self.versions, _with_lines())).encode())
        for path in (*sorted((include / "ndsvrp").glob("*.hpp")), *sorted(folder.iterdir())):
            digest.update(path.name.encode() + path.read_bytes())
        return digest.hexdigest()[:32]


class _Stream:
    """A stream of torch, for cuda.core."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


def _argument(value: Any) -> Any:
    if value is None:
        return 0
    return value.data_ptr() if hasattr(value, "data_ptr") else value


def _import_torch() -> Any:
    try:
        import torch  # here: slow, and not needed without a GPU
    except ImportError:
        raise EngineError(f"the GPU engine needs torch: {install('gpu')}") from None
    if not torch.cuda.is_available():
        raise EngineError("device 'cuda': torch finds no NVIDIA GPU with a driver it can use; use 'cpu'")
    return torch


def _import_cuda_core() -> Any:
    try:
        import cuda.core
    except ImportError:
        raise EngineError(f"the GPU engine needs cuda-core: {install('gpu')}") from None
    return cuda.core


def available() -> bool:
    """Return whether a GPU and what it needs are available. Without a GPU, torch is not imported."""
    try:
        from cuda.bindings import driver

        driver.cuInit(0)
        _, count = driver.cuDeviceGetCount()
        if not count:
            return False
        _import_cuda_core()
        torch = _import_torch()
        supported, made = _versions()
        return bool(supported[0] >= made[0] and torch.cuda.get_device_properties().major >= CAPABILITY)
    except (ImportError, RuntimeError, EngineError):
        return False


def require_gpu() -> None:
    """Raise with the reason if there is no GPU that can be used."""
    _import_torch()
    _import_cuda_core()
    if not available():
        raise EngineError("device 'cuda': the GPU or its driver is too old (docs/gpu.md); use 'cpu'")


def _versions() -> tuple[tuple[int, int], tuple[int, int]]:
    from cuda.bindings import driver, nvrtc

    _, supported = driver.cuDriverGetVersion()
    _, major, minor = nvrtc.nvrtcVersion()
    return (supported // 1000, supported % 1000 // 10), (major, minor)


def room_for(torch: Any, each: int) -> tuple[float, int]:
    """Return the free GPU memory in GiB, and how many parts of `each` bytes fit into it."""
    free, _ = torch.cuda.mem_get_info()
    return free / 2**30, int(0.9 * free) // each


def sources() -> tuple[Path, Path]:
    """Return the folders of the headers and of the kernels, in the source tree or as installed."""
    tree = Path(__file__).parents[3] / "native"
    if (tree / "cuda").is_dir():
        return tree / "include", tree / "cuda"
    installed = Path(_core.__file__).parent / "native"
    return installed, installed / "cuda"


def cache_folder() -> Path:
    """Return the folder of compiled kernels: NDSVRP_CACHE, or the cache of the user."""
    if named := os.environ.get("NDSVRP_CACHE"):
        return Path(named)
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ndsvrp"


def has_compiled() -> bool:
    """Return whether kernels were compiled before; if not, users are told why the first start takes long."""
    return any(cache_folder().glob("*.cubin"))


def _with_lines() -> bool:
    """Return whether NDSVRP_LINES asks for line numbers in kernels, for sanitizers and profilers."""
    return bool(os.environ.get("NDSVRP_LINES"))


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        warnings.warn(f"compiled kernels cannot be kept in {path.parent}: {error}", NdsWarning, stacklevel=2)
