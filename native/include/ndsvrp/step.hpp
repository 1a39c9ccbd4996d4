// One step of the search: take apart, put back in several orders, keep the best, accept or not.
#pragma once
#include "gaps.hpp"
#include "ruin.hpp"

namespace nds {
inline namespace NDS_ISA {

NDS_FN void shuffle(i32* items, i32 count, Random random) {
  for (i32 i = count - 1; i > 0; --i) {
    const i32 j = random.below(i + 1), held = items[i];
    items[i] = items[j];
    items[j] = held;
  }
}

NDS_FN void sort_by(const i32* rank, i32* items, i32 count) {
  for (i32 i = 1; i < count; ++i) {
    const i32 c = items[i];
    i32 j = i;
    for (; j > 0 && rank[items[j - 1]] > rank[c]; --j) items[j] = items[j - 1];
    items[j] = c;
  }
}

// The same by as many lanes as there are items: which of them comes to the lane's place. All draw
// at once; then each goes back through the swaps.
template <class L> NDS_FN i32 shuffled(i32 count, const Random& random, L lanes) {
  const i32 i = lanes.lane;
  i32 drawn = 0, place = i;
  if (i > 0 && i < count)
    drawn = Random{random.key, random.counter + u64(count - 1 - i)}.below(i + 1);
  for (i32 k = 1; k < count; ++k) {
    const i32 other = lanes.from(drawn, k);
    place = place == k ? other : place == other ? k : place;
  }
  return place;
}

template <class L>
NDS_FN i32 sorted_by(const i32* rank, const i32* items, i32* order, i32 count, L lanes) {
  const bool there = lanes.lane < count;
  const i32 mine = there ? rank[items[lanes.lane]] : 0;
  i32 place = 0;
  for (i32 k = 0; k < count; ++k) {
    const i32 other = lanes.from(mine, k);
    place += (other < mine) | ((other == mine) & (k < lanes.lane));
  }
  if (there) order[place] = lanes.lane;
  lanes.sync();
  return there ? order[lanes.lane] : 0;
}

// Order number `which` of reinsertion: the removal's own first and random ones after it, or,
// sorted, one of SISRs' sort orders drawn by weight. This is the number of that sort order, or 0.
NDS_FN i32 draw_sort(const Instance& in, const Recipe& recipe, Random& random) {
  i32 sort = 0;
  if (recipe.sorted) {
    i32 total = 0;
    for (i32 k = 0; k <= in.sorts; ++k) total += in.sort_weight[k];
    i32 draw = random.below(total);
    while (draw >= in.sort_weight[sort]) draw -= in.sort_weight[sort++];
  }
  return sort;
}

// The index among the removed of the lane's customer, for no more customers than lanes.
template <class L>
NDS_FN i32 arranged(const Instance& in, const Recipe& recipe, const i32* removed, i32 count,
                    i32 which, i32* order, Random& random, L lanes) {
  const i32 sort = draw_sort(in, recipe, random);
  if (sort > 0)
    return sorted_by(in.rank + i64(sort - 1) * (in.n + 1), removed, order, count, lanes);
  if (!recipe.sorted && which == 0) return lanes.lane < count ? lanes.lane : 0;
  const i32 index = shuffled(count, random, lanes);
  random.counter += u64(most(0, count - 1));  // what the shuffle drew
  return lanes.lane < count ? index : 0;
}

template <class L>
NDS_FN void arrange(const Instance& in, const Recipe& recipe, const i32* removed, i32 count,
                    i32 which, i32* order, Random& random, L lanes) {
  if constexpr (L::W > 1) {
    if (count <= L::W) {
      const i32 index = arranged(in, recipe, removed, count, which, order, random, lanes);
      lanes.sync();
      if (lanes.lane < count) order[lanes.lane] = removed[index];
      lanes.sync();
      return;
    }
  }
  for (i32 i = lanes.lane; i < count; i += L::W) order[i] = removed[i];
  const i32 sort = draw_sort(in, recipe, random);
  lanes.sync();
  if (sort > 0) {
    if (lanes.leads()) sort_by(in.rank + i64(sort - 1) * (in.n + 1), order, count);
  } else if (recipe.sorted || which > 0) {
    if (lanes.leads()) shuffle(order, count, random);
    random.counter += u64(most(0, count - 1));
  }
  lanes.sync();
}

// Take the solution apart: the first team does it; where all work on what comes next, the others
// learn of it, and of the margin that the last one has found out. Returns how many customers are to
// be inserted again, or -1 if time is up.
template <class C>
NDS_FN i32 take_out(const Instance& in, const Solution& s, Scratch& scratch, const Recipe& recipe,
                    const i32* given, u64 key, double& margin, C crew) {
  const auto lanes = crew.lanes;
  i32 count = -1;
  if (crew.team == 0 && !lanes.time_is_up()) {
    Random random{key_of(key, 0)};
    count = take_apart(in, s, scratch, recipe, given, random, lanes);
  }
  if constexpr (C::by_gaps) {
    Board& board = *scratch.board;
    if (crew.team == 0 && lanes.leads()) board.count = count;
    if (crew.team == crew.teams - 1 && lanes.leads()) board.margin = margin;
    crew.sync();
    count = board.count;
    margin = board.margin;
  }
  return count;
}

// The first team makes the stripped draft, the others learn of it. Returns how many customers are
// to be inserted, or -1 if time is up.
template <class R, class D, class C>
NDS_FN i32 strip_all(const Instance& in, const D& d, const Solution& s, Scratch& scratch, i32 count,
                     C crew) {
  const auto lanes = crew.lanes;
  if (crew.team == 0 && count >= 0) count = strip<R>(in, d, s, scratch, count, lanes);
  if constexpr (!C::alone) {
    Board& board = *scratch.board;
    Draft& draft = scratch.stripped;
    if (crew.team == 0 && lanes.leads()) {
      board.left = count;
      board.used = draft.used, board.segments = draft.segments, board.routes = draft.routes;
      board.full = draft.full, board.stripped_delta = draft.delta;
    }
    crew.sync();
    count = board.left;
    draft.used = board.used, draft.segments = board.segments, draft.routes = board.routes;
    draft.full = board.full, draft.delta = board.stripped_delta;
    draft.opened = draft.left_outs = 0;
  }
  return count;
}

// A single order of a single team needs no second draft: it is carried out in the stripped one.
template <class C> NDS_FN constexpr bool in_place(const Recipe& recipe) {
  return C::alone && recipe.orders == 1;
}

NDS_FN Greedy greedy_for(const Recipe& recipe, Random& ordering) {
  return Greedy{recipe.all_routes != 0, Blinks{ordering.bits(), recipe.blink}, recipe.open_route,
                key_of(ordering.key, ~0ull)};
}

// The orders of a team, one after another: the best draft is kept. Returns its order.
template <class R, class D, class C>
NDS_FN i32 try_orders(const Instance& in, const D& d, const Solution& s, Scratch& scratch,
                      const Recipe& recipe, i32 count, u64 key, C crew) {
  const auto lanes = crew.lanes;
  const bool all = recipe.all_routes != 0;
  i32 best = crew.team;
  for (i32 which = crew.team; which < recipe.orders; which += crew.teams) {
    Random ordering{key_of(key, 1 + u64(which))};
    arrange(in, recipe, scratch.removed, count, which, scratch.order, ordering, lanes);
    const Greedy greedy = greedy_for(recipe, ordering);
    const bool only = in_place<C>(recipe);
    Draft& draft = only ? scratch.stripped : scratch.trial;
    if (!only) copy_draft<R>(draft, scratch.stripped, all, lanes);
    put_back<R>(in, d, s, draft, scratch.order, count, greedy, lanes);
    if (!only && (which == crew.team || draft.delta < scratch.best.delta)) {
      const Draft held = scratch.best;
      scratch.best = draft;
      scratch.trial = held;
      best = which;
    }
  }
  return best;
}

// What came of a step.
struct Outcome {
  i64 delta;        // of the best draft
  bool mine;        // this team made it
  bool late, full;  // worth nothing: time is up, or there was too little room

  NDS_FN bool accepted(double margin) const { return !late && !full && double(delta) < margin; }
};

// The best draft of the crew: the first of the cheapest.
template <class C>
NDS_FN Outcome best_of(i64 delta, i32 full, i32 order, const Scratch& scratch, C crew) {
  if constexpr (C::alone) {
    return Outcome{delta, true, crew.lanes.time_is_up(), full != 0};
  } else {
    Board& board = *scratch.board;
    const bool late = crew.lanes.time_is_up();
    if (crew.lanes.leads()) {
      board.delta[crew.team] = delta;
      board.order[crew.team] = order;
      board.late[crew.team] = late;
      board.overfull[crew.team] = full;
    }
    crew.sync();
    i32 best = 0;
    bool one_late = false, one_full = false;
    for (i32 t = 0; t < crew.teams; ++t) {
      const bool less = board.delta[t] < board.delta[best];
      const bool same = board.delta[t] == board.delta[best];
      if (less || (same && board.order[t] < board.order[best])) best = t;
      one_late |= board.late[t] != 0;
      one_full |= board.overfull[t] != 0;
    }
    return Outcome{board.delta[best], best == crew.team, one_late, one_full};
  }
}

template <class R, class L>
NDS_DEEP void accept(const Instance& in, Chain& chain, Scratch& scratch, const Draft& draft,
                     L lanes) {
  if (chain.best_is_now && draft.delta > 0) save_best(chain, Alone<L>{lanes});
  commit<R>(in, chain.now, draft, scratch.spare, lanes);
  if (chain.now.cost < chain.best_cost) start_from_now(chain);
}

// All teams learn what the chain has come to.
template <class C> NDS_FN void share(Chain& chain, Scratch& scratch, bool mine, C crew) {
  if constexpr (!C::alone) {
    Board& board = *scratch.board;
    Solution& s = chain.now;
    if (mine && crew.lanes.leads()) {
      board.cost = s.cost, board.best_cost = chain.best_cost;
      board.chain_routes = s.routes, board.chain_used = s.used;
      board.absents = s.absents, board.absent_required = s.absent_required;
      board.best_is_now = chain.best_is_now, board.best_length = chain.best_length;
      board.best_missing = chain.best_missing;
    }
    crew.sync();
    s.cost = board.cost, chain.best_cost = board.best_cost;
    s.routes = board.chain_routes, s.used = board.chain_used;
    s.absents = board.absents, s.absent_required = board.absent_required;
    chain.best_is_now = board.best_is_now, chain.best_length = board.best_length;
    chain.best_missing = board.best_missing;
  }
}

// Ready for the next step: nothing is drafted, nobody is marked.
template <class C> NDS_FN void tidy(Scratch& scratch, const Recipe& recipe, i32 count, C crew) {
  const auto lanes = crew.lanes;
  if (crew.team == 0) {
    for (i32 i = lanes.lane; i < count; i += C::Lanes::W) scratch.mark[scratch.removed[i]] = 0;
    forget(scratch.stripped, true, lanes);
  }
  if (!in_place<C>(recipe)) {
    forget(scratch.best, recipe.all_routes != 0, lanes);
    if (recipe.orders > crew.teams) forget(scratch.trial, recipe.all_routes != 0, lanes);
  }
  lanes.sync();
}

// A step whose customers are taken out: put back in several orders, the best of which is carried
// out if it is not worse by the margin or more.
template <class R, class D, class C>
NDS_FN bool by_drafts(const Instance& in, const D& d, Chain& chain, Scratch& scratch,
                      const Recipe& recipe, i32 count, u64 key, double margin, Outcome& outcome,
                      C crew) {
  count = strip_all<R>(in, d, chain.now, scratch, count, crew);
  if (count < 0) return false;
  const i32 order = try_orders<R>(in, d, chain.now, scratch, recipe, count, key, crew);
  const Draft& draft = in_place<C>(recipe) ? scratch.stripped : scratch.best;
  outcome = best_of(draft.delta, draft.full, order, scratch, crew);
  if (outcome.accepted(margin)) {
    if (outcome.mine) accept<R>(in, chain, scratch, draft, crew.lanes);
    share(chain, scratch, outcome.mine, crew);
  }
  tidy(scratch, recipe, count, crew);
  return true;
}

// What is known of a step by gaps before customers are put back.
struct Task {
  const Touched* touched;
  i32 index, count;  // of the lane's customer, of all
  i64 delta;         // of the stripped draft
  double margin;
};

template <class R, class D, i32 Slots, bool Blink, class C>
NDS_FN Outcome carry_out(const Instance& in, const D& d, Chain& chain, Scratch& scratch,
                         const Task& task, const Greedy& greedy, C crew) {
  const auto lanes = crew.lanes;
  const Touched& touched = *task.touched;
  Solution& s = chain.now;
  Hands<R, D, typename C::Lanes, Slots, Blink> hands(d, scratch, touched.places, lanes);
  put_back_by_gaps<R>(in, d, s, scratch, task.index, task.count,
                      s.routes - count_bits(touched.empty), greedy, hands, lanes);
  const Outcome outcome = best_of(task.delta + hands.delta, 0, crew.team, scratch, crew);
  if (outcome.accepted(task.margin)) {
    if (chain.best_is_now && outcome.delta > 0) {
      save_best(chain, crew);
      crew.sync();
    }
    if (outcome.mine) {
      commit_gaps<R>(in, s, scratch, touched, hands, outcome.delta, lanes);
      if (s.cost < chain.best_cost) start_from_now(chain);
    }
    share(chain, scratch, outcome.mine, crew);
  }
  return outcome;
}

// By as few gaps per lane as will do.
template <class R, class D, class C>
NDS_FN Outcome carry_out(const Instance& in, const D& d, Chain& chain, Scratch& scratch,
                         const Recipe& recipe, const Task& task, const Greedy& greedy, C crew) {
  constexpr i32 W = C::Lanes::W;
  const i32 places = task.touched->places;
  if constexpr (C::blinks) {
    if (recipe.blink != 0) {
      return carry_out<R, D, kLarge<R>, true>(in, d, chain, scratch, task, greedy, crew);
    }
  }
  if (places <= kSmall<R> * W) {
    return carry_out<R, D, kSmall<R>, false>(in, d, chain, scratch, task, greedy, crew);
  }
  if (places <= kMedium<R> * W) {
    return carry_out<R, D, kMedium<R>, false>(in, d, chain, scratch, task, greedy, crew);
  }
  return carry_out<R, D, kLarge<R>, false>(in, d, chain, scratch, task, greedy, crew);
}

// The same with gaps in the hands of lanes, each team with one order (gaps.hpp); false if that
// cannot be done with this step, of which nothing is done then.
template <class R, class D, class C>
NDS_FN bool by_gaps(const Instance& in, const D& d, Chain& chain, Scratch& scratch,
                    const Recipe& recipe, i32 count, u64 key, double margin, Outcome& outcome,
                    C crew) {
  const auto lanes = crew.lanes;
  Solution& s = chain.now;
  if (recipe.all_routes || recipe.orders > crew.teams) return false;
  if (!fits_hands(in, d, s, scratch.table, count, lanes)) return false;
  const Touched touched = touched_routes(s, scratch.removed, count, lanes);
  if (!fits_hands<R>(scratch.table, touched, lanes)) {
    crew.sync();  // all have seen who was removed
    return false;
  }

  Board& board = *scratch.board;
  bool in_time = true;
  i64 delta = strip_share<R>(in, d, s, scratch, touched, in_time, crew);
  if constexpr (R::optional) {
    if (crew.team == 0 && lanes.lane < count) {
      const i32 c = scratch.removed[lanes.lane];
      if (s.route_of[c] >= 0) delta += R::prize(in, c);
    }
  }
  delta = lanes.total(delta);
  if (lanes.leads()) board.delta[crew.team] = delta, board.late[crew.team] = !in_time;
  crew.sync();
  delta = 0;
  for (i32 t = 0; t < crew.teams; ++t) {
    delta += board.delta[t];
    in_time &= board.late[t] == 0;
  }
  if constexpr (R::windows) {
    if (!in_time) {
      crew.sync();  // all have heard of it
      return false;
    }
  }
  measure(d, scratch, touched.places, count, crew);
  Random ordering{key_of(key, 1 + u64(crew.team))};
  const i32 index =
      arranged(in, recipe, scratch.removed, count, crew.team, scratch.order, ordering, lanes);
  const Greedy greedy = greedy_for(recipe, ordering);
  crew.sync();
  const Task task{&touched, index, count, delta, margin};
  outcome = carry_out<R>(in, d, chain, scratch, recipe, task, greedy, crew);
  if (crew.team == 0) {
    for (i32 i = lanes.lane; i < count; i += C::Lanes::W) scratch.mark[scratch.removed[i]] = 0;
    lanes.sync();
  }
  return true;
}

// One step. Returns false if time was up before it; what it has come to is in `outcome`.
template <class R, class D, class C>
NDS_FN bool step(const Instance& in, const D& d, Chain& chain, Scratch& scratch,
                 const Recipe& recipe, const i32* given, u64 key, double margin, Outcome& outcome,
                 C crew) {
  const i32 count = take_out(in, chain.now, scratch, recipe, given, key, margin, crew);
  if constexpr (C::by_gaps) {
    if (count < 0) return false;
    if (by_gaps<R>(in, d, chain, scratch, recipe, count, key, margin, outcome, crew)) return true;
  }
  return by_drafts<R>(in, d, chain, scratch, recipe, count, key, margin, outcome, crew);
}

constexpr i32 kFull = -1;

// Steps from … to-1 of an improvement step (the paper's figure 3): each starts from what the one
// before left. Accepts if new < current - T ln(u). Returns how many were made before time was up,
// or kFull if there was too little room for one, after which the scratch is of no more use.
template <class R, class D, class C>
NDS_DEEP i32 improve(const Instance& in, Chain& chain, Scratch& scratch, const Recipe& recipe,
                     const i32* given, const double* temperature, i32 from, i32 to, u64 key,
                     C crew) {
  const D d(in);
  i32 k = from;
  for (; k < to; ++k) {
    const u64 step_key = key_of(key, u64(k));
    const i32* removed = given ? given + i64(k) * recipe.removals : nullptr;
    double margin = 0.0;
    if (!C::by_gaps || crew.team == crew.teams - 1) {
      Random random{key_of(step_key, ~0ull)};
      margin = temperature[k] * minus_log(random.bits() >> 8);
    }
    Outcome outcome{};
    if (!step<R>(in, d, chain, scratch, recipe, removed, step_key, margin, outcome, crew)) break;
    if (outcome.full) return kFull;
  }
  if constexpr (C::by_gaps) {
    if (!recipe.all_routes) update_boxes(in, chain.now, crew);
  }
  return k - from;
}

// The change in cost that rollout k would bring (what training needs), or kNoRoom; with `keep`, it
// is carried out.
template <class R, class D, class C>
NDS_DEEP i64 evaluate(const Instance& in, Chain& chain, Scratch& scratch, const Recipe& recipe,
                      const i32* given, i32 k, u64 key, bool keep, C crew) {
  const D d(in);
  const u64 step_key = key_of(key, u64(k));
  const i32* removed = given ? given + i64(k) * recipe.removals : nullptr;
  constexpr double kAlways = 1e300;
  Outcome outcome{};
  step<R>(in, d, chain, scratch, recipe, removed, step_key, keep ? kAlways : -kAlways, outcome,
          crew);
  if constexpr (C::by_gaps) {
    if (keep && !recipe.all_routes) update_boxes(in, chain.now, crew);
  }
  return outcome.full ? kNoRoom : outcome.delta;
}

}  // namespace NDS_ISA
}  // namespace nds
