// One step of the search: ruin, recreate in several insertion orders, accept or reject the best.
#pragma once
#include "ruin.hpp"
#include "step_by_gaps.hpp"
#include "tails.hpp"

namespace nds::inline NDS_ISA {

// The first team ruins. In crews that work by gaps, the others get the count, and all get the margin from the last
// team. Returns how many customers are removed, or -1 if time is up.
NDS_FN i32 ruin_by_crew(const Instance& in, const Solution& s, Workspace& work, const Recipe& recipe, const i32* given,
                        u64 key, double& margin, auto crew) {
  const auto lanes = crew.lanes;
  i32 count = -1;
  if (crew.team == 0 && !lanes.time_is_up()) {
    Random random{key_of(key, 0)};
    count = ruin(in, s, work, recipe, given, random, lanes);
  }
  if constexpr (crew.by_gaps) {
    CrewState& state = *work.crew;
    if (crew.team == 0 && lanes.leads()) state.count = count;
    if (crew.team == crew.teams - 1 && lanes.leads()) state.margin = margin;
    crew.sync();
    count = state.count;
    margin = state.margin;
  }
  return count;
}

// The first team makes the stripped draft, the others get its numbers. Returns how many customers are removed, or -1 if
// time is up.
template <class R>
NDS_FN i32 strip_all(const Instance& in, const auto& d, const Solution& s, Workspace& work, i32 count, auto crew) {
  const auto lanes = crew.lanes;
  if (crew.team == 0 && count >= 0) count = strip<R>(in, d, s, work, count, lanes);
  if constexpr (!crew.alone) {
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

// A single insertion order of a single team needs no second draft: it changes the stripped one.
template <class C> NDS_FN constexpr bool in_place(const Recipe& recipe) { return C::alone && recipe.orders == 1; }

// Recreate in the insertion orders of a team, one after another, and keep the best draft. Drafts that cannot end below
// `ceiling` may be incomplete. Returns the number of the best order.
template <class R, class C>
NDS_FN i32 try_orders(const Instance& in, const auto& d, const Solution& s, Workspace& work, const Recipe& recipe,
                      i32 count, u64 key, double ceiling, C crew) {
  const auto lanes = crew.lanes;
  const bool all = recipe.all_routes != 0;
  i32 best = crew.team;
  for (i32 number = crew.team; number < recipe.orders; number += crew.teams) {
    Random ordering{key_of(key, 1 + u64(number))};
    arrange(in, recipe, work.removed, count, number, work.order, ordering, lanes);
    const Greedy greedy = greedy_for(recipe, ordering);
    const bool only = in_place<C>(recipe);
    Draft& draft = only ? work.stripped : work.trial;
    if (!only) copy_draft<R>(draft, work.stripped, all, lanes);
    recreate<R>(in, d, s, draft, work.order, count, greedy, ceiling, lanes);
    if (!only && (number == crew.team || draft.delta < work.best.delta)) {
      const Draft held = work.best;
      work.best = draft;
      work.trial = held;
      best = number;
      if (double(work.best.delta) < ceiling) ceiling = double(work.best.delta);
    }
  }
  return best;
}

template <class R, class L>
NDS_DEEP void accept(const Instance& in, Chain& chain, Workspace& work, const Draft& draft, L lanes) {
  // With a bonus the sign of the change in cost is not known yet.
  const bool has_bonus = in.bonus != 0 || in.unit_bonus != 0 || in.relief != 0;
  if (chain.best_is_current && (draft.delta > 0 || has_bonus)) save_best(chain, Alone<L>{lanes});
  commit<R>(in, chain.current, draft, work.spare, lanes);
  if (chain.current.cost < chain.best_cost) start_from_current(chain);
}

// Whether the draft holds routes of the solution as they are. About half of all steps end so: greedy insertion puts the
// customers back where they were.
template <class L> NDS_FN bool is_unchanged(const Solution& s, const Draft& draft, L lanes) {
  bool differs = false;
  for (i32 i = 0; i < draft.segments && !differs; ++i) {
    const Segment& seg = draft.segment[i];
    differs = seg.route >= s.routes || seg.size != s.size[seg.route];
    if (differs) break;
    const i32 *here = draft.at.node + seg.first, *there = s.at.node + s.first[seg.route];
    for (i32 p = 1 + lanes.lane; p <= seg.size; p += L::W) differs |= here[p] != there[p];
    differs = lanes.ballot(differs) != 0;
  }
  lanes.sync();  // all have read the solution
  return !differs;
}

template <class L> NDS_FN void tidy_stripped(Workspace& work, i32 count, L lanes) {
  for (i32 i = lanes.lane; i < count; i += L::W) work.mark[work.removed[i]] = 0;
  forget(work.stripped, true, lanes);
}

// Prepare for the next step: no route is drafted, no customer is marked.
template <class C> NDS_FN void tidy(Workspace& work, const Recipe& recipe, i32 count, C crew) {
  const auto lanes = crew.lanes;
  if (crew.team == 0) tidy_stripped(work, count, lanes);
  if (!in_place<C>(recipe)) {
    forget(work.best, recipe.all_routes != 0, lanes);
    if (recipe.orders > crew.teams) forget(work.trial, recipe.all_routes != 0, lanes);
  }
  lanes.sync();
}

// The rest of a step after the ruin: recreate in several insertion orders, and accept the best if its change in cost is
// below the margin.
template <class R, class C>
NDS_FN bool by_drafts(const Instance& in, const auto& d, Chain& chain, Workspace& work, const Recipe& recipe, i32 count,
                      u64 key, double margin, double ceiling, Outcome& outcome, C crew) {
  count = strip_all<R>(in, d, chain.current, work, count, crew);
  if (count < 0) return false;
  const i32 order = try_orders<R>(in, d, chain.current, work, recipe, count, key, ceiling, crew);
  const Draft& draft = in_place<C>(recipe) ? work.stripped : work.best;
  outcome = best_of(draft.delta, draft.full, order, count >= kLook, work, crew);
  if (outcome.accepted(margin)) {
    if (outcome.mine && (draft.delta != 0 || !is_unchanged(chain.current, draft, crew.lanes)))
      accept<R>(in, chain, work, draft, crew.lanes);
    share(chain, work, outcome.mine, crew);
  }
  tidy(work, recipe, count, crew);
  return true;
}

// Make one step, accepted if its change in cost is below the margin. If the change is not below `ceiling`, the outcome
// may state another one that is not below it either. Returns false if time was up before the step.
template <class R>
NDS_FN bool step(const Instance& in, const auto& d, Chain& chain, Workspace& work, const Recipe& recipe,
                 const i32* given, u64 key, double margin, double ceiling, Outcome& outcome, auto crew) {
  const i32 count = ruin_by_crew(in, chain.current, work, recipe, given, key, margin, crew);
  if constexpr (crew.by_gaps) {
    if (count < 0) return false;
    if (by_gaps<R>(in, d, chain, work, recipe, count, key, margin, outcome, crew)) return true;
  }
  return by_drafts<R>(in, d, chain, work, recipe, count, key, margin, ceiling, outcome, crew);
}

constexpr i32 kFull = -1;

// Try to exchange tails of routes, accepted as a step is. The first team does it. Returns false if
// its draft ran out of stops.
template <class R, class D, class C>
NDS_FN bool swap_tails(const Instance& in, const D& d, Chain& chain, Workspace& work, const Recipe& recipe,
                       double temperature, u64 key, C crew) {
  bool moved = false, full = false;
  if (crew.team == 0) {
    Random random{key_of(key, ~1ull)};
    const double margin = margin_of(temperature, random);
    Draft& draft = work.stripped;
    moved = draft_tails<R>(in, d, chain.current, draft, recipe.tails, margin, random, crew.lanes);
    full = moved && draft.full;
    if (moved && !full) accept<R>(in, chain, work, draft, crew.lanes);
    draft.segments = 0;
  }
  if constexpr (!C::alone) {
    CrewState& state = *work.crew;
    if (crew.team == 0 && crew.lanes.leads()) state.moved = moved, state.full = full;
    crew.sync();
    moved = state.moved, full = state.full;
    if (moved) share(chain, work, crew.team == 0, crew);
  }
  return !full;
}

// Added to each prize at this temperature.
NDS_FN i32 bonus_at(const Recipe& recipe, double temperature) {
  const double bonus = recipe.serve_bonus * temperature;
  return bonus < kDear ? i32(bonus) : kDear;
}

// Added to the cost of an unserved customer for each unit of its weight. With `weigh_unserved` the weight is the
// demand, and a full vehicle weighs as much as that cost. So the smallest customers stay unserved, which fit soonest.
NDS_FN i64 unit_bonus_of(const Instance& in, const Recipe& recipe) {
  return recipe.weigh_unserved ? (in.missing - in.relief) / most(1, in.capacity) : in.unit_bonus;
}

// Whether an exchange of tails is tried before a step.
NDS_FN bool exchanges_tails(const Recipe& recipe, u64 step_key) {
  return recipe.tails > 0 && u32(key_of(step_key, ~2ull) >> 32) < recipe.tails_share;
}

// Make steps from … to-1 of an improvement step (the paper's figure 3), in sequence. Accepts if new
// < current - T ln(u). Returns how many were made before time was up, or kFull if a draft ran out
// of stops, after which the workspace must not be used.
template <class R, class D>
NDS_DEEP i32 improve(Instance in, Chain& chain, Workspace& work, const Recipe& recipe, const i32* given,
                     const double* temperature, i32 from, i32 to, u64 key, auto crew) {
  const D d(in);
  if (customers_of(in, chain.current) == 0) to = from;  // an empty region
  in.unit_bonus = unit_bonus_of(in, recipe);
  i32 k = from;
  for (; k < to; ++k) {
    const u64 step_key = key_of(key, u64(k));
    in.bonus = bonus_at(recipe, temperature[k]);
    if constexpr (crew.tails) {
      if (exchanges_tails(recipe, step_key) &&
          !swap_tails<R>(in, d, chain, work, recipe, temperature[k], step_key, crew))
        return kFull;
    }
    const i32* removed = given ? given + i64(k) * recipe.removals : nullptr;
    double margin = 0.0;
    if (!crew.by_gaps || crew.team == crew.teams - 1) {
      Random random{key_of(step_key, ~0ull)};
      margin = margin_of(temperature[k], random);
    }
    Outcome outcome{};
    if (!step<R>(in, d, chain, work, recipe, removed, step_key, margin, margin, outcome, crew)) break;
    if (outcome.full) return kFull;
  }
  if constexpr (crew.by_gaps) {
    if (!recipe.all_routes) update_boxes(in, chain.current, crew);
  }
  return k - from;
}

// Returns the change in cost by rollout k, or kNoRoom. With `keep`, the solution is changed.
template <class R, class D>
NDS_DEEP i64 evaluate(const Instance& in, Chain& chain, Workspace& work, const Recipe& recipe, const i32* given, i32 k,
                      u64 key, bool keep, auto crew) {
  const D d(in);
  const u64 step_key = key_of(key, u64(k));
  const i32* removed = given ? given + i64(k) * recipe.removals : nullptr;
  Outcome outcome{};
  step<R>(in, d, chain, work, recipe, removed, step_key, keep ? kAnyCost : -kAnyCost, kAnyCost, outcome, crew);
  if constexpr (crew.by_gaps) {
    if (keep && !recipe.all_routes) update_boxes(in, chain.current, crew);
  }
  return outcome.full ? kNoRoom : outcome.delta;
}

}  // namespace nds::inline NDS_ISA
