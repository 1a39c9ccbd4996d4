// Regions: the solution of a chain is split into parts, which are improved at the same time and merged again.
//
// The centres of the regions are the middle stops of some routes. A route belongs to the region whose centre is nearest
// to its middle stop, an unserved customer to the region whose centre is nearest to it. A part is a chain that has the
// routes and the unserved customers of one region. All other customers are elsewhere (kElsewhere), and its steps leave
// them alone. Costs of parts add up to the cost of the solution.
#pragma once
#include "rng.hpp"
#include "solution.hpp"

namespace nds::inline NDS_ISA {

constexpr u64 kOfRegions = ~1ull;  // in place of the number of a step: keeps random numbers apart
constexpr i32 kMergedSlack = 5;    // stops of a merged route's slot besides its customers; the pool has as many

NDS_FN i32 middle_of(const Solution& s, i32 r) { return s.at.node[s.first[r] + (s.size[r] + 1) / 2]; }

// The regions of a solution in one iteration. The routes of the centres have equal distances in the list of routes,
// from a random first one. A merged solution lists the routes of a part one after another, so centres are where routes
// are, and few regions are much larger than others. Without routes the centres are customers.
struct Regions {
  const Solution& whole;
  i32 count, candidates, first;

  NDS_FN Regions(const Instance& in, const Solution& whole, u64 chain_key, i32 count)
      : whole(whole),
        count(count),
        candidates(whole.routes > 0 ? whole.routes : in.n),
        first(Random{key_of(chain_key, kOfRegions)}.below(candidates)) {}

