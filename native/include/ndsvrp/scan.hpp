// The cheapest position for a customer in a route, or in many.
#pragma once
#include "draft.hpp"
#include "rng.hpp"

namespace nds::inline NDS_ISA {

// One lane computes the costs of so many positions together, in groups without a remainder, which compilers vectorise.
constexpr i32 kChunk = 64;
constexpr i32 kGroup = 8;
constexpr i32 kShort = 16;    // customers of a route up to which it is faster to look at all positions
constexpr i32 kRoutes = 256;  // routes whose bounds are computed together

// One insertion: the customer, what its rules say, and the positions that it skips.
template <class R> struct Insertion {
  typename R::Probe probe;
  i32 c, turn;
  Blinks blinks;
  const i32* ways;  // length to c from each node, or null

  NDS_FN Insertion(const Instance& in, i32 customer, i32 number, const Blinks& skips)
      : probe(in, customer),
        c(customer),
        turn(number),
        blinks(skips),
        ways(in.ways ? in.ways + i64(customer) * (in.n + 1) : nullptr) {}
};

// Compute the costs of inserting c after each of `count` stops from p on; kNever where it does not fit. Returns the
// least. Works on whole groups: stops beyond the route hold old entries of the pool, perhaps of a larger instance. The
// depot replaces them, and their results are masked.
template <class R, class D>
NDS_FN i32 price(const D& d, const Insertion<R>& insertion, const Stops& at, const Segment& route, i32 p, i32 count,
                 i32* __restrict cost) {
  const i32 c = insertion.c;
  i32 to[kChunk + kGroup + 1], back[kChunk + kGroup + 1], time_to[kChunk + kGroup], time_from[kChunk + kGroup];
  const i32* __restrict node = at.node + p, * __restrict edge = at.edge + p;
  const i32 stops = (count + kGroup) & -kGroup, gaps = (count + kGroup - 1) & -kGroup;
  if (const i32* __restrict ways = insertion.ways) {
    for (i32 i = 0; i < stops; ++i) to[i] = ways[i <= count ? node[i] : 0];
  } else {
    for (i32 i = 0; i < stops; ++i) to[i] = d.length(i <= count ? node[i] : 0, c);
  }
  to[stops] = 0;
  const i32* __restrict from = to + 1;
  if constexpr (!D::symmetric) {
    if (!d.is_row(insertion.ways, c)) {
      for (i32 i = 0; i < stops; ++i) back[i] = d.length(c, i <= count ? node[i] : 0);
      back[stops] = 0;
      from = back + 1;
    }
  }
  const i32 *times_to = to, *times_from = from;
  if constexpr (R::uses_time && !D::symmetric) {
    if (!d.times_are_lengths()) {
      for (i32 i = 0; i < gaps; ++i) time_to[i] = d.time(i < count ? node[i] : 0, c);
      for (i32 i = 0; i < gaps; ++i) time_from[i] = d.time(c, i < count ? node[i + 1] : 0);
      times_to = time_to, times_from = time_from;
    }
  }
  i32 low = kNever;
  for (i32 i = 0; i < gaps; ++i) {
    bool fits = i < count;
    const i32 change = to[i] + from[i] - edge[i];
    const Ways ways{to[i], from[i], times_to[i], times_from[i]};
    fits &= insertion.probe.fits_position(route, R::prefix_at(at, p + i), R::suffix_at(at, p + i + 1), ways, change);
    cost[i] = fits ? change : kNever;
  }
  // In a loop of its own: GCC 12 does not vectorise the two together, for rules with several conditions.
  for (i32 i = 0; i < gaps; ++i) low = least(low, cost[i]);
  return low;
}

// One lane looks for the cheapest position in a route that no blink skips, if it comes before the best so far. `index`
// is the route's segment, or -1.
template <class R>
NDS_FN void scan_alone(const auto& d, const Insertion<R>& insertion, const Stops& at, const Segment& seg, i32 index,
                       Choice& best) {
  i32 cost[kChunk + kGroup];
  i32 begin = 0, end = seg.size + 1;
  if (seg.size > kShort) insertion.probe.narrow(at, seg.first, begin, end);
  for (; begin < end; begin += kChunk) {
    const i32 count = least(kChunk, end - begin);
    i32 low = price<R>(d, insertion, at, seg, seg.first + begin, count, cost);
    while (low <= best.cost && low != kNever) {
      i32 i = 0, next = kNever;
      for (; i < count; ++i) {
        if (cost[i] == low) {
          const Choice choice{low, seg.route, begin + i, index};
          if (!before(choice, best)) break;
          if (!insertion.blinks.at(insertion.turn, seg.route, begin + i)) {
            best = choice;
            break;
          }
        } else if (cost[i] > low) {
          next = least(next, cost[i]);
        }
      }
      if (i < count) break;
      low = next;  // blinks skip all positions at this cost
    }
  }
}

// The same by several lanes, each with a stop and a best position of its own. Each lane computes the way to its stop;
// the way from there is the next lane's, so that the last lane has no position.
template <class R, class D>
NDS_FN void scan_together(const D& d, const Insertion<R>& insertion, const Stops& at, const Segment& seg, i32 index,
                          auto lanes, Choice& best) {
  for (i32 begin = 0; begin <= seg.size; begin += lanes.W - 1) {
    const i32 i = begin + lanes.lane, p = seg.first + least(i, seg.size + 1), c = insertion.c;
    const i32 node = at.node[p], edge = at.edge[p];  // together: one wait for memory
    const i32 to = d.length(node, c);
    const i32 from = lanes.from_next(D::symmetric ? to : d.length(c, node));
    Ways ways{to, from, to, from};
    if constexpr (R::uses_time && !D::symmetric) {
      ways.time_to = d.time(node, c);
      ways.time_from = lanes.from_next(d.time(c, node));
    }
    const Choice choice{to + from - edge, seg.route, i, index};
    bool better = (i <= seg.size) & (lanes.lane < lanes.W - 1) & before_at_once(choice, best);
    better =
        better && insertion.probe.fits_position(seg, R::prefix_at(at, p), R::suffix_at(at, p + 1), ways, choice.cost);
    if (better && !insertion.blinks.at(insertion.turn, seg.route, i)) best = choice;
  }
}

template <class R>
NDS_FN void scan(const auto& d, const Insertion<R>& insertion, const Stops& at, const Segment& seg, i32 index,
                 auto lanes, Choice& best) {
  if constexpr (lanes.W > 1) {
    scan_together<R>(d, insertion, at, seg, index, lanes, best);
  } else {
    scan_alone<R>(d, insertion, at, seg, index, best);
  }
}

// Route r of a solution as if it were drafted.
template <class R> NDS_FN Segment segment_of(const Solution& s, i32 r) {
  Segment seg;
  seg.first = s.first[r], seg.size = s.size[r], seg.route = r;
  R::each_route(seg, s, [r](i32& value, const i32* array) { value = array[r]; });
  return seg;
}

// For each of `count` routes from `begin` on, compute a cost that no position in it can be below: the distance from c
// to the box of its customers counts twice for an inner edge, once (and the way `out` or `back` between c and the
// depot) for an edge at the depot.
template <class R, class D>
NDS_FN void bound_routes(const Instance& in, const D&, const Solution& s, const typename R::Probe& probe, i32 c,
                         i32 out, i32 back, i32 begin, i32 count, i32* __restrict bound) {
  typename R::template Route<const i32*> state;
  R::each_route(state, s, [&](const i32*& to, const i32* from) { to = from + begin; });
  const float x = in.x[c], y = in.y[c], scale = in.scale * 0.99999f;
  const float* __restrict left = s.box.left + begin, * __restrict right = s.box.right + begin;
  const float* __restrict low = s.box.low + begin, * __restrict high = s.box.high + begin;
  const i32* __restrict inner = s.box.inner + begin;
  const i32* __restrict leg_out = s.box.out + begin, * __restrict leg_back = s.box.back + begin;
  const i32 margin = in.box_margin;
  for (i32 r = 0; r < count; ++r) {
    float dx = left[r] - x, ex = x - right[r], dy = low[r] - y, ey = y - high[r];
    dx = dx > ex ? dx : ex;
    dy = dy > ey ? dy : ey;
    dx = dx > 0.0f ? dx : 0.0f;
    dy = dy > 0.0f ? dy : 0.0f;
    const i32 away = i32(D::apart(dx, dy) * scale) - margin;
    const i32 at_depot =
        D::symmetric ? out - most(leg_out[r], leg_back[r]) : least(out - leg_out[r], back - leg_back[r]);
    const bool fits = probe.fits_route(R::route_at(state, r));
    bound[r] = fits ? least(2 * away - inner[r], away + at_depot) : kNever;
  }
}

// The best position in the routes that are not in the draft, as far as they may hold a better one. Starts from and ends
// with a best position of the whole team.
template <class R, class D>
NDS_FN void scan_rest(const Instance& in, const D& d, const Solution& s, const Draft& draft,
                      const Insertion<R>& insertion, auto lanes, Choice& best) {
  const i32 c = insertion.c, out = d.length(0, c), back = D::symmetric ? out : d.length(c, 0);
  if constexpr (lanes.W > 1) {
    for (i32 begin = 0; begin < s.routes; begin += lanes.W) {
      const i32 r = begin + lanes.lane;
      i32 bound = kNever;
      if (r < s.routes && !draft.drafted[r]) bound_routes<R>(in, d, s, insertion.probe, c, out, back, r, 1, &bound);
      u32 pending = lanes.ballot(bound <= best.cost && bound != kNever);
      if (pending == 0) continue;
      Choice mine = best;
      while (pending != 0) {
        const i32 next = begin + first_bit(pending);
        scan<R>(d, insertion, s.at, segment_of<R>(s, next), -1, lanes, mine);
        pending &= pending - 1;
        if (pending != 0) pending &= lanes.ballot(bound <= lanes.least_of(mine.cost));
      }
      best = lanes.best(mine);
    }
  } else {
    i32 bound[kRoutes + 1];  // in whole groups: beyond the last route are old entries, or zeros
    for (i32 begin = 0; begin < s.routes; begin += kRoutes) {
      const i32 count = least(kRoutes, s.routes - begin);
      bound_routes<R>(in, d, s, insertion.probe, c, out, back, begin, (count + kGroup - 1) & -kGroup, bound);
      i32 limit = least(best.cost, kNever - 1);
      bound[count] = -kNever;  // at most the limit: ends the inner loop, the hottest one, as most routes are too far
      for (i32 i = 0;; ++i) {
        while (bound[i] > limit) ++i;
        if (i >= count) break;
        if (draft.drafted[begin + i]) continue;
        scan<R>(d, insertion, s.at, segment_of<R>(s, begin + i), -1, lanes, best);
        limit = least(best.cost, limit);
      }
    }
  }
}

}  // namespace nds::inline NDS_ISA
