"""Published solutions check to their published cost, to the last digit."""

from __future__ import annotations

from pathlib import Path

import pytest

from ndsvrp.check import check
from ndsvrp.io import read, read_solution
from ndsvrp.io.sol import matches_cost

LIB = Path(__file__).parent / "data/lib"

#: file, customers, capacity, metric, routes, cost as written in the .sol file, cost
PUBLISHED = [
    ("X/X-n106-k14.vrp", 105, 600, "round", 14, 26362, 26362),
    ("X/X-n181-k23.vrp", 180, 8, "round", 23, 25569, 25569),
    ("Solomon/C101.txt", 100, 200, "dimacs", 10, 827.3, 827.3),
    ("Solomon/R112.txt", 100, 200, "dimacs", 10, 948.6, 948.6),
    ("HG1000/C1_10_1.txt", 1000, 200, "dimacs", 100, 42444.8, 42444.8),
    ("PCVRPTW/R1_10_1.vrp", 1000, 200, "dimacs", 10, 262705, 26270.5),
    ("PCVRPTW/C2_10_8.vrp", 1000, 700, "dimacs", 27, 156479, 15647.9),
    ("limits/CMT6.vrp", 50, 160, "none", 6, 555.43, 555.43),
    ("limits/Golden_1.vrp", 240, 550, "none", 9, 5623.47, 5623.47),
]


@pytest.mark.parametrize("file, customers, capacity, metric, routes, written, cost", PUBLISHED)
def test_published(file, customers, capacity, metric, routes, written, cost):
    problem = read(LIB / file)
    solution, found = read_solution((LIB / file).with_suffix(".sol"))
    report = check(problem, solution)
    assert (problem.customers, problem.capacity, problem.metric) == (customers, capacity, metric)
    assert report.violations == ()
    assert len(solution.routes) == routes
    assert found == written
    assert report.cost == (pytest.approx(cost, abs=0.005) if metric == "none" else cost)  # written with two digits
    assert matches_cost(found, report.cost, problem.metric)
    assert bool(report.unserved) == file.startswith("PCVRPTW")


def test_every_file_is_checked():
    files = {str(f.relative_to(LIB)) for f in LIB.rglob("*") if f.suffix in (".vrp", ".txt")}
    assert files == {row[0] for row in PUBLISHED}
