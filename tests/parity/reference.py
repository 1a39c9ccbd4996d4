"""The search step once more: slow, obvious, in plain ints and lists.

Routes are lists of customers, every candidate route is written out and driven from start to end, every cost is added
up from scratch. Nothing is shared with the core or the engine except the numbers themselves (`ticks_of`). Comments name
what is part of the contract and might be done otherwise: numbering of routes, order of draws, ties.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from ndsvrp.engine.base import Recipe
from ndsvrp.engine.ticks import ticks_of
from ndsvrp.problem import Problem
from parity.reference_tails import best_move

REQUIRED = 1 << 29  # the code of a customer that must be served
DEAR, DEAR_BITS = 1 << 28, 22  # larger prizes are codes: an exponent, and the bits of a mantissa after its first
NEIGHBOURS = 256
START_ITERATION = 1 << 62

# --- random numbers --------------------------------------------------------------------------

MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK64
    return z ^ (z >> 31)


def key_of(key: int, part: int) -> int:
    return mix((key + GOLDEN * (part + 1)) & MASK64)


def chain_key(seed: int, iteration: int, chain: int) -> int:
    return key_of(key_of(key_of(0, seed), iteration), chain)


@dataclass
class Random:
    key: int
    counter: int = 0

    def bits(self) -> int:
        self.counter += 1
        return mix((self.key + GOLDEN * self.counter) & MASK64) >> 32

    def below(self, n: int) -> int:
        return self.bits() * n >> 32

    def unit(self) -> float:
        return (self.bits() >> 8) / (1 << 24)


def exchange(costs: Sequence[float], which: Sequence[int], reach: Sequence[float], keys: Sequence[int]) -> list[int]:
    """The chain that each goes on from, by costs and reaches in ticks and the keys of the chains in this iteration."""
    sources = []
    for i, cost in enumerate(costs):
        rivals = [j for j in range(len(costs)) if which[j] == which[i]]
        limit = float(min(costs[j] for j in rivals)) + reach[i]
        good = [j for j in rivals if float(costs[j]) <= limit]
        sources.append(i if float(cost) <= limit else good[Random(key_of(keys[i], MASK64)).below(len(good))])
    return sources


def blinks(key: int, threshold: int, turn: int, route: int, place: int) -> bool:
    if threshold == 0:
        return False
    h = key ^ turn * 0x9E3779B1 & MASK32 ^ route * 0x85EBCA77 & MASK32 ^ place * 0xC2B2AE3D & MASK32
    h = (h ^ h >> 16) * 0x7FEB352D & MASK32
    h = (h ^ h >> 15) * 0x846CA68B & MASK32
    return h ^ h >> 16 < threshold


def minus_log(k: int) -> float:
    """-ln((k + 1) / 2^24), by the series that all machines share."""
    value = k + 1
    exponent = value.bit_length() - 1
    f = value / (1 << exponent)
    z = (f - 1.0) / (f + 1.0)
    w, total = z * z, 0.0
    for term in range(15, 0, -2):
        total = total * w + 1.0 / term
    return (24 - exponent) * 0.6931471805599453 - 2.0 * z * total


def chance(p: float) -> int:
    return MASK32 if p >= 1.0 else int(p * 4294967296.0)


def shuffle(items: list[int], random: Random) -> None:
    for i in range(len(items) - 1, 0, -1):
        j = random.below(i + 1)
        items[i], items[j] = items[j], items[i]


def f32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


# --- the numbers of a problem ----------------------------------------------------------------


class Numbers:
    """A problem in ticks, as lists."""

    def __init__(self, problem: Problem) -> None:
        ticks = ticks_of(problem)
        self.n, self.per_unit = problem.customers, ticks.per_unit
        fields = ticks.fields
        self.capacity, self.vehicles, self.demand = fields["capacity"], fields["vehicles"], fields["demand"].tolist()
        self.windows = fields["due"] is not None
        self.symmetric = ticks.length_matrix is None
        self.max_distance = fields.get("max_distance", math.inf)
        self.max_duration = fields.get("max_duration", math.inf)
        if self.windows:
            self.ready, self.due, self.service = (fields[name].tolist() for name in ("ready", "due", "service"))
        self.may_be_alone = ticks.alone
        prize, self.missing = fields["prize"], ticks.missing
        self.prize: list[int] | None = None if prize is None else prize.tolist()
        nodes = range(self.n + 1)
        corner = None if problem.coordinates is None else problem.coordinates.min(axis=0)
        if ticks.length_matrix is not None:
            self.length = ticks.length_matrix.tolist()
            self.time = self.length if ticks.time_matrix is None else ticks.time_matrix.tolist()
            far = [[self.length[a][b] + self.length[b][a] for b in nodes] for a in nodes]
        else:
            assert problem.coordinates is not None
            corner = problem.coordinates.min(axis=0)
            inside = ((problem.coordinates - corner) * ticks.per_unit).tolist()
            single = [(f32(x), f32(y)) for x, y in inside]
            far = [[square32(single[a], single[b]) for b in nodes] for a in nodes]
            exact = problem.coordinates.tolist()
            match str(problem.metric):
                case "round":
                    self.length = [[math.floor(euclid(a, b) + 0.5) for b in exact] for a in exact]
                case "trunc":
                    self.length = [[math.floor(euclid(a, b)) for b in exact] for a in exact]
                case "dimacs":
                    self.length = [[math.floor(euclid(a, b) * 10.0) for b in exact] for a in exact]
                case "exact":
                    self.length = [[math.floor(euclid(a, b) * 1000.0 + 0.5) for b in exact] for a in exact]
                case _ if ticks.exact_points is not None:
                    self.length = [[math.floor(euclid(a, b) + 0.5) for b in inside] for a in inside]
                case _:
                    self.length = [[int(f32(f32(math.sqrt(square)) + 0.5)) for square in row] for row in far]
            self.time = self.length
        count = min(NEIGHBOURS, self.n - 1)
        self.near = [
            sorted((c for c in nodes if c not in (0, a)), key=lambda c, a=a: (far[a][c], c))[:count] for a in nodes
        ]
        weights, ranks = ticks.sort_ranks()
        self.sort_weights, self.sort_ranks = weights.tolist(), ranks.tolist()

    def tour_length(self, route: Sequence[int]) -> int:
        stops = [0, *route, 0]
        return sum(self.length[a][b] for a, b in itertools.pairwise(stops)) if route else 0

    def left_out(self, c: int) -> int:
        """What it costs not to serve c."""
        assert self.prize is not None
        code = self.prize[c]
        if code <= DEAR or code == REQUIRED:
            return self.missing if code == REQUIRED else code
        return ((1 << DEAR_BITS) | (code & ((1 << DEAR_BITS) - 1))) << ((code - DEAR) >> DEAR_BITS)

    def feasible(self, route: Sequence[int]) -> bool:
        return self.carries(route) and self.fits(route)

    def carries(self, route: Sequence[int]) -> bool:
        return bool(sum(self.demand[c] for c in route) <= self.capacity)

    def alone(self, c: int) -> bool:
        """Whether c can have a route of its own."""
        return bool(self.demand[c] <= self.capacity) and (self.may_be_alone is None or bool(self.may_be_alone[c]))

    def fits(self, route: Sequence[int]) -> bool:
        """Whether the route keeps windows and limits; unlike the load, they may depend on customers it has lost."""
        return self.in_time(route) and self.tour_length(route) <= self.max_distance and self.is_short(route)

    def is_short(self, route: Sequence[int]) -> bool:
        """Whether it takes no longer than it may: the earliest return less the latest departure for that return."""
        if self.max_duration == math.inf:
            return True
        clock, stops, starts = self.ready[0], [0, *route, 0], [self.ready[0]]
        for here, there in itertools.pairwise(stops):
            clock = max(clock + self.service[here] + self.time[here][there], self.ready[there])
            starts.append(clock)
        departure = clock
        for here, there in reversed(list(itertools.pairwise(stops))):
            departure = min(departure - self.time[here][there] - self.service[here], self.due[here])
        return clock - departure <= self.max_duration

    def in_time(self, route: Sequence[int]) -> bool:
        if not self.windows:
            return True
        clock, here = self.ready[0], 0
        for there in route:
            clock = max(clock + self.time[here][there], self.ready[there])
            if clock > self.due[there]:
                return False
            clock, here = clock + self.service[there], there
        return clock + self.time[here][0] <= self.due[0]


def euclid(a: Sequence[float], b: Sequence[float]) -> float:
    dx, dy = a[0] - b[0], a[1] - b[1]
    return math.sqrt(dx * dx + dy * dy)


def square32(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Squared distance where every operation is rounded to float32."""
    dx, dy = f32(a[0] - b[0]), f32(a[1] - b[1])
    return f32(f32(dx * dx) + f32(dy * dy))


