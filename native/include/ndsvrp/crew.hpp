// What the teams of a crew share at the end of a step.
#pragma once
#include "solution.hpp"

namespace nds::inline NDS_ISA {

// The result of a step.
struct Outcome {
  i64 delta;        // of the best draft
  bool mine;        // this team made it
  bool late, full;  // invalid: time is up, or a draft ran out of stops

  NDS_FN bool accepted(double margin) const { return !late && !full && double(delta) < margin; }
};

// Find the best draft of the crew: the first of the cheapest. Reading the clock takes a while: one team watches it, or
// all if their insertions may stop early.
NDS_FN Outcome best_of(i64 delta, i32 full, i32 order, bool may_stop, const Workspace& work, auto crew) {
  if constexpr (crew.alone) {
    return Outcome{delta, true, crew.lanes.time_is_up(), full != 0};
  } else {
    CrewState& state = *work.crew;
    const bool late = (may_stop || crew.team == 0) && crew.lanes.time_is_up();
    if (crew.lanes.leads()) {
      state.delta[crew.team] = delta;
      state.order[crew.team] = order;
      state.late[crew.team] = late;
      state.overfull[crew.team] = full;
    }
    crew.sync();
    i32 best = 0;
    bool one_late = false, one_full = false;
    for (i32 t = 0; t < crew.teams; ++t) {
      const bool less = state.delta[t] < state.delta[best];
      const bool same = state.delta[t] == state.delta[best];
      if (less || (same && state.order[t] < state.order[best])) best = t;
      one_late |= state.late[t] != 0;
      one_full |= state.overfull[t] != 0;
    }
    return Outcome{state.delta[best], best == crew.team, one_late, one_full};
  }
}

// Give all teams the numbers of the chain.
NDS_FN void share(Chain& chain, Workspace& work, bool mine, auto crew) {
  if constexpr (!crew.alone) {
    Record& record = work.crew->chain;
    if (mine && crew.lanes.leads()) record = record_of(chain);
    crew.sync();
    set_numbers(chain, record);
  }
}

}  // namespace nds::inline NDS_ISA
