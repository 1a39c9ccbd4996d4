// The pointer: logits of all customers, and a selection by them.
#pragma once
#include "decoder_state.hpp"

namespace nds::inline NDS_ISA {

constexpr i32 kPointerChunk = 32;  // customers that the pointer processes at once, eight per lane
constexpr float kClip = NDS_CLIP * kLog2E;
constexpr float kNoRoute = -2.0f;  // equals neither a route nor -1, which marks unserved customers

NDS_FN u32 hash_bits(u32 x) {
  x ^= x >> 16, x *= 0x7feb352du;
  x ^= x >> 15, x *= 0x846ca68bu;
  return x ^ x >> 16;
}
// In [0, 1), so far below 1 that its product with a sum is less than the sum.
NDS_FN float unit_interval(u32 bits) { return __int_as_float(i32(bits >> 9 | 0x3f800000u)) - 1.0f; }

// A lane's sample among its share of the customers of a row, in one pass over unnormalised weights. Of every eight
// customers, one replaces the sample so far with its probability among all customers seen. The random numbers for this
// are derived from the one uniform number of the selection.
struct Sample {
  u32 state = 0;
  float sum = 0.0f, target = 0.0f, weight[8] = {};  // target: in the running sum of the eight
  i32 chunk = 0, customer = 0;

  // Takes in the eight customers of one more chunk.
  NDS_FN void add(const float (&more)[8], i32 number) {
    const float first = (more[0] + more[1]) + (more[2] + more[3]);
    const float all = first + ((more[4] + more[5]) + (more[6] + more[7]));
    sum += all;
    state = state * 1664525u + 1013904223u;
    const float at = unit_interval(state) * sum;
    if (at < all) {
      target = at, chunk = number;
      unrolled<8>([&](i32 i) { weight[i] = more[i]; });
    }
  }
  // Decides which of the eight it is. From then on weight[0] is its weight.
  NDS_FN void resolve(i32 t) {
    float running = 0.0f, found = 0.0f;
    bool open = true;
    i32 number = 0;
    unrolled<8>([&](i32 i) {
      running += weight[i];
      if (open && weight[i] > 0.0f) found = weight[i], number = i;
      open = open && !(target < running);
    });
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
      const float at = unit_interval(hash_bits(key + u32(step))) * (lower ? sum + other : other + sum);
      if (lower == (at >= (lower ? sum : other))) weight[0] = w, customer = c;
      sum += other;
    }
  }
};

// The customer that a rollout selected last.
struct LastCustomer {
  i32 index;          // -1: none yet
  float x, y, route;  // route: kNoRoute if it has none
};

struct Pointer {
  const WarpState& state;
  const FragmentB* pointers;
  const CustomerInfo* customer_info;
  const float* matrix;
  i32 customers;
  float beta, gamma;  // of distance and of the same route, for logits to base 2

