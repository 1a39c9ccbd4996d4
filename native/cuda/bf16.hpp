// Numbers of 16 bits (bfloat16: the upper half of a float) and what the kernels of the network
// share: eight of them at a time, sums over a block in an order that never changes.
#pragma once
#include "warp.hpp"

namespace nds {
inline namespace NDS_ISA {

using bf16 = unsigned short;

struct __align__(16) Eight {
  u32 word[4];
};

NDS_FN float low_of(u32 pair) { return __int_as_float(i32(pair << 16)); }
NDS_FN float high_of(u32 pair) { return __int_as_float(i32(pair & 0xffff0000u)); }
NDS_FN float wide(bf16 value) { return low_of(value); }

#ifdef NDS_EMULATED
NDS_FN u32 rounded(float value) {  // to nearest, ties to even
  const u32 bits = u32(__float_as_int(value));
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
  return (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}
NDS_FN u32 pair_of(float low, float high) { return rounded(low) | rounded(high) << 16; }
NDS_FN float power_of_two(float exponent) { return std::exp2(exponent); }
NDS_FN float log_of_two(float value) { return std::log2(value); }
NDS_FN float root_inverse(float value) { return 1.0f / std::sqrt(value); }
NDS_FN float root_of(float value) { return std::sqrt(value); }
NDS_FN float inverse_of(float value) { return 1.0f / value; }
NDS_FN float tanh_of(float value) { return std::tanh(value); }
NDS_FN float saturated(float value) { return fminf(fmaxf(value, 0.0f), 1.0f); }
#else
NDS_FN u32 pair_of(float low, float high) {
  u32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
// What one instruction gives.
  #define NDS_APPROXIMATE(name, instruction)                   \
    NDS_FN float name(float value) {                           \
      float result;                                            \
      asm(instruction " %0, %1;" : "=f"(result) : "f"(value)); \
      return result;                                           \
    }
NDS_APPROXIMATE(power_of_two, "ex2.approx.ftz.f32")
NDS_APPROXIMATE(log_of_two, "lg2.approx.f32")
NDS_FN float root_inverse(float value) { return rsqrtf(value); }
NDS_FN float saturated(float value) { return __saturatef(value); }
NDS_APPROXIMATE(inverse_of, "rcp.approx.ftz.f32")
NDS_APPROXIMATE(root_of, "sqrt.approx.ftz.f32")
NDS_APPROXIMATE(tanh_of, "tanh.approx.f32")
#endif

// 2^x without the unit that all other exponentials wait for: to 1e-4 for x from -125 to 126, beyond
// which it stays as it is there.
NDS_FN float power_by_hand(float x) {
  constexpr float kReach = 252.0f, kWhole = 12582912.0f;  // its last bit counts ones
  const float share = saturated(x * (1.0f / kReach) + 0.5f);
  const float whole = share * kReach + (kWhole - kReach / 2);  // rounded: its lowest bits are it
  const float rest = share * kReach + (kWhole - kReach / 2 - whole);
  const float part = ((0.0551717f * rest + 0.2426111f) * rest + 0.6932610f) * rest + 0.9999281f;
  return __int_as_float(__float_as_int(part) + (__float_as_int(whole) << 23));
}

// The same, by hand for some: the i-th of 8 if it is among `by_hand`, which are spread evenly.
template <i32 by_hand> NDS_FN float power_of_two(float x, i32 i) {
  return i * by_hand % 8 < by_hand ? power_by_hand(x) : power_of_two(x);
}

NDS_FN float larger(float a, float b) { return fmaxf(a, b); }  // one instruction
NDS_FN bf16 narrow(float value) { return bf16(pair_of(value, 0.0f)); }

NDS_FN Eight load(const bf16* from) { return *reinterpret_cast<const Eight*>(from); }
NDS_FN void store(bf16* to, const Eight& values) { *reinterpret_cast<Eight*>(to) = values; }
NDS_FN void unpack(const Eight& from, float (&to)[8]) {
#pragma unroll
  for (i32 i = 0; i < 4; ++i)
    to[2 * i] = low_of(from.word[i]), to[2 * i + 1] = high_of(from.word[i]);
}
NDS_FN Eight pack(const float (&from)[8]) {
  Eight to;
#pragma unroll
  for (i32 i = 0; i < 4; ++i) to.word[i] = pair_of(from[2 * i], from[2 * i + 1]);
  return to;
}
struct __align__(16) Four {
  float value[4];
};
NDS_FN void load(const float* from, float (&to)[8]) {
#pragma unroll
  for (i32 half = 0; half < 2; ++half) {
    const Four four = reinterpret_cast<const Four*>(from)[half];
#pragma unroll
    for (i32 i = 0; i < 4; ++i) to[4 * half + i] = four.value[i];
  }
}
// `values` where those of `signs` are positive, else 0.
NDS_FN Eight where_positive(const Eight& values, const Eight& signs) {
  Eight to;
#pragma unroll
  for (i32 i = 0; i < 4; ++i) {
    const u32 keep = (low_of(signs.word[i]) > 0.0f ? 0x0000ffffu : 0u) |
                     (high_of(signs.word[i]) > 0.0f ? 0xffff0000u : 0u);
    to.word[i] = values.word[i] & keep;
  }
  return to;
}

// A block has one instance and kSlice channels of it; a row of those is the work of kRow lanes.
constexpr i32 kSlice = 32, kRow = 4, kThreads = 256, kStep = kThreads / kRow;
constexpr i32 kBatch = 4;  // rows that a thread asks for at once
constexpr i32 kSums = 3;   // at most, per channel
constexpr i32 kWarps = kThreads / 32;
constexpr i32 kReserved = (kWarps + 1) * kSums * kSlice * 4;  // bytes for `sum_over_rows`

struct Slice {
  i64 instance;
  i32 row, channel;  // the thread's first row, the first of its eight channels

  NDS_FN explicit Slice(i32 width) {
    const i32 slices = width / kSlice;
    instance = blockIdx.x / slices;
    row = i32(threadIdx.x) / kRow;
    channel = i32(blockIdx.x) % slices * kSlice + i32(threadIdx.x) % kRow * 8;
  }
};

// Half of N values stay with this lane, the other half with the lane across.
template <i32 N> NDS_FN void share(float* values, i32 lane, i32 bit) {
  const bool upper = (lane & bit) != 0;
#pragma unroll
  for (i32 i = 0; i < N / 2; ++i) {
    const float kept = upper ? values[i + N / 2] : values[i];
    const float given = upper ? values[i] : values[i + N / 2];
    values[i] = kept + __shfl_xor_sync(~0u, given, bit);
  }
}

// Sums of the block: K numbers for each of the thread's eight channels. Returns (K, kSlice) in
// shared memory.
template <i32 K> NDS_FN const float* sum_over_rows(float (&values)[8 * K]) {
  const i32 lane = i32(threadIdx.x) % 32, warp = i32(threadIdx.x) / 32;
  share<8 * K>(values, lane, 16);
  share<4 * K>(values, lane, 8);
  share<2 * K>(values, lane, 4);
  const i32 begin = (lane & 16 ? 4 * K : 0) + (lane & 8 ? 2 * K : 0) + (lane & 4 ? K : 0);
  float* parts = reinterpret_cast<float*>(shared_memory());
#pragma unroll
  for (i32 i = 0; i < K; ++i) {
    const i32 sum = (begin + i) / 8, channel = lane % kRow * 8 + (begin + i) % 8;
    parts[(warp * K + sum) * kSlice + channel] = values[i];
  }
  sync_block();
  float* totals = parts + kWarps * K * kSlice;
  if (i32(threadIdx.x) < K * kSlice) {
    float total = 0.0f;
    for (i32 w = 0; w < kWarps; ++w) total += parts[w * K * kSlice + i32(threadIdx.x)];
    totals[threadIdx.x] = total;
  }
  sync_block();
  return totals;
}

}  // namespace NDS_ISA
}  // namespace nds
