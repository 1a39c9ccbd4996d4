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
  // Take what each of `teams` teams has for its own; the last call of carve(carver) is for this team.
  NDS_FN void share(i32 team, i32 teams, auto carve) {
    Carver counter{nullptr, 0, flag_bytes};
    carve(counter);
    Carver own{block + used + counter.used * u64(team), 0, flag_bytes};
    carve(own);
    used += counter.used * u64(teams);
  }
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
  draft.location = carver.take<i64>(sizes.locations);
  draft.unserved = carver.take<i32>(sizes.removed);
}

template <class R> NDS_FN void carve(Carver& carver, Links& links, const Sizes& sizes) {
  links.before = carver.take<u16>(sizes.customers + 1), links.after = carver.take<u16>(sizes.customers + 1);
  links.route = carver.take<u16>(sizes.customers + 1);
  links.head = carver.take<u16>(sizes.routes), links.tail = carver.take<u16>(sizes.routes);
  links.size = carver.take<u16>(sizes.routes);
  if constexpr (R::refreshes) links.edge = carver.take<i32>(sizes.customers + 1);
  R::each_prefix(links, links, carver.taker(sizes.customers + 1));
  R::each_suffix(links, links, carver.taker(sizes.customers + 1));
  R::each_route(links, links, carver.taker(sizes.routes));
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

// A part of a solution as a problem of its own, whose customers have numbers of their own (cuda/local_part.hpp): what a
// block keeps of it in shared memory. Each of `teams` warps has linked routes and lists of removed customers.
struct LocalMemory {
  Solution solution;
  u16* number;        // of a customer in the whole problem
  Links base, links;  // of the solution, and of this team
  i32 links_bytes;
  i32 *removed, *order;
  Flag* mark;
  u16* scratch;  // of kNearAtMost customers
};
constexpr i32 kNearAtMost = 256;  // customers in a list of neighbours
template <class R, class D>
NDS_FN LocalMemory carve_local(Carver& carver, Instance& in, const Sizes& sizes, i32 team, i32 teams, auto fill) {
  LocalMemory local{};
  carve_inputs<R, D>(carver, in, sizes.customers + 1, fill);
  carve<R>(carver, local.solution, sizes);
  local.number = carver.take<u16>(sizes.customers + 1);
  const u64 before = carver.used;
  carve<R>(carver, local.base, sizes);
  local.links_bytes = i32(carver.used - before);
  carver.share(team, teams, [&](Carver& own) {
    carve<R>(own, local.links, sizes);
    local.removed = own.take<i32>(sizes.removed), local.order = own.take<i32>(sizes.removed);
    local.mark = own.take_flags(sizes.customers + 1);
    local.scratch = own.take<u16>(kNearAtMost);
  });
  return local;
}

// And what it keeps in global memory.
constexpr i32 kClose = 32;       // nearest customers, one per lane
constexpr i32 kSortsAtMost = 8;  // sort orders
struct FarMemory {
  i32 *rank, *alone, *weight;
  u16* close;  // (customers + 1, kClose) nearest customers of the part; 0: none
  Stops spare;
  Draft draft;  // of this team
  i32* part;    // of a customer of the whole problem: its number here, or 0
};
template <class R>
NDS_FN FarMemory carve_far(Carver& carver, const Sizes& sizes, i32 all_customers, i32 team, i32 teams) {
  FarMemory far{};
  const i64 nodes = sizes.customers + 1;
  far.rank = carver.take<i32>(nodes * kSortsAtMost);
  far.alone = carver.take<i32>(nodes), far.weight = carver.take<i32>(nodes);
  far.close = carver.take<u16>(nodes * kClose);
  carve<R>(carver, far.spare, sizes.pool);
  carver.share(team, teams, [&](Carver& own) { carve<R>(own, far.draft, sizes); });
  far.part = carver.take<i32>(all_customers + 1);
  return far;
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

}  // namespace nds::inline NDS_ISA
