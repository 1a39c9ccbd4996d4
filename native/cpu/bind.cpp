// The binding for Python. The caller (engine/shared.py) checks shapes.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>

#include "chains.hpp"
#include "landmarks.hpp"
#include "ndsvrp/exchange.hpp"
#include "ndsvrp/gaps.hpp"
#include "ndsvrp/layout.hpp"
#include "neighbours.hpp"
#include "pool.hpp"
#include "savings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace nds {
namespace {

template <class T> using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T> using Out = nb::ndarray<nb::numpy, T>;

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

// Set the fields of a struct by their names in types.hpp; keep(data, count) copies an array. Returns how many there
// are.
template <class S> size_t set_fields(S& s, const nb::kwargs& values, auto keep) {
  size_t known = 0;
  each_field(&s, [&]<class T>(const char* name, size_t offset) {
    if (!values.contains(name)) return;
    ++known;
    const nb::handle value = values[name];
    T& field = *reinterpret_cast<T*>(reinterpret_cast<char*>(&s) + offset);
    if constexpr (std::is_pointer_v<T>) {
      if (value.is_none()) return;
      const auto array = nb::cast<In<std::remove_const_t<std::remove_pointer_t<T>>>>(value);
      field = keep(array.data(), array.size());
    } else if constexpr (std::is_same_v<T, Chance>) {
      const double p = nb::cast<double>(value);
      field = Chance(p >= 1.0 ? ~0u : u32(p * 4294967296.0));
    } else if constexpr (std::is_enum_v<T>) {
      field = T(nb::cast<i32>(value));
    } else {
      field = nb::cast<T>(value);
    }
  });
  if (known != values.size()) throw std::invalid_argument("an unknown field");
  return known;
}

// The coordinates of nodes with a matrix of lengths, (2, n+1), and how much they may be off.
nb::tuple landmark_coordinates(const In<i32>& length) {
  if (length.ndim() != 2 || length.shape(0) != length.shape(1) || length.shape(0) < 2)
    throw std::invalid_argument("a square matrix of two nodes or more");
  const size_t nodes = length.shape(0);
  std::vector<float> points;
  i64 largest = 0;
  {
    nb::gil_scoped_release release;
    for (const std::vector<i64>& values : Landmarks(length.data(), i32(nodes) - 1).best()) {
      const i64 least = *std::min_element(values.begin(), values.end());
      for (const i64 value : values) points.push_back(float(value - least)), largest = std::max(largest, value - least);
    }
  }
  return nb::make_tuple(array(std::move(points), {2, nodes}), 2 + (largest >> 22));  // halves, and float32
}

// The core adds the counts and the neighbour lists.
std::shared_ptr<InstanceData> make_instance(const nb::kwargs& fields) {
  auto data = std::make_shared<InstanceData>();
  Instance& in = data->in;
  set_fields(in, fields, [&](const auto* array, size_t count) { return data->keep(array, count); });
  in.n = i32(nb::len(nb::handle(fields["demand"]))) - 1;
  in.near_count = std::min(in.near_count, in.n - 1);
  in.sorts = i32(nb::len(nb::handle(fields["sort_weight"]))) - 1;
  if (in.time == nullptr) in.time = in.length;
  in.weight = in.demand;
  nb::gil_scoped_release release;
  const std::vector<i32> near = in.length == nullptr ? near_by_points(in.x, in.y, in.n, in.near_count)
                                                     : near_by_matrix(in.length, in.n, in.near_count);
  in.near = data->keep(near.data(), near.size());
  if (in.length != nullptr && is_symmetric(in.length, in.n)) in.ways = in.length;
  return data;
}

Recipe make_recipe(const nb::kwargs& fields) {
  Recipe recipe{};
  const size_t known = set_fields(recipe, fields, [](auto* array, size_t) { return array; });
  if (i32(known) != layout_numbers<Recipe>().count) throw std::invalid_argument("a field is missing");
  return recipe;
}

// The layout of a struct, as numpy.dtype takes it.
template <class S> nb::dict dtype_of() {
  nb::list names, formats, offsets;
  each_field(static_cast<S*>(nullptr), [&]<class T>(const char* name, size_t offset) {
    names.append(name);
    offsets.append(offset);
    if constexpr (std::is_pointer_v<T>) {
      formats.append("u8");
    } else if constexpr (std::is_class_v<T>) {
      formats.append(dtype_of<T>());
    } else {
      const char kind = std::is_floating_point_v<T> ? 'f' : T(-1) < T(0) ? 'i' : 'u';
      formats.append(std::string(1, kind) + std::to_string(sizeof(T)));
    }
  });
  nb::dict layout;
  layout["names"] = names, layout["formats"] = formats, layout["offsets"] = offsets;
  layout["itemsize"] = sizeof(S);
  return layout;
}

// The layout, and the numbers by which kernels check it (layout.hpp).
template <class S> nb::tuple layout_of() {
  const LayoutNumbers numbers = layout_numbers<S>();
  return nb::make_tuple(dtype_of<S>(), std::vector<u32>(numbers.field, numbers.field + numbers.count));
}

// Call call.operator()<R, D>() for rules and a distance that are given by name.
using Names = std::vector<std::string>;
auto with_kind(const Names& rules, const std::string& distance, auto call) {
  const auto chosen = [&]<class Rule>() { return std::find(rules.begin(), rules.end(), Rule::name) != rules.end(); };
  return with_rules(Rules<>{}, AllRules{}, chosen, [&]<class R>() {
    if (distance == Matrix::name) return call.template operator()<R, Matrix>();
    if (distance == WholePoints::name) return call.template operator()<R, WholePoints>();
    return call.template operator()<R, FloatPoints>();
  });
}

template <class... Rule> Names names_of(Rules<Rule...>) { return {Rule::name...}; }

// The names of the rules and of the distance of an instance, which is given as bytes. Pointers in it are only compared
// with null.
nb::tuple kind_of(const nb::bytes& record) {
  Instance in;
  if (record.size() != sizeof(in)) throw std::invalid_argument("not an instance");
  std::memcpy(&in, record.c_str(), sizeof(in));
  return nb::make_tuple(nb::tuple(nb::cast(with_rules(in, []<class R>() { return names_of(R{}); }))),
                        with_distance(in, []<class D>() { return std::string(D::name); }));
}

// Bytes of shared and of global memory that a block needs for a part with numbers of its own.
nb::tuple local_layout(const Names& rules, const std::string& distance, i32 customers, i32 removed, i32 routes,
                       i32 pool, i32 stops, i32 all_customers, i32 teams) {
  const Sizes sizes{customers, removed, routes, pool, stops, 0};
  Carver near{nullptr, 0, 1}, far{nullptr, 0, 1};
  with_kind(rules, distance, [&]<class R, class D>() {
    Instance in{};
    carve_local<R, D>(near, in, sizes, 0, teams, [](auto*, const auto*) {});
    carve_far<R>(far, sizes, all_customers, 0, teams);
  });
  return nb::make_tuple(near.used, far.used);
}

// Bytes in the memory of a GPU, of: a solution; a chain (with its best tour and spare stops); what a crew has in
// common; what each of its teams has for its own; the inputs of an instance; the table of gaps.
nb::dict layout(const Names& rules, const std::string& distance, i32 customers, i32 removed, i32 routes, i32 pool,
                i32 stops, i32 locations, i32 drafts, i32 columns) {
  const Sizes sizes{customers, removed, routes, pool, stops, locations};
  nb::dict bytes;
  const auto count = [&](const char* name, auto carve) {
    Carver counter{nullptr, 0, 1};
    carve(counter);
    bytes[name] = counter.used;
  };
  with_kind(rules, distance, [&]<class R, class D>() {
    Chain chain;
    Workspace work;
    Stops spare;
    Instance in{};
    const auto leave = [](auto*, auto*) {};
    count("solution", [&](Carver& carver) { carve<R>(carver, chain.current, sizes); });
    count("chain", [&](Carver& carver) { carve_chain<R>(carver, chain, spare, sizes); });
    count("common", [&](Carver& carver) { carve_common<R>(carver, work, sizes); });
    count("own", [&](Carver& carver) { carve_own<R>(carver, work, sizes, drafts); });
    count("inputs", [&](Carver& carver) { carve_inputs<R, D>(carver, in, customers + 1, leave); });
    count("table", [&](Carver& carver) { carve_table<R>(carver, work, removed, columns); });
  });
  return bytes;
}

// The gaps that a warp can hold, and the unserved customers that a ruin may add.
nb::tuple limits(const Names& rules) {
  return with_kind(rules, Matrix::name, []<class R, class>() { return nb::make_tuple(32 * kLarge<R>, R::kRetries); });
}

constexpr u64 kAbsences = ~3ull;  // in place of an iteration, so that `serve_required` draws other random numbers

class Chains {
 public:
  Chains(std::vector<std::shared_ptr<InstanceData>> instances, In<i32> problem_of, const std::string& isa,
         In<i64> numbers)
      : core_(pick_core(isa)),
        instances_(std::move(instances)),
        problem_of_(problem_of.data(), problem_of.data() + problem_of.size()),
        numbers_(numbers.data(), numbers.data() + numbers.size()) {
    if (numbers.size() != problem_of.size()) throw std::invalid_argument("a number per chain");
    for (const i32 problem : problem_of_) chains_.emplace_back(instances_.at(problem)->in);
    for (auto& instance : instances_) largest_ = std::max(largest_, instance->in.n);
    for (auto& data : chains_) {
      core_.clear(data.in(), data.chain);
      start_from_current(data.chain);
    }
  }

