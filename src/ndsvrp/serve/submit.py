"""Add a job: `POST /api/jobs`, the one request whose time matters when many clients come at the same moment."""

import asyncio
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import parse_qs

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from ndsvrp.serve.jobs import JobOptions
from ndsvrp.serve.refusals import refusal
from ndsvrp.serve.service import Service

PATH = "/api/jobs"
LISTS = {name for name, field in JobOptions.model_fields.items() if field.annotation == list[str]}
BODY = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}, "required": True}


class SubmitFirst:
    """ASGI middleware that calls `submit` itself: the way through FastAPI takes nearly as long again."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a submission or pass the request on."""
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            response = await submit(request)
        except Exception as error:
            response = await refusal(request, error)
        await response(scope, receive, send)


async def submit(request: Request) -> Response:
    """The body is an instance file in any format that `ndsvrp.read` reads."""
    service = cast(Service, request.app.state.service)
    options = _options(request)
    if not service.accepts:
        raise HTTPException(403, "this address shows one search, it takes no jobs")
    if request.headers.get("content-type", "").startswith("multipart/"):
        raise HTTPException(400, "the body must be the file itself, not a form (curl --data-binary @FILE)")
    service.check_limits(options)
    with service.holding() as hold:
        job, added = await service.submit(await _body(request, service, hold), options)
    headers = {"location": f"{PATH}/{job.id}"}
    return Response(job.model_dump_json(), 202 if added else 200, headers, "application/json")


def parameters() -> list[dict[str, Any]]:
    """Return the options as OpenAPI describes a query."""
    properties = JobOptions.model_json_schema()["properties"]
    return [{"name": name, "in": "query", "required": False, "schema": field} for name, field in properties.items()]


def _options(request: Request) -> JobOptions:
    given: dict[str, Any] = parse_qs(request.url.query, keep_blank_values=True)
    for name in given.keys() - LISTS:
        if len(given[name]) > 1:
            raise HTTPException(400, f"{name}: given twice")
        given[name] = given[name][0]
    try:
        return JobOptions.model_validate(given)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None


async def _body(request: Request, service: Service, hold: Callable[[int], None]) -> bytes:
    """Return the body of a request, unless it is too large or too slow. Call `hold` with the size of each part."""
    most = service.config.max_bytes
    too_large = HTTPException(
        413, f"the body is larger than {service.config.max_mib:g} MiB", headers={"connection": "close"}
    )
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(service.config.body_seconds):
            async for chunk in request.stream():
                if len(body) + len(chunk) > most:
                    raise too_large
                hold(len(chunk))
                body += chunk
    except TimeoutError:
        text = f"the body took longer than {service.config.body_seconds:g} s"
        raise HTTPException(408, text, headers={"connection": "close"}) from None
    return bytes(body)
