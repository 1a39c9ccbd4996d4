"""The HTTP interface: jobs, their course, their results; and the page."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.responses import FileResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from ndsvrp import __version__
from ndsvrp.io.stops import KNOWN_COLUMNS, MAY_MEAN
from ndsvrp.serve.access import REPORT_POLICY, Access
from ndsvrp.serve.jobs import ENDED, ErrorMessage, Job
from ndsvrp.serve.outputs import FORMS
from ndsvrp.serve.refusals import REFUSALS, fail
from ndsvrp.serve.service import Service
from ndsvrp.serve.submit import BODY, SubmitFirst, parameters, submit
from ndsvrp.serve.uploads import safe_name

PAGE = Path(__file__).parent / "page"

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
    column_words: dict[str, str]  #: what other columns may mean, by words in their names; the first one counts


async def _service(request: Request) -> Service:  # async: others are called in threads
    return cast(Service, request.app.state.service)


Serving = Annotated[Service, Depends(_service)]


async def _job(identifier: str, service: Serving) -> Job:
    job = await service.job(identifier)
    if job is None:
        raise HTTPException(404, f"no job '{identifier}'")
    return job


Named = Annotated[Job, Depends(_job)]


@router.get("/limits", summary="What the service accepts")
async def limits(service: Serving) -> Limits:
    config = service.config
    return Limits(
        version=__version__, accepts=service.accepts, customers=config.max_customers, seconds=config.max_seconds,
        bytes=config.max_bytes, queue=config.max_queue, workers=config.processes, forms=list(FORMS),
        columns=KNOWN_COLUMNS, column_words=MAY_MEAN,
    )  # fmt: skip


router.post(
    "/jobs", status_code=202, summary="Add a job", response_model=Job,
    openapi_extra={"requestBody": BODY, "parameters": parameters()},
)(submit)  # fmt: skip


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
    app.add_middleware(cast(Any, SubmitFirst))
    app.add_middleware(cast(Any, Access), config=service.config)  # the last one is called first
    for kind, answer in REFUSALS.items():
        app.add_exception_handler(kind, answer)
    app.add_exception_handler(Exception, fail)
    app.include_router(router)
    app.mount("/page", StaticFiles(directory=PAGE))

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    return app
