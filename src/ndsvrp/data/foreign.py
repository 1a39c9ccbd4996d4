"""Sets of other programs: which layout the data have, and their arrays under the names of our sets.

| layout | file | data |
| --- | --- | --- |
| Kool | `.pkl` | list of (depot, customers, demands, capacity) per instance |
| POMO, NDS | `.pt` | depot_xy, node_xy, node_demand; capacity; depot_tw, node_tw, node_sd; node_prizes; grid_size |
| RL4CO | `.npz` | depot, locs, demand, capacity |
| RL4CO, several constraints | `.npz` | locs with the depot, demand_linehaul, capacity_original, time_windows, … |

Dicts of arrays are recognised in each of the three formats. Unknown names are refused: they may state a constraint.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ndsvrp.data.make import problems
from ndsvrp.errors import InstanceError
from ndsvrp.io.files import PathLike
from ndsvrp.io.npz import KNOWN, MAX_UNPACKED, Arrays, check_arrays, read_members
from ndsvrp.io.pickled import read_pickle
from ndsvrp.io.torch_file import read_torch
from ndsvrp.metric import Floats
from ndsvrp.problem import Problem
from ndsvrp.text import amount, printable
from ndsvrp.variants import VARIANTS, variant_of

READERS = {".pkl": read_pickle, ".pickle": read_pickle, ".pt": read_torch, ".pth": read_torch, ".npz": read_members}
MOST = MAX_UNPACKED // 64  # customers of a set, as in nds generate
MULTIPLIED = "demands were fractions of the capacity, they are multiplied by it"
ROUNDING = 1e-3  # of a demand that was divided by the capacity in float32


@dataclass(frozen=True)
class Imported:
    """A set of another program."""

    layout: str
    problems: list[Problem]
    note: str = ""  #: what was changed


@dataclass(frozen=True)
class _Layout:
    """Arrays of another program and their names in our sets."""

    title: str
    required: frozenset[str]
    names: dict[str, str]


_LAYOUTS = (
    _Layout(
        "POMO or NDS",
        frozenset({"depot_xy", "node_xy", "node_demand"}),
        {name: name for name in ("depot_xy", "node_xy", "capacity", "depot_tw", "node_tw")}
        | {"node_demand": "demand", "node_sd": "service", "node_prizes": "prize"},
    ),
    _Layout(
        "RL4CO",
        frozenset({"depot", "locs", "demand"}),
        {"depot": "depot_xy", "locs": "node_xy", "demand": "demand", "capacity": "capacity"},
    ),
    _Layout("ndsvrp", frozenset({"depot_xy", "node_xy", "demand"}), {name: name for name in KNOWN}),
)
_SEVERAL = frozenset({"locs", "demand_linehaul"})  # of RL4CO's environment with several constraints
_ABSENT = {"open_route": 0.0, "demand_backhaul": 0.0, "distance_limit": np.inf, "speed": 1.0, "vehicle_capacity": 1.0}
_NO_MATTER = {"backhaul_class", "costs_bks"}
_LISTED = "known: Kool's pickles, tensors of POMO and NDS, arrays of RL4CO"


def import_set(path: PathLike, variant: str | None = None, capacity: float | None = None) -> Imported:
    """Read a set of another program. Nothing in the file is run, every instance is checked, numbers are kept exactly.

    `variant` is the expected one; another is refused. `capacity` is for files that state none, because they hold
    demands divided by it: POMO's.
    """
    if variant is not None and variant not in VARIANTS:
        raise InstanceError(f"unknown variant '{variant}' (known: {', '.join(VARIANTS)})")
    read = READERS.get(Path(path).suffix.lower())
    if read is None:
        raise InstanceError(f"has no known ending (known: {', '.join(READERS)})", file=str(path))
    content = read(path)
    try:
        title, arrays, note = _arrays(content, capacity)
        check_arrays(arrays)
        if (customers := arrays["node_xy"].shape[0] * arrays["node_xy"].shape[1]) > MOST:
            raise InstanceError(f"has {customers:,} customers, too large: at most {MOST:,}")
    except InstanceError as error:
        raise error.located(str(path)) from None
    found = problems(str(path), arrays)
    name = variant_of(found[0]).name
    if variant is not None and name != variant:
        raise InstanceError(f"holds {name.upper()}, not {variant.upper()}", file=str(path))
    return Imported(title, found, note)


def _arrays(content: Any, capacity: float | None) -> tuple[str, Arrays, str]:
    """Return the name of the layout, the arrays under our names, and a note."""
    if isinstance(content, list | tuple):
        if capacity is not None:
            raise InstanceError("is stated by the file, and cannot be given", field="capacity")
        return "Kool", _kool(content), ""
    if not isinstance(content, Mapping):
        raise InstanceError(f"holds a {type(content).__name__}, no known layout ({_LISTED})")
    arrays = {name: value for name, value in content.items() if name != "grid_size"}
    if np.any(np.asarray(content.get("grid_size", 1)) != 1):
        raise InstanceError("is not 1, other scales are not read", field="grid_size")
    for name, value in arrays.items():
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iufb":
            kind = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
            raise InstanceError(f"is {kind}, expected an array of numbers", field=printable(name))
    if arrays.keys() >= _SEVERAL:
        return "RL4CO with several constraints", _several(arrays), ""
    layout = next((layout for layout in _LAYOUTS if arrays.keys() >= layout.required), None)
    if layout is None:
        raise InstanceError(f"holds {_shown(arrays)}, no known layout ({_LISTED})")
    for name in arrays:
        if name not in layout.names:
            known = ", ".join(layout.names)
            what = f"unknown in the layout {layout.title}, it may state a constraint (known: {known})"
            raise InstanceError(what, field=printable(name))
    renamed = {layout.names[name]: value for name, value in arrays.items()}
    for name, dimensions in (("depot_xy", 2), ("depot_tw", 2), ("capacity", 1)):
        if name in renamed:
            renamed[name] = _without_axis(renamed[name], dimensions)
    if layout.title == "RL4CO" and capacity is None and _is_divided(renamed):
        _require_shape("capacity", renamed["capacity"], renamed["demand"].shape[:1])
        whole = _undivided(renamed["demand"], renamed["capacity"].astype(np.float64).reshape(-1, 1))
        return layout.title, renamed | {"demand": whole}, MULTIPLIED
    return layout.title, _with_capacity(renamed, capacity), ""


def _with_capacity(arrays: Arrays, capacity: float | None) -> Arrays:
    """Return the arrays with whole demands and the capacity, which the file may not state."""
    demand = arrays["demand"]
    if capacity is not None:
        if "capacity" in arrays:
            raise InstanceError("is stated by the file, and cannot be given", field="capacity")
        count = demand.shape[0] if demand.ndim else 0
        return arrays | {"demand": _undivided(demand, capacity), "capacity": np.full(count, float(capacity))}
    if "capacity" not in arrays:
        what = "missing; demands are divided by it, --capacity Q states it (50 for POMO's 100 customers)"
        raise InstanceError(what, field="capacity")
    if _is_divided(arrays):
        raise InstanceError("are fractions beside a capacity above 1: divided by it, or not?", field="demand")
    return arrays


def _is_divided(arrays: Arrays) -> bool:
    """Return whether demands seem to be divided by a capacity that the file states, as RL4CO's generator does."""
    demand = arrays["demand"]
    if not demand.size or "capacity" not in arrays:
        return False
    return bool(np.all(demand <= 1) and np.any(demand % 1 != 0) and np.all(arrays["capacity"] > 1))


