"""Model files: NAME.safetensors holds the weights, NAME.json beside it the card. Nothing is pickled."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from ndsvrp.errors import CheckpointError, NdsError
from ndsvrp.io.environment import environment
from ndsvrp.io.files import exists, read_bytes, write_atomic
from ndsvrp.io.result import json_bytes, plain
from ndsvrp.io.tables import read_json as read_table
from ndsvrp.policy.config import NetworkConfig
from ndsvrp.policy.inputs import input_names
from ndsvrp.policy.network import Network
from ndsvrp.records import require_record
from ndsvrp.variants import VARIANTS

FORMAT = 1
SUFFIXES = (".safetensors", ".json")
CHECKPOINT_MODEL = "model"  #: its name in the folder of a checkpoint
DTYPES = {"float32": torch.float32, "float16": torch.float16}
PICKLES = (".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth")

EMBEDDINGS = ("embed_depot.weight", "embed_customer.weight")  # (width, inputs)
#: of models whose JSON does not list them
FIRST_INPUTS = ("x", "y", "demand", "has_windows", "ready", "due", "service", "has_prizes", "prize", "required")
#: fields of the network that the JSON of an older model lacks, with what such a model has
LATER_FIELDS = {"tied_neighbours": False}

_HEAD = ("format", "sha256", "dtype")  # fields of the JSON about the file of the weights


def _versions() -> dict[str, str]:
    return {name: known for name, known in environment()["versions"].items() if known is not None}


@dataclass(frozen=True, kw_only=True)
class Ancestor:
    """A model that another one was continued from."""

    model: str  #: its name and the begin of the sha256 of its weights
    device: str = ""  #: as in `ModelCard`
    seconds: float = 0.0  #: of its own training; 0 if unknown
    instances: int = 0
    steps: int = 0
    commit: str = ""

    def __post_init__(self) -> None:
        require_record(self, {"instances": (0, 2**62), "steps": (0, 2**62), "seconds": (0.0, 1e18)})


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """What a model is and where it comes from: the content of its JSON without the digest of the weights."""

    network: NetworkConfig
    problems: tuple[str, ...]  #: names of the variants it was trained on
    sizes: tuple[int, ...]  #: numbers of customers it was trained on
    training: dict[str, Any]  #: the configuration of the run, as plain tables
    commit: str  #: of the program that trained it; empty if unknown
    instances: int  #: seen in training
    steps: int  #: of the optimizer
    seconds: float  #: of training
    init: str  #: where the first weights came from; empty: from scratch
    validation: dict[str, Any]  #: figures, by name
    device: str = ""  #: that trained it: the name of a GPU, or cpu; empty if unknown
    lineage: tuple[Ancestor, ...] = ()  #: the models before it, each continued from the one before; oldest first
    inputs: tuple[str, ...] = field(default_factory=input_names)  #: columns per node, in the order of the weights
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    versions: dict[str, str] = field(default_factory=_versions)  #: of the software it was made with

    def __post_init__(self) -> None:
        for name in ("problems", "sizes", "inputs"):
            value = getattr(self, name)
            if not isinstance(value, list | tuple) or not value:
                raise NdsError(f"{name} must be a list that is not empty, got {value!r}")
            object.__setattr__(self, name, tuple(value))
        object.__setattr__(self, "lineage", _lineage(self.lineage))
        for name in ("training", "validation", "versions"):
            value = getattr(self, name)
            if not isinstance(value, dict):
                raise NdsError(f"{name} must be a table, got {value!r}")
            object.__setattr__(self, name, plain(value))
        for name, known in (("problems", tuple(VARIANTS)), ("inputs", input_names())):
            for entry in getattr(self, name):
                if entry not in known:  # a tuple: the entry may have no hash
                    raise NdsError(f"{name}: unknown '{entry}' (known: {', '.join(known)})")
        require_record(self, {"instances": (0, 2**62), "steps": (0, 2**62), "seconds": (0.0, 1e18)})
        if min(self.sizes) < 1:
            raise NdsError(f"sizes must be at least 1, got {min(self.sizes)}")

    @property
    def total_seconds(self) -> float:
        """Seconds of training, those of the models before it included."""
        return self.seconds + sum(ancestor.seconds for ancestor in self.lineage)

    @property
    def untrained_inputs(self) -> tuple[str, ...]:
        """Inputs of this program that the model was trained without; their weights are zero."""
        return tuple(name for name in input_names() if name not in self.inputs)


@dataclass(frozen=True)
class ModelFile:
    """A model on disk, without its weights."""

    weights: Path
    sha256: str  #: of that file
    dtype: str  #: the weights are stored in
    card: ModelCard

    @property
    def name(self) -> str:
        """Its name; for a checkpoint, RUN/CHECKPOINT."""
        folder = self.weights.absolute().parent
        return f"{folder.parent.name}/{folder.name}" if self.weights.stem == CHECKPOINT_MODEL else self.weights.stem

    @property
    def origin(self) -> str:
        """What a model that is continued from this one says about it: name and begin of the sha256."""
        return f"{Path(self.name).name} (sha256 {self.sha256[:12]})"

    def descent(self) -> tuple[Ancestor, ...]:
        """Return the lineage of a model that is continued from this one."""
        card = self.card
        known = card.lineage or ((Ancestor(model=card.init),) if card.init else ())
        return (*known, Ancestor(
            model=self.origin, device=card.device, seconds=card.seconds, instances=card.instances, steps=card.steps,
            commit=card.commit,
        ))  # fmt: skip


def save_model(file: Path, weights: Mapping[str, Tensor], card: ModelCard, *, half: bool = False) -> None:
    """Write NAME.safetensors and then NAME.json, each completely or not at all; `file` is either name.

    If the process is killed in between, the digest in the JSON does not fit, and the pair is refused.
    """
    if file.suffix not in SUFFIXES:
        raise CheckpointError(f"{file}: a model is written as {' and '.join(SUFFIXES)}")
    dtype = "float16" if half else "float32"
    stored = {name: tensor.detach().to("cpu", DTYPES[dtype]).contiguous() for name, tensor in weights.items()}
    require_weights(stored, card.network, DTYPES[dtype], str(file))
    columns = [input_names().index(name) for name in card.inputs]
    stored |= {name: stored[name][:, columns].contiguous() for name in EMBEDDINGS}
    write_tensors(file, stored, {"dtype": dtype, **vars(card)})


def write_tensors(file: Path, tensors: Mapping[str, Tensor], table: Mapping[str, Any]) -> None:
    """Write tensors, and then a JSON table beside them with their digest."""
    data = safetensors.torch.save(dict(tensors))
    head = {"format": FORMAT, "sha256": hashlib.sha256(data).hexdigest()}
    described = json_bytes({**head, **table}, indent=1)
    write_atomic(file.with_suffix(".safetensors"), data)
    write_atomic(file.with_suffix(".json"), described)


def load_model(file: Path) -> tuple[Network, ModelCard]:
    """Return the network, float32 and ready to use, and its card. For `file` see `read_model_file`."""
    found = read_model_file(file)
    weights = read_weights(found)
    with torch.random.fork_rng(devices=[]):  # loading a model leaves the random numbers alone
        network = Network(found.card.network)
    network.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    return network.eval(), found.card


def read_weights(found: ModelFile) -> dict[str, Tensor]:
    """Return the weights for all inputs of this program, checked."""
    where = str(found.weights)
    weights = widen(read_tensors(found.weights, found.sha256), found.card.inputs, where)
    require_weights(weights, found.card.network, DTYPES[found.dtype], where)
    return weights


def widen(weights: Mapping[str, Tensor], inputs: tuple[str, ...], where: str) -> dict[str, Tensor]:
    """Return weights with a column for each input of this program: zero for those that are not among `inputs`."""
    widened, known = dict(weights), input_names()
    for name in EMBEDDINGS if inputs != known else ():
        narrow = widened.get(name, torch.zeros(()))
        if narrow.ndim != 2:
            continue  # no matrix of weights: refused elsewhere, or the step of an optimizer
        if narrow.shape[1] != len(inputs):
            raise CheckpointError(f"{where}: weight '{name}' has {narrow.shape[1]} columns for {len(inputs)} inputs")
        widened[name] = narrow.new_zeros(len(narrow), len(known))
        widened[name][:, [known.index(column) for column in inputs]] = narrow
    return widened


def read_model_file(file: Path) -> ModelFile:
    """Read the JSON of a model. `file`: NAME.safetensors, NAME.json, or the folder of a checkpoint or training run."""
    file = _locate(Path(file))
    described = file.with_suffix(".json")
    if not exists(described) and exists(file.with_suffix(".safetensors")):
        raise CheckpointError(f"{file}: there is no {described.name} beside it, which says what the weights are")
    table = {"inputs": list(FIRST_INPUTS), "device": "", "lineage": [], **read_json(described, FORMAT)}
    require_fields(table, (*_HEAD, *(f.name for f in fields(ModelCard))), str(described))
    try:
        if table["dtype"] not in tuple(DTYPES):  # a tuple: it may have no hash
            raise NdsError(f"dtype must be one of {', '.join(DTYPES)}, got {table['dtype']!r}")
        if not isinstance(table["sha256"], str):
            raise NdsError(f"sha256 must be text, got {table['sha256']!r}")
        card = ModelCard(**{f.name: table[f.name] for f in fields(ModelCard)} | {"network": _network(table["network"])})
    except NdsError as error:
        raise CheckpointError(f"{described}: {error}") from None
    return ModelFile(file.with_suffix(".safetensors"), table["sha256"], table["dtype"], card)


def read_json(file: Path, newest_format: int) -> dict[str, Any]:
    """Return the table of a JSON file, if its format is known."""
    try:
        table = read_table(file)
    except NdsError as error:
        raise CheckpointError(str(error)) from None
    if not isinstance(table, dict):
        raise CheckpointError(f"{file}: is not a table of fields")
    version = table.get("format")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise CheckpointError(f"{file}: format must be a whole number from 1, got {version!r}")
    if version > newest_format:
        raise CheckpointError(f"{file}: format {version} is newer than this program knows ({newest_format})")
    return table


def require_fields(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    """Refuse a table that lacks a field or has an unknown one."""
    for name in known:
        if name not in table:
            raise CheckpointError(f"{where}: {name} is missing")
    for name in table:
        if name not in known:
            raise CheckpointError(f"{where}: unknown field '{name}' (known: {', '.join(known)})")


def read_tensors(file: Path, sha256: str) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file, if its digest is this one."""
    try:
        data = read_bytes(file)
    except NdsError as error:
        raise CheckpointError(str(error)) from None
    if data[8:9] != b"{" and data[:1] in (b"\x80", b"P"):
        raise CheckpointError(f"{file}: is a pickle or an archive of one, which is never loaded")
    try:
        tensors = safetensors.torch.load(data)
    except SafetensorError as error:
        raise CheckpointError(f"{file}: is not a whole safetensors file ({error})") from None
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise CheckpointError(f"{file}: its sha256 is {found[:12]}…, but {sha256[:12]}… was written down for it")
    return tensors


