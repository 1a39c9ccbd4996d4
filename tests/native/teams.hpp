// Crews of up to three teams of NDS_TEAM lanes; each lane is a fiber.
#pragma once
#include "fibers.hpp"
#include "ndsvrp/step.hpp"

namespace nds::inline NDS_ISA {

constexpr i32 kFiberLanes = NDS_TEAM;
constexpr i32 kTeamsHere = 3;

template <i32 Width> struct FiberLanes {
  static constexpr i32 W = Width;
  i32 lane;
  Fibers* fibers;
  Meeting* meeting;
  i32 base;
  const volatile i32* stop;

  using Slot = Meeting::Slot;

  // The table of the values of all lanes.
  const std::vector<Slot>& bring(i32 kind, i64 a = 0, i64 b = 0) const {
    std::vector<Slot>& table = meeting->table[meeting->turn % 2];
    table[lane] = Slot{{a, b}};
    fibers->meet(*meeting, base, kind);
    return table;
  }

  bool leads() const { return lane == 0; }
  void sync() const { bring(0); }
  bool time_is_up() const { return bring(1, *stop)[0].value[0] != 0; }
  Choice best(const Choice& mine) const {
    const auto& all = bring(2, i64(mine.cost) << 32 | u32(mine.route), i64(mine.stop) << 32 | u32(mine.segment));
    Choice best = mine;
    for (const Slot& slot : all) {
      const Choice other{i32(slot.value[0] >> 32), i32(slot.value[0]), i32(slot.value[1] >> 32), i32(slot.value[1])};
      if (before(other, best)) best = other;
    }
    return best;
  }
  template <class T> T least_of(T value) const {
    for (const Slot& slot : bring(3, pack(value))) value = least_value(value, unpack<T>(slot));
    return value;
  }
  template <class T> T most_of(T value) const {
    for (const Slot& slot : bring(4, pack(value))) {
      const T other = unpack<T>(slot);
      value = other > value ? other : value;
    }
    return value;
  }
  i64 sum(i64 value) const {
    i64 total = 0;
    for (const Slot& slot : bring(5, value)) total += slot.value[0];
    return total;
  }
  i32 sum(i32 value) const { return i32(sum(i64(value))); }
  i64 total(i64 value) const { return sum(value); }
  u32 alike(i32 value) const {
    u32 bits = 0;
    const auto& all = bring(11, value);
    for (i32 i = 0; i < W; ++i) bits |= u32(all[i].value[0] == value) << i;
    return bits;
  }
  u32 ballot(bool yes) const {
    u32 bits = 0;
    const auto& all = bring(6, yes);
    for (i32 i = 0; i < W; ++i) bits |= u32(all[i].value[0]) << i;
    return bits;
  }
  i32 count_below(u32 bits) const { return count_bits(bits & ((1u << lane) - 1)); }
  i32 last_below(u32 bits) const {
    const u32 below = bits & ((1u << lane) - 1);
    return below == 0 ? -1 : last_bit(below);
  }
  i32 from(i32 value, i32 other) const { return i32(bring(7, value)[other].value[0]); }
  i32 from_next(i32 value) const { return i32(bring(8, value)[least(lane + 1, W - 1)].value[0]); }
  MaxPlus up_to(const MaxPlus& mine) const {
    const auto& all = bring(9, mine.a, mine.b);
    MaxPlus f{i32(all[0].value[0]), i32(all[0].value[1])};
    for (i32 i = 1; i <= lane; ++i) f = then(f, MaxPlus{i32(all[i].value[0]), i32(all[i].value[1])});
    return f;
  }

 private:
  template <class T> static i64 pack(T value) {
    static_assert(sizeof(T) == 4);
    i32 bits;
    __builtin_memcpy(&bits, &value, 4);
    return bits;
  }
  template <class T> static T unpack(const Slot& slot) {
    const i32 bits = i32(slot.value[0]);
    T value;
    __builtin_memcpy(&value, &bits, 4);
    return value;
  }
  template <class T> static T least_value(T a, T b) { return b < a ? b : a; }
};

struct FiberCrew {
  using Lanes = FiberLanes<kFiberLanes>;
  static constexpr bool alone = false, by_gaps = true, blinks = true, tails = true;
  Lanes lanes;
  i32 team, teams;
  Fibers* fibers;
  Meeting* meeting;
  void sync() const { fibers->meet(*meeting, 0, 10); }
};

// Run the call once per lane, each with its own numbers and the arrays of all.
template <class Call> auto with_crew(Chain& chain, Workspace* work, i32 orders, const volatile i32* stop, Call call) {
  const i32 teams = least(kTeamsHere, orders), count = teams * kFiberLanes;
  Fibers fibers(count);
  std::vector<Meeting> meetings(teams + 1);
  for (i32 t = 0; t <= teams; ++t) {
    meetings[t].members = t < teams ? kFiberLanes : count;
    for (auto& table : meetings[t].table) table.resize(kFiberLanes);
  }
  std::vector<Chain> chains(count, chain);
  std::vector<Workspace> works;
  for (i32 i = 0; i < count; ++i) works.push_back(work[i / kFiberLanes]);
  using Result = decltype(call(chain, *work, FiberCrew{}));
  std::vector<Result> results(count);
  fibers.run([&](i32 i) {
    const i32 team = i / kFiberLanes, base = team * kFiberLanes;
    const FiberCrew crew{{i - base, &fibers, &meetings[team], base, stop}, team, teams, &fibers, &meetings[teams]};
    results[i] = call(chains[i], works[i], crew);
  });
  for (const Result& result : results) {
    if (result != results[0]) std::abort();
  }
  chain = chains[0];
  for (i32 t = 0; t < teams; ++t) work[t] = works[t * kFiberLanes];
  return results[0];
}

}  // namespace nds::inline NDS_ISA
