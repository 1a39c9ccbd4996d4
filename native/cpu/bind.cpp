// The only binding file: instances and chains for Python. Shapes are checked by the caller
// (engine/cpu.py), once.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <optional>

#include "chains.hpp"
#include "ndsvrp/exchange.hpp"
#include "ndsvrp/solution.hpp"
#include "neighbours.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace nds {
namespace {

template <class T> using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T> using Out = nb::ndarray<nb::numpy, T>;

template <class T> std::vector<T> values(const std::optional<In<T>>& array) {
  if (!array) return {};
  return std::vector<T>(array->data(), array->data() + array->size());
}

template <class T> Out<T> array(std::vector<T>&& data, std::initializer_list<size_t> shape) {
  auto* owned = new std::vector<T>(std::move(data));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Out<T>(owned->data(), shape, owner);
}

const Core& pick_core(const std::string& isa) {
#ifdef NDS_HAS_TEAMS
  if (isa == "team5") return core_team5;
  if (isa == "team32") return core_team32;
#endif
#ifdef NDS_HAS_AVX2
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
  if (isa == "avx2" || (isa == "auto" && avx2)) {
    if (!avx2) throw std::invalid_argument("this machine has no AVX2");
    return core_avx2;
  }
#endif
  if (isa == "auto" || isa == "base") return core_base;
  throw std::invalid_argument("no build of the core for '" + isa + "'");
}

std::shared_ptr<InstanceData> make_instance(
    i32 capacity, i32 vehicles, In<i32> demand, std::optional<In<i32>> ready,
    std::optional<In<i32>> due, std::optional<In<i32>> service, std::optional<In<i32>> prize,
    std::optional<In<float>> x, std::optional<In<float>> y, float scale, i32 box_margin,
    std::optional<In<double>> xd, std::optional<In<double>> yd, double whole_scale,
    double whole_shift, std::optional<In<i32>> length, std::optional<In<i32>> time, i32 near_count,
    std::optional<In<i32>> rank, In<i32> sort_weight) {
  auto data = std::make_shared<InstanceData>();
  InstanceData& d = *data;
  d.demand.assign(demand.data(), demand.data() + demand.size());
  d.sort_weight.assign(sort_weight.data(), sort_weight.data() + sort_weight.size());
  d.ready = values(ready), d.due = values(due), d.service = values(service),
  d.prize = values(prize);
  d.x = values(x), d.y = values(y), d.xd = values(xd), d.yd = values(yd);
  d.length = values(length), d.time = values(time), d.rank = values(rank);
  d.in.n = i32(d.demand.size()) - 1;
  d.in.capacity = capacity, d.in.vehicles = vehicles;
  d.in.scale = scale, d.in.box_margin = box_margin;
  d.in.whole_scale = whole_scale, d.in.whole_shift = whole_shift;
  d.in.near_count = std::min(near_count, d.in.n - 1);
  d.in.sorts = i32(d.sort_weight.size()) - 1;
  {
    nb::gil_scoped_release release;
    d.near = d.length.empty() ? near_by_points(d.x, d.y, d.in.near_count)
                              : near_by_matrix(d.length, d.in.n, d.in.near_count);
  }
  d.point();
  return data;
}

// Bytes that things take in the memory of a GPU: a solution, a chain (with its best tour and spare
// places), what a crew has in common, what each of its teams has, the hot part of an instance, the
// table of gaps.
nb::tuple layout(i32 customers, bool windows, bool optional, bool points, bool whole, i32 removed,
                 i32 routes, i32 places, bool several, i32 columns) {
  const Sizes sizes{customers, windows, removed, routes, pool_for(customers), places};
  const auto bytes = [&](auto call) {
    Carver counter{nullptr, 0, 1};
    call(counter);
    return counter.used;
  };
  Solution s;
  Scratch scratch;
  Places spare;
  Hot hot;
  const u64 solution = bytes([&](Carver& carver) { carve(carver, s, sizes); });
  const u64 chain = bytes([&](Carver& carver) {
    carve(carver, s, sizes);
    carver.take<i32>(2 * (customers + 1));
    carve(carver, spare, sizes.pool, windows);
  });
  return nb::make_tuple(
      solution, chain, bytes([&](Carver& carver) { carve_common(carver, scratch, sizes); }),
      bytes([&](Carver& carver) { carve_own(carver, scratch, sizes, several); }),
      bytes([&](Carver& carver) {
        carve(carver, hot, customers + 1, windows, optional, points, whole);
      }),
      bytes([&](Carver& carver) { carve_table(carver, scratch, removed, columns); }));
}

class Chains {
 public:
  Chains(std::vector<std::shared_ptr<InstanceData>> instances, In<i32> which,
         const std::string& isa, In<i64> numbers)
      : core_(pick_core(isa)),
        instances_(std::move(instances)),
        which_(which.data(), which.data() + which.size()),
        numbers_(numbers.data(), numbers.data() + numbers.size()) {
    if (numbers.size() != which.size()) throw std::invalid_argument("a number per chain");
    for (const i32 problem : which_) chains_.emplace_back(instances_.at(problem)->in);
    for (auto& instance : instances_) largest_ = std::max(largest_, instance->in.n);
    for (auto& data : chains_) {
      core_.clear(data.in(), data.chain);
      start_from_now(data.chain);
    }
  }