  Chains(const Chains&) = delete;

  const char* isa() const { return core_.name; }
  i32 size() const { return i32(chains_.size()); }

  // Let the steps of all chains, from now on, use no more routes than these.
  void limit_vehicles(i32 vehicles) {
    for (auto& data : chains_) data.limit_vehicles(vehicles);
  }

  // Set the current solution to the given routes (each ended by a 0), and the best one with it.
  void set_tour(i32 chain, In<i32> tour) { set_routes(chain, tour.data(), tour.size()); }

  // Whether the routes of the current solution are in time and within the limits on routes. Loads are not checked.
  bool feasible(i32 chain) const {
    const ChainData& data = chains_.at(chain);
    return core_.feasible(data.in(), data.chain);
  }

  // Allocate the workspaces of so many threads.
  void reserve(i32 threads) {
    while (i32(work_.size()) < threads) {
      work_.push_back(std::make_unique<WorkspaceData>(largest_, core_));
    }
  }

  // Set all chains to routes by savings, as far as `seconds` allow.
  void construct(i32 threads, std::optional<double> seconds) {
    nb::gil_scoped_release release;
    const std::scoped_lock lock(in_use_);
    const Alarm alarm(seconds, stop_);
    std::vector<std::vector<i32>> tours(instances_.size());
    pool_.run(threads, i32(tours.size()), [&](i32, i32 i) { tours[i] = savings(instances_[i]->in, &stop_); });
    pool_.run(threads, size(), [&](i32, i32 chain) {
      const std::vector<i32>& tour = tours[problem_of_[chain]];
      set_routes(chain, tour.data(), tour.size());
    });
  }