def _undivided(demand: npt.NDArray[Any], capacity: Any) -> Floats:
    """Return whole demands from demands that were divided by the capacity."""
    if not np.all(np.isfinite(capacity)) or not np.all(np.asarray(capacity) > 0):
        raise InstanceError("must be positive", field="capacity")
    scaled = demand.astype(np.float64) * capacity
    whole: Floats = np.round(scaled)
    if not np.all(np.abs(scaled - whole) <= ROUNDING):
        raise InstanceError("times the capacity are not whole numbers", field="demand")
    return whole


def _several(arrays: Arrays) -> Arrays:
    """Return the arrays of RL4CO's environment with several constraints, as far as it has those that we have."""
    for name, neutral in _ABSENT.items():
        if name in arrays and not np.all(arrays[name] == neutral):
            raise InstanceError("states a constraint that is not supported", field=name)
    known = {*_ABSENT, *_NO_MATTER, *_SEVERAL, "capacity_original", "time_windows", "service_time"}
    for name in arrays:
        if name not in known:
            raise InstanceError("unknown, it may state a constraint", field=printable(name))
    locations, demand = arrays["locs"], arrays["demand_linehaul"]
    if locations.ndim != 3 or locations.shape[1] < 2:
        raise InstanceError(f"has shape {locations.shape}, expected (B, N+1, 2)", field="locs")
    count, nodes = locations.shape[:2]
    if "capacity_original" not in arrays:
        raise InstanceError("missing", field="capacity_original")
    capacity = _without_axis(arrays["capacity_original"], 1)
    _require_shape("capacity_original", capacity, (count,))
    _require_shape("demand_linehaul", demand, (count, nodes - 1))
    whole = _undivided(demand, capacity.astype(np.float64)[:, None])
    found = {"depot_xy": locations[:, 0], "node_xy": locations[:, 1:], "demand": whole, "capacity": capacity}
    windows, service = arrays.get("time_windows"), arrays.get("service_time")
    if windows is None or (windows.ndim == 3 and np.all(windows[..., -1:] == np.inf)):
        return found
    if service is None:
        raise InstanceError("missing, time_windows is given", field="service_time")
    _require_shape("time_windows", windows, (count, nodes, 2))
    _require_shape("service_time", service, (count, nodes))
    return found | {"depot_tw": windows[:, 0], "node_tw": windows[:, 1:], "service": service[:, 1:]}


