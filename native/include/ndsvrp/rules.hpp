// The constraints, one struct (a rule) each. A rule declares the state that it keeps and the operations on it. `Rules`
// composes any set of rules; all other code is written once for every composition and never asks which rules it
// consists of.
//
// To add a rule: a struct derived from AnyRule that overrides what it needs, and its entry in AllRules. Numbers that it
// reads are fields of Instance. A rule has up to four kinds of state:
//   Route   numbers of a route
//   Prefix  numbers of a stop, about the route up to it
//   Suffix  numbers of a stop, about the route from it on
//   Node    numbers of a node of a solution
// Each is a template over T: i32 for values, i32* for arrays. `each_route(a, b, call)` and the like call call(a.field,
// b.field) for each field: layout, copies and registers follow from that.
//
// These structs belong to no instruction set, as solutions contain their state. All functions are always inlined, so
// that no two builds share code.
#pragma once
#include "compose.hpp"

namespace nds {

struct Capacity : AnyRule<Capacity> {
  static constexpr const char* name = "Capacity";
  static constexpr bool active(const Instance&) { return true; }

  template <class T> struct Route {
    T load;
  };
  NDS_FN static void each_route(auto& a, auto& b, auto call) { call(a.load, b.load); }
  NDS_FN static void each_input(Instance& in, auto call) { call(in.demand); }

  struct Probe : AnyRule::Probe {
    i32 demand, room;
    NDS_FN Probe(const Instance& in, i32 c) : AnyRule::Probe(in, c), demand(in.demand[c]), room(in.capacity - demand) {}
    NDS_FN bool fits_route(const auto& route) const { return route.load <= room; }
    NDS_FN void extend(auto& route, i32) const { route.load += demand; }
  };
  NDS_FN static void add(const Instance& in, i32 c, auto& route) { route.load += in.demand[c]; }
  NDS_FN static void cut(const Instance& in, const auto& at, i32 first, i32 p, const auto& route, auto& head,
                         auto& tail) {
    i32 load = 0;
    NDS_ROLLED
    for (i32 q = first + 1; q <= first + p; ++q) load += in.demand[at.node[q]];
    head.load = load, tail.load = route.load - load;
  }
  NDS_FN static bool fits_joined(const Instance& in, const auto& head, const auto&, const auto& tail, const auto&,
                                 const Way&) {
    return head.load <= in.capacity - tail.load;  // the sum of the two may overflow
  }
};

struct TimeWindows : AnyRule<TimeWindows> {
  static constexpr const char* name = "TimeWindows";
  static constexpr bool active(const Instance& in) { return in.due != nullptr; }
  static constexpr bool uses_time = true, refreshes = true;

  template <class T> struct Prefix {
    T depart;  // earliest departure
  };
  template <class T> struct Suffix {
    T latest;  // latest start of service that keeps the rest of the route feasible
  };
  NDS_FN static void each_prefix(auto& a, auto& b, auto call) { call(a.depart, b.depart); }
  NDS_FN static void each_suffix(auto& a, auto& b, auto call) { call(a.latest, b.latest); }
  NDS_FN static void each_input(Instance& in, auto call) { call(in.ready), call(in.due), call(in.service); }

  struct Probe : AnyRule::Probe {
    i32 ready, due, service;
    NDS_FN Probe(const Instance& in, i32 c)
        : AnyRule::Probe(in, c), ready(in.ready[c]), due(in.due[c]), service(in.service[c]) {}
    NDS_FN bool fits_position(const auto&, const auto& before, const auto& after, const Ways& ways, i32) const {
      const i32 start = most(before.depart + ways.time_to, ready);
      return (start <= due) & (start + service + ways.time_from <= after.latest);
    }
    // Departures and latest starts increase along a route.
    NDS_FN void narrow(const auto& at, i32 first, i32& begin, i32& end) const {
      const i32 *depart = at.depart + first, *latest = at.latest + first + 1, served = ready + service;
      i32 early = 0, late = 0;
      for (i32 p = begin; p < end; ++p) {
        early += i32(latest[p] < served);
        late += i32(due < depart[p]);
      }
      begin += early, end -= late;
    }
  };

