// Drafts: copies of routes without the removed customers, and insertions into them.
#pragma once
#include "solution.hpp"

namespace nds::inline NDS_ISA {

constexpr i32 kSlack = 6;  // customers by which a copied route can grow before it moves

// Make a segment for a route, not yet filled. Returns -1 if there is no room for it.
template <class R>
NDS_FN i32 new_segment(Draft& draft, i32 route, i32 size, const auto& state, bool all_routes, auto lanes) {
  const i32 room = size + 2 + kSlack, index = draft.segments;
  if (draft.used + room > draft.room) {
    draft.full = 1;
    return -1;
  }
  if (lanes.leads()) {
    Segment& seg = draft.segment[index];
    seg.first = draft.used, seg.size = size, seg.route = route, seg.room = room;
    R::copy_route(seg, state);
    if (all_routes) draft.drafted[route] = 1;
  }
  draft.segments = index + 1;
  draft.used += room;
  return index;
}

NDS_FN void forget(Draft& draft, bool all_routes, auto lanes) {
  if (all_routes) {
    for (i32 i = lanes.lane; i < draft.segments; i += lanes.W) draft.drafted[draft.segment[i].route] = 0;
  }
  draft.segments = 0;
}

// A route without the removed customers.
template <class R> struct Stripped {
  i32 size;
  typename R::template Route<i32> route;
  i64 delta;  // this lane's share
};

// Copy a route without its marked customers to stop `to` of the draft.
template <class R>
NDS_FN Stripped<R> strip_route(const Instance& in, const auto& d, const Solution& s, const Flag* mark, const Stops& at,
                               i32 to, i32 route, auto lanes) {
  const i32 from = s.first[route], size = s.size[route];
  i32 kept = 0, last = 0;                  // customers kept so far, and the stop of the last one
  typename R::template Route<i32> lost{};  // this lane's share
  i64 delta = 0;
  if (lanes.leads()) at.node[to] = 0;
  for (i32 begin = 1; begin <= size + 1; begin += lanes.W) {
    const i32 p = begin + lanes.lane;
    const bool there = p <= size + 1;
    const i32 node = there ? s.at.node[from + p] : 0;
    const bool stays = there && !mark[node];
    const u32 staying = lanes.ballot(stays);
    if (there) {
      const i32 edge = s.at.edge[from + p - 1];
      delta -= edge;
      if (stays) {
        const i32 before = lanes.last_below(staying);
        const i32 previous = before < 0 ? last : begin + before;
        const i32 stop = to + kept + lanes.count_below(staying);
        const i32 length = previous == p - 1 ? edge : d.length(s.at.node[from + previous], node);
        at.edge[stop] = length;
        at.node[stop + 1] = node;
        delta += length;
      } else {
        R::add(in, node, lost);
      }
    }
    if (staying != 0) last = begin + last_bit(staying);
    kept += count_bits(staying);
  }
  if (kept == 1 && lanes.leads()) delta -= d.length(0, 0);  // an empty route has no edge
  Stripped<R> rest{kept - 1, R::route_at(s, route), delta};
  R::each_route(rest.route, lost, [&](i32& total, i32 part) { total -= lanes.sum(part); });
  return rest;
}

// Keep the removed customers that are still marked, in their order.
NDS_FN i32 keep_marked(Workspace& work, i32 count, auto lanes) {
  i32 left = 0;
  for (i32 begin = 0; begin < count; begin += lanes.W) {
    const i32 i = begin + lanes.lane;
    const i32 c = i < count ? work.removed[i] : 0;
    const bool stays = i < count && work.mark[c];
    const u32 staying = lanes.ballot(stays);
    lanes.sync();
    if (stays) work.removed[left + lanes.count_below(staying)] = c;
    left += count_bits(staying);
    lanes.sync();
  }
  return left;
}

// Draft the routes of the removed customers, without them. Unserved customers are only inserted. Where the way by a
// customer is shorter than the direct one (a matrix, or rounding), its route may be feasible only with it: then all
// customers of that route stay. Returns how many are removed.
template <class R>
NDS_DEEP i32 strip(const Instance& in, const auto& d, const Solution& s, Workspace& work, i32 count, auto lanes) {
  Draft& draft = work.stripped;
  draft.used = draft.full = draft.segments = draft.opened = draft.unserved_count = 0;
  draft.routes = s.routes;
  draft.delta = 0;
  i64 delta = 0;  // this lane's share
  bool stay = false;
  for (i32 begin = 0; begin < count && !draft.full; begin += lanes.W) {
    const i32 i = begin + lanes.lane;
    i32 route = i < count ? s.route_of[work.removed[i]] : -1;
    if (route >= 0 && (draft.drafted[route] || !work.mark[work.removed[i]])) route = -1;
    u32 pending = lanes.ballot(route >= 0);
    lanes.sync();
    while (pending != 0) {
      const i32 r = lanes.from(route, first_bit(pending));
      pending &= ~lanes.ballot(route == r);
      const i32 index = new_segment<R>(draft, r, s.size[r], R::route_at(s, r), true, lanes);
      if (index < 0) break;
      const i32 to = draft.used - (s.size[r] + 2 + kSlack);
      Stripped<R> rest = strip_route<R>(in, d, s, work.mark, draft.at, to, r, lanes);
      lanes.sync();
      if (rest.size == 0) {
        --draft.routes;
      } else {
        R::refresh(in, d, draft.at, to, rest.size, rest.route, lanes);
        if (!R::feasible(in, draft.at, to, rest.size, rest.route, lanes)) {
          draft.used = to;
          --draft.segments;
          stay = true;
          if (lanes.leads()) draft.drafted[r] = 0;
          const i32* node = s.at.node + s.first[r];
          for (i32 p = 1 + lanes.lane; p <= s.size[r]; p += lanes.W) work.mark[node[p]] = 0;
          lanes.sync();
          continue;
        }
      }
      delta += rest.delta;
      if (lanes.leads()) {
        draft.segment[index].size = rest.size;
        R::copy_route(draft.segment[index], rest.route);
      }
    }
    lanes.sync();
  }
  if (stay) count = keep_marked(work, count, lanes);
  for (i32 i = lanes.lane; i < count; i += lanes.W) {
    const i32 c = work.removed[i];
    if (s.route_of[c] >= 0) delta += R::prize(in, c);
  }
  draft.delta = lanes.sum(delta);
  return count;
}

template <class R> NDS_FN void copy_draft(Draft& to, const Draft& from, bool all_routes, auto lanes) {
  forget(to, all_routes, lanes);
  lanes.sync();
  copy_stops<R>(to.at, 0, from.at, 0, from.used, lanes);
  for (i32 i = lanes.lane; i < from.segments; i += lanes.W) {
    to.segment[i] = from.segment[i];
    if (all_routes) to.drafted[from.segment[i].route] = 1;
  }
  to.used = from.used;
  to.full = from.full;
  to.segments = from.segments;
  to.routes = from.routes;
  to.delta = from.delta;
  to.opened = to.unserved_count = 0;
  lanes.sync();
}

// Give the segment room for one more customer. Returns its first stop.
template <class R> NDS_FN i32 grow(Draft& draft, Segment& seg, auto lanes) {
  const i32 first = seg.first, size = seg.size;
  if (size + 3 <= seg.room) return first;
  const i32 room = size + 3 + most(8, size / 2), to = draft.used;
  if (to + room > draft.room) {
    draft.full = 1;
    return first;
  }
  copy_stops<R>(draft.at, to, draft.at, first, size + 2, lanes);
  draft.used += room;
  lanes.sync();
  if (lanes.leads()) seg.first = to, seg.room = room;
  return to;
}

// Move stops p+1 … last up by one.
template <class R> NDS_FN void shift(const Stops& at, i32 p, i32 last, auto lanes) {
  if constexpr (lanes.W > 1) {
    for (i32 top = last; top > p; top -= lanes.W) {
      const i32 q = top - lanes.lane;
      const bool moves = q > p;
      i32 node = 0, edge = 0;
      typename R::template Prefix<i32> prefix{};
      typename R::template Suffix<i32> suffix{};
      if (moves) {
        node = at.node[q], edge = at.edge[q];
        prefix = R::prefix_at(at, q), suffix = R::suffix_at(at, q);
      }
      lanes.sync();
      if (moves) {
        at.node[q + 1] = node, at.edge[q + 1] = edge;
        R::set_prefix(at, q + 1, prefix), R::set_suffix(at, q + 1, suffix);
      }
    }
  } else {
    each_stops<R>(at, at, [&](i32* array, i32*) {
      for (i32 q = last; q > p; --q) array[q + 1] = array[q];
    });
  }
}

// Insert the probe's customer c at the chosen position.
template <class R>
NDS_FN void insert(const Instance& in, const auto& d, const Solution& s, Draft& draft, const typename R::Probe& probe,
                   const Choice& choice, i32 c, auto lanes) {
  i32 index = choice.segment;
  if (index < 0) {
    const i32 r = choice.route;
    lanes.sync();  // other lanes may still read which routes are drafted
    index = new_segment<R>(draft, r, s.size[r], R::route_at(s, r), true, lanes);
    if (index < 0) return;
    copy_stops<R>(draft.at, draft.used - (s.size[r] + 2 + kSlack), s.at, s.first[r], s.size[r] + 2, lanes);
    lanes.sync();
  }
  Segment& seg = draft.segment[index];
  const i32 size = seg.size;
  typename R::template Route<i32> route;
  R::copy_route(route, seg);
  const i32 first = grow<R>(draft, seg, lanes);
  if (draft.full) return;
  const Stops& at = draft.at;
  const i32 p = first + choice.stop, last = first + size + 1;
  const i32 to = d.length(at.node[p], c), from = d.length(c, at.node[p + 1]);
  probe.extend(route, choice.cost);
  lanes.sync();
  shift<R>(at, p, last, lanes);
  lanes.sync();
  if (lanes.leads()) {
    at.node[p + 1] = c;
    at.edge[p] = to;
    at.edge[p + 1] = from;
    seg.size = size + 1;
    R::copy_route(seg, route);
  }
  lanes.sync();
  R::inserted(in, d, at, first, size + 1, p + 1, lanes);
  draft.delta += choice.cost - R::prize(in, c);
}

// Open a route for it. New routes are numbered after those of the solution, in their order.
template <class R>
NDS_FN void open_route(const Instance& in, const auto& d, const Solution& s, Draft& draft,
                       const typename R::Probe& probe, i32 c, bool all_routes, auto lanes) {
  const i32 r = s.routes + draft.opened, first = draft.used;
  const i32 to = d.length(0, c), from = d.length(c, 0);
  typename R::template Route<i32> route{};
  probe.extend(route, to + from);
  if (new_segment<R>(draft, r, 1, route, all_routes, lanes) < 0) return;
  const Stops& at = draft.at;
  if (lanes.leads()) {
    at.node[first] = at.node[first + 2] = 0;
    at.node[first + 1] = c;
    at.edge[first] = to;
    at.edge[first + 1] = from;
  }
  lanes.sync();
  R::refresh(in, d, at, first, 1, route, lanes);
  ++draft.opened;
  ++draft.routes;
  draft.delta += i64(to) + from - R::prize(in, c);
}

}  // namespace nds::inline NDS_ISA
