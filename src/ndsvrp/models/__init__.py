"""Models in the package: find and load them, or models from files and training runs.

The weights are NAME.safetensors and NAME.json in this folder; docs/models.md describes the format. Code belongs here if
it chooses a model. The network and the file format are in `ndsvrp.policy`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ndsvrp.errors import CheckpointError, NdsError
from ndsvrp.io.files import exists
from ndsvrp.problem import Problem
from ndsvrp.ruin import RuinRequest
from ndsvrp.variants import variant_of

if TYPE_CHECKING:  # imports torch, which a search by rules does not need
    from ndsvrp.policy import Policy
    from ndsvrp.policy.model_file import ModelCard, ModelFile

FOLDER = Path(__file__).parent


@dataclass(frozen=True, eq=False)
class Model:
    """A loaded model, which is a ruin."""

    name: str
    sha256: str  #: of the file of its weights
    card: ModelCard
    policy: Policy
    seconds: float  #: that loading it took

    on_device = True
    batched = True
    in_regions = True

    def __call__(self, request: RuinRequest) -> Any:
        """Return the customers that the policy chooses."""
        return self.policy(request)

    def expected_seconds(self) -> float:
        """Return the seconds of the last finished call of the policy."""
        return self.policy.expected_seconds()

    def knows(self, problem: Problem) -> bool:
        """Return whether it was trained on problems with these constraints."""
        return variant_of(problem).name in self.card.problems

    def record(self) -> dict[str, Any]:
        """Return what a result stores of it."""
        zero = {"untrained_inputs": self.card.untrained_inputs} if self.card.untrained_inputs else {}
        return {"name": self.name, "sha256": self.sha256, "load_seconds": self.seconds, **zero}


def shipped() -> list[ModelFile]:
    """Return the models in this folder, sorted by name."""
    from ndsvrp.policy.model_file import read_model_file

    return [read_model_file(FOLDER / f"{name}.json") for name in names()]


def names() -> list[str]:
    """Return the names of the models in this folder."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def find(model: str | Path) -> Path:
    """Return the file or folder of a model, given by name or path. `./NAME` is always a path."""
    if not isinstance(model, str | Path):
        raise NdsError(f"a model is given by its name or path, got {model!r}")
    if isinstance(model, str) and model in names():
        return FOLDER / f"{model}.safetensors"
    if not exists(model):
        known = f"those shipped are {', '.join(names())}" if names() else "none is shipped with this version"
        raise CheckpointError(f"{model}: no such file or folder, nor the name of a model ({known})")
    return Path(model)


def choose(problem: Problem) -> str | None:
    """Return the shipped model for a problem; None if none was trained on problems with its constraints.

    Among those, choose the one trained on the size nearest by ratio: 700 is nearer to 1000 than to 400. Ties go to
    the model trained on the fewest variants, then to the first name.
    """
    variant = variant_of(problem).name

    def misfit(file: ModelFile) -> tuple[float, int, str]:
        away = min(abs(math.log(problem.customers / size)) for size in file.card.sizes)
        return away, len(file.card.problems), file.name

    best = min((file for file in shipped() if variant in file.card.problems), key=misfit, default=None)
    return None if best is None else best.name


def load(model: str | Path, device: str = "auto") -> Model:
    """Load a model by name or path, for many searches; the device `auto` is that of `solve`."""
    from ndsvrp.engine.device import available

    device = ("cuda" if available() else "cpu") if device == "auto" else device
    began = time.perf_counter()
    from ndsvrp.policy import Policy
    from ndsvrp.policy.model_file import load_model, read_model_file

    file = read_model_file(find(model))
    network, card = load_model(file.weights)
    return Model(file.name, file.sha256, card, Policy(network, device), time.perf_counter() - began)
