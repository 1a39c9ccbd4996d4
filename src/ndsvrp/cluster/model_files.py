"""Models that are files of this machine, for workers that do not have them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ndsvrp import models
from ndsvrp.errors import ClusterError
from ndsvrp.io.files import read_bytes
from ndsvrp.search.planning import Request


@dataclass(frozen=True)
class ModelFiles:
    """The two files of a model."""

    path: str  #: of the weights, with its last two folders, which are the name of a checkpoint
    weights: bytes
    card: bytes

    @contextmanager
    def written(self) -> Iterator[Path]:
        """Write the files to a folder that is removed afterwards; yield the path of the weights."""
        with TemporaryDirectory(prefix="ndsvrp-model-") as folder:
            weights = Path(folder, self.path)
            weights.parent.mkdir(parents=True, exist_ok=True)
            weights.write_bytes(self.weights)
            weights.with_suffix(".json").write_bytes(self.card)
            yield weights


def model_files(request: Request) -> ModelFiles | None:
    """Return the files of the model that a request names by its path; None if it needs none."""
    if any(isinstance(given, models.Model) for given in (request.model, request.ruin)):
        raise ClusterError("a cluster takes a model by its name or path, not one that is loaded already")
    if not isinstance(request.model, str | Path) or request.model in models.names():
        return None
    from ndsvrp.policy.model_file import read_model_file

    weights = read_model_file(models.find(request.model)).weights.absolute()
    path = "/".join(part for part in weights.parts[-3:] if part != weights.anchor)
    return ModelFiles(path, read_bytes(weights), read_bytes(weights.with_suffix(".json")))
