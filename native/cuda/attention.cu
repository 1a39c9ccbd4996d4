// Self-attention of the encoder, for heads of 16 channels; libraries pad such heads to 64 or more. The special function
// unit, which computes the exponential of every pair of nodes, is the bottleneck, so some exponentials go to the FMA
// units. A block per instance and head, or per part of its queries; a warp per 32 nodes.
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
  FragmentA query[2];
  float shift[2][2] = {};  // subtracted from the exponents of a row
  Accumulator output[2];
  float denominator[2][4];

  NDS_FN void reset() {
    unrolled<2>([&](i32 u) { output[u] = Accumulator{}; });
    unrolled<8>([&](i32 i) { denominator[i / 4][i % 4] = 0.0f; });
  }
  // Attends to 16 nodes, of which the first `left` exist.
  NDS_FN void attend(const SharedRows& keys, const SharedRows& values, i32 row, i32 left, i32 lane) {
    const FragmentB key = load_b_transposed(keys, row, lane), value = load_b(values, row, lane);
    FragmentA weight[2];
    u32 ones[2] = {kOnes, kOnes};
    if (left < 16) {
      for (i32 i = 0; i < 2; ++i) {
        const i32 count = left - 8 * i - lane % 4 * 2;
        ones[i] = count > 1 ? kOnes : count > 0 ? kOnes & 0xffffu : 0u;
      }
    }
    unrolled<2>([&](i32 u) {
      Accumulator score = mma(query[u], key);
      unrolled<8>([&](i32 i) {
        float& s = score.at[i / 4][i % 4];
        s = mixed_exp2<kPolynomialOf8>(s * kExponent - shift[u][i % 4 / 2], i);
      });
      weight[u] = to_fragment_a(score);
    });
    unrolled<2>([&](i32 u) {
      mma_accumulate(output[u], weight[u], value);
      mma_accumulate(denominator[u], weight[u].word, ones[0], ones[1]);
    });
  }
  NDS_FN void find_max(float (&top)[2][2], const SharedRows& keys, i32 row, i32 lane) const {
    const FragmentB key = load_b_transposed(keys, row, lane);
    unrolled<2>([&](i32 u) {
      const Accumulator score = mma(query[u], key);
      for (i32 n = 0; n < 8; ++n) {
        float& t = top[u][n % 4 / 2];
        t = fmaxf(t, score.at[n / 4][n % 4]);
      }
    });
  }
};

// all: (B, nodes, 3 width) queries, keys, values; out: (B, nodes, width); log_sums: (B, heads, nodes), log2 of the sums
// of exponentials, or null. Grid: B x heads x parts; a block has every parts-th group of 32 queries, one group per warp
// at a time. `staged` nodes, a multiple of kChunk, are in shared memory at once: 64 bytes each, and 16 more.
//
// Exponentials are computed without subtracting the maximum. Where a sum leaves the range of float32, the block finds
// the maxima and repeats the computation.
extern "C" __global__ void __launch_bounds__(kThreads, 2)
    attention_forward(const bf16* __restrict__ all, bf16* out, float* log_sums, i32 nodes, i32 width, i32 heads,
                      i32 parts, i32 staged) {
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
    unrolled<8>([&](i32 i) {
      const i32 row = least(first + i / 4 * 16 + i % 2 * 8, nodes - 1);
      const bf16* at = from + i64(row) * 3 * width + lane % 4 * 2 + i % 4 / 2 * 8;
      tiles.query[i / 4].word[i % 4] = *reinterpret_cast<const u32*>(at);
    });
    for (bool shifted = false;; shifted = true) {
      tiles.reset();
      for_all(unit >= units, [&](i32 row, i32 left) { tiles.attend(keys, values, row, left, lane); });
      if (shifted) break;
      if (unit < units && !in_range(tiles.denominator)) *repeat = 1;
      sync_block();
      if (*repeat == 0) break;
      sync_block();
      *repeat = 0;
      sync_block();
      float top[2][2] = {{-kInfinite, -kInfinite}, {-kInfinite, -kInfinite}};
      for_all(unit >= units, [&](i32 row, i32) { tiles.find_max(top, keys, row, lane); });
      for (i32 i = 0; i < 4; ++i) tiles.shift[i / 2][i % 2] = max_over_row(top[i / 2][i % 2]) * kExponent;
    }
    if (unit >= units) continue;
    unrolled<4>([&](i32 i) {
      const i32 u = i / 2, r = i % 2, row = first + 16 * u + 8 * r;
      const float sum = tiles.denominator[u][2 * r], factor = fast_reciprocal(sum);
      if (row >= nodes) return;
      bf16* to = out + (head.instance * nodes + row) * width + head.number * kHead;
      unrolled<2>([&](i32 d) {
        const float* output = tiles.output[u].at[d] + 2 * r;
        store_pair(to + 8 * d, lane, output[0] * factor, output[1] * factor);
      });
      if (lane % 4 == 0 && log_sums) {
        log_sums[(head.instance * heads + head.number) * nodes + row] = tiles.shift[u][r] + fast_log2(sum);
      }
    });
  }
}

