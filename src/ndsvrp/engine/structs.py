"""The structs of the native core that Python reads and writes: their layouts come from the compiled core."""

import numpy as np

import ndsvrp._core as _core

INSTANCE = np.dtype(_core.LAYOUTS["Instance"][0])
PLAN = np.dtype(_core.LAYOUTS["Plan"][0])
RECORD = np.dtype(_core.LAYOUTS["Record"][0])
POINTERS = tuple(name for name in INSTANCE.names or () if INSTANCE[name] == np.uint64)  #: arrays of an instance

LAYOUT_MACROS = tuple(
    (f"NDS_{name.upper()}_LAYOUT", ",".join(f"{number}u" for number in _core.LAYOUTS[name][1]))
    for name in ("Instance", "Plan", "Record")
)
"""Numbers of the fields, which kernels compare with their own (native/include/ndsvrp/layout.hpp)."""
