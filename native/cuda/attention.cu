// Self-attention of the encoder, for heads of 16 numbers and solutions that fit into shared memory:
// libraries pad such heads to 64 and more, and their time goes there. What limits these kernels is
// the exponential of every pair of nodes. A block per instance and head, a warp per 16 or 32 nodes.
#include "tiles.hpp"

using namespace nds;

constexpr i32 kHead = 16, kChunk = 64;  // numbers per head; nodes that a warp weighs at once
constexpr float kScale = 0.25f, kExponent = kScale * 1.4426950408889634f;
constexpr float kNobody = 1e30f;  // a logarithm that nothing comes up to

namespace {

NDS_FN float most_of_row(float value) {
  for (i32 bit = 1; bit < 4; bit *= 2) {
    const float other = __int_as_float(__shfl_xor_sync(~0u, __float_as_int(value), bit));
    value = larger(value, other);
  }
  return value;
}
NDS_FN float sum_of_row(float value) {
  for (i32 bit = 1; bit < 4; bit *= 2)
    value += __int_as_float(__shfl_xor_sync(~0u, __float_as_int(value), bit));
  return value;
}
// Two numbers of a result, to column 2 (lane % 4) of a row.
NDS_FN void store_pair(bf16* row, i32 lane, float low, float high) {
  *reinterpret_cast<u32*>(row + lane % 4 * 2) = pair_of(low, high);
}

struct Head {
  i64 instance;
  i32 number;

  NDS_FN Head(i32 block, i32 heads) : instance(block / heads), number(block % heads) {}
};

}  // namespace

// all: (B, nodes, 3 width) queries, keys, values; out: (B, nodes, width); logarithms: (B, heads,
// nodes) of the sums of exponentials, to base 2. Blocks: B x heads x parts, each with every
// parts-th of the tiles of 16 queries. Shared memory: 64 bytes per node, rounded up to kChunk.
extern "C" __global__ void __launch_bounds__(kThreads, 3)
    attention_forward(const bf16* __restrict__ all, bf16* out, float* logarithms, i32 nodes,
                      i32 width, i32 heads, i32 parts) {
  const Head head(i32(blockIdx.x) / parts, heads);
  const i32 lane = i32(threadIdx.x) % 32, warp = i32(threadIdx.x) / 32;
  const i32 rows = (nodes + kChunk - 1) / kChunk * kChunk;
  const Rows keys{dynamic_memory()}, values{dynamic_memory() + rows * 32};
  const bf16* from = all + head.instance * nodes * 3 * width + head.number * kHead;
  for (i32 i = i32(threadIdx.x); i < 2 * rows; i += kThreads) {
    const i32 row = i / 2, half = i % 2;
    const bf16* here = from + i64(row) * 3 * width + half * 8;
    keys.put(row, half, row < nodes ? load(here + width) : Eight{});
    values.put(row, half, row < nodes ? load(here + 2 * width) : Eight{});
  }
  sync_block();
  for (i32 tile = i32(blockIdx.x) % parts + warp * parts; tile * 16 < nodes;
       tile += kWarps * parts) {
    const i32 first = tile * 16 + lane / 4;  // the lane's rows: this one and the 8th after it
    u32 query[4];
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      const i32 row = first + i % 2 * 8, column = lane % 4 * 2 + i / 2 * 8;
      query[i] =
          row < nodes ? *reinterpret_cast<const u32*>(from + i64(row) * 3 * width + column) : 0u;
    }
    float most[2] = {-kNobody, -kNobody}, sum[2] = {}, heard[2][4] = {};
    for (i32 begin = 0; begin < nodes; begin += kChunk) {
      float score[8][4];
#pragma unroll
      for (i32 j = 0; j < 4; ++j) {
        u32 key[4];
        load_right_turned(key, keys, begin + 16 * j, lane);
        product(score[2 * j], query, key[0], key[1]);
        product(score[2 * j + 1], query, key[2], key[3]);
      }
      if (begin + kChunk > nodes) {
#pragma unroll
        for (i32 n = 0; n < 8; ++n) {
#pragma unroll
          for (i32 i = 0; i < 4; ++i)
            if (begin + 8 * n + lane % 4 * 2 + i % 2 >= nodes) score[n][i] = -kNobody;
        }
      }
#pragma unroll
      for (i32 r = 0; r < 2; ++r) {
        float top = most[r];
#pragma unroll
        for (i32 n = 0; n < 8; ++n) {
          top = larger(top, larger(score[n][2 * r], score[n][2 * r + 1]));
        }
        top = most_of_row(top);
        const float less = power_of_two((most[r] - top) * kExponent), shift = top * kExponent;
        most[r] = top, sum[r] *= less;
#pragma unroll
        for (i32 d = 0; d < 2; ++d) heard[d][2 * r] *= less, heard[d][2 * r + 1] *= less;
#pragma unroll
        for (i32 n = 0; n < 8; ++n) {
#pragma unroll
          for (i32 i = 2 * r; i < 2 * r + 2; ++i) {
            score[n][i] = power_of_two(score[n][i] * kExponent - shift);
            sum[r] += score[n][i];
          }
        }
      }
#pragma unroll
      for (i32 j = 0; j < 4; ++j) {
        u32 chance[4], value[4];
        as_left(chance, score[2 * j], score[2 * j + 1]);
        load_right(value, values, begin + 16 * j, lane);
        multiply(heard[0], chance, value[0], value[1]);
        multiply(heard[1], chance, value[2], value[3]);
      }
    }
#pragma unroll
    for (i32 r = 0; r < 2; ++r) {
      const i32 row = first + 8 * r;
      const float whole = sum_of_row(sum[r]), part = 1.0f / whole;
      if (row >= nodes) continue;
      bf16* to = out + (head.instance * nodes + row) * width + head.number * kHead;
#pragma unroll
      for (i32 d = 0; d < 2; ++d)
        store_pair(to + 8 * d, lane, heard[d][2 * r] * part, heard[d][2 * r + 1] * part);
      if (lane % 4 == 0) {
        logarithms[(head.instance * heads + head.number) * nodes + row] =
            most[r] * kExponent + log_of_two(whole);
      }
    }
  }
}

