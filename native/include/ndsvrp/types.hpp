// Plain data shared by the engines. No functions here: this header is compiled into translation
// units built for different instruction sets, and nothing of it may end up as code.
#pragma once

#ifndef NDS_ISA
  #define NDS_ISA \
    isa_base  // each build of the core lives in a namespace of its own, so that none borrows
              // another's code
#endif

namespace nds {

using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;

// Yes or no: small where memory is scarce. To a C++ compiler a byte may be part of anything, which
// costs a CPU more than the memory is worth.
#if defined(__CUDACC__)
using Flag = unsigned char;
#else
using Flag = i32;
#endif

// Lengths, times and prizes are whole ticks, of at most 2^28. A required customer has this prize; a
// limited fleet may leave it out all the same, and then it counts more than all optional ones
// together.
constexpr i32 kRequired = 1 << 29;
constexpr i64 kMissing = 1ll << 44;
constexpr i32 kNever = 0x7fffffff;
constexpr i64 kNoRoom = 1ll << 62;  // a reconstruction that found too little room

// A problem in ticks. Index 0 is the depot. Which pointers are set depends on the problem.
struct Instance {
  i32 n;         // customers
  i32 capacity;  // in units of demand
  i32 vehicles;  // at most so many routes
  const i32* demand;
  const i32 *ready, *due, *service;  // windows; service is part of them
  const i32* prize;    // what leaving a customer out costs; kRequired for required ones
  const float *x, *y;  // coordinates as float32, relative to the corner of the bounding box
  float scale;         // ticks per unit
  i32 box_margin;      // ticks by which a length from float32 coordinates may be off
  const double *xd,
      *yd;  // coordinates as float64, for whole lengths: floor(d * whole_scale + whole_shift)
  double whole_scale, whole_shift;
  const i32 *length, *time;  // (n+1, n+1) matrices from row to column
  const i32*
      near;  // (n+1, near_count) neighbours of each customer, nearest first, without the depot
  i32 near_count;
  const i32* rank;         // (sorts, n+1) place of each customer in each sort order
  const i32* sort_weight;  // (sorts + 1,) weight of the random order, then of each sort order
  i32 sorts;
};

// What is kept for each place of a route: the depot, its customers in order, the depot again.
struct Places {
  i32* node;
  i32* edge;    // length from here to the next place
  i32* depart;  // windows: earliest departure from here
  i32* latest;  // windows: latest start here that keeps the rest of the route in time
};

// Bounding box of a route's customers, its longest inner edge and its longer leg from or to the
// depot.
struct Box {
  float *left, *right, *low, *high;
  i32 *inner, *leg;
};

// A solution: routes 0 … routes-1, each in a slot of the pool.
struct Solution {
  i64 cost;
  i32 routes;
  i32 used, room;  // of the pool
  Places at;
  i32 *first, *slot, *size,
      *load;  // by route: where it begins, places it may use, customers, demand
  Box box;
  i32 *route_of, *place_of;  // by customer; route -1: not served
  i32 *absent, *absent_at;   // customers not served, and where each stands in that list
  i32 absents, absent_required;
};

// A route under reconstruction. Its size lets a machine read four of these numbers at once.
struct alignas(16) Segment {
  i32 first, size, load, route, room;
};

// The routes that a reconstruction changes, beside a solution that it only reads.
struct Draft {
  Places at;
  i32 used, room;  // of its places
  i32 full;        // there was too little room: what the draft says is worth nothing
  Segment* segment;
  i32 segments;
  Flag* drafted;  // by route: 1 if it has a segment; not kept where only such routes are looked at
  i32 routes;     // routes with customers, those of the solution counted in
  i32 opened;     // of them, new ones
  i64 delta;      // cost against the solution
  i32* left_out;  // customers that found no place
  i32 left_outs;
};

// What the teams of a crew tell each other during a step.
constexpr i32 kTeams = 16;
struct Board {
  i32 count;                               // customers taken out
  i32 left, used, segments, routes, full;  // the stripped draft
  i64 stripped_delta;
  double margin;      // by which the step may be worse than what there is
  i64 delta[kTeams];  // the best draft of each team, and the number of its order
  i32 order[kTeams];
  i32 late[kTeams], overfull[kTeams];
  i64 cost, best_cost;  // the chain after the step
  i32 chain_routes, chain_used, absents, absent_required;
  i32 best_is_now, best_length, best_missing;
};

// Gaps of the stripped routes, by place, for crews that hold them in registers (gaps.hpp).
struct Table {
  i32 rows, columns;  // customers removed, places; none: there is no table
  i32 *key, *load;    // route and place of the gap after each place, and the load of its route
  i32* way;           // (rows, columns) length from each place to each removed customer
};

// What a team needs besides the solutions. `stripped`, `removed`, `mark`, `table` and `board`
// belong to the whole crew.
struct Scratch {
  Draft stripped, trial, best;
  Places spare;  // as large as the pool of a solution
  i32 *removed, *order, *touched;
  Flag* mark;  // by customer: 1 while it is among the removed
  Table table;
  Board* board;
};

// One chain of a search: where it is, and the best it has seen.
struct Chain {
  Solution now;
  i64 best_cost;
  i32 best_is_now;  // the best is the current solution: it is copied only when the chain leaves it
  i32* best_tour;   // its routes, each ended by a 0
  i32 best_length;
  i32 best_missing;  // required customers it leaves out
};

enum Rule : i32 { kGiven = 0, kString = 1, kRelated = 2, kRandom = 3 };

// How solutions are taken apart and put back together: SISRs and NDS are two of these.
struct Recipe {
  i32 rule, removals;
  float string_average;
  i32 string_longest;
  float string_split, string_depth;
  i32 orders, sorted, all_routes;
  u32 blink, open_route;  // probabilities times 2^32
};

}  // namespace nds
