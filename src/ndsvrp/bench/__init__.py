"""Benchmark solvers on sets of instances, and the speed, time limits and memory of our own.

Code belongs here if it runs or measures solvers, adapts other solvers, or reads and writes result rows. Only the
command and the experiments depend on it.
"""

GPU_PARTS = ("engine", "iteration", "search", "training", "memory", "start", "quality")  # of `nds bench gpu`
