"""Measure searches and training with the policy on a GPU: whole runs, their parts, memory and start-up time."""

import os
import time
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from ndsvrp import models
from ndsvrp.bench.gpu_engine import CHAINS, GIVEN, ORDERS, REMOVALS, REPEATS, ROLLOUTS, WARM_UP, seconds_of
from ndsvrp.bench.limits import in_new_process
from ndsvrp.bench.rows import Row
from ndsvrp.engine.base import Engine, Recipe
from ndsvrp.errors import NdsError
from ndsvrp.generate import generate
from ndsvrp.io.environment import usable_cores
from ndsvrp.policy.graphs import CapturedGraph, low_precision
from ndsvrp.policy.inputs import Inputs, static_inputs
from ndsvrp.policy.network import Network
from ndsvrp.policy.policy import Policy
from ndsvrp.policy.random_numbers import RandomNumbers
from ndsvrp.policy.rollout import Sampler
from ndsvrp.problem import Problem
from ndsvrp.ruin import Ruin, RuinRequest
from ndsvrp.search.asa import Search
from ndsvrp.search.augment import augmentations
from ndsvrp.search.result import Result
from ndsvrp.search.settings import Settings
from ndsvrp.search.solve import solve, solve_set
from ndsvrp.search.start import start
from ndsvrp.search.stopping import Budget
from ndsvrp.train.config import Recipe as Training
from ndsvrp.train.config import Source, TrainConfig
from ndsvrp.train.trainer import Trainer

BATCH, TRAINING_ROLLOUTS, ITERATIONS = 256, 128, 30  # of the training that is measured
TEMPERATURE = 0.01  # of the parts of an iteration, for a box of side 1
TOGETHER = 8  # instances searched at once
VIEWS = 20  # calls of `view` for each call of the other parts
LIMITS = (0.2, 0.5, 1.0)  # seconds: time limits of the searches whose lateness is measured


def shipped(problem: Problem, device: str = "cuda") -> models.Model:
    """Load the shipped model for such problems."""
    name = models.choose(problem)
    if name is None:
        raise NdsError("no model for such problems is shipped with this version")
    return models.load(name, device)


def iteration(
    problem: Problem, policy: Policy, engine: Engine, chains: int = CHAINS, repeats: int = REPEATS
) -> Iterator[Row]:
    """Yield milliseconds of each part of an iteration, of a whole one in a search, and of the rest of it: a whole one
    less the policy and the reconstructions. Solutions are as good as in a search."""
    device, network = policy.device.type, policy.network
    state: Any = start(engine, [problem], np.zeros(chains, np.int32), 1, rounds=30)
    temperatures = np.broadcast_to(TEMPERATURE * problem.side(), (chains, ROLLOUTS))
    related = Recipe(rule="related", removals=REMOVALS, orders=ORDERS)
    for i in range(WARM_UP):
        engine.improve(state, related, None, temperatures, 1, i)
    coordinates, view = augmentations(problem, chains), engine.view(state, on_device=True)
    inputs = static_inputs([problem], coordinates, device).showing(view)
    seeds = torch.randint(2, (chains, ROLLOUTS, network.config.seed_bits), device=device).float()
    numbers = RandomNumbers(seeds, torch.rand(chains, ROLLOUTS, REMOVALS, device=device))
    sampler = Sampler(network)

    def encode(*tensors: torch.Tensor) -> Any:
        with torch.no_grad(), low_precision(policy.device):
            return network.encode(Inputs.of_tensors(*tensors))

    def request(i: int) -> RuinRequest:
        return RuinRequest(problem, coordinates, view, ROLLOUTS, REMOVALS, np.random.default_rng(i))

    graph = CapturedGraph(encode, inputs.tensors(), ()) if device == "cuda" else encode
    encoded = seconds_of(lambda i: graph(*inputs.tensors()), repeats, device)
    sampled = seconds_of(lambda i: sampler(inputs, numbers), repeats, device)
    # Launching takes longer than the kernel, and its time varies: more calls.
    yield _part("view", seconds_of(lambda i: engine.view(state, on_device=True), VIEWS * repeats, device))
    yield _part("encode", encoded)
    yield _part("decode", sampled - encoded)
    yield {
        "what": "decode with encode", "value": chains * ROLLOUTS / sampled / 1e6, "unit": "M rollouts/s",
        "seconds": sampled,
    }  # fmt: skip
    yield _part("policy", seconds_of(lambda i: policy(request(i)), repeats, device))  # with its random numbers
    removed = policy(request(1))
    rebuilt = seconds_of(lambda i: engine.improve(state, GIVEN, removed, temperatures, 1, i), repeats, device)
    yield _part("rebuild", rebuilt)

    def exchange(i: int) -> None:
        engine.improve(state, GIVEN, removed, temperatures, 1, i)
        engine.exchange(state, np.zeros(1), 1, i)  # all but the best are replaced
        state.stats()

    yield _part("exchange and report", seconds_of(exchange, repeats, device) - rebuilt)
    whole = _in_a_search(problem, policy, engine, chains, WARM_UP + 4 * repeats)
    yield _part("iteration", whole)
    yield _part("between", whole - sampled - rebuilt)


