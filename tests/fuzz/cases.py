"""Cases of the fuzzer: a folder with a damaged file, and the command line that reads it."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from fuzz import mutations as m

DATA = Path(__file__).parents[1] / "data"
TEXT = m.damage_text, m.damage_numbers, m.damage_numbers, m.damage_bytes
SOLVE = ("--iterations", "2", "--time", "0.2", "--out", "out.sol", "--json", "out.json")
LEARNED = ("--iterations", "1", "--time", "0.2", "--chains", "1", "--set", "rollouts=2", "--out", "out.sol")
TARGETS = ("new.vrp", "new.json", "new.csv", "new.txt", "new.npz")
STOPS = "name,x,y,demand,ready,due,service,prize\ndepot,0,0,,0,90,,\na,3,4,2,0,40,1,\nb,6,8,3,,,,7.5\nc,0,5,4,9,30,2,\n"
PLACES_TABLE = "Stop;Latitude;Longitude;Demand\nhub;52,5;13,4;0\na;52,6;13,3;2\nb;52,4;13,5;3\nc;52,5;13,2;4\n"
MATRIX = "0,3,4,5\n3,0,6,7\n4,6,0,8.5\n5,7,8,0\n"
CONFIG = """
[network]
width = 8
heads = 2
feed_forward = 8
layers_before = 1
layers_after = 1
seed_bits = 3
seed_width = 4

[train]
seed = 3
batch = 2
instances = 2
iterations = 1
rollouts = 2
removals = 2
orders = 1
start_rounds = 1
improvement_steps = 1
warm_up_rollouts = 2

[validation]
every = 0
states = 1
search_instances = 0

