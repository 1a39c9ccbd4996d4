// One step of the search: take apart, put back in several orders, keep the best, accept or not.
#pragma once
#include "insert.hpp"
#include "ruin.hpp"

namespace nds {
inline namespace NDS_ISA {

NDS_FN void shuffle(i32* items, i32 count, Random& random) {
  for (i32 i = count - 1; i > 0; --i) {
    const i32 j = random.below(i + 1), held = items[i];
    items[i] = items[j];
    items[j] = held;
  }
}

// Order number `which` of reinsertion: the removal's own first and random ones after it, or,
// sorted, one of SISRs' sort orders drawn by weight.
NDS_FN void arrange(const Instance& in, const Recipe& recipe, const i32* removed, i32 count,
                    i32 which, i32* order, Random& random) {
  for (i32 i = 0; i < count; ++i) order[i] = removed[i];
  if (!recipe.sorted) {
    if (which > 0) shuffle(order, count, random);
    return;
  }
  i32 total = 0;
  for (i32 k = 0; k <= in.sorts; ++k) total += in.sort_weight[k];
  i32 draw = random.below(total), sort = 0;
  while (draw >= in.sort_weight[sort]) draw -= in.sort_weight[sort++];
  if (sort == 0) {
    shuffle(order, count, random);
    return;
  }
  const i32* rank = in.rank + i64(sort - 1) * (in.n + 1);
  for (i32 i = 1; i < count; ++i) {
    const i32 c = order[i];
    i32 j = i;
    for (; j > 0 && rank[order[j - 1]] > rank[c]; --j) order[j] = order[j - 1];
    order[j] = c;
  }
}

// The best reconstruction after one removal, in the draft that is returned; the solution is only
// read.
template <class R, class D, class L>
NDS_DEEP Draft& reconstruct(const Instance& in, const Solution& s, Scratch& scratch,
                            const Recipe& recipe, const i32* given, u64 key, L lanes) {
  const D d(in);
  Random random{key_of(key, 0)};
  const i32 count = strip<R>(in, d, s, scratch, take_apart(in, s, scratch, recipe, given, random));
  for (i32 which = 0; which < recipe.orders; ++which) {
    Random ordering{key_of(key, 1 + u64(which))};
    arrange(in, recipe, scratch.removed, count, which, scratch.order, ordering);
    const Greedy greedy{recipe.all_routes != 0, Blinks{ordering.bits(), recipe.blink},
                        recipe.open_route, key_of(ordering.key, ~0ull), scratch.stop};
    const bool only = recipe.orders == 1;
    Draft& draft = only ? scratch.stripped : scratch.trial;
    if (!only) copy_draft<R>(draft, scratch.stripped);
    put_back<R>(in, d, s, draft, scratch.bound, scratch.order, count, greedy, lanes);
    if (!only && (which == 0 || draft.delta < scratch.best.delta)) {
      const Draft held = scratch.best;
      scratch.best = draft;
      scratch.trial = held;
    }
  }
  for (i32 i = 0; i < count; ++i) scratch.mark[scratch.removed[i]] = 0;
  return recipe.orders == 1 ? scratch.stripped : scratch.best;
}

NDS_FN void forget(Scratch& scratch) {
  forget(scratch.stripped);
  forget(scratch.trial);
  forget(scratch.best);
}

template <class R>
NDS_DEEP void accept(const Instance& in, Chain& chain, Scratch& scratch, const Draft& draft) {
  if (chain.best_is_now && draft.delta > 0) save_best(chain);
  const Places& spare = &draft == &scratch.stripped ? scratch.trial.at : scratch.stripped.at;
  commit<R>(in, chain.now, draft, spare);
  if (chain.now.cost < chain.best_cost) {
    chain.best_cost = chain.now.cost;
    chain.best_missing = chain.now.absent_required;
    chain.best_is_now = 1;
  }
}

// Steps from … to-1 of an improvement step (the paper's figure 3): each starts from what the one
// before left. Accepts if new < current - T ln(u). Returns how many were made before time was up.
template <class R, class D, class L>
NDS_DEEP i32 improve(const Instance& in, Chain& chain, Scratch& scratch, const Recipe& recipe,
                     const i32* given, const double* temperature, i32 from, i32 to, u64 key,
                     L lanes) {
  i32 k = from;
  for (; k < to && !*scratch.stop; ++k) {
    const u64 step_key = key_of(key, u64(k));
    const i32* removed = given ? given + i64(k) * recipe.removals : nullptr;
    const Draft& draft =
        reconstruct<R, D>(in, chain.now, scratch, recipe, removed, step_key, lanes);
    Random random{key_of(step_key, ~0ull)};
    const double margin = temperature[k] * minus_log(random.bits() >> 8);
    if (!*scratch.stop && double(draft.delta) < margin) accept<R>(in, chain, scratch, draft);
    forget(scratch);
  }
  return k - from;
}

// The change in cost that rollout k would bring (what training needs); with `keep`, it is carried
// out.
template <class R, class D, class L>
NDS_DEEP i64 evaluate(const Instance& in, Chain& chain, Scratch& scratch, const Recipe& recipe,
                      const i32* given, i32 k, u64 key, bool keep, L lanes) {
  const i32* removed = given ? given + i64(k) * recipe.removals : nullptr;
  const Draft& draft =
      reconstruct<R, D>(in, chain.now, scratch, recipe, removed, key_of(key, u64(k)), lanes);
  const i64 delta = draft.delta;
  if (keep) accept<R>(in, chain, scratch, draft);
  forget(scratch);
  return delta;
}

}  // namespace NDS_ISA
}  // namespace nds