  NDS_FN static void begin(const Instance& in, auto& prefix) { prefix.depart = in.ready[0]; }
  NDS_FN static void end(const Instance& in, auto& suffix) { suffix.latest = in.due[0]; }

  // Travel time from stop p to the next. Between points it is the length.
  template <class D> NDS_FN static i32 travel(const D& d, const auto& at, i32 p) {
    if constexpr (D::symmetric) return at.edge[p];
    return d.time(at.node[p], at.node[p + 1]);
  }
  // Earliest departures of stops p … last, given that of the stop before p.
  NDS_FN static void go_forward(const Instance& in, const auto& d, const auto& at, i32 p, i32 last, i32 depart,
                                auto lanes) {
    for (i32 begin = p; begin <= last; begin += lanes.W) {
      const i32 q = begin + lanes.lane;
      MaxPlus stop{0, -kEver};
      if (q <= last) {
        const i32 node = at.node[q], service = in.service[node];
        stop = MaxPlus{travel(d, at, q - 1) + service, in.ready[node] + service};
      }
      stop = lanes.up_to(stop);
      const i32 value = bounded(d, most(depart + stop.a, stop.b));
      if (q <= last) at.depart[q] = value;
      depart = lanes.from(value, lanes.W - 1);
    }
  }
  // Latest starts of stops p … first, given that of the stop after p: the same with opposite signs.
  NDS_FN static void go_back(const Instance& in, const auto& d, const auto& at, i32 p, i32 first, i32 latest,
                             auto lanes) {
    for (i32 begin = p; begin >= first; begin -= lanes.W) {
      const i32 q = begin - lanes.lane;
      MaxPlus stop{0, -kEver};
      if (q >= first) {
        const i32 node = at.node[q];
        stop = MaxPlus{travel(d, at, q) + in.service[node], -in.due[node]};
      }
      stop = lanes.up_to(stop);
      const i32 value = -bounded(d, most(stop.a - latest, stop.b));
      if (q >= first) at.latest[q] = value;
      latest = lanes.from(value, lanes.W - 1);
    }
  }

  NDS_FN static void refresh(const Instance& in, const auto& d, const auto& at, i32 first, i32 size, auto&,
                             auto lanes) {
    const i32 last = first + size + 1, opens = in.ready[0], closes = in.due[0];
    if (lanes.leads()) at.depart[first] = opens, at.latest[last] = closes;
    go_forward(in, d, at, first + 1, last, opens, lanes);
    go_back(in, d, at, last - 1, first, closes, lanes);
    lanes.sync();
  }

  // No service starts after the due date.
  NDS_FN static bool feasible(const Instance& in, const auto& at, i32 first, i32 size, const auto&, auto lanes) {
    bool fine = true;
    for (i32 p = first + 1 + lanes.lane; p <= first + size + 1; p += lanes.W) {
      const i32 node = at.node[p];
      fine &= at.depart[p] - in.service[node] <= in.due[node];
    }
    return lanes.ballot(!fine) == 0;
  }

  NDS_FN static bool fits_joined(const Instance&, const auto&, const auto& before, const auto&, const auto& after,
                                 const Way& way) {
    return before.depart + way.time <= after.latest;
  }

  NDS_FN static bool follow(const Instance& in, i32 c, i32 travel, auto& prefix) {
    const i32 start = most(prefix.depart + travel, in.ready[c]);
    prefix.depart = start + in.service[c];
    return start <= in.due[c];
  }
  NDS_FN static void precede(const Instance& in, i32 c, i32 travel, auto& suffix) {
    suffix.latest = least(suffix.latest - travel - in.service[c], in.due[c]);
  }

