// Where the parts of a solution and of a team's working memory lie within one block of memory: the
// same for every engine, whatever kind of memory it is.
#pragma once
#include "lanes.hpp"

namespace nds {
inline namespace NDS_ISA {

constexpr i32 kPoolPerCustomer =
    6;  // slots of singletons take 4 places each; the rest is room to move
constexpr i32 kDraftPerCustomer = 24;  // copies of routes with room to grow
constexpr i32 kTableRows = 32;         // a warp has so many lanes
constexpr i32 kTableBeyond = 388;      // lanes read all their slots, whether they hold a gap or not
constexpr i32 kBeyond = 32;            // places are read in groups, beyond the end of a route

// Hands out parts of a block, or counts what they would take.
struct Carver {
  char* block;
  u64 used = 0;
  u64 flag_bytes = sizeof(Flag);  // of the machine whose memory is counted

  template <class T> NDS_FN T* take(i64 count) {
    T* part = reinterpret_cast<T*>(block + used);
    used += (u64(count) * sizeof(T) + 15) / 16 * 16;
    return part;
  }
  NDS_FN Flag* take_flags(i64 count) {
    Flag* part = reinterpret_cast<Flag*>(block + used);
    used += (u64(count) * flag_bytes + 15) / 16 * 16;
    return part;
  }
};

// How much there is of everything. Routes are more than customers: those that a step empties still
// count while it opens others.
struct Sizes {
  i32 customers;  // of the largest instance
  i32 windows;
  i32 removed;  // customers removed by one step, at most
  i32 routes;
  i32 pool;    // places of a solution
  i32 places;  // of a draft
};

NDS_FN i32 pool_for(i32 customers) { return kPoolPerCustomer * customers + 64 + kBeyond; }

NDS_FN void carve(Carver& carver, Places& at, i32 count, i32 windows) {
  at.node = carver.take<i32>(count);
  at.edge = carver.take<i32>(count);
  at.depart = windows ? carver.take<i32>(count) : nullptr;
  at.latest = windows ? carver.take<i32>(count) : nullptr;
}

NDS_FN void carve(Carver& carver, Solution& s, const Sizes& sizes) {
  const i32 nodes = sizes.customers + 1, routes = sizes.routes;
  carve(carver, s.at, sizes.pool, sizes.windows);
  s.room = sizes.pool - kBeyond;
  s.first = carver.take<i32>(routes);
  s.slot = carver.take<i32>(routes);
  s.size = carver.take<i32>(routes);
  s.load = carver.take<i32>(routes);
  s.box.left = carver.take<float>(routes);
  s.box.right = carver.take<float>(routes);
  s.box.low = carver.take<float>(routes);
  s.box.high = carver.take<float>(routes);
  s.box.inner = carver.take<i32>(routes);
  s.box.leg = carver.take<i32>(routes);
  s.route_of = carver.take<i32>(nodes);
  s.place_of = carver.take<i32>(nodes);
  s.absent = carver.take<i32>(nodes);
  s.absent_at = carver.take<i32>(nodes);
}

NDS_FN void carve(Carver& carver, Draft& draft, const Sizes& sizes) {
  carve(carver, draft.at, sizes.places, sizes.windows);
  draft.room = sizes.places - kBeyond;
  draft.segment = carver.take<Segment>(2 * sizes.removed);  // as many are touched, or opened after
  draft.drafted = carver.take_flags(sizes.routes);
  draft.left_out = carver.take<i32>(sizes.removed);
}

// What the teams of a crew have in common.
NDS_FN void carve_common(Carver& carver, Scratch& scratch, const Sizes& sizes) {
  carve(carver, scratch.stripped, sizes);
  scratch.removed = carver.take<i32>(sizes.removed);
  scratch.touched = carver.take<i32>(sizes.removed);
  scratch.mark = carver.take_flags(sizes.customers + 1);
  scratch.board = carver.take<Board>(1);
}

// For crews that work by gaps.
NDS_FN void carve_table(Carver& carver, Scratch& scratch, i32 removed, i32 columns) {
  Table& table = scratch.table;
  table = Table{};
  if (columns == 0) return;
  table.rows = least(removed, kTableRows);
  table.columns = columns;
  table.key = carver.take<i32>(columns);
  table.load = carver.take<i32>(columns);
  table.way = carver.take<i32>(i64(table.rows) * columns + kTableBeyond);
}

// What each team has for itself; a second draft only where it tries several orders.
NDS_FN void carve_own(Carver& carver, Scratch& scratch, const Sizes& sizes, bool several) {
  scratch.order = carver.take<i32>(sizes.removed);
  carve(carver, scratch.trial, sizes);
  scratch.best = scratch.trial;
  if (several) carve(carver, scratch.best, sizes);
}

// The part of an instance that insertion reads all the time.
struct Hot {
  i32 *demand, *ready, *due, *service, *prize;
  float *x, *y;
  double *xd, *yd;
};

NDS_FN void carve(Carver& carver, Hot& hot, i32 nodes, bool windows, bool optional, bool points,
                  bool whole) {
  hot.demand = carver.take<i32>(nodes);
  hot.ready = windows ? carver.take<i32>(nodes) : nullptr;
  hot.due = windows ? carver.take<i32>(nodes) : nullptr;
  hot.service = windows ? carver.take<i32>(nodes) : nullptr;
  hot.prize = optional ? carver.take<i32>(nodes) : nullptr;
  hot.x = points ? carver.take<float>(nodes) : nullptr;
  hot.y = points ? carver.take<float>(nodes) : nullptr;
  hot.xd = whole ? carver.take<double>(nodes) : nullptr;
  hot.yd = whole ? carver.take<double>(nodes) : nullptr;
}

}  // namespace NDS_ISA
}  // namespace nds
