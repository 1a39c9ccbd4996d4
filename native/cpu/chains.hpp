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

// Hands out parts of one block.
template <class T> class Block {
 public:
  void reserve(size_t count) { memory_.resize(count); }
  T* take(size_t count) {
    if (used_ + count > memory_.size()) throw std::logic_error("block too small");
    T* part = memory_.data() + used_;
    used_ += count;
    return part;
  }

 private:
  std::vector<T> memory_;
  size_t used_ = 0;
};

class ChainData {
 public:
  ChainData(const Instance& in, const Core& core) : in_(&in) {
    const size_t nodes = size_t(in.n) + 1, pool = size_t(core.pool_per_customer) * in.n + 96;
    const size_t routes = 2 * nodes;  // those that a step empties still count while it opens others
    const bool windows = in.due != nullptr;
    ints_.reserve(pool * (windows ? 4 : 2) + nodes * 4 + routes * 7);
    floats_.reserve(routes * 4);
    Solution& s = chain.now;
    s.room = i32(pool) - 32;  // places are read in groups, beyond the end of a route
    s.at.node = ints_.take(pool);
    s.at.edge = ints_.take(pool);
    s.at.depart = windows ? ints_.take(pool) : nullptr;
    s.at.latest = windows ? ints_.take(pool) : nullptr;
    for (i32** part : {&s.first, &s.slot, &s.size, &s.load, &s.box.inner, &s.box.leg})
      *part = ints_.take(routes);
    for (i32** part : {&s.route_of, &s.place_of, &s.absent, &s.absent_at})
      *part = ints_.take(nodes);
    for (float** part : {&s.box.left, &s.box.right, &s.box.low, &s.box.high})
      *part = floats_.take(routes);
    chain.best_tour = ints_.take(2 * nodes);
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
  Block<i32> ints_;
  Block<float> floats_;
};

// Working memory of one thread, for instances of up to n customers.
class ScratchData {
 public:
  ScratchData(i32 n, const Core& core) {
    const size_t nodes = size_t(n) + 1, pool = size_t(core.draft_per_customer) * n + 256,
                 routes = 2 * nodes;
    ints_.reserve(3 * (4 * pool + routes + nodes) + 6 * nodes);
    segments_.reserve(3 * routes);
    for (Draft* draft : {&scratch.stripped, &scratch.trial, &scratch.best}) {
      *draft = Draft{};
      for (i32** part : {&draft->at.node, &draft->at.edge, &draft->at.depart, &draft->at.latest}) {
        *part = ints_.take(pool);
      }
      draft->segment = segments_.take(routes);
      draft->segment_of = ints_.take(routes);
      std::fill(draft->segment_of, draft->segment_of + routes, -1);
      draft->left_out = ints_.take(nodes);
    }
    for (i32** part :
         {&scratch.removed, &scratch.order, &scratch.touched, &scratch.mark, &scratch.bound}) {
      *part = ints_.take(nodes);
    }
    std::fill(scratch.mark, scratch.mark + nodes, 0);
  }

  Scratch scratch{};

 private:
  Block<i32> ints_;
  Block<Segment> segments_;
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
