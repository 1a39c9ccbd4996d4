// K steps in sequence, a block per chain and a warp per insertion order; with NDS_SPECULATES, for one insertion order,
// a warp per step. Most of the compile time is for gap_registers.hpp: NDS_GAPS, NDS_BLINKS and NDS_TAILS leave out what
// the call cannot need.
#include "speculate.hpp"

using namespace nds;
#if NDS_SPECULATES
using Crew = SpeculativeCrew<NDS_TAILS != 0>;
#else
using Crew = BlockCrew<NDS_GAPS != 0, NDS_BLINKS != 0, NDS_TAILS != 0>;
#endif

// given: (chains, steps, M) or null; temperature: (chains, steps) in ticks; made: (chains,), the sum over the launches
// of a call. The first launch begins at step 0. own: the customers of each chain if the chains are parts, or null.
// goes_on: 1 to make the steps that linked.cu has left.
extern "C" __global__ void __launch_bounds__(NDS_THREADS, NDS_BLOCKS)
    improve_chains(const Plan* plan, const Instance* instances, const i32* problem_of, const i32* number, char* memory,
                   Record* records, char* far_memory, const i32* given, const double* temperature, i32 steps, i32 from,
                   i32 to, u64 seed, u64 iteration, u64 stop_at, i32* made, const i32* own, i32 goes_on) {
  const i32 i = i32(blockIdx.x);
  if (made[i] == kFull) return;
  [[maybe_unused]] bool exchanged = false;
  if (goes_on) {
    from = made[i] & ~kExchanged, exchanged = (made[i] & kExchanged) != 0;
    if (from >= to) return;
  }
  const Crew crew = crew_of_block<Crew>(stop_at);
  const Store store{memory, records};
  Workbench bench(*plan, instances[problem_of[i]], store, far_memory, i, crew);
  if (own) bench.limit_to(own_row(*plan, own, i));
  const Recipe recipe = plan->recipe;
  const i32* removed = given ? given + i64(i) * steps * recipe.removals : nullptr;
  const u64 key = chain_key(seed, iteration, number[i]);
  const double* temperatures = temperature + i64(i) * steps;
#if NDS_SPECULATES
  const i32 done = improve_speculatively<R, D>(bench.in, bench.chain, bench.work, recipe, removed, temperatures, from,
                                               to, key, kNever, exchanged, DraftedSteps<R>{recipe}, crew);
#else
  const i32 done = improve<R, D>(bench.in, bench.chain, bench.work, recipe, removed, temperatures, from, to, key, crew);
#endif
  bench.write_back(store, i);
  if (threadIdx.x == 0) made[i] = done == kFull ? done : (goes_on || from == 0 ? from : made[i]) + done;
}
