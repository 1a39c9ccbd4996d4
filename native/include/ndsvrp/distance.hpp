// Lengths in ticks between two nodes, by IEEE operations in a fixed order: all devices agree.
#pragma once
#include "lanes.hpp"

namespace nds::inline NDS_ISA {

#if defined(__CUDACC__)
NDS_FN float root(float v) { return __fsqrt_rn(v); }
NDS_FN double root(double v) { return __dsqrt_rn(v); }
#else
NDS_FN float root(float v) { return __builtin_sqrtf(v); }
NDS_FN double root(double v) { return __builtin_sqrt(v); }
#endif

// The same for lengths in ticks, which do not depend on roots of less than 2^-100: what a GPU computes for larger
// numbers, without the test for small ones.
NDS_FN float quick_root(float v) {
#if defined(__NVCC__) || defined(__CUDACC_RTC__)
  float inverse;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(fmaxf(v, 0x1p-100f)));
  const float near = __fmul_rn(v, inverse);
  return __fmaf_rn(__fmaf_rn(-near, near, v), __fmul_rn(inverse, 0.5f), near);
#else
  return root(v);
#endif
}

// What lengths between coordinates share.
template <class T> struct Points {
  static constexpr bool symmetric = true;
  // Whether `shortcut` returns by how much a customer may make a route shorter, at most: here by rounding alone.
  NDS_FN static constexpr bool bounds_shortcuts(const Instance&) { return true; }
  const T *x, *y;

  // A node in registers.
  struct Spot {
    T x, y;
  };
  NDS_FN Spot spot(i32 a) const { return Spot{x[a], y[a]}; }
  NDS_FN static T square(const Spot& a, const Spot& b) {
    const T dx = a.x - b.x, dy = a.y - b.y;
    return dx * dx + dy * dy;
  }
  // The least distance between points whose coordinates differ by as much.
  NDS_FN static float apart(float dx, float dy) { return root(dx * dx + dy * dy); }
};

// Float lengths: float32, to the nearest tick.
struct FloatPoints : Points<float> {
  static constexpr const char* name = "FloatPoints";
  float scale;

  NDS_FN explicit FloatPoints(const Instance& in) : Points{in.x, in.y}, scale(in.scale) {}
  // Arrays of the instance, by node, that lengths and bounds are computed from.
  NDS_FN static void each_input(Instance& in, auto call) { call(in.x), call(in.y); }
  NDS_FN i32 length(i32 a, i32 b) const { return i32(root(square(spot(a), spot(b))) * scale + 0.5f); }
  NDS_FN i32 time(i32 a, i32 b) const { return length(a, b); }
  // The same by quick_root.
  NDS_FN i32 length_between(const Spot& a, const Spot& b) const { return i32(quick_root(square(a, b)) * scale + 0.5f); }
  NDS_FN bool quick() const { return scale <= 0x1p47f; }
  NDS_FN static i32 shortcut(const Instance& in, i32) { return 3 * (in.box_margin + 1); }
};

// Whole lengths: float64, rounded as the metric says. The same operations as Metric.apply.
struct WholePoints : Points<double> {
  static constexpr const char* name = "WholePoints";
  double scale, shift;

  NDS_FN explicit WholePoints(const Instance& in)
      : Points{in.xd, in.yd}, scale(in.whole_scale), shift(in.whole_shift) {}
  NDS_FN static void each_input(Instance& in, auto call) { call(in.x), call(in.y), call(in.xd), call(in.yd); }
  NDS_FN i32 length(i32 a, i32 b) const { return length_between(spot(a), spot(b)); }
  NDS_FN i32 time(i32 a, i32 b) const { return length(a, b); }
  NDS_FN i32 length_between(const Spot& a, const Spot& b) const { return i32(root(square(a, b)) * scale + shift); }
  NDS_FN static bool quick() { return true; }
  // Two lengths lose less than 1 - shift each, the third gains at most shift: less than 2 in all. The sum is whole, so
  // 1 would do, but for errors of the root.
  NDS_FN static i32 shortcut(const Instance&, i32) { return 2; }
};

// A matrix for lengths and one for times (possibly the same), from row to column.
struct Matrix {
  static constexpr bool symmetric = false;
  const i32 *lengths, *times;
  i64 row;

  NDS_FN explicit Matrix(const Instance& in) : lengths(in.length), times(in.time), row(in.n + 1) {}
  static constexpr const char* name = "Matrix";
  NDS_FN static void each_input(Instance&, auto) {}
  NDS_FN i32 length(i32 a, i32 b) const { return lengths[a * row + b]; }
  NDS_FN i32 time(i32 a, i32 b) const { return times[a * row + b]; }
  NDS_FN bool times_are_lengths() const { return times == lengths; }
  // Whether lengths to c from each node are those from c: Instance::ways of a symmetric matrix is the matrix.
  NDS_FN bool is_row(const i32* ways, i32 c) const { return ways == lengths + c * row; }
  NDS_FN static bool bounds_shortcuts(const Instance& in) { return in.shortcut != nullptr; }
  NDS_FN static i32 shortcut(const Instance& in, i32 c) { return in.shortcut[c]; }

  // Coordinates are those of cpu/landmarks.hpp.
  NDS_FN static float apart(float dx, float dy) { return dx > dy ? dx : dy; }

  using Spot = i32;
  NDS_FN static Spot spot(i32 a) { return a; }
  NDS_FN i32 length_between(Spot a, Spot b) const { return length(a, b); }
  NDS_FN static bool quick() { return true; }
};

// Call call.operator()<D>() for the distance of an instance.
auto with_distance(const Instance& in, auto call) {
  if (in.length != nullptr) return call.template operator()<Matrix>();
  if (in.xd != nullptr) return call.template operator()<WholePoints>();
  return call.template operator()<FloatPoints>();
}

}  // namespace nds::inline NDS_ISA
