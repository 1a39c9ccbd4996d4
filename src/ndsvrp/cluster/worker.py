"""What a process of the cluster runs: checks that it has the same code, and calls a function."""

import pickle
import platform
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ndsvrp.errors import NdsError, NdsWarning
from ndsvrp.io.environment import environment
from ndsvrp.search.code_version import code_version

Answer = tuple[str, Any, list[str]]
"""Its kind, its content, and the warnings on the way: `value` what the function returned, `error` the `NdsError` that
it raised, `refused` why this node cannot run it."""


def answer(common: bytes, content: bytes) -> Answer:
    """Call the function that all tasks have in common with the content of one task."""
    version, packed = pickle.loads(common)
    if version != code_version():
        return "refused", f"it has ndsvrp {code_version()}, not {version}: install the same build on every node", []
    try:
        function, shared = _unpacked(packed)
        given = pickle.loads(content)
    except ImportError as error:
        return "refused", f"what was sent there needs a module that it does not have ({error})", []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NdsWarning)
        try:
            kind, found = "value", function(shared, given)
        except NdsError as error:
            kind, found = "error", error
    return kind, found, [str(each.message) for each in caught if issubclass(each.category, NdsWarning)]


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> tuple[Callable[[Any, Any], Any], Any]:
    """Return the function and what its calls share: the same object in every call, which may keep an open solver."""
    function, shared = pickle.loads(packed)
    return function, shared


def describe_node(on_gpu: bool, content: object = None) -> dict[str, Any]:
    """Return versions, commit and hardware of this node, with the GPU that the process may use."""
    found = environment()
    found["hardware"]["node"] = platform.node()
    if on_gpu:
        from ndsvrp.engine.device import Device

        found["hardware"]["gpu"] = Device().name
    return found
