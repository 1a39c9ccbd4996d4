// Self-attention of the encoder, for heads of 16 numbers: libraries pad such heads to 64 and more,
// and their time goes there. What limits these kernels is the exponential of every pair of nodes,
// for which there is one unit; some are made by the others. A block per instance and head, or a
// part of its queries; a warp per 32 nodes.
#include "tiles.hpp"

using namespace nds;

constexpr i32 kHead = 16, kChunk = 64;  // numbers per head; nodes that a warp weighs at once
constexpr float kScale = 0.25f, kExponent = kScale * 1.4426950408889634f;
constexpr float kNobody = 1e30f;   // a logarithm that nothing comes up to
constexpr i32 kPolynomialOf8 = 1;  // of 8 exponentials

namespace {

// Floats2 numbers of a result, to column 2 (lane % 4) of a row.
NDS_FN void store_pair(bf16* row, i32 lane, float low, float high) {
  *reinterpret_cast<u32*>(row + lane % 4 * 2) = to_bf16x2(low, high);
}

struct Head {
  i64 instance;
  i32 number;

  NDS_FN Head(i32 block, i32 heads) : instance(block / heads), number(block % heads) {}
};

// The queries of a warp, two tiles of them, and what they have heard.
struct Asking {
  u32 query[2][4];
  float shift[2][2] = {};  // taken from exponents, by row
  float heard[2][2][4], whole[2][4];

  NDS_FN void begin() {
#pragma unroll
    for (i32 i = 0; i < 16; ++i) heard[i / 8][i / 4 % 2][i % 4] = 0.0f;
#pragma unroll
    for (i32 i = 0; i < 8; ++i) whole[i / 4][i % 4] = 0.0f;
  }
  // 16 nodes, of which `left` are there at all.
  NDS_FN void hear(const SharedRows& keys, const SharedRows& values, i32 row, i32 left, i32 lane) {
    u32 key[4], value[4], chance[2][4], ones[2] = {kOnes, kOnes};
    load_b_transposed(key, keys, row, lane);
    load_b(value, values, row, lane);
    if (left < 16) {
      for (i32 i = 0; i < 2; ++i) {
        const i32 there = left - 8 * i - lane % 4 * 2;
        ones[i] = there > 1 ? kOnes : there > 0 ? kOnes & 0xffffu : 0u;
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
      to_fragment_a(chance[u], score[0], score[1]);
    }
#pragma unroll
    for (i32 u = 0; u < 2; ++u) {
      mma_accumulate(heard[u][0], chance[u], value[0], value[1]);
      mma_accumulate(heard[u][1], chance[u], value[2], value[3]);
      mma_accumulate(whole[u], chance[u], ones[0], ones[1]);
    }
  }
  NDS_FN void find_most(float (&most)[2][2], const SharedRows& keys, i32 row, i32 lane) const {
    u32 key[4];
    load_b_transposed(key, keys, row, lane);
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      float score[4];
      mma(score, query[i / 2], key[i % 2 * 2], key[i % 2 * 2 + 1]);
      for (i32 n = 0; n < 4; ++n) most[i / 2][n / 2] = fmaxf(most[i / 2][n / 2], score[n]);
    }
  }
  NDS_FN bool is_apt() const {
    bool apt = true;
#pragma unroll
    for (i32 i = 0; i < 4; ++i) apt = apt && in_range(whole[i / 2][i % 2 * 2]);
    return apt;
  }
};

}  // namespace

