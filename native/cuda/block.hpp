// What a block needs to work on a chain: where things lie, in shared memory or beside it. The
// engine (engine/cuda.py) compiles the kernels for one set of rules (NDS_WINDOWS, NDS_OPTIONAL),
// one kind of distance (NDS_DISTANCE) and one placement (NDS_NEAR_DRAFTS, NDS_NEAR_INSTANCE,
// NDS_NEAR_SOLUTION: 1 for shared memory), for blocks of NDS_THREADS of which a multiprocessor is
// to hold NDS_BLOCKS; improve.cu also for what a call may ask for (NDS_GAPS, NDS_BLINKS).
#pragma once
#include "ndsvrp/step.hpp"
#include "warp.hpp"

namespace nds {
inline namespace NDS_ISA {

#if NDS_WINDOWS && NDS_OPTIONAL
using R = Rules<Capacity, TimeWindows, Prizes>;
#elif NDS_WINDOWS
using R = Rules<Capacity, TimeWindows>;
#elif NDS_OPTIONAL
using R = Rules<Capacity, Prizes>;
#else
using R = Rules<Capacity>;
#endif
using D = NDS_DISTANCE;

// How a call is carried out; the same bytes as PLAN in engine/device.py.
struct Plan {
  Recipe recipe;
  Sizes home;  // of the chains in global memory
  Sizes work;  // of what a block works with
  i32 table;   // columns of the table of gaps; 0: there is none
  u64 chain_bytes, scratch_bytes;
};
static_assert(sizeof(Plan) == NDS_PLAN_BYTES && sizeof(Instance) == NDS_INSTANCE_BYTES);

// The numbers of a chain in global memory; columns of a tensor (engine/device.py).
struct Record {
  i64 cost, best_cost, routes, used, absents, absent_required, best_is_now, best_length,
      best_missing;
};

// Chains in global memory: a block each, a record each.
struct Store {
  char* memory;
  Record* records;
};

// The chain as it lies in global memory; `spare` is for moving its routes together.
NDS_FN Chain chain_at(const Plan& plan, const Store& store, i32 i, Places& spare) {
  Chain chain{};
  Carver carver{store.memory + u64(i) * plan.chain_bytes};
  carve(carver, chain.now, plan.home);
  chain.best_tour = carver.take<i32>(2 * (plan.home.customers + 1));
  carve(carver, spare, plan.home.pool, plan.home.windows);
  const Record& record = store.records[i];
  Solution& s = chain.now;
  s.cost = record.cost, s.routes = i32(record.routes), s.used = i32(record.used);
  s.absents = i32(record.absents), s.absent_required = i32(record.absent_required);
  chain.best_cost = record.best_cost, chain.best_is_now = i32(record.best_is_now);
  chain.best_length = i32(record.best_length), chain.best_missing = i32(record.best_missing);
  return chain;
}

NDS_FN void store_record(const Chain& chain, Record& record) {
  const Solution& s = chain.now;
  record = Record{s.cost,
                  chain.best_cost,
                  s.routes,
                  s.used,
                  s.absents,
                  s.absent_required,
                  chain.best_is_now,
                  chain.best_length,
                  chain.best_missing};
}

template <class T> NDS_FN void copy_block(T* to, const T* from, i32 count) {
  for (i32 i = threadIdx.x; i < count; i += blockDim.x) to[i] = from[i];
}

// All of a solution but its numbers, which every thread has.
NDS_FN void copy_solution(const Solution& to, const Solution& from, i32 n) {
  copy_block(to.at.node, from.at.node, from.used);
  copy_block(to.at.edge, from.at.edge, from.used);
  if constexpr (R::windows) {
    copy_block(to.at.depart, from.at.depart, from.used);
    copy_block(to.at.latest, from.at.latest, from.used);
  }
  copy_block(to.first, from.first, from.routes);
  copy_block(to.slot, from.slot, from.routes);
  copy_block(to.size, from.size, from.routes);
  copy_block(to.load, from.load, from.routes);
  copy_block(to.box.left, from.box.left, from.routes);
  copy_block(to.box.right, from.box.right, from.routes);
  copy_block(to.box.low, from.box.low, from.routes);
  copy_block(to.box.high, from.box.high, from.routes);
  copy_block(to.box.inner, from.box.inner, from.routes);
  copy_block(to.box.leg, from.box.leg, from.routes);
  copy_block(to.route_of, from.route_of, n + 1);
  copy_block(to.place_of, from.place_of, n + 1);
  if constexpr (R::optional) {
    copy_block(to.absent, from.absent, from.absents);
    copy_block(to.absent_at, from.absent_at, n + 1);
  }
}

// The same chain with the arrays of another solution.
NDS_FN Chain with_arrays(const Chain& chain, Solution arrays) {
  const Solution& s = chain.now;
  arrays.cost = s.cost, arrays.routes = s.routes, arrays.used = s.used;
  arrays.absents = s.absents, arrays.absent_required = s.absent_required;
  Chain moved = chain;
  moved.now = arrays;
  return moved;
}

NDS_FN Instance near_instance(const Instance& in, Carver& carver, i32 nodes) {
  Hot hot;
  carve(carver, hot, nodes, R::windows, R::optional, D::symmetric, D::whole);
  Instance near = in;
  copy_block(hot.demand, in.demand, in.n + 1), near.demand = hot.demand;
  if constexpr (R::windows) {
    copy_block(hot.ready, in.ready, in.n + 1), near.ready = hot.ready;
    copy_block(hot.due, in.due, in.n + 1), near.due = hot.due;
    copy_block(hot.service, in.service, in.n + 1), near.service = hot.service;
  }
  if constexpr (R::optional) copy_block(hot.prize, in.prize, in.n + 1), near.prize = hot.prize;
  if constexpr (D::symmetric) {
    copy_block(hot.x, in.x, in.n + 1), near.x = hot.x;
    copy_block(hot.y, in.y, in.n + 1), near.y = hot.y;
  }
  if constexpr (D::whole) {
    copy_block(hot.xd, in.xd, in.n + 1), near.xd = hot.xd;
    copy_block(hot.yd, in.yd, in.n + 1), near.yd = hot.yd;
  }
  return near;
}

// Working memory of the block, from the carver on. That in shared memory comes as it is and has to
// be cleared; global memory is all zero to begin with, and every step leaves it so.
template <class C>
NDS_FN Scratch scratch_at(Carver& carver, const Plan& plan, const C& crew, bool clear) {
  const bool several = plan.recipe.orders > crew.teams;
  Scratch scratch{};
  carve_common(carver, scratch, plan.work);
  Carver counter{nullptr};
  carve_own(counter, scratch, plan.work, several);
  Carver own{carver.block + carver.used + counter.used * u64(crew.team)};
  carve_own(own, scratch, plan.work, several);
  carver.used += counter.used * u64(crew.teams);
  if constexpr (C::by_gaps) carve_table(carver, scratch, plan.work.removed, plan.table);
  if (clear) {
    const i32 routes = plan.work.routes;
    for (i32 r = crew.lanes.lane; r < routes && plan.recipe.all_routes; r += 32) {
      scratch.trial.drafted[r] = scratch.best.drafted[r] = 0;
    }
    for (i32 r = threadIdx.x; r < routes; r += blockDim.x) scratch.stripped.drafted[r] = 0;
    for (i32 c = threadIdx.x; c <= plan.work.customers; c += blockDim.x) scratch.mark[c] = 0;
  }
  return scratch;
}

NDS_FN u64 chain_key(u64 seed, u64 iteration, i32 chain) {
  return key_of(key_of(key_of(0, seed), iteration), u64(chain));
}

}  // namespace NDS_ISA
}  // namespace nds
