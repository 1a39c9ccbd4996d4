// Solutions, drafts and workspaces. Arrays are in memory that others own (memory.hpp); the state of rules comes from
// rules.hpp: a struct has the fields of all rules, of which a composition R uses its own.
#pragma once
#include "rules.hpp"

namespace nds {

// The stops of routes: the depot, customers in order, the depot again.
struct Stops : AllRules::Prefix<i32*>, AllRules::Suffix<i32*> {
  i32* node;
  i32* edge;  // length from this stop to the next
};

// Bounding box of a route's customers, its longest inner edge and its edges at the depot.
struct Box {
  float *left, *right, *low, *high;
  i32 *inner, *out, *back;
};

// A solution: routes 0 … routes-1, each in a slot of the pool of stops.
struct Solution : CurrentNumbers, AllRules::Route<i32*>, AllRules::Node<i32*> {
  i32 room;  // stops of the pool that may be used
  Stops at;
  i32 *first, *slot, *size;  // by route: its first stop, stops of its slot, customers
  Box box;
  i32 *route_of, *stop_of;  // by customer; route -1: unserved, kElsewhere: not of this part
  const i32* own;           // the customers of a part (regions.hpp); null: all
  i32 own_count;
};
constexpr i32 kElsewhere = -2;

// A route of a draft. Its size lets a GPU read four of these numbers at once.
struct alignas(16) Segment : AllRules::Route<i32> {
  i32 first, size, route, room;
};

// The changed routes of a reconstruction, beside a solution that it only reads.
struct Draft {
  Stops at;
  i32 used, room;  // of its stops
  i32 full;        // it ran out of stops and must not be used
  Segment* segment;
  i32 segments;
  Flag* drafted;  // by route: 1 if it has a segment; kept only where all routes are considered
  i64* location;  // by customer: its location_at, or 0; kept only during insertion beside nearest customers
  i32 routes;     // nonempty routes, those of the solution included
  i32 opened;     // new routes
  i64 delta;      // cost minus the solution's
  i32* unserved;  // customers without a position
  i32 unserved_count;
};

// Routes whose customers know the ones before and after them; 0 is the depot. Numbers of stops are by customer.
struct Links : AllRules::Prefix<i32*>, AllRules::Suffix<i32*>, AllRules::Route<i32*> {
  u16 *before, *after, *route;  // by customer; its route, or kUnlinked
  u16 *head, *tail, *size;      // by route
  i32* edge;                    // by customer: length to the one after it; kept where times are
};
constexpr i32 kUnlinked = 0xffff;

// The nearest customers of a customer, nearest first; 0 for those elsewhere. Parts with numbers of their own are for a
// GPU alone.
struct NearRow {
#if defined(__CUDACC__)
  const i32 *row, *part;
  NDS_FN NearRow(const Instance& in, i32 c)
      : row(in.near + i64(in.whole ? i32(in.whole[c]) : c) * in.near_count), part(in.part) {}
  NDS_FN i32 operator[](i32 i) const { return part ? part[row[i]] : row[i]; }
#else
  const i32* row;
  NDS_FN NearRow(const Instance& in, i32 c) : row(in.near + i64(c) * in.near_count) {}
  NDS_FN i32 operator[](i32 i) const { return row[i]; }
#endif
};

// What the teams of a crew share during a step.
struct CrewState {
  i32 moved;                               // tails were exchanged
  i32 count;                               // customers removed
  i32 left, used, segments, routes, full;  // the stripped draft
  i64 stripped_delta;
  double margin;      // by which a step may be worse
  i64 delta[kTeams];  // the best draft of each team, and the number of its insertion order
  i32 order[kTeams];
  i32 late[kTeams], overfull[kTeams];
  Record chain;  // after the step
};

// Gaps of the stripped routes, by stop, for crews that hold them in registers (gaps.hpp).
struct Table : AllRules::Route<i32*> {
  i32 rows, columns;  // customers removed, stops; 0: no table
  i32* key;           // route and stop of the gap after each stop
  i32* way;           // (rows, columns) length from each stop to each removed customer
};

// What a team needs besides the solutions. The crew shares `stripped`, `removed`, `mark`, `table` and `crew`.
struct Workspace {
  Draft stripped, trial, best;
  Stops spare;  // as large as the pool of a solution
  i32 *removed, *order, *touched;
  Flag* mark;  // by customer: 1 while it is removed
  Table table;
  CrewState* crew;
};

// One chain of a search.
struct Chain : BestNumbers {
  Solution current;
  i32* best_tour;  // the saved best solution: routes, each ended by a 0
};

// Sums over the parts of a solution (regions.hpp).
struct Totals {
  i64 cost, best_cost;
  i32 routes, served, unserved, required;  // of current solutions; required: customers that are unserved
  i32 best_length, best_required;
};
NDS_FN void each_total(auto& a, auto& b, auto call) {
  call(a.cost, b.cost), call(a.best_cost, b.best_cost);
  call(a.routes, b.routes), call(a.served, b.served), call(a.unserved, b.unserved), call(a.required, b.required);
  call(a.best_length, b.best_length), call(a.best_required, b.best_required);
}

NDS_FN Record record_of(const Chain& chain) { return Record{chain.current, chain}; }
NDS_FN void set_numbers(Chain& chain, const Record& record) {
  static_cast<CurrentNumbers&>(chain.current) = record.current;
  static_cast<BestNumbers&>(chain) = record.best;
}

// Call call(a.field, b.field) for each array by stop, by route and by node.
template <class R> NDS_FN void each_stops(auto& a, auto& b, auto call) {
  call(a.node, b.node), call(a.edge, b.edge);
  R::each_prefix(a, b, call), R::each_suffix(a, b, call);
}
template <class R> NDS_FN void each_routes(auto& a, auto& b, auto call) {
  call(a.first, b.first), call(a.slot, b.slot), call(a.size, b.size);
  R::each_route(a, b, call);
  call(a.box.left, b.box.left), call(a.box.right, b.box.right);
  call(a.box.low, b.box.low), call(a.box.high, b.box.high);
  call(a.box.inner, b.box.inner), call(a.box.out, b.box.out), call(a.box.back, b.box.back);
}
template <class R> NDS_FN void each_nodes(auto& a, auto& b, auto call) {
  call(a.route_of, b.route_of), call(a.stop_of, b.stop_of);
  R::each_node(a, b, call);
}

// Copy all of a solution of n customers but its numbers: copy(to, from, count).
template <class R> NDS_FN void copy_arrays(const Solution& to, const Solution& from, i32 n, auto copy) {
  each_stops<R>(to.at, from.at, [&](auto* a, auto* b) { copy(a, b, from.used); });
  each_routes<R>(to, from, [&](auto* a, auto* b) { copy(a, b, from.routes); });
  each_nodes<R>(to, from, [&](auto* a, auto* b) { copy(a, b, n + 1); });
}

}  // namespace nds