def require_weights(weights: Mapping[str, Tensor], config: NetworkConfig, dtype: torch.dtype, where: str) -> None:
    """Refuse weights that do not fit the network, naming the first that does not."""
    with torch.device("meta"):  # names and shapes only: no memory, no random numbers
        expected = Network(config).state_dict()
    for name in expected:
        if name not in weights:
            raise CheckpointError(f"{where}: weight '{name}' is missing")
    for name, tensor in sorted(weights.items()):
        if name not in expected:
            raise CheckpointError(f"{where}: weight '{name}' is not one of the network's")
        if tensor.shape != expected[name].shape:
            shapes = f"{list(tensor.shape)}, the network's has {list(expected[name].shape)}"
            raise CheckpointError(f"{where}: weight '{name}' has shape {shapes}")
        require_numbers(tensor, dtype, f"{where}: weight '{name}'")


def require_numbers(tensor: Tensor, dtype: torch.dtype, what: str) -> None:
    """Refuse numbers of another type, and numbers that are not finite."""
    if tensor.dtype != dtype:
        raise CheckpointError(f"{what} is {_text(tensor.dtype)}, not {_text(dtype)}")
    if not bool(torch.isfinite(tensor).all()):
        raise CheckpointError(f"{what} is not finite")


def _text(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _lineage(entries: Any) -> tuple[Ancestor, ...]:
    if not isinstance(entries, list | tuple):
        raise NdsError(f"lineage must be a list, got {entries!r}")
    known = tuple(f.name for f in fields(Ancestor))
    for entry in entries:
        if not isinstance(entry, Ancestor):
            if not isinstance(entry, dict):
                raise NdsError(f"lineage must be a list of tables, got {entry!r}")
            require_fields(entry, known, "lineage")
    return tuple(entry if isinstance(entry, Ancestor) else Ancestor(**entry) for entry in entries)


def _network(table: Any) -> NetworkConfig:
    if not isinstance(table, dict):
        raise NdsError("network must be a table")
    table = LATER_FIELDS | table
    require_fields(table, tuple(f.name for f in fields(NetworkConfig)), "network")
    try:
        return NetworkConfig(**table)
    except (NdsError, TypeError) as error:
        raise NdsError(f"network: {error}") from None


def _locate(file: Path) -> Path:
    """Return the file of a model, which may be given by its folder."""
    if file.suffix in PICKLES:
        raise CheckpointError(f"{file}: is a pickle by its name, which is never loaded; models are .safetensors files")
    if not (exists(file) and file.is_dir()):
        if file.suffix not in SUFFIXES:
            raise CheckpointError(f"{file}: is not a model: NAME.safetensors, NAME.json or the folder of a checkpoint")
        return file
    if not (file / f"{CHECKPOINT_MODEL}.json").exists():
        from ndsvrp.train.checkpoint import newest  # here: training imports this module

        file = newest(file)
    return file / f"{CHECKPOINT_MODEL}.safetensors"
