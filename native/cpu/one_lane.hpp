// Crews of one team of one lane: a thread works on one reconstruction at a time.
#pragma once
#include "ndsvrp/step.hpp"

namespace nds::inline NDS_ISA {

constexpr i32 kTeamsHere = 1;

auto with_crew(Chain& chain, Workspace* work, i32, const volatile i32* stop, auto call) {
  return call(chain, *work, Alone<OneLane>{OneLane{stop}});
}

}  // namespace nds::inline NDS_ISA
