"""Launches of the kernels of the GPU engine: the arguments that they share, and what they are compiled for."""

from functools import lru_cache
from typing import Any

import numpy as np

from ndsvrp.engine import placement, shared
from ndsvrp.engine.base import Recipe
from ndsvrp.engine.cuda_state import Group
from ndsvrp.engine.device import Device, Macros, macros_of, room_for
from ndsvrp.engine.placement import Kind, Layout
from ndsvrp.engine.structs import LAYOUT_MACROS, PLAN
from ndsvrp.errors import EngineError

BLOCK_SIZES = (256, 512, 1024)  # threads that kernels are compiled for: the first leaves a thread all its registers
WORKSPACES = 3  # kept at a time: an iteration may make steps of two kinds, one of them in two ways


def launch_steps(
    device: Device, kernel: Any, group: Group, recipe: Recipe, layout: Layout, blocks: int, *arguments: Any
) -> None:
    """Launch `blocks` blocks of a kernel that ruins and recreates."""
    device.launch(
        kernel, blocks, layout.threads, layout.shared, _plan(device, group, recipe, layout),
        group.instances, group.problem_of, group.key, group.memory, group.records,
        _workspace(device, group, layout, blocks), *arguments,
    )  # fmt: skip


def launch_regions(
    device: Device, group: Group, recipe: Recipe, layout: Layout, name: str, grid: int, *arguments: Any
) -> None:
    """Launch a kernel of regions.cu, for steps with this layout."""
    kernel = device.kernel("regions", name, kernel_macros(group.shape.kind, None, 1))
    device.launch(kernel, grid, 32, 0, _plan(device, group, recipe, layout), *arguments)


def launch_chains(device: Device, group: Group, name: str, grid: int, threads: int, *arguments: Any) -> None:
    """Launch a kernel of chains.cu."""
    kernel = device.kernel("chains", name, kernel_macros(group.shape.kind, None, 1))
    device.launch(kernel, grid, threads, 0, _plan(device, group, None, None), *arguments)


def _plan(device: Device, group: Group, recipe: Recipe | None, layout: Layout | None) -> Any:
    """Return the `Plan` of a call on the GPU, made once for each recipe."""
    if (recipe, layout) not in group.plans:
        record = np.zeros(1, PLAN)
        record["home"] = placement.home_sizes(group.shape)
        record["chain_bytes"] = placement.chain_bytes(group.shape)
        if recipe is not None and layout is not None:
            record["recipe"] = np.frombuffer(shared.native_recipe(recipe).bytes(), PLAN["recipe"])
            record["work"], record["columns"] = layout.work, layout.columns
            record["workspace_bytes"] = layout.workspace
        group.plans[recipe, layout] = device.send(record.view(np.uint8))
    return group.plans[recipe, layout]


def _workspace(device: Device, group: Group, layout: Layout, blocks: int) -> Any:
    """Return global memory for the workspaces of all blocks. It is all zero, and every call leaves it all zero."""
    torch = device.torch
    if layout.near_drafts:
        return None
    need, kept = layout.workspace * blocks, group.workspaces
    memory = kept.pop((layout, blocks), None)
    if memory is None:
        while len(kept) >= WORKSPACES:
            del kept[next(iter(kept))]
        try:
            memory = torch.zeros(need, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError:
            free, fit = room_for(torch, layout.workspace)
            raise EngineError(
                f"working memory of {need / 2**30:.1f} GiB for {blocks} chains at a time does not fit into the "
                f"{free:.1f} GiB of GPU memory that are free: {fit} would fit"
            ) from None
    kept[layout, blocks] = memory  # in the order of their last use
    return memory


@lru_cache(64)
def kernel_macros(
    kind: Kind, layout: Layout | None, blocks: int, gaps: bool = False, blinks: bool = False, tails: bool = False
) -> Macros:
    """Return the macros of a kernel for problems of a kind; without a layout, of one that makes no steps."""
    drafts, instance, solution, threads, speculates = False, False, False, 32, False
    local: Macros = ()
    if layout is not None:
        drafts, instance, solution = layout.near_drafts, layout.near_instance, layout.near_solution
        speculates = layout.speculates
        if layout.links:
            local = macros_of(**{f"local_{name}": size for name, size in layout.work._asdict().items()})
        # Unless several blocks share a multiprocessor, few kernels serve all numbers of orders.
        threads = next(most for most in BLOCK_SIZES if most >= layout.threads) if blocks == 1 else layout.threads
    numbers = macros_of(
        near_drafts=drafts, near_instance=instance, near_solution=solution, threads=threads, blocks=blocks, gaps=gaps,
        blinks=blinks, tails=tails, speculates=speculates,
    )  # fmt: skip
    return (("NDS_RULES", ",".join(kind.rules)), ("NDS_DISTANCE", kind.distance), *numbers, *local, *LAYOUT_MACROS)
