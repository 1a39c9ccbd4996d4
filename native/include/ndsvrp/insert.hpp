// Taking customers out of a solution and greedily putting them back, in a draft beside it.
#pragma once
#include "rng.hpp"
#include "solution.hpp"

namespace nds {
inline namespace NDS_ISA {

constexpr i32 kSlack = 6;  // places a copied route can grow before it moves

// A segment for a route, not yet filled; -1 if there is no room for it.
template <class L>
NDS_FN i32 new_segment(Draft& draft, i32 route, i32 size, i32 load, bool all_routes, L lanes) {
  const i32 room = size + 2 + kSlack, index = draft.segments;
  if (draft.used + room > draft.room) {
    draft.full = 1;
    return -1;
  }
  if (lanes.leads()) {
    Segment& seg = draft.segment[index];
    seg.first = draft.used, seg.size = size, seg.load = load, seg.route = route, seg.room = room;
    if (all_routes) draft.drafted[route] = 1;
  }
  draft.segments = index + 1;
  draft.used += room;
  return index;
}

template <class L> NDS_FN void forget(Draft& draft, bool all_routes, L lanes) {
  if (all_routes) {
    for (i32 i = lanes.lane; i < draft.segments; i += L::W)
      draft.drafted[draft.segment[i].route] = 0;
  }
  draft.segments = 0;
}

// What became of a route without the removed customers.
struct Stripped {
  i32 size, load;
  i64 delta;  // this lane's share
};

// Copy a route without its marked customers to place `to` of the draft.
template <class R, class D, class L>
NDS_FN Stripped strip_route(const Instance& in, const D& d, const Solution& s, const Flag* mark,
                            const Places& at, i32 to, i32 route, L lanes) {
  const i32 from = s.first[route], size = s.size[route];
  i32 kept = 0, last = 0;  // customers kept so far, and the place of the last one
  i32 lost = 0;            // this lane's share of the demand that goes
  i64 delta = 0;
  if (lanes.leads()) at.node[to] = 0;
  for (i32 begin = 1; begin <= size + 1; begin += L::W) {
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
        const i32 place = to + kept + lanes.count_below(staying);
        const i32 now = previous == p - 1 ? edge : d.length(s.at.node[from + previous], node);
        at.edge[place] = now;
        at.node[place + 1] = node;
        delta += now;
      } else {
        lost += in.demand[node];
      }
    }
    if (staying != 0) last = begin + last_bit(staying);
    kept += count_bits(staying);
  }
  if (kept == 1 && lanes.leads()) delta -= d.length(0, 0);  // nobody is left: no route, no edge
  return Stripped{kept - 1, s.load[route] - lanes.sum(lost), delta};
}

// Those of the removed that are marked still, in their order.
template <class L> NDS_FN i32 keep_marked(Scratch& scratch, i32 count, L lanes) {
  i32 left = 0;
  for (i32 begin = 0; begin < count; begin += L::W) {
    const i32 i = begin + lanes.lane;
    const i32 c = i < count ? scratch.removed[i] : 0;
    const bool stays = i < count && scratch.mark[c];
    const u32 staying = lanes.ballot(stays);
    lanes.sync();
    if (stays) scratch.removed[left + lanes.count_below(staying)] = c;
    left += count_bits(staying);
    lanes.sync();
  }
  return left;
}

