"""Files of `torch.save` with plain data, read by torch's own restricted reader."""

import io
import pickle
import warnings
import zipfile
from typing import Any

import numpy as np
import numpy.typing as npt

from ndsvrp.errors import InstanceError
from ndsvrp.extras import install
from ndsvrp.io.files import MIB, PathLike, read_bytes
from ndsvrp.io.npz import MAX_UNPACKED

LARGEST_PICKLE = MIB  # names and shapes; the numbers of tensors are stored apart


def read_torch(path: PathLike) -> dict[str, Any]:
    """Return a dict of arrays and numbers from a file of `torch.save`. Nothing in the file is run."""
    data = read_bytes(path)
    try:
        import torch
    except ImportError:
        raise InstanceError(f"needs the package torch ({install('policy')})", file=str(path)) from None
    try:
        _check_archive(data)
        with warnings.catch_warnings(action="ignore"):  # torch's, about damaged or unusual files
            content = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        if not isinstance(content, dict):
            raise InstanceError(f"holds a {type(content).__name__}, expected a dict of tensors")
        return {_name(name): _plain(torch, name, value) for name, value in content.items()}
    except InstanceError as error:
        raise error.located(str(path)) from None
    except pickle.UnpicklingError as error:
        found = [line for line in str(error).splitlines() if "Unsupported" in line or "GLOBAL" in line]
        reason = " ".join((found or ["it is damaged"])[0].split())[:300]
        raise InstanceError(f"is not read with weights_only, which runs no code ({reason})", file=str(path)) from None
    except Exception as error:  # damaged files: torch raises anything
        reason = str(error).partition("\n")[0][:300] or type(error).__name__
        raise InstanceError(f"cannot be read ({reason})", file=str(path)) from None


def _check_archive(data: bytes) -> None:
    """Raise unless this is an archive that unpacks to a limited size."""
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise InstanceError("is not a file of torch.save, version 1.6 or later")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
    if (unpacked := sum(entry.file_size for entry in entries)) > MAX_UNPACKED:
        raise InstanceError(f"unpacks to {unpacked / MIB:,.0f} MiB, too large")
    if any(entry.filename.endswith(".pkl") and entry.file_size > LARGEST_PICKLE for entry in entries):
        raise InstanceError("holds more than tensors and their names")


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise InstanceError(f"holds a dict with a key of type {type(name).__name__}")
    return name


def _plain(torch: Any, name: str, value: Any) -> npt.NDArray[Any] | float:
    """Return a tensor as an array. A view may show few numbers as many, so its size is checked before it is copied."""
    if isinstance(value, bool | int | float):
        return value
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        raise InstanceError(f"is a {type(value).__name__}, expected a tensor", field=name)
    if value.numel() * value.element_size() > MAX_UNPACKED:
        raise InstanceError(f"has {value.numel():,} numbers, too large", field=name)
    array: npt.NDArray[Any] = np.ascontiguousarray(value.detach().resolve_neg().numpy())
    return array