def _in_a_search(problem: Problem, policy: Policy, engine: Engine, chains: int, iterations: int) -> float:
    """Return the median seconds of an iteration in a search at constant temperature."""
    times: list[float] = []
    settings = Settings(
        chains=chains, rollouts=ROLLOUTS, removals=REMOVALS, orders=ORDERS, ruin="policy", hot=TEMPERATURE,
        cold=TEMPERATURE, start_rounds=30,
    )  # fmt: skip
    search = Search(
        [problem], engine, settings, Budget(seconds=3600.0, iterations=iterations), 1, policy,
        callback=lambda progress: times.append(progress.seconds),
    )  # fmt: skip
    search.run()
    return float(np.median(np.diff(times)[iterations // 2 :]))


def _part(name: str, seconds: float) -> Row:
    return {"what": name, "value": seconds * 1e3, "unit": "ms", "seconds": seconds}


def search(problems: list[Problem], model: Ruin, seconds: float, chains: int, device: str = "cuda") -> Row:
    """Measure solutions per second of a search with the policy: all instances at once, `seconds` for each."""
    outcomes = solve_set(problems, time=seconds, **_how(model, chains, device))
    results = [outcome for outcome in outcomes if isinstance(outcome, Result)]
    seconds, made = sum(r.seconds for r in results), sum(r.reconstructions for r in results)
    return {
        "what": "search" + (f", {len(problems)} together" if len(problems) > 1 else ""),
        "value": made / seconds / 1e6, "unit": "M solutions/s", "seconds": seconds,
        "chains": results[0].settings["chains"], "iterations": results[0].iterations,
        "ms_per_iteration": seconds / max(1, results[0].iterations) * 1e3,
        "cost": float(np.mean([r.cost for r in results])),
    }  # fmt: skip


def lateness(problem: Problem, model: Ruin, chains: int = CHAINS, device: str = "cuda") -> Row:
    """Measure how many milliseconds a search ends after its time limit: the worst case."""
    results = [solve(problem, time=limit, **_how(model, chains, device)) for limit in LIMITS]
    late = [1e3 * (result.seconds - limit) for result, limit in zip(results, LIMITS, strict=True)]
    return {"what": "time limit", "value": max(late), "unit": "ms late", "late": late, "limits": LIMITS}


def _how(model: Ruin, chains: int, device: str) -> dict[str, Any]:
    return {
        "seed": 1, "solver": "nds", "ruin": "policy", "model": model, "device": device, "chains": chains,
        "rollouts": ROLLOUTS, "removals": REMOVALS, "orders": ORDERS,
    }  # fmt: skip


def getting_ready(variant: str, ruin: str, customers: int, chains: int = CHAINS) -> Iterator[Row]:
    """Yield the seconds before the clock of a search starts, with an empty compile cache and with a filled one.

    With the policy they include loading its model.
    """
    with TemporaryDirectory() as cache:
        for what in ("first start", "later start"):
            seconds = in_new_process(_ready, variant, ruin, customers, chains, "cuda", cache)
            yield {"what": what, "removal": ruin, "value": seconds, "unit": "s", "seconds": seconds, "chains": chains}


def _ready(variant: str, ruin: str, customers: int, chains: int, device: str, cache: str) -> float:
    os.environ |= {"NDSVRP_CACHE": cache, "CUDA_CACHE_PATH": cache}  # NVRTC has its own cache
    problem = generate(variant, customers, seed=1)[0]
    torch.zeros(1, device=device)  # start-up of torch is not measured
    began = time.perf_counter()
    result = solve(problem, iterations=1, seed=1, solver="nds", ruin=ruin, device=device, chains=chains)
    return time.perf_counter() - began - result.seconds


def memory(customers: int, chains: int = CHAINS) -> Row:
    """Measure the GPU memory of a search with the policy, in a new process."""
    return in_new_process(_memory, customers, chains)


def _memory(customers: int, chains: int) -> Row:
    problem = generate("cvrp", customers, seed=1)[0]
    free, _ = torch.cuda.mem_get_info()  # with the context of torch, before our allocations
    search([problem], shipped(problem), 1.0, chains)
    taken = (free - torch.cuda.mem_get_info()[0]) / 2**30
    reserved = torch.cuda.max_memory_reserved() / 2**30
    return {
        "what": "memory", "value": max(taken, reserved), "unit": "GiB", "taken_gib": taken, "reserved_gib": reserved,
        "chains": chains,
    }  # fmt: skip


def training(
    customers: int, engine: Engine, device: str = "cuda", batch: int = BATCH, rollouts: int = TRAINING_ROLLOUTS,
    iterations: int = ITERATIONS, **changes: Any,
) -> Row:  # fmt: skip
    """Measure milliseconds of a training iteration and of its parts, in the second batch of instances."""
    config = TrainConfig(
        train=Training(instances=2 * batch, batch=batch, rollouts=rollouts, iterations=iterations, **changes),
        data=(Source(customers=(customers,)),),
    )
    torch.manual_seed(config.train.seed)
    trainer = Trainer(config, Network(config.network), engine, torch.device(device), threads=usable_cores())
    trainer.train_batch()
    began = time.perf_counter()
    spent = dict(trainer.train_batch()["seconds"])
    whole = time.perf_counter() - began
    trainer.close()
    before = {part: spent.pop(part, 0.0) for part in ("generate", "start")}
    each = (whole - sum(before.values())) / iterations
    return {
        "what": "training iteration", "value": each * 1e3, "unit": "ms", "batch": batch, "rollouts": rollouts,
        "iterations": iterations, "rollouts_per_second": batch * rollouts / each, "before": before,
        "ms": {part: seconds / iterations * 1e3 for part, seconds in spent.items()},
    }  # fmt: skip
