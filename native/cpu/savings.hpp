// A first solution in near-linear time: parallel savings (Clarke and Wright 1964) over neighbour lists. Every route in
// between is feasible, so that the work may stop at any time.
#pragma once
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "chains.hpp"

namespace nds {

template <class R> constexpr i32 kPartners = R::refreshes ? 40 : 16;  // neighbours that a customer may be joined with
constexpr i32 kTriesToLook = 64;                                      // between two looks at the clock

// Routes as linked lists of customers. A route goes by the number of its first customer when it was made; the shorter
// part of a joined route is renumbered.
template <class R, class D> class Savings {
 public:
  Savings(const Instance& in, const volatile i32* stop)
      : in_(in),
        d_(in),
        stop_(stop),
        next_(size_t(in.n) + 1, 0),
        previous_(next_),
        route_(next_),
        first_(next_),
        last_(next_),
        size_(next_),
        load_(next_) {
    for (i32 c = 1; c <= in.n; ++c) {
      if (in.demand[c] > in.capacity || (in.alone != nullptr && in.alone[c] == 0)) continue;
      route_[c] = first_[c] = last_[c] = c;
      size_[c] = 1;
      load_[c] = in.demand[c];
    }
  }

  // The routes, each ended by a 0.
  std::vector<i32> tour() {
    join_all();
    std::vector<i32> routes;
    for (i32 r = 1; r <= in_.n; ++r) {
      if (size_[r] > 0 && pays(r)) routes.push_back(r);
    }
    if (i32(routes.size()) > in_.vehicles) {  // a search has to insert the customers of the rest
      std::stable_sort(routes.begin(), routes.end(), [&](i32 a, i32 b) { return size_[a] > size_[b]; });
      routes.resize(size_t(in_.vehicles));
    }
    std::vector<i32> tour;
    for (const i32 r : routes) {
      for (i32 c = first_[r]; c != 0; c = next_[c]) tour.push_back(c);
      tour.push_back(0);
    }
    return tour;
  }

 private:
  static constexpr bool kReversible = D::symmetric && !R::refreshes;

  // Join routes in the order of their savings. Ties go to the lower customer, then the nearer one.
  void join_all() {
    const i32 partners = std::min(kPartners<R>, in_.near_count);
    std::vector<u64> keys;  // the saving, and the number of the pair from the last to the first
    keys.reserve(size_t(in_.n) * size_t(partners));
    for (i32 a = 1; a <= in_.n; ++a) {
      if (route_[a] == 0) continue;
      const i32 home = d_.length(a, 0);
      for (i32 i = 0; i < partners; ++i) {
        const i32 b = partner(a, i), saving = home + d_.length(0, b) - d_.length(a, b);
        if (saving > 0 && route_[b] != 0) keys.push_back(u64(saving) << 32 | ~(u32(a) * u32(partners) + u32(i)));
      }
    }
    std::sort(keys.begin(), keys.end(), std::greater<u64>());
    i32 tries = 0;
    for (const u64 key : keys) {
      if (++tries % kTriesToLook == 0 && *stop_ != 0) return;
      const u32 pair = ~u32(key);
      const i32 a = i32(pair / u32(partners));
      join(a, partner(a, i32(pair % u32(partners))));
    }
  }

  i32 partner(i32 a, i32 i) const { return in_.near[i64(a) * in_.near_count + i]; }

  // Join the routes of a and b, such that b follows a, if that is feasible.
  void join(i32 a, i32 b) {
    const i32 from = route_[a], to = route_[b];
    if (from == to || load_[from] > in_.capacity - load_[to]) return;
    if constexpr (kReversible) {
      if (next_[a] != 0 && previous_[a] != 0) return;
      if (next_[b] != 0 && previous_[b] != 0) return;
      const bool turn_a = last_[from] != a, turn_b = first_[to] != b;
      if (turn_a && turn_b) {  // the other way round, nothing turns
        append(to, from);
        return;
      }
      if (turn_a || turn_b) {
        const bool shorter = size_[from] < size_[to];
        reverse(shorter ? from : to);
        if (turn_a != shorter) {  // the longer one should have turned: now b comes before a
          append(to, from);
          return;
        }
      }
    } else if (last_[from] != a || first_[to] != b || !fits(from, to)) {
      return;
    }
    append(from, to);
  }

  void reverse(i32 r) {
    for (i32 c = first_[r]; c != 0; c = previous_[c]) std::swap(next_[c], previous_[c]);
    std::swap(first_[r], last_[r]);
  }

  void append(i32 from, i32 to) {
    next_[last_[from]] = first_[to];
    previous_[first_[to]] = last_[from];
    const i32 first = first_[from], last = last_[to];
    const bool keep = size_[from] >= size_[to];
    const i32 kept = keep ? from : to, gone = keep ? to : from;
    i32 c = keep ? first_[to] : first_[from];
    for (i32 i = 0; i < size_[gone]; ++i, c = next_[c]) route_[c] = kept;
    first_[kept] = first, last_[kept] = last;
    size_[kept] += size_[gone], load_[kept] += load_[gone];
    size_[gone] = 0;
  }

  // Whether the rules allow route `from` and then route `to` as one.
  bool fits(i32 from, i32 to) {
    if constexpr (R::refreshes) {
      const i32 size = size_[from] + size_[to];
      if (size > room_) {
        room_ = 2 * size;
        block_ = carved([&](Carver& carver) { carve<R>(carver, stops_, room_ + kBeyond); });
      }
      i32 p = 0;
      stops_.node[p] = 0;
      for (const i32 r : {from, to}) {
        for (i32 c = first_[r]; c != 0; c = next_[c]) stops_.node[++p] = c;
      }
      stops_.node[size + 1] = 0;
      for (i32 i = 0; i <= size; ++i) {
        stops_.edge[i] = d_.length(stops_.node[i], stops_.node[i + 1]);
      }
      typename R::template Route<i32> route{};
      const OneLane lane{stop_};
      R::refresh(in_, d_, stops_, 0, size, route, lane);
      return R::feasible(in_, stops_, 0, size, route, lane);
    }
    return true;
  }

  // Whether a route costs less than its customers unserved.
  bool pays(i32 r) const {
    i64 cost = d_.length(0, first_[r]);
    for (i32 c = first_[r]; c != 0; c = next_[c]) cost += d_.length(c, next_[c]) - R::prize(in_, c);
    return in_.prize == nullptr || cost < 0;
  }

  const Instance& in_;
  const D d_;
  const volatile i32* stop_;
  std::vector<i32> next_, previous_;             // by customer; 0: the depot
  std::vector<i32> route_;                       // by customer; 0: none
  std::vector<i32> first_, last_, size_, load_;  // by route
  Stops stops_{};                                // of a joined route
  std::vector<u64> block_;
  i32 room_ = 0;
};

// Return routes, each ended by a 0. Where there is no time for more, they serve one customer each.
inline std::vector<i32> savings(const Instance& in, const volatile i32* stop) {
  return with_rules(
      in, [&]<class R>() { return with_distance(in, [&]<class D>() { return Savings<R, D>(in, stop).tour(); }); });
}

}  // namespace nds
