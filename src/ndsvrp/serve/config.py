"""Settings of the service, each with its default and a sentence."""

import os
import sys
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from ndsvrp.errors import NdsError
from ndsvrp.io.environment import usable_cores
from ndsvrp.records import documented, require_record

SHORTEST_TOKEN = 16


@dataclass(frozen=True, kw_only=True)
class ServeConfig:
    """What the service listens to, what it accepts, and where it keeps jobs."""

    host: str = documented("127.0.0.1", "Address to listen on; any but localhost needs a token.")
    port: int = documented(8765, "Port to listen on; 0: any free one.")
    token: str = documented(
        "", f"Secret that requests must carry ('Authorization: Bearer …'), at least {SHORTEST_TOKEN} characters."
    )
    database: str = documented("", "SQLite file of jobs and results; by default in the data folder of the user.")
    workers: int = documented(
        0, "Searches at the same time, a process each; 0: one if there is a GPU for them, else one for each four cores."
    )
    threads: int = documented(0, "Threads of a search; 0: the cores divided by the workers.")
    device: str = documented("auto", "Device of all searches: auto, cpu, cuda.")
    max_customers: int = documented(10_000, "Most customers of a job.")
    max_seconds: float = documented(600.0, "Longest time limit of a job.")
    max_mib: float = documented(16.0, "Largest body of a request, in MiB.")
    max_queue: int = documented(1_000, "Most jobs that wait or run; more are refused until some have ended.")
    keep: int = documented(10_000, "Ended jobs that are kept; the oldest are deleted first.")
    body_seconds: float = documented(30.0, "Longest time to receive a request.")
    connections: int = documented(1_000, "Most connections at the same time; more are refused.")

    def __post_init__(self) -> None:
        require_record(
            self,
            {
                "port": (0, 65_535), "workers": (0, 1_024), "threads": (0, 1_024), "device": ("auto", "cpu", "cuda"),
                "max_customers": (1, 10**7), "max_seconds": (0.01, 10**7), "max_mib": (0.001, 1_024),
                "max_queue": (1, 10**6), "keep": (0, 10**8), "body_seconds": (0.1, 3_600), "connections": (1, 10**5),
            },
        )  # fmt: skip
        if self.token and (len(self.token) < SHORTEST_TOKEN or not self.token.isascii() or " " in self.token):
            raise NdsError(f"--token: needs at least {SHORTEST_TOKEN} characters, ASCII without spaces")
        if not self.token and not is_loopback(self.host):
            raise NdsError(f"--host {self.host}: any address but localhost needs a token (--token, or NDS_TOKEN)")

    @property
    def max_bytes(self) -> int:
        """Largest body of a request."""
        return int(self.max_mib * 2**20)

    @property
    def processes(self) -> int:
        """Searches at the same time."""
        return self.workers or max(1, usable_cores() // 4)

    @property
    def threads_each(self) -> int:
        """Threads of a search."""
        return self.threads or max(1, usable_cores() // self.processes)

    @property
    def database_file(self) -> Path:
        """Where jobs are kept."""
        return Path(self.database) if self.database else data_folder() / "jobs.sqlite"


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def data_folder() -> Path:
    """Return the folder of the user's data of this program."""
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "ndsvrp"