  Chains(const Chains&) = delete;

  const char* isa() const { return core_.name; }
  i32 size() const { return i32(chains_.size()); }

  // The current solution becomes the given routes (each ended by a 0), and the best seen so far
  // with it.
  void set_tour(i32 chain, In<i32> tour) {
    ChainData& data = chains_.at(chain);
    core_.clear(data.in(), data.chain);
    for (size_t begin = 0, end = 0; end < tour.size(); begin = ++end) {
      while (tour.data()[end] != 0) ++end;
      core_.add_route(data.in(), data.chain, tour.data() + begin, i32(end - begin));
    }
    start_from_now(data.chain);
  }

  // Steps made in all, by all chains; fewer than asked for if `seconds` were too few.
  i64 improve(const Recipe& recipe, std::optional<In<i32>> given, In<double> temperature, i32 from,
              i32 to, u64 seed, u64 iteration, i32 threads, std::optional<double> seconds) {
    nb::gil_scoped_release release;
    std::atomic<i64> steps_made{0};
    const Alarm alarm(seconds, stop_);
    const i32 steps = i32(temperature.shape(1));
    run(threads, size(), [&](Scratch* scratch, i32 i) {
      ChainData& data = chains_[i];
      const i32* removed = given ? given->data() + i64(i) * steps * recipe.removals : nullptr;
      steps_made += core_.improve(data.in(), data.chain, scratch, recipe, removed,
                                  temperature.data() + i64(i) * steps, from, to,
                                  key(seed, iteration, i), &stop_);
    });
    return steps_made;
  }

  Out<i64> evaluate(const Recipe& recipe, std::optional<In<i32>> given, i32 rollouts, u64 seed,
                    u64 iteration, bool keep_best, i32 threads) {
    std::vector<i64> deltas(size_t(size()) * rollouts);
    {
      nb::gil_scoped_release release;
      const auto removed = [&](i32 i) {
        return given ? given->data() + i64(i) * rollouts * recipe.removals : nullptr;
      };
      run(threads, size() * rollouts, [&](Scratch* scratch, i32 task) {
        const i32 i = task / rollouts, k = task % rollouts;
        ChainData& data = chains_[i];
        deltas[task] = core_.evaluate(data.in(), data.chain, scratch, recipe, removed(i), k,
                                      key(seed, iteration, i), false, &stop_);
      });
      if (keep_best) {
        run(threads, size(), [&](Scratch* scratch, i32 i) {
          const auto row = deltas.begin() + i64(i) * rollouts;
          const auto best = std::min_element(row, row + rollouts);
          ChainData& data = chains_[i];
          if (*best < 0) {
            core_.evaluate(data.in(), data.chain, scratch, recipe, removed(i), i32(best - row),
                           key(seed, iteration, i), true, &stop_);
          }
        });
      }
    }
    return array(std::move(deltas), {size_t(size()), size_t(rollouts)});
  }

