// Reinsertion by a crew that waits for nothing but itself: a step at a time on an otherwise idle
// multiprocessor, where every access and every exchange between lanes counts.
//
// A gap is where a customer can go: two neighbours of a route under reconstruction. Gaps need not
// stand in order. Each lane holds some of them in its registers, those of the stripped routes at
// fixed places of a table that all teams share, and those that insertions make, two each time. What
// the stripped routes' nodes are away from each removed customer is computed once for all orders.
// Nothing is copied, moved or written until a draft is accepted: then every gap knows its place.
#pragma once
#include "insert.hpp"

namespace nds {
inline namespace NDS_ISA {

// Gaps of the stripped routes that a lane can hold, in three sizes; with their times they take more
// registers.
template <class R> inline constexpr i32 kSmall = R::windows ? 3 : 4;
template <class R> inline constexpr i32 kMedium = R::windows ? 6 : 8;
template <class R> inline constexpr i32 kLarge = R::windows ? 12 : 16;
constexpr i32 kFresh = 2;   // and of those that insertions make
constexpr i32 kAtOnce = 4;  // places that are measured together
constexpr i32 kPlaceBits = 16;
constexpr i32 kGone = -1;  // the key of no gap

// Gaps at the same cost are tried in the order of their keys.
NDS_FN i32 key_of_gap(i32 route, i32 place) { return route << kPlaceBits | place; }
NDS_FN i32 route_of_gap(i32 key) { return key >> kPlaceBits; }
NDS_FN i32 place_of_gap(i32 key) { return key & ((1 << kPlaceBits) - 1); }
NDS_FN bool same_route(i32 key, i32 other) { return u32(key ^ other) < (1u << kPlaceBits); }

// The routes of the removed customers, each in the hands of one lane.
struct Touched {
  i32 route;           // the lane's, if it is a leader
  i32 first;           // its first place in the stripped draft
  u32 leaders, empty;  // lanes with a route, lanes whose route has nobody left
  i32 places;          // of all
};

template <class L>
NDS_FN Touched touched_routes(const Solution& s, const i32* removed, i32 count, L lanes) {
  const i32 route = lanes.lane < count ? s.route_of[removed[lanes.lane]] : -1;
  const u32 alike = lanes.alike(route);
  const bool leads = route >= 0 && first_bit(alike) == lanes.lane;
  const i32 size = leads ? s.size[route] - count_bits(alike) : 0;
  const i32 places = leads ? size + 2 : 0;
  const i32 up_to = lanes.up_to(MaxPlus{places, 0}).a;
  return Touched{route, up_to - places, lanes.ballot(leads), lanes.ballot(leads && size == 0),
                 lanes.from(up_to, L::W - 1)};
}

// Whether the lanes can hold what a step is about.
template <class D, class L>
NDS_FN bool fits_hands(const Instance& in, const D& d, const Solution& s, const Table& table,
                       i32 count, L) {
  constexpr i32 limit = 1 << (31 - kPlaceBits);
  return count <= least(table.rows, L::W) && s.routes + L::W < limit && in.n < limit && d.quick();
}
template <class R, class L> NDS_FN bool fits_hands(const Table& table, const Touched& touched, L) {
  return touched.places <= least(table.columns, kLarge<R> * L::W);
}

// A team's share of the touched routes, without the removed customers. Returns the lane's share of
// the change in cost; `in_time` becomes false if a route is in time only with a customer removed.
template <class R, class D, class C>
NDS_FN i64 strip_share(const Instance& in, const D& d, const Solution& s, const Scratch& scratch,
                       const Touched& touched, bool& in_time, C crew) {
  const auto lanes = crew.lanes;
  const Places& at = scratch.stripped.at;
  const Table& table = scratch.table;
  i64 delta = 0;
  i32 team = 0;
  for (u32 left = touched.leaders; left != 0; left &= left - 1) {
    const bool mine = team == crew.team;
    team = team + 1 == crew.teams ? 0 : team + 1;
    if (!mine) continue;
    const i32 leader = first_bit(left);
    const i32 r = lanes.from(touched.route, leader), to = lanes.from(touched.first, leader);
    const Stripped rest = strip_route<R>(in, d, s, scratch.mark, at, to, r, lanes);
    for (i32 p = lanes.lane; p < rest.size + 2; p += C::Lanes::W) {
      const bool gap = rest.size > 0 && p <= rest.size;
      table.key[to + p] = gap ? key_of_gap(r, p) : kGone;
      table.load[to + p] = gap ? rest.load : kNever;
    }
    delta += rest.delta;
    if constexpr (R::windows) {
      lanes.sync();
      if (rest.size > 0) {
        R::refresh(in, d, at, to, rest.size, lanes);
        in_time = R::in_time(in, at, to, rest.size, lanes) && in_time;
      }
    }
  }
  return delta;
}

// Rows of the table: how far each removed customer is from each place of the stripped routes. A
// matrix is such a table itself.
template <class D, class C>
NDS_FN void measure(const D& d, const Scratch& scratch, i32 places, i32 count, C crew) {
  if constexpr (D::symmetric) {
    constexpr i32 W = C::Lanes::W;
    const Table& table = scratch.table;
    for (i32 begin = crew.lanes.lane; begin < places; begin += kAtOnce * W) {
      typename D::Spot spot[kAtOnce];
      NDS_UNROLL
      for (i32 j = 0; j < kAtOnce; ++j) {
        const i32 p = begin + j * W;
        spot[j] = d.spot(p < places ? scratch.stripped.at.node[p] : 0);
      }
      for (i32 row = crew.team; row < count; row += crew.teams) {
        const auto here = d.spot(scratch.removed[row]);
        i32* way = table.way + row * table.columns + begin;
        i32 length[kAtOnce];
        NDS_UNROLL
        for (i32 j = 0; j < kAtOnce; ++j) length[j] = d.length_between(spot[j], here);
        NDS_UNROLL
        for (i32 j = 0; j < kAtOnce; ++j) {
          if (begin + j * W < places) way[j * W] = length[j];
        }
      }
    }
  }
}

// A customer to be inserted.
template <class R, class D> struct Guest {
  i32 c, row, demand, prize;
  typename R::Probe probe;
  typename D::Spot spot;

  NDS_FN Guest(const Instance& in, const D& d, i32 c, i32 row)
      : c(c),
        row(row),
        demand(in.demand[c]),
        prize(R::optional && in.prize[c] != kRequired ? in.prize[c] : kNever),
        probe(in, c),
        spot(d.spot(c)) {}
};

// The ways there and onwards, and how long they take.
struct Ways {
  i32 to, from, time_to, time_from;
};

// The gap that was chosen, and what comes of it.
struct Filled {
  i32 key, before, after;  // the nodes on both sides
  i32 to, from;
  i32 load;  // of the route, the new customer counted in
};

// By halves, so that little depends on what comes before.
template <i32 Count> NDS_FN i32 least_in(const i32* values) {
  if constexpr (Count == 1) {
    return values[0];
  } else {
    constexpr i32 half = Count / 2;
    return least(least_in<half>(values), least_in<Count - half>(values + half));
  }
}

// What the lanes of a team hold of a draft: each so many slots for gaps of the stripped routes. The
// fewer, the less there is to do; that none is asked whether it is in use keeps the machine busy.
template <class R, class D, class L, i32 Slots, bool Blink> struct Hands {
  using Customer = Guest<R, D>;
  struct Fresh {
    i32 key, load, edge, before, after, depart, latest;
    typename D::Spot from, to;
  };

  const Places& at;  // the stripped draft
  const Table& table;
  i32 places;
  L lanes;
  i32 key[Slots], load[Slots], edge[Slots];
  i32 depart[Slots], latest[Slots];  // windows: of the node before, of the node after
  Fresh fresh[kFresh];
  i32 made = 0;  // fresh gaps of all lanes
  i32 opened = 0, left_outs = 0;
  i64 delta = 0;

  NDS_FN i32 place(i32 slot) const { return slot * L::W + lanes.lane; }

  template <class Call> NDS_FN void for_slots(Call call) {
    NDS_UNROLL
    for (i32 slot = 0; slot < Slots; ++slot) call(slot);
  }

  NDS_FN Hands(const D& d, const Scratch& scratch, i32 places, L lanes)
      : at(scratch.stripped.at),
        table(scratch.table),
        places(places),
        lanes(lanes) {
    for_slots([&](i32 slot) {
      const i32 p = place(slot);
      const bool there = p < places;
      key[slot] = there ? table.key[p] : kGone;
      load[slot] = there ? table.load[p] : kNever;
      edge[slot] = there ? at.edge[p] : 0;
      if constexpr (R::windows) {
        depart[slot] = there ? at.depart[p] : 0;
        latest[slot] = there ? at.latest[p + 1] : 0;
      }
    });
    NDS_UNROLL
    for (i32 i = 0; i < kFresh; ++i)
      fresh[i] = Fresh{kGone, kNever, 0, 0, 0, 0, 0, d.spot(0), d.spot(0)};
  }

  // Ways by the gap at place p of the stripped draft.
  NDS_FN Ways ways_at(const D& d, const Customer& guest, i32 p, bool there) const {
    if constexpr (D::symmetric) {
      const i32* way = table.way + guest.row * table.columns + p;
      const i32 to = way[0], from = way[1];
      return Ways{to, from, to, from};
    } else {
      const i32 before = there ? at.node[p] : 0, after = there ? at.node[p + 1] : 0;
      return ways_by(d, guest, before, after);
    }
  }
  NDS_FN Ways ways_by(const D& d, const Customer& guest, const typename D::Spot& before,
                      const typename D::Spot& after) const {
    const i32 to = d.length_between(before, guest.spot);
    const i32 from = d.length_between(guest.spot, after);
    if constexpr (R::windows && !D::symmetric)
      return Ways{to, from, d.time(before, guest.c), d.time(guest.c, after)};
    return Ways{to, from, to, from};
  }

  // What a gap costs; kNever if the customer does not fit, or the gap is overlooked.
  NDS_FN static i32 price(const Customer& guest, const Ways& ways, i32 key, i32 load, i32 edge,
                          i32 depart, i32 latest, const Blinks& blinks, i32 turn) {
    bool fits = (key != kGone) & guest.probe.fits_route(load);
    if constexpr (R::windows)
      fits &= guest.probe.fits_between(depart, latest, ways.time_to, ways.time_from);
    if constexpr (Blink) fits = fits && !blinks.at(turn, route_of_gap(key), place_of_gap(key));
    return fits ? ways.to + ways.from - edge : kNever;
  }

  // The best gap of the team, and its cost; false if there is none. Lanes look for the one they
  // offer, and fetch what the winner will be asked for, while the team finds out what the best
  // costs.
  NDS_FN bool choose(const D& d, const Customer& guest, const Blinks& blinks, i32 turn,
                     Filled& filled, i32& cost) {
    i32 costs[Slots], fresh_costs[kFresh];
    Ways fresh_ways[kFresh];
    NDS_UNROLL
    for (i32 i = 0; i < kFresh; ++i) {
      fresh_costs[i] = kNever, fresh_ways[i] = Ways{};
      if (i > 0 && i * L::W >= made) break;
      const Fresh& gap = fresh[i];
      fresh_ways[i] = ways_by(d, guest, gap.from, gap.to);
      fresh_costs[i] = price(guest, fresh_ways[i], gap.key, gap.load, gap.edge, gap.depart,
                             gap.latest, blinks, turn);
    }
    Ways ways[Slots];
    for_slots([&](i32 slot) { ways[slot] = ways_at(d, guest, place(slot), key[slot] != kGone); });
    for_slots([&](i32 slot) {
      costs[slot] = price(guest, ways[slot], key[slot], load[slot], edge[slot], depart[slot],
                          latest[slot], blinks, turn);
    });
    const i32 low = least(least_in<Slots>(costs), least_in<kFresh>(fresh_costs));
    cost = lanes.least_of(low);

    i32 keys[Slots], fresh_keys[kFresh];
    for_slots([&](i32 slot) { keys[slot] = costs[slot] == low ? key[slot] : kNever; });
    NDS_UNROLL
    for (i32 i = 0; i < kFresh; ++i) fresh_keys[i] = fresh_costs[i] == low ? fresh[i].key : kNever;
    i32 first = least(least_in<Slots>(keys), least_in<kFresh>(fresh_keys));
    if (low == kNever) first = kNever;  // which no gap has
    i32 where = 0, carried = 0;         // its place in the stripped draft, and its load
    for_slots([&](i32 slot) {
      const bool it = key[slot] == first;
      where = it ? place(slot) : where;
      carried = it ? load[slot] : carried;
    });
    i32 before = at.node[where], after = at.node[where + 1];
    // Where no route was touched, the draft is rubbish.
    Ways there = ways_at(d, guest, where, low != kNever && places > 0);
    NDS_UNROLL
    for (i32 i = 0; i < kFresh; ++i) {
      const bool it = fresh[i].key == first;
      carried = it ? fresh[i].load : carried;
      before = it ? fresh[i].before : before, after = it ? fresh[i].after : after;
      there.to = it ? fresh_ways[i].to : there.to;
      there.from = it ? fresh_ways[i].from : there.from;
    }
    if (cost >= guest.prize) return false;
    u32 tied = lanes.ballot(low == cost);
    if (tied & (tied - 1)) {
      const i32 best = lanes.least_of(low == cost ? first : kNever);
      tied = lanes.ballot(low == cost && first == best);
    }
    const i32 winner = first_bit(tied);
    filled.key = lanes.from(first, winner);
    filled.load = lanes.from(carried, winner) + guest.demand;
    filled.before = lanes.from(before, winner);
    filled.after = lanes.from(after, winner);
    filled.to = lanes.from(there.to, winner);
    filled.from = lanes.from(there.from, winner);
    return true;
  }

  // A filled gap goes, the places after it move up, and the load of its route grows.
  NDS_FN static void adapt(i32& key, i32& load, const Filled& filled) {
    const bool same = same_route(key, filled.key), gone = key == filled.key;
    const i32 later = key + i32(key > filled.key);
    key = same ? (gone ? kGone : later) : key;
    load = same ? filled.load : load;
  }

  // The customer is in: its gap becomes two.
  NDS_FN void fill(const Instance& in, const D& d, const Places& line, const Customer& guest,
                   const Filled& filled) {
    if constexpr (R::windows) leave_times(line, filled.key);
    for_slots([&](i32 slot) { adapt(key[slot], load[slot], filled); });
    NDS_UNROLL
    for (i32 i = 0; i < kFresh; ++i) {
      if (i * L::W < made) adapt(fresh[i].key, fresh[i].load, filled);
    }
    if constexpr (R::windows) keep_time(in, d, line, guest, filled);
    NDS_UNROLL
    for (i32 i = 0; i < kFresh; ++i) {
      const i32 number = i * L::W + lanes.lane - made;
      if ((number & ~1) != 0) continue;
      const bool second = number == 1;
      Fresh& gap = fresh[i];
      gap.key = filled.key + number, gap.load = filled.load;
      gap.edge = second ? filled.from : filled.to;
      gap.before = second ? guest.c : filled.before;
      gap.after = second ? filled.after : guest.c;
      gap.from = d.spot(gap.before), gap.to = d.spot(gap.after);
      if constexpr (R::windows) {
        gap.depart = line.depart[place_of_gap(gap.key)];
        gap.latest = line.latest[place_of_gap(gap.key) + 1];
      }
    }
    if constexpr (R::windows) lanes.sync();  // the next turn writes there
    made += 2;
  }

  // The gap that is to be filled leaves the times on both sides where the route will have them.
  NDS_FN void leave_times(const Places& line, i32 filled) {
    for_gaps([&](i32& key, i32&, i32&, i32, i32, i32& depart, i32& latest) {
      if (key != filled) return;
      line.depart[place_of_gap(key)] = depart;
      line.latest[place_of_gap(key) + 2] = latest;
    });
  }

  // The times of a route after an insertion: its gaps write it down in order, and read what it has
  // come to.
  NDS_FN void keep_time(const Instance& in, const D& d, const Places& line, const Customer& guest,
                        const Filled& filled) {
    const i32 here = place_of_gap(filled.key);
    i32 size = here + 1;
    for_gaps([&](i32& key, i32&, i32& edge, i32 before, i32, i32& depart, i32& latest) {
      if (!same_route(key, filled.key)) return;
      const i32 p = place_of_gap(key);
      line.node[p] = before, line.edge[p] = edge;
      line.depart[p] = depart, line.latest[p + 1] = latest;
      size = most(size, p);
    });
    size = lanes.most_of(size);
    if (lanes.leads()) {
      line.node[here] = filled.before, line.edge[here] = filled.to;
      line.node[here + 1] = guest.c, line.edge[here + 1] = filled.from;
      line.node[size + 1] = 0;
      if (size == 1) line.depart[0] = in.ready[0], line.latest[2] = in.due[0];
    }
    lanes.sync();
    R::inserted(in, d, line, 0, size, here + 1, lanes);
    for_gaps([&](i32& key, i32&, i32&, i32, i32, i32& depart, i32& latest) {
      if (!same_route(key, filled.key)) return;
      depart = line.depart[place_of_gap(key)];
      latest = line.latest[place_of_gap(key) + 1];
    });
  }

  template <class Call> NDS_FN void for_gaps(Call call) {
    for_slots([&](i32 slot) {
      if (key[slot] == kGone) return;
      const i32 p = place(slot);
      call(key[slot], load[slot], edge[slot], at.node[p], at.node[p + 1], depart[slot],
           latest[slot]);
    });
    NDS_UNROLL
    for (i32 i = 0; i < kFresh; ++i) {
      Fresh& gap = fresh[i];
      if (i * L::W >= made || gap.key == kGone) continue;
      call(gap.key, gap.load, gap.edge, gap.before, gap.after, gap.depart, gap.latest);
    }
  }
};

// Insert the customers one by one where each is cheapest, as put_back does; `index` is the lane's
// place in the list of the removed, for the turn that has its number.
template <class R, class D, class L, class H>
NDS_FN void put_back_by_gaps(const Instance& in, const D& d, const Solution& s, Scratch& scratch,
                             i32 index, i32 count, i32 routes, const Greedy& greedy, H& hands,
                             L lanes) {
  using Customer = Guest<R, D>;
  const i32 mine = scratch.removed[index];
  const auto customer = [&](i32 turn) {
    return Customer(in, d, lanes.from(mine, turn), lanes.from(index, turn));
  };
  Draft& own = scratch.trial;  // its places are free: a line of them is for the times of a route
  Customer next = customer(0);
  for (i32 turn = 0; turn < count; ++turn) {
    const Customer guest = next;
    Filled filled;
    i32 cost;
    const bool found = hands.choose(d, guest, greedy.blinks, turn, filled, cost);
    next = customer(least(turn + 1, count - 1));
    if (!found) {
      const i32 to = d.length(0, guest.c), from = d.length(guest.c, 0);
      if constexpr (R::optional) {
        const bool may = routes < in.vehicles && guest.probe.fits_route(0);
        const bool pays = to + from < guest.prize;
        if (!may || (!pays && u32(key_of(greedy.coin_key, u64(turn)) >> 32) >= greedy.open_route)) {
          if (lanes.leads()) own.left_out[hands.left_outs] = guest.c;
          ++hands.left_outs;
          continue;
        }
      }
      filled = Filled{key_of_gap(s.routes + hands.opened, 0), 0, 0, to, from, guest.demand};
      cost = to + from;
      ++hands.opened;
      ++routes;
    }
    hands.delta += i64(cost) - R::prize(in, guest.c);
    hands.fill(in, d, own.at, guest, filled);
  }
  lanes.sync();
}

// Slots for the routes of lanes with a size: those that outgrew theirs get new ones. Returns how
// many places of the pool are used then; `tight` after moving all other routes together.
template <class L>
NDS_FN i32 give_slots(Solution& s, i32 route, i32 size, i32 used, bool tight, L lanes) {
  i32 slot = 0;
  if (size > 0 && (tight || size + 2 > s.slot[route])) slot = slot_for(tight ? size : size + 2);
  const i32 up_to = lanes.up_to(MaxPlus{slot, 0}).a, total = lanes.from(up_to, L::W - 1);
  if (slot > 0 && used + total <= s.room) {
    s.first[route] = used + up_to - slot;
    s.slot[route] = slot;
  }
  return used + total;
}

// The solution takes on what the lanes hold.
template <class R, class L, class H>
NDS_FN void commit_gaps(const Instance& in, Solution& s, const Scratch& scratch,
                        const Touched& touched, H& hands, i64 delta, L lanes) {
  if constexpr (R::optional) leave_out(in, s, scratch.trial.left_out, hands.left_outs, lanes);
  const i32 before = s.routes;
  s.routes += hands.opened;
  // The last gap of a route knows its size.
  const bool leads = touched.leaders >> lanes.lane & 1, opens = lanes.lane < hands.opened;
  if (touched.empty >> lanes.lane & 1) s.size[touched.route] = 0;
  if (opens) s.slot[before + lanes.lane] = 0;
  hands.for_gaps([&](i32& key, i32& load, i32&, i32, i32 after, i32&, i32&) {
    if (after != 0) return;
    s.size[route_of_gap(key)] = place_of_gap(key);
    s.load[route_of_gap(key)] = load;
  });
  lanes.sync();
  const i32 old_size = leads ? s.size[touched.route] : 0;
  const i32 new_size = opens ? s.size[before + lanes.lane] : 0;
  i32 used = give_slots(s, touched.route, old_size, s.used, false, lanes);
  used = give_slots(s, before + lanes.lane, new_size, used, false, lanes);
  if (used > s.room) {
    if (leads) s.size[touched.route] = 0;  // what stands there is about to be replaced
    if (opens) s.size[before + lanes.lane] = 0;
    lanes.sync();
    compact<R>(s, scratch.spare, lanes);
    used = give_slots(s, touched.route, old_size, s.used, true, lanes);
    used = give_slots(s, before + lanes.lane, new_size, used, true, lanes);
    if (leads) s.size[touched.route] = old_size;
    if (opens) s.size[before + lanes.lane] = new_size;
  }
  s.used = used;
  lanes.sync();
  hands.for_gaps([&](i32& key, i32&, i32& edge, i32 node, i32 after, i32& depart, i32& latest) {
    const i32 route = route_of_gap(key), place = place_of_gap(key), p = s.first[route] + place;
    s.at.node[p] = node, s.at.edge[p] = edge;
    if (after == 0) s.at.node[p + 1] = 0;
    if constexpr (R::windows) s.at.depart[p] = depart, s.at.latest[p + 1] = latest;
    if constexpr (!R::optional) {
      if (place > 0) s.route_of[node] = route, s.place_of[node] = place;
    }
  });
  lanes.sync();
  if constexpr (R::optional) {
    // Those served again leave the list of the absent in the order of the routes' drafts.
    for (u32 left = touched.leaders & ~touched.empty; left != 0; left &= left - 1)
      note_customers<R>(in, s, lanes.from(touched.route, first_bit(left)), lanes);
    for (i32 i = 0; i < hands.opened; ++i) note_customers<R>(in, s, before + i, lanes);
  }
  drop_empty(s, count_bits(touched.empty), lanes);
  s.cost += delta;
}

// The boxes of all routes, which steps by gaps do not keep.
template <class C> NDS_FN void update_boxes(const Instance& in, Solution& s, C crew) {
  crew.sync();
  for (i32 r = crew.team; r < s.routes; r += crew.teams) update_box(in, s, r, crew.lanes);
  crew.sync();
}

}  // namespace NDS_ISA
}  // namespace nds
