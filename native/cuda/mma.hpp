// Matrices in a warp: a product of 16 x 16 by 16 x 8 numbers in bfloat16, summed in float32, each
// lane holding some of them. Lane 4 g + t holds, of a row and of the row 8 below it,
//
//   left     rows g, g + 8         columns 2t, 2t+1, 8 + 2t, 9 + 2t   (Left)
//   right    columns g             rows    2t, 2t+1, 8 + 2t, 9 + 2t   (half of Right, two of which
//                                                                      stand side by side)
//   product  rows g, g + 8         columns 2t, 2t+1                   (half of Sum, likewise)
//
// so that a product, rounded, is the left side of the next one as it stands.
#pragma once
#include "warp.hpp"

namespace nds {
inline namespace NDS_ISA {

struct alignas(16) Left {
  u32 upper0, lower0, upper1, lower1;  // pairs of bfloat16: row g, row g + 8, then columns 8 on
};
struct alignas(16) Right {
  u32 a0, a1, b0, b1;  // columns 0 to 7 (a) and 8 to 15 (b): rows 0 to 7, 8 to 15
};
// 16 x 16: [columns 0-7 or 8-15][row g: 2t, 2t+1; row g + 8: 2t, 2t+1]
struct Sum {
  float at[2][4];
};

#ifdef NDS_EMULATED
inline u32 rounded(float value) {  // to nearest, ties to even
  const u32 bits = __builtin_bit_cast(u32, value);
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
NDS_FN u32 pair(float first, float second) { return rounded(first) | rounded(second) << 16; }
NDS_FN float exp2_of(float x) { return exp2f(x); }
NDS_FN float log2_of(float x) { return log2f(x); }
NDS_FN float tanh_of(float x) { return tanhf(x); }
NDS_FN float root_of(float x) { return sqrtf(x); }

struct Operands {
  Left left;
  u32 right[2];
};
inline Operands boards[32][2][32];  // of each warp, in turns

inline void multiply_add(float (&sum)[4], const Left& left, u32 right0, u32 right1) {
  const i32 warp = block->fibers.now() / 32, lane = lane_now();
  Operands(&board)[32] = boards[warp][block->warps[warp].turn % 2];
  board[lane] = {left, {right0, right1}};
  bring(~0u, 9, 0);
  auto number = [](u32 two, i32 odd) {
    return __builtin_bit_cast(float, odd ? two & 0xffff0000u : two << 16);
  };
  for (i32 i = 0; i < 4; ++i) {
    const i32 row = lane / 4, column = lane % 4 * 2 + i % 2;
    for (i32 k = 0; k < 16; ++k) {
      const Operands& l = board[row * 4 + k % 8 / 2];
      const Operands& r = board[column * 4 + k % 8 / 2];
      const u32 two =
          k < 8 ? (i < 2 ? l.left.upper0 : l.left.lower0) : (i < 2 ? l.left.upper1 : l.left.lower1);
      sum[i] += number(two, k % 2) * number(r.right[k / 8], k % 2);
    }
  }
}

// The eight rows of four matrices of 8 x 8 numbers, each lane naming one.
inline Right matrices(const void* row, bool turned) {
  const std::vector<Meeting::Slot>& rows = bring(~0u, turned ? 11 : 10, reinterpret_cast<i64>(row));
  const i32 g = lane_now() / 4, t = lane_now() % 4;
  u32 word[4];
  for (i32 m = 0; m < 4; ++m) {
    auto at = [&](i32 r, i32 c) {
      return u32(reinterpret_cast<const unsigned short*>(rows[8 * m + r].value[0])[c]);
    };
    word[m] =
        turned ? at(2 * t, g) | at(2 * t + 1, g) << 16 : at(g, 2 * t) | at(g, 2 * t + 1) << 16;
  }
  bring(~0u, 12, 0);  // nobody writes there before all have read
  return Right{word[0], word[1], word[2], word[3]};
}
NDS_FN Right rows_of(const void* row) { return matrices(row, false); }
NDS_FN Right columns_of(const void* row) { return matrices(row, true); }
#else
// Right sides from shared memory. The lanes name the rows of four matrices of 8 x 8 numbers, the
// first eight lanes those of the first; a row is a column of the right side, or (turned) a row.
NDS_FN Right rows_of(const void* row) {
  Right r;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r.a0), "=r"(r.a1), "=r"(r.b0), "=r"(r.b1)
               : "r"(u32(__cvta_generic_to_shared(row))));
  return r;
}
NDS_FN Right columns_of(const void* row) {
  Right r;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r.a0), "=r"(r.a1), "=r"(r.b0), "=r"(r.b1)
               : "r"(u32(__cvta_generic_to_shared(row))));
  return r;
}
NDS_FN u32 pair(float first, float second) {
  u32 two;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(second), "f"(first));
  return two;
}
NDS_FN float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
NDS_FN float log2_of(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
NDS_FN float tanh_of(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
NDS_FN float root_of(float x) {
  float y;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
NDS_FN void multiply_add(float (&sum)[4], const Left& left, u32 right0, u32 right1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(left.upper0), "r"(left.lower0), "r"(left.upper1), "r"(left.lower1), "r"(right0),
        "r"(right1));
}
#endif

NDS_FN void multiply_add(Sum& sum, const Left& left, const Right& right) {
  multiply_add(sum.at[0], left, right.a0, right.a1);
  multiply_add(sum.at[1], left, right.b0, right.b1);
}

NDS_FN Left rounded(const Sum& sum) {
  return Left{pair(sum.at[0][0], sum.at[0][1]), pair(sum.at[0][2], sum.at[0][3]),
              pair(sum.at[1][0], sum.at[1][1]), pair(sum.at[1][2], sum.at[1][3])};
}

NDS_FN float first_of(u32 two) { return __int_as_float(i32(two << 16)); }
NDS_FN float second_of(u32 two) { return __int_as_float(i32(two & 0xffff0000u)); }
// The opposite of `rounded`.
NDS_FN Sum numbers(const Left& left) {
  return Sum{{{first_of(left.upper0), second_of(left.upper0), first_of(left.lower0),
               second_of(left.lower0)},
              {first_of(left.upper1), second_of(left.upper1), first_of(left.lower1),
               second_of(left.lower1)}}};
}

}  // namespace NDS_ISA
}  // namespace nds
