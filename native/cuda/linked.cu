// K steps of string removal and insertion beside nearest customers, a block per chain and a warp per speculative step
// on linked routes. Chains, or parts of them, that do not fit shared memory are left to improve.cu, and so are the
// steps from one on that linked routes cannot make.
#include "linked_step.hpp"
#include "local_part.hpp"
#include "speculate.hpp"

using namespace nds;
using Crew = SpeculativeCrew<NDS_TAILS != 0>;

// The parameters are those of improve_chains.
extern "C" __global__ void __launch_bounds__(NDS_THREADS, NDS_BLOCKS)
    improve_linked(const Plan* plan, const Instance* instances, const i32* problem_of, const i32* number, char* memory,
                   Record* records, char* far_memory, const i32*, const double* temperature, i32 steps, i32 from,
                   i32 to, u64 seed, u64 iteration, u64 stop_at, i32* made, const i32* own, i32) {
  const i32 i = i32(blockIdx.x);
  if (made[i] == kFull) return;
  const Crew crew = crew_of_block<Crew>(stop_at);
  const Store store{memory, records};
  const i32* row = own ? own_row(*plan, own, i) : nullptr;
  const Instance& given = instances[problem_of[i]];
  const i32 n = row ? row[kOwnCount] : given.n;
  i32 done = 0;
  bool exchanged = false;
  const bool fits = n <= NDS_LOCAL_CUSTOMERS && records[i].current.routes <= kMostRoutes;
  if (fits && given.near_count <= kNearAtMost && given.sorts <= kSortsAtMost && D(given).quick()) {
    Carver near{shared_memory(), Crew::shared_bytes}, far_carver{far_memory + u64(i) * plan->workspace_bytes};
    const FarMemory far = carve_far<R>(far_carver, local_sizes(), given.n, crew.team, crew.teams);
    Instance in;
    Chain chain;
    const LocalMemory local = take_part<R, D>(GlobalPart(*plan, given, store, row, i), far, n, near, in, chain, crew);
    Workspace work{};
    work.stripped = far.draft, work.spare = far.spare;
    work.removed = local.removed, work.order = local.order, work.mark = local.mark;
    const Recipe recipe = plan->recipe;
    const LinkedMemory links{local.base, local.links, local.links_bytes, local.number, far.close, local.scratch};
    links.rebuild<R>(in, chain.current);
    const LinkedSteps<R, D> by_links{recipe, links};
    done = improve_speculatively<R, D>(in, chain, work, recipe, nullptr, temperature + i64(i) * steps, from, to,
                                       chain_key(seed, iteration, number[i]), kMostRoutes, exchanged, by_links, crew);
    give_back<R>(GlobalPart(*plan, given, store, row, i), chain, n, crew);
    if (threadIdx.x == 0) records[i] = record_of(chain);
  }
  if (threadIdx.x != 0) return;
  made[i] = done == kFull ? done : ((from == 0 ? 0 : made[i]) + done) | (exchanged ? kExchanged : 0);
}
