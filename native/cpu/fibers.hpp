// Teams of several lanes on a CPU, for tests: every lane is a fiber, a collective is where fibers
// wait for each other, and who goes on first is drawn at random, so that what a missing sync would
// let happen on a GPU happens here too. Slow, and compiled only where tests are run.
#pragma once
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ndsvrp/step.hpp"

namespace nds {
inline namespace NDS_ISA {

constexpr i32 kFiberLanes = NDS_TEAM;
constexpr i32 kFiberTeams = 3;

// Fibers that meet at collectives. What each brings along lies in one of two tables by turns: by
// the time a table is used again, everybody has left it.
struct Meeting {
  struct Slot {
    i64 value[2];
  };
  i32 members = 0, arrived = 0, kind = 0;
  u32 turn = 0;
  std::vector<Slot> table[2];
};

class Fibers {
 public:
  explicit Fibers(i32 count) : fibers_(count) {}

  template <class Body> void run(Body body) {
    for (i32 i = 0; i < i32(fibers_.size()); ++i) {
      Fiber& fiber = fibers_[i];
      fiber.body = [](void* call, i32 number) { (*static_cast<Body*>(call))(number); };
      fiber.call = &body;
      fiber.stack.resize(64 * 1024);
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.data();
      fiber.context.uc_stack.ss_size = fiber.stack.size();
      fiber.context.uc_link = nullptr;
      const u64 self = reinterpret_cast<u64>(this);
      makecontext(&fiber.context, reinterpret_cast<void (*)()>(enter), 3, u32(self >> 32),
                  u32(self), i);
    }
    for (std::vector<i32> ready; left_ > 0;) {
      ready.clear();
      for (i32 i = 0; i < i32(fibers_.size()); ++i) {
        if (fibers_[i].ready) ready.push_back(i);
      }
      if (ready.empty()) fail("lanes wait for each other at different collectives");
      random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
      now_ = ready[(random_ >> 33) % ready.size()];
      swapcontext(&home_, &fibers_[now_].context);
    }
  }

  // Wait until all members are here; `base` is the number of the first of them.
  void meet(Meeting& meeting, i32 base, i32 kind) {
    if (meeting.arrived == 0) meeting.kind = kind;
    if (meeting.kind != kind) fail("lanes of one team are at different collectives");
    if (++meeting.arrived < meeting.members) {
      fibers_[now_].ready = false;
      swapcontext(&fibers_[now_].context, &home_);
      return;
    }
    meeting.arrived = 0;
    ++meeting.turn;
    for (i32 i = 0; i < meeting.members; ++i) fibers_[base + i].ready = true;
    swapcontext(&fibers_[now_].context, &home_);  // anybody may be the first to go on
  }

 private:
  struct Fiber {
    ucontext_t context{};
    std::vector<char> stack;
    void (*body)(void*, i32) = nullptr;
    void* call = nullptr;
    bool ready = true;
  };

  static void enter(u32 high, u32 low, i32 number) {
    auto* self = reinterpret_cast<Fibers*>(u64(high) << 32 | low);
    Fiber& fiber = self->fibers_[number];
    fiber.body(fiber.call, number);
    fiber.ready = false;
    --self->left_;
    swapcontext(&fiber.context, &self->home_);
  }

  [[noreturn]] static void fail(const char* why) {
    std::fprintf(stderr, "%s\n", why);
    std::abort();
  }

  std::vector<Fiber> fibers_;
  ucontext_t home_{};
  i32 now_ = 0, left_ = i32(fibers_.size());
  u64 random_ = 1;
};

template <i32 Width> struct FiberLanes {
  static constexpr i32 W = Width;
  i32 lane;
  Fibers* fibers;
  Meeting* meeting;
  i32 base;
  const volatile i32* stop;

  using Slot = Meeting::Slot;

  // The table in which everybody's values lie.
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
    const auto& all =
        bring(2, i64(mine.cost) << 32 | u32(mine.route), i64(mine.place) << 32 | u32(mine.segment));
    Choice best = mine;
    for (const Slot& slot : all) {
      const Choice other{i32(slot.value[0] >> 32), i32(slot.value[0]), i32(slot.value[1] >> 32),
                         i32(slot.value[1])};
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
    for (i32 i = 1; i <= lane; ++i)
      f = then(f, MaxPlus{i32(all[i].value[0]), i32(all[i].value[1])});
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
  static constexpr bool alone = false;
  Lanes lanes;
  i32 team, teams;
  Fibers* fibers;
  Meeting* meeting;
  void sync() const { fibers->meet(*meeting, 0, 10); }
};

// The call once per lane, each with its own numbers and the arrays of all.
template <class Call>
auto run_fibers(Chain& chain, Scratch* scratch, i32 orders, const volatile i32* stop, Call call) {
  const i32 teams = least(kFiberTeams, orders), count = teams * kFiberLanes;
  Fibers fibers(count);
  std::vector<Meeting> meetings(teams + 1);
  for (i32 t = 0; t <= teams; ++t) {
    meetings[t].members = t < teams ? kFiberLanes : count;
    for (auto& table : meetings[t].table) table.resize(kFiberLanes);
  }
  std::vector<Chain> chains(count, chain);
  std::vector<Scratch> scratches;
  for (i32 i = 0; i < count; ++i) scratches.push_back(scratch[i / kFiberLanes]);
  using Result = decltype(call(chain, *scratch, FiberCrew{}));
  std::vector<Result> results(count);
  fibers.run([&](i32 i) {
    const i32 team = i / kFiberLanes, base = team * kFiberLanes;
    const FiberCrew crew{
        {i - base, &fibers, &meetings[team], base, stop}, team, teams, &fibers, &meetings[teams]};
    results[i] = call(chains[i], scratches[i], crew);
  });
  for (const Result& result : results) {
    if (result != results[0]) std::abort();
  }
  chain = chains[0];
  for (i32 t = 0; t < teams; ++t) scratch[t] = scratches[t * kFiberLanes];
  return results[0];
}

}  // namespace NDS_ISA
}  // namespace nds
