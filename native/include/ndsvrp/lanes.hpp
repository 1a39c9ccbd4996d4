// A team of W lanes works on one reconstruction: `for (p = lanes.lane; p < count; p += W)`, then a
// collective. With W = 1 every collective is the identity and the code is a plain loop.
//
// What every lane must know (counts, costs, keys) each lane keeps for itself, and all come to the
// same values; arrays belong to the team, and lanes.sync() stands between writing and reading them.
// A crew is several teams, each trying other orders of reinsertion.
#pragma once
#include "types.hpp"

#if defined(__CUDACC__) && !defined(NDS_EMULATED)
  #define NDS_UNROLL _Pragma("unroll")
#else
  #define NDS_UNROLL
#endif

#if defined(__CUDACC__)
  #define NDS_FN __device__ __forceinline__
  #define NDS_DEEP __device__ __forceinline__  // called from one place only
#else
  #define NDS_FN inline __attribute__((always_inline))
  #define NDS_DEEP __attribute__((noinline))
#endif

namespace nds {
inline namespace NDS_ISA {

// A position for a customer: between `place` and the next one of `route`. Ties go to (route,
// place). `segment` is where the draft keeps the route, or -1.
struct Choice {
  i32 cost, route, place, segment;
};

NDS_FN bool before(const Choice& a, const Choice& b) {
  if (a.cost != b.cost) return a.cost < b.cost;
  if (a.route != b.route) return a.route < b.route;
  return a.place < b.place;
}

// The same without a branch, for lanes that would part ways.
NDS_FN bool before_at_once(const Choice& a, const Choice& b) {
  const bool same_route = (a.route < b.route) | ((a.route == b.route) & (a.place < b.place));
  return (a.cost < b.cost) | ((a.cost == b.cost) & same_route);
}

NDS_FN i32 least(i32 a, i32 b) { return a < b ? a : b; }
NDS_FN i32 most(i32 a, i32 b) { return a > b ? a : b; }

// x -> max(x + a, b): what a stop does to the time of the stops after it. One after another they
// make such a function again, in whatever groups they are put together.
struct MaxPlus {
  i32 a, b;
};

NDS_FN MaxPlus then(const MaxPlus& first, const MaxPlus& second) {
  return MaxPlus{first.a + second.a, most(first.b + second.a, second.b)};
}

// A team of one.
struct OneLane {
  static constexpr i32 W = 1;
  static constexpr i32 lane = 0;
  const volatile i32* stop;  // set when time is up: what is under way is dropped

  NDS_FN static constexpr bool leads() { return true; }
  NDS_FN void sync() const {}
  NDS_FN bool time_is_up() const { return *stop != 0; }
  NDS_FN Choice best(const Choice& choice) const { return choice; }      // the first in order
  template <class T> NDS_FN T least_of(T value) const { return value; }  // floats from 0 on
  template <class T> NDS_FN T most_of(T value) const { return value; }
  NDS_FN i64 sum(i64 value) const { return value; }
  NDS_FN i32 sum(i32 value) const { return value; }
  NDS_FN i64 total(i64 value) const { return value; }         // a sum below 2^58
  NDS_FN u32 ballot(bool yes) const { return yes; }           // a bit for each lane
  NDS_FN u32 alike(i32) const { return 1; }                   // a bit for each with this value
  NDS_FN static i32 count_below(u32) { return 0; }            // bits of the lanes before this one
  NDS_FN static i32 last_below(u32) { return -1; }            // the last lane of those
  NDS_FN i32 from(i32 value, i32) const { return value; }     // what that lane has
  NDS_FN i32 from_next(i32 value) const { return value; }     // what the next lane has
  NDS_FN MaxPlus up_to(const MaxPlus& f) const { return f; }  // those of all lanes up to this one
};

NDS_FN i32 count_bits(u32 bits) {
#if defined(__CUDACC__)
  return __popc(bits);
#else
  return __builtin_popcount(bits);
#endif
}

NDS_FN i32 first_bit(u32 bits) {
#if defined(__CUDACC__)
  return __ffs(int(bits)) - 1;
#else
  return __builtin_ctz(bits);
#endif
}

NDS_FN i32 last_bit(u32 bits) {
#if defined(__CUDACC__)
  return 31 - __clz(int(bits));
#else
  return 31 - __builtin_clz(bits);
#endif
}

// A crew of one team.
template <class L> struct Alone {
  using Lanes = L;
  static constexpr bool alone = true, by_gaps = false;
  static constexpr i32 team = 0, teams = 1;
  L lanes;
  NDS_FN void sync() const {}
};

}  // namespace NDS_ISA
}  // namespace nds
