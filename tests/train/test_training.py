"""Training: it learns, and what a batch does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.errors import NdsError
from ndsvrp.generate import generate
from ndsvrp.policy import NetworkConfig
from ndsvrp.policy.rollout import sample
from ndsvrp.train.config import Recipe, Source, TrainConfig, Validation
from ndsvrp.train.loss import loss_of
from ndsvrp.train.run import train
from ndsvrp.train.states import prepare
from ndsvrp.train.validation import Validator, names_of
from train.small_runs import CPU, config, draw_batch, flat, log_of, trainer_of, watch

# --- it learns -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "term"), [("cvrp", True), ("cvrp", False), ("vrptw", False), ("pcvrp", False)])
def test_it_learns(problem: str, term: bool) -> None:
    """Fifteen batches, three seconds; the distance term, which may learn more than what the network reads, once.

    Solutions are improved little before they are saved: related removal must have something left to find, or any
    policy would look good beside it. 512 validation states: with 128, the ratio differs by a third between validation
    seeds. Seeds 1001 to 1003: 0.62 to 0.83 before training, 1.25 (VRPTW) to 2.02 after it.
    """
    settings = TrainConfig(
        network=NetworkConfig(
            width=32, heads=4, feed_forward=64, layers_before=1, layers_after=1, seed_bits=5, seed_width=32,
            distance_term=term,
        ),
        train=Recipe(
            seed=1, batch=32, iterations=5, rollouts=8, removals=5, orders=1, start_rounds=10, improvement_steps=1,
            warm_up_rollouts=10, learning_rate=1e-3, warm_up_steps=10, horizon=1000, average=0.99,
        ),
        validation=Validation(seed=1001, states=512, search_instances=0),
        data=(Source(problem=problem, customers=(40,)),),
    )  # fmt: skip
    trainer = trainer_of(settings)
    validator = Validator(settings, trainer.engine, CPU)
    untrained = validator.measure(trainer.average)["reward_ratio"]
    for _ in range(15):
        trainer.train_batch()
    trained = validator.measure(trainer.average)["reward_ratio"]
    assert 0.4 < untrained < 1.3, "neither hopeless nor good before"
    assert trained > 1.5 * untrained
    assert trained > 1.2, "better than related removal, and not by chance"


def test_measuring_changes_nothing() -> None:
    """Validation states are saved ones: measured twice, or before and after another network, they give the same."""
    settings = config()
    one, other = (trainer_of(replace(settings, train=replace(settings.train, seed=seed))) for seed in (3, 4))
    validator = Validator(settings, CpuEngine(), CPU)
    first, between, again = (validator.measure(trainer.network) for trainer in (one, other, one))
    assert first == again
    assert first["sets"]["cvrp10"]["related_reward"] == between["sets"]["cvrp10"]["related_reward"]
    assert first == Validator(settings, CpuEngine(threads=2), CPU).measure(one.network)


def test_every_source_and_size_is_measured() -> None:
    sources = (
        Source(customers=(8, 10, 10)), Source(problem="pcvrp", customers=(8,), layout="uniform"),
        Source(customers=(8,), customers_per_route=(2, 3)),
    )  # fmt: skip
    validator = Validator(config(data=sources), CpuEngine(), CPU)
    measured = validator.measure(trainer_of(config()).network)
    assert len(measured["sets"]) == 4, "short routes are a set of their own"
    assert len(validator.sets) == 4, "a size that is listed twice is measured once"
    figures = measured["sets"].values()
    for figure in figures:
        by_hand = figure["reward"] / figure["related_reward"] if figure["related_reward"] > 0 else None
        assert figure["reward_ratio"] == pytest.approx(by_hand)
    reward, related = (sum(figure[name] for figure in figures) for name in ("reward", "related_reward"))
    assert measured["reward_ratio"] == pytest.approx(reward / related)


def test_every_set_has_a_name_of_its_own() -> None:
    """Two files of the same name would otherwise share one figure."""
    files = ("north/mine.npz", "south/mine.npz", "mine-2", "south/mine")
    sets = [(Source(problem="cvrp", customers=(10,), files=file), 10) for file in files]
    sets.insert(2, (Source(problem="cvrp", customers=(10, 20), files="north/mine.npz"), 20))
    assert names_of(sets) == ["cvrp10-mine", "cvrp10-mine-2", "cvrp20-mine", "cvrp10-mine-2-2", "cvrp10-mine-3"]


def test_some_sizes_are_measured() -> None:
    """The others cost nothing, and those looked at give what they gave among all."""
    whole = config(data=(Source(customers=(8, 10)), Source(problem="pcvrp", customers=(8,))))
    some = replace(whole, validation=replace(whole.validation, customers=(8,)))
    network = trainer_of(whole).network
    figures, fewer = (Validator(settings, CpuEngine(), CPU).measure(network)["sets"] for settings in (whole, some))
    assert fewer == {name: figures[name] for name in ("cvrp8", "pcvrp8")}
    with pytest.raises(NdsError, match=r"validation\.customers: no data of 9 customers"):
        replace(whole, validation=replace(whole.validation, customers=(9,)))


def test_related_removal_may_find_nothing() -> None:
    """One customer: nobody can improve anything, and there is nothing to divide by."""
    settings = config(data=(Source(customers=(1,)),))
    measured = Validator(settings, CpuEngine(), CPU).measure(trainer_of(settings).network)
    assert measured["reward_ratio"] is None
    (figure,) = measured["sets"].values()
    assert figure == {"reward": 0, "related_reward": 0, "reward_ratio": None}


def test_a_run_in_which_related_removal_finds_nothing(tmp_path: Path) -> None:
    outcome = train(config(data=(Source(customers=(1,)),), instances=4), tmp_path, threads=1)
    assert outcome.validation["reward_ratio"] is None
    assert [row["reward_ratio"] for row in log_of(tmp_path) if row["kind"] == "validation"] == [None, None]


def test_short_search() -> None:
    settings = config()
    settings = replace(settings, validation=Validation(states=2, search_instances=2, search_iterations=2))
    figure = Validator(settings, CpuEngine(), CPU).measure(trainer_of(settings).network)["sets"]["cvrp10"]
    assert 1 < figure["cost"] < 10 and 1 < figure["related_cost"] < 10
    assert figure == Validator(settings, CpuEngine(), CPU).measure(trainer_of(settings).network)["sets"]["cvrp10"]


# --- one batch -------------------------------------------------------------------------------------------


def test_the_best_is_kept() -> None:
    """Line 18: each solution is replaced by the best found, or stays."""
    watched = watch(iterations=6, rollouts=12, batch=8, instances=8)
    watched.trainer.train_batch()
    assert len(watched.costs) == 6
    for (before, after), taught in zip(watched.costs, watched.signals, strict=True):
        assert after == pytest.approx(before - taught.reward.numpy(), abs=1e-6)
    gains = np.array([taught.reward.numpy() for taught in watched.signals])
    assert (gains > 1e-3).any() and (gains == 0).any(), "both happened"
    for (_, after), (before, _) in zip(watched.costs, watched.costs[1:], strict=False):
        assert np.array_equal(after, before)


def test_what_a_batch_reports() -> None:
    watched = watch(step_every=2)
    row = watched.trainer.train_batch()
    assert (row["batch"], row["instances"], row["steps"], row["problem"], row["customers"]) == (1, 4, 2, "cvrp", 10)
    assert row["cost_before"] == pytest.approx(watched.costs[0][0].mean())
    assert row["cost_after"] == pytest.approx(watched.costs[-1][1].mean())
    assert row["best_reward"] == pytest.approx(np.mean([taught.reward.mean() for taught in watched.signals]))
    assert row["mean_reward"] == pytest.approx(np.mean([taught.mean.mean() for taught in watched.signals]))
    assert row["cost_before"] - row["cost_after"] == pytest.approx(3 * row["best_reward"], abs=1e-6)
    assert row["gradient"] == pytest.approx(np.linalg.norm(watched.gradients[-1]), rel=1e-5)
    second = watched.trainer.train_batch()
    assert (second["batch"], second["instances"], second["steps"]) == (2, 8, 4)


@pytest.mark.parametrize(
    ("iterations", "every", "steps"), [(6, 0, 1), (6, 1, 6), (6, 2, 3), (6, 4, 2), (6, 10, 1), (1, 0, 1)]
)
def test_number_of_optimizer_steps(iterations: int, every: int, steps: int) -> None:
    watched = watch(iterations=iterations, step_every=every)
    watched.trainer.train_batch()
    assert watched.trainer.steps == len(watched.gradients) == steps
    adam = next(iter(watched.trainer.optimizer.state.values()))
    assert int(adam["step"]) == steps


def test_gradients_accumulate() -> None:
    """With a learning rate of 0 weights stay: one step per batch then has the mean of the gradients of single steps."""
    apart = watch(learning_rate=0.0, step_every=1)
    together = watch(learning_rate=0.0, step_every=0)
    weights = flat(apart.trainer.network)
    apart.trainer.train_batch()
    together.trainer.train_batch()
    assert np.array_equal(flat(apart.trainer.network), weights)
    assert len(apart.gradients) == 3 and min(map(np.linalg.norm, apart.gradients)) > 1e-3
    assert together.gradients[0] == pytest.approx(sum(apart.gradients) / 3, rel=1e-4, abs=1e-5)


def test_the_first_gradient_is_that_of_the_loss() -> None:
    """-(1/B) sum of advantage x log pi of the best rollouts, from the pieces."""
    watched = watch(iterations=1, step_every=1)
    trainer = watched.trainer
    batch = draw_batch(trainer.config.data, 3, 0, trainer.share)
    learning = prepare(CpuEngine(), batch.problems, trainer.config.train, trainer._seed(batch), 0, CPU)
    inputs, network = learning.shown(), trainer_of(trainer.config).network
    numbers = trainer._random_numbers(batch, 0, 6, 3)
    rollouts = sample(network, inputs, numbers)
    trainer.train_batch()
    taught, rows = watched.signals[0], torch.arange(4)
    assert rollouts is not None
    chosen = rollouts.removed[rows, taught.best, None]
    loss_of(network(inputs, chosen, numbers.seeds[rows, taught.best, None])[:, 0], taught.advantage).backward()
    assert np.linalg.norm(watched.gradients[0]) > 1e-3
    assert watched.gradients[0] == pytest.approx(flat(network, gradient=True), abs=1e-6)


def test_advantage_is_scaled_by_the_batch() -> None:
    plain, scaled = watch(scale_advantage=False, iterations=1), watch(scale_advantage=True, iterations=1)
    plain.trainer.train_batch()
    scaled.trainer.train_batch()
    taught = plain.signals[0]
    mean = float(taught.reward.mean())
    assert mean > 0
    assert taught.advantage.numpy() == pytest.approx((taught.reward - taught.mean).numpy(), rel=1e-5)
    assert scaled.signals[0].advantage.numpy() == pytest.approx(taught.advantage.numpy() / mean, rel=1e-5)
    assert scaled.gradients[0] == pytest.approx(plain.gradients[0] / mean, rel=1e-3, abs=1e-5)


def test_clipping() -> None:
    watched = watch(clip_gradient=0.01, step_every=1)
    row = watched.trainer.train_batch()
    assert np.linalg.norm(watched.gradients[0]) > 0.1
    for before, applied in zip(watched.gradients, watched.applied, strict=True):
        size = max(0.01, np.linalg.norm(before))  # nothing was gained: 0
        assert applied == pytest.approx(before * 0.01 / size, rel=1e-3, abs=1e-8)
    assert row["gradient"] == pytest.approx(np.linalg.norm(watched.gradients[-1]), rel=1e-4)
    for limit in (0.0, 1e6):
        free = watch(clip_gradient=limit, step_every=1)
        free.trainer.train_batch()
        assert all(map(np.array_equal, free.gradients, free.applied))


def test_learning_rate() -> None:
    trainer = trainer_of(config(learning_rate=1e-3, warm_up_steps=4, horizon=100, final_rate=0.1))

    def rates(*steps: int) -> list[float]:
        found = []
        for trainer.steps in steps:
            found.append(trainer.learning_rate())
        return found

    # Rising by quarters; along the cosine 1 at step 0, 0.1 + 0.9 / 2 halfway, 0.1 at the end and beyond.
    fall = [0.1 + 0.45 * (1 + np.cos(np.pi * step / 100)) for step in (0, 1, 2, 3, 4)]
    rise = [0.25, 0.5, 0.75, 1, 1]
    assert rates(0, 1, 2, 3, 4) == pytest.approx([1e-3 * r * f for r, f in zip(rise, fall, strict=True)])
    assert rates(0, 50, 100, 101, 10_000) == pytest.approx([2.5e-4, 5.5e-4, 1e-4, 1e-4, 1e-4])
    constant = trainer_of(config(learning_rate=1e-3, warm_up_steps=0, schedule="constant"))
    for constant.steps in (0, 1, 10_000):
        assert constant.learning_rate() == 1e-3


def test_the_optimizer_goes_by_the_schedule() -> None:
    watched = watch(step_every=1, learning_rate=1e-3, warm_up_steps=4, horizon=100, schedule="constant")
    watched.trainer.train_batch()
    watched.trainer.train_batch()
    assert watched.rates == pytest.approx([2.5e-4, 5e-4, 7.5e-4, 1e-3, 1e-3, 1e-3])


@pytest.mark.parametrize(("average", "decays"), [(0.9, (1 / 11, 2 / 12)), (0.15, (1 / 11, 0.15)), (0.01, (0.01, 0.01))])
def test_running_mean(average: float, decays: tuple[float, float]) -> None:
    """It forgets faster at first: after n steps by n / (n + 10), if that is less than the decay asked for."""
    trainer = trainer_of(config(average=average, step_every=1, iterations=1))
    expected = flat(trainer.network)
    assert np.array_equal(flat(trainer.average), expected)
    for decay in decays:
        trainer.train_batch()
        expected = decay * expected + (1 - decay) * flat(trainer.network)
        assert flat(trainer.average) == pytest.approx(expected, abs=1e-6)
    assert not np.allclose(flat(trainer.average), flat(trainer.network), rtol=0, atol=1e-5)
    assert not any(weight.requires_grad for weight in trainer.average.parameters())


def test_without_a_running_mean() -> None:
    trainer = trainer_of(config(average=0.0))
    trainer.train_batch()
    assert trainer.average is trainer.network


@pytest.mark.parametrize("warm_up", ["related", "policy"])
def test_improvement_steps(warm_up: str) -> None:
    """Both ways of improving the start do improve it; without any, training begins where `start` ends."""
    costs = {}
    for steps in (0, 8):
        watched = watch(warm_up=warm_up, improvement_steps=steps, warm_up_rollouts=20, start_rounds=0, hot=1e-3)
        watched.trainer.train_batch()
        costs[steps] = watched.costs[0][0]
    problems = generate("cvrp", 10, count=4, seed=3)
    there_and_back = [2 * problem.length(np.zeros(11, int), np.arange(11)).sum() for problem in problems]
    assert costs[0] == pytest.approx(there_and_back, rel=1e-5)
    assert np.all(costs[8] < 0.8 * costs[0])


def test_fewer_customers_than_removals() -> None:
    watched = watch(data=(Source(customers=(2,)), Source(customers=(1,))), removals=15)
    for _ in range(6):
        row = watched.trainer.train_batch()
        assert np.isfinite(row["loss"]) and np.isfinite(row["gradient"])
    assert np.isfinite(flat(watched.trainer.network)).all()


@pytest.mark.parametrize("problem", ["cvrp", "vrptw", "pcvrp", "pcvrptw"])
def test_every_problem(problem: str) -> None:
    watched = watch(data=(Source(problem=problem, customers=(12,)),))
    row = watched.trainer.train_batch()
    assert row["problem"] == problem
    assert row["best_reward"] > 0 and np.isfinite(flat(watched.trainer.network)).all()


def test_same_seed_same_weights_whatever_the_engine_threads() -> None:
    found = []
    for threads, seed in ((1, 3), (2, 3), (1, 4)):
        trainer = trainer_of(config(seed=seed))
        trainer.engine = CpuEngine(threads=threads)
        trainer.train_batch()
        found.append(flat(trainer.network))
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
