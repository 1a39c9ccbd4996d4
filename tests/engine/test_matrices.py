"""What the core computes of a matrix: coordinates by which routes are skipped, and shortcuts."""

from __future__ import annotations

import ndsvrp._core as _core
import numpy as np
import pytest

from ndsvrp import Problem, generate
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.engine.shared import instance_fields, make_instance
from ndsvrp.engine.ticks import ticks_of


def matrix(kind: str, nodes: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    places = random.random((nodes, 2)) * 1e6
    length = np.hypot(*(places[:, None] - places).transpose(2, 0, 1))
    if kind == "one-way":
        length *= random.uniform(1, 3, length.shape)
    elif kind == "without order":
        length = random.random(length.shape) ** 4 * 1e6
    elif kind == "far":
        length[random.random(length.shape) < 0.3] = (1 << 28) + 1
    elif kind == "zero":
        length[:] = 0
    np.fill_diagonal(length, 0)
    return np.rint(length).astype(np.int32)


@pytest.mark.parametrize("kind", ["plane", "one-way", "without order", "far", "zero"])
@pytest.mark.parametrize("nodes", [2, 3, 70])
def test_no_nodes_are_farther_apart_than_by_the_matrix(kind: str, nodes: int) -> None:
    for seed in range(5):
        length = matrix(kind, nodes, seed)
        points, margin = _core.landmark_coordinates(length)
        apart = np.abs(points[:, :, None].astype(float) - points[:, None]).max(axis=0)
        assert np.all(apart <= np.minimum(length, length.T) + margin)
        assert margin <= 2 + (int(length.max()) >> 22)


def test_nodes_in_a_plane_are_seen_apart() -> None:
    length = matrix("plane", 200, 1)
    points, _ = _core.landmark_coordinates(length)
    apart = np.abs(points[:, :, None] - points[:, None]).max(axis=0)
    others = ~np.eye(200, dtype=bool)
    assert np.mean(apart[others] / length[others]) > 0.8


def test_two_landmarks_on_a_line() -> None:
    """Nodes at 0, 3, 7 and 12: the depot is at one end, so that its ways are exact coordinates."""
    place = np.array([0, 3, 7, 12])
    points, margin = _core.landmark_coordinates(np.abs(place[:, None] - place).astype(np.int32))
    assert margin == 2
    apart = np.abs(points[:, :, None] - points[:, None]).max(axis=0)
    assert apart.tolist() == np.abs(place[:, None] - place).tolist()


def test_fields_of_an_instance() -> None:
    problem = generate("cvrp", 9, seed=1)[0]
    assert problem.coordinates is not None
    length = np.hypot(*(problem.coordinates[:, None] - problem.coordinates).T)
    ticks = ticks_of(problem.replace(coordinates=None, distance=length))
    points, margin = _core.landmark_coordinates(ticks.length_matrix)
    fields = instance_fields(ticks)
    assert [fields["x"].tolist(), fields["y"].tolist(), fields["box_margin"]] == [*points.tolist(), margin]


def by_matrix(length: np.ndarray) -> Problem:
    demand = np.r_[0.0, np.ones(len(length) - 1)]
    return Problem(distance=length, demand=demand, capacity=9, metric="round")


@pytest.mark.parametrize("kind", ["plane", "one-way", "without order", "zero"])
@pytest.mark.parametrize("nodes", [2, 3, 9, 24])
def test_shortcuts(kind: str, nodes: int) -> None:
    length = matrix(kind, nodes, 1) // 100
    instance = make_instance(ticks_of(by_matrix(length)))
    assert instance.shortcuts is None
    instance.find_shortcuts("auto")
    expected = [
        max(0, max(length[a, b] - length[a, c] - length[c, b] for a in range(nodes) for b in range(nodes)))
        for c in range(1, nodes)
    ]
    assert instance.shortcuts[1:] == expected


def test_a_shortcut() -> None:
    """From the depot to 2 takes 9, but 3 + 4 by way of 1; no other customer is a shortcut."""
    length = np.array([[0, 3, 9], [3, 0, 4], [6, 4, 0]])
    instance = make_instance(ticks_of(by_matrix(length)))
    instance.find_shortcuts("auto")
    assert instance.shortcuts == [0, 2, 0]


def test_shortcuts_are_found_where_there_is_a_matrix() -> None:
    plane = generate("cvrp", 9, seed=1)[0]
    state = CpuEngine().start([plane, by_matrix(matrix("one-way", 9, 2)), plane.replace(vehicle_cost=3.0)], [0, 1, 2])
    assert [instance.shortcuts is None for instance in state.instances] == [True, False, False]


def test_what_is_no_matrix() -> None:
    for shape in ((1, 1), (2, 3), (4,)):
        with pytest.raises(ValueError, match="a square matrix of two nodes or more"):
            _core.landmark_coordinates(np.zeros(shape, np.int32))
