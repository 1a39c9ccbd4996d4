"""Structs that Python and the native core share: one declaration, checked by kernels field by field."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import ndsvrp._core as _core
import numpy as np
import pytest

from ndsvrp.engine.base import Recipe
from ndsvrp.engine.placement import Sizes
from ndsvrp.engine.shared import native_recipe
from ndsvrp.engine.structs import INSTANCE, LAYOUT_MACROS, PLAN, POINTERS, RECORD
from ndsvrp.engine.upload import kind_of

INCLUDE = Path(__file__).parents[2] / "native/include"


def test_sizes_have_the_order_of_the_struct() -> None:
    assert PLAN["home"].names == PLAN["work"].names == Sizes._fields


def test_layouts_have_no_gap_that_a_field_could_hide_in() -> None:
    """Fields follow each other in order; only alignment leaves bytes between them."""
    for layout in (INSTANCE, PLAN, PLAN["recipe"], PLAN["home"], RECORD["current"], RECORD["best"]):
        end = 0
        for name in layout.names or ():
            kind, offset = (layout.fields or {})[name][:2]
            assert end <= offset < end + 8, name
            end = offset + kind.itemsize
        assert end <= layout.itemsize < end + 8
    assert {"demand", "near", "prize"} <= set(POINTERS) and "n" not in POINTERS


def test_a_recipe_has_the_fields_of_the_core() -> None:
    recipe = native_recipe(Recipe(rule="string", removals=7, blink=0.25, open_route=1.0, all_routes=True))
    record = np.frombuffer(recipe.bytes(), PLAN["recipe"])[0]
    assert (record["rule"], record["removals"], record["all_routes"], record["sorted_orders"]) == (1, 7, 1, 0)
    assert (record["blink"], record["open_route"]) == (1 << 30, (1 << 32) - 1)
    fields: dict[str, Any] = {**vars(Recipe()), "rule": 0}
    with pytest.raises(ValueError, match="unknown field"):
        _core.Recipe(**fields, more=1)
    del fields["blink"]
    with pytest.raises(ValueError, match="a field is missing"):
        _core.Recipe(**fields)


def test_rules_apply_by_what_an_instance_has() -> None:
    points: dict[str, Any] = {"capacity": 5, "demand": 1, "x": 1, "y": 1}
    assert kind_of(points) == (("Capacity",), "FloatPoints")
    assert kind_of({**points, "due": None, "prize": 1}) == (("Capacity", "Prizes"), "FloatPoints")
    assert kind_of({**points, "due": 1, "xd": 1}) == (("Capacity", "TimeWindows"), "WholePoints")
    assert kind_of({"demand": 1, "due": 1, "prize": 1, "length": 1})[1] == "Matrix"


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_kernels_refuse_another_layout() -> None:
    """The number of a field stands for its name, offset and size."""
    numbers = dict(LAYOUT_MACROS)["NDS_RECORD_LAYOUT"].split(",")

    def compiles(numbers: list[str], difference: int) -> bool:
        check = f"static_assert(nds::first_difference<nds::Record>({{{','.join(numbers)}}}) == {difference});"
        command = ["g++", "-std=c++20", "-fsyntax-only", f"-I{INCLUDE}", "-x", "c++", "-"]
        source = f'#include "ndsvrp/layout.hpp"\n{check}\n'
        return subprocess.run(command, input=source, text=True, capture_output=True).returncode == 0

    assert compiles(numbers, -1)
    assert compiles([*numbers[:2], "1u", *numbers[3:]], 2)
    assert compiles(numbers[:-1], len(numbers) - 1)
    assert not compiles(numbers, 0)
