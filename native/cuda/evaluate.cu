// K steps from the same solution, a block per rollout and a warp per insertion order. Drafts are in shared memory.
// Rollouts whose drafts do not fit are listed, for the same kernel compiled for drafts in global memory.
#include "block.hpp"

using namespace nds;

// given: (chains, rollouts, M) or null; deltas: (chains, rollouts) in ticks; list: (chains * rollouts,), listed: (1,).
// With drafts in global memory: the rollouts of the list, or all if it is null.
extern "C" __global__ void __launch_bounds__(NDS_THREADS, NDS_BLOCKS)
    evaluate_rollouts(const Plan* plan, const Instance* instances, const i32* problem_of, const i32* number,
                      char* memory, Record* records, char* far_memory, const i32* given, i32 rollouts, i32 total,
                      u64 seed, u64 iteration, i64* deltas, i32* list, i32* listed) {
  const auto crew = crew_of_block<BlockCrew<false>>(0);
  constexpr bool near = NDS_NEAR_DRAFTS;
  char* memory_here = near ? shared_memory() : far_memory + u64(blockIdx.x) * plan->workspace_bytes;
  Carver carver{memory_here};
  Workspace work = workspace_at(carver, *plan, crew, near);
  sync_block();
  const Store store{memory, records};
  const Recipe recipe = plan->recipe;
  const bool listed_only = !near && list;
  const i32 count = listed_only ? *listed : total;
  for (i32 t = i32(blockIdx.x); t < count; t += i32(gridDim.x)) {
    const i32 task = listed_only ? list[t] : t;
    const i32 i = task / rollouts, k = task % rollouts;
    const i32* removed = given ? given + i64(i) * rollouts * recipe.removals : nullptr;
    const Instance& in = instances[problem_of[i]];
    Chain chain = chain_at(*plan, store, i, work.spare);
    const i64 delta =
        evaluate<R, D>(in, chain, work, recipe, removed, k, chain_key(seed, iteration, number[i]), false, crew);
    if (threadIdx.x == 0) {
      deltas[task] = delta;
      if (near && delta == kNoRoom) list[atomicAdd(listed, 1)] = task;
    }
    crew.sync();
  }
}
