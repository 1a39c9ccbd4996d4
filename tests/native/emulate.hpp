// The part of CUDA that the kernels use, on a CPU: a thread is a fiber, blocks run in sequence. For tests without a
// GPU; see fibers.hpp.
#pragma once
#define __CUDACC__
#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)

// Few headers, without <cmath> and <chrono>: every set of macros is compiled by itself.
#include <string.h>
#include <time.h>

#include "fibers.hpp"

extern "C" float fmaxf(float, float) noexcept;
extern "C" float tanhf(float) noexcept;

namespace nds::inline NDS_ISA {

constexpr u32 kSharedBytes = 256 * 1024;  // more than any GPU has
alignas(16) char memory[kSharedBytes];    // of the block

// The current block.
struct Block {
  i32 number, count, threads;
  Fibers fibers;
  std::vector<Meeting> warps;
  Meeting all;

  Block(i32 number, i32 count, i32 threads)
      : number(number), count(count), threads(threads), fibers(threads), warps((threads + 31) / 32) {
    for (i32 w = 0; w < i32(warps.size()); ++w) {
      warps[w].members = std::min(32, threads - 32 * w);
      for (auto& table : warps[w].table) table.resize(32);
    }
    all.members = threads;
  }
};
inline Block* block = nullptr;

// Exchange a value with the lanes of the warp.
inline const std::vector<Meeting::Slot>& bring(u32 mask, i32 kind, i64 value) {
  if (mask != 0xffffffffu) abort();
  const i32 thread = block->fibers.now(), warp = thread / 32;
  Meeting& meeting = block->warps[warp];
  std::vector<Meeting::Slot>& table = meeting.table[meeting.turn % 2];
  table[thread % 32].value[0] = value;
  block->fibers.meet(meeting, 32 * warp, kind);
  return table;
}
inline i32 lane_now() { return block->fibers.now() % 32; }

// Call a kernel in every thread of every block. Shared memory is undefined at first, and bytes beyond it must not be
// written.
template <class... A> void launch(void (*kernel)(A...), i32 grid, i32 threads, u32 shared, const u64* words) {
  if (shared > kSharedBytes) abort();
  for (i32 b = 0; b < grid; ++b) {
    memset(memory, 0xa5, std::min(shared + 4096, kSharedBytes));
    Block here(b, grid, threads);
    block = &here;
    here.fibers.run([&](i32) {
      [&]<std::size_t... I>(std::index_sequence<I...>) { kernel((A)(words[I])...); }(std::index_sequence_for<A...>());
    });
    for (u32 i = shared; i < std::min(shared + 4096, kSharedBytes); ++i) {
      if (memory[i] == char(0xa5)) continue;
      fprintf(stderr, "byte %u of %u of shared memory was written\n", i, shared);
      abort();
    }
  }
}

struct ThreadIndex {
  struct {
    operator u32() const { return u32(block->fibers.now()); }
  } x;
};
struct BlockIndex {
  struct {
    operator u32() const { return u32(block->number); }
  } x;
};
struct BlockSize {
  struct {
    operator u32() const { return u32(block->threads); }
  } x;
};
struct GridSize {
  struct {
    operator u32() const { return u32(block->count); }
  } x;
};

inline u64 globaltimer() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1'000'000'000ull * u64(now.tv_sec) + u64(now.tv_nsec);
}

}  // namespace nds::inline NDS_ISA

inline constexpr nds::ThreadIndex threadIdx{};
inline constexpr nds::BlockIndex blockIdx{};
inline constexpr nds::BlockSize blockDim{};
inline constexpr nds::GridSize gridDim{};

inline void __syncthreads() { nds::block->fibers.meet(nds::block->all, 0, 0); }
inline void __syncwarp() { nds::bring(~0u, 1, 0); }
inline int __reduce_min_sync(unsigned mask, int value) {
  for (const auto& slot : nds::bring(mask, 2, value)) value = std::min(value, int(slot.value[0]));
  return value;
}
inline int __reduce_max_sync(unsigned mask, int value) {
  for (const auto& slot : nds::bring(mask, 3, value)) value = std::max(value, int(slot.value[0]));
  return value;
}
inline int __reduce_add_sync(unsigned mask, int value) {
  int sum = 0;
  for (const auto& slot : nds::bring(mask, 9, value)) sum += int(slot.value[0]);
  return sum;
}
inline unsigned __ballot_sync(unsigned mask, bool yes) {
  const auto& all = nds::bring(mask, 4, yes);
  unsigned bits = 0;
  for (int i = 0; i < 32; ++i) bits |= unsigned(all[i].value[0]) << i;
  return bits;
}
inline unsigned __match_any_sync(unsigned mask, int value) {
  const auto& all = nds::bring(mask, 13, value);
  unsigned bits = 0;
  for (int i = 0; i < 32; ++i) bits |= unsigned(all[i].value[0] == value) << i;
  return bits;
}
// The value of lane `from`; floats are passed as bits.
template <class T, class From> T nds_shuffle(unsigned mask, int kind, T value, From from) {
  if constexpr (std::is_same_v<T, float>) {
    return __builtin_bit_cast(float, nds_shuffle(mask, kind, __builtin_bit_cast(int, value), from));
  } else {
    return T(nds::bring(mask, kind, value)[from(nds::lane_now())].value[0]);
  }
}
template <class T> T __shfl_sync(unsigned mask, T value, int from) {
  return nds_shuffle(mask, 5, value, [=](int) { return from; });
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int bits) {
  return nds_shuffle(mask, 6, value, [=](int lane) { return lane ^ bits; });
}
template <class T> T __shfl_down_sync(unsigned mask, T value, int by) {
  return nds_shuffle(mask, 7, value, [=](int lane) { return lane + by < 32 ? lane + by : lane; });
}
template <class T> T __shfl_up_sync(unsigned mask, T value, int by) {
  return nds_shuffle(mask, 8, value, [=](int lane) { return lane >= by ? lane - by : lane; });
}
inline int atomicAdd(int* sum, int value) {
  const int before = *sum;
  *sum += value;
  return before;
}
inline unsigned atomicOr(unsigned* bits, unsigned more) {
  const unsigned before = *bits;
  *bits |= more;
  return before;
}
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz(unsigned(bits)); }
inline float __fsqrt_rn(float value) { return __builtin_sqrtf(value); }
inline double __dsqrt_rn(double value) { return __builtin_sqrt(value); }
inline float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }
inline int __float_as_int(float value) { return __builtin_bit_cast(int, value); }
