// The solution of a chain. Routes have slots in a pool, so that the cost of a step depends on the routes that it
// changes only.
#pragma once
#include "memory.hpp"

namespace nds::inline NDS_ISA {

constexpr i32 kSlotStep = 4;

NDS_FN i32 slot_for(i32 size) { return (size + 2 + kSlotStep - 1) / kSlotStep * kSlotStep; }

// Copy stops without waiting for the other lanes.
template <class R> NDS_FN void copy_stops(const Stops& to, i32 t, const Stops& from, i32 f, i32 count, auto lanes) {
  if constexpr (lanes.W > 1) {
    for (i32 i = lanes.lane; i < count; i += lanes.W) {
      const i32 node = from.node[f + i], edge = from.edge[f + i];
      const auto prefix = R::prefix_at(from, f + i);
      const auto suffix = R::suffix_at(from, f + i);
      R::set_prefix(to, t + i, prefix);
      R::set_suffix(to, t + i, suffix);
      to.node[t + i] = node;
      to.edge[t + i] = edge;
    }
  } else {
    each_stops<R>(to, from, [&](i32* a, const i32* b) {
      for (i32 i = 0; i < count; ++i) a[t + i] = b[f + i];
    });
  }
}

// Move all routes together, by way of `spare`.
template <class R> NDS_DEEP void compact(Solution& s, const Stops& spare, auto lanes) {
  i32 used = 0;
  for (i32 r = 0; r < s.routes; ++r) {
    const i32 size = s.size[r], first = s.first[r];
    const i32 slot = size == 0 ? 0 : slot_for(size);  // 0: about to be dropped or written
    if (size > 0) copy_stops<R>(spare, used, s.at, first, size + 2, lanes);
    lanes.sync();
    if (lanes.leads()) {
      if (size > 0) s.first[r] = used;
      s.slot[r] = slot;
    }
    used += slot;
  }
  lanes.sync();
  copy_stops<R>(s.at, 0, spare, 0, used, lanes);
  s.used = used;
  lanes.sync();
}

template <class R> NDS_FN void make_room(Solution& s, i32 r, i32 size, const Stops& spare, auto lanes) {
  if (size + 2 <= s.slot[r]) return;
  i32 slot = slot_for(size + 2);
  if (s.used + slot > s.room) {
    lanes.sync();
    if (lanes.leads()) s.size[r] = 0;  // its stops are about to be replaced
    lanes.sync();
    compact<R>(s, spare, lanes);
  }
  lanes.sync();
  if (lanes.leads()) {
    s.first[r] = s.used;
    s.slot[r] = slot;
  }
  s.used += slot;
  lanes.sync();
}

NDS_FN void update_box(const Instance& in, Solution& s, i32 r, auto lanes) {
  const i32 first = s.first[r], size = s.size[r];
  const i32* node = s.at.node + first;
  float left = in.x[node[1]], right = left, low = in.y[node[1]], high = low;
  for (i32 p = 2 + lanes.lane; p <= size; p += lanes.W) {
    float x = in.x[node[p]], y = in.y[node[p]];
    left = x < left ? x : left;
    right = x > right ? x : right;
    low = y < low ? y : low;
    high = y > high ? y : high;
  }
  i32 inner = 0;
  for (i32 p = 1 + lanes.lane; p < size; p += lanes.W) inner = most(inner, s.at.edge[first + p]);
  left = lanes.least_of(left);
  right = lanes.most_of(right);
  low = lanes.least_of(low);
  high = lanes.most_of(high);
  inner = lanes.most_of(inner);
  if (!lanes.leads()) return;
  s.box.left[r] = left;
  s.box.right[r] = right;
  s.box.low[r] = low;
  s.box.high[r] = high;
  s.box.inner[r] = inner;
  s.box.out[r] = s.at.edge[first], s.box.back[r] = s.at.edge[first + size];
}

// Note for the customers of route r where they are.
template <class R> NDS_FN void note_customers(const Instance& in, Solution& s, i32 r, auto lanes) {
  const i32 first = s.first[r], size = s.size[r];
  for (i32 begin = 1; begin <= size; begin += lanes.W) {
    const i32 p = begin + lanes.lane;
    const bool there = p <= size;
    const i32 c = there ? s.at.node[first + p] : 0;
    R::serve(in, s, s.at.node + first + begin, c, there, lanes);
    if (there) {
      s.route_of[c] = r;
      s.stop_of[c] = p;
    }
  }
}

// Replace route r of the solution by a segment of a draft.
template <class R>
NDS_FN void write_route(const Instance& in, Solution& s, i32 r, const Stops& from, const Segment& seg,
                        const Stops& spare, auto lanes) {
  make_room<R>(s, r, seg.size, spare, lanes);
  const i32 first = s.first[r];
  copy_stops<R>(s.at, first, from, seg.first, seg.size + 2, lanes);
  if (lanes.leads()) {
    s.size[r] = seg.size;
    R::set_route(s, r, seg);
  }
  lanes.sync();
  note_customers<R>(in, s, r, lanes);
  update_box(in, s, r, lanes);
  lanes.sync();
}

// Drop an empty route; the last one takes its number.
template <class R> NDS_FN void drop_route(Solution& s, i32 r, auto lanes) {
  const i32 last = --s.routes;
  if (r == last) return;
  const i32 size = s.size[last];
  const i32* node = s.at.node + s.first[last];
  lanes.sync();
  for (i32 p = 1 + lanes.lane; p <= size; p += lanes.W) s.route_of[node[p]] = r;
  if (lanes.leads()) each_routes<R>(s, s, [&](auto* array, auto*) { array[r] = array[last]; });
  lanes.sync();
}

// Drop so many empty routes, from the last to the first: then the route that takes a number is never empty.
template <class R> NDS_FN void drop_empty(Solution& s, i32 count, auto lanes) {
  for (i32 r = s.routes - 1; count > 0; --r) {
    if (s.size[r] == 0) {
      drop_route<R>(s, r, lanes);
      --count;
    }
  }
}

// Change the solution as drafted.
template <class R>
NDS_DEEP void commit(const Instance& in, Solution& s, const Draft& draft, const Stops& spare, auto lanes) {
  R::leave(in, s, draft.unserved, draft.unserved_count, lanes);
  const i32 before = s.routes;
  i32 emptied = 0;
  for (i32 i = 0; i < draft.segments; ++i) {
    const Segment& seg = draft.segment[i];
    if (seg.route >= before) {  // new routes have consecutive numbers
      if (lanes.leads()) s.first[seg.route] = s.slot[seg.route] = s.size[seg.route] = 0;
      s.routes = seg.route + 1;
      lanes.sync();
    }
    if (seg.size > 0) {
      write_route<R>(in, s, seg.route, draft.at, seg, spare, lanes);
    } else {
      if (lanes.leads()) s.size[seg.route] = 0;
      lanes.sync();
      ++emptied;
    }
  }
  drop_empty<R>(s, emptied, lanes);
  s.cost += draft.delta;
}

// Drop all routes.
template <class R> NDS_DEEP void clear(const Instance& in, Solution& s, auto lanes) {
  static_cast<CurrentNumbers&>(s) = CurrentNumbers{};
  for (i32 c = 1 + lanes.lane; c <= in.n; c += lanes.W) s.route_of[c] = -1;
  R::clear(in, s, lanes);
  lanes.sync();
}

// Add a route of the given customers, in their order. The caller vouches for its feasibility.
template <class R>
NDS_DEEP void add_route(const Instance& in, const auto& d, Solution& s, const i32* customers, i32 size, auto lanes) {
  const i32 r = s.routes++;
  const i32 first = s.used;
  s.used += slot_for(size);
  typename R::template Route<i32> share{}, route{};
  i64 cost = 0;
  for (i32 p = 1 + lanes.lane; p <= size; p += lanes.W) {
    const i32 c = customers[p - 1];
    s.at.node[first + p] = c;
    R::add(in, c, share);
    cost -= R::prize(in, c);
  }
  if (lanes.leads()) {
    s.at.node[first] = s.at.node[first + size + 1] = 0;
    s.first[r] = first;
    s.slot[r] = slot_for(size);
    s.size[r] = size;
  }
  lanes.sync();
  note_customers<R>(in, s, r, lanes);
  for (i32 p = lanes.lane; p <= size; p += lanes.W) {
    s.at.edge[first + p] = d.length(s.at.node[first + p], s.at.node[first + p + 1]);
    cost += s.at.edge[first + p];
  }
  R::each_route(route, share, [&](i32& total, i32 part) { total = lanes.sum(part); });
  s.cost += lanes.sum(cost);
  lanes.sync();
  R::refresh(in, d, s.at, first, size, route, lanes);
  if (lanes.leads()) R::set_route(s, r, route);
  update_box(in, s, r, lanes);
  lanes.sync();
}

// Save the current solution as the best tour; each team of a crew writes some of its routes.
NDS_FN void save_best(Chain& chain, auto crew) {
  constexpr i32 W = crew.lanes.W;
  const auto lanes = crew.lanes;
  const Solution& s = chain.current;
  i32 length = 0;
  for (i32 begin = 0; begin < s.routes; begin += W) {
    const i32 r = begin + lanes.lane, here = least(W, s.routes - begin);
    const i32 count = r < s.routes ? s.size[r] + 1 : 0;
    const i32 end = lanes.up_to(MaxPlus{count, 0}).a;
    for (i32 i = crew.team; i < here; i += crew.teams) {
      const i32* node = s.at.node + s.first[begin + i] + 1;
      const i32 many = lanes.from(count, i), start = length + lanes.from(end, i) - many;
      for (i32 p = lanes.lane; p < many; p += W) chain.best_tour[start + p] = node[p];
    }
    length += lanes.from(end, W - 1);
  }
  chain.best_length = length;
  chain.best_is_current = 0;
  lanes.sync();
}

// Make the current solution the best one.
NDS_FN void start_from_current(Chain& chain) {
  chain.best_cost = chain.current.cost;
  chain.best_unserved = chain.current.unserved_required;
  chain.best_is_current = 1;
}

}  // namespace nds::inline NDS_ISA
