"""What a client sends and what it gets back: the options of a job, and its record."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ndsvrp.io.additions import columns_of
from ndsvrp.metric import Metric
from ndsvrp.search.planning import RUINS, SOLVERS, Request
from ndsvrp.search.stopping import Limits
from ndsvrp.serve.config import ServeConfig
from ndsvrp.serve.uploads import Upload

State = Literal["queued", "running", "done", "cancelled", "failed"]
ENDED = ("done", "cancelled", "failed")
DEFAULT_SECONDS = 30.0

Finite = Annotated[float, Field(allow_inf_nan=False)]


class JobOptions(BaseModel):
    """How to read the body and how to search, as query parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field("instance", min_length=1, max_length=200, description="File name; its ending tells the format.")
    round: str = Field("auto", description="How distances are rounded.", json_schema_extra={"enum": ["auto", *Metric]})
    index: int | None = Field(None, ge=0, description="Instance of an .npz set, from 0.")
    column: list[str] = Field([], max_length=50, description="Column of a table of stops, as in 'demand=kg'.")
    ignore_field: list[str] = Field(
        [], max_length=50, description="Field, section or column to read the file without; it may state a constraint."
    )
    capacity: Finite | None = Field(None, description="Of a vehicle, if the file does not state it or to replace it.")
    vehicles: int | None = Field(None, description="Largest number of routes, likewise.")
    max_distance: Finite | None = Field(None, description="Of each route, likewise.")
    max_duration: Finite | None = Field(None, description="Of each route, likewise.")
    vehicle_cost: Finite | None = Field(None, description="Of each vehicle used, likewise.")
    time: float | None = Field(None, gt=0, allow_inf_nan=False, description="Seconds to search; 30 without any limit.")
    iterations: int | None = Field(None, ge=1, le=2**31, description="Iterations to search.")
    patience: int | None = Field(None, ge=1, le=2**31, description="Stop after so many without a better one.")
    target: Finite | None = Field(None, description="Stop at this cost or below.")
    seed: int = Field(0, ge=0, lt=2**63, description="Same seed and iterations, same result.")
    solver: str = Field("auto", description="See 'nds solve --help'.", json_schema_extra={"enum": [*SOLVERS]})
    ruin: str | None = Field(None, description=f"How customers are chosen for removal: one of {', '.join(RUINS)}.")
    key: str | None = Field(
        None, min_length=1, max_length=200,
        description="A name of your choice: a second request with the same key and content returns the first job.",
    )  # fmt: skip

    def upload(self, body: bytes) -> Upload:
        """Return the body with how to read it."""
        stated = {
            "columns": columns_of(self.column, "column") or None, "ignore_fields": self.ignore_field or None,
            "capacity": self.capacity, "vehicles": self.vehicles, "max_distance": self.max_distance,
            "max_duration": self.max_duration, "vehicle_cost": self.vehicle_cost,
        }  # fmt: skip
        additions = {name: value for name, value in stated.items() if value is not None}
        return Upload(body, self.name, self.round, self.index, additions)

    def limits(self, config: ServeConfig) -> Limits:
        """Return the limits of the search. With iterations alone its course does not depend on the clock."""
        default = min(DEFAULT_SECONDS, config.max_seconds) if self.iterations is None else None
        time = default if self.time is None else self.time
        return {"time": time, "iterations": self.iterations, "patience": self.patience, "target": self.target}

    def request(self, device: str) -> Request:
        """Return what the search is asked for. Models are not named by clients: a name can be a path."""
        return Request(solver=self.solver, ruin=self.ruin, device=device)


class Job(BaseModel):
    """A job, as clients see it."""

    id: str
    state: State
    name: str  #: of the problem
    file: str
    variant: str
    customers: int
    created: float = Field(description="Seconds since 1970, as `started` and `finished`.")
    started: float | None = None
    finished: float | None = None
    attempts: int = Field(0, description="How often the search was started: more than once after a restart.")
    cost: float | None = Field(None, description="Of the best solution so far, computed by `check`.")
    routes: int | None = None
    best_known: float | None = Field(None, description="Best known cost, for instances of the literature.")
    error: str | None = None
    warnings: list[str] = Field([], description="What was ignored in the file, such as unknown columns of a table.")
    forms: list[str] = Field([], description="Forms in which the result can be fetched.")
    options: dict[str, Any] = {}


class ErrorMessage(BaseModel):
    """Every refusal has this body."""

    error: str