// all: (B, nodes, 3 width) queries, keys, values; out: (B, nodes, width); logarithms: (B, heads,
// nodes) of the sums of exponentials, to base 2; null if nobody asks. Blocks: B x heads x parts,
// each with every parts-th of the 32 queries that a warp has at once. `staged` nodes, a multiple of
// kChunk, are in shared memory at once: 64 bytes each, and 16 more.
//
// Exponentials are taken as they are, without looking for the highest first. Where a sum is then
// far from 1, the block looks for the highest and does it again.
extern "C" __global__ void __launch_bounds__(kThreads, 2)
    attention_forward(const bf16* __restrict__ all, bf16* out, float* logarithms, i32 nodes,
                      i32 width, i32 heads, i32 parts, i32 staged) {
  const Head head(i32(blockIdx.x) / parts, heads);
  const i32 lane = i32(threadIdx.x) % 32, warp = i32(threadIdx.x) / 32;
  const SharedRows keys{shared_memory()}, values{shared_memory() + staged * 32};
  i32* again = reinterpret_cast<i32*>(shared_memory() + staged * 64);
  const bf16* from = all + head.instance * nodes * 3 * width + head.number * kHead;
  if (threadIdx.x == 0) *again = 0;
  i32 here = -1;  // the first of those that are staged
  auto stage = [&](i32 first) {
    if (here == first) return;
    here = first;
    sync_block();
    for (i32 i = i32(threadIdx.x); i < 2 * staged; i += kThreads) {
      const i32 row = i / 2, half = i % 2, node = first + row;
      // Beyond the last: its key once more, so that no score is any higher, and no value.
      const bf16* at = from + i64(least(node, nodes - 1)) * 3 * width + half * 8;
      keys.put(row, half, load(at + width));
      values.put(row, half, node < nodes ? load(at + 2 * width) : Bf16x8{});
    }
    sync_block();
  };
  auto for_all = [&](bool idle, auto visit) {  // visit(row, nodes left) for every 16 nodes
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
    Asking asking;
    sync_block();  // all have read whether the round before had to be done again
#pragma unroll
    for (i32 i = 0; i < 8; ++i) {
      const i32 row = least(first + i / 4 * 16 + i % 2 * 8, nodes - 1);
      const bf16* at = from + i64(row) * 3 * width + lane % 4 * 2 + i % 4 / 2 * 8;
      asking.query[i / 4][i % 4] = *reinterpret_cast<const u32*>(at);
    }
    for (bool sure = false;; sure = true) {
      asking.begin();
      for_all(unit >= units,
              [&](i32 row, i32 left) { asking.hear(keys, values, row, left, lane); });
      if (sure) break;
      if (unit < units && !asking.is_apt()) *again = 1;
      sync_block();
      if (*again == 0) break;
      sync_block();
      *again = 0;
      sync_block();
      float most[2][2] = {{-kNobody, -kNobody}, {-kNobody, -kNobody}};
      for_all(unit >= units, [&](i32 row, i32) { asking.find_most(most, keys, row, lane); });
      for (i32 i = 0; i < 4; ++i)
        asking.shift[i / 2][i % 2] = max_over_row(most[i / 2][i % 2]) * kExponent;
    }
    if (unit >= units) continue;
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      const i32 u = i / 2, r = i % 2, row = first + 16 * u + 8 * r;
      const float whole = asking.whole[u][2 * r], part = fast_reciprocal(whole);
      if (row >= nodes) continue;
      bf16* to = out + (head.instance * nodes + row) * width + head.number * kHead;
#pragma unroll
      for (i32 d = 0; d < 2; ++d) {
        const float* heard = asking.heard[u][d] + 2 * r;
        store_pair(to + 8 * d, lane, heard[0] * part, heard[1] * part);
      }
      if (lane % 4 == 0 && logarithms) {
        logarithms[(head.instance * heads + head.number) * nodes + row] =
            asking.shift[u][r] + fast_log2(whole);
      }
    }
  }
}

