// Start, view, exchange and export chains. A block of one warp or more per chain.
#include "block.hpp"
#include "ndsvrp/exchange.hpp"

using namespace nds;

// Set the current and the best solution of each chain to a tour (routes, each ended by a 0): row row_of[i] of tours
// (rows, longest), whose lengths are (rows,).
extern "C" __global__ void start_chains(const Plan* plan, const Instance* instances, const i32* problem_of,
                                        char* memory, Record* records, const i32* row_of, const i32* tours,
                                        const i32* lengths, i32 longest) {
  const i32 i = i32(blockIdx.x), row = row_of[i];
  if (row < 0) return;
  const Warp lanes{i32(threadIdx.x), 0};
  const Instance& in = instances[problem_of[i]];
  Stops spare;
  const Store store{memory, records};
  Chain chain = chain_at(*plan, store, i, spare);
  clear<R>(in, chain.current, lanes);
  const i32* tour = tours + i64(row) * longest;
  for (i32 begin = 0, end = 0; end < lengths[row]; begin = ++end) {
    while (tour[end] != 0) ++end;
    add_route<R>(in, D(in), chain.current, tour + begin, end - begin, lanes);
  }
  start_from_current(chain);
  chain.best_length = 0;
  if (lanes.leads()) store.records[i] = record_of(chain);
}

// Write the previous node, the next node and the route of each customer to row number[i] of three arrays (rows, nodes);
// 0, 0, -1 for unserved customers and padding.
extern "C" __global__ void view_chains(const Plan* plan, const Instance* instances, const i32* problem_of,
                                       const i32* number, char* memory, Record* records, i32 nodes, i32* previous,
                                       i32* next, i32* route) {
  const i32 i = i32(blockIdx.x);
  const i64 row = i64(number[i]) * nodes;
  Stops spare;
  const Chain chain = chain_at(*plan, Store{memory, records}, i, spare);
  const Solution& s = chain.current;
  const i32 n = instances[problem_of[i]].n;
  for (i32 c = threadIdx.x; c < nodes; c += blockDim.x) {
    const i32 r = c > 0 && c <= n ? s.route_of[c] : -1;
    const i32* here = r < 0 ? nullptr : s.at.node + s.first[r] + s.stop_of[c];
    previous[row + c] = r < 0 ? 0 : here[-1];
    next[row + c] = r < 0 ? 0 : here[1];
    route[row + c] = r;
  }
}

// Exchange, first part: choose the chain that each continues from, usually itself. reach: (chains,) in ticks.
extern "C" __global__ void choose_sources(const Plan*, const Instance* instances, const i32* problem_of,
                                          const i32* group_of, const i32* number, const Record* records,
                                          const double* reach, u64 seed, u64 iteration, i32* source) {
  const i32 i = i32(blockIdx.x);
  const struct {
    const Instance* instances;
    const i32* problem_of;
    const Record* records;
    const i32* group_of;
    i32 chains;
    NDS_FN i64 of(i32 j) const { return relieved_cost(records[j].current, instances[problem_of[j]]); }
  } costs{instances, problem_of, records, group_of, i32(gridDim.x)};
  const i32 from = source_of(costs, i, reach[i], chain_key(seed, iteration, number[i]), Warp{i32(threadIdx.x), 0});
  if (threadIdx.x == 0) source[i] = from;
}

// Second part: copy the current solution of each chain's source. A source is its own source, and costs less than the
// chain that copies it: no best solution needs saving, unless unserved customers count less.
extern "C" __global__ void replace_chains(const Plan* plan, const Instance* instances, const i32* problem_of,
                                          char* memory, Record* records, const i32* source) {
  const i32 to = i32(blockIdx.x), from = source[to];
  if (from == to) return;
  Stops spare;
  const Store store{memory, records};
  const Chain other = chain_at(*plan, store, from, spare);
  Chain chain = chain_at(*plan, store, to, spare);
  const Instance& in = instances[problem_of[to]];
  if (chain.best_is_current && in.relief != 0) {
    if (threadIdx.x < Warp::W) save_best(chain, Alone<Warp>{Warp{i32(threadIdx.x), 0}});
    sync_block();
  }
  copy_solution(chain.current, other.current, in.n);
  static_cast<CurrentNumbers&>(chain.current) = other.current;
  if (chain.current.cost < chain.best_cost) start_from_current(chain);
  sync_block();  // all threads have read the record
  if (threadIdx.x == 0) store.records[to] = record_of(chain);
}

// Write the best or the current tours of consecutive chains, a row of so many numbers each: the length, then the tour.
extern "C" __global__ void export_chains(const Plan* plan, char* memory, Record* records, i32 first, i32 best,
                                         i32 numbers, i32* rows) {
  const i32 i = first + i32(blockIdx.x);
  i32* length = rows + i64(blockIdx.x) * numbers;
  i32* tour = length + 1;
  Stops spare;
  Chain chain = chain_at(*plan, Store{memory, records}, i, spare);
  const bool kept = best && !chain.best_is_current;
  const i32* saved = chain.best_tour;
  chain.best_tour = tour;
  if (kept) {
    copy_block(tour, saved, chain.best_length);
  } else {
    save_best(chain, Alone<Warp>{Warp{i32(threadIdx.x), 0}});
  }
  if (threadIdx.x == 0) *length = chain.best_length;
}