// What the backward pass keeps in shared memory.
struct BackwardTiles {
  SharedRows queries, keys, values, gradients;  // gradients: of the outputs
  float *log_sums, *dots;                       // dots: of each node, its gradient times its output
  i32 nodes, lane;
};

// Stores gradients of 32 nodes from `row` on to the queries, keys or values of (nodes, 3 width).
NDS_FN void store_rows(const BackwardTiles& k, i32 row, const Accumulator (&gradients)[2], float scale, bf16* to,
                       i32 width) {
  unrolled<8>([&](i32 i) {
    const i32 t = i / 4, r = i / 2 % 2, d = i % 2;
    const i32 here = row + 16 * t + 8 * r + k.lane / 4;
    if (here >= k.nodes) return;
    const float (&a)[4] = gradients[t].at[d];
    store_pair(to + i64(here) * 3 * width + 8 * d, k.lane, a[2 * r] * scale, a[2 * r + 1] * scale);
  });
}

// For one pair of nodes: replaces the score by its attention weight, and the gradient of the weight by that of the
// score.
NDS_FN void score_gradient(float& score, float& gradient, float log_sum, float dot) {
  score = fast_exp2(score * kExponent - log_sum);
  gradient = score * (gradient - dot);
}
struct __align__(8) Floats2 {
  float value[2];
};

// Computes the gradients of 32 keys and values from `row` on.
NDS_FN void key_value_gradients(const BackwardTiles& k, i32 row, bf16* to, i32 width) {
  FragmentA key[2], value[2];
  Accumulator to_key[2] = {}, to_value[2] = {};
  unrolled<2>([&](i32 t) {
    key[t] = load_a(k.keys, row + 16 * t, k.lane);
    value[t] = load_a(k.values, row + 16 * t, k.lane);
  });
  for (i32 begin = 0; begin < k.nodes; begin += 16) {
    const FragmentB query = load_b(k.queries, begin, k.lane);
    const FragmentB gradient = load_b(k.gradients, begin, k.lane);
    const FragmentB query_transposed = load_b_transposed(k.queries, begin, k.lane);
    const FragmentB gradient_transposed = load_b_transposed(k.gradients, begin, k.lane);
    Accumulator score[2], slope[2];
    unrolled<2>([&](i32 t) {
      score[t] = mma(key[t], query_transposed);
      slope[t] = mma(value[t], gradient_transposed);
    });
    unrolled<2>([&](i32 n) {
      const i32 at = begin + 8 * n + k.lane % 4 * 2;
      const Floats2 log_sum = *reinterpret_cast<const Floats2*>(k.log_sums + at);
      const Floats2 dot = *reinterpret_cast<const Floats2*>(k.dots + at);
      unrolled<8>([&](i32 i) {
        float &s = score[i / 4].at[n][i % 4], &g = slope[i / 4].at[n][i % 4];
        score_gradient(s, g, log_sum.value[i % 2], dot.value[i % 2]);
      });
    });
    unrolled<2>([&](i32 t) {
      mma_accumulate(to_value[t], to_fragment_a(score[t]), gradient);
      mma_accumulate(to_key[t], to_fragment_a(slope[t]), query);
    });
  }
  store_rows(k, row, to_key, kScale, to + width, width);
  store_rows(k, row, to_value, 1.0f, to + 2 * width, width);
}

