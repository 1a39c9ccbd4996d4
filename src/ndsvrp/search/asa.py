"""Augmented simulated annealing: Algorithm 2 of the paper, for learned and hand-made deconstruction alike."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ndsvrp.engine.base import Engine, Ints, Numbers, Recipe, State
from ndsvrp.metric import Floats
from ndsvrp.problem import Problem
from ndsvrp.ruin import Ruin, RuinRequest
from ndsvrp.search.augment import augmentations
from ndsvrp.search.result import Progress, TracePoint
from ndsvrp.search.settings import Settings
from ndsvrp.search.start import improve_start
from ndsvrp.search.stopping import Budget, ExponentialCooling
from ndsvrp.solution import Solution

START_SHARE = 0.1  # of the time limit that improving the start may take
REHEARSAL = 3600.0  # seconds: more than it takes


class Launched(NamedTuple):
    """An iteration that an engine has been asked for."""

    iteration: int
    temperatures: Floats  #: (problems,)
    numbers: Callable[[], Numbers]  #: what it leaves; on a GPU this waits


@dataclass
class Search:
    """One run of the algorithm, for one problem or several of one size side by side: chains 0 … A-1 are of the first
    problem, the next A of the second. Problems do not know of each other; with a rule each goes the way it would go
    alone. The best solutions can be asked for at any time, also after an interruption.

    On a GPU an iteration is launched before anybody has looked at what the one before has found, so that the GPU never
    waits. What is reported is then one iteration late; what is found is the same."""

    problems: Sequence[Problem]
    engine: Engine
    settings: Settings
    budget: Budget  #: of all problems together
    seed: int
    ruin: Ruin | None = None  #: None: the rule named by the settings, inside the engine
    init: Solution | None = None
    start_rounds: int = 100  #: of improving the start; see `improve_start`
    threads: int = 1  #: for the ruin
    callback: Callable[[Progress], None] | None = None
    traces: list[list[TracePoint]] = field(init=False)  #: one per problem
    iteration: int = field(default=0, init=False)  #: the last one begun
    reconstructions: int = field(default=0, init=False)  #: of all problems together, as far as they have been seen
    state: State | None = field(default=None, init=False)
    _under_way: deque[Launched] = field(default_factory=deque, init=False)  #: and not yet seen
    _seen_at: float = field(default=0.0, init=False)  #: seconds after the start: when one was seen last
    _pace: float | None = field(default=None, init=False)  #: seconds from one to the next, rather too many

    def __post_init__(self) -> None:
        self.traces = [[] for _ in self.problems]

    def run(self) -> str:
        """Algorithm 2. Returns why it ended."""
        settings, engine, chains = self.settings, self.engine, self.settings.chains
        sides = [problem.side() for problem in self.problems]  # temperatures are given for a box of side 1
        cooling = [ExponentialCooling(settings.hot * side, settings.cold * side) for side in sides]
        if self.ruin is not None:  # rules look at the problem itself
            self.coordinates = np.concatenate([augmentations(problem, chains) for problem in self.problems])  # line 3
        recipe = self._recipe()
        which, number = np.divmod(np.arange(chains * len(self.problems), dtype=np.int32), np.int32(chains))
        self.state = state = engine.start(self.problems, which, self.init, first=number, soon=recipe)  # line 4
        if self.init is None:
            improve_start(
                engine, state, self.seed, self.start_rounds,
                deadline=self.budget.deadline, rounds_deadline=self.budget.time_at(START_SHARE),
            )  # fmt: skip
        self._under_way.append(Launched(0, np.array([cool(0.0) for cool in cooling]), state.snapshot()))
        stopped = self._report()
        while stopped is None:  # line 5
            self.iteration += 1
            used = self.budget.fraction(self.iteration)
            temperatures = np.array([cool(used) for cool in cooling])  # lines 2 and 15
            removed = self._removals(state, recipe)
            rollouts = settings.rollouts if removed is None else removed.shape[1]
            heat = np.broadcast_to(np.repeat(temperatures, chains)[:, None], (len(which), rollouts))
            engine.rebuild(  # line 6
                state, recipe, removed, heat, self.seed, self.iteration, deadline=self.budget.deadline
            )
            engine.exchange(state, temperatures * settings.threshold, self.seed, self.iteration)  # lines 7 to 14
            self._under_way.append(Launched(self.iteration, temperatures, state.snapshot()))
            stopped = self._catch_up()
        while self._under_way:
            self._report()
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
        """Add better solutions to the traces; also what iterations cut short by an interruption found."""
        while self._under_way:
            self._see()
        if self.state is not None:
            self._note(self.iteration, self.state.numbers())

    def elapsed(self) -> float:
        """Seconds since the start, an equal share of them for each problem."""
        return self.budget.elapsed() / len(self.problems)

    def _catch_up(self) -> str | None:
        """Look at iterations until few enough are under way for another. Returns why there is to be none."""
        stopped = None
        while self._under_way and (len(self._under_way) > self._ahead() or self._too_late()):
            stopped = self._report()
        return stopped or self.budget.spent(self.iteration) or ("time" if self._too_late() else None)

    def _ahead(self) -> int:
        """Iterations that may be under way, unseen, when another is launched. Without a duration estimate, never run
        ahead of a deadline."""
        ruin = self.ruin
        waits = ruin is not None and not (
            ruin.on_device and (self.budget.seconds is None or ruin.expected_seconds() is not None)
        )
        known = self._pace is not None  # how long they take
        return int(self.engine.runs_ahead and known and not waits and not self.budget.depends_on_results)

    def _too_late(self) -> bool:
        """A network on a GPU does not stop half way: it is not asked again if, by what its last call took, it would
        end after the time limit. What follows it does stop half way. While iterations are under way, nobody knows when
        its turn comes: it is asked only if there is time for two more after them."""
        expected = None if self.ruin is None else self.ruin.expected_seconds()
        if self.budget.seconds is None or expected is None:
            return False
        ends = self.budget.elapsed() + expected
        if self._under_way and self._pace is not None:
            ends = max(ends, self._seen_at + (len(self._under_way) + 2) * self._pace)
        return bool(ends >= self.budget.seconds)

    def _removals(self, state: State, recipe: Recipe) -> Ints | None:
        if self.ruin is None:
            return None
        view = self.engine.device_view(state) if self.ruin.on_device else self.engine.view(state)
        request = RuinRequest(
            self.problems[0], self.coordinates, view, self.settings.rollouts,
            recipe.removals, np.random.default_rng((self.seed, self.iteration, 0)), self.threads,
            self.budget.deadline, tuple(self.problems),
        )  # fmt: skip
        return self.ruin(request)

    def _recipe(self) -> Recipe:
        s = self.settings
        return Recipe(
            rule=None if self.ruin is not None else s.ruin,  # type: ignore[arg-type]
            removals=min(s.removals, self.problems[0].customers),
            orders=s.orders, sorted_orders=s.sorted_orders, all_routes=s.scope == "all",
            blink=s.blink, open_route=s.open_route,
            string_average=s.string_average, string_longest=s.string_longest,
            string_split=s.string_split, string_depth=s.string_depth,
        )  # fmt: skip

    def _report(self) -> str | None:
        """See an iteration, tell the callback, ask the budget. Of several problems these get to know the mean."""
        launched, numbers, best = self._see()
        now = self.budget.elapsed()
        if launched.iteration > 0:
            self._pace = max(now - self._seen_at, 0.9 * (self._pace or 0.0))  # two seen at once were no faster
        self._seen_at = now
        progress = Progress(
            launched.iteration, now, float(numbers.best_costs[best].mean()), float(launched.temperatures.mean()),
            self.reconstructions, int(numbers.missing[best].sum()),
        )  # fmt: skip
        if self.callback is not None:
            self.callback(progress)
        return self.budget.reason(progress)

    def _see(self) -> tuple[Launched, Numbers, Ints]:
        """The first iteration under way, when it has ended: note what it has made and found, and by which chains."""
        numbers = self._under_way[0].numbers()  # it is still under way if this is interrupted
        launched = self._under_way.popleft()
        if launched.iteration > 0:
            self.reconstructions += numbers.made * self.settings.orders
        return launched, numbers, self._note(launched.iteration, numbers)

    def _note(self, iteration: int, numbers: Numbers) -> Ints:
        """Returns the chains that have seen the best solutions."""
        best = self._best_chains(numbers)
        for trace, chain in zip(self.traces, best, strict=True):
            cost = float(numbers.best_costs[chain])
            if numbers.missing[chain] == 0 and (not trace or cost < trace[-1].cost):
                trace.append(TracePoint(self.elapsed(), iteration, cost))
        return best

    def _best_chains(self, numbers: Numbers) -> Ints:
        """(problems,) the chain that has seen the best solution of each."""
        costs = numbers.best_costs.reshape(len(self.problems), -1)
        return np.asarray(np.argmin(costs, axis=1) + np.arange(len(costs)) * costs.shape[1], np.int32)
