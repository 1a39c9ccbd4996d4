// Owners of the memory of the core's plain structs, and the alarm of time limits.
#pragma once
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core.hpp"
#include "ndsvrp/regions.hpp"

namespace nds {

// An instance and copies of its arrays.
struct InstanceData {
  Instance in{};
  std::vector<std::shared_ptr<void>> arrays;

  template <class T> const T* keep(const T* data, size_t count) {
    std::shared_ptr<T[]> copy(new T[count]);
    std::copy(data, data + count, copy.get());
    arrays.push_back(copy);
    return copy.get();
  }

  // Compute the lengths between all nodes once: looking one up takes less time than a root, while they fit a cache.
  void tabulate() {
    if (in.ways != nullptr) return;
    const size_t nodes = size_t(in.n) + 1;
    std::vector<i32> ways(nodes * nodes);
    with_distance(in, [&]<class D>() {
      const D d(in);
      for (size_t to = 0; to < nodes; ++to) {
        for (size_t from = 0; from < nodes; ++from) ways[to * nodes + from] = d.length(i32(from), i32(to));
      }
    });
    in.ways = keep(ways.data(), ways.size());
  }

  // Compute by how much each customer may make a route shorter, by a matrix.
  void find_shortcuts(const Core& core) {
    std::vector<i32> found(size_t(in.n) + 1);
    core.shortcuts(in.length, in.n, found.data());
    in.shortcut = keep(found.data(), found.size());
  }
};

// Returns a block of memory, all zero, for the parts that lay_out(carver) takes.
inline std::vector<u64> carved(auto lay_out) {
  Carver counter{nullptr};
  lay_out(counter);
  std::vector<u64> block((counter.used + 7) / 8 + 2, 0);
  const auto at = reinterpret_cast<uintptr_t>(block.data());
  Carver carver{reinterpret_cast<char*>((at + 15) / 16 * 16)};
  lay_out(carver);
  return block;
}

constexpr i32 kTableColumns = 512;  // of the table of gaps of crews with several teams

// Enough for any step on an instance of n customers. Routes are read in groups, too.
inline Sizes sizes_for(i32 n) {
  return Sizes{n, n + 1, 2 * (n + 1) + kBeyond, pool_for(n), kDraftPerCustomer * n + 224 + kBeyond, n + 1};
}

constexpr i64 kLargestWeight = 1ll << 60;  // of all customers together

class ChainData {
 public:
  ChainData(const Instance& in) : in_(in) {
    with_rules(in, [&]<class R>() {
      block_ = carved([&](Carver& carver) { carve<R>(carver, chain.current, sizes_for(in.n)); });
    });
    tour_.resize(2 * (size_t(in.n) + 1));
    chain.best_tour = tour_.data();
  }
  ChainData(ChainData&&) = default;
  ChainData(const ChainData&) = delete;

  const Instance& in() const { return in_; }

  // Make it a part of another chain's solution: region `region` of so many by the key.
  void become_part(const Instance& in, const Chain& whole, u64 key, i32 regions, i32 region, const Core& core,
                   Workspace* work) {
    own_.resize(in.n);
    core.split(in, whole, key, regions, region, chain, own_.data(), work);
    in_.relief = in.relief;
    in_.vehicles = Regions(in, whole.current, key, regions).vehicles(in, region, chain.current.routes);
  }
  const std::vector<i32>& own() const { return own_; }
  void limit_vehicles(i32 vehicles) { in_.vehicles = vehicles; }
  void set_price(i64 price) { in_.relief = std::max(i64(0), in_.missing - price); }
  Totals totals() const { return totals_of(record_of(chain), chain.current.own_count); }

  // The steps from … to-1 of Chains::serve_required. Costs mean nothing afterwards.
  void serve_required(const Core& core, Workspace* work, const Recipe& recipe, double temperature, i64 unit, i32 from,
                      i32 to, u64 key, const volatile i32* stop) {
    Instance in = in_;
    const i64 heaviest = std::max(i64(2), kLargestWeight / unit / in.n);
    if (absences_.empty()) {
      absences_.resize(size_t(in.n) + 1, 1);
      required_.assign(in.prize, in.prize + in.n + 1);
      for (i32& prize : required_) prize = prize == kRequired ? prize : 0;
    }
    in.prize = required_.data(), in.weight = absences_.data(), in.unit_bonus = unit, in.missing = in.relief = 0;
    const Solution& s = chain.current;
    for (i32 k = from; k < to && s.unserved_required > 0; ++k) {
      if (core.improve(in, chain, work, recipe, nullptr, &temperature, 0, 1, core.key_of(key, k), stop) == 0) break;
      i32 most = 0;
      for (i32 i = 0; i < s.unserved_count; ++i) {
        const i32 c = s.unserved[i];
        if (required_[c] == kRequired) most = std::max(most, ++absences_[c]);
      }
      if (most < heaviest) continue;
      for (i32& count : absences_) count = (count + 1) / 2;
    }
  }

  // Continue from the current solution of another chain of the same instance.
  void copy_from(const ChainData& other) {
    with_rules(in_, [&]<class R>() {
      copy_arrays<R>(chain.current, other.chain.current, in_.n,
                     [](auto* to, const auto* from, i32 count) { std::copy(from, from + count, to); });
    });
    static_cast<CurrentNumbers&>(chain.current) = other.chain.current;
  }

  Chain chain{};

 private:
  Instance in_;  // of a part, or after limit_vehicles: with fewer vehicles
  std::vector<u64> block_;
  std::vector<i32> tour_;
  std::vector<i32> own_;       // of a part: its customers
  std::vector<i32> absences_;  // steps that left a customer unserved, and 1; empty before the first
  std::vector<i32> required_;  // prizes for these steps: optional customers have none
};

// The workspace of one thread and its teams, for instances of up to n customers.
class WorkspaceData {
 public:
  WorkspaceData(i32 n, const Core& core)
      : work(core.teams), block_(carved([&](Carver& carver) { lay_out(carver, sizes_for(n)); })) {}

  std::vector<Workspace> work;

 private:
  void lay_out(Carver& carver, const Sizes& sizes) {
    Workspace common{};
    carve_common<AllRules>(carver, common, sizes);
    if (work.size() > 1) carve_table<AllRules>(carver, common, sizes.removed, kTableColumns);
    carve<AllRules>(carver, common.spare, sizes.pool);
    for (Workspace& own : work) {
      own = common;
      carve_own<AllRules>(carver, own, sizes, 2);
    }
  }

  std::vector<u64> block_;
};

// Sets a flag when time is up; the destructor clears it.
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

}  // namespace nds
