// Exchange of the tails of two routes (2-opt*), joining and splitting routes included.
#pragma once
#include "crew.hpp"
#include "draft.hpp"
#include "ruin.hpp"

namespace nds::inline NDS_ISA {

// Routes a and b are cut after stops p and q. The tails change places; or, reversed, the heads make
// one route and the tails the other. b is kNew to split route a.
struct TailMove {
  i32 a, p, b, q;
  bool reversed;
};
constexpr i32 kNew = -1;
constexpr i32 kLimit = 1 << 29;  // above all changes in cost

// Routes may be reversed if no rule depends on the order of the customers.
template <class R, class D> constexpr bool kReversible = D::symmetric && !R::refreshes;
template <class R, class D> constexpr i32 kMovesPerNeighbour = kReversible<R, D> ? 4 : 2;

// A move of customer c by its number: those that make it a neighbour of one of its nearest
// customers v (c before v, v before c, both at the ends of heads, both at the starts of tails),
// then the split after c.
template <class R, class D>
NDS_FN TailMove tail_move(const Instance& in, const Solution& s, i32 c, i32 neighbours, i32 number) {
  constexpr i32 kKinds = kMovesPerNeighbour<R, D>;
  const i32 a = s.route_of[c], stop = s.stop_of[c];
  if (number == neighbours * kKinds) return TailMove{a, stop, kNew, 0, false};
  const i32 v = NearRow(in, c)[number / kKinds], kind = number % kKinds;
  const i32 p = stop - (kind & 1), q = s.stop_of[v] - ((kind == 0) | (kind == 3));
  return TailMove{a, p, s.route_of[v], q, kind > 1};
}

// The four stops around the two cuts: before and after the cut of a, then of b.
struct Ends {
  i32 a, after_a, b, after_b;
};
NDS_FN Ends ends_of(const Solution& s, const TailMove& move) {
  const i32* node = s.at.node;
  const i32 p = s.first[move.a] + move.p;
  if (move.b == kNew) return Ends{node[p], node[p + 1], 0, 0};
  const i32 q = s.first[move.b] + move.q;
  return Ends{node[p], node[p + 1], node[q], node[q + 1]};
}

// An empty route has no edge.
template <class D> NDS_FN i32 edge_between(const D& d, i32 a, i32 b) { return (a | b) == 0 ? 0 : d.length(a, b); }

// A route cut after stop p.
template <class R> struct Halves {
  typename R::template Route<i32> head{}, tail{};
  typename R::template Prefix<i32> before;
  typename R::template Suffix<i32> after;
};

template <class R> NDS_FN Halves<R> halves_of(const Instance& in, const Solution& s, i32 r, i32 p) {
  Halves<R> halves;
  const i32 first = s.first[r];
  R::cut(in, s.at, first, p, R::route_at(s, r), halves.head, halves.tail);
  halves.before = R::prefix_at(s.at, first + p);
  halves.after = R::suffix_at(s.at, first + p + 1);
  return halves;
}

template <class R, class D> NDS_FN bool fits(const Instance& in, const D& d, const Solution& s, const TailMove& move) {
  const Halves<R> a = halves_of<R>(in, s, move.a, move.p);
  Halves<R> b;
  if (move.b == kNew) {  // the depot at both ends of any route
    b.before = R::prefix_at(s.at, s.first[move.a]);
    b.after = R::suffix_at(s.at, s.first[move.a] + s.size[move.a] + 1);
  } else {
    b = halves_of<R>(in, s, move.b, move.q);
  }
  if constexpr (kReversible<R, D>) {
    if (move.reversed)
      return R::fits_joined(in, a.head, a.before, b.head, b.after, Way{}) &&
             R::fits_joined(in, a.tail, a.before, b.tail, b.after, Way{});
  }
  const Ends ends = ends_of(s, move);
  const auto way = [&](i32 x, i32 y) {
    const i32 length = edge_between(d, x, y);
    if constexpr (R::uses_time && !D::symmetric) return Way{length, d.time(x, y)};
    return Way{length, length};
  };
  return R::fits_joined(in, a.head, a.before, b.tail, b.after, way(ends.a, ends.after_b)) &&
         R::fits_joined(in, b.head, b.before, a.tail, a.after, way(ends.b, ends.after_a));
}

// Customers of a route in sequence, perhaps backwards.
struct Piece {
  i32 from, step, count;
};
NDS_FN Piece forwards(const Solution& s, i32 r, i32 begin, i32 end) {
  return Piece{s.first[r] + begin, 1, end - begin};
}
NDS_FN Piece backwards(const Piece& piece) { return Piece{piece.from + piece.count - 1, -1, piece.count}; }

// Draft a route of two pieces.
template <class R, class D, class L>
NDS_FN void draft_joined(const Instance& in, const D& d, const Solution& s, Draft& draft, i32 route, const Piece& head,
                         const Piece& tail, L lanes) {
  const i32 size = head.count + tail.count, to = draft.used;
  typename R::template Route<i32> share{}, whole{};
  const i32 index = new_segment<R>(draft, route, size, whole, false, lanes);
  if (index < 0 || size == 0) return;
  const Stops& at = draft.at;
  for (i32 i = lanes.lane; i < size; i += L::W) {
    const bool first = i < head.count;
    const i32 c = s.at.node[first ? head.from + i * head.step : tail.from + (i - head.count) * tail.step];
    at.node[to + 1 + i] = c;
    R::add(in, c, share);
  }
  if (lanes.leads()) at.node[to] = at.node[to + size + 1] = 0;
  lanes.sync();
  for (i32 p = to + lanes.lane; p <= to + size; p += L::W) at.edge[p] = d.length(at.node[p], at.node[p + 1]);
  R::each_route(whole, share, [&](i32& total, i32 part) { total = lanes.sum(part); });
  lanes.sync();
  R::refresh(in, d, at, to, size, whole, lanes);
  if (lanes.leads()) R::copy_route(draft.segment[index], whole);
}

template <class R, class D, class L>
NDS_FN void draft_move(const Instance& in, const D& d, const Solution& s, Draft& draft, const TailMove& move, i32 delta,
                       L lanes) {
  draft.used = draft.full = draft.segments = draft.opened = draft.unserved_count = 0;
  draft.delta = delta;
  const i32 a = move.a, b = move.b == kNew ? s.routes : move.b;
  const Piece head_a = forwards(s, a, 1, move.p + 1), tail_a = forwards(s, a, move.p + 1, s.size[a] + 1);
  Piece head_b{0, 1, 0}, tail_b{0, 1, 0};
  if (move.b != kNew) {
    head_b = forwards(s, b, 1, move.q + 1);
    tail_b = forwards(s, b, move.q + 1, s.size[b] + 1);
  }
  if (move.reversed) {
    draft_joined<R>(in, d, s, draft, a, head_a, backwards(head_b), lanes);
    draft_joined<R>(in, d, s, draft, b, backwards(tail_a), tail_b, lanes);
  } else {
    draft_joined<R>(in, d, s, draft, a, head_a, tail_b, lanes);
    draft_joined<R>(in, d, s, draft, b, head_b, tail_a, lanes);
  }
  lanes.sync();
}

// The edges beside a customer, and the nodes there.
struct Beside {
  i32 before, after, edge_before, edge_after;
};
NDS_FN Beside beside(const Solution& s, i32 c) {
  const i32 p = s.first[s.route_of[c]] + s.stop_of[c];
  return Beside{s.at.node[p - 1], s.at.node[p + 1], s.at.edge[p - 1], s.at.edge[p]};
}

// Draft the cheapest feasible move of a random customer, if its change in cost is below the margin.
// Returns whether there is one. Each move replaces an edge of the customer by one to a neighbour;
// those are left out that make it longer by the margin. Every move that pays makes an edge of one
// of its four nodes shorter; only if that is the depot alone, it is missed.
template <class R, class D, class L>
NDS_DEEP bool draft_tails(const Instance& in, const D& d, const Solution& s, Draft& draft, i32 neighbours,
                          double margin, Random random, L lanes) {
  constexpr i32 kKinds = kMovesPerNeighbour<R, D>;
  const i32 c = draw_customer(in, s, random), a = s.route_of[c];
  if (a < 0) return false;
  neighbours = least(neighbours, in.near_count);
  const i32 limit = margin < kLimit ? i32(margin) + (double(i32(margin)) < margin) : kLimit;
  Choice best{limit, kNever, -1, -1};
  const auto consider = [&](i32 number, i32 delta) {
    if (delta < best.cost && fits<R>(in, d, s, tail_move<R, D>(in, s, c, neighbours, number)))
      best = Choice{delta, number, -1, -1};
  };
  const Beside here = beside(s, c);
  const i32 reach = limit + most(here.edge_before, here.edge_after);
  const NearRow near(in, c);
  for (i32 j = lanes.lane; j < neighbours; j += L::W) {
    const i32 v = near[j], b = s.route_of[v];
    if (v == 0) continue;  // elsewhere
    const i32 to = d.length(c, v), from = D::symmetric ? to : d.length(v, c);
    if constexpr (D::symmetric) {
      if (to > reach + in.box_margin) break;  // the others are even farther
    }
    if ((b < 0) | (b == a)) continue;
    const Beside there = beside(s, v);
    const auto move = [&](i32 kind, i32 edge, i32 mine, i32 other, i32 x, i32 y) {
      if ((edge - mine < limit) & (edge - mine - other < best.cost))
        consider(j * kKinds + kind, edge - mine - other + edge_between(d, x, y));
    };
    move(0, to, here.edge_after, there.edge_before, there.before, here.after);
    move(1, from, here.edge_before, there.edge_after, here.before, there.after);
    if constexpr (kReversible<R, D>) {
      move(2, to, here.edge_after, there.edge_after, here.after, there.after);
      move(3, to, here.edge_before, there.edge_before, here.before, there.before);
    }
  }
  if (lanes.lane == neighbours % L::W && here.after != 0 && s.routes < in.vehicles)
    consider(neighbours * kKinds, d.length(c, 0) + d.length(0, here.after) - here.edge_after);
  best = lanes.best(best);
  if (best.route == kNever) return false;
  const TailMove move = tail_move<R, D>(in, s, c, neighbours, best.route);
  draft_move<R>(in, d, s, draft, move, best.cost, lanes);
  return true;
}

}  // namespace nds::inline NDS_ISA
