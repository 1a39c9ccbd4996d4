// How the arrays of solutions and workspaces are laid out in one block of memory, the same for every engine.
#pragma once
#include "distance.hpp"
#include "state.hpp"

namespace nds::inline NDS_ISA {

constexpr i32 kPoolPerCustomer = 6;    // slots of one customer take 4 stops; the rest is room to move
constexpr i32 kDraftPerCustomer = 24;  // copies of routes with room to grow
constexpr i32 kTableRows = 32;         // lanes of a warp
constexpr i32 kTableBeyond = 388;      // lanes read all their slots, used or not
constexpr i32 kBeyond = 32;            // stops are read in groups, beyond the end of a route

// Hands out parts of a block, or counts the bytes they take.
struct Carver {
  char* block;
  u64 used = 0;
  u64 flag_bytes = sizeof(Flag);  // of the device whose memory is counted

  template <class T> NDS_FN T* take(i64 count, u64 bytes = sizeof(T)) {
    T* part = reinterpret_cast<T*>(block + used);
    used += (u64(count) * bytes + 15) / 16 * 16;
    return part;
  }
  NDS_FN Flag* take_flags(i64 count) { return take<Flag>(count, flag_bytes); }
  // For each_stops and the like.
  NDS_FN auto taker(i64 count) {
    return [this, count]<class T>(T*& array, T*&) { array = this->take<T>(count); };
  }
};

NDS_FN i32 pool_for(i32 customers) { return kPoolPerCustomer * customers + 64 + kBeyond; }

template <class R> NDS_FN void carve(Carver& carver, Stops& at, i32 count) {
  each_stops<R>(at, at, carver.taker(count));
}

template <class R> NDS_FN void carve(Carver& carver, Solution& s, const Sizes& sizes) {
  carve<R>(carver, s.at, sizes.pool);
  s.room = sizes.pool - kBeyond;
  each_routes<R>(s, s, carver.taker(sizes.routes));
  each_nodes<R>(s, s, carver.taker(sizes.customers + 1));
}

template <class R> NDS_FN void carve(Carver& carver, Draft& draft, const Sizes& sizes) {
  carve<R>(carver, draft.at, sizes.stops);
  draft.room = sizes.stops - kBeyond;
  draft.segment = carver.take<Segment>(2 * sizes.removed);  // touched routes, then opened ones
  draft.drafted = carver.take_flags(sizes.routes);
  draft.unserved = carver.take<i32>(sizes.removed);
}

// The chain in one block: its arrays, its best tour and the spare stops.
template <class R> NDS_FN void carve_chain(Carver& carver, Chain& chain, Stops& spare, const Sizes& sizes) {
  carve<R>(carver, chain.current, sizes);
  chain.best_tour = carver.take<i32>(2 * (sizes.customers + 1));
  carve<R>(carver, spare, sizes.pool);
}

// What the teams of a crew share.
template <class R> NDS_FN void carve_common(Carver& carver, Workspace& work, const Sizes& sizes) {
  carve<R>(carver, work.stripped, sizes);
  work.removed = carver.take<i32>(sizes.removed);
  work.touched = carver.take<i32>(sizes.removed);
  work.mark = carver.take_flags(sizes.customers + 1);
  work.crew = carver.take<CrewState>(1);
}

// The table of gaps, which they share too.
template <class R> NDS_FN void carve_table(Carver& carver, Workspace& work, i32 removed, i32 columns) {
  Table& table = work.table;
  table = Table{};
  if (columns == 0) return;
  table.rows = least(removed, kTableRows);
  table.columns = columns;
  table.key = carver.take<i32>(columns);
  R::each_route(table, table, carver.taker(columns));
  table.way = carver.take<i32>(i64(table.rows) * columns + kTableBeyond);
}

// What each team has for itself: no draft if it changes the stripped one, two if it tries several insertion orders.
template <class R> NDS_FN void carve_own(Carver& carver, Workspace& work, const Sizes& sizes, i32 drafts) {
  work.order = carver.take<i32>(sizes.removed);
  if (drafts > 0) carve<R>(carver, work.trial, sizes);
  work.best = work.trial;
  if (drafts > 1) carve<R>(carver, work.best, sizes);
}

// Replace the arrays of an instance that insertion reads by parts of the carver's block, filled by fill(to, from).
template <class R, class D> NDS_FN void carve_inputs(Carver& carver, Instance& in, i32 nodes, auto fill) {
  const auto move = [&]<class T>(const T*& array) {
    T* near = carver.take<T>(nodes);
    fill(near, array);
    array = near;
  };
  R::each_input(in, move);
  D::each_input(in, move);
}

}  // namespace nds::inline NDS_ISA
