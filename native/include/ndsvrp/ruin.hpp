// Ruin by rule. Each rule writes the customers to remove, in the default insertion order, and marks them. One lane does
// what depends on one random draw after another.
#pragma once
#include "rng.hpp"
#include "state.hpp"

namespace nds::inline NDS_ISA {

// A part of a solution removes its own customers only.
NDS_FN i32 customers_of(const Instance& in, const Solution& s) { return s.own ? s.own_count : in.n; }
NDS_FN i32 customer_at(const Solution& s, i32 i) { return s.own ? s.own[i] : 1 + i; }
NDS_FN i32 draw_customer(const Instance& in, const Solution& s, auto& random) {
  return customer_at(s, random.below(customers_of(in, s)));
}

struct Removal {
  const Instance& in;
  const Solution& s;
  Workspace& work;
  i32 count = 0;

  NDS_FN void put(i32 c, i32 place) {  // behind those that are counted
    work.removed[count + place] = c;
    work.mark[c] = 1;
  }
  NDS_FN void take(i32 c) {
    put(c, 0);
    ++count;
  }
  NDS_FN bool taken(i32 c) const { return work.mark[c] != 0; }
};

// Remove M customers, drawn uniformly.
NDS_FN void ruin_random(Removal& out, i32 removals, Random& random) {
  const i32 n = customers_of(out.in, out.s);
  if (removals * 4 <= n) {
    while (out.count < removals) {
      const i32 c = draw_customer(out.in, out.s, random);
      if (!out.taken(c)) out.take(c);
    }
    return;
  }
  i32* all = out.work.order;
  for (i32 i = 0; i < n; ++i) all[i] = customer_at(out.s, i);
  for (i32 i = 0; i < removals; ++i) {
    const i32 j = i + random.below(n - i), c = all[j];
    all[j] = all[i];
    out.take(c);
  }
}

// Remove a string of `length` customers of route r around stop `here`, or a longer one of which a stretch in the middle
// stays (split string).
NDS_FN void remove_string(Removal& out, const Recipe& recipe, i32 r, i32 here, i32 length, auto& random, auto lanes) {
  const i32 size = out.s.size[r];
  i32 kept = 0, skip = 0;
  if (length > 1 && length < size && random.unit() < recipe.string_split) {
    kept = 1;
    while (length + kept < size && random.unit() < recipe.string_depth) ++kept;
    skip = 1 + random.below(length - 1);  // customers removed before the stretch that stays
  }
  const i32 span = length + kept;
  const i32 low = most(1, here - span + 1), high = least(here, size - span + 1);
  const i32 start = low + random.below(high - low + 1);
  const i32* node = out.s.at.node + out.s.first[r];
  for (i32 i = lanes.lane; i < span; i += lanes.W) {
    if (i >= skip && i < skip + kept) continue;
    out.put(node[start + i], i < skip ? i : i - kept);
  }
  out.count += length;
}

// Remove strings of the routes of the seed and its nearest customers, by all lanes together: each looks at one of them,
// and those whose route is not touched yet have their turns. Customers that are taken are unserved or of touched
// routes.
NDS_FN void near_strings(Removal& out, i32 seed, const NearRow& near, i32 strings, i32 along, auto remove, auto lanes) {
  const Solution& s = out.s;
  i32 touched = 0, unserved = 0, mine = -1;  // the lane with the number of a touched route has that route
  for (i32 begin = -1; begin < out.in.near_count && touched < strings; begin += lanes.W) {
    const i32 i = begin + lanes.lane;
    const i32 c = i < 0 ? seed : i < out.in.near_count ? near[i] : 0;
    const i32 r = c > 0 ? s.route_of[c] : kElsewhere;
    bool waits = r != kElsewhere;
    for (i32 t = 0; t < touched; ++t) waits &= lanes.from(mine, t) != r;
    for (u32 left = lanes.ballot(waits); left != 0 && touched < strings; left = lanes.ballot(waits)) {
      const i32 turn = first_bit(left), customer = lanes.from(c, turn), route = lanes.from(r, turn);
      waits = waits && lanes.lane != turn;
      if (route < 0) {
        if (unserved++ >= along) continue;
        if (lanes.leads()) out.put(customer, 0);
        ++out.count;
      } else {
        mine = lanes.lane == touched ? route : mine;
        ++touched;
        waits = waits && r != route;
        remove(customer, route, lanes);
      }
    }
  }
}

// Adjacent string removal (Christiaens & Vanden Berghe 2020, their equations 5 to 9): strings of
// customers of routes near a random customer. Unserved customers among the neighbours are removed
// too.
template <bool Together> NDS_FN void ruin_string(Removal& out, const Recipe& recipe, auto& random, auto lanes) {
  const Instance& in = out.in;
  const Solution& s = out.s;
  const i32 seed = draw_customer(in, s, random);
  const float mean = s.routes > 0 ? float(customers_of(in, s) - s.unserved_count) / float(s.routes) : 1.0f;
  const float longest = mean < float(recipe.string_longest) ? mean : float(recipe.string_longest);
  const float most_strings = 4.0f * recipe.string_average / (1.0f + longest) - 1.0f;
  const i32 strings = most(1, i32(1.0f + random.unit() * most_strings));
  const i32 along = i32(recipe.string_average);
  const NearRow near(in, seed);
  const auto remove = [&](i32 c, i32 r, auto team) {
    const float limit = float(s.size[r]) < longest ? float(s.size[r]) : longest;
    const i32 length = least(s.size[r], i32(1.0f + random.unit() * limit));
    remove_string(out, recipe, r, s.stop_of[c], length, random, team);
  };
  if constexpr (Together) {
    near_strings(out, seed, near, strings, along, remove, lanes);
    return;
  }
  if (!lanes.leads()) return;
  i32 touched = 0, unserved = 0;
  for (i32 i = -1; i < in.near_count && touched < strings; ++i) {
    const i32 c = i < 0 ? seed : near[i];
    if (c == 0 || out.taken(c)) continue;
    const i32 r = s.route_of[c];
    if (r == kElsewhere) continue;
    if (r < 0) {
      if (unserved++ < along) out.take(c);
      continue;
    }
    bool again = false;
    for (i32 t = 0; t < touched; ++t) again |= out.work.touched[t] == r;
    if (again) continue;
    out.work.touched[touched++] = r;
    remove(c, r, OneLane{nullptr});
  }
}

// Remove a list of customers, by all lanes together.
NDS_FN void take_all(Removal& out, const i32* customers, i32 count, auto lanes) {
  for (i32 i = lanes.lane; i < count; i += lanes.W) {
    out.put(customers[i], i);
  }
  out.count += count;
}

// How many customers a given list has: zeros at its end stand for none.
NDS_FN i32 listed(const i32* given, i32 most) {
  while (most > 0 && given[most - 1] == 0) --most;
  return most;
}

// Remove those of a list that belong to the part, until there are so many.
NDS_FN void take_own(Removal& out, const i32* customers, i32 length, i32 removals, auto lanes) {
  for (i32 begin = 0; begin < length && out.count < removals; begin += lanes.W) {
    const i32 i = begin + lanes.lane;
    const i32 c = i < length ? customers[i] : 0;
    const bool own = c > 0 && out.s.route_of[c] != kElsewhere;
    const u32 all = lanes.ballot(own);
    const i32 place = lanes.count_below(all);
    if (own && out.count + place < removals) out.put(c, place);
    out.count = least(removals, out.count + count_bits(all));
  }
}

// Whether there are never more strings than lanes, which then look for their routes together.
template <class L> NDS_FN bool looks_together(const Recipe& recipe, L) {
  return L::W > 1 && 2.0f * recipe.string_average <= float(L::W);
}

// The same by all lanes, which draw together, too.
NDS_FN void ruin_string_together(Removal& out, const Recipe& recipe, Random& random, auto lanes) {
  TeamRandom drawn(random, lanes);
  ruin_string<true>(out, recipe, drawn, lanes);
  random.counter = drawn.counter;
}

// Remove a random customer and its nearest neighbours.
NDS_FN void ruin_related(Removal& out, i32 removals, Random& random, auto lanes) {
  const i32 seed = draw_customer(out.in, out.s, random);
  const i32* near = out.in.near + i64(seed) * out.in.near_count;
  take_all(out, &seed, 1, lanes);
  if (out.s.own) {
    take_own(out, near, out.in.near_count, removals, lanes);
  } else {
    take_all(out, near, least(removals - 1, out.in.near_count), lanes);
  }
}

// Add required customers that are unserved, so that every step tries to insert some.
NDS_FN void retry_unserved(Removal& out, Random& random) {
  const Solution& s = out.s;
  const i32 start = random.below(s.unserved_count);
  for (i32 i = 0, added = 0; i < s.unserved_count && added < Prizes::kRetries; ++i) {
    const i32 c = s.unserved[(start + i) % s.unserved_count];
    if (out.in.prize[c] != kRequired || out.taken(c)) continue;
    out.take(c);
    ++added;
  }
}

// The end of a ruin. Returns how many customers it removes.
NDS_FN i32 complete(Removal& out, Random& random, auto lanes) {
  lanes.sync();
  if (out.s.unserved_required > 0 && lanes.leads()) retry_unserved(out, random);
  out.count = lanes.from(out.count, 0);
  lanes.sync();
  return out.count;
}

// Remove a given list, or what a rule chooses. Returns how many.
NDS_FN i32 ruin(const Instance& in, const Solution& s, Workspace& work, const Recipe& recipe, const i32* given,
                Random& random, auto lanes) {
  Removal out{in, s, work};
  const i32 removals = least(recipe.removals, customers_of(in, s));
  if (recipe.rule == kGiven && s.own) {
    take_own(out, given, recipe.removals, removals, lanes);
  } else if (recipe.rule == kGiven) {
    take_all(out, given, listed(given, removals), lanes);
  } else if (recipe.rule == kRelated) {
    ruin_related(out, removals, random, lanes);
  } else if (recipe.rule == kString) {
    if (looks_together(recipe, lanes)) {
      ruin_string_together(out, recipe, random, lanes);
    } else {
      ruin_string<false>(out, recipe, random, lanes);
    }
  } else if (lanes.leads()) {
    ruin_random(out, removals, random);
  }
  return complete(out, random, lanes);
}

}  // namespace nds::inline NDS_ISA
