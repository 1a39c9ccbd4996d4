"""Who may use the service: a token, and guards against web pages of others that address it."""

import json
import secrets
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ndsvrp.serve.config import ServeConfig, is_loopback

HEADERS = {
    # The page loads nothing from elsewhere, and no other page may show it in a frame.
    "content-security-policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
REPORT_POLICY = (
    # The page of a result holds its style and script. It loads nothing; in a sandbox it cannot reach the service.
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'none'"
)
_ENCODED = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class Access:
    """ASGI middleware. The page itself is public; everything below /api needs the token, if there is one."""

    def __init__(self, app: ASGIApp, config: ServeConfig) -> None:
        self.app, self.config, self.only_local = app, config, is_loopback(config.host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request or pass it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        reason = self._refusal(scope)
        if reason is not None:
            await _refuse(*reason, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(line for line in _ENCODED if line[0] not in given)]
            await send(message)

        await self.app(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        # A page of another site can make a browser send requests here; it cannot choose these two headers.
        if self.only_local and not is_loopback(_host(f"//{headers.get('host', '')}")):
            return 403, "the Host header does not name localhost"
        origin = headers.get("origin")
        if origin is not None and _place(origin) != headers.get("host"):
            return 403, "requests from pages of another site are refused"
        if not self.config.token or not scope["path"].startswith("/api"):
            return None
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and secrets.compare_digest(given.strip().encode(), self.config.token.encode()):
            return None
        return 401, "a token is needed: 'Authorization: Bearer …'"


def _place(address: str) -> str | None:
    try:
        return urlsplit(address).netloc
    except ValueError:
        return None


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


async def _refuse(status: int, text: str, send: Send) -> None:
    body = json.dumps({"error": text}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()),
               (b"connection", b"close"), *_ENCODED]  # fmt: skip
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
