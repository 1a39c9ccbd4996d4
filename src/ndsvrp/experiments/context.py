"""What an experiment gets: scale, folders, device; and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ndsvrp import models
from ndsvrp.bench.report.tables import Table
from ndsvrp.engine.device import Device
from ndsvrp.experiments.rows import FILE, Rows
from ndsvrp.experiments.scales import Scale
from ndsvrp.io.environment import usable_cores
from ndsvrp.io.files import refused

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEED = 1  #: of searches
BASELINES = ("hgs", "pyvrp", "sisr")
CONFIGS = Path("configs/paper")  #: of the scale `paper`, in a checkout


@dataclass(frozen=True)
class Findings:
    """What an experiment found."""

    tables: list[Table]
    figures: dict[str, Figure]  #: by the end of the file's name; the first may be empty


@dataclass
class Context:
    """Scale, folders and device of an experiment."""

    scale: Scale
    out: Path  #: folder of all experiments; sets and models are shared by them
    name: str  #: of the experiment
    device: str = "cpu"
    threads: int | None = None  #: of a CPU
    jobs: int = 0  #: baselines side by side, on one core each; 0: all cores but one
    baselines: Sequence[str] = BASELINES  #: those to run
    given: Path | None = None  #: folder of trained models, by name
    configs: Path = CONFIGS
    tell: Callable[[str], None] = lambda line: None
    loaded: dict[str, models.Model] = field(default_factory=dict)  #: models by path, shared by experiments

    def __post_init__(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise refused("written", self.folder, error) from None

    @property
    def folder(self) -> Path:
        """Folder of this experiment."""
        return self.out / self.name

    @cached_property
    def rows(self) -> Rows:
        """The rows of this experiment."""
        return Rows(self.folder / FILE, Device().name if self.device == "cuda" else None)

    @property
    def trained(self) -> Path:
        """Folder of the models that this scale trains: other scales have others of the same names."""
        return self.out / "models" / self.scale.name

    @property
    def own_threads(self) -> int:
        """Cores of our own searches, as rows state them."""
        return 1 if self.device == "cuda" else self.threads or usable_cores()

    @property
    def cores(self) -> int:
        """Cores for baselines."""
        return self.jobs or max(1, usable_cores() - 1)

    def load(self, model: str | Path) -> models.Model:
        """Return a model, loaded once."""
        name = str(model)
        if name not in self.loaded:
            self.loaded[name] = models.load(model, self.device)
        return self.loaded[name]
