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
  kUnfit,    // the step cannot be made in this way
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

// Set in the number of steps made: the exchange of tails before the next one is done, too. linked.cu counts from step 0
// of the launch's iteration on, so that improve.cu begins at this number, unless time is up for both.
constexpr i32 kExchanged = 1 << 30;

// A step that a warp drafts.
struct StepTask {
  u64 key;
  double temperature;
  const i32* given;  // customers to remove, or null
  bool watches;      // the clock: reading it takes a while, so one warp does, and those whose insertions may stop early
};

// Draft the exchange of tails before a step. Returns kKeeps if there is none.
template <class R>
NDS_FN Ending draft_exchange(const Instance& in, const auto& d, const Solution& s, Draft& draft, const Recipe& recipe,
                             const StepTask& task, Warp lanes) {
  Random random{key_of(task.key, ~1ull)};
  const double margin = margin_of(task.temperature, random);
  if (!draft_tails<R>(in, d, s, draft, recipe.tails, margin, random, lanes)) return kKeeps;
  return draft.full ? kOverfull : kTails;
}

// Steps by `strip` and `recreate`.
template <class R> struct DraftedSteps {
  const Recipe& recipe;

  // Note that the solution has changed; all threads call it.
  NDS_FN void changed(const Instance&, const Solution&) const {}

  // Draft a step. `count` is how many customers it removes.
  NDS_FN Ending draft(const Instance& in, const auto& d, const Solution& s, Workspace& work, const StepTask& task,
                      i32& count, Warp lanes) const {
    Draft& draft = work.stripped;
    Random random{key_of(task.key, 0)}, ordering{key_of(task.key, 1)}, accepting{key_of(task.key, ~0ull)};
    count = strip<R>(in, d, s, work, ruin(in, s, work, recipe, task.given, random, lanes), lanes);
    arrange(in, recipe, work.removed, count, 0, work.order, ordering, lanes);
    recreate<R>(in, d, s, draft, work.order, count, greedy_for(recipe, ordering), kAnyCost, lanes);
    if (draft.full) return kOverfull;
    if ((task.watches || count >= kLook) && lanes.time_is_up()) return kLate;
    if (double(draft.delta) >= margin_of(task.temperature, accepting)) return kKeeps;
    return draft.delta == 0 && is_unchanged(s, draft, lanes) ? kKeeps : kChanges;
  }
};

// `improve` of step.hpp, for one insertion order. Ends early if the solution has more than `most_routes`, or at a step
// that cannot be made in this way. `exchanged`: whether the exchange of tails before the next step is done, at the
// start and in the end.
template <class R, class D, class C>
NDS_FN i32 improve_speculatively(Instance& in, Chain& chain, Workspace& work, const Recipe& recipe, const i32* given,
                                 const double* temperature, i32 from, i32 to, u64 key, i32 most_routes, bool& exchanged,
                                 const auto& steps, const C& crew) {
  const D d(in);
  const Warp lanes = crew.lanes;
  Speculation& state = crew.state();
  if (customers_of(in, chain.current) == 0) to = from;  // an empty region
  in.unit_bonus = unit_bonus_of(in, recipe);
  i32 k = from;
  for (i32 round = 0; k < to && chain.current.routes <= most_routes; ++round) {
    const i32 mine = k + crew.team;
    Ending ending = kKeeps;
    i32 count = 0;
    if (mine < to) {
      const u64 step_key = key_of(key, u64(mine));
      in.bonus = bonus_at(recipe, temperature[mine]);
      bool exchanges = false;
      if constexpr (C::tails) exchanges = exchanges_tails(recipe, step_key) && !(exchanged && mine == k);
      const StepTask task{step_key, temperature[mine], given ? given + i64(mine) * recipe.removals : nullptr,
                          crew.team == 0};
      if (exchanges) ending = draft_exchange<R>(in, d, chain.current, work.stripped, recipe, task, lanes);
      if (ending == kKeeps) ending = steps.draft(in, d, chain.current, work, task, count, lanes);
    }
    if (lanes.leads()) state.ending[round % 2][crew.team] = ending;
    sync_block();
    const Ending other = lanes.lane < crew.teams ? state.ending[round % 2][lanes.lane] : kKeeps;
    const u32 changing = lanes.ballot(other != kKeeps);
    const i32 first = changing == 0 ? crew.teams : first_bit(changing);
    const i32 what = changing == 0 ? i32(kKeeps) : lanes.from(other, first);
    if (what == kOverfull) return kFull;
    const bool ends = what == kLate || what == kUnfit;
    const bool carries_out = first == crew.team && !ends;
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
      if (!ends) {
        set_numbers(chain, state.chain);
        steps.changed(in, chain.current);
      }
    }
    exchanged = what == kTails || (ends && first == 0 && exchanged);
    k = least(to, k + first + (what == kChanges));
    if (ends) break;
  }
  return k - from;
}

}  // namespace nds::inline NDS_ISA
