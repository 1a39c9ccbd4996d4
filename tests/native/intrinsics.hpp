// native/cuda/intrinsics.hpp in plain C++, for the emulator.
#pragma once
#include "emulate.hpp"
#include "ndsvrp/lanes.hpp"

namespace nds::inline NDS_ISA {

NDS_FN u32 round_to_bf16(float value) {  // to nearest, ties to even
  const u32 bits = u32(__float_as_int(value));
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
  return (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}
NDS_FN u32 to_bf16x2(float low, float high) { return round_to_bf16(low) | round_to_bf16(high) << 16; }
NDS_FN float fast_exp2(float exponent) { return __builtin_exp2f(exponent); }
NDS_FN float fast_log2(float value) { return __builtin_log2f(value); }
NDS_FN float fast_reciprocal(float value) { return 1.0f / value; }
NDS_FN float fast_sqrt(float value) { return __builtin_sqrtf(value); }
NDS_FN float fast_tanh(float value) { return __builtin_tanhf(value); }
NDS_FN float fast_rsqrt(float value) { return 1.0f / __builtin_sqrtf(value); }
NDS_FN float saturate(float value) { return __builtin_fminf(__builtin_fmaxf(value, 0.0f), 1.0f); }

template <class T> NDS_FN T load_read_only(const T* from) { return *from; }

NDS_FN u32 expand_signs(u32 word, bool upper) {
  const u32 two = word >> (upper ? 16 : 0);
  return (two >> 7 & 1u) * 0xffffu | (two >> 15 & 1u) * 0xffff0000u;
}

// The operands of each lane, for each warp in turns.
struct Operands {
  u32 a[4], b[2];
};
inline Operands operands[32][2][32];
inline float bf16_at(u32 word, i32 number) { return __int_as_float(i32(word >> 16 * number << 16)); }

inline void mma_accumulate(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  const i32 warp = block->fibers.now() / 32, lane = lane_now();
  Operands(&all)[32] = operands[warp][block->warps[warp].turn % 2];
  all[lane] = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
  bring(~0u, 10, 0);
  for (i32 i = 0; i < 4; ++i) {
    const i32 row = lane / 4, column = lane % 4 * 2 + i % 2;
    for (i32 k = 0; k < 16; ++k) {
      const u32 left = all[row * 4 + k % 8 / 2].a[k / 8 * 2 + i / 2];
      const u32 right = all[column * 4 + k % 8 / 2].b[k / 8];
      c[i] += bf16_at(left, k % 2) * bf16_at(right, k % 2);
    }
  }
}
inline void mma(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1, const float (&d)[4]) {
  for (i32 i = 0; i < 4; ++i) c[i] = d[i];
  mma_accumulate(c, a, b0, b1);
}
inline void load_matrices(u32 (&matrices)[4], const char* row, bool transposed) {
  const auto& rows = bring(~0u, 11, reinterpret_cast<i64>(row));
  const i32 lane = lane_now();
  for (i32 i = 0; i < 4; ++i) {
    unsigned short two[2];
    for (i32 k = 0; k < 2; ++k) {
      const i32 r = transposed ? lane % 4 * 2 + k : lane / 4;
      const i32 c = transposed ? lane / 4 : lane % 4 * 2 + k;
      two[k] = reinterpret_cast<const unsigned short*>(rows[8 * i + r].value[0])[c];
    }
    matrices[i] = two[0] | u32(two[1]) << 16;
  }
  bring(~0u, 12, 0);  // no lane writes there before all have read
}

}  // namespace nds::inline NDS_ISA