namespace {

// What the backward pass has in shared memory.
struct Known {
  Rows queries, keys, values, slopes;  // slopes: of what was heard
  float *logarithms, *along;           // along: of each node, slope times what it heard
  i32 nodes, lane;
};

// One pair of nodes: its chance in place of its score; the slope of its score in place of that of
// its chance.
NDS_FN void slope_of(float& score, float& toward, float logarithm, float along) {
  score = power_of_two(score * kExponent - logarithm);
  toward = score * (toward - along);
}
struct __align__(8) Two {
  float value[2];
};

// Slopes of 32 keys and values from `row` on.
NDS_FN void keys_and_values(const Known& k, i32 row, bf16* to, i32 width) {
  u32 key[2][4], value[2][4];
  float to_key[2][2][4] = {}, to_value[2][2][4] = {};
#pragma unroll
  for (i32 t = 0; t < 2; ++t) {
    load_left(key[t], k.keys, row + 16 * t, k.lane);
    load_left(value[t], k.values, row + 16 * t, k.lane);
  }
  for (i32 begin = 0; begin < k.nodes; begin += 16) {
    u32 query[4], slope[4], query_turned[4], slope_turned[4];
    load_right(query, k.queries, begin, k.lane);
    load_right(slope, k.slopes, begin, k.lane);
    load_right_turned(query_turned, k.queries, begin, k.lane);
    load_right_turned(slope_turned, k.slopes, begin, k.lane);
    float score[2][2][4], toward[2][2][4];
#pragma unroll
    for (i32 n = 0; n < 2; ++n) {
      const i32 at = begin + 8 * n + k.lane % 4 * 2;
      const Two logarithm = *reinterpret_cast<const Two*>(k.logarithms + at);
      const Two along = *reinterpret_cast<const Two*>(k.along + at);
#pragma unroll
      for (i32 t = 0; t < 2; ++t) {
        product(score[t][n], key[t], query_turned[2 * n], query_turned[2 * n + 1]);
        product(toward[t][n], value[t], slope_turned[2 * n], slope_turned[2 * n + 1]);
#pragma unroll
        for (i32 i = 0; i < 4; ++i)
          slope_of(score[t][n][i], toward[t][n][i], logarithm.value[i % 2], along.value[i % 2]);
      }
    }
#pragma unroll
    for (i32 t = 0; t < 2; ++t) {
      u32 left[4];
      as_left(left, score[t][0], score[t][1]);
      multiply(to_value[t][0], left, slope[0], slope[1]);
      multiply(to_value[t][1], left, slope[2], slope[3]);
      as_left(left, toward[t][0], toward[t][1]);
      multiply(to_key[t][0], left, query[0], query[1]);
      multiply(to_key[t][1], left, query[2], query[3]);
    }
  }
#pragma unroll
  for (i32 t = 0; t < 2; ++t) {
#pragma unroll
    for (i32 r = 0; r < 2; ++r) {
      const i32 here = row + 16 * t + 8 * r + k.lane / 4;
      if (here >= k.nodes) continue;
      bf16* node = to + i64(here) * 3 * width;
#pragma unroll
      for (i32 d = 0; d < 2; ++d) {
        const float (&a)[4] = to_key[t][d], (&b)[4] = to_value[t][d];
        store_pair(node + width + 8 * d, k.lane, a[2 * r] * kScale, a[2 * r + 1] * kScale);
        store_pair(node + 2 * width + 8 * d, k.lane, b[2 * r], b[2 * r + 1]);
      }
    }
  }
}

// Slopes of 32 queries from `row` on.
NDS_FN void queries(const Known& k, i32 row, bf16* to, i32 width) {
  u32 query[2][4], slope[2][4];
  float to_query[2][2][4] = {}, logarithm[2][2], along[2][2];
#pragma unroll
  for (i32 t = 0; t < 2; ++t) {
    load_left(query[t], k.queries, row + 16 * t, k.lane);
    load_left(slope[t], k.slopes, row + 16 * t, k.lane);
#pragma unroll
    for (i32 r = 0; r < 2; ++r) {
      logarithm[t][r] = k.logarithms[row + 16 * t + 8 * r + k.lane / 4];
      along[t][r] = k.along[row + 16 * t + 8 * r + k.lane / 4];
    }
  }
  for (i32 begin = 0; begin < k.nodes; begin += 16) {
    u32 key[4], key_turned[4], value_turned[4];
    load_right(key, k.keys, begin, k.lane);
    load_right_turned(key_turned, k.keys, begin, k.lane);
    load_right_turned(value_turned, k.values, begin, k.lane);
#pragma unroll
    for (i32 t = 0; t < 2; ++t) {
      float score[2][4], toward[2][4];
#pragma unroll
      for (i32 n = 0; n < 2; ++n) {
        product(score[n], query[t], key_turned[2 * n], key_turned[2 * n + 1]);
        product(toward[n], slope[t], value_turned[2 * n], value_turned[2 * n + 1]);
#pragma unroll
        for (i32 i = 0; i < 4; ++i)
          slope_of(score[n][i], toward[n][i], logarithm[t][i / 2], along[t][i / 2]);
      }
      if (begin + 16 > k.nodes) {
#pragma unroll
        for (i32 i = 0; i < 8; ++i)
          if (begin + i / 4 * 8 + k.lane % 4 * 2 + i % 2 >= k.nodes) toward[i / 4][i % 4] = 0.0f;
      }
      u32 left[4];
      as_left(left, toward[0], toward[1]);
      multiply(to_query[t][0], left, key[0], key[1]);
      multiply(to_query[t][1], left, key[2], key[3]);
    }
  }
#pragma unroll
  for (i32 t = 0; t < 2; ++t) {
#pragma unroll
    for (i32 r = 0; r < 2; ++r) {
      const i32 here = row + 16 * t + 8 * r + k.lane / 4;
      if (here >= k.nodes) continue;
#pragma unroll
      for (i32 d = 0; d < 2; ++d) {
        const float (&a)[4] = to_query[t][d];
        store_pair(to + i64(here) * 3 * width + 8 * d, k.lane, a[2 * r] * kScale,
                   a[2 * r + 1] * kScale);
      }
    }
  }
}

}  // namespace

