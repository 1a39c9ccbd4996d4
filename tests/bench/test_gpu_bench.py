"""What `nds bench gpu` measures, on a CPU and small; bars and tables."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from clocks import FakeClock
from ndsvrp import generate
from ndsvrp.bench import gpu, gpu_quality, gpu_search
from ndsvrp.bench.gpu_engine import _row, seconds_of
from ndsvrp.bench.rows import record
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.errors import InstanceError, NdsError
from ndsvrp.io import environment
from ndsvrp.policy import Network, NetworkConfig, Policy

TINY = NetworkConfig(width=8, heads=2, feed_forward=8, layers_before=1, layers_after=1, seed_bits=6, seed_width=4)


def policy() -> Policy:
    torch.manual_seed(0)
    return Policy(Network(TINY))


def test_parts_of_an_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_search, "ROLLOUTS", 5)
    problem = generate("cvrp", 20, seed=1)[0]
    rows = {row["what"]: row for row in gpu_search.iteration(problem, policy(), CpuEngine(), chains=4, repeats=3)}
    assert list(rows) == [
        "view", "encode", "decode", "decode with encode", "policy", "rebuild", "exchange and report", "iteration",
        "between",
    ]  # fmt: skip
    assert all(row["value"] == pytest.approx(1e3 * row["seconds"]) for row in rows.values() if row["unit"] == "ms")
    both = rows["decode with encode"]
    assert both["value"] == pytest.approx(4 * 5 / both["seconds"] / 1e6)
    assert rows["encode"]["seconds"] + rows["decode"]["seconds"] == pytest.approx(both["seconds"])
    parts = sum(rows[name]["seconds"] for name in ("encode", "decode", "rebuild", "between"))
    assert rows["iteration"]["seconds"] == pytest.approx(parts) and rows["iteration"]["seconds"] > 0


@pytest.mark.slow
def test_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_search, "ROLLOUTS", 5)
    problems = generate("cvrp", 20, count=3, seed=1)
    one = gpu_search.search(problems[:1], policy(), 0.3, 2, "cpu")
    assert one["what"] == "search" and one["iterations"] > 0
    # The last iteration may have been cut short.
    assert one["value"] * 1e6 * one["seconds"] == pytest.approx(one["iterations"] * 2 * 5 * 5, abs=2 * 5 * 5 + 0.1)
    assert one["ms_per_iteration"] == pytest.approx(1e3 * one["seconds"] / one["iterations"])
    several = gpu_search.search(problems, policy(), 0.2, 2, "cpu")
    assert several["what"] == "search, 3 together"
    assert 0.6 <= several["seconds"] < 1.5
    monkeypatch.setattr(gpu_search, "LIMITS", (0.05, 0.1))
    limit = gpu_search.lateness(problems[0], policy(), 2, "cpu")
    assert limit["value"] == max(limit["late"]) and len(limit["late"]) == 2


def test_getting_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NDSVRP_CACHE", "CUDA_CACHE_PATH"):
        monkeypatch.setenv(name, "elsewhere")  # set back when the test is over
    began = time.perf_counter()
    seconds = gpu_search._ready("vrptw", "related", 20, 2, "cpu", str(tmp_path))
    assert 0 < seconds <= time.perf_counter() - began
    assert os.environ["NDSVRP_CACHE"] == os.environ["CUDA_CACHE_PATH"] == str(tmp_path)


@pytest.mark.slow
def test_training() -> None:
    row = gpu_search.training(
        12, CpuEngine(), "cpu", batch=2, rollouts=4, iterations=3, removals=4, start_rounds=2, improvement_steps=1,
        warm_up_rollouts=4,
    )  # fmt: skip
    assert row["unit"] == "ms" and set(row["before"]) == {"generate", "start"}
    assert {"rollout", "evaluate", "gradient", "optimizer"} <= set(row["ms"])
    assert 0 < sum(row["ms"].values()) <= row["value"] * 1.001
    assert row["rollouts_per_second"] == pytest.approx(2 * 4 / (row["value"] / 1e3))


def test_the_median_of_calls_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    waits, clock = iter([0.05, 0.05, 0.001, 0.03, 0.002]), FakeClock(monkeypatch, tick=0.0)

    def call(i: int) -> None:
        clock.now += next(waits)

    assert seconds_of(call, 3, "cpu") == pytest.approx(0.002)


def test_bars() -> None:
    """128 chains x 200 rollouts x 5 orders are 128,000 solutions: in 2 ms 64 M/s; 200 steps in 4 ms are 20 us each."""
    fast = gpu._with_bar({"instance": "cvrp500", **_row("evaluate", "related", 0.002, 128)}, 128)
    assert (fast["value"], fast["unit"], fast["bar"], fast["met"]) == (64.0, "M solutions/s", "at least 50", True)
    slow = gpu._with_bar({"instance": "cvrp500", **_row("improve", "related", 0.004, 128)}, 128)
    assert (slow["value"], slow["unit"], slow["bar"], slow["met"]) == (20.0, "us per step", "at most 15", False)
    other = gpu._with_bar({"instance": "cvrp500", **_row("improve", "scattered", 0.004, 128)}, 128)
    assert "bar" not in other
    text = Console(width=100)
    with text.capture() as shown:
        text.print(gpu.table([fast, slow, other]))
    lines = [line for line in shown.get().splitlines() if "cvrp500" in line]
    assert len(lines) == 2
    assert "at least 50" in lines[0] and "64.00" in lines[0] and "met" in lines[0] and "NOT" not in lines[0]
    assert "at most 15" in lines[1] and "20.00" in lines[1] and "NOT MET" in lines[1]
    assert gpu.line(slow) == "cvrp500 improve related             20.000 us per step  (at most 15: NOT MET)"


def test_bars_are_for_128_chains() -> None:
    assert "bar" not in gpu._with_bar({"instance": "cvrp500", **_row("evaluate", "related", 0.002, 64)}, 64)


def test_rows_name_a_commit_given_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "__file__", str(tmp_path / "a/b/c/d.py"))  # there is no checkout
    monkeypatch.setenv(environment.COMMIT, "1234abc")
    environment._commit.cache_clear()
    try:
        record([{"set": "gpu", "what": "view"}], tmp_path / "x.jsonl")
        assert json.loads((tmp_path / "x.jsonl").read_text())["commit"] == "1234abc"
    finally:
        environment._commit.cache_clear()


def test_unknown_parts_are_refused() -> None:
    with pytest.raises(
        NdsError, match=r"unknown part 'all' \(known: engine, iteration, search, training, memory, start, quality\)"
    ):
        gpu.run(only=["all"])


def test_what_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean costs of the first instances with their bars; the policy compared with related removal."""
    calls = []

    def run(
        paths: list[Path], solvers: list[str], times: list[float], which: str, seeds: list[int], **more: Any
    ) -> list[dict[str, Any]]:
        (path,), (seconds,), (seed,) = paths, times, seeds
        calls.append((path.name, solvers, seconds, which, seed, more["request"].ruin, more["together"]))
        cost = 50.0 if more["request"].ruin == "related" else 35.0
        same = {"feasible": True, "seconds": seconds, "settings": {"model": "m"} if cost == 35 else {}}
        return [{**same, "instance": str(i), "cost": cost + i} for i in (0, 1)]

    monkeypatch.setattr(gpu_quality, "run", run)
    with pytest.raises(InstanceError, match=r"cvrp500\.npz: no such file"):
        list(gpu_quality.measure(tmp_path))
    for asked in gpu_quality.ASKED:
        (tmp_path / f"{asked.name}.npz").touch()
    rows = [gpu._with_bar(row, 128) for row in gpu_quality.measure(tmp_path)]
    assert calls == [
        ("cvrp500.npz", ["nds"], 4.0, "0-15", 1, "policy", 1), ("cvrp500.npz", ["nds"], 4.0, "0-15", 1, "policy", 16),
        ("vrptw500.npz", ["nds"], 6.0, "0-7", 1, "policy", 1), ("vrptw500.npz", ["nds"], 6.0, "0-7", 1, "related", 1),
        ("pcvrp500.npz", ["nds"], 6.0, "0-7", 1, "policy", 1), ("pcvrp500.npz", ["nds"], 6.0, "0-7", 1, "related", 1),
    ]  # fmt: skip
    assert [row.get("model") for row in rows[:4]] == ["m", "m", "m", None]
    values = [(gpu.named(row), row["value"], row.get("met")) for row in rows]
    below = pytest.approx(100 * 15 / 50.5)
    assert values == [
        ("cvrp500 mean cost of 16 in 4 s policy", 35.5, True),
        ("cvrp500 mean cost of 16 in 4 s, 16 together policy", 35.5, True),
        ("vrptw500 mean cost of 8 in 6 s policy", 35.5, True), ("vrptw500 mean cost of 8 in 6 s related", 50.5, None),
        ("vrptw500 policy below related", below, True),
        ("pcvrp500 mean cost of 8 in 6 s policy", 35.5, True), ("pcvrp500 mean cost of 8 in 6 s related", 50.5, None),
        ("pcvrp500 policy below related", below, True),
    ]  # fmt: skip


def test_a_search_that_finds_nothing_has_no_mean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for asked in gpu_quality.ASKED:
        (tmp_path / f"{asked.name}.npz").touch()
    monkeypatch.setattr(gpu_quality, "run", lambda *_, **__: [{"instance": "0003", "error": "no GPU"}])
    with pytest.raises(NdsError, match=r"^cvrp500 0003: no GPU$"):
        list(gpu_quality.measure(tmp_path))
    for wrong in ({"only": ["quality"]}, {"only": ["engine"], "sets": tmp_path}):
        with pytest.raises(NdsError, match=r"^the part 'quality' and the folder of the sets go together$"):
            gpu.run(**wrong)  # type: ignore[arg-type]