  NDS_FN i32 centre(i32 region) const {
    const i32 i = i32((u32(region) * u32(candidates) + u32(first)) / u32(count));
    return whole.routes > 0 ? middle_of(whole, i) : 1 + i;
  }
  // Returns whether customer c belongs to a region: its centre is the nearest one. Ties go to the lower number. Most
  // customers are nearer to one of the first few centres already.
  NDS_FN bool has(const auto& d, i32 region, i32 c) const {
    const i32 mine = d.length(centre(region), c);
    for (i32 other = 0; other < count; ++other) {
      if (d.length(centre(other), c) < mine + (other < region)) return false;
    }
    return true;
  }
  // Returns the vehicles of a part with so many routes: these, and its share of those that are free.
  NDS_FN i32 vehicles(const Instance& in, i32 region, i32 routes) const {
    const i32 free = most(0, in.vehicles - whole.routes);
    return routes + free / count + (region < free % count);
  }
};

// Copy route r of a solution to another one as its next route.
template <class R> NDS_FN void append_route(Solution& to, const Solution& from, i32 r, auto lanes) {
  const i32 number = to.routes++, first = to.used, size = from.size[r];
  to.used += size + kMergedSlack;
  copy_stops<R>(to.at, first, from.at, from.first[r], size + 2, lanes);
  const i32* node = from.at.node + from.first[r];
  for (i32 p = 1 + lanes.lane; p <= size; p += lanes.W) {
    to.route_of[node[p]] = number;
    to.stop_of[node[p]] = p;
  }
  if (lanes.leads()) {
    each_routes<R>(to, from, [&](auto* array, const auto* other) { array[number] = other[r]; });
    to.first[number] = first;
    to.slot[number] = size + kMergedSlack;
  }
}

NDS_FN void set_unserved(const Solution& s, i32 c, i32 place) {
  s.unserved[place] = c;
  s.unserved_at[c] = place;
  s.route_of[c] = -1;
}

// Make the part of one region; `own` is room for the list of its customers.
template <class R, class D>
NDS_DEEP void split(const Instance& in, const Regions& regions, i32 region, Chain& chain, i32* own, auto lanes) {
  const D d(in);
  const Solution& whole = regions.whole;
  Solution& part = chain.current;
  static_cast<CurrentNumbers&>(part) = CurrentNumbers{};
  for (i32 c = 1 + lanes.lane; c <= in.n; c += lanes.W) part.route_of[c] = kElsewhere;
  lanes.sync();
  i32 count = 0, required = 0;  // of customers; this lane's share
  i64 cost = 0;                 // this lane's share
  for (i32 begin = 0; begin < whole.routes; begin += lanes.W) {
    const i32 r = begin + lanes.lane;
    u32 inside = lanes.ballot(r < whole.routes && regions.has(d, region, middle_of(whole, r)));
    for (; inside != 0; inside &= inside - 1) {
      const i32 here = begin + first_bit(inside), first = whole.first[here], size = whole.size[here];
      for (i32 p = lanes.lane; p <= size; p += lanes.W) {
        cost += whole.at.edge[first + p];
        if (p > 0) own[count + p - 1] = whole.at.node[first + p];
      }
      append_route<R>(part, whole, here, lanes);
      count += size;
    }
  }
  for (i32 begin = 0; begin < whole.unserved_count; begin += lanes.W) {
    const i32 i = begin + lanes.lane;
    const i32 c = i < whole.unserved_count ? whole.unserved[i] : 0;
    const bool inside = c > 0 && regions.has(d, region, c);
    const u32 all = lanes.ballot(inside);
    if (inside) {
      const i32 before = lanes.count_below(all);
      own[count + before] = c;
      set_unserved(part, c, part.unserved_count + before);
      cost += R::lost(in, c);
      required += in.prize[c] == kRequired;
    }
    part.unserved_count += count_bits(all);
    count += count_bits(all);
  }
  part.cost = lanes.sum(cost);
  part.unserved_required = lanes.sum(required);
  part.own = own;
  part.own_count = count;
  start_from_current(chain);
  lanes.sync();
}

// Returns the numbers of a part with so many customers.
NDS_FN Totals totals_of(const Record& part, i32 customers) {
  const CurrentNumbers& now = part.current;
  const BestNumbers& best = part.best;
  const i32 served = customers - now.unserved_count;
  const i32 length = best.best_is_current ? served + now.routes : best.best_length;
  return Totals{now.cost,           best.best_cost,        now.routes, served,
                now.unserved_count, now.unserved_required, length,     best.best_unserved};
}

// Returns the sum of the numbers of parts 0 … count-1; part(i) returns those of one.
NDS_FN Totals sum_of(i32 count, auto part, auto lanes) {
  Totals sum{};
  for (i32 i = lanes.lane; i < count; i += lanes.W) {
    const Totals one = part(i);
    each_total(sum, one, [](auto& total, auto value) { total += value; });
  }
  each_total(sum, sum, [&](auto& total, auto) { total = lanes.sum(total); });
  return sum;
}

// The best solutions of the parts make a solution, too. Returns whether it is the best one of the chain.
NDS_FN bool is_best(const Chain& whole, const Totals& all) { return all.best_cost < whole.best_cost; }

// Write a part to its place in the merged solution: behind the parts before it. The best solution of the chain must be
// saved.
template <class R>
NDS_DEEP void merge(const Chain& whole, const Chain& part, const Totals& before, const Totals& all, auto lanes) {
  Solution to = whole.current;
  to.routes = before.routes;
  to.used = before.served + kMergedSlack * before.routes;
  for (i32 r = 0; r < part.current.routes; ++r) append_route<R>(to, part.current, r, lanes);
  for (i32 i = lanes.lane; i < part.current.unserved_count; i += lanes.W)
    set_unserved(to, part.current.unserved[i], before.unserved + i);
  if (is_best(whole, all)) {
    Chain best = part;
    best.best_tour = whole.best_tour + before.best_length;
    if (part.best_is_current) {
      save_best(best, Alone<decltype(lanes)>{lanes});
    } else {
      for (i32 i = lanes.lane; i < part.best_length; i += lanes.W) best.best_tour[i] = part.best_tour[i];
    }
  }
  lanes.sync();
}

// Give a chain the numbers of its merged solution.
NDS_FN void set_merged(Chain& whole, const Totals& all) {
  CurrentNumbers& now = whole.current;
  now = CurrentNumbers{all.cost, all.routes, all.served + kMergedSlack * all.routes, all.unserved, all.required};
  if (is_best(whole, all)) {
    static_cast<BestNumbers&>(whole) = BestNumbers{all.best_cost, 0, all.best_length, all.best_required};
  }
}

}  // namespace nds::inline NDS_ISA
