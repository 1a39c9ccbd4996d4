// Neighbour lists, nearest first, truncated: for related and string removal.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "ndsvrp/types.hpp"

namespace nds {

// Boundaries of strips with about equally many values each, so that outliers do not crowd the rest.
inline std::vector<float> strips(std::vector<float> values, i32 count) {
  std::sort(values.begin(), values.end());
  std::vector<float> lines(count + 1);
  for (i32 i = 1; i < count; ++i) lines[i] = values[size_t(i) * values.size() / count];
  lines[0] = -INFINITY, lines[count] = INFINITY;
  return lines;
}

// Neighbours of each customer by a grid of cells: rings of cells, until enough customers are nearer than any outside of
// the rings.
inline std::vector<i32> near_by_points(const float* x, const float* y, i32 n, i32 count) {
  std::vector<i32> near(size_t(n + 1) * count, 0);
  const i32 cells = std::max(1, i32(std::sqrt(n / 4.0)));
  const std::vector<float> across = strips({x + 1, x + n + 1}, cells);
  const std::vector<float> up = strips({y + 1, y + n + 1}, cells);
  const auto strip_of = [cells](const std::vector<float>& lines, float value) {
    return i32(std::upper_bound(lines.begin() + 1, lines.begin() + cells, value) - lines.begin()) - 1;
  };
  std::vector<i32> column_of(n + 1), row_of(n + 1);
  std::vector<i32> begin(size_t(cells) * cells + 1, 0), member(n);
  for (i32 c = 1; c <= n; ++c) {
    column_of[c] = strip_of(across, x[c]), row_of[c] = strip_of(up, y[c]);
    ++begin[row_of[c] * cells + column_of[c] + 1];
  }
  for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<i32> fill(begin.begin(), begin.end() - 1);
  for (i32 c = 1; c <= n; ++c) member[fill[row_of[c] * cells + column_of[c]]++] = c;

  std::vector<std::pair<float, i32>> found;
  for (i32 c = 1; c <= n; ++c) {
    found.clear();
    for (i32 ring = 0; ring < cells; ++ring) {
      const i32 left = std::max(0, column_of[c] - ring), low = std::max(0, row_of[c] - ring);
      const i32 right = std::min(cells - 1, column_of[c] + ring);
      const i32 high = std::min(cells - 1, row_of[c] + ring);
      for (i32 row = low; row <= high; ++row) {
        for (i32 column = left; column <= right; ++column) {
          const i32 away = std::max(std::abs(row - row_of[c]), std::abs(column - column_of[c]));
          if (away != ring) continue;
          for (i32 i = begin[row * cells + column]; i < begin[row * cells + column + 1]; ++i) {
            const i32 other = member[i];
            const float dx = x[c] - x[other], dy = y[c] - y[other];
            if (other != c) found.emplace_back(dx * dx + dy * dy, other);
          }
        }
      }
      if (i32(found.size()) < count) continue;
      const float sideways = std::min(x[c] - across[left], across[right + 1] - x[c]);
      const float upwards = std::min(y[c] - up[low], up[high + 1] - y[c]);
      const float safe = std::min(sideways, upwards);
      const auto is_safe = [safe](const auto& f) { return f.first < safe * safe; };
      if (std::count_if(found.begin(), found.end(), is_safe) >= count) break;
    }
    std::partial_sort(found.begin(), found.begin() + count, found.end());
    for (i32 i = 0; i < count; ++i) near[size_t(c) * count + i] = found[i].second;
  }
  return near;
}

// Neighbours by a matrix: the length there and back.
inline std::vector<i32> near_by_matrix(const i32* length, i32 n, i32 count) {
  std::vector<i32> near(size_t(n + 1) * count, 0);
  std::vector<std::pair<i64, i32>> found(n);
  for (i32 c = 1; c <= n; ++c) {
    found.clear();
    for (i32 other = 1; other <= n; ++other) {
      const i64 there = length[size_t(c) * (n + 1) + other], back = length[size_t(other) * (n + 1) + c];
      if (other != c) found.emplace_back(there + back, other);
    }
    std::partial_sort(found.begin(), found.begin() + count, found.end());
    for (i32 i = 0; i < count; ++i) near[size_t(c) * count + i] = found[i].second;
  }
  return near;
}

// Whether a matrix has the same length in both directions. Reads it in tiles.
inline bool is_symmetric(const i32* length, i32 n) {
  constexpr i32 kTile = 64;
  const auto at = [&](i32 a, i32 b) { return length[size_t(a) * (n + 1) + b]; };
  for (i32 rows = 0; rows <= n; rows += kTile) {
    for (i32 columns = 0; columns <= rows; columns += kTile) {
      for (i32 a = rows; a <= std::min(n, rows + kTile - 1); ++a) {
        for (i32 b = columns; b <= std::min(n, columns + kTile - 1); ++b) {
          if (at(a, b) != at(b, a)) return false;
        }
      }
    }
  }
  return true;
}

}  // namespace nds
