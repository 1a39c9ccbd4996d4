"""Lower the priority of the processes of searches: the service must answer at once. Imported first in each of them."""

import contextlib
import os

NICENESS = 5  # not more: where other programs are busy, too, searches would hardly run


def give_way() -> None:
    """Lower the priority of this process."""
    with contextlib.suppress(OSError, AttributeError):  # not on Windows
        os.setpriority(os.PRIO_PROCESS, 0, max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))
