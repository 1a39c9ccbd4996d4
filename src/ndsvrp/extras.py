"""Parts of the program that need packages beyond the base installation, and the command that installs them."""

from importlib.util import find_spec

from ndsvrp.errors import MissingPackageError

EXTRAS = {
    "policy": ("the learned policy", ("torch", "safetensors")),
    "ray": ("a cluster", ("ray",)),
    "serve": ("the service", ("fastapi", "uvicorn", "httptools")),
}
"""By extra of the package: what needs it, and the modules that must be there."""


def require(extra: str) -> None:
    """Raise a `MissingPackageError` unless the modules of an extra are installed. Nothing is imported."""
    part, modules = EXTRAS[extra]
    if missing := [module for module in modules if find_spec(module) is None]:
        *others, last = missing
        listed = f"{', '.join(others)} and {last}" if others else last
        raise MissingPackageError(f"{part} needs {listed}: {install(extra)}")


def install(extra: str) -> str:
    """Return the command that installs an extra. No index has the package: one by its name would not be this one."""
    return f"pip install '.[{extra}]' in a clone of the repository"
