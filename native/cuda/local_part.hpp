// A part of a solution (regions.hpp), or all of it, as a problem of its own: its customers are numbered 1, 2, … in the
// order of the part's list. So its arrays fit shared memory, whatever the size of the whole problem, at addresses that
// are known when the kernel is compiled.
#pragma once
#include "block.hpp"

namespace nds::inline NDS_ISA {

NDS_FN Sizes local_sizes() {
  return Sizes{NDS_LOCAL_CUSTOMERS, NDS_LOCAL_REMOVED, NDS_LOCAL_ROUTES, NDS_LOCAL_POOL, NDS_LOCAL_STOPS, 0};
}
constexpr i32 kMostRoutes = NDS_LOCAL_ROUTES - NDS_LOCAL_REMOVED - 1;  // with which a step has enough memory

// A part in global memory, with the numbers of the whole problem.
struct GlobalPart {
  Instance in;
  Chain chain;
  const i32* own;  // its customers; null: all of the problem's

  NDS_FN GlobalPart(const Plan& plan, const Instance& given, const Store& store, const i32* row, i32 i) : in(given) {
    Stops spare;
    chain = chain_at(plan, store, i, spare);
    own = row ? row + kOwnHead : nullptr;
    if (row) in.vehicles = row[kOwnVehicles];
  }
  NDS_FN i32 customer(i32 c) const { return own && c > 0 ? own[c - 1] : c; }
};

NDS_FN void each_customer(i32 n, auto call) {
  for (i32 c = 1 + i32(threadIdx.x); c <= n; c += blockDim.x) call(c);
}
NDS_FN void set_unserved_at(const Solution& s, i32 i, i32 c) {
  s.unserved[i] = c;
  s.unserved_at[c] = i;
}
NDS_FN void number_tour(const Chain& chain, auto number) {
  for (i32 i = threadIdx.x; i < chain.best_length; i += blockDim.x) chain.best_tour[i] = number(chain.best_tour[i]);
}

// List the nearest customers of the part, a warp per customer.
NDS_FN void list_close(const GlobalPart& whole, const FarMemory& far, i32 n, auto crew) {
  const Warp lanes = crew.lanes;
  const i32 count = whole.in.near_count;
  for (i32 c = 1 + crew.team; c <= n; c += crew.teams) {
    const i32* row = whole.in.near + i64(whole.customer(c)) * count;
    i32 seen = 0;
    for (i32 begin = 0; begin < count && seen < kClose; begin += Warp::W) {
      const i32 i = begin + lanes.lane, v = i < count ? far.part[row[i]] : 0;
      const u32 all = lanes.ballot(v > 0);
      const i32 rank = seen + lanes.count_below(all);
      if (v > 0 && rank < kClose) far.close[c * kClose + rank] = u16(v);
      seen += count_bits(all);
    }
    for (i32 i = seen + lanes.lane; i < kClose; i += Warp::W) far.close[c * kClose + i] = 0;
  }
}

// Give the routes slots one after another. Returns the stops that they take.
NDS_FN i32 place_routes(const Solution& s, auto crew) {
  const Warp lanes = crew.lanes;
  i32 used = 0;
  for (i32 begin = 0; begin < s.routes; begin += Warp::W) {
    const i32 r = begin + lanes.lane, slot = r < s.routes ? slot_for(s.size[r]) : 0;
    const i32 end = lanes.up_to(MaxPlus{slot, 0}).a;
    if (crew.team == 0 && r < s.routes) s.first[r] = used + end - slot, s.slot[r] = slot;
    used += lanes.from(end, Warp::W - 1);
  }
  return used;
}

// Copy the routes of a solution, and number their customers; `to` has its numbers already. Returns the stops that they
// take.
template <class R> NDS_FN i32 copy_routes(const Solution& to, const Solution& from, auto number, auto crew) {
  each_routes<R>(to, from, [&](auto* array, const auto* other) { copy_block(array, other, from.routes); });
  sync_block();
  const i32 used = place_routes(to, crew);
  sync_block();
  for (i32 r = crew.team; r < to.routes; r += crew.teams) {
    const i32 first = to.first[r], size = to.size[r];
    copy_stops<R>(to.at, first, from.at, from.first[r], size + 2, crew.lanes);
    for (i32 p = crew.lanes.lane; p < size + 2; p += Warp::W) to.at.node[first + p] = number(to.at.node[first + p]);
  }
  return used;
}

// Make a part that fits a problem and a chain of its own: `in` and `chain` for numbers from 1 to n.
template <class R, class D>
NDS_FN LocalMemory take_part(const GlobalPart& whole, const FarMemory& far, i32 n, Carver& near, Instance& in,
                             Chain& chain, auto crew) {
  const Solution& from = whole.chain.current;
  for (i32 c = threadIdx.x; c <= whole.in.n; c += blockDim.x) far.part[c] = whole.own ? 0 : c;
  sync_block();
  if (whole.own) each_customer(n, [&](i32 c) { far.part[whole.own[c - 1]] = c; });
  sync_block();

  const auto fill = [&](auto* to, const auto* array) {
    if (threadIdx.x == 0) to[0] = array[0];
    each_customer(n, [&](i32 c) { to[c] = array[whole.customer(c)]; });
  };
  in = whole.in, in.n = n, in.part = far.part, in.rank = far.rank, in.ways = nullptr;
  LocalMemory local = carve_local<R, D>(near, in, local_sizes(), crew.team, crew.teams, fill);
  for (i32 k = 0; k < in.sorts; ++k) fill(far.rank + k * (n + 1), whole.in.rank + i64(k) * (whole.in.n + 1));
  if (in.alone) fill(far.alone, in.alone), in.alone = far.alone;
  if (in.weight) fill(far.weight, in.weight), in.weight = far.weight;
  list_close(whole, far, n, crew);
  in.whole = local.number;
  if (threadIdx.x == 0) local.number[0] = 0;
  each_customer(n, [&](i32 c) { local.number[c] = u16(whole.customer(c)); });

  Solution& s = local.solution;
  static_cast<CurrentNumbers&>(s) = from;
  s.used = copy_routes<R>(s, from, [&](i32 c) { return far.part[c]; }, crew);
  each_customer(n, [&](i32 c) {
    s.route_of[c] = from.route_of[whole.customer(c)];
    s.stop_of[c] = from.stop_of[whole.customer(c)];
  });
  if (threadIdx.x == 0) s.route_of[0] = kElsewhere;
  if constexpr (R::kNodeFields > 0) {
    for (i32 i = threadIdx.x; i < s.unserved_count; i += blockDim.x) set_unserved_at(s, i, far.part[from.unserved[i]]);
  }
  chain = whole.chain;
  chain.current = s;
  if (!chain.best_is_current) number_tour(chain, [&](i32 c) { return far.part[c]; });
  for (i32 c = crew.lanes.lane; c <= n; c += Warp::W) local.mark[c] = 0;
  sync_block();
  return local;
}

// Write a chain back, with the numbers of the whole problem.
template <class R> NDS_FN void give_back(const GlobalPart& whole, Chain& chain, i32 n, auto crew) {
  sync_block();
  Solution to = whole.chain.current;
  const Solution& s = chain.current;
  static_cast<CurrentNumbers&>(to) = s;
  chain.current.used = copy_routes<R>(to, s, [&](i32 c) { return whole.customer(c); }, crew);
  each_customer(n, [&](i32 c) {
    to.route_of[whole.customer(c)] = s.route_of[c];
    to.stop_of[whole.customer(c)] = s.stop_of[c];
  });
  if constexpr (R::kNodeFields > 0) {
    for (i32 i = threadIdx.x; i < s.unserved_count; i += blockDim.x)
      set_unserved_at(to, i, whole.customer(s.unserved[i]));
  }
  if (!chain.best_is_current) number_tour(chain, [&](i32 c) { return whole.customer(c); });
}

}  // namespace nds::inline NDS_ISA
