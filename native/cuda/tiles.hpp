// Tiles of matrices of bfloat16 spread over a warp, as the tensor cores take them. Lane l has row
// l / 4 and columns 2 (l % 4) and the next of every 8 x 8 part; a word is two neighbours in a row.
#pragma once
#include "bf16.hpp"

namespace nds {
inline namespace NDS_ISA {

// Rows of 16 numbers in shared memory. Halves of a row change places every four rows, so that the
// same half of eight rows in sequence lies in different banks.
struct Rows {
  char* at;

  NDS_FN char* half(i32 row, i32 number) const {
    return at + row * 32 + ((number ^ (row >> 2 & 1)) << 4);
  }
  NDS_FN void put(i32 row, i32 number, const Eight& values) const {
    *reinterpret_cast<Eight*>(half(row, number)) = values;
  }
};

#ifdef NDS_EMULATED
// What each lane brings along to a product, for each warp in turns.
struct Operands {
  u32 left[4], right[2];
};
inline Operands operands[32][2][32];
inline bf16 part_of(u32 word, i32 number) { return bf16(word >> 16 * number); }

// c (16 x 8) += a (16 x 16) b (16 x 8).
inline void multiply(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  const i32 warp = block->fibers.now() / 32, lane = lane_now();
  Operands(&all)[32] = operands[warp][block->warps[warp].turn % 2];
  all[lane] = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
  bring(~0u, 10, 0);
  for (i32 i = 0; i < 4; ++i) {
    const i32 row = lane / 4, column = lane % 4 * 2 + i % 2;
    for (i32 k = 0; k < 16; ++k) {
      const u32 left = all[row * 4 + k % 8 / 2].left[k / 8 * 2 + i / 2];
      const u32 right = all[column * 4 + k % 8 / 2].right[k / 8];
      c[i] += wide(part_of(left, k % 2)) * wide(part_of(right, k % 2));
    }
  }
}
// a b + d.
inline void product(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1, const float (&d)[4]) {
  for (i32 i = 0; i < 4; ++i) c[i] = d[i];
  multiply(c, a, b0, b1);
}
// a b alone.
inline void product(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  product(c, a, b0, b1, {0.0f, 0.0f, 0.0f, 0.0f});
}
// Four 8 x 8 parts; lane l says where row l % 8 of part l / 8 begins.
inline void load_parts(u32 (&parts)[4], const char* row, bool turned) {
  const auto& rows = bring(~0u, 11, reinterpret_cast<i64>(row));
  const i32 lane = lane_now();
  for (i32 i = 0; i < 4; ++i) {
    bf16 two[2];
    for (i32 k = 0; k < 2; ++k) {
      const i32 r = turned ? lane % 4 * 2 + k : lane / 4, c = turned ? lane / 4 : lane % 4 * 2 + k;
      two[k] = reinterpret_cast<const bf16*>(rows[8 * i + r].value[0])[c];
    }
    parts[i] = two[0] | u32(two[1]) << 16;
  }
  bring(~0u, 12, 0);  // nobody writes there before all have read
}
#else
NDS_FN void multiply(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
NDS_FN void product(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1, const float (&d)[4]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%10, %11, %12, %13};"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(d[0]), "f"(d[1]),
        "f"(d[2]), "f"(d[3]));
}
NDS_FN void product(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  product(c, a, b0, b1, {0.0f, 0.0f, 0.0f, 0.0f});
}
NDS_FN void load_parts(u32 (&parts)[4], const char* row, bool turned) {
  const u32 at = u32(__cvta_generic_to_shared(row));
  if (turned) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(parts[0]), "=r"(parts[1]), "=r"(parts[2]), "=r"(parts[3])
                 : "r"(at));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(parts[0]), "=r"(parts[1]), "=r"(parts[2]), "=r"(parts[3])
                 : "r"(at));
  }
}
#endif

// 16 rows from `row` on as they are wanted: on the left of a product (rows x 16); on its right,
// turned round (16 x rows), for columns 0-7 words 0 and 1, for 8-15 words 2 and 3; on its right as
// they are (rows x 16).
NDS_FN void load_left(u32 (&parts)[4], const Rows& from, i32 row, i32 lane) {
  load_parts(parts, from.half(row + (lane & 15), lane >> 4), false);
}
NDS_FN void load_right_turned(u32 (&parts)[4], const Rows& from, i32 row, i32 lane) {
  load_parts(parts, from.half(row + (lane & 7) + (lane >> 4 << 3), lane >> 3 & 1), false);
}
NDS_FN void load_right(u32 (&parts)[4], const Rows& from, i32 row, i32 lane) {
  load_parts(parts, from.half(row + (lane & 15), lane >> 4), true);
}
// A result (16 x 16, as two of 16 x 8) on the left of the next product.
NDS_FN void as_left(u32 (&parts)[4], const float (&first)[4], const float (&second)[4]) {
  parts[0] = pair_of(first[0], first[1]), parts[1] = pair_of(first[2], first[3]);
  parts[2] = pair_of(second[0], second[1]), parts[3] = pair_of(second[2], second[3]);
}

// The same by name, for what lies in memory as lanes hold it. Of a product (16 x 16) a lane has, of
// row l / 4 and then of the 8th after it, two columns of 0-7 and two of 8-15.
using Left = Eight;
using Right = Eight;
struct Sum {
  float at[2][4];  // [columns 0-7 or 8-15][row: two columns, 8th row after it: two columns]
};
NDS_FN void multiply(Sum& sum, const Left& left, const Right& right) {
  multiply(sum.at[0], left.word, right.word[0], right.word[1]);
  multiply(sum.at[1], left.word, right.word[2], right.word[3]);
}
// Plus `from` (of the two rows, the same in all columns), or nothing.
NDS_FN void product(Sum& sum, const Left& left, const Right& right, const float (&from)[4]) {
  product(sum.at[0], left.word, right.word[0], right.word[1], from);
  product(sum.at[1], left.word, right.word[2], right.word[3], from);
}
NDS_FN void product(Sum& sum, const Left& left, const Right& right) {
  product(sum, left, right, {0.0f, 0.0f, 0.0f, 0.0f});
}
NDS_FN Left as_left(const Sum& sum) {
  Left left;
  as_left(left.word, sum.at[0], sum.at[1]);
  return left;
}
// The opposite.
NDS_FN Sum as_sum(const Left& left) {
  Sum sum;
#pragma unroll
  for (i32 i = 0; i < 4; ++i) {
    float* two = sum.at[i / 2] + i % 2 * 2;
    two[0] = low_of(left.word[i]), two[1] = high_of(left.word[i]);
  }
  return sum;
}

// On the right of a product whose every column is the sum of the left's rows.
constexpr u32 kOnes = 0x3f803f80u;
// Sums of exponentials between these are far from where float32 ends, and so are their parts.
constexpr float kLeast = 0x1p-100f, kMost = 0x1p100f;
NDS_FN bool in_range(float sum) { return sum > kLeast && sum < kMost; }

// Of the four lanes that share a row.
NDS_FN float most_of_row(float value) {
  for (i32 bit = 1; bit < 4; bit *= 2) value = larger(value, __shfl_xor_sync(~0u, value, bit));
  return value;
}

}  // namespace NDS_ISA
}  // namespace nds
