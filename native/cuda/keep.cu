// Carry out the best of K steps that evaluate.cu evaluated. Not in improve.cu, which takes long to compile and is all
// that a search needs.
#include "workbench.hpp"

using namespace nds;

// Carry out the first of the lowest deltas (chains, rollouts), if it is negative or `always` is not 0.
extern "C" __global__ void __launch_bounds__(NDS_THREADS, NDS_BLOCKS)
    keep_best(const Plan* plan, const Instance* instances, const i32* problem_of, const i32* number, char* memory,
              Record* records, char* far_memory, const i32* given, const i64* deltas, i32 rollouts, u64 seed,
              u64 iteration, i32 always, i32* made) {
  const i32 i = i32(blockIdx.x);
  if (made[i] == kFull) return;
  const i64* row = deltas + i64(i) * rollouts;
  i32 best = 0;
  for (i32 k = 1; k < rollouts; ++k) best = row[k] < row[best] ? k : best;
  if (row[best] >= (always ? kNoRoom : 0)) return;
  const auto crew = crew_of_block<BlockCrew<false>>(0);  // a single step
  const Store store{memory, records};
  Workbench bench(*plan, instances[problem_of[i]], store, far_memory, i, crew);
  const Recipe recipe = plan->recipe;
  const i32* removed = given ? given + i64(i) * rollouts * recipe.removals : nullptr;
  const i64 delta = evaluate<R, D>(bench.in, bench.chain, bench.work, recipe, removed, best,
                                   chain_key(seed, iteration, number[i]), true, crew);
  bench.write_back(store, i);
  if (threadIdx.x == 0 && delta == kNoRoom) made[i] = kFull;
}
