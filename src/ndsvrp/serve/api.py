"""The HTTP interface: jobs, their course, their results; and the page."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

from ndsvrp import __version__
from ndsvrp.errors import NdsError
from ndsvrp.io.stops import KNOWN_COLUMNS
from ndsvrp.serve.access import REPORT_POLICY, Access
from ndsvrp.serve.jobs import ENDED, ErrorMessage, Job, JobOptions
from ndsvrp.serve.outputs import FORMS
from ndsvrp.serve.service import INTERNAL, QueueFullError, Service, TooLargeError, logger
from ndsvrp.serve.store import KeyTakenError
from ndsvrp.serve.uploads import safe_name

PAGE = Path(__file__).parent / "page"
STATUS: dict[type[NdsError], int] = {QueueFullError: 429, TooLargeError: 413, KeyTakenError: 409}

router = APIRouter(prefix="/api", responses={"4XX": {"model": ErrorMessage}})


class Limits(BaseModel):
    """What the service accepts."""

    version: str
    accepts: bool  #: whether jobs can be added; not by `nds solve --watch`
    customers: int
    seconds: float
    bytes: int
    queue: int
    workers: int
    forms: list[str]
    columns: dict[str, str]  #: of tables of stops: our name of each column, by the names that are recognised


async def _service(request: Request) -> Service:  # async: others are called in threads
    return cast(Service, request.app.state.service)


Serving = Annotated[Service, Depends(_service)]


async def _job(identifier: str, service: Serving) -> Job:
    job = await service.job(identifier)
    if job is None:
        raise HTTPException(404, f"no job '{identifier}'")
    return job


Named = Annotated[Job, Depends(_job)]
LISTS = {name for name, field in JobOptions.model_fields.items() if field.annotation == list[str]}


async def _options(request: Request) -> JobOptions:
    """Return the query as options. FastAPI can do that, too, but takes as long as to read a small instance."""
    query = request.query_params
    given = {name: query.getlist(name) if name in LISTS else query[name] for name in query}
    try:
        return JobOptions.model_validate(given)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None


def _parameters() -> list[dict[str, Any]]:
    """Return the options as OpenAPI describes a query."""
    properties = JobOptions.model_json_schema()["properties"]
    return [{"name": name, "in": "query", "required": False, "schema": field} for name, field in properties.items()]


BODY = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}, "required": True}


@router.get("/limits", summary="What the service accepts")
async def limits(service: Serving) -> Limits:
    config = service.config
    return Limits(
        version=__version__, accepts=service.accepts, customers=config.max_customers, seconds=config.max_seconds,
        bytes=config.max_bytes, queue=config.max_queue, workers=config.processes, forms=list(FORMS),
        columns=KNOWN_COLUMNS,
    )  # fmt: skip


@router.post(
    "/jobs", status_code=202, summary="Add a job", openapi_extra={"requestBody": BODY, "parameters": _parameters()}
)
async def submit(
    request: Request, response: Response, service: Serving, options: Annotated[JobOptions, Depends(_options)]
) -> Job:
    """The body is an instance file in any format that `ndsvrp.read` reads."""
    if not service.accepts:
        raise HTTPException(403, "this address shows one search, it takes no jobs")
    service.check_limits(options)
    with service.holding() as hold:
        job, added = await service.submit(await _body(request, service, hold), options)
    if not added:
        response.status_code = 200
    response.headers["location"] = f"/api/jobs/{job.id}"
    return job


@router.get("/jobs", summary="The newest jobs")
async def jobs(service: Serving, limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> list[Job]:
    return await service.jobs(limit)


@router.get("/jobs/{identifier}", summary="A job")
async def job(job: Named) -> Job:
    return job


@router.post("/jobs/{identifier}/cancel", summary="End a job; the best solution so far is kept")
async def cancel(job: Named, service: Serving) -> Job:
    return await service.cancel(job.id) or job


@router.delete("/jobs/{identifier}", status_code=204, summary="Delete a job that has ended")
async def delete(job: Named, service: Serving) -> None:
    if not await service.ask(service.store.delete, job.id):
        raise HTTPException(409, "the job has not ended: cancel it first")


@router.get("/jobs/{identifier}/problem", summary="What the page draws of the problem")
async def problem(job: Named, service: Serving) -> Response:
    return Response(await service.drawing(job), media_type="application/json")


@router.get(
    "/jobs/{identifier}/events",
    summary="The course of a job, as server-sent events",
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def events(job: Named, service: Serving) -> StreamingResponse:
    """`job`, `points` (seconds, iteration and cost of new incumbents), `incumbent`, `progress`, and at last `end`."""
    return StreamingResponse(service.events(job), media_type="text/event-stream")


@router.get("/jobs/{identifier}/result", summary="The result", responses={200: {"content": {"text/plain": {}}}})
async def result(
    job: Named, service: Serving, form: Annotated[str, Query(description=f"One of {', '.join(FORMS)}.")] = "json"
) -> Response:
    """The best solution that was found, checked. Also of a cancelled job."""
    if form not in FORMS:
        raise HTTPException(400, f"form: one of {', '.join(FORMS)}, not '{form}'")
    if job.state not in ENDED:
        raise HTTPException(409, f"the job is {job.state}")
    data = await service.result(job, form)
    if data is None:
        what = f"no result in the form '{form}'" if job.forms else "no result"
        raise HTTPException(404, f"the job has {what}{': ' + job.error if job.error else ''}")
    file = f"{Path(safe_name(job.name)).stem}.{form}"
    headers = {"x-file-name": file} | ({"content-security-policy": REPORT_POLICY} if form == "html" else {})
    return Response(data, media_type=FORMS[form].media_type, headers=headers)


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


def make_app(service: Service) -> FastAPI:
    """Return the application."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    app = FastAPI(
        title="ndsvrp", version=__version__, summary="Vehicle routing by ruin and recreate", lifespan=lifespan,
        openapi_url="/api/openapi.json", docs_url=None, redoc_url=None,  # these pages load scripts from elsewhere
    )  # fmt: skip
    app.state.service = service
    app.add_middleware(cast(Any, Access), config=service.config)
    app.add_exception_handler(NdsError, _refuse_input)
    app.add_exception_handler(RequestValidationError, _refuse_options)
    app.add_exception_handler(HTTPException, _refuse)
    app.add_exception_handler(sqlite3.Error, _fail)
    app.add_exception_handler(Exception, _fail)
    app.include_router(router)
    app.mount("/page", StaticFiles(directory=PAGE))

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    return app


