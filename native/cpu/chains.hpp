// Owners of the memory behind the core's plain structs, and the work spread over threads.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core.hpp"
#include "ndsvrp/memory.hpp"

namespace nds {

struct InstanceData {
  Instance in{};
  std::vector<i32> demand, ready, due, service, prize, length, time, near, rank, sort_weight;
  std::vector<float> x, y;
  std::vector<double> xd, yd;

  // Call once all vectors are filled: the view that the core reads.
  void point() {
    const auto set = [](auto& pointer, const auto& values) {
      pointer = values.empty() ? nullptr : values.data();
    };
    set(in.demand, demand), set(in.ready, ready), set(in.due, due), set(in.service, service);
    set(in.prize, prize), set(in.x, x), set(in.y, y), set(in.xd, xd), set(in.yd, yd);
    set(in.length, length), set(in.near, near), set(in.rank, rank),
        set(in.sort_weight, sort_weight);
    in.time = time.empty() ? in.length : time.data();
  }
};

// A block of memory whose parts a Carver hands out; all zero.
inline std::vector<u64> block_of(u64 bytes) { return std::vector<u64>((bytes + 7) / 8 + 2, 0); }

constexpr i32 kTableColumns = 512;  // of teams that are played

inline char* aligned(std::vector<u64>& block) {
  const auto at = reinterpret_cast<uintptr_t>(block.data());
  return reinterpret_cast<char*>((at + 15) / 16 * 16);
}

// Whatever a step may do to an instance of n customers. Routes are read in groups, too.
inline Sizes sizes_for(i32 n, bool windows) {
  return Sizes{
      n, windows, n + 1, 2 * (n + 1) + kBeyond, pool_for(n), kDraftPerCustomer * n + 224 + kBeyond};
}

class ChainData {
 public:
  ChainData(const Instance& in) : in_(&in) {
    const Sizes sizes = sizes_for(in.n, in.due != nullptr);
    Carver counter{nullptr};
    carve(counter, chain.now, sizes);
    block_ = block_of(counter.used);
    Carver carver{aligned(block_)};
    carve(carver, chain.now, sizes);
    tour_.resize(2 * (size_t(in.n) + 1));
    chain.best_tour = tour_.data();
  }
  ChainData(ChainData&&) = default;
  ChainData(const ChainData&) = delete;

  const Instance& in() const { return *in_; }

  // Take over the current solution of another chain of the same instance.
  void copy_from(const ChainData& other) {
    const size_t nodes = size_t(in_->n) + 1;
    Solution& to = chain.now;
    const Solution& from = other.chain.now;
    const auto copy = [](auto* target, const auto* source, size_t count) {
      if (target != nullptr) std::copy(source, source + count, target);
    };
    copy(to.at.node, from.at.node, from.used), copy(to.at.edge, from.at.edge, from.used);
    copy(to.at.depart, from.at.depart, from.used), copy(to.at.latest, from.at.latest, from.used);
    copy(to.first, from.first, nodes), copy(to.slot, from.slot, nodes),
        copy(to.size, from.size, nodes);
    copy(to.load, from.load, nodes), copy(to.box.inner, from.box.inner, nodes),
        copy(to.box.leg, from.box.leg, nodes);
    copy(to.box.left, from.box.left, nodes), copy(to.box.right, from.box.right, nodes);
    copy(to.box.low, from.box.low, nodes), copy(to.box.high, from.box.high, nodes);
    copy(to.route_of, from.route_of, nodes), copy(to.place_of, from.place_of, nodes);
    copy(to.absent, from.absent, nodes), copy(to.absent_at, from.absent_at, nodes);
    to.cost = from.cost, to.routes = from.routes, to.used = from.used;
    to.absents = from.absents, to.absent_required = from.absent_required;
  }

  Chain chain{};

 private:
  const Instance* in_;
  std::vector<u64> block_;
  std::vector<i32> tour_;
};

// Working memory of one thread and the teams it plays, for instances of up to n customers.
class ScratchData {
 public:
  ScratchData(i32 n, const Core& core) : scratch(core.teams) {
    const Sizes sizes = sizes_for(n, true);
    Carver counter{nullptr};
    lay_out(counter, sizes);
    block_ = block_of(counter.used);
    Carver carver{aligned(block_)};
    lay_out(carver, sizes);
  }

  std::vector<Scratch> scratch;

 private:
  void lay_out(Carver& carver, const Sizes& sizes) {
    Scratch common{};
    carve_common(carver, common, sizes);
    if (scratch.size() > 1) carve_table(carver, common, sizes.removed, kTableColumns);
    carve(carver, common.spare, sizes.pool, sizes.windows);
    for (Scratch& own : scratch) {
      own = common;
      carve_own(carver, own, sizes, true);
    }
  }

  std::vector<u64> block_;
};

// Sets a flag when time is up; clears it when it goes.
class Alarm {
 public:
  Alarm(std::optional<double> seconds, volatile i32& flag) : flag_(flag) {
    if (!seconds) return;
    const auto when = std::chrono::steady_clock::now() + std::chrono::duration<double>(*seconds);
    thread_ = std::thread([this, when] {
      std::unique_lock lock(mutex_);
      if (!done_.wait_until(lock, when, [this] { return over_; })) flag_ = 1;
    });
  }
  ~Alarm() {
    if (thread_.joinable()) {
      {
        const std::lock_guard lock(mutex_);
        over_ = true;
      }
      done_.notify_one();
      thread_.join();
    }
    flag_ = 0;
  }
  Alarm(const Alarm&) = delete;

 private:
  volatile i32& flag_;
  bool over_ = false;
  std::mutex mutex_;
  std::condition_variable done_;
  std::thread thread_;
};

// Runs task(worker, i) for i in 0 … count-1; which worker takes which i does not matter to the
// results.
inline void parallel(i32 threads, i32 count, const std::function<void(i32, i32)>& task) {
  threads = std::max(1, std::min(threads, count));
  if (threads == 1) {
    for (i32 i = 0; i < count; ++i) task(0, i);
    return;
  }
  std::atomic<i32> next{0};
  std::vector<std::thread> team;
  for (i32 worker = 0; worker < threads; ++worker) {
    team.emplace_back([&, worker] {
      for (i32 i = next++; i < count; i = next++) task(worker, i);
    });
  }
  for (std::thread& member : team) member.join();
}

}  // namespace nds