  // Calls visit(q, r, chunk, logits) for the lane's eight logits of every chunk, with r = 0 for row g and r = 1 for row
  // g + 8. `level` is subtracted from the logits.
  NDS_FN void for_each_chunk(const LastCustomer (&last)[kRowTiles][2], const float (&level)[kRowTiles][2],
                             auto visit) const {
    const i32 t = state.lane % 4;
    FragmentStream<prefetch_depth(2 * kWidthTiles)> stream(pointers);
    const CustomerInfo* here = customer_info + 2 * t;
#pragma unroll 1
    for (i32 chunk = 0; chunk < 2 * state.chunks; ++chunk) {
      CustomerInfo info[8];
      unrolled<8>([&](i32 i) { info[i] = here[i / 2 * 8 + i % 2]; });
      Accumulator score[kRowTiles][2];
      unrolled<kWidthTiles, 2>([&](i32 k, i32 half) {
        stream.next(2 * k + half, [&](const FragmentB& fragment) {
          unrolled<kRowTiles>([&](i32 q) {
            if (k == 0)
              score[q][half] = mma(state.activation(q, k), fragment);
            else
              mma_accumulate(score[q][half], state.activation(q, k), fragment);
          });
        });
      });
      stream.advance(2 * kWidthTiles);
      here += kPointerChunk;
      unrolled<kRowTiles>([&](i32 q) {
        const u32 mask = state.mask(q, chunk / 2) << chunk % 2 * 4;
        unrolled<2>([&](i32 r) {
          const LastCustomer& from = last[q][r];
          float logits[8];
          unrolled<8>([&](i32 i) {
            const float raw = score[q][i / 4].at[i / 2 % 2][2 * r + i % 2];
            float logit = kClip * fast_tanh(raw) - level[q][r];
            if (NDS_DISTANCE_TERM) {
              const float dx = info[i].x - from.x, dy = info[i].y - from.y;
              const i32 c = chunk * kPointerChunk + i / 2 * 8 + 2 * t + i % 2;
              logit -= beta * (NDS_MATRIX ? matrix[i64(most(from.index, 0)) * customers + least(c, customers - 1)]
                                          : fast_sqrt(dx * dx + dy * dy));
              if (info[i].route == from.route) logit += gamma;
            }
            logits[i] = mask & 1u << (16 * r + i % 2 * 8 + 7 - i / 2) ? kMasked : logit;
          });
          visit(q, r, chunk, logits);
        });
      });
    }
  }

  // Selects a customer for each row by its key; adds log2 of its probability to `log2_probability`. As in attention,
  // the maximum is found and all is repeated where a sum leaves the range.
  NDS_FN void select(const LastCustomer (&last)[kRowTiles][2], const u32 (&keys)[kRowTiles][2],
                     i32 (&selected)[kRowTiles][2], float (&log2_probability)[kRowTiles][2]) const {
    float level[kRowTiles][2];
    unrolled<kRowTiles, 2>([&](i32 q, i32 r) { level[q][r] = kClip + fmaxf(gamma, 0.0f); });
    for (bool shifted = false;; shifted = true) {
      Sample samples[kRowTiles][2];
      unrolled<kRowTiles, 2>(
          [&](i32 q, i32 r) { samples[q][r].state = hash_bits(keys[q][r] - u32(state.lane % 4 + 1) * 0x9e3779b9u); });
      for_each_chunk(last, level, [&](i32 q, i32 r, i32 chunk, const float (&logits)[8]) {
        float weights[8];
        unrolled<8>([&](i32 i) { weights[i] = fast_exp2(logits[i]); });
        samples[q][r].add(weights, chunk);
      });
      bool good = true;
      float log2_of_sample[kRowTiles][2];
      unrolled<kRowTiles, 2>([&](i32 q, i32 r) {
        Sample& sample = samples[q][r];
        sample.resolve(state.lane % 4);
        sample.merge_lanes(keys[q][r]);
        good = good && in_range(sample.sum);
        selected[q][r] = sample.customer;
        log2_of_sample[q][r] = fast_log2(sample.weight[0]) - fast_log2(sample.sum);
      });
      if (shifted || __ballot_sync(~0u, !good) == 0) {
        unrolled<kRowTiles, 2>([&](i32 q, i32 r) { log2_probability[q][r] += log2_of_sample[q][r]; });
        return;
      }
      float top[kRowTiles][2];
      unrolled<kRowTiles, 2>([&](i32 q, i32 r) { top[q][r] = kMasked, level[q][r] = 0.0f; });
      for_each_chunk(last, level, [&](i32 q, i32 r, i32, const float (&logits)[8]) {
        unrolled<8>([&](i32 i) { top[q][r] = fmaxf(top[q][r], logits[i]); });
      });
      unrolled<kRowTiles, 2>([&](i32 q, i32 r) { level[q][r] = max_over_row(top[q][r]); });
    }
  }
};

}  // namespace nds::inline NDS_ISA
