// By how much insertions may make routes shorter, by a matrix.
#pragma once
#include "ndsvrp/lanes.hpp"

namespace nds::inline NDS_ISA {

// Compute by how much the way from any node to any other one may be longer than that by way of each customer, at most:
// 0 where the triangle inequality holds.
inline void shortcuts(const i32* __restrict length, i32 n, i32* __restrict shortcut) {
  constexpr i32 kRows = 8;  // that share the reading of another one
  const i64 nodes = n + 1;
  for (i32 c = 0; c <= n; ++c) shortcut[c] = 0;
  for (i32 begin = 0; begin <= n; begin += kRows) {
    for (i32 c = 1; c <= n; ++c) {
      const i32* row = length + c * nodes;
      for (i32 a = begin; a < least(begin + kRows, n + 1); ++a) {
        const i32* ways = length + a * nodes;
        i32 longest = ways[0] - row[0];
        for (i32 b = 1; b <= n; ++b) longest = most(longest, ways[b] - row[b]);
        shortcut[c] = most(shortcut[c], longest - ways[c]);
      }
    }
  }
}

}  // namespace nds::inline NDS_ISA
