// A warp is a team of 32 lanes, a block is a crew of warps.
#pragma once
#include <intrinsics.hpp>

#include "ndsvrp/lanes.hpp"

namespace nds::inline NDS_ISA {

// Wait for all threads of the block. NVVM 13.0 moved loads of the crew's state across __syncthreads (keep_best with
// drafts in global memory, which then hung): the asm statements prevent that.
NDS_FN void sync_block() {
  asm volatile("" ::: "memory");
  __syncthreads();
  asm volatile("" ::: "memory");
}

// The dynamic shared memory of the launch.
NDS_FN char* shared_memory() {
  extern __shared__ __align__(16) char memory[];
  return memory;
}

struct Warp {
  static constexpr i32 W = 32;
  static constexpr u32 kAll = 0xffffffffu;
  i32 lane;
  u64 stop_at;  // on the clock of the GPU; 0: never

  NDS_FN bool leads() const { return lane == 0; }
  NDS_FN void sync() const { __syncwarp(); }
  NDS_FN bool time_is_up() const {
    if (stop_at == 0) return false;
    return __shfl_sync(kAll, int(globaltimer() >= stop_at), 0) != 0;
  }

  // Ties are rare: usually one lane has the least cost.
  NDS_FN Choice best(const Choice& mine) const {
    const i32 cost = __reduce_min_sync(kAll, mine.cost);
    u32 tied = __ballot_sync(kAll, mine.cost == cost);
    if (tied & (tied - 1)) {
      const i32 route = __reduce_min_sync(kAll, mine.cost == cost ? mine.route : kNever);
      const bool same = mine.cost == cost && mine.route == route;
      const i32 stop = __reduce_min_sync(kAll, same ? mine.stop : kNever);
      tied = __ballot_sync(kAll, same && mine.stop == stop);
    }
    const i32 winner = __ffs(int(tied)) - 1;
    return Choice{cost, from(mine.route, winner), from(mine.stop, winner), from(mine.segment, winner)};
  }
  NDS_FN i32 least_of(i32 value) const { return __reduce_min_sync(kAll, value); }
  NDS_FN i32 most_of(i32 value) const { return __reduce_max_sync(kAll, value); }
  NDS_FN i64 least_of(i64 value) const {
    for (i32 step = 16; step > 0; step /= 2) {
      const i64 other = __shfl_xor_sync(kAll, value, step);
      value = other < value ? other : value;
    }
    return value;
  }
  // Floats that are not negative are in the order of their bits.
  NDS_FN float least_of(float value) const { return __int_as_float(least_of(__float_as_int(value))); }
  NDS_FN float most_of(float value) const { return __int_as_float(most_of(__float_as_int(value))); }
  NDS_FN i64 sum(i64 value) const {
    for (i32 step = 16; step > 0; step /= 2) value += __shfl_xor_sync(kAll, value, step);
    return value;
  }
  NDS_FN i32 sum(i32 value) const { return __reduce_add_sync(kAll, value); }
  NDS_FN i64 total(i64 value) const {
    constexpr i32 low = 27;  // 32 such numbers have no more than 32 bits
    const u32 rest = u32(sum(i32(value & ((1 << low) - 1))));
    return i64(u64(sum(i32(value >> low))) << low) + rest;
  }
  NDS_FN u32 ballot(bool yes) const { return __ballot_sync(kAll, yes); }
  NDS_FN u32 alike(i32 value) const { return __match_any_sync(kAll, value); }
  NDS_FN i32 count_below(u32 bits) const { return __popc(bits & ((1u << lane) - 1)); }
  NDS_FN i32 last_below(u32 bits) const { return 31 - __clz(int(bits & ((1u << lane) - 1))); }
  NDS_FN i32 from(i32 value, i32 other) const { return __shfl_sync(kAll, value, other); }
  NDS_FN i32 from_next(i32 value) const { return __shfl_down_sync(kAll, value, 1); }
  NDS_FN MaxPlus up_to(MaxPlus f) const {
    for (i32 step = 1; step < W; step *= 2) {
      const MaxPlus before{__shfl_up_sync(kAll, f.a, step), __shfl_up_sync(kAll, f.b, step)};
      if (lane >= step) f = then(before, f);
    }
    return f;
  }
};

// With Gaps, for steps by gaps in registers (gaps.hpp).
template <bool Gaps, bool Blinks = true, bool Tails = false> struct BlockCrew {
  using Lanes = Warp;
  static constexpr bool alone = false, by_gaps = Gaps, blinks = Blinks, tails = Tails;
  static constexpr i32 shared_bytes = 0;
  Warp lanes;
  i32 team, teams;
  NDS_FN void sync() const { sync_block(); }
};

template <class Crew> NDS_FN Crew crew_of_block(u64 stop_at) {
  return Crew{Warp{i32(threadIdx.x % 32), stop_at}, i32(threadIdx.x / 32), i32(blockDim.x / 32)};
}

}  // namespace nds::inline NDS_ISA
