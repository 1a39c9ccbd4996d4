// The constraints, one struct each: what is kept per place, whether a customer fits a route and a
// place, and what follows from an insertion. A set of rules is any combination of them.
#pragma once
#include "distance.hpp"

namespace nds {
inline namespace NDS_ISA {

// What a rule says unless it says otherwise.
struct AnyRoute {
  struct Probe {
    NDS_FN Probe(const Instance&, i32) {}
    NDS_FN static bool fits_route(i32) { return true; }
    NDS_FN static bool fits_place(const Places&, i32, i32, i32) { return true; }
    NDS_FN static bool fits_between(i32, i32, i32, i32) { return true; }
  };
  template <class D, class L>
  NDS_FN static void refresh(const Instance&, const D&, const Places&, i32, i32, L) {}
  template <class D, class L>
  NDS_FN static void inserted(const Instance&, const D&, const Places&, i32, i32, i32, L) {}
  template <class L> NDS_FN static bool in_time(const Instance&, const Places&, i32, i32, L) {
    return true;
  }
};

struct Capacity : AnyRoute {
  struct Probe : AnyRoute::Probe {
    i32 room;
    NDS_FN Probe(const Instance& in, i32 c)
        : AnyRoute::Probe(in, c),
          room(in.capacity - in.demand[c]) {}
    NDS_FN bool fits_route(i32 load) const { return load <= room; }
  };
};

struct TimeWindows : AnyRoute {
  struct Probe : AnyRoute::Probe {
    i32 ready, due, service;
    NDS_FN Probe(const Instance& in, i32 c)
        : AnyRoute::Probe(in, c),
          ready(in.ready[c]),
          due(in.due[c]),
          service(in.service[c]) {}
    // Between place p and the next one; `to` and `from` are the travel times there and onwards.
    NDS_FN bool fits_place(const Places& at, i32 p, i32 to, i32 from) const {
      return fits_between(at.depart[p], at.latest[p + 1], to, from);
    }
    // The same, given when the one before departs and when the one after must start.
    NDS_FN bool fits_between(i32 depart, i32 latest, i32 to, i32 from) const {
      const i32 start = most(depart + to, ready);
      return (start <= due) & (start + service + from <= latest);
    }
  };

  // Travel time from place p to the next; along points it is the length of the edge.
  template <class D> NDS_FN static i32 travel(const D& d, const Places& at, i32 p) {
    if constexpr (D::symmetric) return at.edge[p];
    return d.time(at.node[p], at.node[p + 1]);
  }
  static constexpr i32 kEver = 1 << 30;  // before and after all times

  // Earliest departures of places p … last, the one before p departing at `depart`.
  template <class D, class L>
  NDS_FN static void go_forward(const Instance& in, const D& d, const Places& at, i32 p, i32 last,
                                i32 depart, L lanes) {
    for (i32 begin = p; begin <= last; begin += L::W) {
      const i32 q = begin + lanes.lane;
      MaxPlus stop{0, -kEver};
      if (q <= last) {
        const i32 node = at.node[q], service = in.service[node];
        stop = MaxPlus{travel(d, at, q - 1) + service, in.ready[node] + service};
      }
      stop = lanes.up_to(stop);
      const i32 value = most(depart + stop.a, stop.b);
      if (q <= last) at.depart[q] = value;
      depart = lanes.from(value, L::W - 1);
    }
  }
  // Latest starts of places p … first, the one after p starting at `latest` at the latest. This is
  // the same with all signs turned around.
  template <class D, class L>
  NDS_FN static void go_back(const Instance& in, const D& d, const Places& at, i32 p, i32 first,
                             i32 latest, L lanes) {
    for (i32 begin = p; begin >= first; begin -= L::W) {
      const i32 q = begin - lanes.lane;
      MaxPlus stop{0, -kEver};
      if (q >= first) {
        const i32 node = at.node[q];
        stop = MaxPlus{travel(d, at, q) + in.service[node], -in.due[node]};
      }
      stop = lanes.up_to(stop);
      const i32 value = -most(stop.a - latest, stop.b);
      if (q >= first) at.latest[q] = value;
      latest = lanes.from(value, L::W - 1);
    }
  }

  // The whole route of `size` customers that begins at place `first`.
  template <class D, class L>
  NDS_FN static void refresh(const Instance& in, const D& d, const Places& at, i32 first, i32 size,
                             L lanes) {
    const i32 last = first + size + 1, opens = in.ready[0], closes = in.due[0];
    if (lanes.leads()) at.depart[first] = opens, at.latest[last] = closes;
    go_forward(in, d, at, first + 1, last, opens, lanes);
    go_back(in, d, at, last - 1, first, closes, lanes);
    lanes.sync();
  }

  // Whether it starts nowhere after the due date.
  template <class L>
  NDS_FN static bool in_time(const Instance& in, const Places& at, i32 first, i32 size, L lanes) {
    bool fine = true;
    for (i32 p = first + 1 + lanes.lane; p <= first + size + 1; p += L::W) {
      const i32 node = at.node[p];
      fine &= at.depart[p] - in.service[node] <= in.due[node];
    }
    return lanes.ballot(!fine) == 0;
  }

  // A customer has been put at place p: a single lane goes forwards and backwards until nothing
  // changes any more, several go all the way at once.
  template <class D, class L>
  NDS_FN static void inserted(const Instance& in, const D& d, const Places& at, i32 first, i32 size,
                              i32 p, L lanes) {
    const i32 last = first + size + 1;
    if constexpr (L::W > 1) {
      go_forward(in, d, at, p, last, at.depart[p - 1], lanes);
      go_back(in, d, at, p, first, at.latest[p + 1], lanes);
      lanes.sync();
    } else {
      at.depart[p] = depart(in, d, at, p);
      for (i32 q = p + 1; q <= last; ++q) {
        i32 value = depart(in, d, at, q);
        if (value == at.depart[q]) break;
        at.depart[q] = value;
      }
      at.latest[p] = latest(in, d, at, p);
      for (i32 q = p - 1; q >= first; --q) {
        i32 value = latest(in, d, at, q);
        if (value == at.latest[q]) break;
        at.latest[q] = value;
      }
    }
  }

  template <class D>
  NDS_FN static i32 depart(const Instance& in, const D& d, const Places& at, i32 p) {
    const i32 b = at.node[p];
    return most(at.depart[p - 1] + travel(d, at, p - 1), in.ready[b]) + in.service[b];
  }
  template <class D>
  NDS_FN static i32 latest(const Instance& in, const D& d, const Places& at, i32 p) {
    const i32 a = at.node[p];
    return least(at.latest[p + 1] - travel(d, at, p) - in.service[a], in.due[a]);
  }
};

// Customers that may be left out: for their prize, or because the fleet is limited.
struct Prizes : AnyRoute {
  struct Probe : AnyRoute::Probe {
    NDS_FN Probe(const Instance& in, i32 c) : AnyRoute::Probe(in, c) {}
  };
};

template <class A, class B> inline constexpr bool same = false;
template <class A> inline constexpr bool same<A, A> = true;

template <class... Rule> struct Rules {
  static constexpr bool windows = (same<Rule, TimeWindows> || ...);
  static constexpr bool optional = (same<Rule, Prizes> || ...);

  struct Probe : Rule::Probe... {
    NDS_FN Probe(const Instance& in, i32 c) : Rule::Probe(in, c)... {}
    NDS_FN bool fits_route(i32 load) const { return (Rule::Probe::fits_route(load) && ...); }
    NDS_FN bool fits_place(const Places& at, i32 p, i32 to, i32 from) const {
      return (Rule::Probe::fits_place(at, p, to, from) & ...);
    }
    NDS_FN bool fits_between(i32 depart, i32 latest, i32 to, i32 from) const {
      return (Rule::Probe::fits_between(depart, latest, to, from) & ...);
    }
  };
  template <class D, class L>
  NDS_FN static void refresh(const Instance& in, const D& d, const Places& at, i32 first, i32 size,
                             L lanes) {
    (Rule::refresh(in, d, at, first, size, lanes), ...);
  }
  template <class D, class L>
  NDS_FN static void inserted(const Instance& in, const D& d, const Places& at, i32 first, i32 size,
                              i32 p, L lanes) {
    (Rule::inserted(in, d, at, first, size, p, lanes), ...);
  }
  template <class L>
  NDS_FN static bool in_time(const Instance& in, const Places& at, i32 first, i32 size, L lanes) {
    return (Rule::in_time(in, at, first, size, lanes) && ...);
  }
  // What it costs to leave the customer out.
  NDS_FN static i64 prize(const Instance& in, i32 c) {
    if constexpr (optional) return in.prize[c] == kRequired ? kMissing : in.prize[c];
    return 0;
  }
};

}  // namespace NDS_ISA
}  // namespace nds
