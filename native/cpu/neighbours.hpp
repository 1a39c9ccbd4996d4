// Neighbour lists, nearest first, truncated: what related and string removal walk along.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "ndsvrp/types.hpp"

namespace nds {

// Customers around each customer by a grid of cells: rings of cells until the count is safe.
inline std::vector<i32> near_by_points(const std::vector<float>& x, const std::vector<float>& y,
                                       i32 count) {
  const i32 n = i32(x.size()) - 1;
  std::vector<i32> near(size_t(n + 1) * count, 0);
  float width = 1e-30f, height = 1e-30f;
  for (i32 c = 0; c <= n; ++c) width = std::max(width, x[c]), height = std::max(height, y[c]);
  const i32 cells = std::max(1, i32(std::sqrt(n / 4.0)));
  const float cell = std::max(width, height) / cells * 1.000001f;
  const auto at = [&](float v) { return std::min(cells - 1, std::max(0, i32(v / cell))); };
  std::vector<i32> begin(size_t(cells) * cells + 1, 0), member(n);
  for (i32 c = 1; c <= n; ++c) ++begin[at(y[c]) * cells + at(x[c]) + 1];
  for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<i32> fill(begin.begin(), begin.end() - 1);
  for (i32 c = 1; c <= n; ++c) member[fill[at(y[c]) * cells + at(x[c])]++] = c;

  std::vector<std::pair<float, i32>> found;
  for (i32 c = 1; c <= n; ++c) {
    const i32 cx = at(x[c]), cy = at(y[c]);
    found.clear();
    i32 inside =
        0;  // of those found, how many are surely nearer than anything in rings not yet visited
    for (i32 ring = 0; ring < cells; ++ring) {
      for (i32 row = std::max(0, cy - ring); row <= std::min(cells - 1, cy + ring); ++row) {
        const bool edge = row == cy - ring || row == cy + ring;
        for (i32 column = cx - ring; column <= cx + ring;
             column += edge ? 1 : std::max(1, 2 * ring)) {
          if (column < 0 || column >= cells) continue;
          for (i32 i = begin[row * cells + column]; i < begin[row * cells + column + 1]; ++i) {
            const i32 other = member[i];
            const float dx = x[c] - x[other], dy = y[c] - y[other];
            if (other != c) found.emplace_back(dx * dx + dy * dy, other);
          }
        }
      }
      if (i32(found.size()) < count) continue;
      const float safe = ring * cell * 0.9999f;  // rounding may put a point into the next cell
      inside = i32(std::count_if(found.begin(), found.end(),
                                 [&](auto& f) { return f.first <= safe * safe; }));
      if (inside >= count) break;
    }
    std::partial_sort(found.begin(), found.begin() + count, found.end());
    for (i32 i = 0; i < count; ++i) near[size_t(c) * count + i] = found[i].second;
  }
  return near;
}

// By a matrix: there and back.
inline std::vector<i32> near_by_matrix(const std::vector<i32>& length, i32 n, i32 count) {
  std::vector<i32> near(size_t(n + 1) * count, 0);
  std::vector<std::pair<i64, i32>> found(n);
  for (i32 c = 1; c <= n; ++c) {
    found.clear();
    for (i32 other = 1; other <= n; ++other) {
      const i64 there = length[size_t(c) * (n + 1) + other],
                back = length[size_t(other) * (n + 1) + c];
      if (other != c) found.emplace_back(there + back, other);
    }
    std::partial_sort(found.begin(), found.begin() + count, found.end());
    for (i32 i = 0; i < count; ++i) near[size_t(c) * count + i] = found[i].second;
  }
  return near;
}

}  // namespace nds