  // reach: (chains,) in ticks. All choose before any is replaced.
  void exchange(In<double> reach, u64 seed, u64 iteration) {
    nb::gil_scoped_release release;
    std::vector<i64> costs;
    for (const auto& data : chains_) costs.push_back(data.chain.now.cost);
    const Field field{costs.data(), 1, which_.data(), size()};
    std::vector<i32> source;
    for (i32 i = 0; i < size(); ++i) {
      source.push_back(
          source_of(field, i, reach.data()[i], key(seed, iteration, i), OneLane{nullptr}));
    }
    for (i32 i = 0; i < size(); ++i) {
      if (source[i] == i) continue;
      Chain& chain = chains_[i].chain;
      chains_[i].copy_from(chains_[source[i]]);
      if (chain.now.cost < chain.best_cost) start_from_now(chain);
    }
  }

  Out<i64> costs(bool best) const {
    std::vector<i64> costs;
    for (const auto& data : chains_)
      costs.push_back(best ? data.chain.best_cost : data.chain.now.cost);
    return array(std::move(costs), {chains_.size()});
  }

  Out<i32> missing(bool best) const {
    std::vector<i32> missing;
    for (const auto& data : chains_) {
      missing.push_back(best ? data.chain.best_missing : data.chain.now.absent_required);
    }
    return array(std::move(missing), {chains_.size()});
  }

  Out<i32> tour(i32 chain, bool best) {
    Chain& c = chains_.at(chain).chain;
    if (!best || c.best_is_now) {
      std::vector<i32> tour;
      for (i32 r = 0; r < c.now.routes; ++r) {
        const i32* node = c.now.at.node + c.now.first[r];
        tour.insert(tour.end(), node + 1, node + c.now.size[r] + 2);
      }
      const size_t length = tour.size();
      return array(std::move(tour), {length});
    }
    return array(std::vector<i32>(c.best_tour, c.best_tour + c.best_length),
                 {size_t(c.best_length)});
  }

  // (3, chains, n+1): previous node, next node, route of each customer; 0, 0, -1 for those not
  // served.
  Out<i32> view() const {
    const size_t nodes = size_t(largest_) + 1, plane = chains_.size() * nodes;
    std::vector<i32> out(3 * plane, 0);
    std::fill(out.begin() + 2 * plane, out.end(), -1);
    for (size_t i = 0; i < chains_.size(); ++i) {
      const Solution& s = chains_[i].chain.now;
      for (i32 r = 0; r < s.routes; ++r) {
        const i32* node = s.at.node + s.first[r];
        for (i32 p = 1; p <= s.size[r]; ++p) {
          const size_t at = i * nodes + node[p];
          out[at] = node[p - 1], out[plane + at] = node[p + 1], out[2 * plane + at] = r;
        }
      }
    }
    return array(std::move(out), {3, chains_.size(), nodes});
  }

 private:
  u64 key(u64 seed, u64 iteration, i32 chain) const {
    return core_.key_of(core_.key_of(core_.key_of(0, seed), iteration), u64(numbers_[chain]));
  }

  template <class Task> void run(i32 threads, i32 count, Task task) {
    while (i32(scratch_.size()) < std::min(threads, count)) {
      scratch_.push_back(std::make_unique<ScratchData>(largest_, core_));
    }
    parallel(threads, count, [&](i32 worker, i32 i) { task(scratch_[worker]->scratch.data(), i); });
  }

