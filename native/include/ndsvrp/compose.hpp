// What every rule has, and how rules are composed; see rules.hpp.
#pragma once
#include "lanes.hpp"

namespace nds {

// Lengths and travel times from the stop before a position to the customer, and on to the stop after it.
struct Ways {
  i32 to, from, time_to, time_from;
};

// The length and the travel time between two stops.
struct Way {
  i32 length, time;
};

// The defaults: no state, no restriction. Comments give the parameters where they are not used.
template <class Self> struct AnyRule {
  static constexpr bool uses_time = false;  // whether fits_position needs travel times
  static constexpr bool refreshes = false;  // whether `refresh` and `feasible` are not empty
  static constexpr bool links = true;       // whether it has `follow` and `precede`, if it refreshes
  static constexpr i32 kRetries = 0;        // unserved customers added to a ruin, at most
  static constexpr i32 kAfter = 0;          // rules that every composition with it has before it

  template <class T> struct Route {};
  template <class T> struct Prefix {};
  template <class T> struct Suffix {};
  template <class T> struct Node {};
  NDS_FN static void each_route(auto&, auto&, auto) {}  // (a, b, call)
  NDS_FN static void each_prefix(auto&, auto&, auto) {}
  NDS_FN static void each_suffix(auto&, auto&, auto) {}
  NDS_FN static void each_node(auto&, auto&, auto) {}
  // Call call(array) for the arrays of the instance, by node, that insertion reads.
  NDS_FN static void each_input(Instance&, auto) {}

  // One customer to insert.
  struct Probe {
    NDS_FN Probe(const Instance&, i32) {}
    // Whether the route can take the customer at any position.
    NDS_FN static bool fits_route(const auto& /* route */) { return true; }
    // Whether a position can: (route, prefix of the stop before, suffix of the stop after, ways, increase of the
    // route's length).
    NDS_FN static bool fits_position(const auto&, const auto&, const auto&, const Ways&, i32) { return true; }
    // Leave out positions at both ends of begin … end-1 where the customer cannot fit: (stops, first stop of the route,
    // begin, end).
    NDS_FN static void narrow(const auto&, i32, i32&, i32&) {}
    // Change the route's numbers by the insertion.
    NDS_FN static void extend(auto& /* route */, i32 /* increase of its length */) {}
  };

  // Add the numbers of customer c to those of a set of customers.
  NDS_FN static void add(const Instance&, i32 /* c */, auto& /* route */) {}
  // Set the state of the depot at both ends of a route.
  NDS_FN static void begin(const Instance&, auto& /* prefix */) {}
  NDS_FN static void end(const Instance&, auto& /* suffix */) {}
  // Compute the state of a route: (in, distance, stops, first stop, customers, route, lanes).
  NDS_FN static void refresh(const Instance&, const auto&, const auto&, i32, i32, auto&, auto) {}
  // The same after an insertion as stop p; `extend` changed the route's numbers before: (in, distance, stops, first
  // stop, customers, p, lanes).
  NDS_FN static void inserted(const Instance&, const auto&, const auto&, i32, i32, i32, auto) {}
  // Whether a refreshed route is feasible: (in, stops, first stop, customers, route, lanes).
  NDS_FN static bool feasible(const Instance&, const auto&, i32, i32, const auto&, auto) { return true; }

  // The state of a stop at node c from that of the stop before it, or behind it: (in, c, travel time between the two,
  // prefix or suffix). `follow` returns whether the stop is feasible.
  NDS_FN static bool follow(const Instance&, i32, i32, auto&) { return true; }
  NDS_FN static void precede(const Instance&, i32, i32, auto&) {}

  // Divide the numbers of a route that is cut after stop p: (in, stops, first stop, p, route, head,
  // tail).
  NDS_FN static void cut(const Instance&, const auto&, i32, i32, const auto&, auto&, auto&) {}
  // Whether the head of a route and the tail of another one make a feasible route: (in, head,
  // prefix of its last stop, tail, suffix of its first stop, way between them).
  NDS_FN static bool fits_joined(const Instance&, const auto&, const auto&, const auto&, const auto&, const Way&) {
    return true;
  }

  // Cost of leaving customer c unserved: for a step, and in the cost of a solution. And the limit below which it is
  // inserted instead.
  NDS_FN static i64 prize(const Instance&, i32) { return 0; }
  NDS_FN static i64 lost(const Instance&, i32) { return 0; }
  NDS_FN static i32 limit(const Instance&, i32) { return kNever; }
  // Whether to open a route for a customer without a position: (in, routes, whether it fits there, whether that costs
  // less than the limit, a function that draws).
  NDS_FN static bool opens(const Instance&, i32, bool, bool, auto) { return true; }
  // Note that all customers are unserved: (in, solution, lanes); that customer c of each lane is served, if it is
  // there: (in, solution, stops, c, there, lanes); that customers of a list are unserved: (in, solution, list, count,
  // lanes).
  NDS_FN static void clear(const Instance&, auto&, auto) {}
  NDS_FN static void serve(const Instance&, auto&, const i32*, i32, bool, auto) {}
  NDS_FN static void leave(const Instance&, auto&, const i32*, i32, auto) {}
};

template <class... Rule> struct Rules {
  template <class T> struct Route : Rule::template Route<T>... {};
  template <class T> struct Prefix : Rule::template Prefix<T>... {};
  template <class T> struct Suffix : Rule::template Suffix<T>... {};
  template <class T> struct Node : Rule::template Node<T>... {};
  template <class State> static constexpr i32 fields_of = i32(sizeof(State) / sizeof(i32));
  static constexpr i32 kRouteFields = (fields_of<typename Rule::template Route<i32>> + ...);
  static constexpr i32 kStopFields =
      ((fields_of<typename Rule::template Prefix<i32>> + fields_of<typename Rule::template Suffix<i32>>)+...);
  static constexpr i32 kNodeFields = (fields_of<typename Rule::template Node<i32>> + ...);
  static constexpr bool uses_time = (Rule::uses_time || ...);
  static constexpr bool refreshes = (Rule::refreshes || ...);
  static constexpr bool links = (Rule::links && ...);
  static constexpr i32 kRetries = (Rule::kRetries + ...);

  NDS_FN static void each_route(auto&&... a) { (Rule::each_route(a...), ...); }
  NDS_FN static void each_prefix(auto&&... a) { (Rule::each_prefix(a...), ...); }
  NDS_FN static void each_suffix(auto&&... a) { (Rule::each_suffix(a...), ...); }
  NDS_FN static void each_node(auto&&... a) { (Rule::each_node(a...), ...); }
  NDS_FN static void each_input(auto&&... a) { (Rule::each_input(a...), ...); }

  struct Probe : Rule::Probe... {
    NDS_FN Probe(const Instance& in, i32 c) : Rule::Probe(in, c)... {}
    NDS_FN bool fits_route(const auto& route) const { return (Rule::Probe::fits_route(route) & ...); }
    NDS_FN bool fits_position(const auto&... a) const { return (Rule::Probe::fits_position(a...) & ...); }
    NDS_FN void narrow(const auto& at, i32 first, i32& begin, i32& end) const {
      (Rule::Probe::narrow(at, first, begin, end), ...);
    }
    NDS_FN void extend(auto& route, i32 cost) const { (Rule::Probe::extend(route, cost), ...); }
  };

  NDS_FN static void add(auto&&... a) { (Rule::add(a...), ...); }
  NDS_FN static void begin(auto&&... a) { (Rule::begin(a...), ...); }
  NDS_FN static void end(auto&&... a) { (Rule::end(a...), ...); }
  NDS_FN static void refresh(auto&&... a) { (Rule::refresh(a...), ...); }
  NDS_FN static void inserted(auto&&... a) { (Rule::inserted(a...), ...); }
  NDS_FN static bool feasible(auto&&... a) { return (Rule::feasible(a...) && ...); }
  NDS_FN static bool follow(auto&&... a) { return (Rule::follow(a...) & ...); }
  NDS_FN static void precede(auto&&... a) { (Rule::precede(a...), ...); }
  NDS_FN static void cut(auto&&... a) { (Rule::cut(a...), ...); }
  NDS_FN static bool fits_joined(auto&&... a) { return (Rule::fits_joined(a...) && ...); }
  NDS_FN static i64 prize(const Instance& in, i32 c) { return (Rule::prize(in, c) + ...); }
  NDS_FN static i64 lost(const Instance& in, i32 c) { return (Rule::lost(in, c) + ...); }
  NDS_FN static i32 limit(const Instance& in, i32 c) {
    i32 limit = kNever;
    ((limit = least(limit, Rule::limit(in, c))), ...);
    return limit;
  }
  NDS_FN static bool opens(const Instance& in, const Probe& probe, i32 c, i32 routes, const Ways& ways, i32 limit,
                           auto coin) {
    const bool alone = in.alone == nullptr || in.alone[c] != 0;
    const bool fits = alone && probe.fits_route(Route<i32>{});
    return (Rule::opens(in, routes, fits, ways.to + ways.from < limit, coin) && ...);
  }
  NDS_FN static void clear(auto&&... a) { (Rule::clear(a...), ...); }
  NDS_FN static void serve(auto&&... a) { (Rule::serve(a...), ...); }
  NDS_FN static void leave(auto&&... a) { (Rule::leave(a...), ...); }

  // Values from arrays, and back: `arrays` has the fields of the state.
  NDS_FN static Route<i32> route_at(const auto& arrays, i32 r) {
    Route<i32> values;
    each_route(values, arrays, [r](i32& value, const i32* array) { value = array[r]; });
    return values;
  }
  NDS_FN static Prefix<i32> prefix_at(const auto& arrays, i32 p) {
    Prefix<i32> values;
    each_prefix(values, arrays, [p](i32& value, const i32* array) { value = array[p]; });
    return values;
  }
  NDS_FN static Suffix<i32> suffix_at(const auto& arrays, i32 p) {
    Suffix<i32> values;
    each_suffix(values, arrays, [p](i32& value, const i32* array) { value = array[p]; });
    return values;
  }
  NDS_FN static void set_route(const auto& arrays, i32 r, const auto& values) {
    each_route(arrays, values, [r](i32* array, i32 value) { array[r] = value; });
  }
  NDS_FN static void set_prefix(const auto& arrays, i32 p, const auto& values) {
    each_prefix(arrays, values, [p](i32* array, i32 value) { array[p] = value; });
  }
  NDS_FN static void set_suffix(const auto& arrays, i32 p, const auto& values) {
    each_suffix(arrays, values, [p](i32* array, i32 value) { array[p] = value; });
  }
  // Set values of arrays. Returns whether they change.
  NDS_FN static bool change_prefix(const auto& arrays, i32 p, const auto& values) {
    bool changes = false;
    each_prefix(arrays, values, [&](i32* array, i32 value) { changes |= array[p] != value, array[p] = value; });
    return changes;
  }
  NDS_FN static bool change_suffix(const auto& arrays, i32 p, const auto& values) {
    bool changes = false;
    each_suffix(arrays, values, [&](i32* array, i32 value) { changes |= array[p] != value, array[p] = value; });
    return changes;
  }
  // Copy values from a struct that has the fields of the state.
  NDS_FN static void copy_route(auto& to, const auto& from) {
    each_route(to, from, [](i32& a, i32 b) { a = b; });
  }
};

}  // namespace nds
