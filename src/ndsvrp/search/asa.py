"""Augmented simulated annealing: Algorithm 2 of the paper, for learned and hand-made deconstruction alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ndsvrp.engine.base import Engine, Ints, Numbers, Recipe, State
from ndsvrp.metric import Floats
from ndsvrp.problem import Problem
from ndsvrp.ruin import Deconstruction, Situation
from ndsvrp.search.augment import augmentations
from ndsvrp.search.result import Progress, TracePoint
from ndsvrp.search.settings import Settings
from ndsvrp.search.start import improve_start
from ndsvrp.search.stopping import Budget, ExponentialCooling
from ndsvrp.solution import Solution

START_SHARE = 0.1  # of the time limit that improving the start may take
REHEARSAL = 3600.0  # seconds: more than it takes


@dataclass
class Search:
    """One run of the algorithm, for one problem or several of one size side by side: chains 0 … A-1 are of the first
    problem, the next A of the second. Problems do not know of each other; with a rule each goes the way it would go
    alone. The best solutions can be asked for at any time, also after an interruption."""

    problems: Sequence[Problem]
    engine: Engine
    settings: Settings
    budget: Budget  #: of all problems together
    seed: int
    deconstruction: Deconstruction | None = None  #: None: the rule named by the settings, inside the engine
    init: Solution | None = None
    start_rounds: int = 100  #: of improving the start; see `improve_start`
    threads: int = 1  #: for the deconstruction
    callback: Callable[[Progress], None] | None = None
    traces: list[list[TracePoint]] = field(init=False)  #: one per problem
    iteration: int = field(default=0, init=False)
    reconstructions: int = field(default=0, init=False)  #: of all problems together
    state: State | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.traces = [[] for _ in self.problems]

    def run(self) -> str:
        """Algorithm 2. Returns why it ended."""
        settings, engine, chains = self.settings, self.engine, self.settings.chains
        sides = [problem.side() for problem in self.problems]  # temperatures are given for a box of side 1
        cooling = [ExponentialCooling(settings.hot * side, settings.cold * side) for side in sides]
        if self.deconstruction is not None:  # rules look at the problem itself
            self.coordinates = np.concatenate([augmentations(problem, chains) for problem in self.problems])  # line 3
        which, number = np.divmod(np.arange(chains * len(self.problems), dtype=np.int32), np.int32(chains))
        self.state = state = engine.start(self.problems, which, self.init, first=number)  # line 4
        if self.init is None:
            improve_start(
                engine, state, self.seed, self.start_rounds,
                deadline=self.budget.deadline, rounds_deadline=self.budget.time_at(START_SHARE),
            )  # fmt: skip
        stopped = self._report(state.numbers(), np.array([cool(0.0) for cool in cooling]))
        recipe = self._recipe()
        while stopped is None:  # line 5
            self.iteration += 1
            used = self.budget.fraction(self.iteration)
            temperatures = np.array([cool(used) for cool in cooling])  # lines 2 and 15
            removed = self._removals(state, recipe)
            rollouts = settings.rollouts if removed is None else removed.shape[1]
            heat = np.broadcast_to(np.repeat(temperatures, chains)[:, None], (len(which), rollouts))
            done = engine.rebuild(  # line 6
                state, recipe, removed, heat, self.seed, self.iteration, deadline=self.budget.deadline
            )
            self.reconstructions += done * settings.orders
            numbers = state.numbers()
            self._exchange(state, numbers.costs, temperatures)  # lines 7 to 14
            stopped = self._report(numbers, temperatures) or self._too_late()
        return stopped

    def rehearse(self) -> None:
        """An iteration for nothing, so that what happens once on a GPU (kernels are compiled and loaded, recordings
        made) does not take time of the search."""
        budget = Budget(seconds=REHEARSAL, iterations=1)
        replace(self, budget=budget, start_rounds=min(1, self.start_rounds), callback=None).run()

    def best(self) -> list[Solution]:
        """The best solution of each problem; nobody is served if the search was ended before it began."""
        if self.state is None:
            return [Solution([]) for _ in self.problems]
        return [self.engine.export(self.state, int(chain)) for chain in self._best_chains(self.state.numbers())]

    def note_best(self) -> None:
        """Add better solutions to the traces; also what an iteration cut short by an interruption found."""
        if self.state is not None:
            self._note(self.state.numbers())

    def elapsed(self) -> float:
        """Seconds since the start, an equal share of them for each problem."""
        return self.budget.elapsed() / len(self.problems)

    def _exchange(self, state: State, costs: Floats, temperatures: Floats) -> None:
        """Chains beyond the threshold go on from one below it, drawn at random among those of the same problem."""
        costs = costs.reshape(len(self.problems), -1)
        good = costs <= (costs.min(axis=1) + temperatures * self.settings.threshold)[:, None]
        if good.all():
            return
        sources, targets = [], []
        draw = np.random.default_rng((self.seed, self.iteration, 1))
        fresh = draw.bit_generator.state
        for i in np.flatnonzero(~good.all(axis=1)):
            draw.bit_generator.state = fresh  # each problem draws as it would alone
            (hopeless,) = np.nonzero(~good[i])
            sources.append(draw.choice(np.flatnonzero(good[i]), len(hopeless)) + i * costs.shape[1])
            targets.append(hopeless + i * costs.shape[1])
        self.engine.replace(state, np.concatenate(sources), np.concatenate(targets))

    def _removals(self, state: State, recipe: Recipe) -> Ints | None:
        if self.deconstruction is None:
            return None
        on_device = getattr(self.deconstruction, "on_device", False)
        view = self.engine.device_view(state) if on_device else self.engine.view(state)
        situation = Situation(
            self.problems[0], self.coordinates, view, self.settings.rollouts,
            recipe.removals, np.random.default_rng((self.seed, self.iteration, 0)), self.threads,
            self.budget.deadline, tuple(self.problems),
        )  # fmt: skip
        return self.deconstruction(situation)

    def _recipe(self) -> Recipe:
        s = self.settings
        return Recipe(
            rule=None if self.deconstruction is not None else s.ruin,  # type: ignore[arg-type]
            removals=min(s.removals, self.problems[0].customers),
            orders=s.orders, sorted_orders=s.sorted_orders, all_routes=s.scope == "all",
            blink=s.blink, open_route=s.open_route,
            string_average=s.string_average, string_longest=s.string_longest,
            string_split=s.string_split, string_depth=s.string_depth,
        )  # fmt: skip

    def _report(self, numbers: Numbers, temperatures: Floats) -> str | None:
        """Note better solutions, tell the callback, ask the budget. Of several problems these get to know the mean."""
        best = self._note(numbers)
        progress = Progress(
            self.iteration, self.budget.elapsed(), float(numbers.best_costs[best].mean()), float(temperatures.mean()),
            self.reconstructions, int(numbers.missing[best].sum()),
        )  # fmt: skip
        if self.callback is not None:
            self.callback(progress)
        return self.budget.reason(progress)

    def _too_late(self) -> str | None:
        """A network on a GPU does not stop half way: it is not asked again if, by what its last call took, it would
        end after the time limit. What follows it does stop half way."""
        unbroken = getattr(self.deconstruction, "unbroken", None)
        if self.budget.seconds is None or unbroken is None:
            return None
        return "time" if self.budget.elapsed() + unbroken() >= self.budget.seconds else None

    def _note(self, numbers: Numbers) -> Ints:
        """Returns the chains that have seen the best solutions."""
        best = self._best_chains(numbers)
        for trace, chain in zip(self.traces, best, strict=True):
            cost = float(numbers.best_costs[chain])
            if numbers.missing[chain] == 0 and (not trace or cost < trace[-1].cost):
                trace.append(TracePoint(self.elapsed(), self.iteration, cost))
        return best

    def _best_chains(self, numbers: Numbers) -> Ints:
        """(problems,) the chain that has seen the best solution of each."""
        costs = numbers.best_costs.reshape(len(self.problems), -1)
        return np.asarray(np.argmin(costs, axis=1) + np.arange(len(costs)) * costs.shape[1], np.int32)
