// What every rule has, and how rules are composed; see rules.hpp.
#pragma once
#include "lanes.hpp"

namespace nds {

// Lengths and travel times from the stop before a position to the customer, and on to the stop
// after it.
struct Ways {
  i32 to, from, time_to, time_from;
};

// The defaults: no state, no restriction.
template <class Self> struct AnyRule {
  static constexpr bool uses_time = false;  // whether fits_position needs travel times
  static constexpr bool refreshes = false;  // whether `refresh` and `feasible` are not empty

  template <class T> struct Route {};
  template <class T> struct Prefix {};
  template <class T> struct Suffix {};
  template <class T> struct Node {};
  template <class A, class B, class Call> NDS_FN static void each_route(A&, B&, Call) {}
  template <class A, class B, class Call> NDS_FN static void each_prefix(A&, B&, Call) {}
  template <class A, class B, class Call> NDS_FN static void each_suffix(A&, B&, Call) {}
  template <class A, class B, class Call> NDS_FN static void each_node(A&, B&, Call) {}
  // Arrays of the instance, by node, that insertion reads.
  template <class Call> NDS_FN static void each_input(Instance&, Call) {}

  // One customer to insert.
  struct Probe {
    NDS_FN Probe(const Instance&, i32) {}
    // Whether the route can take the customer at any position.
    template <class Route> NDS_FN static bool fits_route(const Route&) { return true; }
    // Whether a position can: between a stop with this prefix and a stop with this suffix. `cost`
    // is the increase of the route's length.
    template <class Route, class Prefix, class Suffix>
    NDS_FN static bool fits_position(const Route&, const Prefix&, const Suffix&, const Ways&, i32) {
      return true;
    }
    // Whether the customer fits a route of its own.
    NDS_FN static bool fits_alone(const Ways&) { return true; }
    // The route's numbers after the insertion.
    template <class Route> NDS_FN static void extend(Route&, i32 /* cost */) {}
  };

  // Add the numbers of customer c to those of a set of customers.
  template <class Route> NDS_FN static void add(const Instance&, i32, Route&) {}
  // The state of the depot at both ends of a route.
  template <class Prefix> NDS_FN static void begin(const Instance&, Prefix&) {}
  template <class Suffix> NDS_FN static void end(const Instance&, Suffix&) {}
  // Compute the state of a route of `size` customers from stop `first` on.
  template <class D, class At, class Route, class L>
  NDS_FN static void refresh(const Instance&, const D&, const At&, i32, i32, Route&, L) {}
  // The same after a customer was inserted as stop p. Route numbers were extended before.
  template <class D, class At, class L>
  NDS_FN static void inserted(const Instance&, const D&, const At&, i32, i32, i32, L) {}
  // Whether a refreshed route is feasible.
  template <class At, class Route, class L>
  NDS_FN static bool feasible(const Instance&, const At&, i32, i32, const Route&, L) {
    return true;
  }

  // Cost of leaving customer c unserved, and the limit below which it is inserted instead.
  NDS_FN static i64 prize(const Instance&, i32) { return 0; }
  NDS_FN static i32 limit(const Instance&, i32) { return kNever; }
  // Whether to open a route for a customer without a position, given whether it fits there, whether
  // that costs less than the limit, and a random draw.
  template <class Coin> NDS_FN static bool opens(const Instance&, i32, bool, bool, Coin) {
    return true;
  }
  // Bookkeeping of unserved customers: all are; those of a lane's stop are served; these are not.
  template <class S, class L> NDS_FN static void clear(const Instance&, S&, L) {}
  template <class S, class L>
  NDS_FN static void serve(const Instance&, S&, const i32*, i32, bool, L) {}
  template <class S, class L> NDS_FN static void leave(const Instance&, S&, const i32*, i32, L) {}
  static constexpr i32 kRetries = 0;  // unserved customers added to a ruin, at most
};

template <class... Rule> struct Rules {
  template <class T> struct Route : Rule::template Route<T>... {};
  template <class T> struct Prefix : Rule::template Prefix<T>... {};
  template <class T> struct Suffix : Rule::template Suffix<T>... {};
  template <class T> struct Node : Rule::template Node<T>... {};
  static constexpr i32 kRouteFields = i32(((sizeof(typename Rule::template Route<i32>) / 4) + ...));
  static constexpr i32 kStopFields = i32(((sizeof(typename Rule::template Prefix<i32>) / 4 +
                                           sizeof(typename Rule::template Suffix<i32>) / 4) +
                                          ...));
  static constexpr i32 kNodeFields = i32(((sizeof(typename Rule::template Node<i32>) / 4) + ...));
  static constexpr bool uses_time = (Rule::uses_time || ...);
  static constexpr bool refreshes = (Rule::refreshes || ...);
  static constexpr i32 kRetries = (Rule::kRetries + ...);

  template <class A, class B, class Call> NDS_FN static void each_route(A& a, B& b, Call call) {
    (Rule::each_route(a, b, call), ...);
  }
  template <class A, class B, class Call> NDS_FN static void each_prefix(A& a, B& b, Call call) {
    (Rule::each_prefix(a, b, call), ...);
  }
  template <class A, class B, class Call> NDS_FN static void each_suffix(A& a, B& b, Call call) {
    (Rule::each_suffix(a, b, call), ...);
  }
  template <class A, class B, class Call> NDS_FN static void each_node(A& a, B& b, Call call) {
    (Rule::each_node(a, b, call), ...);
  }
  template <class Call> NDS_FN static void each_input(Instance& in, Call call) {
    (Rule::each_input(in, call), ...);
  }

  struct Probe : Rule::Probe... {
    NDS_FN Probe(const Instance& in, i32 c) : Rule::Probe(in, c)... {}
    template <class Route> NDS_FN bool fits_route(const Route& route) const {
      return (Rule::Probe::fits_route(route) & ...);
    }
    template <class Route, class Prefix, class Suffix>
    NDS_FN bool fits_position(const Route& route, const Prefix& before, const Suffix& after,
                              const Ways& ways, i32 cost) const {
      return (Rule::Probe::fits_position(route, before, after, ways, cost) & ...);
    }
    NDS_FN bool fits_alone(const Ways& ways) const {
      return (Rule::Probe::fits_alone(ways) && ...);
    }
    template <class Route> NDS_FN void extend(Route& route, i32 cost) const {
      (Rule::Probe::extend(route, cost), ...);
    }
  };

  template <class Route> NDS_FN static void add(const Instance& in, i32 c, Route& route) {
    (Rule::add(in, c, route), ...);
  }
  template <class State> NDS_FN static void begin(const Instance& in, State& state) {
    (Rule::begin(in, state), ...);
  }
  template <class State> NDS_FN static void end(const Instance& in, State& state) {
    (Rule::end(in, state), ...);
  }
  template <class D, class At, class Route, class L>
  NDS_FN static void refresh(const Instance& in, const D& d, const At& at, i32 first, i32 size,
                             Route& route, L lanes) {
    (Rule::refresh(in, d, at, first, size, route, lanes), ...);
  }
  template <class D, class At, class L>
  NDS_FN static void inserted(const Instance& in, const D& d, const At& at, i32 first, i32 size,
                              i32 p, L lanes) {
    (Rule::inserted(in, d, at, first, size, p, lanes), ...);
  }
  template <class At, class Route, class L>
  NDS_FN static bool feasible(const Instance& in, const At& at, i32 first, i32 size,
                              const Route& route, L lanes) {
    return (Rule::feasible(in, at, first, size, route, lanes) && ...);
  }
  NDS_FN static i64 prize(const Instance& in, i32 c) { return (Rule::prize(in, c) + ...); }
  NDS_FN static i32 limit(const Instance& in, i32 c) {
    i32 limit = kNever;
    ((limit = least(limit, Rule::limit(in, c))), ...);
    return limit;
  }
  template <class Coin>
  NDS_FN static bool opens(const Instance& in, const Probe& probe, i32 routes, const Ways& ways,
                           i32 limit, Coin coin) {
    const bool fits = probe.fits_route(Route<i32>{}) && probe.fits_alone(ways);
    return (Rule::opens(in, routes, fits, ways.to + ways.from < limit, coin) && ...);
  }
  template <class S, class L> NDS_FN static void clear(const Instance& in, S& s, L lanes) {
    (Rule::clear(in, s, lanes), ...);
  }
  template <class S, class L>
  NDS_FN static void serve(const Instance& in, S& s, const i32* node, i32 c, bool there, L lanes) {
    (Rule::serve(in, s, node, c, there, lanes), ...);
  }
  template <class S, class L>
  NDS_FN static void leave(const Instance& in, S& s, const i32* customers, i32 count, L lanes) {
    (Rule::leave(in, s, customers, count, lanes), ...);
  }

  // Values from arrays, and back. `A` has the fields of the state.
  template <class A> NDS_FN static Route<i32> route_at(const A& arrays, i32 r) {
    Route<i32> values;
    each_route(values, arrays, [r](i32& value, const i32* array) { value = array[r]; });
    return values;
  }
  template <class A> NDS_FN static Prefix<i32> prefix_at(const A& arrays, i32 p) {
    Prefix<i32> values;
    each_prefix(values, arrays, [p](i32& value, const i32* array) { value = array[p]; });
    return values;
  }
  template <class A> NDS_FN static Suffix<i32> suffix_at(const A& arrays, i32 p) {
    Suffix<i32> values;
    each_suffix(values, arrays, [p](i32& value, const i32* array) { value = array[p]; });
    return values;
  }
  template <class A, class V>
  NDS_FN static void set_route(const A& arrays, i32 r, const V& values) {
    each_route(arrays, values, [r](i32* array, i32 value) { array[r] = value; });
  }
  template <class A, class V>
  NDS_FN static void set_prefix(const A& arrays, i32 p, const V& values) {
    each_prefix(arrays, values, [p](i32* array, i32 value) { array[p] = value; });
  }
  template <class A, class V>
  NDS_FN static void set_suffix(const A& arrays, i32 p, const V& values) {
    each_suffix(arrays, values, [p](i32* array, i32 value) { array[p] = value; });
  }
};

}  // namespace nds