// The routes of the removed customers, without them. Customers in no route are merely to be
// inserted. Where the way by a customer is shorter than the direct one (a matrix, or rounding), its
// route may be in time with it only: then all customers of that route stay. Returns how many are
// removed.
template <class R, class D, class L>
NDS_DEEP i32 strip(const Instance& in, const D& d, const Solution& s, Scratch& scratch, i32 count,
                   L lanes) {
  Draft& draft = scratch.stripped;
  draft.used = draft.full = draft.segments = draft.opened = draft.left_outs = 0;
  draft.routes = s.routes;
  draft.delta = 0;
  i64 delta = 0;  // this lane's share
  bool stay = false;
  for (i32 begin = 0; begin < count && !draft.full; begin += L::W) {
    const i32 i = begin + lanes.lane;
    i32 route = i < count ? s.route_of[scratch.removed[i]] : -1;
    if (route >= 0 && (draft.drafted[route] || !scratch.mark[scratch.removed[i]])) route = -1;
    u32 pending = lanes.ballot(route >= 0);
    lanes.sync();
    while (pending != 0) {
      const i32 r = lanes.from(route, first_bit(pending));
      pending &= ~lanes.ballot(route == r);
      const i32 index = new_segment(draft, r, s.size[r], s.load[r], true, lanes);
      if (index < 0) break;
      const i32 to = draft.used - (s.size[r] + 2 + kSlack);
      const Stripped rest = strip_route<R>(in, d, s, scratch.mark, draft.at, to, r, lanes);
      lanes.sync();
      if (rest.size == 0) {
        --draft.routes;
      } else {
        R::refresh(in, d, draft.at, to, rest.size, lanes);
        if (!R::in_time(in, draft.at, to, rest.size, lanes)) {
          draft.used = to;
          --draft.segments;
          stay = true;
          if (lanes.leads()) draft.drafted[r] = 0;
          const i32* node = s.at.node + s.first[r];
          for (i32 p = 1 + lanes.lane; p <= s.size[r]; p += L::W) scratch.mark[node[p]] = 0;
          lanes.sync();
          continue;
        }
      }
      delta += rest.delta;
      if (lanes.leads())
        draft.segment[index].size = rest.size, draft.segment[index].load = rest.load;
    }
    lanes.sync();
  }
  if (stay) count = keep_marked(scratch, count, lanes);
  if constexpr (R::optional) {
    for (i32 i = lanes.lane; i < count; i += L::W) {
      const i32 c = scratch.removed[i];
      if (s.route_of[c] >= 0) delta += R::prize(in, c);
    }
  }
  draft.delta = lanes.sum(delta);
  return count;
}

template <class R, class L>
NDS_FN void copy_draft(Draft& to, const Draft& from, bool all_routes, L lanes) {
  forget(to, all_routes, lanes);
  lanes.sync();
  copy_places<R>(to.at, 0, from.at, 0, from.used, lanes);
  for (i32 i = lanes.lane; i < from.segments; i += L::W) {
    to.segment[i] = from.segment[i];
    if (all_routes) to.drafted[from.segment[i].route] = 1;
  }
  to.used = from.used;
  to.full = from.full;
  to.segments = from.segments;
  to.routes = from.routes;
  to.delta = from.delta;
  to.opened = to.left_outs = 0;
  lanes.sync();
}

// Costs of so many places are computed together, in groups without a remainder: what a compiler
// turns into vectors.
constexpr i32 kChunk = 64;
constexpr i32 kGroup = 8;
constexpr i32 kRoutes = 256;  // routes whose bounds are computed together

