"""The GPU engine against the CPU engine: the same routes, costs and views, on the same seeds.

Run by test_gpu.py where pytest is, and by run.py where it is not:

    python tests/gpu/agree.py VARIANT[+limits][+cost] SOURCE [PLACEMENT] [--small]
    python tests/gpu/agree.py special
    python tests/gpu/agree.py regions
    python tests/gpu/agree.py large N

Says what it is about to do before it does it. With NDSVRP_TRACE=1 every kernel is named as it is launched, and waited
for: the last name is the one that hangs. After AGREE_LIMIT seconds, if set, it tells where it is and ends.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from ndsvrp.engine.base import Recipe, Regions
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.problem import Problem
from ndsvrp.search.start import start
from parity.problems import VARIANTS, random_problem

KINDS = [(v, s) for v in VARIANTS for s in ("none", "dimacs", "durations")]  # every set of rules, every distance
RECIPES = [
    Recipe(
        rule="string", sorted_orders=True, all_routes=True, blink=0.05, tails=20, serve_bonus=0.3, weigh_unserved=True
    ),
    Recipe(rule="related", removals=15, orders=5),
    Recipe(rule="random", removals=9, orders=2, all_routes=True, blink=0.3, open_route=0.2, serve_bonus=2.0),
    Recipe(rule="string", orders=5, sorted_orders=True, string_depth=0.6, tails=40, tails_share=0.5, open_cheaper=0.5),
    Recipe(rule="string", sorted_orders=True, all_routes=True, insert_near=32, blink=0.05, tails=20, tails_share=0.5),
    Recipe(rule="string", orders=2, sorted_orders=True, all_routes=True, insert_near=40, blink=0.2),
]


def say(what: str) -> None:
    """What is about to happen, for those that read the log of a job that hung."""
    if __name__ == "__main__":
        print(f"    {what}", flush=True)


def trace(cuda: CudaEngine) -> None:
    """Name every kernel before it runs and wait for it."""
    launch = cuda.device.launch

    def traced(kernel: Any, grid: int, threads: int, shared: int, *arguments: Any) -> None:
        say(f"        {names.get(id(kernel), '?')} blocks={grid} threads={threads} shared={shared}")
        launch(kernel, grid, threads, shared, *arguments)
        cuda.device.torch.cuda.synchronize()

    find, names = cuda.device.kernel, dict[int, str]()

    def named(file: str, name: str, macros: Any) -> Any:
        kernel = find(file, name, macros)
        near = [value for key, value in macros if "NEAR" in key]
        names[id(kernel)] = f"{name} near={''.join(near)}"
        return kernel

    cuda.device.launch, cuda.device.kernel = traced, named  # type: ignore[method-assign]


def everything(engine: Any, state: Any) -> list[Any]:
    chains = range(len(state.problem_of))
    routes = [[engine.export(state, i, best=best).routes for i in chains] for best in (True, False)]
    view = [part.tolist() for part in engine.view(state)]
    return [routes, *(part.tolist() for part in state.stats()[:3]), view]


def trajectory(engine: Any, problems: list[Problem], which: list[int], seed: int, steps: int) -> list[Any]:
    """Start, every recipe in sequence and in parallel, given removals, exchange."""
    state = start(engine, problems, which, seed, rounds=2)
    seen = [everything(engine, state)]
    chains = len(which)
    side = np.array([problems[i].side() for i in which])[:, None]
    for iteration, recipe in enumerate(RECIPES):
        say(f"    {engine.name}: {recipe.rule}, {recipe.orders} orders")
        prices = np.array([problem.side() for problem in problems]) * [np.inf, 0.3, 0.01][iteration % 3]
        engine.set_prices(state, prices)
        engine.improve(state, recipe, None, np.full((chains, steps), 0.05) * side, seed, iteration)
        kept, always = iteration % 2 == 0, iteration % 4 == 0
        deltas = engine.evaluate(state, recipe, None, 5, seed, iteration, keep_best=kept, always=always)
        seen += [deltas.tolist(), everything(engine, state)]
    fewest = min(problem.customers for problem in problems)
    rng = np.random.default_rng(seed)
    for removals in sorted({1, min(fewest, 15), min(fewest, 32)}):
        lists = [[rng.permutation(fewest)[:removals] + 1 for _ in range(4)] for _ in which]
        recipe, removed = Recipe(removals=removals, orders=5), np.array(lists, np.int32)
        removed[:, -1, 1 + removals // 2 :] = 0  # a shorter list
        seen.append(engine.evaluate(state, recipe, removed, 4, seed, 90, keep_best=False).tolist())
        engine.improve(state, recipe, removed, np.full((chains, 4), 1e3) * side, seed, 91)
    engine.exchange(state, middle(state), seed, 92)
    seen.append(everything(engine, state))
    engine.restart(state, [None if i % 3 == 1 else tour for i, tour in enumerate(engine.tours(state))])
    seen.append(everything(engine, state))
    engine.improve(state, RECIPES[1], None, np.full((chains, steps), 0.01) * side, seed, 92)
    seen.append(everything(engine, state))
    for iteration, recipe in enumerate(RECIPES, 93):
        say(f"    {engine.name}: {recipe.rule} in regions")
        recipe = replace(recipe, regions=2 + iteration % 3)
        engine.set_prices(state, np.array([problem.side() for problem in problems]) * [0.3, np.inf][iteration % 2])
        engine.improve(state, recipe, None, np.full((chains, steps), 0.02) * side, seed, iteration)
        seen += [everything(engine, state), state.stats().made]
    recipe = Recipe(removals=min(fewest, 15), orders=5, regions=3)

    def choose(regions: Regions) -> Any:
        """Lists of any customers: those of other parts are not removed."""
        counts, customers = (np.asarray(array.tolist()) for array in regions)
        seen.append([row[:count].tolist() for row, count in zip(customers, counts, strict=True)])
        lists = [[rng.permutation(fewest)[: recipe.removals] + 1 for _ in range(steps)] for _ in counts]
        return np.array(lists, np.int32)

    say(f"    {engine.name}: given, in regions")
    engine.improve(state, recipe, choose, np.full((chains, steps), 0.05) * side, seed, 99)
    seen += [everything(engine, state), state.stats().made]
    return seen


def middle(state: Any) -> Any:
    """(problems,) a reach that divides the chains of a problem: half of what there is between best and worst."""
    of = [state.stats().costs[state.problem_of == i] for i in range(len(state.problems))]
    return np.array([np.ptp(costs) / 2 if len(costs) else 0.0 for costs in of])


def difference(ours: Any, theirs: Any, path: str = "") -> str:
    """Where two nested lists part."""
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)) and len(ours) == len(theirs):
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            if a != b:
                return difference(a, b, f"{path}[{i}]")
    return f"{path}: {str(ours)[:200]} / {str(theirs)[:200]}"


def compare(problems: list[Problem], which: list[int], seed: int, steps: int, cuda: CudaEngine) -> None:
    sizes = [problem.customers for problem in problems]
    say(f"N = {sizes}, seed {seed}, {cuda.placement}")
    ours = trajectory(CpuEngine(), problems, which, seed, steps)
    theirs = trajectory(cuda, problems, which, seed, steps)
    assert ours == theirs, f"N = {sizes}, seed {seed}, {cuda.placement}: {difference(ours, theirs)}"


def drawn(seed: int, variant: str, source: str, n: int, vehicles: bool = False) -> Problem:
    """A random problem; a variant with `+limits` has limits on routes, with `+cost` a cost of vehicles."""
    plain, *others = variant.split("+")
    return random_problem(
        seed, plain, source, customers=n, vehicles=vehicles, limits="limits" in others, vehicle_cost="cost" in others
    )


def check_kind(variant: str, source: str, cuda: CudaEngine, small: bool = False) -> int:
    """Problems of one kind, of many sizes, with and without a limited fleet; a batch of several at once."""
    seeds = range(1) if small else range(4)
    sizes = (5, 40) if small else (1, 2, 7, 61, 200)
    for n in sizes:
        for seed in seeds:
            problem = drawn(700 + seed, variant, source, n, vehicles=seed % 3 == 1)
            compare([problem], [0, 0, 0], seed, 3 if small else 8, cuda)
    if small:
        return len(sizes) * len(seeds)
    batch = [drawn(800 + i, variant, source, n) for i, n in enumerate((3, 40, 90))]
    compare(batch, [2, 0, 1, 1, 2], 5, 8, cuda)
    return len(sizes) * len(seeds) + 1


def check_special(cuda: CudaEngine) -> int:
    """Full vehicles, nobody served, long routes, kinds mixed in one batch."""
    for n in (1, 2, 29, 61):
        problem = random_problem(n, "cvrp", "none", customers=n)
        compare([problem.replace(demand=np.r_[0.0, np.full(n, 5.0)], capacity=5.0)], [0, 0], n, 10, cuda)
    rng = np.random.default_rng(1)
    far = np.r_[[[0.0, 0.0]], rng.random((60, 2)) + 1.0]
    cheap = Problem(coordinates=far, demand=np.r_[0, np.ones(60)], capacity=9, prize=np.r_[0, np.full(60, 1e-3)])
    compare([cheap], [0, 0], 1, 10, cuda)
    long = random_problem(3, "cvrp", "round", customers=150, layout="grid")
    wide = np.tile([0.0, 1e5], (151, 1))
    compare([long.replace(demand=np.r_[0.0, np.ones(150)], capacity=140.0, windows=wide)], [0, 0], 1, 10, cuda)
    mixed = [random_problem(i, v, s, vehicles=i % 3 == 0) for i, (v, s) in enumerate(KINDS)]
    compare(mixed, [3, 0, 7, 11, 1, 3, 9], 2, 4, cuda)
    return 7


def check_large(cuda: CudaEngine, sizes: tuple[int, ...] = (500, 2000, 10_000)) -> int:
    for n in sizes:
        for variant in ("cvrp", "vrptw", "pcvrp"):
            problem = random_problem(n, variant, "none", customers=n, layout="uniform", scale=1000.0)
            problem = problem.replace(demand=np.r_[0.0, 1.0 + np.arange(n) % 9], capacity=100.0)
            compare([problem], [0, 0], 1, 20, cuda)
    return 3 * len(sizes)


def check_regions(cuda: CudaEngine) -> int:
    """Many regions, some of them empty, over several iterations with exchanges."""
    for variant, n, regions in (("cvrp", 2000, 128), ("vrptw", 600, 40), ("pcvrp", 1000, 64), ("cvrp", 6000, 33)):
        problem = random_problem(n, variant, "none", customers=n, layout="uniform", scale=1000.0)
        problem = problem.replace(demand=np.r_[0.0, 1.0 + np.arange(n) % 9], capacity=50.0)
        ends = []
        for engine in (CpuEngine(threads=os.cpu_count() or 1), cuda):
            say(f"    {engine.name}: {variant}, {n} customers, {regions} regions")
            state = start(engine, [problem], [0, 0], 1, rounds=0)
            ends.append([])
            for iteration in range(6):
                recipe = replace(RECIPES[iteration % 4], regions=regions)
                temperatures = np.broadcast_to(0.01 * problem.side(), (2, 50))
                engine.improve(state, recipe, None, temperatures, 1, iteration)
                engine.exchange(state, middle(state), 1, iteration)
                ends[-1] += [everything(engine, state), state.stats().made]
        assert ends[0] == ends[1], f"{variant}, {n} customers, {regions} regions: {difference(*ends)}"
    return 4


def check_tensors(cuda: CudaEngine) -> int:
    """Tensors in, tensors out, the same numbers; on a stream of their own."""
    torch = cuda.device.torch
    problem = random_problem(1, "cvrp", "none", customers=80, layout="uniform")
    state, other = (start(engine, [problem], [0] * 6, 1, rounds=3) for engine in (cuda, CpuEngine()))
    removed = np.argsort(np.random.default_rng(1).random((6, 9, 80)), axis=-1)[..., :12].astype(np.int32) + 1
    recipe, temperatures = Recipe(removals=12, orders=5), np.full((6, 9), 0.01)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        lists = torch.as_tensor(removed, device="cuda")
        deltas = cuda.evaluate(state, recipe, lists, 9, 1, 1, keep_best=True)
        cuda.improve(state, recipe, lists, torch.as_tensor(temperatures, device="cuda"), 1, 2)
        cuda.exchange(state, np.zeros(1), 1, 2)
        view = cuda.view(state, on_device=True)
        torch.cuda.current_stream().synchronize()
    assert deltas.is_cuda and view.is_cuda
    cpu = CpuEngine()
    assert deltas.cpu().numpy().tolist() == cpu.evaluate(other, recipe, removed, 9, 1, 1, keep_best=True).tolist()
    cpu.improve(other, recipe, removed, temperatures, 1, 2)
    cpu.exchange(other, np.zeros(1), 1, 2)
    assert [part.cpu().tolist() for part in view] == [part.tolist() for part in cpu.view(other)]
    assert everything(cuda, state) == everything(cpu, other)
    return 1


def check_deadlines(cuda: CudaEngine) -> int:
    """A step that takes long is dropped, several launches leave no trace."""
    problem = random_problem(2, "cvrp", "none", customers=3000, layout="uniform")
    state = start(cuda, [problem], [0, 0], 1, rounds=0)
    before = cuda.export(state, 0, best=False)
    everybody = Recipe(rule="random", removals=3000, all_routes=True, orders=2)
    for _ in range(2):  # the first time compiles
        began = time.perf_counter()
        cuda.improve(state, everybody, None, np.full((2, 10_000), -1e9), 1, 1, deadline=began + 0.3)
        state.stats()
        late = time.perf_counter() - began - 0.3
    assert late < 0.5, f"{late:.3f} s after the deadline"  # others may have the GPU meanwhile; see `nds bench gpu`
    assert cuda.export(state, 0, best=False) == before
    assert 0 <= state.stats().made < 20_000
    temperatures = np.full((2, 700), 0.01)  # in three launches
    cuda.improve(state, RECIPES[1], None, temperatures, 1, 2, deadline=time.perf_counter() + 60.0)
    other = start(CpuEngine(), [problem], [0, 0], 1, rounds=0)
    CpuEngine().improve(other, RECIPES[1], None, temperatures, 1, 2)
    assert state.stats().made == other.stats().made == 2 * 700
    assert everything(cuda, state) == everything(CpuEngine(), other)
    return 2


def main() -> None:
    if limit := os.environ.get("AGREE_LIMIT"):
        faulthandler.dump_traceback_later(float(limit), exit=True)
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    cuda = CudaEngine(placement=words[2] if len(words) > 2 else "auto")  # type: ignore[arg-type]
    if os.environ.get("NDSVRP_TRACE"):
        trace(cuda)
    if words[0] == "special":
        count = check_special(cuda) + check_tensors(cuda) + check_deadlines(cuda)
    elif words[0] == "regions":
        count = check_regions(cuda)
    elif words[0] == "large":
        count = check_large(cuda, (int(words[1]),))
    else:
        count = check_kind(words[0], words[1], cuda, "--small" in sys.argv)
    print(f"{' '.join(sys.argv[1:]):32} {count:4} passed")


if __name__ == "__main__":
    main()