async def _refuse_input(_: Request, error: Exception) -> JSONResponse:
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 400)
    headers = {"retry-after": "5"} if status == 429 else None
    return JSONResponse({"error": str(error)}, status, headers)


async def _refuse_options(_: Request, error: Exception) -> JSONResponse:
    first = cast(RequestValidationError, error).errors()[0]
    name = first["loc"][-1] if first["loc"] else "request"
    if first["type"] == "extra_forbidden" and name in ("distance", "duration"):
        how = f"'nds convert stops.csv stops.json --{name} FILE' writes one file with both"
        return JSONResponse({"error": f"{name}: a job is one file, with its matrix in it; {how}"}, 400)
    if first["type"] == "extra_forbidden":
        return JSONResponse({"error": f"unknown option '{name}' (known: {', '.join(JobOptions.model_fields)})"}, 400)
    return JSONResponse({"error": f"{name}: {first['msg']}"}, 400)


async def _fail(_: Request, error: Exception) -> JSONResponse:
    """A full disk is the operator's to mend; anything else is a bug. Both are in the log."""
    if isinstance(error, sqlite3.Error):
        logger.error("the database: %s", error)
        return JSONResponse({"error": f"the database does not work ({error})"}, 503)
    return JSONResponse({"error": INTERNAL}, 500)


async def _refuse(_: Request, error: Exception) -> JSONResponse:
    refused = cast(HTTPException, error)
    return JSONResponse({"error": str(refused.detail)}, refused.status_code, refused.headers)
