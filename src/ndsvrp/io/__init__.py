"""Read and write files: instances (VRPLIB, Solomon, CSV, JSON, `.npz` sets), solutions (`.sol`), results.

Code belongs here if it knows a file format. Readers return a `Problem`; errors name the file and the line.
"""

from ndsvrp.io.npz import write_set
from ndsvrp.io.reader import read, read_content, read_set
from ndsvrp.io.result import write_result
from ndsvrp.io.sol import read_solution, write_solution
from ndsvrp.io.write import write

__all__ = ["read", "read_content", "read_set", "read_solution", "write", "write_result", "write_set", "write_solution"]
