// Exchange between the chains of a problem, or of a part of them (the paper's algorithm 2, lines 7 to 14): chains that
// are too far behind continue from a better one.
#pragma once
#include "rng.hpp"
#include "state.hpp"

namespace nds::inline NDS_ISA {

constexpr u64 kOfExchange = ~0ull;  // in place of the number of a step: keeps random numbers apart

// What the current solution of a chain costs where an unserved customer counts less (Instance::relief).
NDS_FN i64 relieved_cost(const CurrentNumbers& now, const Instance& in) {
  return now.cost - in.relief * now.unserved_required;
}

// Returns the chain that chain i continues from: itself if its cost is within `reach` (in ticks) of the lowest of its
// group, else one that is, drawn by the chain's key. That one continues from itself, and costs less. `costs` has the
// number of chains, their costs, and group_of: the chains with which each chain exchanges have the same number.
NDS_FN i32 source_of(const auto& costs, i32 i, double reach, u64 key, auto lanes) {
  const auto rival = [&](i32 j) { return j < costs.chains && costs.group_of[j] == costs.group_of[i]; };
  i64 lowest = costs.of(i);
  for (i32 j = lanes.lane; j < costs.chains; j += lanes.W) {
    if (rival(j) && costs.of(j) < lowest) lowest = costs.of(j);
  }
  const double limit = double(lanes.least_of(lowest)) + reach;
  if (double(costs.of(i)) <= limit) return i;
  const auto good = [&](i32 j) { return rival(j) && double(costs.of(j)) <= limit; };
  i32 count = 0;
  for (i32 j = lanes.lane; j < costs.chains; j += lanes.W) count += good(j);
  i32 left = Random{key_of(key, kOfExchange)}.below(lanes.sum(count));
  for (i32 begin = 0; begin < costs.chains; begin += lanes.W) {
    u32 bits = lanes.ballot(good(begin + lanes.lane));
    const i32 here = count_bits(bits);
    if (left < here) {
      for (; left > 0; --left) bits &= bits - 1;
      return begin + first_bit(bits);
    }
    left -= here;
  }
  return i;
}

}  // namespace nds::inline NDS_ISA
