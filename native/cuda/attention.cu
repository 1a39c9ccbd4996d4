// Self-attention of the encoder, for heads of 16 channels; libraries pad such heads to 64 or more.
// The special function unit, which computes the exponential of every pair of nodes, is the
// bottleneck, so some exponentials go to the FMA units. A block per instance and head, or per part
// of its queries; a warp per 32 nodes.
#include "tiles.hpp"

using namespace nds;

constexpr i32 kHead = 16, kChunk = 64;  // channels of a head; nodes that a warp processes at once
constexpr float kScale = 0.25f, kExponent = kScale * 1.4426950408889634f;
constexpr float kInfinite = 1e30f;  // above every score
constexpr i32 kPolynomialOf8 = 1;   // so many of 8 exponentials go to the FMA units

// Stores two numbers of a result at column 2 (lane % 4) of a row.
NDS_FN void store_pair(bf16* row, i32 lane, float low, float high) {
  *reinterpret_cast<u32*>(row + lane % 4 * 2) = to_bf16x2(low, high);
}

struct Head {
  i64 instance;
  i32 number;

  NDS_FN Head(i32 block, i32 heads) : instance(block / heads), number(block % heads) {}
};

// Two tiles of queries of a warp, and their outputs.
struct QueryTiles {
  u32 query[2][4];
  float shift[2][2] = {};  // subtracted from the exponents of a row
  float output[2][2][4], denominator[2][4];

  NDS_FN void reset() {
#pragma unroll
    for (i32 i = 0; i < 16; ++i) output[i / 8][i / 4 % 2][i % 4] = 0.0f;
#pragma unroll
    for (i32 i = 0; i < 8; ++i) denominator[i / 4][i % 4] = 0.0f;
  }
  // Attends to 16 nodes, of which the first `left` exist.
  NDS_FN void attend(const SharedRows& keys, const SharedRows& values, i32 row, i32 left,
                     i32 lane) {
    u32 key[4], value[4], weight[2][4], ones[2] = {kOnes, kOnes};
    load_b_transposed(key, keys, row, lane);
    load_b(value, values, row, lane);
    if (left < 16) {
      for (i32 i = 0; i < 2; ++i) {
        const i32 count = left - 8 * i - lane % 4 * 2;
        ones[i] = count > 1 ? kOnes : count > 0 ? kOnes & 0xffffu : 0u;
      }
    }
#pragma unroll
    for (i32 u = 0; u < 2; ++u) {
      float score[2][4];
      mma(score[0], query[u], key[0], key[1]);
      mma(score[1], query[u], key[2], key[3]);
#pragma unroll
      for (i32 i = 0; i < 8; ++i) {
        float& s = score[i / 4][i % 4];
        s = mixed_exp2<kPolynomialOf8>(s * kExponent - shift[u][i % 4 / 2], i);
      }
      to_fragment_a(weight[u], score[0], score[1]);
    }
#pragma unroll
    for (i32 u = 0; u < 2; ++u) {
      mma_accumulate(output[u][0], weight[u], value[0], value[1]);
      mma_accumulate(output[u][1], weight[u], value[2], value[3]);
      mma_accumulate(denominator[u], weight[u], ones[0], ones[1]);
    }
  }
  NDS_FN void find_max(float (&top)[2][2], const SharedRows& keys, i32 row, i32 lane) const {
    u32 key[4];
    load_b_transposed(key, keys, row, lane);
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      float score[4];
      mma(score, query[i / 2], key[i % 2 * 2], key[i % 2 * 2 + 1]);
      for (i32 n = 0; n < 4; ++n) top[i / 2][n / 2] = fmaxf(top[i / 2][n / 2], score[n]);
    }
  }
  NDS_FN bool is_in_range() const {
    bool good = true;
#pragma unroll
    for (i32 i = 0; i < 4; ++i) good = good && in_range(denominator[i / 2][i % 2 * 2]);
    return good;
  }
};