  // Returns the steps made by all chains; fewer than asked for if `seconds` were too few.
  i64 improve(const Recipe& recipe, std::optional<In<i32>> given, In<double> temperature, i32 from, i32 to, u64 seed,
              u64 iteration, i32 threads, std::optional<double> seconds) {
    nb::gil_scoped_release release;
    const std::scoped_lock lock(in_use_);
    std::atomic<i64> steps_made{0};
    const Alarm alarm(seconds, stop_);
    const i32 steps = i32(temperature.shape(1));
    reserve(std::min(threads, size()));
    pool_.run_in_parts(threads, size(), from, to, [&](i32 worker, i32 i, i32 begin, i32 end) {
      ChainData& data = chains_[i];
      const i32* removed = given ? given->data() + i64(i) * steps * recipe.removals : nullptr;
      steps_made += core_.improve(data.in(), data.chain, work_[worker]->work.data(), recipe, removed,
                                  temperature.data() + i64(i) * steps, begin, end, key(seed, iteration, i), &stop_);
    });
    return steps_made;
  }

  // Make the steps from … to-1, or fewer if the solutions of all chains serve all required customers. A step is judged
  // by its length, and by what stays unserved: each required customer at `unit` times the steps that have left it so.
  // The instances must have prizes.
  void serve_required(const Recipe& recipe, In<double> temperature, i64 unit, i32 from, i32 to, u64 seed, i32 threads,
                      std::optional<double> seconds) {
    if (temperature.size() != chains_.size() || unit < 1) throw std::invalid_argument("a temperature per chain");
    nb::gil_scoped_release release;
    const std::scoped_lock lock(in_use_);
    const Alarm alarm(seconds, stop_);
    run(threads, size(), [&](Workspace* work, i32 i) {
      chains_[i].serve_required(core_, work, recipe, temperature.data()[i], unit, from, to, key(seed, kAbsences, i),
                                &stop_);
    });
  }

