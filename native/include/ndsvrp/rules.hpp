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
  };
  template <class D>
  NDS_FN static void refresh(const Instance&, const D&, const Places&, i32, i32) {}
  template <class D>
  NDS_FN static void inserted(const Instance&, const D&, const Places&, i32, i32, i32) {}
  NDS_FN static bool in_time(const Instance&, const Places&, i32, i32) { return true; }
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
      i32 start = most(at.depart[p] + to, ready);
      return (start <= due) & (start + service + from <= at.latest[p + 1]);
    }
  };

  // Travel time from place p to the next; along points it is the length of the edge.
  template <class D> NDS_FN static i32 travel(const D& d, const Places& at, i32 p) {
    if constexpr (D::symmetric) return at.edge[p];
    return d.time(at.node[p], at.node[p + 1]);
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

  // The whole route of `size` customers that begins at place `first`.
  template <class D>
  NDS_FN static void refresh(const Instance& in, const D& d, const Places& at, i32 first,
                             i32 size) {
    const i32 last = first + size + 1;
    at.depart[first] = in.ready[0];
    for (i32 p = first + 1; p <= last; ++p) at.depart[p] = depart(in, d, at, p);
    at.latest[last] = in.due[0];
    for (i32 p = last - 1; p >= first; --p) at.latest[p] = latest(in, d, at, p);
  }

  // Whether it starts nowhere after the due date.
  NDS_FN static bool in_time(const Instance& in, const Places& at, i32 first, i32 size) {
    bool fine = true;
    for (i32 p = first + 1; p <= first + size + 1; ++p) {
      const i32 node = at.node[p];
      fine &= at.depart[p] - in.service[node] <= in.due[node];
    }
    return fine;
  }

  // A customer has been put at place p: forwards and backwards until nothing changes any more.
  template <class D>
  NDS_FN static void inserted(const Instance& in, const D& d, const Places& at, i32 first, i32 size,
                              i32 p) {
    const i32 last = first + size + 1;
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
  };
  template <class D>
  NDS_FN static void refresh(const Instance& in, const D& d, const Places& at, i32 first,
                             i32 size) {
    (Rule::refresh(in, d, at, first, size), ...);
  }
  template <class D>
  NDS_FN static void inserted(const Instance& in, const D& d, const Places& at, i32 first, i32 size,
                              i32 p) {
    (Rule::inserted(in, d, at, first, size, p), ...);
  }
  NDS_FN static bool in_time(const Instance& in, const Places& at, i32 first, i32 size) {
    return (Rule::in_time(in, at, first, size) && ...);
  }
  // What it costs to leave the customer out.
  NDS_FN static i64 prize(const Instance& in, i32 c) {
    if constexpr (optional) return in.prize[c] == kRequired ? kMissing : in.prize[c];
    return 0;
  }
};

}  // namespace NDS_ISA
}  // namespace nds