# --- a chain ---------------------------------------------------------------------------------

Draft = dict[int, list[int]]  # changed routes by number, in the order in which they were first changed


@dataclass
class Chain:
    """One solution under search. Routes are numbered 0, 1, …; `absent` is a list whose order counts (retries).

    `own` are its customers, in an order that counts: all, or those of a region (reference_regions.py).
    """

    numbers: Numbers
    routes: list[list[int]] = field(default_factory=list)
    absent: list[int] = field(default_factory=list)
    absences: list[int] = field(default_factory=list)  # by customer, while `serve_required` counts them
    relief: int = 0  # by how much a required customer counts less when steps are accepted

    def __post_init__(self) -> None:
        self.own, self.vehicles = list(range(1, self.numbers.n + 1)), self.numbers.vehicles
        self.set_routes(self.routes)

    def set_routes(self, routes: Sequence[Sequence[int]]) -> None:
        numbers = self.numbers
        self.routes = [list(route) for route in routes]
        self.absent = [] if numbers.prize is None else list(range(1, numbers.n + 1))
        for route in self.routes:
            for c in route:
                self._present(c)
        self.best, self.best_cost, self.best_is_now = self.copy(), self.cost(), True
        self.bonus = self.unit_bonus = 0

    def copy(self) -> list[list[int]]:
        return [list(route) for route in self.routes]

    def cost(self) -> int:
        lost = sum(self.numbers.left_out(c) for c in self.absent)
        return sum(self.numbers.tour_length(route) for route in self.routes) + lost

    def start(self, seed: int, chain: int, rounds: int, limited: bool, largest: int | None = None) -> None:
        numbers, largest = self.numbers, largest or self.numbers.n
        self.set_routes([])
        if not limited:
            self.set_routes([[c] for c in range(1, numbers.n + 1) if numbers.alone(c)])
        else:
            everyone = Recipe(rule="random", removals=largest, all_routes=True)
            self.improve(everyone, None, [0.0], chain_key(seed, START_ITERATION, chain))
        quarter = Recipe(rule="random", removals=max(1, largest // 4), all_routes=True)
        self.improve(quarter, None, [0.0] * rounds, chain_key(seed, START_ITERATION + 1, chain))

    def improve(
        self, recipe: Recipe, given: Sequence[Sequence[int]] | None, temperatures: Sequence[float], key: int
    ) -> int:
        """Steps in sequence; temperatures are in ticks. Returns how many were accepted."""
        accepted = 0
        for k, temperature in enumerate(temperatures):
            step_key = key_of(key, k)
            self.bonus = min(DEAR, int(min(f32(recipe.serve_bonus) * temperature, float(DEAR))))
            if not self.absences:
                price = self.numbers.missing - self.relief
                self.unit_bonus = price // max(1, self.numbers.capacity) if recipe.weigh_unserved else 0
            if recipe.tails and key_of(step_key, MASK64 - 2) >> 32 < chance(recipe.tails_share):
                random = Random(key_of(step_key, MASK64 - 1))
                margin = temperature * minus_log(random.bits() >> 8)
                if move := best_move(self, recipe, margin, random):
                    self.take_on(move, [])
            before = self.cost() + sum(map(self.bonus_of, self.absent))
            draft, left_out = self.reconstruct(recipe, None if given is None else given[k], step_key)
            delta = self.cost_of(draft, left_out) - before
            if float(delta) < temperature * minus_log(Random(key_of(step_key, MASK64)).bits() >> 8):
                if draft != {number: self.routes[number] for number in draft if number < len(self.routes)}:
                    self.take_on(draft, left_out)
                accepted += 1
        self.bonus = self.unit_bonus = 0
        return accepted

    def serve_required(
        self, recipe: Recipe, temperature: float, unit: int, steps: int, seed: int, chain: int
    ) -> int:  # fmt: skip
        """Steps until all required customers are served; an absent one costs its absences. Returns how many."""
        prize, key, made = self.numbers.prize, chain_key(seed, MASK64 - 3, chain), 0
        assert prize is not None
        heaviest = max(2, (1 << 60) // unit // self.numbers.n)
        self.absences = [1] * (self.numbers.n + 1)
        self.numbers.prize = [code if code == REQUIRED else 0 for code in prize]
        while made < steps and any(prize[c] == REQUIRED for c in self.absent):
            self.unit_bonus = unit
            self.improve(recipe, None, [temperature], key_of(key, made))
            made += 1
            waiting = [c for c in self.absent if prize[c] == REQUIRED]
            for c in waiting:
                self.absences[c] += 1
            if any(self.absences[c] >= heaviest for c in waiting):
                self.absences = [(count + 1) // 2 for count in self.absences]
        self.absences, self.numbers.prize = [], prize
        return made

    def bonus_of(self, c: int) -> int:
        """What serving c is worth beyond its prize."""
        numbers = self.numbers
        if numbers.prize is None or numbers.prize[c] <= DEAR:
            return self.bonus if numbers.prize is not None else 0
        if numbers.prize[c] != REQUIRED:
            return 0
        if self.absences:
            return self.unit_bonus * self.absences[c] - numbers.missing
        return self.unit_bonus * numbers.demand[c] - self.relief

    def evaluate(
        self, recipe: Recipe, given: Sequence[Sequence[int]] | None, rollouts: int, key: int, keep_best: bool,
        always: bool = False,
    ) -> list[int]:  # fmt: skip
        """The change in cost by each of K reconstructions of the same solution."""
        before = self.cost()
        drafts = [self.reconstruct(recipe, given and given[k], key_of(key, k)) for k in range(rollouts)]
        deltas = [self.cost_of(*draft) - before for draft in drafts]
        if keep_best and (always or min(deltas) < 0):
            self.take_on(*drafts[deltas.index(min(deltas))])
        return deltas

    # --- taking apart --------------------------------------------------------------------------

    def reconstruct(self, recipe: Recipe, given: Sequence[int] | None, key: int) -> tuple[Draft, list[int]]:
        removed = self.removal(recipe, given, Random(key_of(key, 0)))
        stripped, removed = self.strip(removed)
        tries = []
        for which in range(recipe.orders):
            random = Random(key_of(key, 1 + which))
            order = self.arrange(recipe, removed, which, random)
            blink_key, coin_key = random.bits(), key_of(random.key, MASK64)
            tries.append(self.put_back(stripped, order, recipe, blink_key, coin_key))
        return min(tries, key=lambda t: self.cost_of(*t))  # the first of the cheapest

    def removal(self, recipe: Recipe, given: Sequence[int] | None, random: Random) -> list[int]:
        numbers, own, removals = self.numbers, self.own, min(recipe.removals, len(self.own))
        if given is not None:
            out = list(given)
        elif recipe.rule == "string":
            out = self.strings(recipe, random)
        elif recipe.rule == "related":
            seed = own[random.below(len(own))]
            out = [c for c in [seed, *numbers.near[seed]] if c in own][:removals]
        elif removals * 4 <= len(own):
            out = []
            while len(out) < removals:
                c = own[random.below(len(own))]
                if c not in out:
                    out.append(c)
        else:
            everyone, out = list(own), []
            for i in range(removals):
                j = i + random.below(len(own) - i)
                out.append(everyone[j])
                everyone[j] = everyone[i]
        # Required customers that a tight fleet has left out are tried every time, up to 16 of them.
        if numbers.prize is not None and any(numbers.prize[c] == REQUIRED for c in self.absent):
            start, added = random.below(len(self.absent)), 0
            for c in self.absent[start:] + self.absent[:start]:
                if added < 16 and numbers.prize[c] == REQUIRED and c not in out:
                    out.append(c)
                    added += 1
        return out

    def strings(self, recipe: Recipe, random: Random) -> list[int]:
        """Adjacent string removal (Christiaens & Vanden Berghe 2020), in float32."""
        numbers, out, touched, absent = self.numbers, [], [], 0
        seed = self.own[random.below(len(self.own))]
        mean = f32((len(self.own) - len(self.absent)) / len(self.routes)) if self.routes else 1.0
        longest = min(mean, float(recipe.string_longest))
        most = f32(f32(4.0 * f32(recipe.string_average)) / f32(1.0 + longest))
        most = f32(most - 1.0)
        count = max(1, int(f32(1.0 + f32(random.unit() * most))))
        for c in [seed, *numbers.near[seed]]:
            if len(touched) == count:
                break
            if c in out or c not in self.own:
                continue
            if c in self.absent:
                absent += 1
                if absent <= int(recipe.string_average):
                    out.append(c)
                continue
            number = next(r for r, route in enumerate(self.routes) if c in route)
            if number in touched:
                continue
            touched.append(number)
            route = self.routes[number]
            limit = min(float(len(route)), longest)
            length = min(len(route), int(f32(1.0 + f32(random.unit() * limit))))
            out += self.string(recipe, route, route.index(c), length, random)
        return out

    @staticmethod
    def string(recipe: Recipe, route: list[int], here: int, length: int, random: Random) -> list[int]:
        kept = skip = 0
        if 1 < length < len(route) and random.unit() < f32(recipe.string_split):
            kept = 1
            while length + kept < len(route) and random.unit() < f32(recipe.string_depth):
                kept += 1
            skip = 1 + random.below(length - 1)
        span = length + kept
        low, high = max(0, here - span + 1), min(here, len(route) - span)
        start = low + random.below(high - low + 1)
        string = route[start : start + span]
        return string[:skip] + string[skip + kept :] if kept else string

    def strip(self, removed: list[int]) -> tuple[Draft, list[int]]:
        """The routes without them. A route that is in time only with them (no triangle inequality) keeps them."""
        draft: Draft = {}
        staying: set[int] = set()
        for c in removed:
            number = next((r for r, route in enumerate(self.routes) if c in route), None)
            if number is None or number in draft or c in staying:
                continue
            rest = [other for other in self.routes[number] if other not in removed]
            if rest and not self.numbers.fits(rest):
                staying |= set(self.routes[number])
            else:
                draft[number] = rest
        return draft, [c for c in removed if c not in staying]

    # --- putting back --------------------------------------------------------------------------

    def arrange(self, recipe: Recipe, removed: list[int], which: int, random: Random) -> list[int]:
        numbers, order = self.numbers, list(removed)
        if not recipe.sorted_orders:
            if which > 0:
                shuffle(order, random)
            return order
        draw, sort = random.below(sum(numbers.sort_weights)), 0
        while draw >= numbers.sort_weights[sort]:
            draw -= numbers.sort_weights[sort]
            sort += 1
        if sort == 0:
            shuffle(order, random)
            return order
        return sorted(order, key=lambda c: numbers.sort_ranks[sort - 1][c])

    def put_back(
        self, stripped: Draft, order: list[int], recipe: Recipe, blink_key: int, coin_key: int
    ) -> tuple[Draft, list[int]]:
        numbers = self.numbers
        draft = {number: list(route) for number, route in stripped.items()}
        opened, left_out = 0, []
        open_cheaper = key_of(coin_key, MASK64) >> 32 < chance(recipe.open_cheaper)
        for turn, c in enumerate(order):
            # Routes that the removal emptied are not filled again: a route for c alone gets a number of its own.
            candidates = {number: route for number, route in draft.items() if route}
            if recipe.all_routes:
                candidates |= {r: route for r, route in enumerate(self.routes) if r not in draft}
            dear = numbers.prize is None or recipe.serve_all or numbers.prize[c] > DEAR
            prize = math.inf if dear or numbers.prize is None else numbers.prize[c] + self.bonus
            # Ties go to the lower route, then the earlier place.
            everywhere = {(r, place): (r, place) for r, route in candidates.items() for place in range(len(route) + 1)}
            groups = [everywhere]
            if beside := recipe.insert_near if recipe.all_routes else 0:
                groups = [self.places_beside(c, count, candidates) for count in (beside, NEIGHBOURS)]
            best: tuple[float, int, int] = (math.inf, 0, 0)
            for places in groups[: None if dear else 1]:
                for (number, place), rank in places.items():
                    route = candidates[number]
                    if not numbers.carries([*route, c]):
                        continue
                    a, b = [0, *route, 0][place : place + 2]
                    cost = numbers.length[a][c] + numbers.length[c][b] - numbers.length[a][b]
                    skipped = (a, b) if beside else (number, place)
                    if (
                        (cost, *rank) < best
                        and numbers.fits([*route[:place], c, *route[place:]])
                        and not blinks(blink_key, chance(recipe.blink), turn, *skipped)
                    ):
                        best, where = (cost, *rank), (number, place)
                if best[0] < math.inf:
                    break
            found = best[0] < prize
            alone, opens = numbers.tour_length([c]), True
            if numbers.prize is not None:
                routes = sum(1 for route in draft.values() if route)
                routes += sum(1 for r in range(len(self.routes)) if r not in draft)
                possible = routes < self.vehicles and numbers.alone(c)
                coin = key_of(coin_key, turn) >> 32 < chance(recipe.open_route)
                opens = possible and (alone < prize or coin)
            if found and not (opens and open_cheaper and alone < best[0]):
                number, place = where
                draft.setdefault(number, list(self.routes[number]) if number < len(self.routes) else [])
                draft[number].insert(place, c)
                continue
            if not opens:
                left_out.append(c)
                continue
            draft[len(self.routes) + opened] = [c]
            opened += 1
        return draft, left_out

    def places_beside(self, c: int, count: int, candidates: Draft) -> dict[tuple[int, int], tuple[int, int]]:
        """The places before and after each of the nearest customers, and their order if costs are equal."""
        where = {v: (number, at) for number, route in candidates.items() for at, v in enumerate(route)}
        places: dict[tuple[int, int], tuple[int, int]] = {}
        for rank, v in enumerate([v for v in self.numbers.near[c] if v in self.own][:count]):
            if v in where:
                number, at = where[v]
                places.setdefault((number, at), (rank, 0))
                places.setdefault((number, at + 1), (rank, 1))
        return places

    def cost_of(self, draft: Draft, left_out: list[int]) -> int:
        """Of the whole solution that the draft stands for."""
        numbers = self.numbers
        routes = [draft.get(r, route) for r, route in enumerate(self.routes)]
        routes += [route for r, route in draft.items() if r >= len(self.routes)]
        cost = sum(numbers.tour_length(route) for route in routes)
        if numbers.prize is not None:
            served = {c for route in routes for c in route}
            assert not served & set(left_out)
            cost += sum(numbers.left_out(c) + self.bonus_of(c) for c in self.own if c not in served)
        return cost

    def take_on(self, draft: Draft, left_out: list[int]) -> None:
        before = self.cost()
        self.absent += [c for c in left_out if c not in self.absent]
        for number, route in draft.items():
            if number >= len(self.routes):
                self.routes.append([])
            self.routes[number] = route
            for c in route:
                self._present(c)
        for number in range(len(self.routes) - 1, -1, -1):  # the last route takes the number of one that is gone
            if not self.routes[number]:
                self.routes[number] = self.routes[-1]
                self.routes.pop()
        # The best seen so far; one at the same cost follows it as long as the chain has not left it, unless served
        # customers have a bonus.
        after = self.cost()
        if after < self.best_cost:
            self.best_cost, self.best_is_now = after, True
        elif after > before or self.bonus != 0 or self.unit_bonus != 0 or self.relief != 0:
            self.best_is_now = False
        if self.best_is_now:
            self.best = self.copy()

    def _present(self, c: int) -> None:
        if c in self.absent:  # the last one takes its place in the list
            at, last = self.absent.index(c), self.absent.pop()
            if last != c:
                self.absent[at] = last