  // Split the solution of each chain into parts: chains i * regions … of `parts` are those of chain i.
  void split(Chains& parts, u64 seed, u64 iteration, i32 threads) {
    nb::gil_scoped_release release;
    const std::scoped_lock lock(in_use_, parts.in_use_);
    const i32 regions = parts.size() / size();
    for (auto& data : chains_) {
      if (data.chain.best_is_current) save_best(data.chain, Alone<OneLane>{OneLane{nullptr}});
    }
    parts.run(threads, parts.size(), [&](Workspace* work, i32 i) {
      const i32 whole = i / regions;
      parts.chains_[i].become_part(chains_[whole].in(), chains_[whole].chain, key(seed, iteration, whole), regions,
                                   i % regions, core_, work);
    });
  }

  // Returns (parts, 1 + n): how many customers each part has, then these, route by route, the unserved ones last.
  Out<i32> customers() const {
    const size_t row = size_t(largest_) + 1;
    std::vector<i32> out(chains_.size() * row, 0);
    for (size_t i = 0; i < chains_.size(); ++i) {
      const i32 count = chains_[i].chain.current.own_count;
      out[i * row] = count;
      std::copy_n(chains_[i].own().begin(), count, out.begin() + i * row + 1);
    }
    return array(std::move(out), {chains_.size(), row});
  }

  // Make the solution of each chain from its parts again, and the best one from their best.
  void merge(Chains& parts, i32 threads) {
    nb::gil_scoped_release release;
    const std::scoped_lock lock(in_use_, parts.in_use_);
    const i32 regions = parts.size() / size();
    const auto sum = [&](i32 whole, i32 count) {
      const auto part = [&](i32 i) { return parts.chains_[whole * regions + i].totals(); };
      return sum_of(count, part, OneLane{nullptr});
    };
    std::vector<Totals> all;
    for (i32 i = 0; i < size(); ++i) all.push_back(sum(i, regions));
    parts.run(threads, parts.size(), [&](Workspace* work, i32 i) {
      const i32 whole = i / regions;
      core_.merge(chains_[whole].in(), chains_[whole].chain, parts.chains_[i].chain, sum(whole, i % regions),
                  all[whole], work);
    });
    for (i32 i = 0; i < size(); ++i) set_merged(chains_[i].chain, all[i]);
  }

  Out<i64> evaluate(const Recipe& recipe, std::optional<In<i32>> given, i32 rollouts, u64 seed, u64 iteration,
                    bool keep_best, bool always, i32 threads) {
    std::vector<i64> deltas(size_t(size()) * rollouts);
    {
      nb::gil_scoped_release release;
      const std::scoped_lock lock(in_use_);
      const auto removed = [&](i32 i) { return given ? given->data() + i64(i) * rollouts * recipe.removals : nullptr; };
      run(threads, size() * rollouts, [&](Workspace* work, i32 task) {
        const i32 i = task / rollouts, k = task % rollouts;
        ChainData& data = chains_[i];
        deltas[task] =
            core_.evaluate(data.in(), data.chain, work, recipe, removed(i), k, key(seed, iteration, i), false, &stop_);
      });
      if (keep_best) {
        run(threads, size(), [&](Workspace* work, i32 i) {
          const auto row = deltas.begin() + i64(i) * rollouts;
          const auto best = std::min_element(row, row + rollouts);
          ChainData& data = chains_[i];
          if (*best < (always ? kNoRoom : 0)) {
            core_.evaluate(data.in(), data.chain, work, recipe, removed(i), i32(best - row), key(seed, iteration, i),
                           true, &stop_);
          }
        });
      }
    }
    return array(std::move(deltas), {size_t(size()), size_t(rollouts)});
  }

