// Do a GPU and a CPU make the same routes? The headers of the core, compiled for the device as they are and run by one
// lane, against the core that g++ compiled, on the same problems and seeds: costs, routes and best solutions must agree.
//
//     g++ -std=c++20 -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -Inative/include \
//         -DNDS_CORE=core_base -c native/cpu/core.cpp -o core.o
//     nvcc -std=c++20 -O3 -arch=native -fmad=false -Inative/include -Inative/cpu tests/gpu/one_lane.cu core.o -o one_lane
//     ./one_lane
#include <cstdio>
#include <cstdlib>
#include <random>

#include "chains.hpp"
#include "ndsvrp/step.hpp"
#include "neighbours.hpp"

using namespace nds;

// Everything that is allocated can be read by both: one managed arena, never given back.
static char* arena = nullptr;
static size_t arena_used = 0;
constexpr size_t kArena = size_t(256) << 20;

#ifndef __CUDA_ARCH__  // the host's alone
void* operator new(size_t size) {
  if (arena == nullptr && cudaMallocManaged(&arena, kArena) != cudaSuccess) std::abort();
  void* block = arena + arena_used;
  arena_used += (size + 63) / 64 * 64;
  if (arena_used > kArena) std::abort();
  return block;
}
void operator delete(void*) noexcept {}
void operator delete(void*, size_t) noexcept {}
#endif

template <class R, class D>
__global__ void run(const Instance* in, Chain* chain, Scratch* scratch, Recipe recipe, const double* temperature,
                    i32 steps, u64 key, i32* made) {
  *made = improve<R, D>(*in, *chain, *scratch, recipe, nullptr, temperature, 0, steps, key, Lanes<1>{});
}

struct Case {
  const char* name;
  bool windows, optional;
  enum Way { kFloat, kWhole, kMatrix } way;
  void (*launch)(const Instance*, Chain*, Scratch*, Recipe, const double*, i32, u64, i32*);
};

template <class R, class D>
void launch(const Instance* in, Chain* chain, Scratch* scratch, Recipe recipe, const double* temperature, i32 steps,
            u64 key, i32* made) {
  run<R, D><<<1, 1>>>(in, chain, scratch, recipe, temperature, steps, key, made);
}

static InstanceData* make(const Case& kind, i32 n, unsigned seed) {
  std::mt19937 random(seed);
  const auto draw = [&](i32 low, i32 high) { return low + i32(random() % unsigned(high - low + 1)); };
  auto* data = new InstanceData;
  InstanceData& d = *data;
  for (i32 c = 0; c <= n; ++c) {
    const double x = draw(0, 1 << 28) * (kind.way == Case::kWhole ? 1.0 / 4096 : 1.0);
    const double y = draw(0, 1 << 28) * (kind.way == Case::kWhole ? 1.0 / 4096 : 1.0);
    d.x.push_back(float(x)), d.y.push_back(float(y));
    if (kind.way == Case::kWhole) d.xd.push_back(x), d.yd.push_back(y);
    d.demand.push_back(c == 0 ? 0 : draw(1, 9));
  }
  d.near = near_by_points(d.x, d.y, std::min(64, n - 1));
  const i32 span = kind.way == Case::kWhole ? 1 << 16 : 1 << 28;
  if (kind.way == Case::kMatrix) {
    for (i32 a = 0; a <= n; ++a) {
      for (i32 b = 0; b <= n; ++b) d.length.push_back(a == b ? 0 : draw(span / 8, span / 2));
    }
    d.x.clear(), d.y.clear();
  }
  for (i32 c = 0; c <= n; ++c) {
    const i32 ready = draw(0, 2 * span - 1);
    if (kind.windows) d.ready.push_back(c == 0 ? 0 : ready), d.service.push_back(c == 0 ? 0 : span / 64);
    if (kind.windows) d.due.push_back(c == 0 ? 2147483647 / 2 : std::max(ready, 3 * (span / 2)) + span / 8);
    if (kind.optional) d.prize.push_back(c % 7 == 1 ? kRequired : draw(span / 8, span / 2));
  }
  d.sort_weight = {4, 4, 2};
  for (i32 sort = 0; sort < 2; ++sort) {
    d.rank.push_back(0);
    for (i32 c = 1; c <= n; ++c) d.rank.push_back(sort == 0 ? c : n - c);
  }
  d.in.n = n, d.in.capacity = 60, d.in.vehicles = kind.optional ? n / 9 : n;
  d.in.scale = 1.0f, d.in.box_margin = 1024;
  d.in.whole_scale = 1.0, d.in.whole_shift = 0.5;
  d.in.near_count = std::min(64, n - 1), d.in.sorts = 2;
  d.point();
  return data;
}