namespace {

// What the backward pass has in shared memory.
struct Known {
  SharedRows queries, keys, values, slopes;  // slopes: of what was heard
  float *logarithms, *along;                 // along: of each node, slope times what it heard
  i32 nodes, lane;
};

// Slopes of 32 nodes from `row` on, to their queries, keys or values among (nodes, 3 width).
NDS_FN void store_rows(const Known& k, i32 row, const float (&slopes)[2][2][4], float scale,
                       bf16* to, i32 width) {
#pragma unroll
  for (i32 i = 0; i < 8; ++i) {
    const i32 t = i / 4, r = i / 2 % 2, d = i % 2;
    const i32 here = row + 16 * t + 8 * r + k.lane / 4;
    if (here >= k.nodes) continue;
    const float (&a)[4] = slopes[t][d];
    store_pair(to + i64(here) * 3 * width + 8 * d, k.lane, a[2 * r] * scale, a[2 * r + 1] * scale);
  }
}

// One pair of nodes: its chance in place of its score; the slope of its score in place of that of
// its chance.
NDS_FN void slope_of(float& score, float& toward, float logarithm, float along) {
  score = fast_exp2(score * kExponent - logarithm);
  toward = score * (toward - along);
}
struct __align__(8) Floats2 {
  float value[2];
};

// Slopes of 32 keys and values from `row` on.
NDS_FN void keys_and_values(const Known& k, i32 row, bf16* to, i32 width) {
  u32 key[2][4], value[2][4];
  float to_key[2][2][4] = {}, to_value[2][2][4] = {};
#pragma unroll
  for (i32 t = 0; t < 2; ++t) {
    load_a(key[t], k.keys, row + 16 * t, k.lane);
    load_a(value[t], k.values, row + 16 * t, k.lane);
  }
  for (i32 begin = 0; begin < k.nodes; begin += 16) {
    u32 query[4], slope[4], query_turned[4], slope_turned[4];
    load_b(query, k.queries, begin, k.lane);
    load_b(slope, k.slopes, begin, k.lane);
    load_b_transposed(query_turned, k.queries, begin, k.lane);
    load_b_transposed(slope_turned, k.slopes, begin, k.lane);
    float score[2][2][4], toward[2][2][4];
#pragma unroll
    for (i32 n = 0; n < 2; ++n) {
      const i32 at = begin + 8 * n + k.lane % 4 * 2;
      const Floats2 logarithm = *reinterpret_cast<const Floats2*>(k.logarithms + at);
      const Floats2 along = *reinterpret_cast<const Floats2*>(k.along + at);
#pragma unroll
      for (i32 t = 0; t < 2; ++t) {
        mma(score[t][n], key[t], query_turned[2 * n], query_turned[2 * n + 1]);
        mma(toward[t][n], value[t], slope_turned[2 * n], slope_turned[2 * n + 1]);
#pragma unroll
        for (i32 i = 0; i < 4; ++i)
          slope_of(score[t][n][i], toward[t][n][i], logarithm.value[i % 2], along.value[i % 2]);
      }
    }
#pragma unroll
    for (i32 t = 0; t < 2; ++t) {
      u32 left[4];
      to_fragment_a(left, score[t][0], score[t][1]);
      mma_accumulate(to_value[t][0], left, slope[0], slope[1]);
      mma_accumulate(to_value[t][1], left, slope[2], slope[3]);
      to_fragment_a(left, toward[t][0], toward[t][1]);
      mma_accumulate(to_key[t][0], left, query[0], query[1]);
      mma_accumulate(to_key[t][1], left, query[2], query[3]);
    }
  }
  store_rows(k, row, to_key, kScale, to + width, width);
  store_rows(k, row, to_value, 1.0f, to + 2 * width, width);
}

// Slopes of 32 queries from `row` on.
NDS_FN void queries(const Known& k, i32 row, bf16* to, i32 width) {
  u32 query[2][4], slope[2][4];
  float to_query[2][2][4] = {}, logarithm[2][2], along[2][2];
#pragma unroll
  for (i32 t = 0; t < 2; ++t) {
    load_a(query[t], k.queries, row + 16 * t, k.lane);
    load_a(slope[t], k.slopes, row + 16 * t, k.lane);
#pragma unroll
    for (i32 r = 0; r < 2; ++r) {
      logarithm[t][r] = k.logarithms[row + 16 * t + 8 * r + k.lane / 4];
      along[t][r] = k.along[row + 16 * t + 8 * r + k.lane / 4];
    }
  }
  for (i32 begin = 0; begin < k.nodes; begin += 16) {
    u32 key[4], key_turned[4], value_turned[4];
    load_b(key, k.keys, begin, k.lane);
    load_b_transposed(key_turned, k.keys, begin, k.lane);
    load_b_transposed(value_turned, k.values, begin, k.lane);
#pragma unroll
    for (i32 t = 0; t < 2; ++t) {
      float score[2][4], toward[2][4];
#pragma unroll
      for (i32 n = 0; n < 2; ++n) {
        mma(score[n], query[t], key_turned[2 * n], key_turned[2 * n + 1]);
        mma(toward[n], slope[t], value_turned[2 * n], value_turned[2 * n + 1]);
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
      to_fragment_a(left, toward[0], toward[1]);
      mma_accumulate(to_query[t][0], left, key[0], key[1]);
      mma_accumulate(to_query[t][1], left, key[2], key[3]);
    }
  }
  store_rows(k, row, to_query, kScale, to, width);
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
  char* memory = shared_memory();
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
      k.queries.put(row, half, there ? load(all + here + half * 8) : Bf16x8{});
      k.keys.put(row, half, there ? load(all + here + width + half * 8) : Bf16x8{});
      k.values.put(row, half, there ? load(all + here + 2 * width + half * 8) : Bf16x8{});
      const Bf16x8 slope = there ? load(gradient + beside + half * 8) : Bf16x8{};
      const Bf16x8 heard = there ? load(out + beside + half * 8) : Bf16x8{};
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
