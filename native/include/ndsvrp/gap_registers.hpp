// Gaps in registers: see gaps.hpp.
#pragma once
#include "gaps.hpp"

namespace nds::inline NDS_ISA {

// A customer to be inserted.
template <class R, class D> struct Candidate {
  i32 c, row, limit;
  typename R::Probe probe;
  typename D::Spot spot;

  NDS_FN Candidate(const Instance& in, const D& d, i32 c, i32 row)
      : c(c), row(row), limit(R::limit(in, c)), probe(in, c), spot(d.spot(c)) {}
};

// The chosen gap, and the route that the customer makes of it.
template <class R> struct Filled {
  i32 key, before, after;  // the nodes on both sides
  i32 to, from;
  typename R::template Route<i32> route;
};

// The least value, by halves: a short chain of dependent operations.
template <i32 Count> NDS_FN i32 least_in(const i32* values) {
  if constexpr (Count == 1) {
    return values[0];
  } else {
    constexpr i32 half = Count / 2;
    return least(least_in<half>(values), least_in<Count - half>(values + half));
  }
}

// What the lanes of a team hold of a draft: each has `Slots` slots for gaps of the stripped routes. Fewer slots mean
// less work. No slot is asked whether it is in use, which keeps all lanes busy.
template <class R, class D, class L, i32 Slots, bool Blink> struct GapRegisters {
  // The state of its route, of the stop before and of the stop after.
  struct Gap : R::template Route<i32>, R::template Prefix<i32>, R::template Suffix<i32> {
    i32 key, edge;
  };
  struct Fresh : Gap {
    i32 before, after;
    typename D::Spot from, to;
  };

  const Stops& at;  // the stripped draft
  const Table& table;
  i32 stops;
  L lanes;
  Gap old[Slots];
  Fresh fresh[kFresh];
  i32 made = 0;  // fresh gaps of all lanes
  i32 opened = 0, unserved_count = 0;
  i64 delta = 0;

  NDS_FN i32 stop(i32 slot) const { return slot * L::W + lanes.lane; }

  NDS_FN GapRegisters(const D& d, const Workspace& work, i32 stops, L lanes)
      : at(work.stripped.at), table(work.table), stops(stops), lanes(lanes) {
    unrolled<Slots>([&](i32 slot) {
      const i32 p = stop(slot);
      const bool there = p < stops;
      const auto value = [&](i32& to, const i32* array) { to = there ? array[p] : 0; };
      const auto value_after = [&](i32& to, const i32* array) { to = there ? array[p + 1] : 0; };
      Gap& gap = old[slot];
      gap.key = there ? table.key[p] : kGone;
      gap.edge = there ? at.edge[p] : 0;
      R::each_route(gap, table, value);
      R::each_prefix(gap, at, value);
      R::each_suffix(gap, at, value_after);
    });
    unrolled<kFresh>([&](i32 i) {
      fresh[i] = Fresh{};
      fresh[i].key = kGone;
      fresh[i].from = fresh[i].to = d.spot(0);
    });
  }

  // Ways by the gap after stop p of the stripped draft.
  NDS_FN Ways ways_at(const D& d, const Candidate<R, D>& candidate, i32 p, bool there) const {
    if constexpr (D::symmetric) {
      const i32* way = table.way + candidate.row * table.columns + p;
      const i32 to = way[0], from = way[1];
      return Ways{to, from, to, from};
    } else {
      const i32 before = there ? at.node[p] : 0, after = there ? at.node[p + 1] : 0;
      return ways_by(d, candidate, before, after);
    }
  }
  NDS_FN Ways ways_by(const D& d, const Candidate<R, D>& candidate, const typename D::Spot& before,
                      const typename D::Spot& after) const {
    const i32 to = d.length_between(before, candidate.spot);
    const i32 from = d.length_between(candidate.spot, after);
    if constexpr (R::uses_time && !D::symmetric)
      return Ways{to, from, d.time(before, candidate.c), d.time(candidate.c, after)};
    return Ways{to, from, to, from};
  }

  // The cost of a gap; kNever if the customer does not fit, or a blink skips the gap.
  NDS_FN static i32 price(const Candidate<R, D>& candidate, const Ways& ways, const Gap& gap, const Blinks& blinks,
                          i32 turn) {
    const i32 cost = ways.to + ways.from - gap.edge;
    bool fits = (gap.key != kGone) & candidate.probe.fits_route(gap);
    fits &= candidate.probe.fits_position(gap, gap, gap, ways, cost);
    if constexpr (Blink) fits = fits && !blinks.at(turn, route_of_gap(gap.key), stop_of_gap(gap.key));
    return fits ? cost : kNever;
  }

  // The best gap of the team, and its cost; false if there is none. Lanes look for the one they offer, and fetch what
  // the winner will be asked for, while the team finds out what the best costs.
  NDS_FN bool choose(const D& d, const Candidate<R, D>& candidate, const Blinks& blinks, i32 turn, Filled<R>& filled,
                     i32& cost) {
    i32 costs[Slots], fresh_costs[kFresh];
    Ways fresh_ways[kFresh];
    unrolled<kFresh>([&](i32 i) {
      fresh_costs[i] = kNever, fresh_ways[i] = Ways{};
      if (i > 0 && i * L::W >= made) return;
      const Fresh& gap = fresh[i];
      fresh_ways[i] = ways_by(d, candidate, gap.from, gap.to);
      fresh_costs[i] = price(candidate, fresh_ways[i], gap, blinks, turn);
    });
    Ways ways[Slots];
    unrolled<Slots>([&](i32 slot) { ways[slot] = ways_at(d, candidate, stop(slot), old[slot].key != kGone); });
    unrolled<Slots>([&](i32 slot) { costs[slot] = price(candidate, ways[slot], old[slot], blinks, turn); });
    const i32 low = least(least_in<Slots>(costs), least_in<kFresh>(fresh_costs));
    cost = lanes.least_of(low);

    i32 keys[Slots], fresh_keys[kFresh];
    unrolled<Slots>([&](i32 slot) { keys[slot] = costs[slot] == low ? old[slot].key : kNever; });
    unrolled<kFresh>([&](i32 i) { fresh_keys[i] = fresh_costs[i] == low ? fresh[i].key : kNever; });
    i32 first = least(least_in<Slots>(keys), least_in<kFresh>(fresh_keys));
    if (low == kNever) first = kNever;  // which no gap has
    i32 where = 0;                      // its stop in the stripped draft
    typename R::template Route<i32> route{};
    unrolled<Slots>([&](i32 slot) {
      const bool it = old[slot].key == first;
      where = it ? stop(slot) : where;
      R::each_route(route, old[slot], [it](i32& to, i32 from) { to = it ? from : to; });
    });
    i32 before = at.node[where], after = at.node[where + 1];
    // If no route was touched, the draft is undefined.
    Ways there = ways_at(d, candidate, where, low != kNever && stops > 0);
    unrolled<kFresh>([&](i32 i) {
      const bool it = fresh[i].key == first;
      R::each_route(route, fresh[i], [it](i32& to, i32 from) { to = it ? from : to; });
      before = it ? fresh[i].before : before, after = it ? fresh[i].after : after;
      there.to = it ? fresh_ways[i].to : there.to;
      there.from = it ? fresh_ways[i].from : there.from;
    });
    if (cost >= candidate.limit) return false;
    u32 tied = lanes.ballot(low == cost);
    if (tied & (tied - 1)) {
      const i32 best = lanes.least_of(low == cost ? first : kNever);
      tied = lanes.ballot(low == cost && first == best);
    }
    const i32 winner = first_bit(tied);
    filled.key = lanes.from(first, winner);
    R::each_route(filled.route, route, [&](i32& to, i32 from) { to = lanes.from(from, winner); });
    candidate.probe.extend(filled.route, cost);
    filled.before = lanes.from(before, winner);
    filled.after = lanes.from(after, winner);
    filled.to = lanes.from(there.to, winner);
    filled.from = lanes.from(there.from, winner);
    return true;
  }

  // A filled gap goes, the stops after it move up, and its route has new numbers.
  NDS_FN static void adapt(Gap& gap, const Filled<R>& filled) {
    const bool same = same_route(gap.key, filled.key), gone = gap.key == filled.key;
    const i32 later = gap.key + i32(gap.key > filled.key);
    gap.key = same ? (gone ? kGone : later) : gap.key;
    R::each_route(gap, filled.route, [same](i32& to, i32 from) { to = same ? from : to; });
  }

  // Insert the customer: its gap becomes two. `line` is room for the stops of one route.
  NDS_FN void fill(const Instance& in, const D& d, const Stops& line, const Candidate<R, D>& candidate,
                   const Filled<R>& filled) {
    if constexpr (R::kStopFields > 0) save_ends(line, filled.key);
    unrolled<Slots>([&](i32 slot) { adapt(old[slot], filled); });
    unrolled<kFresh>([&](i32 i) {
      if (i * L::W < made) adapt(fresh[i], filled);
    });
    if constexpr (R::kStopFields > 0) refresh_route(in, d, line, candidate, filled);
    unrolled<kFresh>([&](i32 i) {
      const i32 number = i * L::W + lanes.lane - made;
      if ((number & ~1) != 0) return;
      const bool second = number == 1;
      Fresh& gap = fresh[i];
      gap.key = filled.key + number;
      R::copy_route(gap, filled.route);
      gap.edge = second ? filled.from : filled.to;
      gap.before = second ? candidate.c : filled.before;
      gap.after = second ? filled.after : candidate.c;
      gap.from = d.spot(gap.before), gap.to = d.spot(gap.after);
      read_state(line, gap);
    });
    if constexpr (R::kStopFields > 0) lanes.sync();  // the next turn writes to the line
    made += 2;
  }

  // Read the state of the stops on both sides of a gap.
  NDS_FN static void read_state(const Stops& line, Gap& gap) {
    const i32 p = stop_of_gap(gap.key);
    R::each_prefix(gap, line, [p](i32& to, const i32* array) { to = array[p]; });
    R::each_suffix(gap, line, [p](i32& to, const i32* array) { to = array[p + 1]; });
  }

  // Write the state on both sides of the gap that is filled next, where the route will have it.
  NDS_FN void save_ends(const Stops& line, i32 filled) {
    for_gaps([&](Gap& gap, i32, i32) {
      if (gap.key != filled) return;
      R::set_prefix(line, stop_of_gap(filled), gap);
      R::set_suffix(line, stop_of_gap(filled) + 2, gap);
    });
  }

  // The state of a route after an insertion: its gaps write the route in order, and read its state.
  NDS_FN void refresh_route(const Instance& in, const D& d, const Stops& line, const Candidate<R, D>& candidate,
                            const Filled<R>& filled) {
    const i32 here = stop_of_gap(filled.key);
    i32 size = here + 1;
    for_gaps([&](Gap& gap, i32 before, i32) {
      if (!same_route(gap.key, filled.key)) return;
      const i32 p = stop_of_gap(gap.key);
      line.node[p] = before, line.edge[p] = gap.edge;
      R::set_prefix(line, p, gap), R::set_suffix(line, p + 1, gap);
      size = most(size, p);
    });
    size = lanes.most_of(size);
    if (lanes.leads()) {
      line.node[here] = filled.before, line.edge[here] = filled.to;
      line.node[here + 1] = candidate.c, line.edge[here + 1] = filled.from;
      line.node[size + 1] = 0;
      if (size == 1) {
        Gap depot;
        R::begin(in, depot), R::end(in, depot);
        R::set_prefix(line, 0, depot), R::set_suffix(line, 2, depot);
      }
    }
    lanes.sync();
    R::inserted(in, d, line, 0, size, here + 1, lanes);
    for_gaps([&](Gap& gap, i32, i32) {
      if (same_route(gap.key, filled.key)) read_state(line, gap);
    });
  }

  // Call call(gap, node before, node after) for each gap.
  NDS_FN void for_gaps(auto call) {
    unrolled<Slots>([&](i32 slot) {
      if (old[slot].key == kGone) return;
      const i32 p = stop(slot);
      call(old[slot], at.node[p], at.node[p + 1]);
    });
    unrolled<kFresh>([&](i32 i) {
      Fresh& gap = fresh[i];
      if (i * L::W >= made || gap.key == kGone) return;
      call(gap, gap.before, gap.after);
    });
  }
};

// Insert the customers one by one where each is cheapest, as `recreate` does; `index` is the lane's place in the list
// of the removed customers, for the turn that has its number.
template <class R, class D>
NDS_FN void recreate_by_gaps(const Instance& in, const D& d, const Solution& s, Workspace& work, i32 index, i32 count,
                             i32 routes, const Greedy& greedy, auto& gaps, auto lanes) {
  const i32 mine = work.removed[index];
  const auto customer = [&](i32 turn) {
    return Candidate<R, D>(in, d, lanes.from(mine, turn), lanes.from(index, turn));
  };
  Draft& own = work.trial;  // its stops are free: one route at a time is written there
  Candidate<R, D> next = customer(0);
  for (i32 turn = 0; turn < count; ++turn) {
    const Candidate<R, D> candidate = next;
    Filled<R> filled;
    i32 cost;
    const bool found = gaps.choose(d, candidate, greedy.blinks, turn, filled, cost);
    next = customer(least(turn + 1, count - 1));
    if (!found) {
      const Ways ways = ways_alone<R>(d, candidate.c);
      if (!R::opens(in, candidate.probe, candidate.c, routes, ways, candidate.limit,
                    [&] { return greedy.coin(turn); })) {
        if (lanes.leads()) own.unserved[gaps.unserved_count] = candidate.c;
        ++gaps.unserved_count;
        continue;
      }
      cost = ways.to + ways.from;
      filled = Filled<R>{key_of_gap(s.routes + gaps.opened, 0), 0, 0, ways.to, ways.from, {}};
      candidate.probe.extend(filled.route, cost);
      ++gaps.opened;
      ++routes;
    }
    gaps.delta += i64(cost) - R::prize(in, candidate.c);
    gaps.fill(in, d, own.at, candidate, filled);
  }
  lanes.sync();
}

}  // namespace nds::inline NDS_ISA
