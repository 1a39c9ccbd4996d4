// Matrix tiles of bfloat16 as tensor cores take them, spread over a warp. Of every 8 x 8 part, lane
// l holds row l / 4 and columns 2 (l % 4) and the next; a word holds two neighbours of a row.
#pragma once
#include "bf16.hpp"

namespace nds::inline NDS_ISA {

// Rows of 16 bfloat16 in shared memory. The halves of a row are swapped in every other group of
// four rows, so that the same half of eight consecutive rows lies in different banks.
struct SharedRows {
  char* at;

  NDS_FN char* half(i32 row, i32 number) const {
    return at + row * 32 + ((number ^ (row >> 2 & 1)) << 4);
  }
  NDS_FN void put(i32 row, i32 number, const Bf16x8& values) const {
    *reinterpret_cast<Bf16x8*>(half(row, number)) = values;
  }
};

// c = a b.
NDS_FN void mma(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  mma(c, a, b0, b1, {0.0f, 0.0f, 0.0f, 0.0f});
}

// 16 rows from `row` on as an operand: as A (rows x 16); as B (rows x 16); as B transposed (16 x
// rows). Words 0 and 1 of B are its columns 0-7, words 2 and 3 its columns 8-15.
NDS_FN void load_a(u32 (&words)[4], const SharedRows& from, i32 row, i32 lane) {
  load_matrices(words, from.half(row + (lane & 15), lane >> 4), false);
}
NDS_FN void load_b(u32 (&words)[4], const SharedRows& from, i32 row, i32 lane) {
  load_matrices(words, from.half(row + (lane & 15), lane >> 4), true);
}
NDS_FN void load_b_transposed(u32 (&words)[4], const SharedRows& from, i32 row, i32 lane) {
  load_matrices(words, from.half(row + (lane & 7) + (lane >> 4 << 3), lane >> 3 & 1), false);
}
// A result (16 x 16, as two of 16 x 8) as the operand A of the next product.
NDS_FN void to_fragment_a(u32 (&words)[4], const float (&first)[4], const float (&second)[4]) {
  words[0] = to_bf16x2(first[0], first[1]), words[1] = to_bf16x2(first[2], first[3]);
  words[2] = to_bf16x2(second[0], second[1]), words[3] = to_bf16x2(second[2], second[3]);
}

// A lane's part of 16 x 16 operands and results. They are stored in memory in this form.
using FragmentA = Bf16x8;
using FragmentB = Bf16x8;
struct Accumulator {
  float at[2][4];  // [columns 0-7 or 8-15][row l / 4: two columns, row l / 4 + 8: two columns]
};
NDS_FN void mma_accumulate(Accumulator& c, const FragmentA& a, const FragmentB& b) {
  mma_accumulate(c.at[0], a.word, b.word[0], b.word[1]);
  mma_accumulate(c.at[1], a.word, b.word[2], b.word[3]);
}
// d: the same number in all columns of a row.
NDS_FN void mma(Accumulator& c, const FragmentA& a, const FragmentB& b, const float (&d)[4]) {
  mma(c.at[0], a.word, b.word[0], b.word[1], d);
  mma(c.at[1], a.word, b.word[2], b.word[3], d);
}
NDS_FN void mma(Accumulator& c, const FragmentA& a, const FragmentB& b) {
  mma(c, a, b, {0.0f, 0.0f, 0.0f, 0.0f});
}
NDS_FN FragmentA to_fragment_a(const Accumulator& c) {
  FragmentA a;
  to_fragment_a(a.word, c.at[0], c.at[1]);
  return a;
}
NDS_FN Accumulator to_accumulator(const FragmentA& a) {
  Accumulator c;
#pragma unroll
  for (i32 i = 0; i < 4; ++i) {
    float* two = c.at[i / 2] + i % 2 * 2;
    two[0] = low_float(a.word[i]), two[1] = high_float(a.word[i]);
  }
  return c;
}

// Words of an operand B of ones: every column of the product holds the sums of A's rows.
constexpr u32 kOnes = 0x3f803f80u;
// Sums of exponentials in this range, and their summands, neither overflow nor vanish in float32.
constexpr float kMinSum = 0x1p-100f, kMaxSum = 0x1p100f;
NDS_FN bool in_range(float sum) { return sum > kMinSum && sum < kMaxSum; }

// Over the four lanes that share a row.
NDS_FN float max_over_row(float value) {
  for (i32 bit = 1; bit < 4; bit *= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, bit));
  return value;
}

}  // namespace nds::inline NDS_ISA
