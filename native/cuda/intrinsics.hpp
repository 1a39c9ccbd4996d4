// Instructions that CUDA C++ has no function for. The emulator of the tests has a header of the same name, which its
// include path finds first; this is the only place where the two differ.
#pragma once
#include "ndsvrp/lanes.hpp"

namespace nds::inline NDS_ISA {

// Nanoseconds, on the clock by which kernels stop.
NDS_FN u64 globaltimer() {
  u64 now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Two bfloat16 in one word, rounded to nearest even.
NDS_FN u32 to_bf16x2(float low, float high) {
  u32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

#define NDS_APPROXIMATE(name, instruction)                   \
  NDS_FN float name(float value) {                           \
    float result;                                            \
    asm(instruction " %0, %1;" : "=f"(result) : "f"(value)); \
    return result;                                           \
  }
NDS_APPROXIMATE(fast_exp2, "ex2.approx.ftz.f32")
NDS_APPROXIMATE(fast_log2, "lg2.approx.f32")
NDS_APPROXIMATE(fast_reciprocal, "rcp.approx.ftz.f32")
NDS_APPROXIMATE(fast_sqrt, "sqrt.approx.ftz.f32")
NDS_APPROXIMATE(fast_tanh, "tanh.approx.f32")
#undef NDS_APPROXIMATE
NDS_FN float fast_rsqrt(float value) { return rsqrtf(value); }
NDS_FN float saturate(float value) { return __saturatef(value); }

// Four words that no kernel writes meanwhile. Volatile: where the compiler moves such a load up, the kernel runs out of
// registers.
template <class T> NDS_FN T load_read_only(const T* from) {
  T loaded;
  asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(loaded.word[0]), "=r"(loaded.word[1]), "=r"(loaded.word[2]), "=r"(loaded.word[3])
               : "l"(from));
  return loaded;
}

// The sign bits of two bytes of a word, each repeated in 16 bits: of the lower two bytes or the upper two.
NDS_FN u32 expand_signs(u32 word, bool upper) {
  u32 signs;
  if (upper)
    asm("prmt.b32 %0, %1, 0, 0xbbaa;" : "=r"(signs) : "r"(word));
  else
    asm("prmt.b32 %0, %1, 0, 0x9988;" : "=r"(signs) : "r"(word));
  return signs;
}

// c (16 x 8) += a (16 x 16) b (16 x 8), on the tensor cores.
NDS_FN void mma_accumulate(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// c = a b + d.
NDS_FN void mma(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1, const float (&d)[4]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%10, %11, %12, %13};"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(d[0]), "f"(d[1]), "f"(d[2]), "f"(d[3]));
}

// Four 8 x 8 matrices of bfloat16 from shared memory; lane l passes the address of row l % 8 of matrix l / 8.
NDS_FN void load_matrices(u32 (&matrices)[4], const char* row, bool transposed) {
  const u32 at = u32(__cvta_generic_to_shared(row));
  if (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(at));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(at));
  }
}

}  // namespace nds::inline NDS_ISA
