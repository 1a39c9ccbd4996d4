// Lanes on a CPU, for tests: every lane is a fiber. Fibers wait for each other at collectives and continue in random
// order, so that a missing sync has the effects that it would have on a GPU.
#pragma once
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "ndsvrp/types.hpp"

namespace nds::inline NDS_ISA {

// A collective of fibers. Their values are in one of two tables by turns: when a table is used again, all fibers have
// read it.
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
    const i32 count = i32(fibers_.size());
    for (i32 i = 0; i < count; ++i) {
      Fiber& fiber = fibers_[i];
      fiber.body = [](void* call, i32 number) { (*static_cast<Body*>(call))(number); };
      fiber.call = &body;
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = stack(i);
      fiber.context.uc_stack.ss_size = kStack;
      fiber.context.uc_link = nullptr;
      const u64 self = reinterpret_cast<u64>(this);
      makecontext(&fiber.context, reinterpret_cast<void (*)()>(enter), 3, u32(self >> 32), u32(self), i);
      ready_.push_back(i);
    }
    for (i32 left = count; left > 0;) {
      if (ready_.empty()) fail("lanes wait for each other at different collectives");
      random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
      i32& drawn = ready_[(random_ >> 33) % ready_.size()];
      now_ = drawn;
      drawn = ready_.back();
      ready_.pop_back();
      swapcontext(&home_, &fibers_[now_].context);
      left -= fibers_[now_].done;
    }
  }

  i32 now() const { return now_; }

  // Wait for all members; `base` is the number of the first.
  void meet(Meeting& meeting, i32 base, i32 kind) {
    if (meeting.arrived == 0) meeting.kind = kind;
    if (meeting.kind != kind) fail("lanes of one team are at different collectives");
    if (++meeting.arrived == meeting.members) {  // any fiber may continue first
      meeting.arrived = 0;
      ++meeting.turn;
      for (i32 i = 0; i < meeting.members; ++i) ready_.push_back(base + i);
    }
    swapcontext(&fibers_[now_].context, &home_);
  }

 private:
  struct Fiber {
    ucontext_t context{};
    void (*body)(void*, i32) = nullptr;
    void* call = nullptr;
    bool done = false;
  };
  static constexpr i32 kStack = 64 * 1024;

  // Stacks are kept: making them takes most of the time of a fiber.
  static char* stack(i32 number) {
    static thread_local std::vector<std::unique_ptr<char[]>> stacks;
    while (i32(stacks.size()) <= number) stacks.emplace_back(new char[kStack]);
    return stacks[number].get();
  }

  static void enter(u32 high, u32 low, i32 number) {
    auto* self = reinterpret_cast<Fibers*>(u64(high) << 32 | low);
    Fiber& fiber = self->fibers_[number];
    fiber.body(fiber.call, number);
    fiber.done = true;
    swapcontext(&fiber.context, &self->home_);
  }

  [[noreturn]] static void fail(const char* why) {
    std::fprintf(stderr, "%s\n", why);
    std::abort();
  }

  std::vector<Fiber> fibers_;
  std::vector<i32> ready_;
  ucontext_t home_{};
  i32 now_ = 0;
  u64 random_ = 1;
};

}  // namespace nds::inline NDS_ISA