  // A single lane goes forward and back until nothing changes; several lanes compute all times.
  NDS_FN static void inserted(const Instance& in, const auto& d, const auto& at, i32 first, i32 size, i32 p,
                              auto lanes) {
    const i32 last = first + size + 1;
    if constexpr (lanes.W > 1) {
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
  NDS_FN static i32 depart(const Instance& in, const auto& d, const auto& at, i32 p) {
    const i32 b = at.node[p];
    return most(at.depart[p - 1] + travel(d, at, p - 1), in.ready[b]) + in.service[b];
  }
  NDS_FN static i32 latest(const Instance& in, const auto& d, const auto& at, i32 p) {
    const i32 a = at.node[p];
    return least(at.latest[p + 1] - travel(d, at, p) - in.service[a], in.due[a]);
  }
};

// Customers may stay unserved: for their prize, or because the fleet is limited. One lane keeps the list of unserved
// customers, all lanes count them.
struct Prizes : AnyRule<Prizes> {
  static constexpr const char* name = "Prizes";
  static constexpr bool active(const Instance& in) { return in.prize != nullptr; }
  static constexpr i32 kRetries = 16;

  template <class T> struct Node {
    T unserved, unserved_at;  // the list, and where each of its customers stands in it
  };
  NDS_FN static void each_node(auto& a, auto& b, auto call) {
    call(a.unserved, b.unserved), call(a.unserved_at, b.unserved_at);
  }
  NDS_FN static void each_input(Instance& in, auto call) { call(in.prize); }

  // What serving a customer is worth beyond its prize. Costs of solutions are without it.
  NDS_FN static i64 bonus(const Instance& in, i32 c) {
    const i32 code = in.prize[c];
    return code <= kDear ? in.bonus : code == kRequired ? in.unit_bonus * in.weight[c] - in.relief : 0;
  }
  NDS_FN static i64 prize(const Instance& in, i32 c) {
    const i32 code = in.prize[c];
    if (code <= kDear) return code + in.bonus;
    if (code == kRequired) return in.missing + bonus(in, c);
    return i64((1 << kDearBits) | (code & ((1 << kDearBits) - 1))) << ((code - kDear) >> kDearBits);
  }
  NDS_FN static i64 lost(const Instance& in, i32 c) { return prize(in, c) - bonus(in, c); }
  // Ties go to leaving the customer unserved. No insertion costs as much as a dear customer.
  NDS_FN static i32 limit(const Instance& in, i32 c) { return in.prize[c] > kDear ? kNever : in.prize[c] + in.bonus; }
  NDS_FN static bool opens(const Instance& in, i32 routes, bool fits, bool pays, auto coin) {
    return routes < in.vehicles && fits && (pays || coin());
  }

  NDS_FN static void clear(const Instance& in, auto& s, auto lanes) {
    i64 cost = 0;
    i32 required = 0;
    for (i32 c = 1 + lanes.lane; c <= in.n; c += lanes.W) {
      s.unserved[c - 1] = c;
      s.unserved_at[c] = c - 1;
      required += in.prize[c] == kRequired;
      cost += lost(in, c);
    }
    s.unserved_count = in.n;
    s.unserved_required = i32(lanes.sum(required));
    s.cost = lanes.sum(cost);
  }

  // Each lane brings a stop of a route, `node[lane]`: customer c, if it is `there`.
  NDS_FN static void serve(const Instance& in, auto& s, const i32* node, i32 c, bool there, auto lanes) {
    u32 back = lanes.ballot(there && s.route_of[c] < 0);
    for (; back != 0; back &= back - 1) {
      const i32 served = node[first_bit(back)];
      --s.unserved_count;
      if (lanes.leads()) {
        const i32 last = s.unserved[s.unserved_count];
        s.unserved[s.unserved_at[served]] = last;
        s.unserved_at[last] = s.unserved_at[served];
      }
      s.unserved_required -= in.prize[served] == kRequired;
      s.cost += bonus(in, served);
    }
  }

  NDS_FN static void leave(const Instance& in, auto& s, const i32* customers, i32 count, auto lanes) {
    for (i32 i = 0; i < count; ++i) {
      const i32 c = customers[i];
      const bool served = s.route_of[c] >= 0;
      lanes.sync();
      if (!served) continue;
      if (lanes.leads()) {
        s.route_of[c] = -1;
        s.unserved_at[c] = s.unserved_count;
        s.unserved[s.unserved_count] = c;
      }
      ++s.unserved_count;
      s.unserved_required += in.prize[c] == kRequired;
      s.cost -= bonus(in, c);
    }
    lanes.sync();
  }
};

// The distance and the duration of a route are limited. A duration counts travel, service and waiting, for the
// departure that makes it least. With the departure t, a route returns at max(t + busy, finish), if t is at most
// `departure`: so its duration is at least `busy` and at least finish - departure, and the larger of the two is
// reached.
struct RouteLimits : AnyRule<RouteLimits> {
  static constexpr const char* name = "RouteLimits";
  static constexpr bool active(const Instance& in) { return in.max_distance > 0; }
  static constexpr bool uses_time = true, refreshes = true, links = false;
  static constexpr i32 kAfter = 3;  // rules: windows and prizes may restrict nothing

  template <class T> struct Route {
    T distance;
  };
  template <class T> struct Prefix {
    T busy;       // travel and service since the departure
    T earliest;   // earliest departure from here, however early the route begins
    T departure;  // latest departure from the depot that is in time up to here
  };
  template <class T> struct Suffix {
    T left;    // travel and service from the start of service here to the return
    T finish;  // earliest return, however early the service here starts
  };
  NDS_FN static void each_route(auto& a, auto& b, auto call) { call(a.distance, b.distance); }
  NDS_FN static void each_prefix(auto& a, auto& b, auto call) {
    call(a.busy, b.busy), call(a.earliest, b.earliest), call(a.departure, b.departure);
  }
  NDS_FN static void each_suffix(auto& a, auto& b, auto call) { call(a.left, b.left), call(a.finish, b.finish); }

  struct Probe : AnyRule::Probe {
    i32 ready, due, service, max_distance, max_duration;
    NDS_FN Probe(const Instance& in, i32 c)
        : AnyRule::Probe(in, c),
          ready(in.ready[c]),
          due(in.due[c]),
          service(in.service[c]),
          max_distance(in.max_distance),
          max_duration(in.max_duration) {}
    NDS_FN bool fits_position(const auto& route, const auto& before, const auto& after, const Ways& ways,
                              i32 cost) const {
      const i32 onward = service + ways.time_from, rest = onward + after.left;
      const i32 start = most(before.earliest + ways.time_to, ready);
      const i32 finish = most(start + rest, after.finish);
      const i32 latest = least(due, after.latest - onward) - ways.time_to - before.busy;
      return (route.distance + cost <= max_distance) & (before.busy + ways.time_to + rest <= max_duration) &
             (finish - least(before.departure, latest) <= max_duration);
    }
    NDS_FN void extend(auto& route, i32 cost) const { route.distance = least(route.distance + cost, kEver); }
  };

  NDS_FN static void begin(const Instance&, auto& prefix) {
    prefix.busy = 0, prefix.earliest = -kEver, prefix.departure = kEver;
  }
  NDS_FN static void end(const Instance&, auto& suffix) { suffix.left = 0, suffix.finish = -kEver; }

  // Prefixes of stops p … last, given that of the stop before p.
  NDS_FN static void go_forward(const Instance& in, const auto& d, const auto& at, i32 p, i32 last, auto lanes) {
    i32 busy = at.busy[p - 1], earliest = at.earliest[p - 1], departure = at.departure[p - 1];
    for (i32 begin = p; begin <= last; begin += lanes.W) {
      const i32 q = begin + lanes.lane;
      MaxPlus stop{0, -kEver};
      i32 service = 0, due = kEver;
      if (q <= last) {
        const i32 node = at.node[q];
        service = in.service[node], due = in.due[node];
        stop = MaxPlus{TimeWindows::travel(d, at, q - 1) + service, in.ready[node] + service};
      }
      stop = lanes.up_to(stop);
      const i32 busy_here = bounded(d, busy + stop.a);
      const i32 earliest_here = bounded(d, most(earliest + stop.a, stop.b));
      const i32 latest = due - (busy_here - service);  // departure that is in time here
      const i32 departure_here = least(departure, -lanes.up_to(MaxPlus{0, -latest}).b);
      if (q <= last) at.busy[q] = busy_here, at.earliest[q] = earliest_here, at.departure[q] = departure_here;
      busy = lanes.from(busy_here, lanes.W - 1), earliest = lanes.from(earliest_here, lanes.W - 1);
      departure = lanes.from(departure_here, lanes.W - 1);
    }
  }
  // Suffixes of stops p … first, given that of the stop after p.
  NDS_FN static void go_back(const Instance& in, const auto& d, const auto& at, i32 p, i32 first, auto lanes) {
    i32 left = at.left[p + 1], finish = at.finish[p + 1];
    for (i32 begin = p; begin >= first; begin -= lanes.W) {
      const i32 q = begin - lanes.lane;
      i32 time = 0, ready = -kEver;
      if (q >= first) {
        const i32 node = at.node[q];
        time = in.service[node] + TimeWindows::travel(d, at, q), ready = in.ready[node];
      }
      const i32 left_here = bounded(d, left + lanes.up_to(MaxPlus{time, 0}).a);
      const i32 forced = q >= first ? ready + left_here : -kEver;
      const i32 finish_here = most(finish, lanes.up_to(MaxPlus{0, forced}).b);
      if (q >= first) at.left[q] = left_here, at.finish[q] = finish_here;
      left = lanes.from(left_here, lanes.W - 1), finish = lanes.from(finish_here, lanes.W - 1);
    }
  }

  NDS_FN static void refresh(const Instance& in, const auto& d, const auto& at, i32 first, i32 size, auto& route,
                             auto lanes) {
    const i32 last = first + size + 1;
    i64 distance = 0;
    for (i32 p = first + lanes.lane; p < last; p += lanes.W) distance += at.edge[p];
    distance = lanes.sum(distance);
    route.distance = distance < kEver ? i32(distance) : kEver;
    if (lanes.leads()) {
      at.busy[first] = at.left[last] = 0;
      at.earliest[first] = at.finish[last] = -kEver, at.departure[first] = kEver;
    }
    lanes.sync();
    go_forward(in, d, at, first + 1, last, lanes);
    go_back(in, d, at, last - 1, first, lanes);
    lanes.sync();
  }
  NDS_FN static void inserted(const Instance& in, const auto& d, const auto& at, i32 first, i32 size, i32 p,
                              auto lanes) {
    go_forward(in, d, at, p, first + size + 1, lanes);
    go_back(in, d, at, p, first, lanes);
    lanes.sync();
  }
  NDS_FN static bool feasible(const Instance& in, const auto& at, i32 first, i32 size, const auto& route, auto) {
    const i32 last = first + size + 1;
    const i32 duration = most(at.busy[last], at.earliest[last] - at.departure[last]);
    return (route.distance <= in.max_distance) & (duration <= in.max_duration);
  }
  NDS_FN static void cut(const Instance&, const auto& at, i32 first, i32 p, const auto& route, auto& head, auto& tail) {
    i32 distance = 0;
    for (i32 q = first; q < first + p; ++q) distance += at.edge[q];
    head.distance = distance, tail.distance = route.distance - distance - at.edge[first + p];
  }
  NDS_FN static bool fits_joined(const Instance& in, const auto& head, const auto& before, const auto& tail,
                                 const auto& after, const Way& way) {
    const i32 finish = most(before.earliest + way.time + after.left, after.finish);
    const i32 departure = least(before.departure, after.latest - way.time - before.busy);
    return (head.distance + way.length <= in.max_distance - tail.distance) &
           (before.busy + way.time <= in.max_duration - after.left) & (finish - departure <= in.max_duration);
  }
};

// All rules there are. The first one is part of every composition.
using AllRules = Rules<Capacity, TimeWindows, Prizes, RouteLimits>;

inline namespace NDS_ISA {

// Call call.operator()<R>() for the composition R of those rules that are chosen: chosen.operator()<Rule>() tells
// which.
template <class... Taken> auto with_rules(Rules<Taken...>, Rules<>, auto, auto call) {
  return call.template operator()<Rules<Taken...>>();
}
template <class... Taken, class Next, class... Rest>
auto with_rules(Rules<Taken...> taken, Rules<Next, Rest...>, auto chosen, auto call) {
  if constexpr (sizeof...(Taken) > 0) {
    if (!chosen.template operator()<Next>()) return with_rules(taken, Rules<Rest...>{}, chosen, call);
  }
  if constexpr (sizeof...(Taken) < Next::kAfter) {
    return with_rules(taken, Rules<Rest...>{}, chosen, call);
  } else {
    return with_rules(Rules<Taken..., Next>{}, Rules<Rest...>{}, chosen, call);
  }
}
auto with_rules(const Instance& in, auto call) {
  return with_rules(Rules<>{}, AllRules{}, [&]<class Rule>() { return Rule::active(in); }, call);
}

}  // namespace NDS_ISA
}  // namespace nds
