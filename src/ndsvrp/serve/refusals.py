"""From an error to the answer that tells it: a status, and one line of explanation."""

import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any, cast

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from ndsvrp.errors import NdsError
from ndsvrp.serve.jobs import JobOptions
from ndsvrp.serve.service import INTERNAL, QueueFullError, TooLargeError, logger
from ndsvrp.serve.store import KeyTakenError

STATUS: dict[type[NdsError], int] = {QueueFullError: 429, TooLargeError: 413, KeyTakenError: 409}


async def _refuse_input(_: Request, error: Any) -> JSONResponse:
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 400)
    headers = {"retry-after": "5"} if status == 429 else None
    return JSONResponse({"error": str(error)}, status, headers)


async def _refuse_options(_: Request, error: Any) -> JSONResponse:
    first = cast(RequestValidationError, error).errors()[0]
    name = first["loc"][-1] if first["loc"] else "request"
    if first["type"] == "extra_forbidden" and name in ("distance", "duration"):
        how = f"'nds convert stops.csv stops.json --{name} FILE' writes one file with both"
        return JSONResponse({"error": f"{name}: a job is one file, with its matrix in it; {how}"}, 400)
    if first["type"] == "extra_forbidden":
        return JSONResponse({"error": f"unknown option '{name}' (known: {', '.join(JobOptions.model_fields)})"}, 400)
    return JSONResponse({"error": f"{name}: {first['msg']}"}, 400)


async def _refuse(_: Request, error: Any) -> JSONResponse:
    refused = cast(HTTPException, error)
    return JSONResponse({"error": str(refused.detail)}, refused.status_code, refused.headers)


async def _tell_of_database(_: Request, error: Any) -> JSONResponse:
    """A full disk is the operator's to mend."""
    logger.error("the database: %s", error)
    return JSONResponse({"error": f"the database does not work ({error})"}, 503)


async def fail(_: Request, error: Any) -> JSONResponse:
    """Answer to any other error, which is a bug. The server logs it."""
    return JSONResponse({"error": INTERNAL}, 500)


REFUSALS: dict[type[Exception], Callable[[Request, Any], Awaitable[JSONResponse]]] = {
    NdsError: _refuse_input,
    RequestValidationError: _refuse_options,
    HTTPException: _refuse,
    sqlite3.Error: _tell_of_database,
}


async def refusal(request: Request, error: Exception) -> JSONResponse:
    """Return the answer to an error that clients are told; raise any other."""
    for kind, answer in REFUSALS.items():
        if isinstance(error, kind):
            return await answer(request, error)
    raise error
