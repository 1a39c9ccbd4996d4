"""The engine on a GPU: a block per chain, a warp per insertion order, the same headers as on the CPU.

Arguments are numpy arrays or torch tensors; results are of the same kind. With tensors on the GPU, nothing is copied
and no call waits: all work is on torch's current stream. Of customers to remove in a tensor only the shape is checked.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ndsvrp.engine import placement, shared
from ndsvrp.engine.base import Floats, Init, Ints, Recipe, Regions, View
from ndsvrp.engine.cpu import CpuEngine, CpuState
from ndsvrp.engine.cuda_state import OWN_HEAD, WORDS, CudaState, Group, Parts, block_of_records
from ndsvrp.engine.device import Device, Macros, room_for
from ndsvrp.engine.launches import kernel_macros, launch_chains, launch_regions, launch_steps
from ndsvrp.engine.placement import EVALUATE_THREADS, Layout, Placement, Shape
from ndsvrp.engine.structs import INSTANCE
from ndsvrp.engine.upload import Upload, UploadGroup, in_rows, prepare, send
from ndsvrp.errors import EngineError
from ndsvrp.io.environment import usable_cores
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution

SIDE_BY_SIDE = 2  # blocks that make speculative steps, on a multiprocessor
RESERVED = 1024  # bytes of shared memory that a block takes besides
PARTNERS = 40  # kPartners of savings.hpp, at most: neighbours that savings look at
LAUNCH = 16384  # customers reinserted per chain and launch if there is a deadline: Ctrl-C waits for 0.01 to 0.1 s


class StepKernel(NamedTuple):
    """A kernel that makes steps."""

    file: str
    name: str
    layout: Layout
    macros: Macros


@dataclass
class CudaEngine:
    """An engine on a GPU. It finds the routes of the CPU engine for the same seed."""

    placement: Placement = "auto"  #: what goes into shared memory; the others are for tests
    evaluate_threads: int = EVALUATE_THREADS  #: threads that a multiprocessor should hold in `evaluate`
    neighbours: int = shared.NEIGHBOURS  #: length of neighbour lists
    name: str = "cuda"
    runs_ahead: bool = True
    device: Device = field(default_factory=Device)
    _offset: int | None = field(default=None, repr=False)  #: nanoseconds by which the clock of the GPU is ahead
    _built: CpuState | None = field(default=None, repr=False)  #: the last problems that started from savings

    # --- start ---------------------------------------------------------------------------------

    def start(
        self, problems: Sequence[Problem], problem_of: npt.ArrayLike, init: Init = None, *,
        first: int | Ints = 0, precompile: Sequence[Recipe] = (),
    ) -> CudaState:  # fmt: skip
        upload = prepare(problems, problem_of, init, self.neighbours)
        for recipe, group in product(precompile, upload.groups):
            for kernel in self._step_kernels(group.shape, recipe, len(group.members) * recipe.regions):
                self.device.precompile(kernel.file, kernel.macros)
            if recipe.regions > 1:
                self.device.precompile("regions", kernel_macros(group.shape.kind, None, 1))
        return self.start_upload(upload, first=first)

    def start_upload(self, upload: Upload, *, first: int | Ints = 0) -> CudaState:
        """Return chains as `start` does, of problems that are prepared."""
        torch, groups, begin = self.device.torch, [], 0
        block, records, made = block_of_records(torch, len(upload.problem_of))
        for part in upload.groups:
            inside = slice(begin, begin + len(part.members))
            group = self._group(part, first, records[inside], made[inside])
            self._set_tours(group, part.tours, part.lengths)
            groups.append(group)
            begin = inside.stop
        per_unit = self.device.send(upload.per_unit)
        return CudaState(upload.problems, upload.problem_of, groups, block, upload.per_unit, per_unit, self.device)

    def _group(self, part: UploadGroup, first: int | Ints, records: Any, made: Any) -> Group:
        shape, members = part.shape, part.members
        instances, memory = self._allocate(shape, len(members), lambda: send(self.device.torch, part))

        def ints(values: npt.ArrayLike) -> Any:
            return self.device.send(np.ascontiguousarray(values, np.int32))

        return Group(
            shape, members, instances, ints(part.problem_of), ints(members), ints(shared.drawn_as(first, members)),
            memory, records, made,
        )  # fmt: skip

    def _allocate(self, shape: Shape, count: int, also: Callable[[], Any]) -> tuple[Any, Any]:
        """Return what `also` allocates, and the memory of `count` chains."""
        torch, bytes_each = self.device.torch, placement.chain_bytes(shape)
        try:
            return also(), torch.zeros((count, bytes_each), dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError:
            free, fit = room_for(torch, bytes_each)
            raise EngineError(
                f"{count} chains of {shape.customers} customers need {count * bytes_each / 2**30:.1f} GiB of GPU "
                f"memory and {free:.1f} are free: {fit} chains would fit"
            ) from None

    def _set_tours(self, group: Group, tours: Any, lengths: Any) -> None:
        """Start all chains of a group from the tours of its problems."""
        self._place(group, group.problem_of, tours, lengths)

    def _place(self, group: Group, row_of: Any, tours: Any, lengths: Any) -> None:
        """Make row `row_of` of the tours the current and the best solution of each chain of a group; -1: none."""
        rows, lengths = (self.device.torch.as_tensor(each, device="cuda") for each in (tours, lengths))
        launch_chains(
            self.device, group, "start_chains", len(group.members), 32, group.instances, group.problem_of, group.memory,
            group.records, row_of, rows, lengths, np.int32(rows.shape[1]),
        )  # fmt: skip

    def restart(self, state: CudaState, tours: Sequence[Ints | None]) -> None:
        state.changed()
        for group in state.groups:
            given = [tours[chain] for chain in group.members]
            rows = np.array([-1 if tour is None else row for row, tour in enumerate(given)], np.int32)
            empty = np.zeros(0, np.int32)
            self._place(group, self.device.send(rows), *in_rows([empty if t is None else t for t in given]))

    # --- view, exchange, export ----------------------------------------------------------------

    def construct(self, state: CudaState, deadline: float | None) -> bool:
        """As the CPU engine, and there: savings are joined one after another, which a GPU does not make faster."""
        problems = [problem for problem in state.problems if isinstance(problem, Problem)]
        if len(problems) < len(state.problems):
            return False  # drawn on the GPU: the CPU does not have them
        on_cpu = CpuEngine(usable_cores(), neighbours=min(PARTNERS, self.neighbours))
        if self._built is None or self._built.problems != state.problems:  # a rehearsal converts them before the clock
            self._built = on_cpu.start(problems, np.arange(len(problems)))
        built = self._built
        on_cpu.construct(built, deadline)
        state.changed()
        for group in state.groups:
            of_group = np.unique(state.problem_of[group.members])
            assert len(of_group) == len(group.shape.sizes), "each problem has a chain"
            self._set_tours(group, *in_rows([built.chains.tour(index) for index in of_group.tolist()]))
        return True

    def view(self, state: CudaState, *, on_device: bool = False) -> Any:
        torch = self.device.torch
        nodes = max(problem.customers for problem in state.problems) + 1
        out = torch.empty((3, len(state.problem_of), nodes), dtype=torch.int32, device="cuda")
        for group in state.groups:
            launch_chains(
                self.device, group, "view_chains", len(group.members), 256, group.instances, group.problem_of,
                group.number, group.memory, group.records, np.int32(nodes), out[0], out[1], out[2],
            )  # fmt: skip
        return out if on_device else View(*out.cpu().numpy())  # on the device in one tensor: one conversion, not three

    def exchange(self, state: CudaState, reach: Floats, seed: int, iteration: int, *, groups: int = 1) -> None:
        torch = self.device.torch
        ticks = self.device.send(shared.reach_in_ticks(state, reach, state.units))
        state.changed()
        for group in state.groups:
            chains = len(group.members)
            source = torch.empty(chains, dtype=torch.int32, device="cuda")
            if groups not in group.exchanging:
                group_of = shared.groups_of(state.problem_of, groups)
                group.exchanging[groups] = self.device.send(group_of[group.members])
            launch_chains(
                self.device, group, "choose_sources", chains, 32, group.instances, group.problem_of,
                group.exchanging[groups], group.key, group.records, _rows(group, state, ticks), np.uint64(seed),
                np.uint64(iteration), source,
            )  # fmt: skip
            launch_chains(
                self.device, group, "replace_chains", chains, 256, group.instances, group.problem_of, group.memory,
                group.records, source,
            )  # fmt: skip

    def set_prices(self, state: CudaState, prices: Floats) -> None:
        ticks = shared.prices_in_ticks(state, prices, state.units)
        fields = INSTANCE.fields
        assert fields is not None
        relief, missing = (fields[name][1] // 8 for name in ("relief", "missing"))
        for group in state.groups:
            _, first = np.unique(state.problem_of[group.members], return_index=True)  # a chain of each problem
            table = group.instances[: len(first) * INSTANCE.itemsize].view(self.device.torch.int64).view(len(first), -1)
            price = self.device.send(ticks[group.members[first]])
            table[:, relief] = (table[:, missing] - price).clamp(min=0)

    def export(self, state: CudaState, chain: int, *, best: bool = True) -> Solution:
        state.look()
        group = next(g for g in state.groups if chain in g.members)
        (tour,) = self._tours(group, int(np.searchsorted(group.members, chain)), 1, best)
        return shared.solution_of(tour)

    def tours(self, state: CudaState, *, best: bool = True) -> list[Ints]:
        state.look()
        tours: dict[int, Ints] = {}
        for group in state.groups:
            tours.update(zip(group.members.tolist(), self._tours(group, 0, len(group.members), best), strict=True))
        return [tours[chain] for chain in range(len(tours))]

    def _tours(self, group: Group, first: int, count: int, best: bool) -> list[Ints]:
        """Return the tours of consecutive chains of a group."""
        numbers = 2 * group.shape.customers + 3
        out = self.device.torch.zeros((count, numbers), dtype=self.device.torch.int32, device="cuda")
        launch_chains(
            self.device, group, "export_chains", count, 32, group.memory, group.records, np.int32(first),
            np.int32(best), np.int32(numbers), out,
        )  # fmt: skip
        return [row[1 : 1 + row[0]] for row in out.cpu().numpy()]

    # --- improve -------------------------------------------------------------------------------

    def improve(
        self, state: CudaState, recipe: Recipe, removed: Any, temperature: Any, seed: int, iteration: int, *,
        deadline: float | None = None,
    ) -> None:  # fmt: skip
        shared.check_removal(recipe, removed, self.neighbours)
        stop_at = 0 if deadline is None else self._device_time(deadline)
        before: list[Callable[[], None]] = []  # at most two launches are under way, so that Ctrl-C is noticed
        with self._split(state, recipe, seed, iteration) as groups:
            if callable(removed):
                removed = removed(_regions(groups))
                temperature = temperature[:, : removed.shape[1]]
            in_ticks = self._in_ticks(state, temperature)
            steps = int(in_ticks.shape[1])
            given = self._given(state, recipe, removed, steps)
            share = max(1, steps if deadline is None else LAUNCH // recipe.removals)
            temperatures = [_rows(group, state, in_ticks) for group in state.groups]
            if recipe.regions > 1:
                temperatures = [rows.repeat_interleave(recipe.regions, 0) for rows in temperatures]
            for begin in range(0, max(1, steps), share):
                if len(before) > 1:
                    before.pop(0)()  # waits for the last launch but one
                if begin and deadline is not None and time.perf_counter() >= deadline:
                    break
                state.changed()
                for group, rows in zip(groups, temperatures, strict=True):
                    for goes_on, kernel in enumerate(self._step_kernels(group.shape, recipe, len(group.members))):
                        launch_steps(
                            self.device, self.device.kernel(kernel.file, kernel.name, kernel.macros), group, recipe,
                            kernel.layout, len(group.members), _rows(group, state, given), rows, np.int32(steps),
                            np.int32(begin), np.int32(min(steps, begin + share)), np.uint64(seed),
                            np.uint64(iteration), np.uint64(stop_at), group.made,
                            group.own if isinstance(group, Parts) else None, np.int32(goes_on),
                        )  # fmt: skip
                if steps > share:
                    before.append(self.device.mark())

    @contextmanager
    def _split(self, state: CudaState, recipe: Recipe, seed: int, iteration: int) -> Iterator[Sequence[Group]]:
        """Give the chains to improve: those of the state, or, with regions, parts of their solutions, merged in the
        end."""
        if recipe.regions == 1:
            yield state.groups
            return
        state.changed()
        split = []
        for group in state.groups:
            parts = self._parts(group, recipe.regions)
            kernels = self._step_kernels(group.shape, recipe, len(parts.members))
            split.append((group, parts, kernels[0].layout))
        for group, parts, layout in split:
            launch_regions(
                self.device, group, recipe, layout, "split_chains", len(parts.members), group.instances,
                group.problem_of, group.key, group.memory, group.records, parts.memory, parts.records, parts.own,
                np.uint64(seed), np.uint64(iteration),
            )  # fmt: skip
        try:
            yield [parts for _, parts, _ in split]
        finally:  # also after Ctrl-C: no solution is left in parts
            for group, parts, layout in split:
                launch_regions(
                    self.device, group, recipe, layout, "merge_parts", len(parts.members), group.memory, group.records,
                    parts.memory, parts.records, parts.own, parts.made, group.made,
                )  # fmt: skip

    def _parts(self, group: Group, regions: int) -> Parts:
        """Return chains for the parts of the solutions of a group."""
        if regions not in group.parts:
            torch, shape, count = self.device.torch, group.shape, len(group.members) * regions
            numbers = torch.as_tensor(np.arange(regions, dtype=np.int32), device="cuda")

            def parts_of(chains: Any) -> Any:
                return (chains[:, None] * regions + numbers).flatten().contiguous()

            own, memory = self._allocate(
                shape, count,
                lambda: torch.zeros((count, OWN_HEAD + shape.customers), dtype=torch.int32, device="cuda"),
            )  # fmt: skip
            group.parts[regions] = Parts(
                shape, np.arange(count, dtype=np.int32), group.instances,
                group.problem_of.repeat_interleave(regions), parts_of(group.number), parts_of(group.key), memory,
                torch.zeros((count, WORDS), dtype=torch.int64, device="cuda"),
                torch.zeros(count, dtype=torch.int32, device="cuda"), plans=group.plans, own=own,
            )  # fmt: skip
        return group.parts[regions]

    def _step_kernels(self, shape: Shape, recipe: Recipe, chains: int) -> list[StepKernel]:
        """Return the kernels that make steps, one after another: each makes those that the one before it has left."""
        linked: list[StepKernel] = []
        limit, blocks = self.device.shared_limit, 1
        many = recipe.all_routes and recipe.orders == 1  # warps would be idle
        if many:  # blocks side by side on a multiprocessor
            blocks = min(SIDE_BY_SIDE, -(-chains // self.device.multiprocessors))
            limits = {n: (limit + RESERVED) // n - RESERVED for n in range(blocks, 0, -1)}
            limit = limits[blocks]
            layouts = ((n, placement.layout_to_link(shape, recipe, limits[n])) for n in limits)
            fitting = ((n, layout) for n, layout in layouts if layout is not None)
            if self.placement == "auto" and (first := next(fitting, None)) is not None:
                n, layout = first
                macros = kernel_macros(shape.kind, layout, n, tails=recipe.tails > 0)
                linked.append(StepKernel("linked", "improve_linked", layout, macros))
        choose = placement.layout_to_speculate if many else placement.layout_to_improve
        layout = choose(shape, recipe, limit, self.placement)
        gaps = layout.columns > 0
        macros = kernel_macros(shape.kind, layout, blocks, gaps, gaps and recipe.blink > 0, recipe.tails > 0)
        return [*linked, StepKernel("improve", "improve_chains", layout, macros)]

    def _device_time(self, deadline: float) -> int:
        """Return the deadline on the clock of the GPU. The difference of the clocks is measured once."""
        if self._offset is None:
            self._read_clock()  # the first time loads the kernel
            self._offset = self._read_clock()
        return int(deadline * 1e9) + self._offset

    def _read_clock(self) -> int:
        """Return the nanoseconds by which the clock of the GPU is ahead."""
        torch = self.device.torch
        clock = torch.zeros(1, dtype=torch.int64, device="cuda")
        torch.cuda.synchronize()
        before = time.perf_counter()
        self.device.launch(self.device.kernel("clock", "read_clock", ()), 1, 1, 0, clock)
        there = int(clock.cpu()[0])
        return there - int((before + time.perf_counter()) / 2 * 1e9)

    # --- evaluate ------------------------------------------------------------------------------

    def evaluate(
        self, state: CudaState, recipe: Recipe, removed: Any, rollouts: int, seed: int, iteration: int,
        keep_best: bool, *, always: bool = False,
    ) -> Any:  # fmt: skip
        torch = self.device.torch
        shared.check_removal(recipe, removed, self.neighbours)
        given = self._given(state, recipe, removed, rollouts)
        deltas = torch.empty((len(state.problem_of), rollouts), dtype=torch.int64, device="cuda")
        state.changed()
        for group in state.groups:
            whole = len(state.groups) == 1
            part = deltas if whole else torch.empty((len(group.members), rollouts), dtype=torch.int64, device="cuda")
            mine = _rows(group, state, given)
            self._evaluate(group, recipe, mine, rollouts, seed, iteration, part)
            if keep_best:
                layout = placement.layout_to_improve(group.shape, recipe, self.device.shared_limit, self.placement)
                kernel = self.device.kernel("keep", "keep_best", kernel_macros(group.shape.kind, layout, 1))
                launch_steps(
                    self.device, kernel, group, recipe, layout, len(group.members), mine, part, np.int32(rollouts),
                    np.uint64(seed), np.uint64(iteration), np.int32(always), group.made,
                )  # fmt: skip
            if not whole:
                deltas[group.number.long()] = part
        changes = deltas / state.per_unit[:, None]
        return changes if isinstance(removed, torch.Tensor) else np.asarray(changes.cpu().numpy())

    def _evaluate(
        self, group: Group, recipe: Recipe, given: Any, rollouts: int, seed: int, iteration: int, deltas: Any
    ) -> None:
        torch, total = self.device.torch, len(group.members) * rollouts
        near, far = placement.layouts_to_evaluate(group.shape, recipe, self.device.shared_limit, self.placement)
        waiting = None if near is None else torch.zeros(total + 1, dtype=torch.int32, device="cuda")
        for layout in (near, far):
            if layout is None:
                continue
            blocks = max(1, self.evaluate_threads // layout.threads) if layout.near_drafts else 1
            macros = kernel_macros(group.shape.kind, layout, blocks)
            kernel = self.device.kernel("evaluate", "evaluate_rollouts", macros)
            grid = total if layout.near_drafts else min(total, 2 * self.device.multiprocessors)
            launch_steps(
                self.device, kernel, group, recipe, layout, grid, given, np.int32(rollouts), np.int32(total),
                np.uint64(seed), np.uint64(iteration), deltas, None if waiting is None else waiting[1:], waiting,
            )  # fmt: skip

    # --- arguments of launches ------------------------------------------------------------------

    def _given(self, state: CudaState, recipe: Recipe, removed: Any, rollouts: int) -> Any:
        torch = self.device.torch
        if isinstance(removed, torch.Tensor):
            shared.check_shape(state, recipe, tuple(removed.shape), rollouts)
            return removed.to(device=state.per_unit.device, dtype=torch.int32).contiguous()
        checked = shared.given_removals(state, recipe, removed, rollouts)
        return None if checked is None else torch.as_tensor(checked, device="cuda")

    def _in_ticks(self, state: CudaState, temperature: Any) -> Any:
        """Return (chains, K) float64 temperatures in ticks. If those of a chain are one number (`np.broadcast_to`: a
        stride of 0), only that number is sent, without waiting."""
        torch = self.device.torch
        if isinstance(temperature, torch.Tensor):
            return temperature.to(device=state.per_unit.device, dtype=torch.float64) * state.per_unit[:, None]
        if temperature.strides[1] != 0 or temperature.shape[1] == 0:
            return torch.as_tensor(temperature * state.units[:, None], device="cuda")
        each = self.device.send(temperature[:, 0] * state.units)
        return each[:, None].expand(*temperature.shape).contiguous()


def _rows(group: Group, state: CudaState, values: Any) -> Any:
    """Return the rows of the group's chains."""
    return values if values is None or len(state.groups) == 1 else values[group.number.long()]


def _regions(groups: Sequence[Any]) -> Regions:
    """Return the customers of all parts, in the order of the batch."""
    own = groups[0].own
    if len(groups) > 1:
        total = sum(len(parts.members) for parts in groups)
        own = own.new_zeros((total, max(parts.own.shape[1] for parts in groups)))
        for parts in groups:
            own[parts.number.long(), : parts.own.shape[1]] = parts.own
    return Regions(own[:, 0], own[:, OWN_HEAD:])
