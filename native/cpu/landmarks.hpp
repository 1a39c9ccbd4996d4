// Coordinates for nodes with a matrix of lengths, so that routes have boxes (scan.hpp): two nodes differ in each
// coordinate by no more than the length between them, in either direction.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "ndsvrp/types.hpp"

namespace nds {

constexpr i32 kLandmarks = 8;
constexpr i32 kSamples = 1024;  // pairs of customers by which coordinates are compared

// A coordinate is the length of the shortest way from a landmark, or half of the difference of two of these.
class Landmarks {
 public:
  Landmarks(const i32* length, i32 n) : nodes_(size_t(n) + 1), shorter_(nodes_ * nodes_) {
    constexpr size_t kTile = 64;
    for (size_t rows = 0; rows < nodes_; rows += kTile) {
      for (size_t columns = 0; columns < nodes_; columns += kTile) {
        for (size_t a = rows; a < std::min(rows + kTile, nodes_); ++a) {
          for (size_t b = columns; b < std::min(columns + kTile, nodes_); ++b)
            shorter_[a * nodes_ + b] = std::min(length[a * nodes_ + b], length[b * nodes_ + a]);
        }
      }
    }
    size_t farthest = 0;
    std::vector<i64> nearest(nodes_, INT64_MAX);  // length from the nearest landmark
    for (i32 i = 0; i < kLandmarks; ++i) {
      ways_.push_back(shortest_ways(farthest));
      for (size_t a = 0; a < nodes_; ++a) nearest[a] = std::min(nearest[a], ways_.back()[a]);
      farthest = size_t(std::max_element(nearest.begin(), nearest.end()) - nearest.begin());
    }
  }

  // The two coordinates by which nodes seem farthest apart, as a share of the length between them.
  std::array<std::vector<i64>, 2> best() const {
    std::vector<std::vector<i64>> choices = ways_;
    for (size_t i = 0; i < ways_.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        std::vector<i64> half(nodes_);
        for (size_t a = 0; a < nodes_; ++a) half[a] = (ways_[i][a] - ways_[j][a]) / 2;
        choices.push_back(std::move(half));
      }
    }
    const std::vector<std::pair<size_t, size_t>> pairs = sample();
    std::vector<std::vector<float>> share(choices.size());
    for (size_t i = 0; i < choices.size(); ++i) {
      for (const auto& [a, b] : pairs)
        share[i].push_back(float(std::abs(choices[i][a] - choices[i][b])) / float(shorter_[a * nodes_ + b] + 1));
    }
    float most = -1.0f;
    size_t first = 0, second = 0;
    for (size_t i = 0; i < choices.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        float sum = 0.0f;
        for (size_t k = 0; k < pairs.size(); ++k) sum += std::max(share[i][k], share[j][k]);
        if (sum > most) most = sum, first = j, second = i;
      }
    }
    return {choices[first], choices[second]};
  }

 private:
  // Dijkstra's algorithm without a queue: every node has a way to every other one.
  std::vector<i64> shortest_ways(size_t from) const {
    std::vector<i64> way(nodes_, INT64_MAX);
    std::vector<char> done(nodes_, 0);
    way[from] = 0;
    for (size_t turn = 0; turn < nodes_; ++turn) {
      size_t here = nodes_;
      for (size_t a = 0; a < nodes_; ++a) {
        if (!done[a] && (here == nodes_ || way[a] < way[here])) here = a;
      }
      done[here] = 1;
      const i32* row = shorter_.data() + here * nodes_;
      for (size_t a = 0; a < nodes_; ++a) way[a] = std::min(way[a], way[here] + row[a]);
    }
    return way;
  }

  // Pairs of customers, drawn at random.
  std::vector<std::pair<size_t, size_t>> sample() const {
    std::vector<std::pair<size_t, size_t>> pairs;
    u64 state = 1;
    const auto draw = [&] {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      return 1 + size_t(state >> 33) % (nodes_ - 1);
    };
    const size_t count = std::min(size_t(kSamples), nodes_ * nodes_ / 2);
    for (size_t i = 0; i < count; ++i) {
      const size_t a = draw();
      pairs.emplace_back(a, draw());
    }
    return pairs;
  }

  size_t nodes_;
  std::vector<i32> shorter_;  // of the lengths in both directions
  std::vector<std::vector<i64>> ways_;
};

}  // namespace nds
