// bfloat16 (the upper half of a float32), eight at a time, and sums over a block in a fixed order.
#pragma once
#include "warp.hpp"

namespace nds::inline NDS_ISA {

using bf16 = unsigned short;

struct __align__(16) Bf16x8 {
  u32 word[4];  // two each
};
struct __align__(16) Floats4 {
  float value[4];
};

NDS_FN float low_float(u32 pair) { return __int_as_float(i32(pair << 16)); }
NDS_FN float high_float(u32 pair) { return __int_as_float(i32(pair & 0xffff0000u)); }
NDS_FN float to_float(bf16 value) { return low_float(value); }
NDS_FN bf16 to_bf16(float value) { return bf16(to_bf16x2(value, 0.0f)); }

// 2^x on the FMA units. fast_exp2 uses the special function unit, which limits attention. The relative error is 1e-4
// for x in [-125, 126]; x is clamped to that range.
NDS_FN float exp2_by_polynomial(float x) {
  constexpr float kRange = 252.0f, kRounder = 12582912.0f;  // 1.5 * 2^23: its last bit counts ones
  const float share = saturate(x * (1.0f / kRange) + 0.5f);
  const float whole = share * kRange + (kRounder - kRange / 2);  // the integer is in its low bits
  const float rest = share * kRange + (kRounder - kRange / 2 - whole);
  const float part = ((0.0551717f * rest + 0.2426111f) * rest + 0.6932610f) * rest + 0.9999281f;
  return __int_as_float(__float_as_int(part) + (__float_as_int(whole) << 23));
}

// 2^x for the i-th of 8 numbers, `polynomials` of which, evenly spread, go to the FMA units.
template <i32 polynomials> NDS_FN float mixed_exp2(float x, i32 i) {
  return i * polynomials % 8 < polynomials ? exp2_by_polynomial(x) : fast_exp2(x);
}

NDS_FN Bf16x8 load(const bf16* from) { return *reinterpret_cast<const Bf16x8*>(from); }
NDS_FN void store(bf16* to, const Bf16x8& values) { *reinterpret_cast<Bf16x8*>(to) = values; }
NDS_FN void unpack(const Bf16x8& from, float (&to)[8]) {
  unrolled<4>([&](i32 i) { to[2 * i] = low_float(from.word[i]), to[2 * i + 1] = high_float(from.word[i]); });
}
NDS_FN Bf16x8 pack(const float (&from)[8]) {
  Bf16x8 to;
  unrolled<4>([&](i32 i) { to.word[i] = to_bf16x2(from[2 * i], from[2 * i + 1]); });
  return to;
}
NDS_FN void load(const float* from, float (&to)[8]) {
  unrolled<2>([&](i32 half) {
    const Floats4 four = reinterpret_cast<const Floats4*>(from)[half];
    unrolled<4>([&](i32 i) { to[4 * half + i] = four.value[i]; });
  });
}
NDS_FN void add(const Bf16x8& summand, float (&sum)[8]) {
  float value[8];
  unpack(summand, value);
  unrolled<8>([&](i32 i) { sum[i] += value[i]; });
}
// The gradient of a ReLU's input: that of its result where the result is positive, else 0.
NDS_FN Bf16x8 relu_gradient(const Bf16x8& values, const Bf16x8& signs) {
  Bf16x8 to;
  unrolled<4>([&](i32 i) {
    const u32 mask =
        (low_float(signs.word[i]) > 0.0f ? 0x0000ffffu : 0u) | (high_float(signs.word[i]) > 0.0f ? 0xffff0000u : 0u);
    to.word[i] = values.word[i] & mask;
  });
  return to;
}

// A block processes kBlockChannels channels of one instance; kRowLanes lanes share a row of those.
constexpr i32 kBlockChannels = 32, kRowLanes = 4, kThreads = 256;
constexpr i32 kPassRows = kThreads / kRowLanes;  // rows that a block processes at once
constexpr i32 kRowsAhead = 4;
constexpr i32 kMaxSums = 3;  // per channel, in `sum_over_rows`
constexpr i32 kWarps = kThreads / 32;
constexpr i32 kSumBytes = (kWarps + 1) * kMaxSums * kBlockChannels * 4;  // for `sum_over_rows`

// The part of the tensors that a thread processes.
struct Slice {
  i64 instance;
  i32 row, channel;  // its first row, the first of its eight channels

  NDS_FN explicit Slice(i32 width) {
    const i32 slices = width / kBlockChannels;
    instance = blockIdx.x / slices;
    row = i32(threadIdx.x) / kRowLanes;
    channel = i32(blockIdx.x) % slices * kBlockChannels + i32(threadIdx.x) % kRowLanes * 8;
  }
};

// Call use(row, load(row)) for rows first, first + step, … below `end`. kRowsAhead rows are loaded before the first of
// them is used.
NDS_FN void with_rows_ahead(i32 first, i32 end, i32 step, auto load, auto use) {
  for (i32 begin = first; begin < end; begin += kRowsAhead * step) {
    decltype(load(0)) rows[kRowsAhead];
    unrolled<kRowsAhead>([&](i32 k) {
      if (begin + k * step < end) rows[k] = load(begin + k * step);
    });
    unrolled<kRowsAhead>([&](i32 k) {
      if (begin + k * step < end) use(begin + k * step, rows[k]);
    });
  }
}

// Reduce-scatter over two lanes: each keeps the sums of one half of N values.
template <i32 N> NDS_FN void reduce_scatter(float* values, i32 lane, i32 bit) {
  const bool upper = (lane & bit) != 0;
  unrolled<N / 2>([&](i32 i) {
    const float kept = upper ? values[i + N / 2] : values[i];
    const float given = upper ? values[i] : values[i + N / 2];
    values[i] = kept + __shfl_xor_sync(~0u, given, bit);
  });
}

// Sums over the rows of the block, K for each of the thread's eight channels. Returns (K, kBlockChannels) in shared
// memory. There are no atomics: the order of additions is fixed.
template <i32 K> NDS_FN const float* sum_over_rows(float (&values)[8 * K]) {
  const i32 lane = i32(threadIdx.x) % 32, warp = i32(threadIdx.x) / 32;
  reduce_scatter<8 * K>(values, lane, 16);
  reduce_scatter<4 * K>(values, lane, 8);
  reduce_scatter<2 * K>(values, lane, 4);
  const i32 begin = (lane & 16 ? 4 * K : 0) + (lane & 8 ? 2 * K : 0) + (lane & 4 ? K : 0);
  float* parts = reinterpret_cast<float*>(shared_memory());
  unrolled<K>([&](i32 i) {
    const i32 sum = (begin + i) / 8, channel = lane % kRowLanes * 8 + (begin + i) % 8;
    parts[(warp * K + sum) * kBlockChannels + channel] = values[i];
  });
  sync_block();
  float* totals = parts + kWarps * K * kBlockChannels;
  if (i32(threadIdx.x) < K * kBlockChannels) {
    float total = 0.0f;
    for (i32 w = 0; w < kWarps; ++w) total += parts[w * K * kBlockChannels + i32(threadIdx.x)];
    totals[threadIdx.x] = total;
  }
  sync_block();
  return totals;
}

}  // namespace nds::inline NDS_ISA