static void reset(const Core& core, ChainData& data) {
  core.clear(data.in(), data.chain);
  if (data.in().prize == nullptr) {
    for (i32 c = 1; c <= data.in().n; ++c) core.add_route(data.in(), data.chain, &c, 1);
  }
  data.chain.best_cost = data.chain.now.cost;
  data.chain.best_missing = data.chain.now.absent_required;
  data.chain.best_is_now = 1;
}

static bool same_routes(const Chain& a, const Chain& b) {
  if (a.now.cost != b.now.cost || a.now.routes != b.now.routes || a.best_cost != b.best_cost) return false;
  for (i32 r = 0; r < a.now.routes; ++r) {
    if (a.now.size[r] != b.now.size[r]) return false;
    for (i32 p = 0; p < a.now.size[r] + 2; ++p) {
      if (a.now.at.node[a.now.first[r] + p] != b.now.at.node[b.now.first[r] + p]) return false;
    }
  }
  return true;
}

int main() {
  using C = Capacity;
  using W = TimeWindows;
  using P = Prizes;
  const Case cases[] = {
      {"cvrp float", false, false, Case::kFloat, launch<Rules<C>, FloatPoints>},
      {"cvrp whole", false, false, Case::kWhole, launch<Rules<C>, WholePoints>},
      {"cvrp matrix", false, false, Case::kMatrix, launch<Rules<C>, Matrix>},
      {"vrptw whole", true, false, Case::kWhole, launch<Rules<C, W>, WholePoints>},
      {"vrptw matrix", true, false, Case::kMatrix, launch<Rules<C, W>, Matrix>},
      {"pcvrp float", false, true, Case::kFloat, launch<Rules<C, P>, FloatPoints>},
      {"pcvrptw whole", true, true, Case::kWhole, launch<Rules<C, W, P>, WholePoints>},
      {"pcvrptw matrix", true, true, Case::kMatrix, launch<Rules<C, W, P>, Matrix>},
  };
  const Recipe recipes[] = {{kString, 10, 10.0f, 10, 0.5f, 0.01f, 1, 1, 1, 42949673u, 2147483648u},
                            {kRelated, 12, 10.0f, 10, 0.5f, 0.01f, 3, 0, 0, 0u, 2147483648u},
                            {kRandom, 8, 10.0f, 10, 0.5f, 0.01f, 2, 0, 1, 42949673u, 2147483648u}};
  const i32 steps = 400;
  i32 failures = 0, runs = 0;
  auto* stop = new i32(0);
  auto* made = new i32(0);
  for (const Case& kind : cases) {
    for (i32 n : {1, 7, 61, 200}) {
      InstanceData* data = make(kind, n, unsigned(n));
      auto* cpu = new ChainData(data->in, core_base);
      auto* gpu = new ChainData(data->in, core_base);
      auto* host = new ScratchData(n, core_base);
      auto* device = new ScratchData(n, core_base);
      host->scratch.stop = device->scratch.stop = stop;
      reset(core_base, *cpu), reset(core_base, *gpu);
      auto* heat = new std::vector<double>(steps, kind.way == Case::kWhole ? 600.0 : 2.5e6);
      for (u64 key = 1; key <= 3; ++key) {
        Recipe recipe = recipes[key - 1];
        recipe.removals = std::min(recipe.removals, n);
        core_base.improve(data->in, cpu->chain, host->scratch, recipe, nullptr, heat->data(), 0, steps, key);
        kind.launch(&data->in, &gpu->chain, &device->scratch, recipe, heat->data(), steps, key, made);
        const cudaError_t error = cudaDeviceSynchronize();
        if (error != cudaSuccess) {
          std::printf("%s n=%d: %s\n", kind.name, n, cudaGetErrorString(error));
          return 1;
        }
        const bool same = *made == steps && same_routes(cpu->chain, gpu->chain);
        ++runs;
        failures += !same;
        if (!same || (n == 200 && key == 3)) {
          std::printf("%-16s n=%-4d cost %lld / %lld, %d routes, best %lld: %s\n", kind.name, n, cpu->chain.now.cost,
                      gpu->chain.now.cost, cpu->chain.now.routes, cpu->chain.best_cost, same ? "same" : "DIFFERENT");
        }
      }
    }
  }
  std::printf("%d passed, %d failed\n", runs - failures, failures);
  return failures != 0;
}