def _require_shape(name: str, value: npt.NDArray[Any], shape: tuple[int, ...]) -> None:
    if value.shape != shape:
        raise InstanceError(f"has shape {value.shape}, expected {shape}", field=name)


def _kool(instances: Sequence[Any]) -> Arrays:
    """Return the arrays of a list of (depot, customers, demands, capacity)."""
    if not instances:
        raise InstanceError("holds no instances")
    columns: dict[str, list[npt.NDArray[Any]]] = {"depot_xy": [], "node_xy": [], "demand": [], "capacity": []}
    left = MOST
    for i, instance in enumerate(instances):
        if not isinstance(instance, list | tuple) or len(instance) != 4:
            found = f"{len(instance)} entries" if _is_list(instance) else f"type {type(instance).__name__}"
            raise InstanceError(f"has {found}, expected (depot, customers, demands, capacity)", field=f"instance {i}")
        depot, customers, demand, capacity = instance
        if not _is_list(demand):
            raise InstanceError("is not a list of numbers", field=f"instance {i}: demand")
        size = len(demand)
        left -= max(size, 1)
        if left < 0:
            raise InstanceError(f"has more than {MOST:,} customers, too large")
        parts = (("depot_xy", depot, (2,)), ("node_xy", customers, (size, 2)), ("demand", demand, (size,)))
        for name, value, shape in (*parts, ("capacity", capacity, ())):
            columns[name].append(_numbers(value, shape, f"instance {i}: {name}"))
        if np.any(columns["demand"][-1] % 1 != 0):
            what = "are not whole numbers; these may be prizes of an orienteering problem"
            raise InstanceError(what, field=f"instance {i}: demand")
        if columns["demand"][-1].shape != columns["demand"][0].shape:
            what = f"has {amount(size, 'customer')}, the first has {len(columns['demand'][0])}; a set has one size"
            raise InstanceError(what, field=f"instance {i}")
    return {name: np.stack(values) for name, values in columns.items()}


def _numbers(value: Any, shape: tuple[int, ...], field: str) -> Floats:
    """Return a number, list or list of lists as an array of this shape. Lengths are compared before they are copied."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "iuf" or value.shape != shape:
            raise InstanceError(f"has shape {value.shape} and type {value.dtype}, expected {shape}", field=field)
        return np.asarray(value, np.float64)
    flat = [value]
    for length in shape:
        if any(not _is_list(part) or len(part) != length for part in flat):
            raise InstanceError(f"is not a list of {' x '.join(map(str, shape))} numbers", field=field)
        flat = [x for part in flat for x in (part.tolist() if isinstance(part, np.ndarray) else part)]
    if any(type(x) is not float and type(x) is not int for x in flat):
        raise InstanceError("is not a number" if not shape else "holds something that is no number", field=field)
    return np.array(flat, np.float64).reshape(shape)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1)


def _without_axis(value: npt.NDArray[Any], dimensions: int) -> npt.NDArray[Any]:
    """Return (B, 1, …) as (B, …) where that is one axis too many."""
    return value[:, 0] if value.ndim == dimensions + 1 and value.shape[1] == 1 else value


def _shown(arrays: Mapping[str, Any]) -> str:
    """Return the names of arrays, not too many."""
    names = [printable(name)[:40] for name in list(arrays)[:8]]
    return f"the arrays {', '.join(names)}{', …' if len(arrays) > 8 else ''}" if names else "no arrays"
