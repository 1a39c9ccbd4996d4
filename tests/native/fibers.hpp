// Lanes on a CPU, for tests: every lane is a fiber. Fibers wait for each other at collectives and continue in random
// order, so that a missing sync has the effects that it would have on a GPU.
#pragma once
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

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
      resume(fibers_[now_]);
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
    pause(fibers_[now_]);
  }

 private:
  struct Fiber {
    ucontext_t context{};  // of its beginning
    jmp_buf place;         // where it pauses
    void (*body)(void*, i32) = nullptr;
    void* call = nullptr;
    bool begun = false, done = false;
  };
  static constexpr i32 kStack = 64 * 1024;

  // A context begins a fiber. Jumps do the rest: they make no system call, which would take most of the time. With
  // _FORTIFY_SOURCE, longjmp would refuse other stacks.
  [[gnu::noinline]] void resume(Fiber& fiber) {
    if (_setjmp(home_)) return;
    if (fiber.begun) _longjmp(fiber.place, 1);
    fiber.begun = true;
    setcontext(&fiber.context);
  }
  [[gnu::noinline]] void pause(Fiber& fiber) {
    if (!_setjmp(fiber.place)) _longjmp(home_, 1);
  }

  // Stacks are kept: making them takes most of the time of a fiber.
  static char* stack(i32 number) {
    static thread_local std::vector<std::vector<char>> stacks;
    while (i32(stacks.size()) <= number) stacks.emplace_back(kStack);
    return stacks[number].data();
  }

  static void enter(u32 high, u32 low, i32 number) {
    auto* self = reinterpret_cast<Fibers*>(u64(high) << 32 | low);
    Fiber& fiber = self->fibers_[number];
    fiber.body(fiber.call, number);
    fiber.done = true;
    _longjmp(self->home_, 1);
  }

  [[noreturn]] static void fail(const char* why) {
    fprintf(stderr, "%s\n", why);
    abort();
  }

  std::vector<Fiber> fibers_;
  std::vector<i32> ready_;
  jmp_buf home_;
  i32 now_ = 0;
  u64 random_ = 1;
};

}  // namespace nds::inline NDS_ISA
