"""What every process of a search needs, loaded once in the process that all of them are forked from."""

import ndsvrp.cli  # the script `nds` imports it, and multiprocessing runs that script in every process
import ndsvrp.engine.cpu
import ndsvrp.serve.server
import ndsvrp.serve.service  # noqa: F401
from ndsvrp.io.environment import environment
from ndsvrp.serve.worker import give_way

give_way()  # from the first moment of a search on: a process starts with the priority of this one
environment()  # asks git for the commit once, not for every job
