// Lengths in ticks between two nodes. All of these are IEEE operations in a fixed order: every
// machine agrees.
#pragma once
#include "lanes.hpp"

namespace nds {
inline namespace NDS_ISA {

#if defined(__CUDACC__)
NDS_FN float root(float v) { return __fsqrt_rn(v); }
NDS_FN double root(double v) { return __dsqrt_rn(v); }
#else
NDS_FN float root(float v) { return __builtin_sqrtf(v); }
NDS_FN double root(double v) { return __builtin_sqrt(v); }
#endif

// Float lengths: float32, to the nearest tick.
struct FloatPoints {
  static constexpr bool symmetric = true, whole = false;
  const float *x, *y;
  float scale;

  NDS_FN explicit FloatPoints(const Instance& in) : x(in.x), y(in.y), scale(in.scale) {}
  NDS_FN i32 length(i32 a, i32 b) const {
    float dx = x[a] - x[b], dy = y[a] - y[b];
    return i32(root(dx * dx + dy * dy) * scale + 0.5f);
  }
  NDS_FN i32 time(i32 a, i32 b) const { return length(a, b); }
};

// Whole lengths: float64, rounded as the metric says. The same operations as Metric.apply.
struct WholePoints {
  static constexpr bool symmetric = true, whole = true;
  const double *x, *y;
  double scale, shift;

  NDS_FN explicit WholePoints(const Instance& in)
      : x(in.xd),
        y(in.yd),
        scale(in.whole_scale),
        shift(in.whole_shift) {}
  NDS_FN i32 length(i32 a, i32 b) const {
    double dx = x[a] - x[b], dy = y[a] - y[b];
    return i32(root(dx * dx + dy * dy) * scale + shift);
  }
  NDS_FN i32 time(i32 a, i32 b) const { return length(a, b); }
};

// A matrix for lengths and one for times (possibly the same), from row to column.
struct Matrix {
  static constexpr bool symmetric = false, whole = false;
  const i32 *lengths, *times;
  i64 row;

  NDS_FN explicit Matrix(const Instance& in) : lengths(in.length), times(in.time), row(in.n + 1) {}
  NDS_FN i32 length(i32 a, i32 b) const { return lengths[a * row + b]; }
  NDS_FN i32 time(i32 a, i32 b) const { return times[a * row + b]; }
};

}  // namespace NDS_ISA
}  // namespace nds
