// Speculative steps: each warp of a block makes another step from the same solution, as if the steps before it changed
// nothing. Nine of ten do not. The first one in their order that changes the solution is carried out, and those after
// it are made again. So the result is that of steps in sequence.
#pragma once
#include "workbench.hpp"

namespace nds::inline NDS_ISA {

constexpr i32 kSpeculatedAtMost = 32, kSpeculationBytes = 512;

// How a step ends.
enum Ending : i32 {
  kKeeps,    // the solution stays as it is
  kTails,    // an exchange of tails before the step changes it
  kChanges,  // the step changes it
  kLate,     // time was up
  kOverfull  // a draft ran out of stops
};

// What the warps share, in shared memory.
struct Speculation {
  Ending ending[2][kSpeculatedAtMost];  // in even rounds and in odd ones
  Record chain;
};
static_assert(sizeof(Speculation) <= kSpeculationBytes);

template <bool Tails> struct SpeculativeCrew {
  static constexpr bool tails = Tails;
  static constexpr i32 shared_bytes = kSpeculationBytes;
  Warp lanes;
  i32 team, teams;

  NDS_FN Speculation& state() const { return *reinterpret_cast<Speculation*>(shared_memory()); }
};

// Every warp has a workspace of its own, with one draft.
template <bool Tails>
NDS_FN Workspace workspace_at(Carver& carver, const Plan& plan, const SpeculativeCrew<Tails>& crew, bool) {
  Workspace work{};
  const auto carve_all = [&](Carver& from) {
    carve_common<R>(from, work, plan.work);
    carve_own<R>(from, work, plan.work, 0);
  };
  Carver counter{nullptr};
  carve_all(counter);
  Carver own{carver.block + carver.used + counter.used * u64(crew.team)};
  carve_all(own);
  carver.used += counter.used * u64(crew.teams);
  return work;
}

// Draft a step, or the exchange of tails before it. `count` is how many customers it removes. Reading the clock takes a
// while: one warp watches it, and those whose insertions may stop early.
template <class R, class D>
NDS_FN Ending draft_step(const Instance& in, const D& d, const Solution& s, Workspace& work, const Recipe& recipe,
                         const i32* given, double temperature, u64 key, bool exchanges, bool watches, i32& count,
                         Warp lanes) {
  Draft& draft = work.stripped;
  if (exchanges) {
    Random random{key_of(key, ~1ull)};
    const double margin = margin_of(temperature, random);
    if (draft_tails<R>(in, d, s, draft, recipe.tails, margin, random, lanes)) return draft.full ? kOverfull : kTails;
  }
  Random random{key_of(key, 0)}, ordering{key_of(key, 1)}, accepting{key_of(key, ~0ull)};
  count = strip<R>(in, d, s, work, ruin(in, s, work, recipe, given, random, lanes), lanes);
  arrange(in, recipe, work.removed, count, 0, work.order, ordering, lanes);
  recreate<R>(in, d, s, draft, work.order, count, greedy_for(recipe, ordering), kAnyCost, lanes);
  if (draft.full) return kOverfull;
  if ((watches || count >= kLook) && lanes.time_is_up()) return kLate;
  if (double(draft.delta) >= margin_of(temperature, accepting)) return kKeeps;
  return draft.delta == 0 && is_unchanged(s, draft, lanes) ? kKeeps : kChanges;
}

// `improve` of step.hpp, for one insertion order.
template <class R, class D, class C>
NDS_FN i32 improve_speculatively(Instance& in, Chain& chain, Workspace& work, const Recipe& recipe, const i32* given,
                                 const double* temperature, i32 from, i32 to, u64 key, const C& crew) {
  const D d(in);
  const Warp lanes = crew.lanes;
  Speculation& state = crew.state();
  if (customers_of(in, chain.current) == 0) to = from;  // an empty region
  in.unit_bonus = unit_bonus_of(in, recipe);
  i32 k = from;
  bool exchanged = false;  // the exchange of tails before step k is done
  for (i32 round = 0; k < to; ++round) {
    const i32 mine = k + crew.team;
    Ending ending = kKeeps;
    i32 count = 0;
    if (mine < to) {
      const u64 step_key = key_of(key, u64(mine));
      in.bonus = bonus_at(recipe, temperature[mine]);
      bool exchanges = false;
      if constexpr (C::tails) exchanges = exchanges_tails(recipe, step_key) && !(exchanged && mine == k);
      ending = draft_step<R>(in, d, chain.current, work, recipe, given ? given + i64(mine) * recipe.removals : nullptr,
                             temperature[mine], step_key, exchanges, crew.team == 0, count, lanes);
    }
    if (lanes.leads()) state.ending[round % 2][crew.team] = ending;
    sync_block();
    const Ending other = lanes.lane < crew.teams ? state.ending[round % 2][lanes.lane] : kKeeps;
    const u32 changing = lanes.ballot(other != kKeeps);
    const i32 first = changing == 0 ? crew.teams : first_bit(changing);
    const i32 what = changing == 0 ? i32(kKeeps) : lanes.from(other, first);
    if (what == kOverfull) return kFull;
    const bool carries_out = first == crew.team && what != kLate;
    if (carries_out) accept<R>(in, chain, work, work.stripped, lanes);
    if (ending == kTails) {
      work.stripped.segments = 0;
    } else {
      tidy_stripped(work, count, lanes);
    }
    lanes.sync();
    if (changing != 0) {
      if (carries_out && lanes.leads()) state.chain = record_of(chain);
      sync_block();
      if (what != kLate) set_numbers(chain, state.chain);
    }
    exchanged = what == kTails;
    k = least(to, k + first + (what == kChanges));
    if (what == kLate) break;
  }
  return k - from;
}

}  // namespace nds::inline NDS_ISA
