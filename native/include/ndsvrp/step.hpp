// One step of the search: ruin, recreate in several insertion orders, accept or reject the best.
#pragma once
#include "ruin.hpp"
#include "step_by_gaps.hpp"

namespace nds {
inline namespace NDS_ISA {

// Take the solution apart: the first team does it; where all work on what comes next, the others
// learn of it, and of the margin that the last one has found out. Returns how many customers are to
// be inserted again, or -1 if time is up.
template <class C>
NDS_FN i32 take_out(const Instance& in, const Solution& s, Workspace& work, const Recipe& recipe,
                    const i32* given, u64 key, double& margin, C crew) {
  const auto lanes = crew.lanes;
  i32 count = -1;
  if (crew.team == 0 && !lanes.time_is_up()) {
    Random random{key_of(key, 0)};
    count = ruin(in, s, work, recipe, given, random, lanes);
  }
  if constexpr (C::by_gaps) {
    CrewState& state = *work.crew;
    if (crew.team == 0 && lanes.leads()) state.count = count;
    if (crew.team == crew.teams - 1 && lanes.leads()) state.margin = margin;
    crew.sync();
    count = state.count;
    margin = state.margin;
  }
  return count;
}

// The first team makes the stripped draft, the others learn of it. Returns how many customers are
// to be inserted, or -1 if time is up.
template <class R, class D, class C>
NDS_FN i32 strip_all(const Instance& in, const D& d, const Solution& s, Workspace& work, i32 count,
                     C crew) {
  const auto lanes = crew.lanes;
  if (crew.team == 0 && count >= 0) count = strip<R>(in, d, s, work, count, lanes);
  if constexpr (!C::alone) {
    CrewState& state = *work.crew;
    Draft& draft = work.stripped;
    if (crew.team == 0 && lanes.leads()) {
      state.left = count;
      state.used = draft.used, state.segments = draft.segments, state.routes = draft.routes;
      state.full = draft.full, state.stripped_delta = draft.delta;
    }
    crew.sync();
    count = state.left;
    draft.used = state.used, draft.segments = state.segments, draft.routes = state.routes;
    draft.full = state.full, draft.delta = state.stripped_delta;
    draft.opened = draft.unserved_count = 0;
  }
  return count;
}

// A single order of a single team needs no second draft: it is carried out in the stripped one.
template <class C> NDS_FN constexpr bool in_place(const Recipe& recipe) {
  return C::alone && recipe.orders == 1;
}

// The orders of a team, one after another: the best draft is kept. Returns its order.
template <class R, class D, class C>
NDS_FN i32 try_orders(const Instance& in, const D& d, const Solution& s, Workspace& work,
                      const Recipe& recipe, i32 count, u64 key, C crew) {
  const auto lanes = crew.lanes;
  const bool all = recipe.all_routes != 0;
  i32 best = crew.team;
  for (i32 which = crew.team; which < recipe.orders; which += crew.teams) {
    Random ordering{key_of(key, 1 + u64(which))};
    arrange(in, recipe, work.removed, count, which, work.order, ordering, lanes);
    const Greedy greedy = greedy_for(recipe, ordering);
    const bool only = in_place<C>(recipe);
    Draft& draft = only ? work.stripped : work.trial;
    if (!only) copy_draft<R>(draft, work.stripped, all, lanes);
    recreate<R>(in, d, s, draft, work.order, count, greedy, lanes);
    if (!only && (which == crew.team || draft.delta < work.best.delta)) {
      const Draft held = work.best;
      work.best = draft;
      work.trial = held;
      best = which;
    }
  }
  return best;
}

template <class R, class L>
NDS_DEEP void accept(const Instance& in, Chain& chain, Workspace& work, const Draft& draft,
                     L lanes) {
  if (chain.best_is_current && draft.delta > 0) save_best(chain, Alone<L>{lanes});
  commit<R>(in, chain.current, draft, work.spare, lanes);
  if (chain.current.cost < chain.best_cost) start_from_current(chain);
}

// Ready for the next step: nothing is drafted, nobody is marked.
template <class C> NDS_FN void tidy(Workspace& work, const Recipe& recipe, i32 count, C crew) {
  const auto lanes = crew.lanes;
  if (crew.team == 0) {
    for (i32 i = lanes.lane; i < count; i += C::Lanes::W) work.mark[work.removed[i]] = 0;
    forget(work.stripped, true, lanes);
  }
  if (!in_place<C>(recipe)) {
    forget(work.best, recipe.all_routes != 0, lanes);
    if (recipe.orders > crew.teams) forget(work.trial, recipe.all_routes != 0, lanes);
  }
  lanes.sync();
}

// A step whose customers are taken out: put back in several orders, the best of which is carried
// out if it is not worse by the margin or more.
template <class R, class D, class C>
NDS_FN bool by_drafts(const Instance& in, const D& d, Chain& chain, Workspace& work,
                      const Recipe& recipe, i32 count, u64 key, double margin, Outcome& outcome,
                      C crew) {
  count = strip_all<R>(in, d, chain.current, work, count, crew);
  if (count < 0) return false;
  const i32 order = try_orders<R>(in, d, chain.current, work, recipe, count, key, crew);
  const Draft& draft = in_place<C>(recipe) ? work.stripped : work.best;
  outcome = best_of(draft.delta, draft.full, order, work, crew);
  if (outcome.accepted(margin)) {
    if (outcome.mine) accept<R>(in, chain, work, draft, crew.lanes);
    share(chain, work, outcome.mine, crew);
  }
  tidy(work, recipe, count, crew);
  return true;
}

// One step. Returns false if time was up before it; what it has come to is in `outcome`.
template <class R, class D, class C>
NDS_FN bool step(const Instance& in, const D& d, Chain& chain, Workspace& work,
                 const Recipe& recipe, const i32* given, u64 key, double margin, Outcome& outcome,
                 C crew) {
  const i32 count = take_out(in, chain.current, work, recipe, given, key, margin, crew);
  if constexpr (C::by_gaps) {
    if (count < 0) return false;
    if (by_gaps<R>(in, d, chain, work, recipe, count, key, margin, outcome, crew)) return true;
  }
  return by_drafts<R>(in, d, chain, work, recipe, count, key, margin, outcome, crew);
}

constexpr i32 kFull = -1;

// Steps from … to-1 of an improvement step (the paper's figure 3): each starts from what the one
// before left. Accepts if new < current - T ln(u). Returns how many were made before time was up,
// or kFull if there was too little room for one, after which the work is of no more use.
template <class R, class D, class C>
NDS_DEEP i32 improve(const Instance& in, Chain& chain, Workspace& work, const Recipe& recipe,
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
    if (!step<R>(in, d, chain, work, recipe, removed, step_key, margin, outcome, crew)) break;
    if (outcome.full) return kFull;
  }
  if constexpr (C::by_gaps) {
    if (!recipe.all_routes) update_boxes(in, chain.current, crew);
  }
  return k - from;
}

// The change in cost that rollout k would bring (what training needs), or kNoRoom; with `keep`, it
// is carried out.
template <class R, class D, class C>
NDS_DEEP i64 evaluate(const Instance& in, Chain& chain, Workspace& work, const Recipe& recipe,
                      const i32* given, i32 k, u64 key, bool keep, C crew) {
  const D d(in);
  const u64 step_key = key_of(key, u64(k));
  const i32* removed = given ? given + i64(k) * recipe.removals : nullptr;
  constexpr double kAlways = 1e300;
  Outcome outcome{};
  step<R>(in, d, chain, work, recipe, removed, step_key, keep ? kAlways : -kAlways, outcome, crew);
  if constexpr (C::by_gaps) {
    if (keep && !recipe.all_routes) update_boxes(in, chain.current, crew);
  }
  return outcome.full ? kNoRoom : outcome.delta;
}

}  // namespace NDS_ISA
}  // namespace nds
