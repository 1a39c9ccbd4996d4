// K reconstructions in sequence, a block per chain and a warp per order; and the best of K that
// evaluate.cu has weighed, carried out.
#include "block.hpp"

using namespace nds;

namespace {

// A chain in the hands of a block.
struct Desk {
  Instance in;
  Chain chain;
  Solution home;  // where the chain came from, if it was moved
  Scratch scratch;

  template <class C>
  __device__ __forceinline__ Desk(const Plan& plan, const Instance& given, const Store& store,
                                  char* global_scratch, i32 i, const C& crew)
      : in(given) {
    Places spare;
    chain = chain_at(plan, store, i, spare);
    home = chain.now;
    Carver near{shared_memory()};
#if NDS_NEAR_DRAFTS
    scratch = scratch_at(near, plan, crew, true);
#else
    Carver far{global_scratch + u64(i) * plan.scratch_bytes};
    scratch = scratch_at(far, plan, crew, false);
#endif
    scratch.spare = spare;
#if NDS_NEAR_INSTANCE
    in = near_instance(given, near, plan.home.customers + 1);
#endif
#if NDS_NEAR_SOLUTION
    Solution arrays{};
    Sizes sizes = plan.home;
    sizes.routes = plan.work.routes;
    carve(near, arrays, sizes);
    copy_solution(arrays, home, in.n);
    chain = with_arrays(chain, arrays);
#endif
    sync_block();
  }

  __device__ __forceinline__ void put_away(const Store& store, i32 i) {
    sync_block();
#if NDS_NEAR_SOLUTION
    copy_solution(home, chain.now, in.n);
#endif
    if (threadIdx.x == 0) store_record(chain, store.records[i]);
  }
};

}  // namespace

// given: (chains, steps, M) or null; temperature: (chains, steps) in ticks; made: (chains,), which
// adds up over the launches of a call, the first of which begins at step 0.
extern "C" __global__ void __launch_bounds__(NDS_THREADS, NDS_BLOCKS)
    improve_chains(const Plan* plan, const Instance* instances, const i32* which, const i32* number,
                   char* memory, Record* records, char* global_scratch, const i32* given,
                   const double* temperature, i32 steps, i32 from, i32 to, u64 seed, u64 iteration,
                   u64 stop_at, i32* made) {
  const i32 i = i32(blockIdx.x);
  if (made[i] == kFull) return;
  const BlockCrew<true> crew = crew_of_block<true>(stop_at);
  const Store store{memory, records};
  Desk desk(*plan, instances[which[i]], store, global_scratch, i, crew);
  const Recipe recipe = plan->recipe;
  const i32* removed = given ? given + i64(i) * steps * recipe.removals : nullptr;
  const i32 done = improve<R, D>(desk.in, desk.chain, desk.scratch, recipe, removed,
                                 temperature + i64(i) * steps, from, to,
                                 chain_key(seed, iteration, number[i]), crew);
  desk.put_away(store, i);
  if (threadIdx.x == 0) made[i] = from == 0 || done == kFull ? done : made[i] + done;
}

// The first of the best of deltas (chains, rollouts), if it is an improvement.
extern "C" __global__ void __launch_bounds__(NDS_THREADS, NDS_BLOCKS)
    keep_best(const Plan* plan, const Instance* instances, const i32* which, const i32* number,
              char* memory, Record* records, char* global_scratch, const i32* given,
              const i64* deltas, i32 rollouts, u64 seed, u64 iteration, i32* made) {
  const i32 i = i32(blockIdx.x);
  if (made[i] == kFull) return;
  const i64* row = deltas + i64(i) * rollouts;
  i32 best = 0;
  for (i32 k = 1; k < rollouts; ++k) best = row[k] < row[best] ? k : best;
  if (row[best] >= 0) return;
  const BlockCrew<false> crew = crew_of_block<false>(0);  // a single step
  const Store store{memory, records};
  Desk desk(*plan, instances[which[i]], store, global_scratch, i, crew);
  const Recipe recipe = plan->recipe;
  const i32* removed = given ? given + i64(i) * rollouts * recipe.removals : nullptr;
  const i64 delta = evaluate<R, D>(desk.in, desk.chain, desk.scratch, recipe, removed, best,
                                   chain_key(seed, iteration, number[i]), true, crew);
  desk.put_away(store, i);
  if (threadIdx.x == 0 && delta == kNoRoom) made[i] = kFull;
}
