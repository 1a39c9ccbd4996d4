// A step on linked routes: every customer knows the ones before and after it, so that nothing is copied or moved when
// customers are taken out and inserted. For insertion beside nearest customers (near.hpp) and lengths between points;
// the result is that of `strip` and `recreate`.
#pragma once
#include "speculate.hpp"

namespace nds::inline NDS_ISA {

constexpr i32 kLinkedAtMost = 32;  // customers removed, and changed routes: one per lane

// The memory of linked steps, see memory.hpp.
struct LinkedMemory {
  Links base, links;  // the solution's, which all warps share, and those of this warp
  i32 bytes;          // of one of them
  const u16 *number, *close;
  u16* scratch;  // of this warp

  // Link the routes of the solution, by all threads.
  template <class R> NDS_FN void rebuild(const Instance& in, const Solution& s) const {
    for (i32 c = 1 + i32(threadIdx.x); c <= in.n; c += blockDim.x) {
      const i32 r = s.route_of[c];
      base.route[c] = u16(r < 0 ? kUnlinked : r);
      if (r < 0) continue;
      const i32 p = s.first[r] + s.stop_of[c];
      base.before[c] = u16(s.at.node[p - 1]), base.after[c] = u16(s.at.node[p + 1]);
      if constexpr (R::refreshes) base.edge[c] = s.at.edge[p];
      R::set_prefix(base, c, R::prefix_at(s.at, p));
      R::set_suffix(base, c, R::suffix_at(s.at, p));
    }
    for (i32 r = threadIdx.x; r < s.routes; r += blockDim.x) {
      const i32 first = s.first[r], size = s.size[r];
      base.head[r] = u16(s.at.node[first + 1]), base.tail[r] = u16(s.at.node[first + size]);
      base.size[r] = u16(size);
      R::set_route(base, r, R::route_at(s, r));
    }
    if (threadIdx.x == 0) {  // the depot
      typename R::template Prefix<i32> prefix{};
      typename R::template Suffix<i32> suffix{};
      R::begin(in, prefix), R::end(in, suffix);
      R::set_prefix(base, 0, prefix), R::set_suffix(base, 0, suffix);
    }
    sync_block();
  }
};

template <class R, class D> class LinkedStep {
 public:
  NDS_FN LinkedStep(const Instance& in, const D& d, const Solution& s, const LinkedMemory& memory, Warp lanes)
      : in_(in), d_(d), s_(s), links_(memory.links), memory_(memory), lanes_(lanes) {}

  // Remove customers and insert them again, in their order. Returns false if that has to be done by drafts: a route is
  // feasible only with its removed customers, or too many routes change.
  NDS_FN bool make(const i32* removed, const i32* order, i32 count, const Greedy& greedy, Draft& draft) {
    draft.segments = draft.unserved_count = 0;
    load();
    if (!strip(removed, count)) return false;
    const auto close_to = [&](i32 c) {
      return lanes_.lane < greedy.insert_near ? memory_.close[c * kClose + lanes_.lane] : 0;
    };
    i32 close = close_to(order[0]);
    for (i32 turn = 0; turn < count; ++turn) {
      const i32 here = close, next = turn + 1 < count ? order[turn + 1] : order[0];
      close = close_to(next);  // ahead of its use: it takes a while
      if (!insert(order[turn], here, turn, greedy, draft)) return false;
    }
    draft.delta = delta_;
    return true;
  }

  // Whether the routes are those of the solution.
  NDS_FN bool is_unchanged() const {
    const Links& base = memory_.base;
    bool differs = false;
    for (i32 c = 1 + lanes_.lane; c <= in_.n; c += Warp::W) {
      differs |= links_.route[c] != base.route[c];
      if (base.route[c] == kUnlinked) continue;
      differs |= links_.before[c] != base.before[c] || links_.after[c] != base.after[c];
    }
    return lanes_.ballot(differs) == 0;
  }

  // Write the changed routes to the draft. Returns false if it is full.
  NDS_FN bool write(Draft& draft) const {
    draft.used = draft.full = draft.segments = 0;
    for (i32 t = 0; t < touched_; ++t) {
      const i32 r = lanes_.from(mine_, t);
      if (new_segment<R>(draft, r, links_.size[r], R::route_at(links_, r), true, lanes_) < 0) return false;
    }
    lanes_.sync();
    if (lanes_.lane < touched_) {
      i32* node = draft.at.node + draft.segment[lanes_.lane].first;
      *node++ = 0;
      if (draft.segment[lanes_.lane].size > 0) {
        for (i32 c = links_.head[mine_]; c != 0; c = links_.after[c]) *node++ = c;
      }
      *node = 0;
    }
    lanes_.sync();
    for (i32 t = 0; t < touched_; ++t) {
      const i32 first = draft.segment[t].first, size = draft.segment[t].size;
      if (size == 0) continue;
      const Stops& at = draft.at;
      for (i32 p = first + lanes_.lane; p <= first + size; p += Warp::W)
        at.edge[p] = length(at.node[p], at.node[p + 1]);
      lanes_.sync();
      auto route = R::route_at(links_, lanes_.from(mine_, t));
      R::refresh(in_, d_, at, first, size, route, lanes_);
    }
    return true;
  }

 private:
  // The arrays of links are one block of memory.
  NDS_FN void load() {
    struct alignas(16) Words {
      u32 word[4];
    };
    Words* to = reinterpret_cast<Words*>(links_.before);
    const Words* from = reinterpret_cast<const Words*>(memory_.base.before);
    const i32 count = memory_.bytes / i32(sizeof(Words));
#pragma unroll 4
    for (i32 i = lanes_.lane; i < count; i += Warp::W) to[i] = from[i];
    routes_ = s_.routes;
    lanes_.sync();
  }

  // Put a and b, one of which may be the depot, next to each other in route r, `edge` apart.
  NDS_FN void link(i32 r, i32 a, i32 b, i32 edge) const {
    *(a != 0 ? links_.after + a : links_.head + r) = u16(b);
    *(b != 0 ? links_.before + b : links_.tail + r) = u16(a);
    if constexpr (R::refreshes) links_.edge[a] = edge;  // that of the depot has no meaning
  }
  NDS_FN i32 next(i32 r, i32 a) const { return a != 0 ? links_.after[a] : links_.head[r]; }
  NDS_FN i32 previous(i32 r, i32 b) const { return b != 0 ? links_.before[b] : links_.tail[r]; }

  using Prefix = typename R::template Prefix<i32>;
  using Suffix = typename R::template Suffix<i32>;
  NDS_FN i32 length(i32 a, i32 b) const { return d_.length_between(d_.spot(a), d_.spot(b)); }

  // Compute the state of the stops of route r behind node a, or before it: to the end, or until it stays the same.
  // Lanes go their ways in both directions at once. Returns whether all stops are feasible.
  NDS_FN bool go(i32 r, i32 a, bool forward, bool to_end) const {
    Prefix prefix = R::prefix_at(links_, a);
    Suffix suffix = R::suffix_at(links_, a);
    i32 b = forward ? next(r, a) : previous(r, a);
    i32 edge = a != 0 ? links_.edge[a] : forward ? length(0, b) : 0;
    bool fine = true;
    NDS_ROLLED
    while (b != 0) {
      if (!forward) edge = links_.edge[b];
      bool changes;
      if (forward) {
        fine &= R::follow(in_, b, edge, prefix);
        changes = R::change_prefix(links_, b, prefix);
        edge = links_.edge[b];
      } else {
        R::precede(in_, b, edge, suffix);
        changes = R::change_suffix(links_, b, suffix);
      }
      if (!changes && !to_end) return fine;
      b = forward ? links_.after[b] : links_.before[b];
    }
    return fine & (!forward || R::follow(in_, 0, edge, prefix));
  }

  // Note that a route changes. Returns false if too many do.
  NDS_FN bool touch(i32 r) {
    if (lanes_.ballot(mine_ == r) != 0) return true;
    if (touched_ == kLinkedAtMost) return false;
    mine_ = lanes_.lane == touched_ ? r : mine_;
    ++touched_;
    return true;
  }

  // List the removed customers that are served, as many as there are lanes at most. Returns how many there are.
  NDS_FN i32 list_served(const i32* removed, i32 count) const {
    i32 served = 0;
    for (i32 begin = 0; begin < count; begin += Warp::W) {
      const i32 i = begin + lanes_.lane, c = i < count ? removed[i] : 0;
      const bool is_served = c != 0 && links_.route[c] != kUnlinked;
      const u32 all = lanes_.ballot(is_served);
      const i32 place = served + lanes_.count_below(all);
      if (is_served && place < kLinkedAtMost) memory_.scratch[place] = u16(c);
      served += count_bits(all);
    }
    lanes_.sync();
    return served;
  }

  // Take out the removed customers, one per lane. Returns false if a route is feasible only with them, or if there are
  // more of them.
  NDS_FN bool strip(const i32* removed, i32 count) {
    const i32 listed = list_served(removed, count);
    if (listed > kLinkedAtMost) return false;
    const bool served = lanes_.lane < listed;
    const i32 c = served ? memory_.scratch[lanes_.lane] : 0, r = served ? links_.route[c] : kUnlinked;
    const i32 before = served ? links_.before[c] : 0;
    const u32 alike = lanes_.alike(r);
    lanes_.sync();
    if (served) links_.route[c] = kUnlinked;
    lanes_.sync();
    const auto is_removed = [&](i32 v) { return v != 0 && links_.route[v] == kUnlinked; };
    const bool starts = served && !is_removed(before);  // a string
    i32 last = c, after = 0, edge = 0;
    i64 change = 0;
    if (served) change = R::prize(in_, c) - length(before, c);
    if (starts) {
      for (after = links_.after[c]; is_removed(after); after = links_.after[after]) last = after;
      if ((before | after) != 0) edge = length(before, after);
      change += edge - length(last, after);
    }
    delta_ = lanes_.total(change);
    lanes_.sync();
    if (starts) link(r, before, after, edge);
    const bool leads = served && first_bit(alike) == lanes_.lane;
    for (u32 left = lanes_.ballot(leads); left != 0; left &= left - 1) {
      const i32 leader = first_bit(left), route = lanes_.from(r, leader);
      typename R::template Route<i32> share{}, rest = R::route_at(links_, route);
      if (r == route) R::add(in_, c, share);
      R::each_route(rest, share, [&](i32& total, i32 part) { total -= lanes_.sum(part); });
      const i32 size = links_.size[route] - count_bits(u32(lanes_.from(i32(alike), leader)));
      lanes_.sync();
      if (lanes_.leads()) R::set_route(links_, route, rest), links_.size[route] = u16(size);
      routes_ -= size == 0;
      mine_ = lanes_.lane == touched_ ? route : mine_;
      ++touched_;
    }
    lanes_.sync();
    if constexpr (!R::refreshes) return true;
    // A route that lost one string changes from there on; one that lost several is computed anew.
    const u32 strings = lanes_.ballot(starts) & alike;
    const i32 string = strings != 0 ? first_bit(strings) : 0;
    const i32 a = lanes_.from(before, string), b = lanes_.from(after, string);
    bool fine = true;
    if (leads && links_.size[r] > 0) {
      const bool several = (strings & (strings - 1)) != 0;
      fine = go(r, several ? 0 : a, true, several);
      go(r, several ? 0 : b, false, several);
    }
    return lanes_.ballot(!fine) == 0;
  }

  // A position for a customer, between two nodes of a route; -1: in none.
  struct Position {
    i32 cost, route, before, after;
  };

  // A customer v and its route, and what another one costs before and after it; kNever where that does not fit.
  struct Beside {
    i32 v, route, before, after;
    i32 first, second;
  };
  NDS_FN Beside beside(const Insertion<R>& insertion, i32 v) const {
    Beside out{v, v != 0 ? i32(links_.route[v]) : kUnlinked, 0, 0, kNever, kNever};
    if (out.route == kUnlinked) return out;
    out.before = links_.before[v], out.after = links_.after[v];
    const auto route = R::route_at(links_, out.route);
    const auto c = d_.spot(insertion.c), at_v = d_.spot(v), at_before = d_.spot(out.before);
    const auto at_after = d_.spot(out.after);
    const i32 way = d_.length_between(at_v, c);
    const i32 to = d_.length_between(at_before, c), from = d_.length_between(at_after, c);
    const i32 before = to + way - d_.length_between(at_before, at_v);
    const i32 after = way + from - d_.length_between(at_v, at_after);
    const bool fits = insertion.probe.fits_route(route);
    const auto fits_between = [&](i32 a, i32 b, i32 one, i32 other, i32 cost) {
      return fits & insertion.probe.fits_position(route, R::prefix_at(links_, a), R::suffix_at(links_, b),
                                                  Ways{one, other, one, other}, cost);
    };
    out.first = fits_between(out.before, v, to, way, before) ? before : kNever;
    out.second = fits_between(v, out.after, way, from, after) ? after : kNever;
    return out;
  }

  NDS_FN bool blinks(const Insertion<R>& insertion, i32 a, i32 b) const {
    return insertion.blinks.threshold != 0 && insertion.blinks.at(insertion.turn, memory_.number[a], memory_.number[b]);
  }

  // The best position beside the nearest customers, one per lane, as of best_beside: lanes are in the order of ties.
  NDS_FN Position choose(const Insertion<R>& insertion, i32 v, i32 limit) const {
    Beside mine = beside(insertion, v);
    while (true) {
      const i32 least_here = least(mine.first, mine.second), cost = lanes_.least_of(least_here);
      if (cost >= limit) return Position{cost, -1, 0, 0};
      const i32 winner = first_bit(lanes_.ballot(least_here == cost));
      const bool first = mine.first == least_here;
      const i32 before = first ? mine.before : mine.v, after = first ? mine.v : mine.after;
      const Position position{cost, lanes_.from(mine.route, winner), lanes_.from(before, winner),
                              lanes_.from(after, winner)};
      if (!blinks(insertion, position.before, position.after)) return position;
      if (lanes_.lane == winner) (first ? mine.first : mine.second) = kNever;
    }
  }

  // The same for the other customers in the list of neighbours, for a customer that fits beside none of the nearest.
  NDS_FN Position choose_widely(const Insertion<R>& insertion, i32 nearest) const {
    const NearRow near(in_, insertion.c);
    i32 listed = 0;  // those beside which it may fit
    for (i32 begin = nearest & -Warp::W; begin < in_.near_count; begin += Warp::W) {
      const i32 i = begin + lanes_.lane, v = i < in_.near_count ? near[i] : 0;
      const bool may = v != 0 && may_fit(insertion, v);
      const u32 all = lanes_.ballot(may);
      if (may) memory_.scratch[listed + lanes_.count_below(all)] = u16(v);
      listed += count_bits(all);
    }
    lanes_.sync();
    Choice best{kNever, -1, -1, -1};  // its route: the number of the position in the order of ties; its stop: v
    for (i32 i = lanes_.lane; i < listed; i += Warp::W) {
      const Beside here = beside(insertion, memory_.scratch[i]);
      unrolled<2>([&](i32 side) {
        const Choice choice{side == 0 ? here.first : here.second, 2 * i + side, here.v, -1};
        const i32 a = side == 0 ? here.before : here.v, b = side == 0 ? here.v : here.after;
        if (before_at_once(choice, best) && !blinks(insertion, a, b)) best = choice;
      });
    }
    best = lanes_.best(best);
    if (best.route < 0) return Position{kNever, -1, 0, 0};
    const i32 v = best.stop, a = best.route % 2 == 0 ? i32(links_.before[v]) : v;
    return Position{best.cost, links_.route[v], a, best.route % 2 == 0 ? v : i32(links_.after[v])};
  }
  // Whether a customer fits beside v, as far as can be said without lengths.
  NDS_FN bool may_fit(const Insertion<R>& insertion, i32 v) const {
    const i32 r = links_.route[v];
    if (r == kUnlinked || !insertion.probe.fits_route(R::route_at(links_, r))) return false;
    const auto fits = [&](i32 a, i32 b) {
      return insertion.probe.fits_position(typename R::template Route<i32>{}, R::prefix_at(links_, a),
                                           R::suffix_at(links_, b), Ways{0, 0, 0, 0}, 0);
    };
    return fits(links_.before[v], v) || fits(v, links_.after[v]);
  }

  // Insert a customer as `recreate` does; `close` is the near customer of the lane. Returns false if too many routes
  // change.
  NDS_FN bool insert(i32 c, i32 close, i32 turn, const Greedy& greedy, Draft& draft) {
    const Insertion<R> insertion(in_, c, turn, greedy.blinks);
    const i32 limit = greedy.serve_all ? kNever : R::limit(in_, c);
    Position position = choose(insertion, close, limit);
    if (position.route < 0 && limit == kNever) position = choose_widely(insertion, greedy.insert_near);
    const bool found = position.route >= 0;
    i32 r = position.route, a = position.before, b = position.after, cost = position.cost;
    typename R::template Route<i32> route{};
    if ((!found || greedy.open_cheaper) &&
        opens<R>(in_, d_, insertion.probe, c, turn, routes_, found ? cost : kNever, limit, greedy)) {
      r = s_.routes + opened_++, a = b = 0;
      ++routes_;
      cost = 2 * length(0, c);
    } else if (found) {
      route = R::route_at(links_, r);
    } else {
      if (lanes_.leads()) draft.unserved[draft.unserved_count] = c;
      ++draft.unserved_count;
      return true;
    }
    if (!touch(r)) return false;
    insertion.probe.extend(route, cost);
    const i32 size = (a | b) != 0 ? links_.size[r] + 1 : 1;
    lanes_.sync();
    if (lanes_.leads()) {
      const i32 to = R::refreshes ? length(a, c) : 0, from = R::refreshes ? length(c, b) : 0;
      link(r, a, c, to), link(r, c, b, from);
      links_.route[c] = u16(r), links_.size[r] = u16(size);
      R::set_route(links_, r, route);
      if constexpr (R::refreshes) {
        Prefix prefix = R::prefix_at(links_, a);
        Suffix suffix = R::suffix_at(links_, b);
        R::follow(in_, c, to, prefix), R::precede(in_, c, from, suffix);
        R::set_prefix(links_, c, prefix), R::set_suffix(links_, c, suffix);
      }
    }
    lanes_.sync();
    if constexpr (R::refreshes) {
      if (lanes_.lane < 2) go(r, c, lanes_.lane == 0, false);
      lanes_.sync();
    }
    delta_ += cost - R::prize(in_, c);
    return true;
  }

  const Instance& in_;
  const D& d_;
  const Solution& s_;
  const Links& links_;
  const LinkedMemory& memory_;
  Warp lanes_;
  i64 delta_ = 0;
  i32 routes_ = 0, opened_ = 0;
  i32 touched_ = 0, mine_ = -1;  // changed routes in the order of their first change: the one of the lane's number
};

// For improve_speculatively.
template <class R, class D> struct LinkedSteps {
  const Recipe& recipe;
  const LinkedMemory& memory;

  NDS_FN void changed(const Instance& in, const Solution& s) const { memory.rebuild<R>(in, s); }
  NDS_FN Ending draft(const Instance& in, const D& d, const Solution& s, Workspace& work, const StepTask& task,
                      i32& count, Warp lanes) const {
    Random random{key_of(task.key, 0)}, ordering{key_of(task.key, 1)}, accepting{key_of(task.key, ~0ull)};
    Draft& draft = work.stripped;
    draft.segments = 0;
    Removal removal{in, s, work};
    ruin_string_together(removal, recipe, random, lanes);
    count = complete(removal, random, lanes);
    arrange(in, recipe, work.removed, count, 0, work.order, ordering, lanes);
    LinkedStep<R, D> step(in, d, s, memory, lanes);
    if (!step.make(work.removed, work.order, count, greedy_for(recipe, ordering), draft)) return kUnfit;
    if (task.watches && lanes.time_is_up()) return kLate;
    if (double(draft.delta) >= margin_of(task.temperature, accepting)) return kKeeps;
    if (draft.delta == 0 && step.is_unchanged()) return kKeeps;
    return step.write(draft) ? kChanges : kOverfull;
  }
};

}  // namespace nds::inline NDS_ISA
