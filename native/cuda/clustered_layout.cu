// Cells of clustered customers: the same as `place` of generate/attraction.py, a block per instance. Candidates have an
// order, and whether one is accepted depends on those before it alone. So the cells do not depend on the size of a
// block. float32 arithmetic rounds once per operation: this file is compiled without fused multiply-add, and the
// exponential is a polynomial.
#include "counter_random.hpp"

using namespace nds;

namespace {

constexpr u32 kAnywhere = 0xc2b2ae3du, kSeeds = 0x510e527fu, kCandidates = 0x9b05688cu;
constexpr i32 kSide = 1001, kCells = kSide * kSide;  // points along one side of the grid, in all
constexpr i32 kMostWarps = 8;
constexpr i32 kFaint = 100;  // no attraction is below 2^-kFaint, so that doubling takes it to 1

// Shared by the threads of a block: SHARED bytes of train/gpu_batch.py.
struct Shared {
  float scale;
  i32 open[kMostWarps], first[kMostWarps];  // candidates of each warp, see `rank`
  i32 listed[32 * kMostWarps];              // cells of the candidates of a round
};

// The cells of one instance so far. found: customers.
struct Grid {
  u32* taken;
  i32* cells;
  i32 found;
};

NDS_FN i32 cell_of(u32 word) { return i32(u64(word) * u32(kCells) >> 32); }
NDS_FN float power_of_two(i32 exponent) { return __int_as_float((127 + exponent) << 23); }

// 2^-t for t >= 0, accurate to 2e-7.
NDS_FN float halved(float t) {
  const i32 whole = t < float(kFaint) ? i32(t) : kFaint;
  const float f = whole < kFaint ? t - float(whole) : 0.0f;
  float power = 0.00011498084f;
  power = power * f - 0.0012917893f;
  power = power * f + 0.009597169f;
  power = power * f - 0.05549928f;
  power = power * f + 0.2402261f;
  power = power * f - 0.6931472f;
  return (power * f + 1.0f) * power_of_two(-whole);
}

// The sum of 2^(-distance / halving) over the seeds.
NDS_FN float attraction(const i32* seeds, i32 count, i32 cell, float halving) {
  float sum = 0.0f;
  for (i32 j = 0; j < count; ++j) {
    const i32 dx = cell / kSide - seeds[j] / kSide, dy = cell % kSide - seeds[j] % kSide;
    sum = sum + halved(__fsqrt_rn(float(dx * dx + dy * dy)) / halving);
  }
  return sum;
}

// The number of threads before this one with `yes`, and of all threads with it.
NDS_FN i32 rank(bool yes, i32* of_warp, i32& total) {
  const u32 bits = __ballot_sync(Warp::kAll, yes), lane = threadIdx.x % 32;
  if (lane == 0) of_warp[threadIdx.x / 32] = __popc(bits);
  sync_block();
  i32 before = __popc(bits & ((1u << lane) - 1));
  total = 0;
  for (u32 w = 0; w < blockDim.x / 32; ++w) {
    if (w < threadIdx.x / 32) before += of_warp[w];
    total += of_warp[w];
  }
  return before;
}

// Accept free candidates of a kind until there are `until` customers. chance: of a cell and the number of its
// candidate.
NDS_FN void fill(Shared& s, Grid& grid, const Words& words, u32 kind, i32 until, const auto& chance) {
  for (u32 tried = 0; grid.found < until; tried += blockDim.x) {
    const u32 number = tried + threadIdx.x;
    const i32 cell = cell_of(words.at(2 * number, kind));
    const float uniform = float(words.at(2 * number + 1, kind)) * 0x1p-32f;
    bool open = uniform < chance(cell, number) && !(grid.taken[cell / 32] >> (cell % 32) & 1);
    i32 total, place = rank(open, s.open, total);
    if (open) s.listed[place] = cell;
    sync_block();
    for (i32 j = 0; open && j < place; ++j) open = s.listed[j] != cell;  // the first of them counts
    place = grid.found + rank(open, s.first, total);
    if (open && place < until) {
      grid.cells[place + 1] = cell;
      atomicOr(&grid.taken[cell / 32], 1u << cell % 32);
    }
    grid.found = least(until, grid.found + total);
    sync_block();
  }
}

}  // namespace

// cells: (blocks, n + 1), the depot first, then `anywhere` customers, the seeds, and customers around them. one, two:
// (blocks,) of `Words`. depots, seeds: (blocks,) cells and counts. halving: the bits of a float. taken: (blocks,
// 31,313) zeros, a bit for each cell. After each `patience` candidates all probabilities double.
extern "C" __global__ void __launch_bounds__(32 * kMostWarps)
    place_clustered(const i64* one, const i64* two, const i64* depots, const i64* seeds, i32 n, i32 anywhere,
                    i32 halving_bits, u32 patience, u32* taken, i32* cells) {
  Shared& s = *reinterpret_cast<Shared*>(shared_memory());
  const Words words{u32(one[blockIdx.x]), u32(two[blockIdx.x])};
  const float halving = __int_as_float(halving_bits);
  const i32 depot = i32(depots[blockIdx.x]), count = i32(seeds[blockIdx.x]);
  Grid grid{taken + i64(blockIdx.x) * ((kCells + 31) / 32), cells + i64(blockIdx.x) * (n + 1), 0};
  if (threadIdx.x == 0) {
    grid.cells[0] = depot;
    atomicOr(&grid.taken[depot / 32], 1u << depot % 32);
  }
  sync_block();
  const auto always = [](i32, u32) { return 2.0f; };
  fill(s, grid, words, kAnywhere, anywhere, always);
  fill(s, grid, words, kSeeds, anywhere + count, always);
  const i32* centres = grid.cells + 1 + anywhere;
  if (threadIdx.x == 0) {
    float largest = 0.0f;
    for (i32 j = 0; j < count; ++j) {
      const float here = attraction(centres, count, centres[j], halving);
      largest = here > largest ? here : largest;
    }
    s.scale = 1.0f / largest;
  }
  sync_block();
  fill(s, grid, words, kCandidates, n, [&](i32 cell, u32 number) {
    const u32 doubled = number / patience;
    return attraction(centres, count, cell, halving) * s.scale * power_of_two(i32(doubled < 120 ? doubled : 120));
  });
}
