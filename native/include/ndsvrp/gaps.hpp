// Positions as gaps: reinsertion by a crew that has a multiprocessor to itself, where every memory access and every
// exchange between lanes counts.
//
// A gap is a pair of consecutive stops of a route of the draft. Gaps need no order. Each lane holds some of them in its
// registers (gap_registers.hpp): those of the stripped routes, at fixed places of a table that all teams share, and
// those that insertions make, two each time. The lengths from the stripped routes to each removed customer are computed
// once for all insertion orders. Nothing is copied, moved or written until a draft is accepted: then every gap knows
// its position.
#pragma once
#include "recreate.hpp"

namespace nds::inline NDS_ISA {

// Gaps of the stripped routes that a lane can hold, in three sizes. The more state a gap has, the more registers it
// takes.
template <class R> inline constexpr i32 kLarge = 4 * (24 / (5 + R::kRouteFields + R::kStopFields));
template <class R> inline constexpr i32 kMedium = kLarge<R> / 2;
template <class R> inline constexpr i32 kSmall = kLarge<R> / 4;
constexpr i32 kFresh = 2;   // gaps made by insertions that a lane can hold
constexpr i32 kAtOnce = 4;  // stops that a lane measures together
constexpr i32 kStopBits = 16;
constexpr i32 kGone = -1;  // the key of an unused slot

// Gaps at the same cost are tried in the order of their keys.
NDS_FN i32 key_of_gap(i32 route, i32 stop) { return route << kStopBits | stop; }
NDS_FN i32 route_of_gap(i32 key) { return key >> kStopBits; }
NDS_FN i32 stop_of_gap(i32 key) { return key & ((1 << kStopBits) - 1); }
NDS_FN bool same_route(i32 key, i32 other) { return u32(key ^ other) < (1u << kStopBits); }

// The routes of the removed customers, one per lane.
struct Touched {
  i32 route;           // of the lane, if it leads one
  i32 first;           // its first stop in the stripped draft
  u32 leaders, empty;  // lanes with a route, lanes whose route is empty
  i32 stops;           // of all routes
};

NDS_FN Touched touched_routes(const Solution& s, const i32* removed, i32 count, auto lanes) {
  const i32 route = lanes.lane < count ? s.route_of[removed[lanes.lane]] : -1;
  const u32 alike = lanes.alike(route);
  const bool leads = route >= 0 && first_bit(alike) == lanes.lane;
  const i32 size = leads ? s.size[route] - count_bits(alike) : 0;
  const i32 stops = leads ? size + 2 : 0;
  const i32 up_to = lanes.up_to(MaxPlus{stops, 0}).a;
  return Touched{route, up_to - stops, lanes.ballot(leads), lanes.ballot(leads && size == 0),
                 lanes.from(up_to, lanes.W - 1)};
}

// Whether a step fits into the registers of the lanes.
template <class L>
NDS_FN bool fits_registers(const Instance& in, const auto& d, const Solution& s, const Table& table, i32 count, L) {
  constexpr i32 limit = 1 << (31 - kStopBits);
  return count <= least(table.rows, L::W) && s.routes + L::W < limit && in.n < limit && d.quick();
}
template <class R, class L> NDS_FN bool fits_registers(const Table& table, const Touched& touched, L) {
  return touched.stops <= least(table.columns, kLarge<R> * L::W);
}

// Strip a team's share of the touched routes. Returns the lane's share of the change in cost; `feasible` becomes false
// if a route is feasible only with its removed customers.
template <class R>
NDS_FN i64 strip_share(const Instance& in, const auto& d, const Solution& s, const Workspace& work,
                       const Touched& touched, bool& feasible, auto crew) {
  const auto lanes = crew.lanes;
  const Stops& at = work.stripped.at;
  const Table& table = work.table;
  i64 delta = 0;
  i32 team = 0;
  for (u32 left = touched.leaders; left != 0; left &= left - 1) {
    const bool mine = team == crew.team;
    team = team + 1 == crew.teams ? 0 : team + 1;
    if (!mine) continue;
    const i32 leader = first_bit(left);
    const i32 r = lanes.from(touched.route, leader), to = lanes.from(touched.first, leader);
    Stripped<R> rest = strip_route<R>(in, d, s, work.mark, at, to, r, lanes);
    delta += rest.delta;
    if constexpr (R::refreshes) {
      lanes.sync();
      if (rest.size > 0) {
        R::refresh(in, d, at, to, rest.size, rest.route, lanes);
        feasible = R::feasible(in, at, to, rest.size, rest.route, lanes) && feasible;
      }
    }
    for (i32 p = lanes.lane; p < rest.size + 2; p += crew.lanes.W) {
      table.key[to + p] = rest.size > 0 && p <= rest.size ? key_of_gap(r, p) : kGone;
      R::set_route(table, to + p, rest.route);
    }
  }
  return delta;
}

// Compute the rows of the table: lengths from each removed customer to each stop of the stripped routes. A matrix needs
// no table.
template <class D> NDS_FN void measure(const D& d, const Workspace& work, i32 stops, i32 count, auto crew) {
  if constexpr (D::symmetric) {
    constexpr i32 W = crew.lanes.W;
    const Table& table = work.table;
    for (i32 begin = crew.lanes.lane; begin < stops; begin += kAtOnce * W) {
      typename D::Spot spot[kAtOnce];
      unrolled<kAtOnce>([&](i32 j) {
        const i32 p = begin + j * W;
        spot[j] = d.spot(p < stops ? work.stripped.at.node[p] : 0);
      });
      for (i32 row = crew.team; row < count; row += crew.teams) {
        const auto here = d.spot(work.removed[row]);
        i32* way = table.way + row * table.columns + begin;
        i32 length[kAtOnce];
        unrolled<kAtOnce>([&](i32 j) { length[j] = d.length_between(spot[j], here); });
        unrolled<kAtOnce>([&](i32 j) {
          if (begin + j * W < stops) way[j * W] = length[j];
        });
      }
    }
  }
}

// Give new slots to those routes, one per lane, that outgrew theirs. Returns how many stops of the pool are used then.
// `tight`: all other routes were moved together.
NDS_FN i32 give_slots(Solution& s, i32 route, i32 size, i32 used, bool tight, auto lanes) {
  i32 slot = 0;
  if (size > 0 && (tight || size + 2 > s.slot[route])) slot = slot_for(tight ? size : size + 2);
  const i32 up_to = lanes.up_to(MaxPlus{slot, 0}).a, total = lanes.from(up_to, lanes.W - 1);
  if (slot > 0 && used + total <= s.room) {
    s.first[route] = used + up_to - slot;
    s.slot[route] = slot;
  }
  return used + total;
}

// Change the solution by the gaps in registers.
template <class R>
NDS_FN void commit_gaps(const Instance& in, Solution& s, const Workspace& work, const Touched& touched, auto& gaps,
                        i64 delta, auto lanes) {
  R::leave(in, s, work.trial.unserved, gaps.unserved_count, lanes);
  const i32 before = s.routes;
  s.routes += gaps.opened;
  // The last gap of a route has its size.
  const bool leads = touched.leaders >> lanes.lane & 1, opens = lanes.lane < gaps.opened;
  if (touched.empty >> lanes.lane & 1) s.size[touched.route] = 0;
  if (opens) s.slot[before + lanes.lane] = 0;
  gaps.for_gaps([&](auto& gap, i32, i32 after) {
    if (after != 0) return;
    s.size[route_of_gap(gap.key)] = stop_of_gap(gap.key);
    R::set_route(s, route_of_gap(gap.key), gap);
  });
  lanes.sync();
  const i32 old_size = leads ? s.size[touched.route] : 0;
  const i32 new_size = opens ? s.size[before + lanes.lane] : 0;
  i32 used = give_slots(s, touched.route, old_size, s.used, false, lanes);
  used = give_slots(s, before + lanes.lane, new_size, used, false, lanes);
  if (used > s.room) {
    if (leads) s.size[touched.route] = 0;  // its stops are about to be replaced
    if (opens) s.size[before + lanes.lane] = 0;
    lanes.sync();
    compact<R>(s, work.spare, lanes);
    used = give_slots(s, touched.route, old_size, s.used, true, lanes);
    used = give_slots(s, before + lanes.lane, new_size, used, true, lanes);
    if (leads) s.size[touched.route] = old_size;
    if (opens) s.size[before + lanes.lane] = new_size;
  }
  s.used = used;
  lanes.sync();
  gaps.for_gaps([&](auto& gap, i32 node, i32 after) {
    const i32 route = route_of_gap(gap.key), stop = stop_of_gap(gap.key), p = s.first[route] + stop;
    s.at.node[p] = node, s.at.edge[p] = gap.edge;
    if (after == 0) s.at.node[p + 1] = 0;
    R::set_prefix(s.at, p, gap), R::set_suffix(s.at, p + 1, gap);
    if constexpr (R::kNodeFields == 0) {
      if (stop > 0) s.route_of[node] = route, s.stop_of[node] = stop;
    }
  });
  lanes.sync();
  if constexpr (R::kNodeFields > 0) {  // state by node changes in the order of the routes' drafts
    for (u32 left = touched.leaders & ~touched.empty; left != 0; left &= left - 1)
      note_customers<R>(in, s, lanes.from(touched.route, first_bit(left)), lanes);
    for (i32 i = 0; i < gaps.opened; ++i) note_customers<R>(in, s, before + i, lanes);
  }
  drop_empty<R>(s, count_bits(touched.empty), lanes);
  s.cost += delta;
}

// Update the boxes of all routes, which steps by gaps do not maintain.
NDS_FN void update_boxes(const Instance& in, Solution& s, auto crew) {
  crew.sync();
  for (i32 r = crew.team; r < s.routes; r += crew.teams) update_box(in, s, r, crew.lanes);
  crew.sync();
}

}  // namespace nds::inline NDS_ISA
