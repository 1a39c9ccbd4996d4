// Sampling from unnormalised weights in one pass. Of every eight customers, one replaces the sample
// so far with its probability among all customers seen. The random numbers for this are derived
// from the one uniform number of the selection.
#pragma once
#include "decoder_state.hpp"

namespace nds::inline NDS_ISA {

constexpr i32 kPointerChunk = 32;  // customers that the pointer processes at once, eight per lane

NDS_FN u32 hash_bits(u32 x) {
  x ^= x >> 16, x *= 0x7feb352du;
  x ^= x >> 15, x *= 0x846ca68bu;
  return x ^ x >> 16;
}
// In [0, 1), so far below 1 that its product with a sum is less than the sum.
NDS_FN float unit_interval(u32 bits) { return __int_as_float(i32(bits >> 9 | 0x3f800000u)) - 1.0f; }

// A lane's sample among its share of the customers of a row.
struct Sample {
  u32 state = 0;
  float sum = 0.0f, target = 0.0f, weight[8] = {};  // target: in the running sum of the eight
  i32 chunk = 0, customer = 0;

  // Sees the eight customers of one more chunk.
  NDS_FN void add(const float (&more)[8], i32 number) {
    const float first = (more[0] + more[1]) + (more[2] + more[3]);
    const float all = first + ((more[4] + more[5]) + (more[6] + more[7]));
    sum += all;
    state = state * 1664525u + 1013904223u;
    const float at = unit_interval(state) * sum;
    if (at < all) {
      target = at, chunk = number;
#pragma unroll
      for (i32 i = 0; i < 8; ++i) weight[i] = more[i];
    }
  }
  // Decides which of the eight it is. From then on weight[0] is its weight.
  NDS_FN void resolve(i32 t) {
    float running = 0.0f, found = 0.0f;
    bool open = true;
    i32 number = 0;
#pragma unroll
    for (i32 i = 0; i < 8; ++i) {
      running += weight[i];
      if (open && weight[i] > 0.0f) found = weight[i], number = i;
      open = open && !(target < running);
    }
    weight[0] = found;
    customer = chunk * kPointerChunk + number / 2 * 8 + 2 * t + number % 2;
  }
  // Merges the samples of the four lanes that share the row and its key.
  NDS_FN void merge_lanes(u32 key) {
    for (i32 step = 1; step <= 2; step *= 2) {
      const float other = __shfl_xor_sync(~0u, sum, step);
      const float w = __shfl_xor_sync(~0u, weight[0], step);
      const i32 c = __shfl_xor_sync(~0u, customer, step);
      // Both lanes must decide alike: the sum of the lower customer comes first for both.
      const bool lower = customer < c;
      const float at =
          unit_interval(hash_bits(key + u32(step))) * (lower ? sum + other : other + sum);
      if (lower == (at >= (lower ? sum : other))) weight[0] = w, customer = c;
      sum += other;
    }
  }
};

}  // namespace nds::inline NDS_ISA
