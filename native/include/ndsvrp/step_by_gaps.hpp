// A step by gaps in registers: see gaps.hpp.
#pragma once
#include "crew.hpp"
#include "gap_registers.hpp"
#include "orders.hpp"

namespace nds::inline NDS_ISA {

// Beside how many nearest customers one is inserted; 0: at any position.
NDS_FN i32 inserts_near(const Recipe& recipe) { return recipe.all_routes ? recipe.insert_near : 0; }

NDS_FN Greedy greedy_for(const Recipe& recipe, Random& ordering) {
  const u64 coin_key = key_of(ordering.key, ~0ull);
  const bool open_cheaper = u32(key_of(coin_key, ~0ull) >> 32) < recipe.open_cheaper;
  const Blinks blinks{ordering.bits(), recipe.blink};
  return Greedy{recipe.all_routes != 0, inserts_near(recipe), blinks, recipe.open_route, coin_key,
                open_cheaper,           recipe.serve_all != 0};
}

// A step by gaps before the recreation.
struct Task {
  const Touched* touched;
  i32 index, count;  // the lane's customer among the removed, and how many are removed
  i64 delta;         // of the stripped draft
  double margin;
};

template <class R, class D, i32 Slots, bool Blink, class C>
NDS_FN Outcome recreate_and_accept(const Instance& in, const D& d, Chain& chain, Workspace& work, const Task& task,
                                   const Greedy& greedy, C crew) {
  const auto lanes = crew.lanes;
  const Touched& touched = *task.touched;
  Solution& s = chain.current;
  GapRegisters<R, D, typename C::Lanes, Slots, Blink> gaps(d, work, touched.stops, lanes);
  recreate_by_gaps<R>(in, d, s, work, task.index, task.count, s.routes - count_bits(touched.empty), greedy, gaps,
                      lanes);
  const Outcome outcome = best_of(task.delta + gaps.delta, 0, crew.team, false, work, crew);
  if (outcome.accepted(task.margin)) {
    if (chain.best_is_current && outcome.delta > 0) {
      save_best(chain, crew);
      crew.sync();
    }
    if (outcome.mine) {
      commit_gaps<R>(in, s, work, touched, gaps, outcome.delta, lanes);
      if (s.cost < chain.best_cost) start_from_current(chain);
    }
    share(chain, work, outcome.mine, crew);
  }
  return outcome;
}

// Use as few slots per lane as possible.
template <class R, class D>
NDS_FN Outcome recreate_and_accept(const Instance& in, const D& d, Chain& chain, Workspace& work, const Recipe& recipe,
                                   const Task& task, const Greedy& greedy, auto crew) {
  constexpr i32 W = crew.lanes.W;
  const i32 stops = task.touched->stops;
  if constexpr (crew.blinks) {
    if (recipe.blink != 0) {
      return recreate_and_accept<R, D, kLarge<R>, true>(in, d, chain, work, task, greedy, crew);
    }
  }
  if (stops <= kSmall<R> * W) {
    return recreate_and_accept<R, D, kSmall<R>, false>(in, d, chain, work, task, greedy, crew);
  }
  if (stops <= kMedium<R> * W) {
    return recreate_and_accept<R, D, kMedium<R>, false>(in, d, chain, work, task, greedy, crew);
  }
  return recreate_and_accept<R, D, kLarge<R>, false>(in, d, chain, work, task, greedy, crew);
}

// The rest of a step after the ruin, each team with one insertion order. Returns false, without side effects, if the
// step does not fit into registers.
template <class R>
NDS_DEEP bool by_gaps(const Instance& in, const auto& d, Chain& chain, Workspace& work, const Recipe& recipe, i32 count,
                      u64 key, double margin, Outcome& outcome, auto crew) {
  const auto lanes = crew.lanes;
  Solution& s = chain.current;
  // Its loop has no branch for what only searches over all routes use: branches there cost 5% of the speed.
  if (recipe.all_routes || recipe.serve_all || recipe.open_cheaper || recipe.serve_bonus != 0 ||
      recipe.weigh_unserved || in.relief != 0 || recipe.orders > crew.teams)
    return false;
  if (!fits_registers(in, d, s, work.table, count, lanes)) return false;
  const Touched touched = touched_routes(s, work.removed, count, lanes);
  if (!fits_registers<R>(work.table, touched, lanes)) {
    crew.sync();  // all teams have read the removed customers
    return false;
  }

  CrewState& state = *work.crew;
  bool feasible = true;
  i64 delta = strip_share<R>(in, d, s, work, touched, feasible, crew);
  if (crew.team == 0 && lanes.lane < count) {
    const i32 c = work.removed[lanes.lane];
    if (s.route_of[c] >= 0) delta += R::prize(in, c);
  }
  delta = lanes.total(delta);
  if (lanes.leads()) state.delta[crew.team] = delta, state.late[crew.team] = !feasible;
  crew.sync();
  delta = 0;
  for (i32 t = 0; t < crew.teams; ++t) {
    delta += state.delta[t];
    feasible &= state.late[t] == 0;
  }
  if constexpr (R::refreshes) {
    if (!feasible) {
      crew.sync();  // all teams have read the state
      return false;
    }
  }
  measure(d, work, touched.stops, count, crew);
  Random ordering{key_of(key, 1 + u64(crew.team))};
  const i32 index = arranged(in, recipe, work.removed, count, crew.team, work.order, ordering, lanes);
  const Greedy greedy = greedy_for(recipe, ordering);
  crew.sync();
  const Task task{&touched, index, count, delta, margin};
  outcome = recreate_and_accept<R>(in, d, chain, work, recipe, task, greedy, crew);
  if (crew.team == 0) {
    for (i32 i = lanes.lane; i < count; i += crew.lanes.W) work.mark[work.removed[i]] = 0;
    lanes.sync();
  }
  return true;
}

}  // namespace nds::inline NDS_ISA
