"""Augmented simulated annealing: Algorithm 2 of the paper, for rules and for learned policies."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ndsvrp.check import check
from ndsvrp.engine.base import ChainStats, Engine, Floats, Init, Ints, Recipe, Regions, Removals, State
from ndsvrp.errors import NdsError
from ndsvrp.problem import Problem
from ndsvrp.ruin import Ruin, RuinRequest, checked_answer
from ndsvrp.search.augment import augmentations
from ndsvrp.search.control import Callback, Control, Stop
from ndsvrp.search.fewest import reduce_fleets, with_any_fleet
from ndsvrp.search.fleet import may_ignore_fleet, within_fleet, without_fleet
from ndsvrp.search.pipeline import Launched, Pipeline
from ndsvrp.search.prices import Prices
from ndsvrp.search.result import Progress, TracePoint
from ndsvrp.search.serving import Serving
from ndsvrp.search.settings import Settings
from ndsvrp.search.start import improve_start
from ndsvrp.search.stopping import Budget, ExponentialCooling
from ndsvrp.solution import Solution

START_SHARE = 0.1  # largest share of the time limit for improving the start
CONSTRUCT = 4e-8  # seconds per square of customers, below which first solutions come from savings
BY_RULE = 1 << 32  # added to the iteration for steps by a rule, so that they draw other random numbers
REHEARSAL = 3600.0  # seconds: longer than any rehearsal


@dataclass
class Search:
    """One run of the algorithm, on one problem or on several of one size.

    Chains 0 … A-1 belong to the first problem, the next A to the second. With a rule, each problem takes the course
    that it would take alone. `best` may be called at any time, also after an interruption.
    """

    problems: Sequence[Problem]
    engine: Engine
    settings: Settings
    budget: Budget  #: of all problems together
    seed: int
    ruin: Ruin | None = None  #: None: the rule named by the settings, inside the engine
    init: Solution | None = None
    threads: int = 1  #: for the ruin
    callback: Callback | None = None
    stop: Stop | None = None
    traces: list[list[TracePoint]] = field(init=False)  #: one per problem
    iteration: int = field(default=0, init=False)  #: the last one begun
    reconstructions: int = field(default=0, init=False)  #: of all problems, in the iterations observed so far
    state: State | None = field(default=None, init=False)
    preparation: float = field(default=0.0, init=False)  #: seconds that `prepare` took

    def __post_init__(self) -> None:
        if self.settings.fewest_vehicles:
            self.problems = [with_any_fleet(problem) for problem in self.problems]
        self.traces = [[] for _ in self.problems]
        self._control = Control(self.callback, self.stop)
        self._pipeline = Pipeline(self.budget, self.ruin, self.engine.runs_ahead)
        self._recipe = self.settings.recipe(self.problems[0].customers, by_rule=self.ruin is None)
        if self.settings.regions > 1 and self.ruin is not None and not self.ruin.in_regions:
            raise NdsError("this ruin chooses customers of whole solutions: regions must be 1")
        self._rule_recipe = self.settings.rule_recipe(self.problems[0].customers)
        optional = all(may_ignore_fleet(problem) for problem in self.problems)
        self._ignores_fleet = self.settings.free_fleet > 0 and self.init is None and optional
        by_side = self.settings.temperature_scale == "side"  # temperatures are given for a box of side 1
        self._sides = [problem.side() if by_side else 1.0 for problem in self.problems]
        hot, cold = self.settings.hot, self.settings.cold
        self._cooling = [ExponentialCooling(hot * side, cold * side) for side in self._sides]
        self._prices = self._unserved_prices()
        self._begun = 0.0  # share of the budget after which the annealing begins
        self._within: list[tuple[float, Solution]] = []  # while it is ignored: the best that keep the limit

    def prepare(self) -> State:
        """Convert the problems to the form of the engine, with trivial first solutions."""
        began, chains = time.perf_counter(), self.settings.solutions
        if self.ruin is not None:  # rules read the problem itself
            self._coordinates = np.concatenate([augmentations(problem, chains) for problem in self.problems])  # line 3
        searched = [without_fleet(problem) for problem in self.problems] if self._ignores_fleet else self.problems
        state = self._start(searched, self.init)
        self.preparation = time.perf_counter() - began
        return state

    def run(self) -> str:
        """Algorithm 2. Return why it ended."""
        state, stopped = self._begin()
        while stopped is None:  # line 5
            used = self.budget.fraction(self.iteration + 1)
            state, stopped = self._limit_fleet_when_due(state, used)
            if stopped is None:
                part = (used - self._begun) / (1 - self._begun)
                temperatures = np.array([cool(part) for cool in self._cooling])  # lines 2 and 15
                stopped = self._iterate(state, temperatures)
        self._pipeline.finish(self._report)
        return stopped

    def _iterate(self, state: State, temperatures: Floats, groups: int = 1) -> str | None:
        """Make an iteration, with exchange in groups; 0: without. Return why the search ends, if it does."""
        self.iteration += 1
        if self._prices is not None:
            self.engine.set_prices(state, self._prices.in_units)
        self._reconstruct(state, temperatures)  # line 6
        if self._prices is not None:
            self._adapt_prices(state, self._prices)
        if groups > 0:  # lines 7 to 14
            reach = temperatures * self.settings.threshold
            self.engine.exchange(state, reach, self.seed, self.iteration, groups=groups)
        return self._pipeline.push(Launched(self.iteration, temperatures, state.snapshot()), self._report)

    def rehearse(self) -> None:
        """Run one iteration and discard it, so that one-time work of a GPU (compiling and loading kernels, capturing
        graphs, converting problems for savings) takes no time of the search."""
        budget = Budget(seconds=REHEARSAL, iterations=1)
        settings = replace(
            self.settings, start_rounds=min(1, self.settings.start_rounds), start_savings=self._starts_from_savings(),
            start_packed=False, count_absences=False, fewest_vehicles=False,
        )  # fmt: skip
        replace(self, settings=settings, budget=budget, callback=None, stop=None).run()

    def best(self) -> list[Solution]:
        """Return the best solution of each problem; without routes if the search ended before its start."""
        if self.state is None:
            return [Solution([]) for _ in self.problems]
        chains = self._best_chains(self.state.stats())
        if self._ignores_fleet:
            return [solution for _, solution in self._best_within_fleet(self.state, chains)]
        return [self.engine.export(self.state, int(chain)) for chain in chains]

    def note_best(self) -> None:
        """Add to the traces what an interrupted search has found, unfinished iterations included."""
        for launched, stats in self._pipeline.drain():
            self._note(launched, stats)
        if self.state is not None:
            self._trace(self.iteration, self.state.stats())

    def elapsed(self) -> float:
        """Return the seconds since the start, an equal share for each problem."""
        return self.budget.elapsed() / len(self.problems)

    # --- first solutions -----------------------------------------------------------------------

    def _start(self, problems: Sequence[Problem], init: Init) -> State:
        chains = self.settings.solutions
        problem_of, number = np.divmod(np.arange(chains * len(problems), dtype=np.int32), np.int32(chains))
        recipes = [self._recipe, self._rule_recipe] if self.settings.rule_steps > 0 else [self._recipe]
        state: State = self.engine.start(problems, problem_of, init, first=number, precompile=recipes)  # line 4
        self.state = state
        return state

    def _begin(self) -> tuple[State, str | None]:
        """Improve the first solutions. Return the chains, and why the search ends already, if it does."""
        self._control = Control(self.callback, self.stop)
        engine, settings, state = self.engine, self.settings, self.state or self.prepare()
        if self.init is None and not (self._starts_from_savings() and engine.construct(state, self.budget.deadline)):
            improve_start(
                engine, state, self.seed, settings.start_rounds,
                deadline=self.budget.deadline, rounds_deadline=self.budget.time_at(START_SHARE),
                serve_all=settings.start_served,
            )  # fmt: skip
        hot = np.array([cool(0.0) for cool in self._cooling])
        stopped = self._serve_required(state, hot)
        if stopped is None and settings.fewest_vehicles:
            state, stopped = self._reduce_fleets(state, hot)
        if stopped is not None:
            return state, stopped
        return state, self._pipeline.push(Launched(0, hot, state.snapshot()), self._report)

    def _serve_required(self, state: State, hot: Floats) -> str | None:
        """Replace first solutions that leave required customers unserved. Return why the search ends, if it does."""
        serving = Serving(self.problems, self.engine, state, self.seed, self.budget)
        if self.settings.start_packed and self.init is None:
            serving.by_packing()
        if not self.settings.count_absences:
            return None
        stats, ended = state.stats(), list[str]()

        def is_over() -> bool:
            if not ended and (reason := self._report(Launched(0, hot, lambda: stats), stats)) is not None:
                ended.append(reason)
            return bool(ended)

        serving.by_absences(self._rule_recipe, is_over)
        if not ended:
            return None
        self._trace(0, state.stats())  # other problems of a batch may have solutions
        return ended[0]

    def _reduce_fleets(self, state: State, hot: Floats) -> tuple[State, str | None]:
        """Limit vehicles to the fewest that are found to do. Return the chains, and why the search ends, if it does."""
        ended = list[str]()

        def is_over() -> bool:
            stats = state.stats()
            progress = self._progress(Launched(0, hot, lambda: stats), stats, self._best_chains(stats))
            if not ended and (reason := self._control.reason(progress)) is not None:
                ended.append(reason)
            return bool(ended)

        problems = reduce_fleets(
            self.problems, self.engine, state, self._rule_recipe, self.seed, self.budget, is_over
        )  # fmt: skip
        if not ended and not self._has_time_to_start_again():
            ended.append("time")
        if ended:
            self._trace(0, state.stats())
            return state, ended[0]
        self.problems = problems
        self._begun = min(0.99, self.budget.fraction(1))
        return self._start(problems, self.best()), None

    def _starts_from_savings(self) -> bool:
        """Whether that is asked for, or the time limit ends before one route per customer becomes good routes."""
        needed = CONSTRUCT * sum(problem.customers**2 for problem in self.problems)
        return self.settings.start_savings or (self.budget.seconds is not None and self.budget.seconds < needed)

    # --- an iteration --------------------------------------------------------------------------

    def _reconstruct(self, state: State, temperatures: Floats) -> None:
        """Make the steps of an iteration, at a temperature for each problem."""
        settings, removed = self.settings, self._removals(state, self._recipe)
        each = np.repeat(temperatures, settings.solutions)
        rollouts = settings.rollouts if removed is None or callable(removed) else removed.shape[1]
        self.engine.improve(
            state, self._recipe, removed, _steps(each, rollouts), self.seed, self.iteration,
            deadline=self.budget.deadline,
        )  # fmt: skip
        if settings.rule_steps > 0:
            self.engine.improve(
                state, self._rule_recipe, None, _steps(each, settings.rule_steps), self.seed,
                BY_RULE + self.iteration, deadline=self.budget.deadline,
            )  # fmt: skip

    def _unserved_prices(self) -> Prices | None:
        """Return the prices of customers that stay unserved, if there are any in the settings."""
        if self.settings.unserved_price == 0:
            return None
        return Prices(np.array([problem.side() for problem in self.problems]), self.settings.unserved_price)

    def _adapt_prices(self, state: State, prices: Prices) -> None:
        """Adapt prices to the current solutions. Some that lack customers go back to their best ones."""
        missing = state.stats().missing_now.reshape(len(self.problems), -1)
        goes_back = prices.adapt(missing, self.budget.fraction(self.iteration + 1)).ravel()
        if goes_back.any():
            best = zip(self.engine.tours(state), goes_back.tolist(), strict=True)
            self.engine.restart(state, [tour if back else None for tour, back in best])

    def _removals(self, state: State, recipe: Recipe) -> Removals:
        """Return the customers to remove, or, in regions, a function that chooses them for the parts."""
        ruin = self.ruin
        if ruin is None:
            return None
        view = self.engine.view(state, on_device=ruin.on_device)
        request = RuinRequest(
            self.problems[0], self._coordinates, view, self.settings.rollouts, recipe.removals,
            np.random.default_rng((self.seed, self.iteration, 0)), self.threads, self.budget.deadline,
            tuple(self.problems),
        )  # fmt: skip

        def choose(regions: Regions | None) -> Ints:
            asked = replace(request, regions=regions)
            return checked_answer(ruin(asked), asked)

        return choose(None) if self.settings.regions == 1 else choose

    # --- the limit on vehicles, ignored at first -----------------------------------------------

    def _limit_fleet_when_due(self, state: State, share: float) -> tuple[State, str | None]:
        """Limit vehicles from a share of the search on. Return the chains, and why the search ends, if it does."""
        if not self._ignores_fleet or share < self.settings.free_fleet or not self._has_time_to_start_again():
            return state, None
        stopped = self._pipeline.finish(self._report)
        return (self._limit_fleet(), None) if stopped is None else (state, stopped)

    def _limit_fleet(self) -> State:
        """Go on with the limit on vehicles, from the best solutions that keep it."""
        state = self._start(self.problems, self.best())
        self._ignores_fleet = False  # not before there is such a state: an interruption may come meanwhile
        return state

    def _has_time_to_start_again(self) -> bool:
        """Whether the time limit allows to convert the problems once more."""
        return self.budget.seconds is None or self.budget.elapsed() + 2 * self.preparation < self.budget.seconds

    def _best_within_fleet(self, state: State, chains: Ints) -> list[tuple[float, Solution]]:
        """Cut the solutions of these chains, one per problem, to the fleet. Return the best so far, with costs."""
        new = []
        for problem, chain in zip(self.problems, chains, strict=True):
            solution = within_fleet(problem, self.engine.export(state, int(chain)))
            new.append((check(problem, solution).cost, solution))
        known = self._within or new
        self._within = [min(pair, key=lambda each: each[0]) for pair in zip(known, new, strict=True)]
        return self._within

    # --- records -------------------------------------------------------------------------------

    def _report(self, launched: Launched, stats: ChainStats) -> str | None:
        """Record an iteration, call the callback, and return why budget or user end the search, if they do.

        Callback and budget get the mean over several problems.
        """
        progress = self._progress(launched, stats, self._note(launched, stats))
        ended = self._control.reason(progress)
        if self._ignores_fleet:
            self.budget.defer_patience(launched.iteration)
        return self.budget.reason(progress) or ended

    def _progress(self, launched: Launched, stats: ChainStats, best: Ints) -> Progress:
        """Return what a callback gets, from the best chain of each problem."""
        return Progress(
            launched.iteration, self.budget.elapsed(), float(stats.best_costs[best].mean()),
            float(launched.temperatures.mean()), self.reconstructions, int(stats.missing[best].sum()),
        ).with_export(self.best)  # fmt: skip

    def _note(self, launched: Launched, stats: ChainStats) -> Ints:
        """Count reconstructions and extend the traces. Return the best chain of each problem."""
        if launched.iteration > 0:
            self.reconstructions += self._reconstructions(stats.made)
        return self._trace(launched.iteration, stats)

    def _reconstructions(self, made: int) -> int:
        """Return the reconstructions of an iteration from the steps of its last `improve`.

        Steps by a rule come last: if there were any, all others are counted as made, those of empty parts included. If
        time was up before, none is counted.
        """
        settings = self.settings
        if settings.rule_steps == 0:
            return made * settings.orders
        others = len(self.problems) * settings.chains * settings.rollouts * settings.orders
        return made + (others if made > 0 else 0)

    def _trace(self, iteration: int, stats: ChainStats) -> Ints:
        best = self._best_chains(stats)
        if self._ignores_fleet and self.state is not None:
            stats.best_costs[best] = [cost for cost, _ in self._best_within_fleet(self.state, best)]
        for trace, chain in zip(self.traces, best, strict=True):
            cost = float(stats.best_costs[chain])
            if stats.missing[chain] == 0 and (not trace or cost < trace[-1].cost):
                trace.append(TracePoint(self.elapsed(), iteration, cost))
        return best

    def _best_chains(self, stats: ChainStats) -> Ints:
        """Return (problems,) the chain with the best solution of each problem."""
        costs = stats.best_costs.reshape(len(self.problems), -1)
        return np.asarray(np.argmin(costs, axis=1) + np.arange(len(costs)) * costs.shape[1], np.int32)


def _steps(temperatures: Floats, count: int) -> Floats:
    """Return (chains, K) float64: the temperature of each step, the same for all steps of a chain."""
    return np.broadcast_to(temperatures[:, None], (len(temperatures), count))