  // reach: (chains,) in ticks. group_of: (chains,) who exchanges with whom. All choose before any is replaced.
  void exchange(In<double> reach, In<i32> group_of, u64 seed, u64 iteration) {
    nb::gil_scoped_release release;
    const std::scoped_lock lock(in_use_);
    struct {
      const std::vector<ChainData>& all;
      const i32* group_of;
      i32 chains;
      i64 of(i32 j) const { return relieved_cost(all[j].chain.current, all[j].in()); }
    } const costs{chains_, group_of.data(), size()};
    std::vector<i32> source;
    for (i32 i = 0; i < size(); ++i) {
      source.push_back(source_of(costs, i, reach.data()[i], key(seed, iteration, i), OneLane{nullptr}));
    }
    for (i32 i = 0; i < size(); ++i) {
      if (source[i] == i) continue;
      Chain& chain = chains_[i].chain;
      if (chain.best_is_current && chains_[i].in().relief != 0) save_best(chain, Alone<OneLane>{OneLane{nullptr}});
      chains_[i].copy_from(chains_[source[i]]);
      if (chain.current.cost < chain.best_cost) start_from_current(chain);
    }
  }

  // price: (chains,) in ticks, what an unserved required customer counts when steps are accepted.
  void set_prices(In<i64> price) {
    const std::scoped_lock lock(in_use_);
    for (i32 i = 0; i < size(); ++i) chains_[i].set_price(price.data()[i]);
  }

  Out<i64> costs(bool best) const {
    return of_chains<i64>([best](const Chain& c) { return best ? c.best_cost : c.current.cost; });
  }

  Out<i32> missing(bool best) const {
    return of_chains<i32>([best](const Chain& c) { return best ? c.best_unserved : c.current.unserved_required; });
  }

  Out<i32> tour(i32 chain, bool best) {
    const Chain& c = chains_.at(chain).chain;
    std::vector<i32> tour;
    if (best && !c.best_is_current) {
      tour.assign(c.best_tour, c.best_tour + c.best_length);
    } else {
      for (i32 r = 0; r < c.current.routes; ++r) {
        const i32* node = c.current.at.node + c.current.first[r];
        tour.insert(tour.end(), node + 1, node + c.current.size[r] + 2);
      }
    }
    const size_t length = tour.size();
    return array(std::move(tour), {length});
  }