// all: (B, nodes, 3 width) queries, keys, values; out: (B, nodes, width); log_sums: (B, heads,
// nodes), log2 of the sums of exponentials, or null. Grid: B x heads x parts; a block has every
// parts-th group of 32 queries, one group per warp at a time. `staged` nodes, a multiple of kChunk,
// are in shared memory at once: 64 bytes each, and 16 more.
//
// Exponentials are computed without subtracting the maximum. Where a sum leaves the range of
// float32, the block finds the maxima and repeats the computation.
extern "C" __global__ void __launch_bounds__(kThreads, 2)
    attention_forward(const bf16* __restrict__ all, bf16* out, float* log_sums, i32 nodes,
                      i32 width, i32 heads, i32 parts, i32 staged) {
  const Head head(i32(blockIdx.x) / parts, heads);
  const i32 lane = i32(threadIdx.x) % 32, warp = i32(threadIdx.x) / 32;
  const SharedRows keys{shared_memory()}, values{shared_memory() + staged * 32};
  i32* repeat = reinterpret_cast<i32*>(shared_memory() + staged * 64);
  const bf16* from = all + head.instance * nodes * 3 * width + head.number * kHead;
  if (threadIdx.x == 0) *repeat = 0;
  i32 here = -1;  // the first staged node
  auto stage = [&](i32 first) {
    if (here == first) return;
    here = first;
    sync_block();
    for (i32 i = i32(threadIdx.x); i < 2 * staged; i += kThreads) {
      const i32 row = i / 2, half = i % 2, node = first + row;
      // Padding repeats the last key, so that no score is higher, and has values of 0.
      const bf16* at = from + i64(least(node, nodes - 1)) * 3 * width + half * 8;
      keys.put(row, half, load(at + width));
      values.put(row, half, node < nodes ? load(at + 2 * width) : Bf16x8{});
    }
    sync_block();
  };
  auto for_all = [&](bool idle, auto visit) {  // calls visit(row, nodes left) for every 16 nodes
    for (i32 first = 0; first < nodes; first += staged) {
      stage(first);
      const i32 rows = idle ? 0 : least(staged, nodes - first);
      i32 row = 0;
#pragma unroll 1
      for (; row + kChunk <= rows; row += kChunk) {
#pragma unroll
        for (i32 j = 0; j < kChunk; j += 16) visit(row + j, 16);
      }
#pragma unroll 1
      for (; row < rows; row += 16) visit(row, rows - row);
    }
  };

  const i32 units = (nodes + 31) / 32;
  for (i32 round = i32(blockIdx.x) % parts; round < units; round += kWarps * parts) {
    const i32 unit = round + warp * parts;
    const i32 first = unit * 32 + lane / 4;  // the lane's rows: this one and every 8th after it
    QueryTiles tiles;
    sync_block();  // all have read `repeat` of the last round
#pragma unroll
    for (i32 i = 0; i < 8; ++i) {
      const i32 row = least(first + i / 4 * 16 + i % 2 * 8, nodes - 1);
      const bf16* at = from + i64(row) * 3 * width + lane % 4 * 2 + i % 4 / 2 * 8;
      tiles.query[i / 4][i % 4] = *reinterpret_cast<const u32*>(at);
    }
    for (bool shifted = false;; shifted = true) {
      tiles.reset();
      for_all(unit >= units,
              [&](i32 row, i32 left) { tiles.attend(keys, values, row, left, lane); });
      if (shifted) break;
      if (unit < units && !tiles.is_in_range()) *repeat = 1;
      sync_block();
      if (*repeat == 0) break;
      sync_block();
      *repeat = 0;
      sync_block();
      float top[2][2] = {{-kInfinite, -kInfinite}, {-kInfinite, -kInfinite}};
      for_all(unit >= units, [&](i32 row, i32) { tiles.find_max(top, keys, row, lane); });
      for (i32 i = 0; i < 4; ++i)
        tiles.shift[i / 2][i % 2] = max_over_row(top[i / 2][i % 2]) * kExponent;
    }
    if (unit >= units) continue;
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      const i32 u = i / 2, r = i % 2, row = first + 16 * u + 8 * r;
      const float sum = tiles.denominator[u][2 * r], factor = fast_reciprocal(sum);
      if (row >= nodes) continue;
      bf16* to = out + (head.instance * nodes + row) * width + head.number * kHead;
#pragma unroll
      for (i32 d = 0; d < 2; ++d) {
        const float* output = tiles.output[u][d] + 2 * r;
        store_pair(to + 8 * d, lane, output[0] * factor, output[1] * factor);
      }
      if (lane % 4 == 0 && log_sums) {
        log_sums[(head.instance * heads + head.number) * nodes + row] =
            tiles.shift[u][r] + fast_log2(sum);
      }
    }
  }
}

