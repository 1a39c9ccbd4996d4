// Matrix tiles of bfloat16 as tensor cores take them, spread over a warp. Of every 8 x 8 part, lane l holds row l / 4
// and columns 2 (l % 4) and the next; a word holds two neighbours of a row.
#pragma once
#include "bf16.hpp"

namespace nds::inline NDS_ISA {

// A lane's part of 16 x 16 operands and results. They are stored in memory in this form.
using FragmentA = Bf16x8;
using FragmentB = Bf16x8;
struct Accumulator {
  float at[2][4];  // [columns 0-7 or 8-15][row l / 4: two columns, row l / 4 + 8: two columns]
};

// Rows of 16 bfloat16 in shared memory. The halves of a row are swapped in every other group of four rows, so that the
// same half of eight consecutive rows lies in different banks.
struct SharedRows {
  char* at;

  NDS_FN char* half(i32 row, i32 number) const { return at + row * 32 + ((number ^ (row >> 2 & 1)) << 4); }
  NDS_FN void put(i32 row, i32 number, const Bf16x8& values) const {
    *reinterpret_cast<Bf16x8*>(half(row, number)) = values;
  }
};

// 16 rows from `row` on as an operand: as A (rows x 16); as B (rows x 16); as B transposed (16 x rows). Words 0 and 1
// of B are its columns 0-7, words 2 and 3 its columns 8-15.
NDS_FN Bf16x8 load_fragment(const char* row, bool transposed) {
  Bf16x8 fragment;
  load_matrices(fragment.word, row, transposed);
  return fragment;
}
NDS_FN FragmentA load_a(const SharedRows& from, i32 row, i32 lane) {
  return load_fragment(from.half(row + (lane & 15), lane >> 4), false);
}
NDS_FN FragmentB load_b(const SharedRows& from, i32 row, i32 lane) {
  return load_fragment(from.half(row + (lane & 15), lane >> 4), true);
}
NDS_FN FragmentB load_b_transposed(const SharedRows& from, i32 row, i32 lane) {
  return load_fragment(from.half(row + (lane & 7) + (lane >> 4 << 3), lane >> 3 & 1), false);
}

NDS_FN void mma_accumulate(Accumulator& c, const FragmentA& a, const FragmentB& b) {
  mma_accumulate(c.at[0], a.word, b.word[0], b.word[1]);
  mma_accumulate(c.at[1], a.word, b.word[2], b.word[3]);
}
// a b + d; d: the same number in all columns of a row.
NDS_FN Accumulator mma(const FragmentA& a, const FragmentB& b, const Floats4& d = {}) {
  Accumulator c;
  mma(c.at[0], a.word, b.word[0], b.word[1], d.value);
  mma(c.at[1], a.word, b.word[2], b.word[3], d.value);
  return c;
}
// A result as the operand A of the next product.
NDS_FN FragmentA to_fragment_a(const Accumulator& c) {
  FragmentA a;
  unrolled<4>([&](i32 i) {
    const float* two = c.at[i / 2] + i % 2 * 2;
    a.word[i] = to_bf16x2(two[0], two[1]);
  });
  return a;
}
NDS_FN Accumulator to_accumulator(const FragmentA& a) {
  Accumulator c;
  unrolled<4>([&](i32 i) {
    float* two = c.at[i / 2] + i % 2 * 2;
    two[0] = low_float(a.word[i]), two[1] = high_float(a.word[i]);
  });
  return c;
}

// Words of an operand B of ones: every column of the product holds the sums of A's rows.
constexpr u32 kOnes = 0x3f803f80u;
// Sums of exponentials in this range, and their summands, neither overflow nor vanish in float32.
constexpr float kMinSum = 0x1p-100f, kMaxSum = 0x1p100f;
NDS_FN bool in_range(float sum) { return sum > kMinSum && sum < kMaxSum; }
// Whether those of the two rows of each tile are; all columns of a row hold the same sum.
template <i32 Tiles> NDS_FN bool in_range(const float (&sums)[Tiles][4]) {
  bool good = true;
  unrolled<2 * Tiles>([&](i32 i) { good = good && in_range(sums[i / 2][i % 2 * 2]); });
  return good;
}

// Over the four lanes that share a row.
NDS_FN float max_over_row(float value) {
  for (i32 bit = 1; bit < 4; bit *= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, bit));
  return value;
}

}  // namespace nds::inline NDS_ISA
