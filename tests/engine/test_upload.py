"""Problems for a GPU: neighbour lists as the core makes them, everything where its record says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ndsvrp.engine import upload
from ndsvrp.engine.shared import coordinates_of, make_instance
from ndsvrp.engine.structs import INSTANCE
from ndsvrp.engine.ticks import Ticks
from ndsvrp.engine.upload import near_by_points, prepare, send
from ndsvrp.generate import generate
from ndsvrp.problem import Problem
from parity.problems import random_problem


def on_grid(n: int, side: int, seed: int) -> Problem:
    """Many customers at the same distance, some in the same place."""
    places = np.random.default_rng(seed).integers(0, side, (n + 1, 2)).astype(float)
    return Problem(coordinates=places, demand=np.r_[0.0, np.ones(n)], capacity=5.0, metric="round")


PROBLEMS = [
    *generate("cvrp", 300, count=2, seed=1),
    *generate("pcvrp", 200, count=2, seed=2),
    *generate("vrptw", 60, seed=3),
    on_grid(150, 6, 4),
    on_grid(80, 30, 5),
    on_grid(40, 1, 6),
    *(problem for n in (1, 2, 3, 17) for problem in generate("cvrp", n, seed=n)),
]


@pytest.mark.parametrize("at_once", [1, 5_000, 1 << 24])
@pytest.mark.parametrize("neighbours", [1, 15, 256])
def test_the_same_neighbours_as_the_core(neighbours: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload, "AT_ONCE", at_once)
    for problem in PROBLEMS:
        expected = make_instance(Ticks(problem), neighbours).near
        points = Ticks(problem).points
        assert points is not None
        x, y = torch.from_numpy(points.astype(np.float32).T.copy())[:, None]
        found = near_by_points(torch, x, y, expected.shape[1])
        assert np.array_equal(found[0].numpy(), expected), problem.name


def array(block: torch.Tensor, record: np.ndarray, name: str, length: int, kind: type) -> np.ndarray:
    """What a record points to."""
    at = int(record[name]) - block.data_ptr()
    return block[at : at + length * np.dtype(kind).itemsize].numpy().view(kind)


def test_what_is_uploaded() -> None:
    """Sizes mixed, kinds apart: every array is where its record says, neighbour lists included."""
    problems = [
        *generate("cvrp", 20, count=3, seed=1), *generate("cvrp", 9, seed=1), *generate("cvrp", 20, seed=4),
        random_problem(5, "pcvrptw", "durations", customers=12), *generate("vrptw", 11, count=2, seed=1),
    ]  # fmt: skip
    made = prepare(problems, [0, 1, 2, 3, 4, 4, 5, 6, 7], None, 6)
    assert [group.members.tolist() for group in made.groups] == [[0, 1, 2, 3, 4, 5], [6], [7, 8]]
    assert [group.problem_of.tolist() for group in made.groups] == [[0, 1, 2, 3, 4, 4], [0], [0, 1]]
    inside = [[0, 1, 2, 3, 4], [5], [6, 7]]
    for group, numbers in zip(made.groups, inside, strict=True):
        block = send(torch, group, "cpu")
        table = block[: len(numbers) * INSTANCE.itemsize].numpy().view(INSTANCE)
        for record, number in zip(table, numbers, strict=True):
            ticks, n = Ticks(problems[number]), problems[number].customers
            near = make_instance(ticks, 6).near
            assert (record["n"], record["near_count"]) == (n, near.shape[1])
            assert array(block, record, "near", near.size, np.int32).tolist() == near.ravel().tolist()
            assert array(block, record, "demand", n + 1, np.int32).tolist() == ticks.fields["demand"].tolist()
            ranks = ticks.sort_ranks()[1]
            assert array(block, record, "rank", ranks.size, np.int32).tolist() == ranks.ravel().tolist()
            assert record["capacity"] == ticks.fields["capacity"] and record["sorts"] == len(ranks)
            if problems[number].has_windows:
                assert array(block, record, "due", n + 1, np.int32).tolist() == ticks.fields["due"].tolist()
            else:
                assert record["due"] == record["ready"] == 0
            if number == 5:
                assert ticks.length_matrix is not None and ticks.time_matrix is not None
                for name, matrix in (("length", ticks.length_matrix), ("time", ticks.time_matrix)):
                    assert array(block, record, name, (n + 1) ** 2, np.int32).tolist() == matrix.ravel().tolist()
                points = coordinates_of(ticks)[0]
                for name, values in zip("xy", points, strict=True):
                    assert array(block, record, name, n + 1, np.float32).tolist() == values.tolist()
            else:
                assert record["length"] == record["time"] == 0
    assert made.per_unit.tolist() == [Ticks(problems[i]).per_unit for i in made.problem_of]


def test_a_matrix_serves_for_times_too() -> None:
    problem = random_problem(7, "vrptw", "matrix", customers=8)
    (group,) = prepare([problem], [0], None, 4).groups
    assert group.table["time"][0] == group.table["length"][0] > 0


def test_packed_twice_uploaded_twice() -> None:
    """Uploading leaves what was packed as it is: pointers of one block do not get into another."""
    (group,) = prepare(generate("cvrp", 20, count=3, seed=1), [0, 1, 2], None, 6).groups
    one, other = (send(torch, group, "cpu") for _ in range(2))
    assert one.data_ptr() != other.data_ptr()
    for block in (one, other):
        table = block[: 3 * INSTANCE.itemsize].numpy().view(INSTANCE)
        assert [array(block, record, "demand", 21, np.int32)[0] for record in table] == [0, 0, 0]
        assert all(block.data_ptr() < int(record["near"]) < block.data_ptr() + len(block) for record in table)
