// A chain that a block works on: fetched to shared memory as far as it fits, and written back.
#pragma once
#include "block.hpp"

namespace nds::inline NDS_ISA {

struct Workbench {
  Instance in;
  Chain chain;
  Solution home;  // the solution in global memory
  Workspace work;

  template <class C>
  NDS_FN Workbench(const Plan& plan, const Instance& given, const Store& store, char* far_memory, i32 i, const C& crew)
      : in(given) {
    Stops spare;
    chain = chain_at(plan, store, i, spare);
    home = chain.current;
    Carver near{shared_memory(), C::shared_bytes}, far{far_memory + u64(i) * plan.workspace_bytes};
    work = workspace_at(NDS_NEAR_DRAFTS ? near : far, plan, crew, NDS_NEAR_DRAFTS);
    work.spare = spare;
    if (NDS_NEAR_INSTANCE) in = near_instance(given, near, plan.home.customers + 1);
    if (NDS_NEAR_SOLUTION) {
      Solution arrays{};
      Sizes sizes = plan.home;
      sizes.routes = plan.work.routes;
      carve<R>(near, arrays, sizes);
      copy_solution(arrays, home, in.n);
      static_cast<CurrentNumbers&>(arrays) = chain.current;
      chain.current = arrays;
    }
    sync_block();
  }

  // The chain is a part (regions.hpp) with this row of the table of customers.
  NDS_FN void limit_to(const i32* row) {
    chain.current.own_count = row[kOwnCount];
    chain.current.own = row + kOwnHead;
    in.vehicles = row[kOwnVehicles];
  }

  NDS_FN void write_back(const Store& store, i32 i) {
    sync_block();
    if (NDS_NEAR_SOLUTION) copy_solution(home, chain.current, in.n);
    if (threadIdx.x == 0) store.records[i] = record_of(chain);
  }
};

}  // namespace nds::inline NDS_ISA
