"""What every process of a search needs, loaded once in the process that all of them are forked from."""

from importlib import import_module

from ndsvrp.serve.priority import give_way

MODULES = (
    "ndsvrp.cli",  # the script `nds` imports it, and multiprocessing runs that script in every process
    "ndsvrp.engine.cpu", "ndsvrp.serve.server", "ndsvrp.serve.service",
)  # fmt: skip

give_way()  # before the rest, which takes a while; processes of searches start with this priority
for name in MODULES:
    import_module(name)
import_module("ndsvrp.io.environment").environment()  # asks git for the commit once, not for every job
