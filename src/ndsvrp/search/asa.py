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
UNBROKEN = 0.5  # share of an iteration that a network on a GPU takes


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
        while stopped is None:  # line 5
            self.iteration += 1
            began = self.budget.elapsed()
            used = self.budget.fraction(self.iteration)
            temperatures = np.array([cool(used) for cool in cooling])  # lines 2 and 15
            removed = self._removals(state)
            rollouts = settings.rollouts if removed is None else removed.shape[1]
            heat = np.repeat(np.repeat(temperatures, chains)[:, None], rollouts, axis=1)
            done = engine.rebuild(  # line 6
                state, self._recipe(), removed, heat, self.seed, self.iteration,
                deadline=self.budget.deadline,
            )  # fmt: skip
            self.reconstructions += done * settings.orders
            numbers = state.numbers()
            self._exchange(state, numbers.costs, temperatures)  # lines 7 to 14
            stopped = self._report(numbers, temperatures) or self._too_late(self.budget.elapsed() - began)
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
        sources, targets = [], []
        for i, own in enumerate(costs.reshape(len(self.problems), -1)):
            threshold = own.min() + temperatures[i] * self.settings.threshold
            (hopeless,), (good,) = np.nonzero(own > threshold), np.nonzero(own <= threshold)
            if len(hopeless):
                draw = np.random.default_rng((self.seed, self.iteration, 1))
                sources.append(draw.choice(good, len(hopeless)) + i * len(own))
                targets.append(hopeless + i * len(own))
        if targets:
            self.engine.replace(state, np.concatenate(sources), np.concatenate(targets))

    def _removals(self, state: State) -> Ints | None:
        if self.deconstruction is None:
            return None
        on_device = getattr(self.deconstruction, "on_device", False)
        view = self.engine.device_view(state) if on_device else self.engine.view(state)
        situation = Situation(
            self.problems[0], self.coordinates, view, self.settings.rollouts,
            self._recipe().removals, np.random.default_rng((self.seed, self.iteration, 0)), self.threads,
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
        self._note(numbers)
        best = self._best_chains(numbers)
        progress = Progress(
            self.iteration, self.budget.elapsed(), float(numbers.best_costs[best].mean()), float(temperatures.mean()),
            self.reconstructions, int(numbers.missing[best].sum()),
        )  # fmt: skip
        if self.callback is not None:
            self.callback(progress)
        return self.budget.reason(progress)

    def _too_late(self, last: float) -> str | None:
        """A network on a GPU does not stop half way: nothing is begun that would end after the time limit, as far as
        the seconds of the last iteration tell."""
        seconds = self.budget.seconds
        if seconds is None or self.engine.name != "cuda" or not getattr(self.deconstruction, "on_device", False):
            return None
        return "time" if seconds - self.budget.elapsed() < UNBROKEN * last else None

    def _note(self, numbers: Numbers) -> None:
        for trace, chain in zip(self.traces, self._best_chains(numbers), strict=True):
            cost = float(numbers.best_costs[chain])
            if numbers.missing[chain] == 0 and (not trace or cost < trace[-1].cost):
                trace.append(TracePoint(self.elapsed(), self.iteration, cost))

    def _best_chains(self, numbers: Numbers) -> Ints:
        """(problems,) the chain that has seen the best solution of each."""
        costs = numbers.best_costs.reshape(len(self.problems), -1)
        return np.asarray(np.argmin(costs, axis=1) + np.arange(len(costs)) * costs.shape[1], np.int32)
