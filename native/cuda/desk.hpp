// A chain in the hands of a block: fetched to where there is room, worked on, put away.
#pragma once
#include "block.hpp"

namespace nds {
inline namespace NDS_ISA {

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

}  // namespace NDS_ISA
}  // namespace nds
