// Regions: the solution of a chain is split into parts, which are improved at the same time and merged again.
//
// The items of a solution are its routes, each at the place of its middle stop, and its unserved customers. A cut
// divides them in two: they are sorted by how much nearer they are to one of two random items than to the other, and
// each side gets as large a share of the customers as of the regions. Both sides are cut again until there is one
// region left. A part is a chain that has the routes and the unserved customers of one region. All other customers are
// elsewhere (kElsewhere), and its steps leave them alone. Costs of parts add up to the cost of the solution.
#pragma once
#include "rng.hpp"
#include "solution.hpp"

namespace nds::inline NDS_ISA {

constexpr u64 kOfRegions = ~1ull;  // in place of the number of a step: keeps random numbers apart
constexpr i32 kCloseCut = 64;      // a cut may miss its share by one customer in so many
constexpr i32 kMergedSlack = 5;    // stops of a merged route's slot besides its customers; the pool has as many

// The items of a solution, by number: routes first.
struct Items {
  const Solution& whole;

  NDS_FN i32 all() const { return whole.routes + whole.unserved_count; }
  NDS_FN bool is_route(i32 item) const { return item < whole.routes; }
  NDS_FN i32 customer(i32 item) const { return whole.unserved[item - whole.routes]; }
  NDS_FN i32 place(i32 item) const {
    return is_route(item) ? whole.at.node[whole.first[item] + (whole.size[item] + 1) / 2] : customer(item);
  }
  NDS_FN i32 customers(i32 item) const { return is_route(item) ? whole.size[item] : 1; }
};

// A list of items that one cut after another makes shorter.
template <class D, class L> struct ItemList {
  const Items items;
  const D& d;
  i32* list;
  i32 count;
  L lanes;

  NDS_FN ItemList(const Solution& whole, const D& d, i32* list, L lanes)
      : items{whole}, d(d), list(list), count(items.all()), lanes(lanes) {
    for (i32 i = lanes.lane; i < count; i += L::W) list[i] = i;
    lanes.sync();
  }
  NDS_FN i32 place(i32 i) const { return items.place(list[i]); }
  // Keep one side of a cut: the lower one is for `low` of the regions.
  NDS_FN void cut(i32 low, i32 regions, bool keep_low, Random random) {
    if (count == 0) return;
    const i32 i = random.below(count), j = count > 1 ? (i + 1 + random.below(count - 1)) % count : i;
    const i32 one = place(i), other = place(j);
    // In the plane this grows with the way in the direction from the one to the other: the cut is a straight line.
    const auto key = [&](i32 item) {
      const i64 a = d.length(one, place(item)), b = d.length(other, place(item));
      return a * a - b * b;
    };
    i64 least_key = key(0), most_key = least_key;
    i32 customers = 0;
    for (i32 k = lanes.lane; k < count; k += L::W) {
      const i64 here = key(k);
      if (here < least_key) least_key = here;
      if (here > most_key) most_key = here;
      customers += items.customers(list[k]);
    }
    customers = lanes.sum(customers);
    const i32 share = i32(i64(customers) * low / regions), close = customers / kCloseCut;
    // Up to `below` there are no more customers than the share, up to `above` there are more.
    i64 below = lanes.least_of(least_key) - 1, above = -lanes.least_of(-most_key);
    i32 missing = share, beyond = customers - share;
    while (above - below > 1 && least(missing, beyond) > close) {
      const i64 middle = below + (above - below) / 2;
      i32 sum = 0;
      for (i32 i = lanes.lane; i < count; i += L::W) sum += key(i) <= middle ? items.customers(list[i]) : 0;
      sum = lanes.sum(sum);
      if (sum <= share)
        below = middle, missing = share - sum;
      else
        above = middle, beyond = sum - share;
    }
    const i64 border = missing <= beyond ? below : above;
    i32 kept = 0;
    for (i32 begin = 0; begin < count; begin += L::W) {
      const i32 i = begin + lanes.lane, item = i < count ? list[i] : 0;
      const bool stays = i < count && (key(i) <= border) == keep_low;
      const u32 all = lanes.ballot(stays);
      if (stays) list[kept + lanes.count_below(all)] = item;
      kept += count_bits(all);
    }
    count = kept;
    lanes.sync();
  }
};

// List the items of one of so many regions in their order; `list` is room for all items.
template <class D, class L>
NDS_FN ItemList<D, L> items_of_region(const Solution& whole, const D& d, u64 chain_key, i32 regions, i32 region,
                                      i32* list, L lanes) {
  ItemList<D, L> items(whole, d, list, lanes);
  const u64 key = key_of(chain_key, kOfRegions);
  for (i32 node = 1; regions > 1;) {  // of the tree of cuts
    const i32 low = regions / 2;
    const bool is_low = region < low;
    items.cut(low, regions, is_low, Random{key_of(key, u64(node))});
    node = 2 * node + (is_low ? 0 : 1);
    region -= is_low ? 0 : low;
    regions = is_low ? low : regions - low;
  }
  return items;
}

// Returns the vehicles of a part with so many routes: these, and its share of those that are free.
NDS_FN i32 vehicles_of(const Instance& in, const Solution& whole, i32 regions, i32 region, i32 routes) {
  const i32 free = most(0, in.vehicles - whole.routes);
  return routes + free / regions + (region < free % regions);
}

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
NDS_DEEP void split(const Instance& in, const Solution& whole, u64 chain_key, i32 regions, i32 region, Chain& chain,
                    i32* own, auto lanes) {
  const D d(in);
  const auto items = items_of_region(whole, d, chain_key, regions, region, chain.best_tour, lanes);
  Solution& part = chain.current;
  static_cast<CurrentNumbers&>(part) = CurrentNumbers{};
  for (i32 c = 1 + lanes.lane; c <= in.n; c += lanes.W) part.route_of[c] = kElsewhere;
  lanes.sync();
  i32 count = 0, required = 0;  // of customers; this lane's share
  i64 cost = 0;                 // this lane's share
  i32 next = 0;                 // of the items
  for (; next < items.count && items.items.is_route(items.list[next]); ++next) {
    const i32 here = items.list[next], first = whole.first[here], size = whole.size[here];
    for (i32 p = lanes.lane; p <= size; p += lanes.W) {
      cost += whole.at.edge[first + p];
      if (p > 0) own[count + p - 1] = whole.at.node[first + p];
    }
    append_route<R>(part, whole, here, lanes);
    count += size;
  }
  part.unserved_count = items.count - next;
  for (i32 i = lanes.lane; i < part.unserved_count; i += lanes.W) {
    const i32 c = items.items.customer(items.list[next + i]);
    own[count + i] = c;
    set_unserved(part, c, i);
    cost += R::prize(in, c);
    required += in.prize[c] == kRequired;
  }
  count += part.unserved_count;
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
