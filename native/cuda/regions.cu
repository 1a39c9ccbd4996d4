// Split the solutions of chains into parts, one per region, and merge them again (regions.hpp). Parts i * regions … are
// those of chain i. A block of one warp per part.
#include "ndsvrp/regions.hpp"

#include "block.hpp"

using namespace nds;

extern "C" __global__ void split_chains(const Plan* plan, const Instance* instances, const i32* problem_of,
                                        const i32* number, char* memory, Record* records, char* part_memory,
                                        Record* part_records, i32* own, u64 seed, u64 iteration) {
  const i32 part = i32(blockIdx.x), count = plan->recipe.regions, i = part / count, region = part % count;
  const Warp lanes{i32(threadIdx.x), 0};
  const Instance& in = instances[problem_of[i]];
  Stops spare;
  Chain whole = chain_at(*plan, Store{memory, records}, i, spare);
  Chain chain = chain_at(*plan, Store{part_memory, part_records}, part, spare);
  const Regions regions(in, whole.current, chain_key(seed, iteration, number[i]), count);
  i32* row = own_row(*plan, own, part);
  split<R, D>(in, regions, region, chain, row + kOwnHead, lanes);
  if (lanes.leads()) {
    row[kOwnCount] = chain.current.own_count;
    row[kOwnVehicles] = regions.vehicles(in, region, chain.current.routes);
    row[kOwnMerged] = 0;
    part_records[part] = record_of(chain);
  }
  if (region == 0 && whole.best_is_current) {
    save_best(whole, Alone<Warp>{lanes});
    if (lanes.leads()) records[i].best = whole;  // other blocks use the numbers of the current solution only
  }
}

// The numbers of part k of chain i.
NDS_FN Totals numbers_of(const Plan& plan, const Record* part_records, const i32* own, i32 i, i32 k) {
  const i32 part = i * plan.recipe.regions + k;
  return totals_of(part_records[part], own_row(plan, own, part)[kOwnCount]);
}

// Copy the routes and unserved customers of each part to the merged solution. The last block of a chain sets its
// numbers, which the others have read, and adds up the steps that the parts made: an interruption between two launches
// leaves no chain half merged.
extern "C" __global__ void merge_parts(const Plan* plan, char* memory, Record* records, char* part_memory,
                                       Record* part_records, i32* own, const i32* part_made, i32* made) {
  const i32 part = i32(blockIdx.x), count = plan->recipe.regions, i = part / count;
  const Warp lanes{i32(threadIdx.x), 0};
  const auto numbers = [&](i32 k) { return numbers_of(*plan, part_records, own, i, k); };
  Stops spare;
  Chain whole = chain_at(*plan, Store{memory, records}, i, spare);
  const Chain chain = chain_at(*plan, Store{part_memory, part_records}, part, spare);
  const Totals all = sum_of(count, numbers, lanes);
  merge<R>(whole, chain, sum_of(part % count, numbers, lanes), all, lanes);
  i32 merged = 0;
  if (lanes.leads()) merged = atomicAdd(own_row(*plan, own, i * count) + kOwnMerged, 1);
  if (lanes.from(merged, 0) < count - 1) return;
  set_merged(whole, all);
  i32 steps = 0, lowest = 0;
  for (i32 k = lanes.lane; k < count; k += lanes.W) {
    steps += part_made[i * count + k];
    lowest = least(lowest, part_made[i * count + k]);
  }
  steps = lanes.sum(steps);
  lowest = lanes.least_of(lowest);
  if (lanes.leads()) {
    records[i] = record_of(whole);
    made[i] = lowest == kFull ? kFull : steps;
  }
}
