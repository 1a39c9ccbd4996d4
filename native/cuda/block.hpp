// What a block needs to work on a chain: where data lie, in shared memory or in global memory. The engine
// (engine/cuda.py) compiles the kernels for a composition of rules (NDS_RULES), a distance (NDS_DISTANCE) and a
// placement (NDS_NEAR_DRAFTS, NDS_NEAR_INSTANCE, NDS_NEAR_SOLUTION: 1 for shared memory), for blocks of NDS_THREADS of
// which a multiprocessor is to hold NDS_BLOCKS; improve.cu also for what a call may need (NDS_GAPS, NDS_BLINKS,
// NDS_TAILS, NDS_SPECULATES).
#pragma once
#include "ndsvrp/layout.hpp"
#include "ndsvrp/step.hpp"
#include "warp.hpp"

namespace nds::inline NDS_ISA {

using R = Rules<NDS_RULES>;
using D = NDS_DISTANCE;

// Python must see the same structs.
static_assert(first_difference<Instance>({NDS_INSTANCE_LAYOUT}) == -1);
static_assert(first_difference<Plan>({NDS_PLAN_LAYOUT}) == -1);
static_assert(first_difference<Record>({NDS_RECORD_LAYOUT}) == -1);

// Chains in global memory: a block and a record each.
struct Store {
  char* memory;
  Record* records;
};

// The chain in global memory; `spare` is for moving its routes together.
NDS_FN Chain chain_at(const Plan& plan, const Store& store, i32 i, Stops& spare) {
  Chain chain{};
  Carver carver{store.memory + u64(i) * plan.chain_bytes};
  carve_chain<R>(carver, chain, spare, plan.home);
  set_numbers(chain, store.records[i]);
  return chain;
}

template <class T> NDS_FN void copy_block(T* to, const T* from, i32 count) {
  for (i32 i = threadIdx.x; i < count; i += blockDim.x) to[i] = from[i];
}

// Copy all of a solution but its numbers, which every thread has.
NDS_FN void copy_solution(const Solution& to, const Solution& from, i32 n) {
  copy_arrays<R>(to, from, n, [](auto* a, const auto* b, i32 count) { copy_block(a, b, count); });
}

// Copy the inputs of an instance to shared memory.
NDS_FN Instance near_instance(const Instance& in, Carver& carver, i32 nodes) {
  Instance near = in;
  carve_inputs<R, D>(carver, near, nodes, [&](auto* to, const auto* from) { copy_block(to, from, in.n + 1); });
  return near;
}

// The workspace of the block, from the carver on. Shared memory is undefined and has to be cleared; global memory is
// all zero at first, and every step leaves it so.
template <class C> NDS_FN Workspace workspace_at(Carver& carver, const Plan& plan, const C& crew, bool clear) {
  const i32 drafts = plan.recipe.orders > crew.teams ? 2 : 1;
  Workspace work{};
  carve_common<R>(carver, work, plan.work);
  Carver counter{nullptr};
  carve_own<R>(counter, work, plan.work, drafts);
  Carver own{carver.block + carver.used + counter.used * u64(crew.team)};
  carve_own<R>(own, work, plan.work, drafts);
  carver.used += counter.used * u64(crew.teams);
  if constexpr (C::by_gaps) carve_table<R>(carver, work, plan.work.removed, plan.columns);
  if (clear) {
    const i32 routes = plan.work.routes;
    for (i32 r = crew.lanes.lane; r < routes && plan.recipe.all_routes; r += 32) {
      work.trial.drafted[r] = work.best.drafted[r] = 0;
    }
    for (i32 c = crew.lanes.lane; c < plan.work.locations; c += 32) work.trial.location[c] = work.best.location[c] = 0;
    for (i32 c = threadIdx.x; c < plan.work.locations; c += blockDim.x) work.stripped.location[c] = 0;
    for (i32 r = threadIdx.x; r < routes; r += blockDim.x) work.stripped.drafted[r] = 0;
    for (i32 c = threadIdx.x; c <= plan.work.customers; c += blockDim.x) work.mark[c] = 0;
  }
  return work;
}

// The row of a part in the table of customers (parts, kOwnHead + customers): how many it has, its vehicles, parts of
// the chain that are merged (in the row of the first one), then the list of its customers.
constexpr i32 kOwnCount = 0, kOwnVehicles = 1, kOwnMerged = 2, kOwnHead = 3;
template <class T> NDS_FN T* own_row(const Plan& plan, T* own, i32 part) {
  return own + i64(part) * (kOwnHead + plan.home.customers);
}

NDS_FN u64 chain_key(u64 seed, u64 iteration, i32 chain) {
  return key_of(key_of(key_of(0, seed), iteration), u64(chain));
}

}  // namespace nds::inline NDS_ISA