[[data]]
problem = "cvrp"
customers = [4]
"""


@dataclass(frozen=True)
class Case:
    """A command line, to be run in the folder that was made for it."""

    kind: str
    args: tuple[str, ...]


class Corpus:
    """Good files, made once. A case damages one of them."""

    def __init__(self, folder: Path) -> None:
        import ndsvrp
        from ndsvrp.bench.rows import append_row
        from ndsvrp.io.environment import environment
        from ndsvrp.train.config import read_config
        from ndsvrp.train.run import train
        from tiny_models import save_tiny

        self.folder = folder
        for name in ("toy.vrp", "toytw.vrp", "toymatrix.vrp", "toy.txt", "toy.sol"):
            shutil.copy(DATA / "small" / name, folder)
        (folder / "fleet.vrp").write_bytes(self._fleet())
        for variant in ("cvrp", "vrptw", "pcvrp"):
            ndsvrp.write_set(folder / f"{variant}.npz", ndsvrp.generate(variant, 4, count=3))
        self._tables(folder)
        self._foreign(folder)
        ndsvrp.solve(ndsvrp.read(folder / "toy.vrp"), iterations=2).save(folder / "result.json")
        save_tiny(folder, "tiny")
        row = {"set": "s", "instance": "0000", "data": "d", "solver": "sisr", "solver_version": "1", "seed": 1,
               "budget": 1.0, "threads": 1, **environment(), "cost": 5.0, "feasible": True, "violations": [],
               "seconds": 1.0, "cpu_seconds": 1.0, "gap": None}  # fmt: skip
        for change in ({}, {"solver": "nds", "cost": 4.0}, {"instance": "0001", "error": "lost", "feasible": None}):
            append_row(folder / "rows.jsonl", row | change)
        (folder / "run.toml").write_text(CONFIG)
        train(read_config(folder / "run.toml"), folder / "run", threads=1)

    def _tables(self, folder: Path) -> None:
        """Tables of stops, matrices, and problems as JSON."""
        import ndsvrp

        (folder / "stops.csv").write_text(STOPS)
        (folder / "places.csv").write_text(PLACES_TABLE)
        (folder / "matrix.csv").write_text(MATRIX)
        np.save(folder / "matrix.npy", np.loadtxt(folder / "matrix.csv", delimiter=","))
        ndsvrp.write(folder / "problem.json", ndsvrp.read(folder / "stops.csv", capacity=9, vehicles=3))
        timed = ndsvrp.read(folder / "stops.csv", capacity=9, duration=folder / "matrix.csv")
        ndsvrp.write(folder / "matrix.json", timed)

    def _foreign(self, folder: Path) -> None:
        """Sets of other programs: a pickle, a pickle with arrays, tensors."""
        import torch

        from ndsvrp.data.published_draws import draw

        arrays = draw("cvrp", 4, 3, 1)
        rows = zip(*(arrays[name].tolist() for name in ("depot_xy", "node_xy", "demand", "capacity")), strict=True)
        (folder / "kool.pkl").write_bytes(pickle.dumps(list(rows)))
        nds = {"demand": "node_demand", "service": "node_sd"}
        named = {nds.get(name, name): values for name, values in draw("vrptw", 6, 3, 1).items()}
        (folder / "arrays.pkl").write_bytes(pickle.dumps(named, 2))
        torch.save({name: torch.from_numpy(values) for name, values in named.items()}, folder / "tensors.pt")

    def _fleet(self) -> bytes:
        text = (self.folder / "toytw.vrp").read_text()
        return text.replace("CAPACITY", "VEHICLES : 3\nDISTANCE : 900\nCAPACITY", 1).encode()

    def copy(self, name: str, folder: Path) -> None:
        """Copy a file or folder of the corpus."""
        source = self.folder / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)

    def put(self, random: Random, name: str, folder: Path, damage: Callable[[Random, bytes], bytes]) -> None:
        """Write a file of the corpus, damaged; now and then something that is no file at all."""
        path, good = folder / name, (self.folder / name).read_bytes()
        if random.random() > 0.05:
            path.write_bytes(damage(random, good))
            return
        how = random.randrange(7)
        path.unlink(missing_ok=True)
        if how == 0:
            path.mkdir()
        elif how == 1:
            os.mkfifo(path)
        elif how == 2:
            path.symlink_to(random.choice(("/dev/zero", "/dev/full", "/dev/null", "/proc/self/mem", "/proc/kmsg")))
        elif how == 3:
            path.symlink_to(name)
        elif how == 4:
            path.write_bytes(b"")
        elif how == 5:
            path.write_bytes(good)
            os.truncate(path, 2**40)


def make_case(seed: int, number: int, corpus: Corpus, folder: Path) -> Case:
    """Write the files of a case into an empty folder. Return its command line."""
    random = Random(f"{seed}-{number}")
    kind = random.choice(tuple(KINDS))
    return Case(kind, KINDS[kind](random, corpus, folder))


def _instance(random: Random, corpus: Corpus, folder: Path, name: str, damage: Callable[..., bytes]) -> tuple[str, ...]:
    corpus.put(random, name, folder, damage)
    corpus.copy("toy.sol", folder)
    extra = random.choice(((), (), ("--round", random.choice(("none", "round", "exact", "trunc")))))
    ignore = random.choice(((), ("--ignore-field", "MAXDISTANCE")))
    commands = ("info", name), ("check", name, "toy.sol"), ("solve", name, *SOLVE), ("solve", name, *SOLVE)
    return (*random.choice(commands), *extra, *ignore)


def _vrp(random: Random, corpus: Corpus, folder: Path) -> tuple[str, ...]:
    name = random.choice(("toy.vrp", "toytw.vrp", "toymatrix.vrp", "fleet.vrp"))
    return _instance(random, corpus, folder, name, random.choice(TEXT))


def _solomon(random: Random, corpus: Corpus, folder: Path) -> tuple[str, ...]:
    return _instance(random, corpus, folder, "toy.txt", random.choice(TEXT))


def _table(random: Random, corpus: Corpus, folder: Path) -> tuple[str, ...]:
    """A table of stops, and a matrix beside it; one of them is damaged."""
    name, matrix = random.choice(("stops.csv", "places.csv")), random.choice(("matrix.csv", "matrix.npy"))
    for file in (name, matrix):
        corpus.copy(file, folder)
    damaged = random.choice((name, name, matrix))
    corpus.put(random, damaged, folder, random.choice((m.damage_bytes,) if damaged.endswith(".npy") else TEXT))
    flag = random.choice(("--distance", "--duration"))
    beside = ("--capacity", "9", *(() if damaged == name and random.random() < 0.5 else (flag, matrix)))
    commands = ("info", name), ("solve", name, *SOLVE), ("convert", name, random.choice(TARGETS))
    return (*random.choice(commands), *beside)


def _problem(random: Random, corpus: Corpus, folder: Path) -> tuple[str, ...]:
    name = random.choice(("problem.json", "matrix.json"))
    corpus.put(random, name, folder, m.damage_json)
    return random.choice((("info", name), ("solve", name, *SOLVE), ("convert", name, random.choice(TARGETS))))


def _npz(random: Random, corpus: Corpus, folder: Path) -> tuple[str, ...]:
    name = f"{random.choice(('cvrp', 'vrptw', 'pcvrp'))}.npz"
    corpus.put(random, name, folder, m.damage_npz)
    one = ("solve", name, "--index", str(random.randrange(4)), *SOLVE)
    whole = ("solve", name, "--iterations", "1", "--time", "0.1", "--out", "set", "--json", "all.json")
    return random.choice((("info", name), one, whole))


def _foreign(random: Random, corpus: Corpus, folder: Path) -> tuple[str, ...]:
    name = random.choice(("kool.pkl", "kool.pkl", "arrays.pkl", "tensors.pt", "cvrp.npz"))
    corpus.put(random, name, folder, m.damage_npz if name == "cvrp.npz" else m.damage_bytes)
    return (
        "data",
        "import",
        name,
        "--out",
        "new.npz",
        *random.choice(((), ("--variant", "cvrp"), ("--capacity", "9"))),
    )


def _sol(random: Random, corpus: Corpus, folder: Path) -> tuple[str, ...]:
    corpus.copy("toy.vrp", folder)
    corpus.put(random, "toy.sol", folder, random.choice(TEXT))
    return random.choice((("check", "toy.vrp", "toy.sol"), ("solve", "toy.vrp", "--init", "toy.sol", *SOLVE)))


def _result(random: Random, corpus: Corpus, folder: Path) -> tuple[str, ...]:
    """A result, whole or damaged, is no file of any other kind."""
    corpus.copy("toy.vrp", folder)
    corpus.put(random, "result.json", folder, m.damage_json)
    commands = ("info", "result.json"), ("check", "toy.vrp", "result.json"), ("bench", "report", "result.json"), (
        "models", "result.json"), ("train", "result.json"), ("solve", "toy.vrp", "--model", "result.json")  # fmt: skip
    return random.choice(commands)


def _model(random: Random, corpus: Corpus, folder: Path) -> tuple[str, ...]:
    for name in ("toy.vrp", "tiny.json", "tiny.safetensors"):
        corpus.copy(name, folder)
    weights, card = folder / "tiny.safetensors", folder / "tiny.json"
    if random.random() < 0.5:
        corpus.put(random, card.name, folder, m.damage_json)
    else:
        corpus.put(random, weights.name, folder, m.damage_safetensors)
        if random.random() < 0.7 and weights.is_file() and not weights.is_symlink() and weights.stat().st_size < 2**20:
            table = json.loads(card.read_bytes())  # so that the weights themselves are looked at
            card.write_bytes(m.to_json(table | {"sha256": hashlib.sha256(weights.read_bytes()).hexdigest()}))
    use = ("solve", "toy.vrp", "--model", "tiny.safetensors", *LEARNED)
    return random.choice((("models", "tiny.json"), ("models", "tiny.json", "--save", "copy"), use, use))


def _toml(random: Random, corpus: Corpus, folder: Path) -> tuple[str, ...]:
    """The configuration is read before the run to resume is missed: no number in it can start a long run."""
    corpus.put(random, "run.toml", folder, random.choice(TEXT))
    extends = random.choice(("run.toml", "run.toml", "a.toml", "/dev/zero", "no.toml", "b.toml"))
    (folder / "a.toml").write_text(f'extends = "{extends}"\n')
    changes = random.choice(
        ((), ("--set", f"train.{random.choice(('batch', 'hot', 'init'))}={random.choice(m.NUMBERS)}"))
    )
    return ("train", random.choice(("run.toml", "a.toml")), "--resume", "missing", *changes)


def _train(random: Random, corpus: Corpus, folder: Path) -> tuple[str, ...]:
    """A short run with one field changed to a small or impossible value."""
    lines = CONFIG.split("\n")
    at = random.choice([i for i, line in enumerate(lines) if "=" in line and "instances" not in line])
    value = random.choice(("0", "1", "2", "3", "-1", "0.5", "nan", "inf", "'x'", "[]", "[0]", "true", "1e400", "{}"))
    lines[at] = f"{lines[at].partition('=')[0]}= {value}"
    (folder / "run.toml").write_text("\n".join(lines))
    return ("train", "run.toml", "--out", "out", "--threads", "1", "--time", "2")


def _checkpoint(random: Random, corpus: Corpus, folder: Path) -> tuple[str, ...]:
    for name in ("run.toml", "run", "toy.vrp"):
        corpus.copy(name, folder)
    (checkpoint,) = (corpus.folder / "run").glob("checkpoint-*")
    name = random.choice(("training.json", "training.safetensors", "model.json", "model.safetensors"))
    damage = m.damage_json if name.endswith("json") else m.damage_safetensors
    corpus.put(random, f"run/{checkpoint.name}/{name}", folder, damage)
    use = ("solve", "toy.vrp", "--model", "run", *LEARNED)
    return random.choice((("models", "run"), use, ("train", "run.toml", "--resume", "run", "--threads", "1")))


def _rows(random: Random, corpus: Corpus, folder: Path) -> tuple[str, ...]:
    corpus.copy("toy.vrp", folder)
    corpus.put(random, "rows.jsonl", folder, m.damage_rows)
    speed = ("bench", "speed", "toy.vrp", "--time", "0.01", "--out", "rows.jsonl")
    return random.choice((("bench", "report", "rows.jsonl"),) * 5 + (speed,))


TEMPLATES = (
    ("solve", "toy.vrp", *SOLVE, "--seed", "1", "--threads", "1", "--chains", "2", "--set", "removals=3"),
    ("solve", "toy.vrp", *SOLVE, "--target", "5", "--patience", "3", "--preset", "paper", "--ruin", "related"),
    ("solve", "cvrp.npz", "--iterations", "2", "--time", "0.1", "--index", "1", "-q", "--plot", "a.png"),
    ("solve", "cvrp.npz", "--iterations", "2", "--time", "0.1", "--together", "2", "--out", "set", "--solver", "nds"),
    ("check", "toy.vrp", "toy.sol", "--best", "30", "--round", "auto"),
    ("info", "cvrp.npz", "--index", "1"),
    ("generate", "vrptw", "-n", "5", "--count", "2", "--seed", "1", "--width", "0.5", "--tick", "1", "--out", "a.npz"),
    ("generate", "cvrp", "-n", "5", "--layout", "clustered", "--seeds", "2-3", "--halving", "0.1", "--out", "new.npz"),
    ("generate", "pcvrp", "-n", "5", "--capacity", "9", "--prize-low", "0.1", "--prize-share", "0.5", "--out", "a.npz"),
    ("convert", "toy.vrp", "new.json", "--to", "json", "--capacity", "20", "--vehicles", "4"),
    ("solve", "toy.vrp", "--time", "0.1", "--json", "-", "--capacity", "20", "--report", "a.html"),
    ("data", "make", "smoke-cvrp", "--instances", "1", "--out", "a.npz"),
    ("data", "import", "cvrp.npz", "--variant", "cvrp", "--out", "new.npz"),
    ("data", "list"),
    ("models", "tiny.safetensors", "--save", "copy"),
    ("settings", "--training", "--markdown"),
    ("train", "run.toml", "--resume", "missing", "--time", "2", "--set", "train.batch=3", "--threads", "1"),
    ("bench", "report", "rows.jsonl"),
    ("bench", "speed", "toy.vrp", "--time", "0.01", "--index", "0", "--out", "new.jsonl"),
    ("bench", "run", "cvrp.npz", "--instances", "0-9", "--solvers", "sisr", "--time", "0.01", "--out", "new.jsonl"),
)  # fmt: skip
PLACES = (
    "/dev/full",
    "/dev/zero",
    "/dev/null",
    ".",
    "pipe",
    "no/such",
    "toy.vrp",
    "\udcff",
    "x" * 300,
    "a\x1b[2Jb",
    "~",
    "",
)


def _arguments(random: Random, corpus: Corpus, folder: Path) -> tuple[str, ...]:
    """A good command line with one or two words replaced, removed or added; never without its --time."""
    for name in ("toy.vrp", "toy.sol", "cvrp.npz", "rows.jsonl", "run.toml", "tiny.json", "tiny.safetensors"):
        corpus.copy(name, folder)
    os.mkfifo(folder / "pipe")
    words = list(random.choice(TEMPLATES))
    for _ in range(random.choice((1, 1, 2))):
        at = random.randrange(len(words))
        if words[at] == "--time" or words[at - 1] == "speed":  # without them a command line means a long run
            continue
        how = random.random()
        if how < 0.6 and not words[at].startswith("-"):
            legal = words[at - 1] in ("-n", "--count", "--chains")  # large numbers of these are, and take memory
            choices = ("0", "-1", "nan", "x", "9" * 12) if legal else (*m.NUMBERS, *PLACES, *m.WORDS[:10])
            if words[at - 1] == "--time":
                choices = ("0", "-1", "nan", "inf", "x", "1e-320", "0.05")
            words[at] = random.choice(choices).replace("\0", "")
        elif how < 0.75:
            del words[at]
        elif how < 0.9:
            words.insert(at, random.choice(("--bogus", "--", "-q", "--help", "--version", "-", "-h", "--time", "x")))
        else:
            words[at] += random.choice(("=", "x", "=1", "\u202e"))
    return tuple(words)


KINDS: dict[str, Callable[[Random, Corpus, Path], tuple[str, ...]]] = {
    "vrp": _vrp, "solomon": _solomon, "table": _table, "problem": _problem, "npz": _npz, "foreign": _foreign,
    "sol": _sol, "result": _result,
    "model": _model, "toml": _toml, "train": _train, "checkpoint": _checkpoint, "rows": _rows, "arguments": _arguments,
}  # fmt: skip
