// Greedy reinsertion of removed customers into a draft.
#pragma once
#include "near.hpp"

namespace nds::inline NDS_ISA {

struct Greedy {
  bool all_routes;
  i32 insert_near;
  Blinks blinks;
  u32 open_route;  // probability times 2^32 of opening a route that does not pay
  u64 coin_key;
  bool open_cheaper;  // open a route for a customer if that is cheaper than any position
  bool serve_all;     // insert optional customers as if they were required

  NDS_FN bool coin(i32 turn) const { return u32(key_of(coin_key, u64(turn)) >> 32) < open_route; }
};

template <class R, class D> NDS_FN Ways ways_alone(const D& d, i32 c) {
  const i32 to = d.length(0, c), from = d.length(c, 0);
  if constexpr (R::uses_time && !D::symmetric) return Ways{to, from, d.time(0, c), d.time(c, 0)};
  return Ways{to, from, to, from};
}

// Whether to open a route for a customer whose best position has this cost.
template <class R, class D>
NDS_FN bool opens(const Instance& in, const D& d, const typename R::Probe& probe, i32 c, i32 turn, i32 routes, i32 cost,
                  i32 limit, const Greedy& greedy) {
  const Ways ways = ways_alone<R>(d, c);
  return ways.to + ways.from < cost && R::opens(in, probe, c, routes, ways, limit, [&] { return greedy.coin(turn); });
}

constexpr double kAnyCost = 1e300;  // above all changes in cost

// Whether a draft costs too much, whatever becomes of the customers that are still to be inserted: each may lower its
// cost by its prize, and by a shortcut. A single lane leaves such drafts incomplete.
template <class R, class D, class L> class Ceiling {
 public:
  NDS_FN Ceiling(const Instance& in, double ceiling, const i32* order, i32 count)
      : in_(in), is_kept_(L::W == 1 && D::bounds_shortcuts(in)), ceiling_(ceiling) {
    for (i32 i = 0; is_kept_ && i < count; ++i) left_ += gain(order[i]);
  }
  NDS_FN bool exceeded(const Draft& draft) const { return is_kept_ && double(draft.delta - left_) >= ceiling_; }
  NDS_FN void settle(i32 c) {
    if (is_kept_) left_ -= gain(c);
  }

 private:
  NDS_FN i64 gain(i32 c) const { return R::prize(in_, c) + D::shortcut(in_, c); }

  const Instance& in_;
  bool is_kept_;
  double ceiling_;
  i64 left_ = 0;
};

constexpr i32 kLook = 64;  // turns between two looks at the clock

// Insert the customers one by one where each is cheapest (Algorithm 1, line 12). Stops early when time is up, the draft
// is full, or its change in cost cannot end below `ceiling`. Near: whether positions may be limited to those beside
// nearest customers.
template <class R, bool Near, class D, class L>
NDS_DEEP void recreate_by(const Instance& in, const D& d, const Solution& s, Draft& draft, const i32* order, i32 count,
                          const Greedy& greedy, double ceiling, L lanes) {
  const bool near = Near && greedy.insert_near > 0;
  if (near) note_all_locations(draft, lanes);
  Ceiling<R, D, L> top(in, ceiling, order, count);
  for (i32 turn = 0; turn < count && !draft.full && !top.exceeded(draft); ++turn) {
    if (turn % kLook == kLook - 1 && lanes.time_is_up()) break;
    const i32 c = order[turn];
    top.settle(c);
    const Insertion<R> insertion(in, c, turn, greedy.blinks);
    const typename R::Probe& probe = insertion.probe;
    const i32 limit = greedy.serve_all ? kNever : R::limit(in, c);
    Choice best{limit, -1, -1, -1};
    if (near) {
      best = best_near<R>(in, d, s, draft, insertion, greedy.insert_near, best, lanes);
    } else {
      for (i32 i = 0; i < draft.segments; ++i) {
        const Segment seg = draft.segment[i];
        if ((seg.size == 0) | !probe.fits_route(seg)) continue;
        scan<R>(d, insertion, draft.at, seg, i, lanes, best);
      }
      best = lanes.best(best);
      if (greedy.all_routes) scan_rest<R>(in, d, s, draft, insertion, lanes, best);
    }
    const bool found = best.route >= 0;
    const i32 segments = draft.segments;
    if ((!found || greedy.open_cheaper) &&
        opens<R>(in, d, probe, c, turn, draft.routes, found ? best.cost : kNever, limit, greedy)) {
      open_route<R>(in, d, s, draft, probe, c, greedy.all_routes, lanes);
    } else if (found) {
      insert<R>(in, d, s, draft, probe, best, c, lanes);
    } else {
      if (lanes.leads()) draft.unserved[draft.unserved_count] = c;
      ++draft.unserved_count;
    }
    if (near && !draft.full && (found || draft.segments > segments)) {
      const bool is_new = draft.segments > segments;
      note_locations(draft, is_new ? segments : best.segment, is_new ? 1 : best.stop + 1, lanes);
      lanes.sync();
    }
  }
  if (near) forget_locations(draft, lanes);
  lanes.sync();
}

// A single lane is faster with code for each of the two; a kernel has one for both.
template <class R, class D, class L>
NDS_FN void recreate(const Instance& in, const D& d, const Solution& s, Draft& draft, const i32* order, i32 count,
                     const Greedy& greedy, double ceiling, L lanes) {
  if constexpr (L::W > 1) {
    recreate_by<R, true>(in, d, s, draft, order, count, greedy, ceiling, lanes);
  } else if (greedy.insert_near > 0) {
    recreate_by<R, true>(in, d, s, draft, order, count, greedy, ceiling, lanes);
  } else {
    recreate_by<R, false>(in, d, s, draft, order, count, greedy, ceiling, lanes);
  }
}

}  // namespace nds::inline NDS_ISA
