// Self-attention without a gradient, heads of 16 channels: what a query hears of all nodes. A warp
// has two times 16 queries of one head, a block stages keys and values for its warps, kChunk nodes
// at a time. `policy/decoding.py` launches; the plain form is scaled_dot_product_attention.
#include "mma.hpp"

namespace nds {
inline namespace NDS_ISA {

constexpr i32 kWidth = NDS_WIDTH, kHeads = kWidth / 16;
constexpr i32 kChunk = 256;                    // nodes staged at once
constexpr i32 kSpan = 64;                      // nodes weighed at once
constexpr float kScale = 0.25f * 1.44269504f;  // 1 / sqrt(16), in units of log 2
constexpr float kLow = -1e30f, kNobody = -3e38f;

struct alignas(16) Half {
  u32 word[4];  // 8 channels of a node
};

// A node is two halves. Which comes first changes every four nodes, so that the eight rows that
// are read at once lie in different banks.
NDS_FN i32 place_of_half(i32 node, i32 half) { return 2 * node + (half ^ (node / 4 % 2)); }

}  // namespace NDS_ISA
}  // namespace nds

using namespace nds;

// projected: (B, nodes, 3 D) queries, keys, values; heard: (B, nodes, D). Both bfloat16. Blocks:
// for each instance and head, as many as it takes for all queries.
extern "C" __global__ void __launch_bounds__(NDS_THREADS, 2)
    attend(const unsigned short* projected, i32 nodes, i32 parts, unsigned short* heard) {
  constexpr i32 kTilesOfWarp = 2;
  const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const i32 part = i32(blockIdx.x) % parts, head = i32(blockIdx.x) / parts % kHeads;
  const i32 b = i32(blockIdx.x) / parts / kHeads;
  const unsigned short* rows = projected + i64(b) * nodes * (3 * kWidth) + 16 * head;
  const i32 first = (part * (i32(blockDim.x) / 32) + warp) * 16 * kTilesOfWarp;
  Half* keys = reinterpret_cast<Half*>(shared_memory());
  Half* values = keys + 2 * kChunk;

  Left question[kTilesOfWarp];
  Sum answer[kTilesOfWarp] = {};
  float top[kTilesOfWarp][2], whole[kTilesOfWarp][2];
#pragma unroll
  for (i32 q = 0; q < kTilesOfWarp; ++q) {
    u32 word[4];
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      const i32 node = least(first + 16 * q + g + i % 2 * 8, nodes - 1);
      const unsigned short* row = rows + i64(node) * (3 * kWidth) + 2 * t + i / 2 * 8;
      word[i] = *reinterpret_cast<const u32*>(row);
    }
    question[q] = Left{word[0], word[1], word[2], word[3]};
    for (i32 r = 0; r < 2; ++r) top[q][r] = kLow, whole[q][r] = 0.0f;
  }

  for (i32 from = 0; from < nodes; from += kChunk) {
    sync_block();
    for (i32 i = threadIdx.x; i < 4 * kChunk; i += blockDim.x) {
      const i32 node = i / 4, half = i % 2, kind = i / 2 % 2;  // keys, then values
      Half given{};
      if (from + node < nodes) {
        const unsigned short* row = rows + i64(from + node) * (3 * kWidth);
        given = *reinterpret_cast<const Half*>(row + (1 + kind) * kWidth + 8 * half);
      }
      (kind ? values : keys)[place_of_half(node, half)] = given;
    }
    sync_block();
    for (i32 span = 0; span < kChunk && from + span < nodes; span += kSpan) {
      Right key[4], value[4];
#pragma unroll
      for (i32 i = 0; i < 4; ++i) {
        const i32 node = span + 16 * i;
        // Matrices of 8 nodes x 8 channels: nodes 0-7 and 8-15, channels 0-7 and 8-15 of each.
        key[i] = rows_of(keys + place_of_half(node + lane % 8 + lane / 16 * 8, lane / 8 % 2));
        value[i] = columns_of(values + place_of_half(node + lane % 16, lane / 16));
      }
#pragma unroll
      for (i32 q = 0; q < kTilesOfWarp; ++q) {
        Sum score[4];
#pragma unroll
        for (i32 i = 0; i < 4; ++i) {
          score[i] = Sum{};
          multiply_add(score[i], question[q], key[i]);
        }
        if (from + span + kSpan > nodes) {
#pragma unroll
          for (i32 i = 0; i < 16; ++i) {
            const bool is_node = from + span + i / 2 * 8 + 2 * t + i % 2 < nodes;
            for (i32 r = 0; r < 2 && !is_node; ++r)
              score[i / 4].at[i / 2 % 2][2 * r + i % 2] = kNobody;
          }
        }
#pragma unroll
        for (i32 r = 0; r < 2; ++r) {
          float high = top[q][r];
#pragma unroll
          for (i32 i = 0; i < 16; ++i)
            high = fmaxf(high, score[i / 4].at[i / 2 % 2][2 * r + i % 2]);
          high = fmaxf(high, __shfl_xor_sync(~0u, high, 1));
          high = fmaxf(high, __shfl_xor_sync(~0u, high, 2));
          const float fade = exp2_of((top[q][r] - high) * kScale), shift = high * kScale;
          top[q][r] = high;
          whole[q][r] *= fade;
          for (i32 i = 0; i < 4; ++i) answer[q].at[i / 2][2 * r + i % 2] *= fade;
#pragma unroll
          for (i32 i = 0; i < 16; ++i) {
            float& s = score[i / 4].at[i / 2 % 2][2 * r + i % 2];
            s = exp2_of(s * kScale - shift);
            whole[q][r] += s;
          }
        }
#pragma unroll
        for (i32 i = 0; i < 4; ++i) multiply_add(answer[q], rounded(score[i]), value[i]);
      }
    }
  }

#pragma unroll
  for (i32 q = 0; q < kTilesOfWarp; ++q) {
#pragma unroll
    for (i32 r = 0; r < 2; ++r) {
      float sum = whole[q][r];
      sum += __shfl_xor_sync(~0u, sum, 1);
      sum += __shfl_xor_sync(~0u, sum, 2);
      const i32 node = first + 16 * q + g + 8 * r;
      if (node >= nodes) continue;
      unsigned short* row = heard + (i64(b) * nodes + node) * kWidth + 16 * head + 2 * t;
      for (i32 side = 0; side < 2; ++side) {
        const float* a = answer[q].at[side] + 2 * r;
        *reinterpret_cast<u32*>(row + 8 * side) = pair(a[0] / sum, a[1] / sum);
      }
    }
  }
}
