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
// What lane `from` has: all lanes meet.
inline void words_of_all(u64 mine, u64 (&all)[32]) {
  const auto& table = bring(~0u, 10, i64(mine));
  for (i32 lane = 0; lane < 32; ++lane) all[lane] = u64(table[lane].value[0]);
}
inline bf16 part_of(u64 words, i32 number) { return bf16(words >> 16 * number); }

// c (16 x 8) += a (16 x 16) b (16 x 8).
inline void multiply(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  u64 top[32], bottom[32], other[32];  // of a: registers 0 and 1, 2 and 3
  words_of_all(a[0] | u64(a[1]) << 32, top);
  words_of_all(a[2] | u64(a[3]) << 32, bottom);
  words_of_all(b0 | u64(b1) << 32, other);
  const i32 lane = lane_now();
  for (i32 i = 0; i < 4; ++i) {
    const i32 row = lane / 4, column = lane % 4 * 2 + i % 2;
    for (i32 k = 0; k < 16; ++k) {
      const u64 left = (k < 8 ? top : bottom)[row * 4 + k % 8 / 2];
      const u64 right = other[column * 4 + k % 8 / 2];
      c[i] += wide(part_of(left, i / 2 * 2 + k % 2)) * wide(part_of(right, k / 8 * 2 + k % 2));
    }
  }
}
// a b alone.
inline void product(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  for (float& value : c) value = 0.0f;
  multiply(c, a, b0, b1);
}
// Four 8 x 8 parts; lane l says where row l % 8 of part l / 8 begins.
inline void load_parts(u32 (&parts)[4], const char* row, bool turned) {
  u64 rows[32];
  words_of_all(reinterpret_cast<u64>(row), rows);
  const i32 lane = lane_now();
  for (i32 i = 0; i < 4; ++i) {
    bf16 two[2];
    for (i32 k = 0; k < 2; ++k) {
      const i32 r = turned ? lane % 4 * 2 + k : lane / 4, c = turned ? lane / 4 : lane % 4 * 2 + k;
      two[k] = reinterpret_cast<const bf16*>(rows[8 * i + r])[c];
    }
    parts[i] = two[0] | u32(two[1]) << 16;
  }
}
#else
NDS_FN void multiply(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
NDS_FN void product(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%10, %10, %10, %10};"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.0f));
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

}  // namespace NDS_ISA
}  // namespace nds
