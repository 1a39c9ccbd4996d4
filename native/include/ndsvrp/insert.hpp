// Taking customers out of a solution and greedily putting them back, in a draft beside it.
#pragma once
#include "rng.hpp"
#include "solution.hpp"

namespace nds {
inline namespace NDS_ISA {

constexpr i32 kSlack = 6;  // places a copied route can grow before it moves

template <class R> NDS_FN Segment& new_segment(Draft& draft, i32 route, i32 size) {
  Segment& seg = draft.segment[draft.segments];
  seg = Segment{route, draft.used, size, size + 2 + kSlack, 0};
  draft.segment_of[route] = draft.segments++;
  draft.used += seg.room;
  return seg;
}

NDS_FN void forget(Draft& draft) {
  for (i32 i = 0; i < draft.segments; ++i) draft.segment_of[draft.segment[i].route] = -1;
  draft.segments = 0;
}

// The routes of the removed customers, without them. Customers in no route are merely to be
// inserted. Where the way by a customer is shorter than the direct one (a matrix, or rounding), its
// route may be in time with it only: then all customers of that route stay. Returns how many are
// removed.
template <class R, class D>
NDS_DEEP i32 strip(const Instance& in, const D& d, const Solution& s, Scratch& scratch, i32 count) {
  Draft& draft = scratch.stripped;
  draft.used = draft.segments = draft.opened = draft.left_outs = 0;
  draft.routes = s.routes;
  draft.delta = 0;
  for (i32 i = 0; i < count; ++i) {
    const i32 removed = scratch.removed[i], route = s.route_of[removed];
    if (route < 0 || !scratch.mark[removed]) continue;
    const i64 before = draft.delta;
    draft.delta += R::prize(in, removed);
    if (draft.segment_of[route] >= 0) continue;
    Segment& seg = new_segment<R>(draft, route, s.size[route]);
    const i32 from = s.first[route], end = from + s.size[route] + 1;
    i32 to = seg.first, load = s.load[route];
    draft.at.node[to] = 0;
    bool gap = false;  // customers were left out since the last one kept
    for (i32 p = from; p < end; ++p) {
      const i32 next = s.at.node[p + 1];
      draft.delta -= s.at.edge[p];
      if (scratch.mark[next]) {
        load -= in.demand[next];
        gap = true;
        continue;
      }
      const i32 edge = gap ? d.length(draft.at.node[to], next) : s.at.edge[p];
      draft.at.edge[to] = edge;
      draft.delta += edge;
      draft.at.node[++to] = next;
      gap = false;
    }
    seg.size = to - seg.first - 1;
    seg.load = load;
    if (seg.size == 0) {  // its one edge, from depot to depot, counts nothing
      draft.delta -= draft.at.edge[seg.first];
      --draft.routes;
    } else {
      R::refresh(in, d, draft.at, seg.first, seg.size);
      if (!R::in_time(in, draft.at, seg.first, seg.size)) {
        draft.used = seg.first;
        draft.segment_of[route] = -1;
        --draft.segments;
        draft.delta = before;
        for (i32 p = from + 1; p < end; ++p) scratch.mark[s.at.node[p]] = 0;
      }
    }
  }
  i32 left = 0;
  for (i32 i = 0; i < count; ++i) {
    if (scratch.mark[scratch.removed[i]]) scratch.removed[left++] = scratch.removed[i];
  }
  return left;
}

template <class R> NDS_FN void copy_draft(Draft& to, const Draft& from) {
  forget(to);
  copy_places<R>(to.at, 0, from.at, 0, from.used);
  to.used = from.used;
  to.segments = from.segments;
  for (i32 i = 0; i < from.segments; ++i) {
    to.segment[i] = from.segment[i];
    to.segment_of[from.segment[i].route] = i;
  }
  to.routes = from.routes;
  to.delta = from.delta;
  to.opened = to.left_outs = 0;
}

// Costs of so many places are computed together, in groups without a remainder: what a compiler
// turns into vectors.
constexpr i32 kChunk = 64;
constexpr i32 kGroup = 8;

// The costs of putting c after each of `count` places from p on; kNever where it does not fit.
// Returns the least. Works on whole groups: places beyond the route hold old entries of the pool,
// perhaps of a larger instance. The depot stands in for them, and their results are masked.
template <class R, class D, class L>
NDS_FN i32 price(const D& d, const typename R::Probe& probe, const Places& at, i32 p, i32 count,
                 i32 c, i32* __restrict cost, L lanes) {
  i32 to[kChunk + kGroup + 1], back[kChunk + kGroup + 1];
  const i32* __restrict node = at.node + p, * __restrict edge = at.edge + p;
  const i32 stops = (count + kGroup) & -kGroup, gaps = (count + kGroup - 1) & -kGroup;
  for (i32 i = lanes.lane; i < stops; i += L::W) to[i] = d.length(i <= count ? node[i] : 0, c);
  to[stops] = 0;
  const i32* __restrict from = to + 1;
  if constexpr (!D::symmetric) {
    for (i32 i = lanes.lane; i < stops; i += L::W) back[i] = d.length(c, i <= count ? node[i] : 0);
    back[stops] = 0;
    from = back + 1;
  }
  lanes.sync();
  i32 low = kNever;
  for (i32 i = lanes.lane; i < gaps; i += L::W) {
    bool fits = i < count;
    if constexpr (D::symmetric) {
      fits &= probe.fits_place(at, p + i, to[i], from[i]);
    } else if constexpr (R::windows) {
      const i32 a = fits ? node[i] : 0, b = fits ? node[i + 1] : 0;
      fits &= probe.fits_place(at, p + i, d.time(a, c), d.time(c, b));
    }
    cost[i] = fits ? to[i] + from[i] - edge[i] : kNever;
    low = least(low, cost[i]);
  }
  return lanes.least_of(low);
}

// The cheapest position for c in one route that is not overlooked, if it is before the best so far.
template <class R, class D, class L>
NDS_FN void scan(const D& d, const typename R::Probe& probe, const Places& at, i32 first, i32 size,
                 i32 c, i32 route, const Blinks& blinks, i32 turn, L lanes, Choice& best) {
  i32 cost[kChunk + kGroup];
  for (i32 begin = 0; begin <= size; begin += kChunk) {
    const i32 count = least(kChunk, size + 1 - begin);
    i32 low = price<R>(d, probe, at, first + begin, count, c, cost, lanes);
    while (low <= best.cost && low != kNever) {
      i32 i = 0, next = kNever;
      for (; i < count; ++i) {
        if (cost[i] == low) {
          const Choice choice{low, route, begin + i};
          if (!before(choice, best)) break;
          if (!blinks.at(turn, route, begin + i)) {
            best = choice;
            break;
          }
        } else if (cost[i] > low) {
          next = least(next, cost[i]);
        }
      }
      if (i < count) break;
      low = next;  // all positions at this cost are overlooked
    }
  }
}

// For each route a cost below which no position in it can be: the distance from c to the box of its
// customers counts twice for an inner edge, once (and the way from the depot) for a leg.
template <class Probe>
NDS_FN void bound_routes(const Instance& in, const Solution& s, const Probe& probe, i32 c,
                         i32 depot, i32* __restrict bound) {
  const float x = in.x[c], y = in.y[c], scale = in.scale * 0.99999f;
  const float* __restrict left = s.box.left, * __restrict right = s.box.right;
  const float* __restrict low = s.box.low, * __restrict high = s.box.high;
  const i32* __restrict inner = s.box.inner, * __restrict leg = s.box.leg;
  const i32* __restrict load = s.load;
  const i32 margin = in.box_margin;
  for (i32 r = 0; r < s.routes; ++r) {
    float dx = left[r] - x, ex = x - right[r], dy = low[r] - y, ey = y - high[r];
    dx = dx > ex ? dx : ex;
    dy = dy > ey ? dy : ey;
    dx = dx > 0.0f ? dx : 0.0f;
    dy = dy > 0.0f ? dy : 0.0f;
    const i32 away = i32(root(dx * dx + dy * dy) * scale) - margin;
    bound[r] =
        probe.fits_route(load[r]) ? least(2 * away - inner[r], depot + away - leg[r]) : kNever;
  }
}

// Give the segment room for one more customer.
template <class R> NDS_FN void grow(Draft& draft, Segment& seg) {
  if (seg.size + 3 <= seg.room) return;
  const i32 room = seg.size + 3 + most(8, seg.size / 2);
  copy_places<R>(draft.at, draft.used, draft.at, seg.first, seg.size + 2);
  seg.first = draft.used;
  seg.room = room;
  draft.used += room;
}

template <class R, class D>
NDS_FN void insert(const Instance& in, const D& d, const Solution& s, Draft& draft,
                   const Choice& choice, i32 c) {
  if (draft.segment_of[choice.route] < 0) {
    Segment& copy = new_segment<R>(draft, choice.route, s.size[choice.route]);
    copy_places<R>(draft.at, copy.first, s.at, s.first[choice.route], copy.size + 2);
    copy.load = s.load[choice.route];
  }
  Segment& seg = draft.segment[draft.segment_of[choice.route]];
  grow<R>(draft, seg);
  const i32 p = seg.first + choice.place, last = seg.first + seg.size + 1;
  const Places& at = draft.at;
  for (i32 q = last; q > p; --q) at.node[q + 1] = at.node[q];
  for (i32 q = last - 1; q > p; --q) at.edge[q + 1] = at.edge[q];
  if constexpr (R::windows) {
    for (i32 q = last; q > p; --q) at.depart[q + 1] = at.depart[q];
    for (i32 q = last; q > p; --q) at.latest[q + 1] = at.latest[q];
  }
  at.node[p + 1] = c;
  at.edge[p] = d.length(at.node[p], c);
  at.edge[p + 1] = d.length(c, at.node[p + 2]);
  seg.size += 1;
  seg.load += in.demand[c];
  R::inserted(in, d, at, seg.first, seg.size, p + 1);
  draft.delta += choice.cost - R::prize(in, c);
}

template <class R, class D>
NDS_FN void open_route(const Instance& in, const D& d, const Solution& s, Draft& draft, i32 c) {
  // Numbers of new routes follow those of the solution, in the order of their making.
  Segment& seg = new_segment<R>(draft, s.routes + draft.opened++, 1);
  const Places& at = draft.at;
  at.node[seg.first] = at.node[seg.first + 2] = 0;
  at.node[seg.first + 1] = c;
  at.edge[seg.first] = d.length(0, c);
  at.edge[seg.first + 1] = d.length(c, 0);
  seg.load = in.demand[c];
  R::refresh(in, d, at, seg.first, 1);
  ++draft.routes;
  draft.delta += at.edge[seg.first] + at.edge[seg.first + 1] - R::prize(in, c);
}

struct Greedy {
  bool all_routes;
  Blinks blinks;
  u32 open_route;  // probability times 2^32 of opening a route that does not pay
  u64 coin_key;
  const volatile i32* stop;
};

// Insert the customers one by one where each is cheapest (Algorithm 1, line 12). Left unfinished
// when time is up.
template <class R, class D, class L>
NDS_DEEP void put_back(const Instance& in, const D& d, const Solution& s, Draft& draft, i32* bound,
                       const i32* order, i32 count, const Greedy& greedy, L lanes) {
  for (i32 turn = 0; turn < count && !*greedy.stop; ++turn) {
    const i32 c = order[turn];
    const typename R::Probe probe(in, c);
    // A position is worth no more than the prize; ties go to leaving the customer out.
    const i32 prize = R::optional && in.prize[c] != kRequired ? in.prize[c] : kNever;
    Choice best{prize, -1, -1};
    for (i32 i = 0; i < draft.segments; ++i) {
      const Segment& seg = draft.segment[i];
      if (seg.size == 0 || !probe.fits_route(seg.load)) continue;
      scan<R>(d, probe, draft.at, seg.first, seg.size, c, seg.route, greedy.blinks, turn, lanes,
              best);
    }
    if (greedy.all_routes) {
      if (in.x != nullptr) {
        bound_routes(in, s, probe, c, d.length(0, c), bound);
      } else {
        for (i32 r = 0; r < s.routes; ++r)
          bound[r] = probe.fits_route(s.load[r]) ? -kNever : kNever;
      }
      for (i32 r = 0; r < s.routes; ++r) {
        if (bound[r] > best.cost || bound[r] == kNever || draft.segment_of[r] >= 0) continue;
        scan<R>(d, probe, s.at, s.first[r], s.size[r], c, r, greedy.blinks, turn, lanes, best);
      }
    }
    best = lanes.best(best);
    if (best.route >= 0) {
      insert<R>(in, d, s, draft, best, c);
      continue;
    }
    if constexpr (R::optional) {
      const bool may = draft.routes < in.vehicles && probe.fits_route(0);
      const bool pays = d.length(0, c) + d.length(c, 0) < prize;
      if (!may || (!pays && u32(key_of(greedy.coin_key, u64(turn)) >> 32) >= greedy.open_route)) {
        draft.left_out[draft.left_outs++] = c;
        continue;
      }
    }
    open_route<R>(in, d, s, draft, c);
  }
}

}  // namespace NDS_ISA
}  // namespace nds