// What the backward pass keeps in shared memory.
struct BackwardTiles {
  SharedRows queries, keys, values, gradients;  // gradients: of the outputs
  float *log_sums, *dots;                       // dots: of each node, its gradient times its output
  i32 nodes, lane;
};

// Stores gradients of 32 nodes from `row` on to the queries, keys or values of (nodes, 3 width).
NDS_FN void store_rows(const BackwardTiles& k, i32 row, const float (&gradients)[2][2][4],
                       float scale, bf16* to, i32 width) {
#pragma unroll
  for (i32 i = 0; i < 8; ++i) {
    const i32 t = i / 4, r = i / 2 % 2, d = i % 2;
    const i32 here = row + 16 * t + 8 * r + k.lane / 4;
    if (here >= k.nodes) continue;
    const float (&a)[4] = gradients[t][d];
    store_pair(to + i64(here) * 3 * width + 8 * d, k.lane, a[2 * r] * scale, a[2 * r + 1] * scale);
  }
}

// For one pair of nodes: replaces the score by its attention weight, and the gradient of the weight
// by that of the score.
NDS_FN void score_gradient(float& score, float& gradient, float log_sum, float dot) {
  score = fast_exp2(score * kExponent - log_sum);
  gradient = score * (gradient - dot);
}
struct __align__(8) Floats2 {
  float value[2];
};

// Computes the gradients of 32 keys and values from `row` on.
NDS_FN void key_value_gradients(const BackwardTiles& k, i32 row, bf16* to, i32 width) {
  u32 key[2][4], value[2][4];
  float to_key[2][2][4] = {}, to_value[2][2][4] = {};
#pragma unroll
  for (i32 t = 0; t < 2; ++t) {
    load_a(key[t], k.keys, row + 16 * t, k.lane);
    load_a(value[t], k.values, row + 16 * t, k.lane);
  }
  for (i32 begin = 0; begin < k.nodes; begin += 16) {
    u32 query[4], gradient[4], query_transposed[4], gradient_transposed[4];
    load_b(query, k.queries, begin, k.lane);
    load_b(gradient, k.gradients, begin, k.lane);
    load_b_transposed(query_transposed, k.queries, begin, k.lane);
    load_b_transposed(gradient_transposed, k.gradients, begin, k.lane);
    float score[2][2][4], slope[2][2][4];
#pragma unroll
    for (i32 n = 0; n < 2; ++n) {
      const i32 at = begin + 8 * n + k.lane % 4 * 2;
      const Floats2 log_sum = *reinterpret_cast<const Floats2*>(k.log_sums + at);
      const Floats2 dot = *reinterpret_cast<const Floats2*>(k.dots + at);
#pragma unroll
      for (i32 t = 0; t < 2; ++t) {
        mma(score[t][n], key[t], query_transposed[2 * n], query_transposed[2 * n + 1]);
        mma(slope[t][n], value[t], gradient_transposed[2 * n], gradient_transposed[2 * n + 1]);
#pragma unroll
        for (i32 i = 0; i < 4; ++i)
          score_gradient(score[t][n][i], slope[t][n][i], log_sum.value[i % 2], dot.value[i % 2]);
      }
    }
#pragma unroll
    for (i32 t = 0; t < 2; ++t) {
      u32 operand[4];
      to_fragment_a(operand, score[t][0], score[t][1]);
      mma_accumulate(to_value[t][0], operand, gradient[0], gradient[1]);
      mma_accumulate(to_value[t][1], operand, gradient[2], gradient[3]);
      to_fragment_a(operand, slope[t][0], slope[t][1]);
      mma_accumulate(to_key[t][0], operand, query[0], query[1]);
      mma_accumulate(to_key[t][1], operand, query[2], query[3]);
    }
  }
  store_rows(k, row, to_key, kScale, to + width, width);
  store_rows(k, row, to_value, 1.0f, to + 2 * width, width);
}

