// The core for one instruction set, for every composition of rules and every distance. Does not include the standard
// library, whose templates the linker would share between instruction sets.
#include "core.hpp"

// Tests build the core with other crews (tests/native).
#ifndef NDS_CREWS
  #define NDS_CREWS "one_lane.hpp"
#endif
#include NDS_CREWS

#include "ndsvrp/regions.hpp"
#include "shortcuts.hpp"

#define NDS_QUOTE(x) #x
#define NDS_STRING(x) NDS_QUOTE(x)

namespace nds {
namespace {

auto with_all(const Instance& in, auto call) {
  return with_rules(
      in, [&]<class R>() { return with_distance(in, [&]<class D>() { return call.template operator()<R, D>(); }); });
}

i32 do_improve(const Instance& in, Chain& chain, Workspace* work, const Recipe& recipe, const i32* given,
               const double* temperature, i32 from, i32 to, u64 key, const volatile i32* stop) {
  return with_all(in, [&]<class R, class D>() {
    return with_crew(chain, work, recipe.orders, stop, [&](Chain& mine, Workspace& own, auto crew) {
      return improve<R, D>(in, mine, own, recipe, given, temperature, from, to, key, crew);
    });
  });
}

i64 do_evaluate(const Instance& in, Chain& chain, Workspace* work, const Recipe& recipe, const i32* given, i32 k,
                u64 key, bool keep, const volatile i32* stop) {
  return with_all(in, [&]<class R, class D>() {
    return with_crew(chain, work, recipe.orders, stop, [&](Chain& mine, Workspace& own, auto crew) {
      return evaluate<R, D>(in, mine, own, recipe, given, k, key, keep, crew);
    });
  });
}

constexpr volatile i32 kGoOn = 0;

void do_split(const Instance& in, const Chain& whole, u64 key, i32 regions, i32 region, Chain& part, i32* own,
              Workspace* work) {
  with_all(in, [&]<class R, class D>() {
    with_crew(part, work, 1, &kGoOn, [&](Chain& mine, Workspace&, auto crew) {
      split<R, D>(in, Regions(in, whole.current, key, regions), region, mine, own, crew.lanes);
      return 0;
    });
  });
}

void do_merge(const Instance& in, const Chain& whole, const Chain& part, const Totals& before, const Totals& all,
              Workspace* work) {
  with_rules(in, [&]<class R>() {
    Chain copy = part;
    with_crew(copy, work, 1, &kGoOn, [&](Chain& mine, Workspace&, auto crew) {
      merge<R>(whole, mine, before, all, crew.lanes);
      return 0;
    });
  });
}

constexpr OneLane kLane{nullptr};

void do_clear(const Instance& in, Chain& chain) {
  with_all(in, [&]<class R, class D>() { clear<R>(in, chain.current, kLane); });
}

void do_add_route(const Instance& in, Chain& chain, const i32* customers, i32 size) {
  with_all(in, [&]<class R, class D>() { add_route<R>(in, D(in), chain.current, customers, size, kLane); });
}

bool do_feasible(const Instance& in, const Chain& chain) {
  return with_rules(in, [&]<class R>() {
    const Solution& s = chain.current;
    bool fine = true;
    for (i32 r = 0; r < s.routes && fine; ++r)
      fine = R::feasible(in, s.at, s.first[r], s.size[r], R::route_at(s, r), kLane);
    return fine;
  });
}

u64 do_key_of(u64 key, u64 part) { return key_of(key, part); }

}  // namespace

const Core NDS_CORE{NDS_STRING(NDS_ISA), kTeamsHere,  do_improve, do_evaluate, do_split, do_merge, do_clear,
                    do_add_route,        do_feasible, do_key_of,  shortcuts};

}  // namespace nds
