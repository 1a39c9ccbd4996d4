// Threads that wait for work. A search calls the core hundreds of times per second: starting threads each time would
// take longer than some of the calls.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "ndsvrp/types.hpp"

namespace nds {

class Pool {
 public:
  Pool() = default;
  Pool(const Pool&) = delete;
  ~Pool() {
    if (is_inherited()) abandon();
    begin_round(kClosing);
    for (std::thread& thread : threads_) thread.join();
  }

  // Run task(worker, i) for i in 0 … count-1, by so many threads, this one included. Results must not depend on the
  // worker.
  void run(i32 threads, i32 count, const std::function<void(i32, i32)>& task) {
    threads = std::min({threads, count, kMost});
    if (threads < 2) {
      for (i32 i = 0; i < count; ++i) task(0, i);
      return;
    }
    grow(threads - 1);
    task_ = &task, count_ = count;
    next_ = 0, busy_ = threads - 1;
    begin_round(u32(threads));
    work(0);
    for (i32 left = busy_; left != 0; left = busy_) busy_.wait(left);
  }

  // Run task(worker, i, from, to) for i in 0 … count-1 over from … to in parts, those of one i in sequence. Three tasks
  // in parts keep two threads busy, where whole ones would leave one idle half of the time.
  void run_in_parts(i32 threads, i32 count, i32 from, i32 to, const std::function<void(i32, i32, i32, i32)>& task) {
    if (count == 0) return;
    threads = std::min(threads, count);
    const i32 parts = std::max(1, std::min(threads / std::gcd(threads, count), to - from));
    std::vector<std::atomic<i32>> done(count);
    const auto begin_of = [&](i32 part) { return from + i32(i64(to - from) * part / parts); };
    run(threads, count * parts, [&](i32 worker, i32 number) {
      const i32 i = number % count, part = number / count;
      while (done[i] < part) std::this_thread::yield();  // another thread took the part before, and is about to end it
      task(worker, i, begin_of(part), begin_of(part + 1));
      done[i] = part + 1;
    });
  }

 private:
  static constexpr i32 kMost = 0xffff;
  static constexpr u32 kClosing = 0;

  // The number of the round, and the threads that work in it: one value, so that threads which do not work in a round
  // never see those of the next one with it.
  void begin_round(u32 threads) {
    round_ = (round_ & ~u32(kMost)) + (u32(kMost) + 1) + threads;
    round_.notify_all();
  }

  void work(i32 worker) noexcept {  // others may still use the task when it throws
    for (i32 i = next_++; i < count_; i = next_++) (*task_)(worker, i);
  }

  void wait_and_work(i32 worker, u32 seen) {
    while (true) {
      round_.wait(seen);
      seen = round_;
      const u32 threads = seen & u32(kMost);
      if (threads == kClosing) return;
      if (u32(worker) >= threads) continue;
      work(worker);
      if (--busy_ == 0) busy_.notify_one();
    }
  }

  void grow(i32 threads) {
    if (is_inherited()) abandon();
    process_ = getpid();
    while (i32(threads_.size()) < threads) {
      const i32 worker = i32(threads_.size()) + 1;
      threads_.emplace_back([this, worker, seen = round_.load()] { wait_and_work(worker, seen); });
    }
  }

  // A process that was forked has no threads but the one that forked it. The others can neither be joined nor detached:
  // their handles may be those of new threads by now. So they are kept, for as long as the process runs.
  bool is_inherited() const { return !threads_.empty() && process_ != getpid(); }
  void abandon() {
    static auto* const kept = new std::vector<std::vector<std::thread>>;
    kept->push_back(std::move(threads_));
    threads_.clear();
  }

  std::vector<std::thread> threads_;
  pid_t process_ = 0;
  const std::function<void(i32, i32)>* task_ = nullptr;
  i32 count_ = 0;
  std::atomic<i32> next_{0}, busy_{0};
  std::atomic<u32> round_{0};
};

}  // namespace nds