// Computes the gradients of 32 queries from `row` on.
NDS_FN void query_gradients(const BackwardTiles& k, i32 row, bf16* to, i32 width) {
  u32 query[2][4], gradient[2][4];
  float to_query[2][2][4] = {}, log_sum[2][2], dot[2][2];
#pragma unroll
  for (i32 t = 0; t < 2; ++t) {
    load_a(query[t], k.queries, row + 16 * t, k.lane);
    load_a(gradient[t], k.gradients, row + 16 * t, k.lane);
#pragma unroll
    for (i32 r = 0; r < 2; ++r) {
      log_sum[t][r] = k.log_sums[row + 16 * t + 8 * r + k.lane / 4];
      dot[t][r] = k.dots[row + 16 * t + 8 * r + k.lane / 4];
    }
  }
  for (i32 begin = 0; begin < k.nodes; begin += 16) {
    u32 key[4], key_transposed[4], value_transposed[4];
    load_b(key, k.keys, begin, k.lane);
    load_b_transposed(key_transposed, k.keys, begin, k.lane);
    load_b_transposed(value_transposed, k.values, begin, k.lane);
#pragma unroll
    for (i32 t = 0; t < 2; ++t) {
      float score[2][4], slope[2][4];
#pragma unroll
      for (i32 n = 0; n < 2; ++n) {
        mma(score[n], query[t], key_transposed[2 * n], key_transposed[2 * n + 1]);
        mma(slope[n], gradient[t], value_transposed[2 * n], value_transposed[2 * n + 1]);
#pragma unroll
        for (i32 i = 0; i < 4; ++i)
          score_gradient(score[n][i], slope[n][i], log_sum[t][i / 2], dot[t][i / 2]);
      }
      if (begin + 16 > k.nodes) {
#pragma unroll
        for (i32 i = 0; i < 8; ++i)
          if (begin + i / 4 * 8 + k.lane % 4 * 2 + i % 2 >= k.nodes) slope[i / 4][i % 4] = 0.0f;
      }
      u32 operand[4];
      to_fragment_a(operand, slope[0], slope[1]);
      mma_accumulate(to_query[t][0], operand, key[0], key[1]);
      mma_accumulate(to_query[t][1], operand, key[2], key[3]);
    }
  }
  store_rows(k, row, to_query, kScale, to, width);
}

// gradient: (B, nodes, width) of `out`; to: (B, nodes, 3 width), of `all`. Every attention weight
// is computed twice, once for its key and once for its query, which is cheaper than a sum over
// warps. Shared memory: 136 bytes per node, rounded up to kChunk.
extern "C" __global__ void __launch_bounds__(kThreads, 2)
    attention_backward(const bf16* __restrict__ all, const bf16* __restrict__ out,
                       const float* __restrict__ log_sums, const bf16* __restrict__ gradient,
                       bf16* to, i32 nodes, i32 width, i32 heads) {
  const Head head(i32(blockIdx.x), heads);
  const i32 rows = (nodes + kChunk - 1) / kChunk * kChunk;
  char* memory = shared_memory();
  const BackwardTiles k{{memory},
                        {memory + rows * 32},
                        {memory + rows * 64},
                        {memory + rows * 96},
                        reinterpret_cast<float*>(memory + rows * 128),
                        reinterpret_cast<float*>(memory + rows * 132),
                        nodes,
                        i32(threadIdx.x) % 32};
  for (i32 row = i32(threadIdx.x); row < rows; row += kThreads) {
    const bool exists = row < nodes;
    const i64 node = head.instance * nodes + row;
    const i64 here = node * 3 * width + head.number * kHead;
    const i64 of_output = node * width + head.number * kHead;
    float dot = 0.0f;
#pragma unroll
    for (i32 half = 0; half < 2; ++half) {
      k.queries.put(row, half, exists ? load(all + here + half * 8) : Bf16x8{});
      k.keys.put(row, half, exists ? load(all + here + width + half * 8) : Bf16x8{});
      k.values.put(row, half, exists ? load(all + here + 2 * width + half * 8) : Bf16x8{});
      const Bf16x8 given = exists ? load(gradient + of_output + half * 8) : Bf16x8{};
      const Bf16x8 output = exists ? load(out + of_output + half * 8) : Bf16x8{};
      k.gradients.put(row, half, given);
      float a[8], b[8];
      unpack(given, a);
      unpack(output, b);
#pragma unroll
      for (i32 i = 0; i < 8; ++i) dot += a[i] * b[i];
    }
    k.dots[row] = dot;
    k.log_sums[row] =
        exists ? log_sums[(head.instance * heads + head.number) * nodes + row] : kInfinite;
  }
  sync_block();
  bf16* target = to + head.instance * nodes * 3 * width + head.number * kHead;
  const i32 parts = (nodes + 31) / 32;
  for (i32 part = i32(threadIdx.x) / 32; part < 2 * parts; part += kWarps) {
    if (part < parts)
      key_value_gradients(k, part * 32, target, width);
    else
      query_gradients(k, (part - parts) * 32, target, width);
  }
}