// Computes the gradients of 32 queries from `row` on.
NDS_FN void query_gradients(const BackwardTiles& k, i32 row, bf16* to, i32 width) {
  FragmentA query[2], gradient[2];
  Accumulator to_query[2] = {};
  float log_sum[2][2], dot[2][2];
  unrolled<2>([&](i32 t) {
    query[t] = load_a(k.queries, row + 16 * t, k.lane);
    gradient[t] = load_a(k.gradients, row + 16 * t, k.lane);
  });
  unrolled<2, 2>([&](i32 t, i32 r) {
    log_sum[t][r] = k.log_sums[row + 16 * t + 8 * r + k.lane / 4];
    dot[t][r] = k.dots[row + 16 * t + 8 * r + k.lane / 4];
  });
  for (i32 begin = 0; begin < k.nodes; begin += 16) {
    const FragmentB key = load_b(k.keys, begin, k.lane);
    const FragmentB key_transposed = load_b_transposed(k.keys, begin, k.lane);
    const FragmentB value_transposed = load_b_transposed(k.values, begin, k.lane);
    unrolled<2>([&](i32 t) {
      Accumulator score = mma(query[t], key_transposed), slope = mma(gradient[t], value_transposed);
      unrolled<8>([&](i32 i) {
        float &s = score.at[i / 4][i % 4], &g = slope.at[i / 4][i % 4];
        score_gradient(s, g, log_sum[t][i % 4 / 2], dot[t][i % 4 / 2]);
      });
      if (begin + 16 > k.nodes) {
        unrolled<8>([&](i32 i) {
          if (begin + i / 4 * 8 + k.lane % 4 * 2 + i % 2 >= k.nodes) slope.at[i / 4][i % 4] = 0.0f;
        });
      }
      mma_accumulate(to_query[t], to_fragment_a(slope), key);
    });
  }
  store_rows(k, row, to_query, kScale, to, width);
}

// gradient: (B, nodes, width) of `out`; to: (B, nodes, 3 width), of `all`. Every attention weight is computed twice,
// once for its key and once for its query, which is cheaper than a sum over warps. Shared memory: 136 bytes per node,
// rounded up to kChunk.
extern "C" __global__ void __launch_bounds__(kThreads, 2)
    attention_backward(const bf16* __restrict__ all, const bf16* __restrict__ out, const float* __restrict__ log_sums,
                       const bf16* __restrict__ gradient, bf16* to, i32 nodes, i32 width, i32 heads) {
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
    unrolled<2>([&](i32 half) {
      k.queries.put(row, half, exists ? load(all + here + half * 8) : Bf16x8{});
      k.keys.put(row, half, exists ? load(all + here + width + half * 8) : Bf16x8{});
      k.values.put(row, half, exists ? load(all + here + 2 * width + half * 8) : Bf16x8{});
      const Bf16x8 given = exists ? load(gradient + of_output + half * 8) : Bf16x8{};
      const Bf16x8 output = exists ? load(out + of_output + half * 8) : Bf16x8{};
      k.gradients.put(row, half, given);
      float a[8], b[8];
      unpack(given, a);
      unpack(output, b);
      unrolled<8>([&](i32 i) { dot += a[i] * b[i]; });
    });
    k.dots[row] = dot;
    k.log_sums[row] = exists ? log_sums[(head.instance * heads + head.number) * nodes + row] : kInfinite;
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
