// The cheapest position for a customer beside one of its nearest customers.
#pragma once
#include "scan.hpp"

namespace nds::inline NDS_ISA {

// The location of a customer in a draft: its segment and its stop.
NDS_FN i64 location_at(i32 segment, i32 stop) { return i64(segment + 1) << 32 | stop; }
NDS_FN i32 segment_of_location(i64 location) { return i32(location >> 32) - 1; }
NDS_FN i32 stop_of_location(i64 location) { return i32(location); }

// Note the locations of the customers of a segment from stop p on.
NDS_FN void note_locations(const Draft& draft, i32 index, i32 p, auto lanes) {
  const Segment& seg = draft.segment[index];
  const i32* node = draft.at.node + seg.first;
  for (i32 q = p + lanes.lane; q <= seg.size; q += lanes.W) draft.location[node[q]] = location_at(index, q);
}

NDS_FN void note_all_locations(const Draft& draft, auto lanes) {
  for (i32 i = 0; i < draft.segments; ++i) note_locations(draft, i, 1, lanes);
  lanes.sync();
}

NDS_FN void forget_locations(const Draft& draft, auto lanes) {
  lanes.sync();  // other lanes may still read them
  for (i32 i = 0; i < draft.segments; ++i) {
    const i32* node = draft.at.node + draft.segment[i].first;
    for (i32 q = 1 + lanes.lane; q <= draft.segment[i].size; q += lanes.W) draft.location[node[q]] = 0;
  }
}

// Where a customer is: in the draft, or in a route of the solution that is not drafted.
template <class R> struct Whereabouts {
  Segment route;  // its number is -1 if the customer is in none
  i32 stop, index;

  NDS_FN Whereabouts(const Solution& s, const Draft& draft, i32 c) {
    const i64 location = draft.location[c];
    const i32 r = s.route_of[c];
    route.route = -1, stop = 0, index = -1;
    if (location != 0) {
      index = segment_of_location(location), stop = stop_of_location(location);
      route = draft.segment[index];
    } else if (r >= 0 && !draft.drafted[r]) {
      stop = s.stop_of[c];
      route = segment_of<R>(s, r);
    }
  }
};

// The cheapest position before or after one of the `count` nearest customers of the same part, if it costs less than
// `none`; a lane looks up each. Its route is the number of the position in the order of ties: the nearer customer
// first, then the position before it. Its stop is the customer. A blink skips a position by the nodes on its two sides.
template <class R, class D>
NDS_FN Choice best_beside(const Instance& in, const D& d, const Solution& s, const Draft& draft,
                          const Insertion<R>& insertion, i32 count, const Choice& none, auto lanes) {
  const i32 c = insertion.c;
  const NearRow near(in, c);
  Choice best = none;
  i32 seen = 0;  // customers of the part
  for (i32 begin = 0; begin < in.near_count && seen < count; begin += lanes.W) {
    const i32 i = begin + lanes.lane, v = i < in.near_count ? near[i] : 0;
    const bool own = v > 0 && s.route_of[v] != kElsewhere;
    const u32 all = lanes.ballot(own);
    const i32 rank = seen + lanes.count_below(all);
    seen += count_bits(all);
    if (!own || rank >= count) continue;
    const Whereabouts<R> at_v(s, draft, v);
    const Segment& route = at_v.route;
    if (route.route < 0 || !insertion.probe.fits_route(route)) continue;
    const Stops& at = at_v.index < 0 ? s.at : draft.at;
    for (i32 side = 0; side < 2; ++side) {
      const i32 p = route.first + at_v.stop - 1 + side, a = at.node[p], b = at.node[p + 1];
      const i32 to = d.length(a, c), from = d.length(c, b);
      const Choice choice{to + from - at.edge[p], 2 * rank + side, v, -1};
      if (!before_at_once(choice, best)) continue;
      Ways ways{to, from, to, from};
      if constexpr (R::uses_time && !D::symmetric) ways.time_to = d.time(a, c), ways.time_from = d.time(c, b);
      const bool fits =
          insertion.probe.fits_position(route, R::prefix_at(at, p), R::suffix_at(at, p + 1), ways, choice.cost);
      if (fits && !insertion.blinks.at(insertion.turn, a, b)) best = choice;
    }
  }
  return lanes.best(best);
}

// The cheapest position beside one of the `count` nearest customers; if a customer that has to be served fits beside
// none of them, beside any in its list.
template <class R>
NDS_FN Choice best_near(const Instance& in, const auto& d, const Solution& s, const Draft& draft,
                        const Insertion<R>& insertion, i32 count, const Choice& none, auto lanes) {
  Choice best = none;
  for (i32 wide = 0; wide < 2 && best.route < 0 && (wide == 0 || none.cost == kNever); ++wide)
    best = best_beside<R>(in, d, s, draft, insertion, wide ? in.near_count : count, none, lanes);
  if (best.route < 0) return none;
  const Whereabouts<R> there(s, draft, best.stop);
  return Choice{best.cost, there.route.route, there.stop - 1 + (best.route & 1), there.index};
}

}  // namespace nds::inline NDS_ISA
