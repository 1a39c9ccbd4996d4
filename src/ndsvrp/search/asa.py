"""Augmented simulated annealing: Algorithm 2 of the paper, for learned and hand-made deconstruction alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ndsvrp.engine.base import Engine, Ints, Recipe, State
from ndsvrp.problem import Problem
from ndsvrp.ruin import Deconstruction, Situation
from ndsvrp.search.augment import augmentations
from ndsvrp.search.result import Progress, TracePoint
from ndsvrp.search.settings import Settings
from ndsvrp.search.start import improve_start
from ndsvrp.search.stopping import Budget, ExponentialCooling
from ndsvrp.solution import Solution

START_SHARE = 0.1  # of the time limit that improving the start may take


@dataclass
class Search:
    """One run of the algorithm. The best solution can be asked for at any time, also after an interruption."""

    problem: Problem
    engine: Engine
    settings: Settings
    budget: Budget
    seed: int
    deconstruction: Deconstruction | None = None  #: None: the rule named by the settings, inside the engine
    init: Solution | None = None
    start_rounds: int = 100  #: of improving the start; see `improve_start`
    threads: int = 1  #: for the deconstruction
    callback: Callable[[Progress], None] | None = None
    trace: list[TracePoint] = field(default_factory=list)
    iteration: int = 0
    reconstructions: int = 0
    state: State | None = None

    def run(self) -> str:
        """Algorithm 2. Returns why it ended."""
        settings, engine = self.settings, self.engine
        side = self.problem.side()  # temperatures are given for a box of side 1
        cooling = ExponentialCooling(settings.hot * side, settings.cold * side)
        if self.deconstruction is not None:  # rules look at the problem itself
            self.coordinates = augmentations(self.problem, settings.chains)  # line 3
        self.state = state = engine.start([self.problem], np.zeros(settings.chains, np.int32), self.init)  # line 4
        if self.init is None:
            improve_start(
                engine, state, self.seed, self.start_rounds,
                deadline=self.budget.deadline, rounds_deadline=self.budget.time_at(START_SHARE),
            )  # fmt: skip
        stopped = self._report(state, cooling(0.0))
        while stopped is None:  # line 5
            self.iteration += 1
            temperature = cooling(self.budget.fraction(self.iteration))  # lines 2 and 15
            removed = self._removals(state)
            rollouts = settings.rollouts if removed is None else removed.shape[1]
            heat = np.full((settings.chains, rollouts), temperature)
            done = engine.rebuild(  # line 6
                state, self._recipe(), removed, heat, self.seed, self.iteration,
                deadline=self.budget.deadline,
            )  # fmt: skip
            self.reconstructions += done * settings.orders
            self._exchange(state, temperature)  # lines 7 to 14
            stopped = self._report(state, temperature)
        return stopped

    def best(self) -> Solution:
        """The best solution seen by any chain; nobody is served if the search was ended before it began."""
        if self.state is None:
            return Solution([])
        return self.engine.export(self.state, int(np.argmin(self.state.best_costs())))

    def note_best(self) -> None:
        """Add a better solution to the trace; also what an iteration cut short by an interruption found."""
        if self.state is None:
            return
        cost, unserved = _best(self.state)
        if unserved == 0 and (not self.trace or cost < self.trace[-1].cost):
            self.trace.append(TracePoint(self.budget.elapsed(), self.iteration, cost))

    def _exchange(self, state: State, temperature: float) -> None:
        """Chains beyond the threshold go on from one below it, drawn at random."""
        costs = state.costs()
        threshold = costs.min() + temperature * self.settings.threshold
        (hopeless,), (good,) = np.nonzero(costs > threshold), np.nonzero(costs <= threshold)
        if len(hopeless):
            draw = np.random.default_rng((self.seed, self.iteration, 1))
            self.engine.replace(state, draw.choice(good, len(hopeless)), hopeless)

    def _removals(self, state: State) -> Ints | None:
        if self.deconstruction is None:
            return None
        on_device = getattr(self.deconstruction, "on_device", False)
        view = self.engine.device_view(state) if on_device else self.engine.view(state)
        situation = Situation(
            self.problem, self.coordinates, view, self.settings.rollouts,
            self._recipe().removals, np.random.default_rng((self.seed, self.iteration, 0)), self.threads,
            self.budget.deadline,
        )  # fmt: skip
        return self.deconstruction(situation)

    def _recipe(self) -> Recipe:
        s = self.settings
        return Recipe(
            rule=None if self.deconstruction is not None else s.ruin,  # type: ignore[arg-type]
            removals=min(s.removals, self.problem.customers),
            orders=s.orders, sorted_orders=s.sorted_orders, all_routes=s.scope == "all",
            blink=s.blink, open_route=s.open_route,
            string_average=s.string_average, string_longest=s.string_longest,
            string_split=s.string_split, string_depth=s.string_depth,
        )  # fmt: skip

    def _report(self, state: State, temperature: float) -> str | None:
        """Note a better solution, tell the callback, ask the budget."""
        self.note_best()
        cost, unserved = _best(state)
        progress = Progress(self.iteration, self.budget.elapsed(), cost, temperature, self.reconstructions, unserved)
        if self.callback is not None:
            self.callback(progress)
        return self.budget.reason(progress)


def _best(state: State) -> tuple[float, int]:
    """Cost of the best solution of all chains, and the required customers it leaves out."""
    costs = state.best_costs()
    best = int(np.argmin(costs))
    return float(costs[best]), int(state.missing()[best])