  const Core& core_;
  std::vector<std::shared_ptr<InstanceData>> instances_;
  std::vector<ChainData> chains_;
  std::vector<std::unique_ptr<ScratchData>> scratch_;
  std::vector<i32> which_;    // the instance of each chain
  std::vector<i64> numbers_;  // of the chains, by which random numbers are drawn
  i32 largest_ = 0;
  volatile i32 stop_ = 0;
};

}  // namespace

NB_MODULE(_core, m) {
  nb::class_<InstanceData>(m, "Instance")
      .def_prop_ro(
          "near",
          [](const InstanceData& d) {
            return array(std::vector<i32>(d.near), {size_t(d.in.n) + 1, size_t(d.in.near_count)});
          },
          nb::rv_policy::automatic);
  m.def("make_instance", &make_instance, nb::kw_only(), "capacity"_a, "vehicles"_a, "demand"_a,
        "ready"_a.none(), "due"_a.none(), "service"_a.none(), "prize"_a.none(), "x"_a.none(),
        "y"_a.none(), "scale"_a, "box_margin"_a, "xd"_a.none(), "yd"_a.none(), "whole_scale"_a,
        "whole_shift"_a, "length"_a.none(), "time"_a.none(), "near_count"_a, "rank"_a.none(),
        "sort_weight"_a);
  m.def("layout", &layout, nb::kw_only(), "customers"_a, "windows"_a, "optional"_a, "points"_a,
        "whole"_a, "removed"_a, "routes"_a, "places"_a, "several"_a, "columns"_a);
  m.def("pool_for", &pool_for);
  m.attr("TEAMS") = kTeams;
  nb::class_<Recipe>(m, "Recipe")
      .def(
          "__init__",
          [](Recipe* r, i32 rule, i32 removals, float string_average, i32 string_longest,
             float string_split, float string_depth, i32 orders, bool sorted, bool all_routes,
             double blink, double open_route) {
            const auto chance = [](double p) { return p >= 1.0 ? ~0u : u32(p * 4294967296.0); };
            new (r) Recipe{
                rule,   removals, string_average, string_longest, string_split,      string_depth,
                orders, sorted,   all_routes,     chance(blink),  chance(open_route)};
          },
          nb::kw_only(), "rule"_a, "removals"_a, "string_average"_a, "string_longest"_a,
          "string_split"_a, "string_depth"_a, "orders"_a, "sorted"_a, "all_routes"_a, "blink"_a,
          "open_route"_a)
      .def("bytes", [](const Recipe& r) {
        return nb::bytes(reinterpret_cast<const char*>(&r), sizeof(Recipe));
      });
  nb::class_<Chains>(m, "Chains")
      .def(nb::init<std::vector<std::shared_ptr<InstanceData>>, In<i32>, const std::string&,
                    In<i64>>(),
           "instances"_a, "which"_a, "isa"_a, "numbers"_a)
      .def_prop_ro("isa", &Chains::isa)
      .def("__len__", &Chains::size)
      .def("set_tour", &Chains::set_tour, "chain"_a, "tour"_a)
      .def("improve", &Chains::improve, "recipe"_a, "given"_a.none(), "temperature"_a, "start"_a,
           "stop"_a, "seed"_a, "iteration"_a, "threads"_a, "seconds"_a.none())
      .def("evaluate", &Chains::evaluate, "recipe"_a, "given"_a.none(), "rollouts"_a, "seed"_a,
           "iteration"_a, "keep_best"_a, "threads"_a)
      .def("exchange", &Chains::exchange, "reach"_a, "seed"_a, "iteration"_a)
      .def("costs", &Chains::costs, "best"_a = false)
      .def("missing", &Chains::missing, "best"_a = false)
      .def("tour", &Chains::tour, "chain"_a, "best"_a = false)
      .def("view", &Chains::view);
}

}  // namespace nds
