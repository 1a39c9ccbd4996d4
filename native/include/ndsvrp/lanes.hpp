// A team of W lanes works on one reconstruction: `for (p = lanes.lane; p < count; p += W)`, then a collective. With W =
// 1 every collective is the identity and the code is a plain loop.
//
// Each lane has its own copy of counts, costs and keys, and all compute the same values. Arrays belong to the team;
// lanes.sync() separates writing from reading them. A crew is several teams, each with other insertion orders.
#pragma once
#include "types.hpp"

#if defined(__NVCC__) || defined(__CUDACC_RTC__)
  #define NDS_ROLLED _Pragma("unroll 1")  // before a loop: small code matters more
#else
  #define NDS_ROLLED
#endif
#if defined(__CUDACC__)
  #define NDS_FN __device__ __forceinline__
  #define NDS_DEEP __device__ __forceinline__  // a kernel has one call of each
#else
  #define NDS_FN inline __attribute__((always_inline))
  #define NDS_DEEP __attribute__((noinline))
#endif

namespace nds::inline NDS_ISA {

// A position for a customer: after stop `stop` of `route`. Ties go to the lower (route, stop). `segment` is the index
// of the route in the draft, or -1.
struct Choice {
  i32 cost, route, stop, segment;
};

NDS_FN bool before(const Choice& a, const Choice& b) {
  if (a.cost != b.cost) return a.cost < b.cost;
  if (a.route != b.route) return a.route < b.route;
  return a.stop < b.stop;
}

// The same without a branch, for lanes that would diverge.
NDS_FN bool before_at_once(const Choice& a, const Choice& b) {
  const bool same_route = (a.route < b.route) | ((a.route == b.route) & (a.stop < b.stop));
  return (a.cost < b.cost) | ((a.cost == b.cost) & same_route);
}

// Call call(i) for i = 0 … Count-1. A GPU unrolls the loop, which keeps arrays in registers.
template <i32 Count> NDS_FN void unrolled(auto call) {
#if defined(__NVCC__) || defined(__CUDACC_RTC__)
  #pragma unroll
#endif
  for (i32 i = 0; i < Count; ++i) call(i);
}
// Call call(a, b) for all pairs.
template <i32 A, i32 B> NDS_FN void unrolled(auto call) {
  unrolled<A * B>([&](i32 i) { call(i / B, i % B); });
}

NDS_FN i32 least(i32 a, i32 b) { return a < b ? a : b; }
NDS_FN i32 most(i32 a, i32 b) { return a > b ? a : b; }

// The function x -> max(x + a, b): the departure from a stop, given that from the stop before it. Composition gives
// such a function again and is associative.
struct MaxPlus {
  i32 a, b;
};

// After all times, so that two of them still add up within 32 bits. Without the triangle inequality, the times of a
// stripped route may exceed any due date; they stop here.
constexpr i32 kEver = (1 << 30) - 1;
NDS_FN i32 capped(i32 time) { return least(time, kEver); }
template <class D> NDS_FN i32 bounded(const D&, i32 time) { return D::symmetric ? time : capped(time); }

NDS_FN MaxPlus then(const MaxPlus& first, const MaxPlus& second) {
  return MaxPlus{capped(first.a + second.a), capped(most(first.b + second.a, second.b))};
}

// A team of one lane.
struct OneLane {
  static constexpr i32 W = 1;
  static constexpr i32 lane = 0;
  const volatile i32* stop;  // set when time is up: the current step is dropped

  NDS_FN static constexpr bool leads() { return true; }
  NDS_FN void sync() const {}
  NDS_FN bool time_is_up() const { return *stop != 0; }
  NDS_FN Choice best(const Choice& choice) const { return choice; }      // the first in order
  template <class T> NDS_FN T least_of(T value) const { return value; }  // floats: not negative
  template <class T> NDS_FN T most_of(T value) const { return value; }
  NDS_FN i64 sum(i64 value) const { return value; }
  NDS_FN i32 sum(i32 value) const { return value; }
  NDS_FN i64 total(i64 value) const { return value; }         // a sum below 2^58
  NDS_FN u32 ballot(bool yes) const { return yes; }           // a bit for each lane
  NDS_FN u32 alike(i32) const { return 1; }                   // a bit for each with this value
  NDS_FN static i32 count_below(u32) { return 0; }            // bits of the lanes before this one
  NDS_FN static i32 last_below(u32) { return -1; }            // the last lane of those
  NDS_FN i32 from(i32 value, i32) const { return value; }     // the value of that lane
  NDS_FN i32 from_next(i32 value) const { return value; }     // the value of the next lane
  NDS_FN MaxPlus up_to(const MaxPlus& f) const { return f; }  // composition over the lanes up to this one
};

#if defined(__CUDACC__)
NDS_FN i32 count_bits(u32 bits) { return __popc(bits); }
NDS_FN i32 first_bit(u32 bits) { return __ffs(int(bits)) - 1; }
NDS_FN i32 last_bit(u32 bits) { return 31 - __clz(int(bits)); }
#else
NDS_FN i32 count_bits(u32 bits) { return __builtin_popcount(bits); }
NDS_FN i32 first_bit(u32 bits) { return __builtin_ctz(bits); }
NDS_FN i32 last_bit(u32 bits) { return 31 - __builtin_clz(bits); }
#endif

// A crew of one team.
template <class L> struct Alone {
  using Lanes = L;
  static constexpr bool alone = true, by_gaps = false, tails = true;
  static constexpr i32 team = 0, teams = 1;
  L lanes;
  NDS_FN void sync() const {}
};

}  // namespace nds::inline NDS_ISA
