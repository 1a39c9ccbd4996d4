"""HTTP/1.1 over one connection, with bounds against slow and endless requests."""

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 16 * 2**10
INVALID = "Invalid HTTP request received."


class GuardedProtocol(HttpToolsProtocol):
    """HTTP/1.1 that closes connections whose request line and headers take too long or do not end.

    uvicorn waits for ever, and its parser in C (httptools) keeps all that it gets. The one in Python (h11) has a bound,
    but takes several times as long.
    """

    head_seconds = 30.0
    _timer: asyncio.TimerHandle | None = None
    _unread = 0  # bytes since the parser has last completed something: a head, a part of a body, a request

    def connection_made(self, transport: Any) -> None:
        """Start the clock."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Stop the clock when the headers are complete; start it for the next request."""
        self._unread += len(data)
        self._unset_keepalive_if_required()
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self.send_400_response(INVALID)
        if self._unread > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response(INVALID)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_headers_complete(self) -> None:
        """Count from here: what follows is a body."""
        self._unread = 0
        if not self._asks_for_upgrade():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Count from here: a body has its own bound."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Count from here: the next request begins."""
        self._unread = 0
        if not self._asks_for_upgrade():
            super().on_message_complete()

    def _parse(self, data: bytes) -> None:
        """Parse what came. A request to upgrade the protocol, such as to HTTP/2, is parsed again without that header.

        HTTP/1.1 lets a server ignore the header. httptools ends such a request after its headers, without the body.
        """
        while data:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                if not self._asks_for_upgrade():  # CONNECT: what follows is no HTTP
                    return
                data = self._head_without_upgrade() + data[upgrade.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does

    def _asks_for_upgrade(self) -> bool:
        return self.parser.should_upgrade() and any(name == b"upgrade" for name, _ in self.headers)

    def _head_without_upgrade(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/" + version]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def _watch(self) -> None:
        waiting = self.cycle is None or self.cycle.response_complete
        if not waiting and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elif waiting and self._timer is None:
            self._timer = self.loop.call_later(self.head_seconds, self._close)

    def _close(self) -> None:
        self._timer = None
        if (self.cycle is None or self.cycle.response_complete) and not self.transport.is_closing():
            self.transport.close()
