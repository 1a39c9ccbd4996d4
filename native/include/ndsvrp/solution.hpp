// The solution of a chain: slots in a pool, so that a step costs what it changes and not what there
// is.
#pragma once
#include "rules.hpp"

namespace nds {
inline namespace NDS_ISA {

constexpr i32 kSlotStep = 4;
constexpr i32 kPoolPerCustomer =
    6;  // slots of singletons take 4 places each; the rest is room to move
constexpr i32 kDraftPerCustomer = 24;  // copies of routes with room to grow

NDS_FN i32 slot_for(i32 size) { return (size + 2 + kSlotStep - 1) / kSlotStep * kSlotStep; }

template <class R>
NDS_FN void copy_places(const Places& to, i32 t, const Places& from, i32 f, i32 count) {
  for (i32 i = 0; i < count; ++i) to.node[t + i] = from.node[f + i];
  for (i32 i = 0; i < count; ++i) to.edge[t + i] = from.edge[f + i];
  if constexpr (R::windows) {
    for (i32 i = 0; i < count; ++i) to.depart[t + i] = from.depart[f + i];
    for (i32 i = 0; i < count; ++i) to.latest[t + i] = from.latest[f + i];
  }
}

// Move all routes together; `spare` holds them meanwhile.
template <class R> NDS_DEEP void compact(Solution& s, const Places& spare) {
  i32 used = 0;
  for (i32 r = 0; r < s.routes; ++r) {
    if (s.size[r] == 0) {  // about to go, or to be written: takes no place
      s.slot[r] = 0;
      continue;
    }
    copy_places<R>(spare, used, s.at, s.first[r], s.size[r] + 2);
    s.first[r] = used;
    s.slot[r] = slot_for(s.size[r]);
    used += s.slot[r];
  }
  copy_places<R>(s.at, 0, spare, 0, used);
  s.used = used;
}

template <class R> NDS_FN void make_room(Solution& s, i32 r, i32 size, const Places& spare) {
  if (size + 2 <= s.slot[r]) return;
  i32 slot = slot_for(size + 2);
  if (s.used + slot > s.room) {
    s.size[r] = 0;  // what stands there is about to be replaced
    compact<R>(s, spare);
  }
  s.first[r] = s.used;
  s.slot[r] = slot;
  s.used += slot;
}

NDS_FN void add_absent(const Instance& in, Solution& s, i32 c) {
  s.route_of[c] = -1;
  s.absent_at[c] = s.absents;
  s.absent[s.absents++] = c;
  s.absent_required += in.prize[c] == kRequired;
}

NDS_FN void drop_absent(const Instance& in, Solution& s, i32 c) {
  i32 last = s.absent[--s.absents];
  s.absent[s.absent_at[c]] = last;
  s.absent_at[last] = s.absent_at[c];
  s.absent_required -= in.prize[c] == kRequired;
}

NDS_FN void update_box(const Instance& in, Solution& s, i32 r) {
  if (in.x == nullptr) return;
  const i32 first = s.first[r], size = s.size[r];
  const i32* node = s.at.node + first;
  float left = in.x[node[1]], right = left, low = in.y[node[1]], high = low;
  for (i32 p = 2; p <= size; ++p) {
    float x = in.x[node[p]], y = in.y[node[p]];
    left = x < left ? x : left;
    right = x > right ? x : right;
    low = y < low ? y : low;
    high = y > high ? y : high;
  }
  i32 inner = 0;
  for (i32 p = 1; p < size; ++p) inner = most(inner, s.at.edge[first + p]);
  s.box.left[r] = left;
  s.box.right[r] = right;
  s.box.low[r] = low;
  s.box.high[r] = high;
  s.box.inner[r] = inner;
  s.box.leg[r] = most(s.at.edge[first], s.at.edge[first + size]);
}

// Route r of the solution becomes the segment of a draft.
template <class R>
NDS_FN void write_route(const Instance& in, Solution& s, i32 r, const Places& from,
                        const Segment& seg, const Places& spare) {
  make_room<R>(s, r, seg.size, spare);
  const i32 first = s.first[r];
  copy_places<R>(s.at, first, from, seg.first, seg.size + 2);
  s.size[r] = seg.size;
  s.load[r] = seg.load;
  for (i32 p = 1; p <= seg.size; ++p) {
    i32 c = s.at.node[first + p];
    if constexpr (R::optional) {
      if (s.route_of[c] < 0) drop_absent(in, s, c);
    }
    s.route_of[c] = r;
    s.place_of[c] = p;
  }
  update_box(in, s, r);
}

// An empty route goes; the last one takes its number.
NDS_FN void drop_route(Solution& s, i32 r) {
  const i32 last = --s.routes;
  if (r == last) return;
  s.first[r] = s.first[last];
  s.slot[r] = s.slot[last];
  s.size[r] = s.size[last];
  s.load[r] = s.load[last];
  s.box.left[r] = s.box.left[last];
  s.box.right[r] = s.box.right[last];
  s.box.low[r] = s.box.low[last];
  s.box.high[r] = s.box.high[last];
  s.box.inner[r] = s.box.inner[last];
  s.box.leg[r] = s.box.leg[last];
  const i32* node = s.at.node + s.first[r];
  for (i32 p = 1; p <= s.size[r]; ++p) s.route_of[node[p]] = r;
}

// The solution takes on what the draft says.
template <class R>
NDS_DEEP void commit(const Instance& in, Solution& s, const Draft& draft, const Places& spare) {
  if constexpr (R::optional) {
    for (i32 i = 0; i < draft.left_outs; ++i) {
      i32 c = draft.left_out[i];
      if (s.route_of[c] >= 0) add_absent(in, s, c);
    }
  }
  const i32 before = s.routes;
  i32 emptied = 0;
  for (i32 i = 0; i < draft.segments; ++i) {
    const Segment& seg = draft.segment[i];
    if (seg.route >= before) {  // new: its number is the next one, as segments stand in the order
                                // of their making
      s.first[seg.route] = s.slot[seg.route] = s.size[seg.route] = 0;
      s.routes = seg.route + 1;
    }
    if (seg.size > 0) {
      write_route<R>(in, s, seg.route, draft.at, seg, spare);
    } else {
      s.size[seg.route] = 0;
      ++emptied;
    }
  }
  // From the last to the first, so that the route that takes over a number is never an empty one.
  for (i32 r = s.routes - 1; emptied > 0; --r) {
    if (s.size[r] == 0) {
      drop_route(s, r);
      --emptied;
    }
  }
  s.cost += draft.delta;
}

// Nobody is served.
template <class R> NDS_DEEP void clear(const Instance& in, Solution& s) {
  s.cost = 0;
  s.routes = s.used = s.absents = s.absent_required = 0;
  for (i32 c = 1; c <= in.n; ++c) {
    s.route_of[c] = -1;
    if constexpr (R::optional) {
      add_absent(in, s, c);
      s.cost += R::prize(in, c);
    }
  }
}

// A route of its own for the given customers, in their order. The caller vouches for its
// feasibility.
template <class R, class D>
NDS_DEEP void add_route(const Instance& in, const D& d, Solution& s, const i32* customers,
                        i32 size) {
  const i32 r = s.routes++;
  const i32 first = s.used;
  s.first[r] = first;
  s.slot[r] = slot_for(size);
  s.used += s.slot[r];
  s.size[r] = size;
  s.load[r] = 0;
  s.at.node[first] = s.at.node[first + size + 1] = 0;
  for (i32 p = 1; p <= size; ++p) {
    const i32 c = customers[p - 1];
    s.at.node[first + p] = c;
    s.load[r] += in.demand[c];
    if constexpr (R::optional) {
      drop_absent(in, s, c);
      s.cost -= R::prize(in, c);
    }
    s.route_of[c] = r;
    s.place_of[c] = p;
  }
  for (i32 p = first; p <= first + size; ++p) {
    s.at.edge[p] = d.length(s.at.node[p], s.at.node[p + 1]);
    s.cost += s.at.edge[p];
  }
  R::refresh(in, d, s.at, first, size);
  update_box(in, s, r);
}

NDS_FN void save_best(Chain& chain) {
  const Solution& s = chain.now;
  i32 length = 0;
  for (i32 r = 0; r < s.routes; ++r) {
    const i32* node = s.at.node + s.first[r];
    for (i32 p = 1; p <= s.size[r] + 1; ++p) chain.best_tour[length++] = node[p];
  }
  chain.best_length = length;
  chain.best_is_now = 0;
}

}  // namespace NDS_ISA
}  // namespace nds