  // Returns (3, chains, n+1): previous node, next node and route of each customer; 0, 0, -1 if it is unserved.
  Out<i32> view() const {
    const size_t nodes = size_t(largest_) + 1, plane = chains_.size() * nodes;
    std::vector<i32> out(3 * plane, 0);
    std::fill(out.begin() + 2 * plane, out.end(), -1);
    for (size_t i = 0; i < chains_.size(); ++i) {
      const Solution& s = chains_[i].chain.current;
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
  // A number of each chain.
  template <class T> Out<T> of_chains(auto number) const {
    std::vector<T> numbers;
    for (const auto& data : chains_) numbers.push_back(number(data.chain));
    return array(std::move(numbers), {chains_.size()});
  }

  void set_routes(i32 chain, const i32* tour, size_t length) {
    ChainData& data = chains_.at(chain);
    core_.clear(data.in(), data.chain);
    for (size_t begin = 0, end = 0; end < length; begin = ++end) {
      while (tour[end] != 0) ++end;
      core_.add_route(data.in(), data.chain, tour + begin, i32(end - begin));
    }
    start_from_current(data.chain);
  }

  u64 key(u64 seed, u64 iteration, i32 chain) const {
    return core_.key_of(core_.key_of(core_.key_of(0, seed), iteration), u64(numbers_[chain]));
  }

  void run(i32 threads, i32 count, auto task) {
    reserve(std::min(threads, count));
    pool_.run(threads, count, [&](i32 worker, i32 i) { task(work_[worker]->work.data(), i); });
  }

  const Core& core_;
  std::vector<std::shared_ptr<InstanceData>> instances_;
  std::vector<ChainData> chains_;
  std::vector<std::unique_ptr<WorkspaceData>> work_;
  std::vector<i32> problem_of_;  // the instance of each chain
  std::vector<i64> numbers_;     // of the chains, by which random numbers are drawn
  i32 largest_ = 0;
  volatile i32 stop_ = 0;
  std::mutex in_use_;  // Python threads may call at the same time: one after another
  Pool pool_;          // the last member: its threads end before what they use
};

}  // namespace

NB_MODULE(_core, m) {
  nb::class_<InstanceData>(m, "Instance")
      .def_prop_ro(
          "near",
          [](const InstanceData& d) {
            const size_t nodes = size_t(d.in.n) + 1, count = size_t(d.in.near_count);
            return array(std::vector<i32>(d.in.near, d.in.near + nodes * count), {nodes, count});
          },
          nb::rv_policy::automatic)
      .def("tabulate", &InstanceData::tabulate, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "find_shortcuts", [](InstanceData& d, const std::string& isa) { d.find_shortcuts(pick_core(isa)); }, "isa"_a,
          nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("shortcuts", [](const InstanceData& d) -> std::optional<std::vector<i32>> {
        if (d.in.shortcut == nullptr) return std::nullopt;
        return std::vector<i32>(d.in.shortcut, d.in.shortcut + d.in.n + 1);
      });
  m.def("landmark_coordinates", &landmark_coordinates, "length"_a);
  m.def("make_instance", &make_instance);
  m.def("kind_of", &kind_of, "record"_a);
  m.def("layout", &layout);
  m.def("local_layout", &local_layout);
  m.def("limits", &limits, "rules"_a);
  m.def("pool_for", &pool_for);
  m.attr("TEAMS") = kTeams;
  nb::dict layouts;
  layouts["Instance"] = layout_of<Instance>();
  layouts["Plan"] = layout_of<Plan>();
  layouts["Record"] = layout_of<Record>();
  m.attr("LAYOUTS") = layouts;
  nb::class_<Recipe>(m, "Recipe")
      .def("__init__", [](Recipe* recipe, const nb::kwargs& fields) { new (recipe) Recipe(make_recipe(fields)); })
      .def("bytes", [](const Recipe& r) { return nb::bytes(reinterpret_cast<const char*>(&r), sizeof(Recipe)); });
  nb::class_<Chains>(m, "Chains")
      .def(nb::init<std::vector<std::shared_ptr<InstanceData>>, In<i32>, const std::string&, In<i64>>(), "instances"_a,
           "problem_of"_a, "isa"_a, "numbers"_a)
      .def_prop_ro("isa", &Chains::isa)
      .def("__len__", &Chains::size)
      .def("set_tour", &Chains::set_tour, "chain"_a, "tour"_a)
      .def("limit_vehicles", &Chains::limit_vehicles, "vehicles"_a)
      .def("feasible", &Chains::feasible, "chain"_a)
      .def("reserve", &Chains::reserve, "threads"_a)
      .def("construct", &Chains::construct, "threads"_a, "seconds"_a.none())
      .def("improve", &Chains::improve, "recipe"_a, "given"_a.none(), "temperature"_a, "start"_a, "stop"_a, "seed"_a,
           "iteration"_a, "threads"_a, "seconds"_a.none())
      .def("serve_required", &Chains::serve_required, "recipe"_a, "temperature"_a, "unit"_a, "start"_a, "stop"_a,
           "seed"_a, "threads"_a, "seconds"_a.none())
      .def("split", &Chains::split, "parts"_a, "seed"_a, "iteration"_a, "threads"_a)
      .def("customers", &Chains::customers)
      .def("merge", &Chains::merge, "parts"_a, "threads"_a)
      .def("evaluate", &Chains::evaluate, "recipe"_a, "given"_a.none(), "rollouts"_a, "seed"_a, "iteration"_a,
           "keep_best"_a, "always"_a, "threads"_a)
      .def("set_prices", &Chains::set_prices, "price"_a)
      .def("exchange", &Chains::exchange, "reach"_a, "group_of"_a, "seed"_a, "iteration"_a)
      .def("costs", &Chains::costs, "best"_a = false)
      .def("missing", &Chains::missing, "best"_a = false)
      .def("tour", &Chains::tour, "chain"_a, "best"_a = false)
      .def("view", &Chains::view);
}

}  // namespace nds