// gradient: (B, nodes, width) of `out`; to: (B, nodes, 3 width), of `all`. Every chance is made
// twice, once for its key and once for its query: cheaper than to bring together what many warps
// have for one row. Shared memory: 136 bytes per node, rounded up to kChunk.
extern "C" __global__ void __launch_bounds__(kThreads, 2)
    attention_backward(const bf16* __restrict__ all, const bf16* __restrict__ out,
                       const float* __restrict__ logarithms, const bf16* __restrict__ gradient,
                       bf16* to, i32 nodes, i32 width, i32 heads) {
  const Head head(i32(blockIdx.x), heads);
  const i32 rows = (nodes + kChunk - 1) / kChunk * kChunk;
  char* memory = dynamic_memory();
  const Known k{{memory},
                {memory + rows * 32},
                {memory + rows * 64},
                {memory + rows * 96},
                reinterpret_cast<float*>(memory + rows * 128),
                reinterpret_cast<float*>(memory + rows * 132),
                nodes,
                i32(threadIdx.x) % 32};
  for (i32 row = i32(threadIdx.x); row < rows; row += kThreads) {
    const bool there = row < nodes;
    const i64 node = head.instance * nodes + row;
    const i64 here = node * 3 * width + head.number * kHead;
    const i64 beside = node * width + head.number * kHead;
    float along = 0.0f;
#pragma unroll
    for (i32 half = 0; half < 2; ++half) {
      k.queries.put(row, half, there ? load(all + here + half * 8) : Eight{});
      k.keys.put(row, half, there ? load(all + here + width + half * 8) : Eight{});
      k.values.put(row, half, there ? load(all + here + 2 * width + half * 8) : Eight{});
      const Eight slope = there ? load(gradient + beside + half * 8) : Eight{};
      const Eight heard = there ? load(out + beside + half * 8) : Eight{};
      k.slopes.put(row, half, slope);
      float a[8], b[8];
      unpack(slope, a);
      unpack(heard, b);
#pragma unroll
      for (i32 i = 0; i < 8; ++i) along += a[i] * b[i];
    }
    k.along[row] = along;
    k.logarithms[row] =
        there ? logarithms[(head.instance * heads + head.number) * nodes + row] : kNobody;
  }
  sync_block();
  bf16* mine = to + head.instance * nodes * 3 * width + head.number * kHead;
  const i32 parts = (nodes + 31) / 32;
  for (i32 part = i32(threadIdx.x) / 32; part < 2 * parts; part += kWarps) {
    if (part < parts)
      keys_and_values(k, part * 32, mine, width);
    else
      queries(k, (part - parts) * 32, mine, width);
  }
}
