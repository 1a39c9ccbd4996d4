// A team of W lanes works on one reconstruction: `for (p = lanes.lane; p < count; p += W)`, then a
// collective. With W = 1 every collective is the identity and the code is a plain loop.
#pragma once
#include "types.hpp"

#if defined(__CUDACC__)
  #define NDS_FN __device__ __forceinline__
  #define NDS_DEEP __device__  // too long to be inlined everywhere
#else
  #define NDS_FN inline __attribute__((always_inline))
  #define NDS_DEEP
#endif

namespace nds {
inline namespace NDS_ISA {

// A position for a customer: between `place` and the next one of `route`. Ties go to (route,
// place).
struct Choice {
  i32 cost, route, place;
};

NDS_FN bool before(const Choice& a, const Choice& b) {
  if (a.cost != b.cost) return a.cost < b.cost;
  if (a.route != b.route) return a.route < b.route;
  return a.place < b.place;
}

NDS_FN i32 least(i32 a, i32 b) { return a < b ? a : b; }
NDS_FN i32 most(i32 a, i32 b) { return a > b ? a : b; }

template <int Width> struct Lanes;

template <> struct Lanes<1> {
  static constexpr i32 W = 1;
  static constexpr i32 lane = 0;
  NDS_FN void sync() const {}
  NDS_FN Choice best(Choice choice) const { return choice; }  // the first in order over all lanes
  NDS_FN i32 least_of(i32 value) const { return value; }      // over all lanes
};

}  // namespace NDS_ISA
}  // namespace nds
