"""Run the application with uvicorn."""

import gc
import logging
import socket
import sys
from collections.abc import Callable
from dataclasses import replace

import uvicorn

from ndsvrp.engine import device
from ndsvrp.errors import NdsError
from ndsvrp.serve.api import make_app
from ndsvrp.serve.config import ServeConfig
from ndsvrp.serve.protocol import GuardedProtocol
from ndsvrp.serve.service import Service
from ndsvrp.serve.store import Store

KEEP_ALIVE = 15  # seconds that an idle connection stays open
LAST = 3  # seconds for requests in progress when the service ends
BACKLOG = 1024
SWITCH = 0.002  # seconds after which a thread that reads an instance lets others answer; Python's default is 0.005


class Server(uvicorn.Server):
    """A server for one service."""

    def __init__(self, service: Service) -> None:
        self.service, config = service, service.config
        protocol = type("Protocol", (GuardedProtocol,), {"head_seconds": config.body_seconds})
        super().__init__(
            uvicorn.Config(
                make_app(service), http=protocol, ws="none", loop="asyncio", log_level="warning", access_log=False,
                limit_concurrency=config.connections, timeout_keep_alive=KEEP_ALIVE, backlog=BACKLOG,
                timeout_graceful_shutdown=LAST, server_header=False, proxy_headers=False,
            )
        )  # fmt: skip
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # warnings about requests that were refused

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams of events, which would last as long as their jobs, and then everything."""
        self.service.end_streams()
        await super().shutdown(sockets)


def listen(config: ServeConfig) -> socket.socket:
    """Return a listening socket, or raise with the reason in one line."""
    try:
        family = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM)[0][0]
        # asyncio sends without delay (TCP_NODELAY) only if the socket names its protocol
        opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((config.host, config.port))
        opened.listen(BACKLOG)  # whoever connects before the service is ready waits
    except OSError as error:
        raise NdsError(f"cannot listen on {config.host} port {config.port} ({error.strerror})") from None
    return opened


def address_of(opened: socket.socket, config: ServeConfig) -> str:
    """Return the address of the page, without the token."""
    host, port = opened.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/" + ("#token=…" if config.token else "")


def for_this_machine(config: ServeConfig) -> ServeConfig:
    """Return the settings with the number of workers decided, or raise if there is no GPU that was asked for.

    One search fills a GPU. Several at the same time share its time and memory, which only the user can want.
    """
    if config.device == "cuda":
        device.require_gpu()
    has_gpu = config.device == "cuda" or (config.device == "auto" and device.available())
    return replace(config, workers=1) if has_gpu and not config.workers else config


def serve(config: ServeConfig, tell: Callable[[str], None]) -> None:
    """Run the service until Ctrl-C or SIGTERM; `tell` gets its address."""
    config = for_this_machine(config)
    opened = listen(config)
    store = Store(config.database_file)
    sys.setswitchinterval(SWITCH)
    server = Server(Service(config, store))
    gc.freeze()  # what is loaded stays: to look through it for garbage takes 17 ms, in which nobody is answered
    tell(address_of(opened, config))
    server.run(sockets=[opened])
