"""Benchmark sets by name: which there are, how they are made, and how sets of others are imported.

Code belongs here if it knows a benchmark set, or the layout of data that another program wrote. `io` knows the file
formats, `generate` our own generators.
"""

from ndsvrp.data.foreign import import_set
from ndsvrp.data.locate import locate
from ndsvrp.data.make import digest, make
from ndsvrp.data.sets import SETS, BenchmarkSet

__all__ = ["SETS", "BenchmarkSet", "digest", "import_set", "locate", "make"]