// The costs of putting c after each of `count` places from p on; kNever where it does not fit.
// Returns the least. Works on whole groups: places beyond the route hold old entries of the pool,
// perhaps of a larger instance. The depot stands in for them, and their results are masked.
template <class R, class D>
NDS_FN i32 price(const D& d, const typename R::Probe& probe, const Places& at, i32 p, i32 count,
                 i32 c, i32* __restrict cost) {
  i32 to[kChunk + kGroup + 1], back[kChunk + kGroup + 1];
  const i32* __restrict node = at.node + p, * __restrict edge = at.edge + p;
  const i32 stops = (count + kGroup) & -kGroup, gaps = (count + kGroup - 1) & -kGroup;
  for (i32 i = 0; i < stops; ++i) to[i] = d.length(i <= count ? node[i] : 0, c);
  to[stops] = 0;
  const i32* __restrict from = to + 1;
  if constexpr (!D::symmetric) {
    for (i32 i = 0; i < stops; ++i) back[i] = d.length(c, i <= count ? node[i] : 0);
    back[stops] = 0;
    from = back + 1;
  }
  i32 low = kNever;
  for (i32 i = 0; i < gaps; ++i) {
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
  return low;
}

// The cheapest position for c in one route that is not overlooked, if it is before the best so far:
// by one lane, a chunk of places at a time.
template <class R, class D>
NDS_FN void scan_alone(const D& d, const typename R::Probe& probe, const Places& at, i32 first,
                       i32 size, i32 route, i32 index, i32 c, const Blinks& blinks, i32 turn,
                       Choice& best) {
  i32 cost[kChunk + kGroup];
  for (i32 begin = 0; begin <= size; begin += kChunk) {
    const i32 count = least(kChunk, size + 1 - begin);
    i32 low = price<R>(d, probe, at, first + begin, count, c, cost);
    while (low <= best.cost && low != kNever) {
      i32 i = 0, next = kNever;
      for (; i < count; ++i) {
        if (cost[i] == low) {
          const Choice choice{low, route, begin + i, index};
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

// The same by several lanes, each with a place and a best of its own. Each lane computes the way to
// its place; the way from there is the next lane's, so that the last lane has no position.
template <class R, class D, class L>
NDS_FN void scan_together(const D& d, const typename R::Probe& probe, const Places& at, i32 first,
                          i32 size, i32 route, i32 index, i32 c, const Blinks& blinks, i32 turn,
                          L lanes, Choice& best) {
  for (i32 begin = 0; begin <= size; begin += L::W - 1) {
    const i32 i = begin + lanes.lane, p = first + least(i, size + 1);
    const i32 node = at.node[p], edge = at.edge[p];  // together: one wait for memory
    const i32 to = d.length(node, c);
    const i32 from = lanes.from_next(D::symmetric ? to : d.length(c, node));
    i32 time_to = to, time_from = from;
    if constexpr (R::windows && !D::symmetric) {
      time_to = d.time(node, c);
      time_from = lanes.from_next(d.time(c, node));
    }
    const Choice choice{to + from - edge, route, i, index};
    bool better = (i <= size) & (lanes.lane < L::W - 1) & before_at_once(choice, best);
    if constexpr (R::windows) better = better && probe.fits_place(at, p, time_to, time_from);
    if (better && !blinks.at(turn, route, i)) best = choice;
  }
}

template <class R, class D, class L>
NDS_FN void scan(const D& d, const typename R::Probe& probe, const Places& at, i32 first, i32 size,
                 i32 route, i32 index, i32 c, const Blinks& blinks, i32 turn, L lanes,
                 Choice& best) {
  if constexpr (L::W > 1) {
    scan_together<R>(d, probe, at, first, size, route, index, c, blinks, turn, lanes, best);
  } else {
    scan_alone<R>(d, probe, at, first, size, route, index, c, blinks, turn, best);
  }
}

// For each of `count` routes from `begin` on a cost below which no position in it can be: the
// distance from c to the box of its customers counts twice for an inner edge, once (and the way
// from the depot) for a leg. Where there is no map, any cost is possible.
template <class Probe>
NDS_FN void bound_routes(const Instance& in, const Solution& s, const Probe& probe, i32 c,
                         i32 depot, i32 begin, i32 count, i32* __restrict bound) {
  const i32* __restrict load = s.load + begin;
  if (in.x == nullptr) {
    for (i32 r = 0; r < count; ++r) bound[r] = probe.fits_route(load[r]) ? -kNever : kNever;
    return;
  }
  const float x = in.x[c], y = in.y[c], scale = in.scale * 0.99999f;
  const float* __restrict left = s.box.left + begin, * __restrict right = s.box.right + begin;
  const float* __restrict low = s.box.low + begin, * __restrict high = s.box.high + begin;
  const i32* __restrict inner = s.box.inner + begin, * __restrict leg = s.box.leg + begin;
  const i32 margin = in.box_margin;
  for (i32 r = 0; r < count; ++r) {
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

// The best position in the routes that are not in the draft, as far as they may hold a better one.
// Starts from and ends with a best of the whole team.
template <class R, class D, class L>
NDS_FN void scan_rest(const Instance& in, const D& d, const Solution& s, const Draft& draft,
                      const typename R::Probe& probe, i32 c, const Blinks& blinks, i32 turn,
                      L lanes, Choice& best) {
  const i32 depot = d.length(0, c);
  if constexpr (L::W > 1) {
    for (i32 begin = 0; begin < s.routes; begin += L::W) {
      const i32 r = begin + lanes.lane;
      i32 bound = kNever;
      if (r < s.routes && !draft.drafted[r]) bound_routes(in, s, probe, c, depot, r, 1, &bound);
      u32 pending = lanes.ballot(bound <= best.cost && bound != kNever);
      if (pending == 0) continue;
      Choice mine = best;
      while (pending != 0) {
        const i32 next = begin + first_bit(pending);
        scan<R>(d, probe, s.at, s.first[next], s.size[next], next, -1, c, blinks, turn, lanes,
                mine);
        pending &= pending - 1;
        if (pending != 0) pending &= lanes.ballot(bound <= lanes.least_of(mine.cost));
      }
      best = lanes.best(mine);
    }
  } else {
    i32 bound[kRoutes];  // in whole groups: beyond the last route stand old ones, or nothing
    for (i32 begin = 0; begin < s.routes; begin += kRoutes) {
      const i32 count = least(kRoutes, s.routes - begin);
      bound_routes(in, s, probe, c, depot, begin, (count + kGroup - 1) & -kGroup, bound);
      for (i32 i = 0; i < count; ++i) {
        if (bound[i] > best.cost || bound[i] == kNever || draft.drafted[begin + i]) continue;
        const i32 r = begin + i;
        scan<R>(d, probe, s.at, s.first[r], s.size[r], r, -1, c, blinks, turn, lanes, best);
      }
    }
  }
}

// Give the segment room for one more customer. Returns where it begins.
template <class R, class L> NDS_FN i32 grow(Draft& draft, Segment& seg, L lanes) {
  const i32 first = seg.first, size = seg.size;
  if (size + 3 <= seg.room) return first;
  const i32 room = size + 3 + most(8, size / 2), to = draft.used;
  if (to + room > draft.room) {
    draft.full = 1;
    return first;
  }
  copy_places<R>(draft.at, to, draft.at, first, size + 2, lanes);
  draft.used += room;
  lanes.sync();
  if (lanes.leads()) seg.first = to, seg.room = room;
  return to;
}

// Places p+1 … last move up by one.
template <class R, class L> NDS_FN void shift(const Places& at, i32 p, i32 last, L lanes) {
  if constexpr (L::W > 1) {
    for (i32 top = last; top > p; top -= L::W) {
      const i32 q = top - lanes.lane;
      const bool moves = q > p;
      i32 node = 0, edge = 0, depart = 0, latest = 0;
      if (moves) {
        node = at.node[q], edge = at.edge[q];
        if constexpr (R::windows) depart = at.depart[q], latest = at.latest[q];
      }
      lanes.sync();
      if (moves) {
        at.node[q + 1] = node, at.edge[q + 1] = edge;
        if constexpr (R::windows) at.depart[q + 1] = depart, at.latest[q + 1] = latest;
      }
    }
  } else {
    for (i32 q = last; q > p; --q) at.node[q + 1] = at.node[q];
    for (i32 q = last - 1; q > p; --q) at.edge[q + 1] = at.edge[q];
    if constexpr (R::windows) {
      for (i32 q = last; q > p; --q) at.depart[q + 1] = at.depart[q];
      for (i32 q = last; q > p; --q) at.latest[q + 1] = at.latest[q];
    }
  }
}

template <class R, class D, class L>
NDS_FN void insert(const Instance& in, const D& d, const Solution& s, Draft& draft,
                   const Choice& choice, i32 c, L lanes) {
  i32 index = choice.segment;
  if (index < 0) {
    const i32 r = choice.route;
    lanes.sync();  // others may still look at what is drafted
    index = new_segment(draft, r, s.size[r], s.load[r], true, lanes);
    if (index < 0) return;
    copy_places<R>(draft.at, draft.used - (s.size[r] + 2 + kSlack), s.at, s.first[r], s.size[r] + 2,
                   lanes);
    lanes.sync();
  }
  Segment& seg = draft.segment[index];
  const i32 size = seg.size, load = seg.load;
  const i32 first = grow<R>(draft, seg, lanes);
  if (draft.full) return;
  const Places& at = draft.at;
  const i32 p = first + choice.place, last = first + size + 1;
  const i32 to = d.length(at.node[p], c), from = d.length(c, at.node[p + 1]);
  lanes.sync();
  shift<R>(at, p, last, lanes);
  lanes.sync();
  if (lanes.leads()) {
    at.node[p + 1] = c;
    at.edge[p] = to;
    at.edge[p + 1] = from;
    seg.size = size + 1;
    seg.load = load + in.demand[c];
  }
  lanes.sync();
  R::inserted(in, d, at, first, size + 1, p + 1, lanes);
  draft.delta += choice.cost - R::prize(in, c);
}

template <class R, class D, class L>
NDS_FN void open_route(const Instance& in, const D& d, const Solution& s, Draft& draft, i32 c,
                       bool all_routes, L lanes) {
  // Numbers of new routes follow those of the solution, in the order of their making.
  const i32 r = s.routes + draft.opened, first = draft.used;
  if (new_segment(draft, r, 1, in.demand[c], all_routes, lanes) < 0) return;
  const Places& at = draft.at;
  const i32 to = d.length(0, c), from = d.length(c, 0);
  if (lanes.leads()) {
    at.node[first] = at.node[first + 2] = 0;
    at.node[first + 1] = c;
    at.edge[first] = to;
    at.edge[first + 1] = from;
  }
  lanes.sync();
  R::refresh(in, d, at, first, 1, lanes);
  ++draft.opened;
  ++draft.routes;
  draft.delta += i64(to) + from - R::prize(in, c);
}

struct Greedy {
  bool all_routes;
  Blinks blinks;
  u32 open_route;  // probability times 2^32 of opening a route that does not pay
  u64 coin_key;
};

constexpr i32 kLook = 64;  // turns between two looks at the clock

// Insert the customers one by one where each is cheapest (Algorithm 1, line 12). Left unfinished
// when time is up, or the draft is full.
template <class R, class D, class L>
NDS_DEEP void put_back(const Instance& in, const D& d, const Solution& s, Draft& draft,
                       const i32* order, i32 count, const Greedy& greedy, L lanes) {
  for (i32 turn = 0; turn < count && !draft.full; ++turn) {
    if (turn % kLook == kLook - 1 && lanes.time_is_up()) break;
    const i32 c = order[turn];
    const typename R::Probe probe(in, c);
    // A position is worth no more than the prize; ties go to leaving the customer out.
    const i32 prize = R::optional && in.prize[c] != kRequired ? in.prize[c] : kNever;
    Choice best{prize, -1, -1, -1};
    for (i32 i = 0; i < draft.segments; ++i) {
      const Segment seg = draft.segment[i];
      if ((seg.size == 0) | !probe.fits_route(seg.load)) continue;
      scan<R>(d, probe, draft.at, seg.first, seg.size, seg.route, i, c, greedy.blinks, turn, lanes,
              best);
    }
    best = lanes.best(best);
    if (greedy.all_routes)
      scan_rest<R>(in, d, s, draft, probe, c, greedy.blinks, turn, lanes, best);
    if (best.route >= 0) {
      insert<R>(in, d, s, draft, best, c, lanes);
      continue;
    }
    if constexpr (R::optional) {
      const bool may = draft.routes < in.vehicles && probe.fits_route(0);
      const bool pays = d.length(0, c) + d.length(c, 0) < prize;
      if (!may || (!pays && u32(key_of(greedy.coin_key, u64(turn)) >> 32) >= greedy.open_route)) {
        if (lanes.leads()) draft.left_out[draft.left_outs] = c;
        ++draft.left_outs;
        continue;
      }
    }
    open_route<R>(in, d, s, draft, c, greedy.all_routes, lanes);
  }
  lanes.sync();
}

}  // namespace NDS_ISA
}  // namespace nds
