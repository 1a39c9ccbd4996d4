// Places of clustered customers, as `clustered` of generate/places.py has them: a block per
// instance. Candidates have an order, and what becomes of one depends on those before it alone:
// the cells are the same for blocks of any size, and with float32 arithmetic that rounds once per
// operation (no multiply and add in one, an exponential of our own) on all machines.
#include "counter_random.hpp"

using namespace nds;

namespace {

constexpr u32 kOfSeeds = 0x510e527fu, kOfCandidates = 0x9b05688cu;
constexpr i32 kSide = 1001, kCells = kSide * kSide;  // points along one side of the grid, in all
constexpr i32 kMostSeeds = 32, kMostWarps = 8;
constexpr i32 kFaint = 100;  // 2^-100: no attraction is less, so that it can be doubled up to 1

// What the threads of a block tell each other: SHARED bytes of drawn.py.
struct Shared {
  i32 seeds, seed[kMostSeeds];
  float scale;
  i32 open[kMostWarps], first[kMostWarps];  // candidates of each warp, see `rank`
  i32 listed[32 * kMostWarps];              // cells of the candidates of a round
};

NDS_FN i32 cell_of(u32 word) { return i32(u64(word) * u32(kCells) >> 32); }

// 2^-t for t >= 0, good to 1e-7.
NDS_FN float halved(float t) {
  const i32 whole = t < float(kFaint) ? i32(t) : kFaint;
  const float f = whole < kFaint ? t - float(whole) : 0.0f;
  float power = 0.00011498084f;
  power = power * f - 0.0012917893f;
  power = power * f + 0.009597169f;
  power = power * f - 0.05549928f;
  power = power * f + 0.2402261f;
  power = power * f - 0.6931472f;
  return (power * f + 1.0f) * __int_as_float((127 - whole) << 23);
}

// What a cell feels of the seeds.
NDS_FN float pull(const Shared& s, i32 cell, float halving) {
  float sum = 0.0f;
  for (i32 j = 0; j < s.seeds; ++j) {
    const i32 dx = cell / kSide - s.seed[j] / kSide, dy = cell % kSide - s.seed[j] % kSide;
    sum = sum + halved(__fsqrt_rn(float(dx * dx + dy * dy)) / halving);
  }
  return sum;
}

// How many threads before this one say yes, and how many do in all.
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

NDS_FN bool is_taken(const u32* taken, i32 cell) { return taken[cell / 32] >> (cell % 32) & 1; }

}  // namespace

// cells: (blocks, n + 1) x * 1001 + y, the depot first, then the seeds, then customers in the order
// in which they were accepted. depot: its cell, or -1: anywhere. fewest, most: seeds, 32 at most.
// halving: the bits of a float. taken: (blocks, 31,313) zeros, a bit for each cell.
//
// A candidate, any cell, is accepted with its pull relative to the largest at a seed. Where free
// cells with a pull are rare, that takes long: after each `patience` of candidates all
// probabilities double, so that it ends; those that are 1 by then have been taken, or nearly all.
extern "C" __global__ void __launch_bounds__(32 * kMostWarps)
    place_clustered(u64 first, u64 first_key, u64 second_key, i32 n, i32 depot, i32 fewest,
                    i32 most, i32 halving_bits, u32 patience, u32* taken, i32* cells) {
  Shared& s = *reinterpret_cast<Shared*>(shared_memory());
  const Words words(first + blockIdx.x, first_key, second_key);
  const float halving = __int_as_float(halving_bits);
  taken += i64(blockIdx.x) * ((kCells + 31) / 32);
  cells += i64(blockIdx.x) * (n + 1);
  if (threadIdx.x == 0) {
    u32 drawn = 0;
    const u32 more = u32(u64(words.at(drawn++, kOfSeeds)) * u32(most - fewest + 1) >> 32);
    const i32 anywhere = cell_of(words.at(drawn++, kOfSeeds));
    cells[0] = depot < 0 ? anywhere : depot;
    atomicOr(&taken[cells[0] / 32], 1u << cells[0] % 32);
    const i32 count = least(n, fewest + i32(more));
    for (s.seeds = 0; s.seeds < count;) {
      const i32 cell = cell_of(words.at(drawn++, kOfSeeds));
      if (is_taken(taken, cell)) continue;
      atomicOr(&taken[cell / 32], 1u << cell % 32);
      s.seed[s.seeds] = cell;
      cells[++s.seeds] = cell;
    }
    float largest = 0.0f;
    for (i32 j = 0; j < s.seeds; ++j) {
      const float here = pull(s, s.seed[j], halving);
      largest = here > largest ? here : largest;
    }
    s.scale = 1.0f / largest;
  }
  sync_block();
  i32 found = s.seeds;
  for (u32 tried = 0; found < n; tried += blockDim.x) {
    const u32 number = tried + threadIdx.x, doubled = number / patience;
    const i32 cell = cell_of(words.at(2 * number, kOfCandidates));
    const float chance = pull(s, cell, halving) * s.scale *
                         __int_as_float(i32(127 + (doubled < 120 ? doubled : 120)) << 23);
    bool open = float(words.at(2 * number + 1, kOfCandidates)) * 0x1p-32f < chance &&
                !is_taken(taken, cell);
    i32 total, place = rank(open, s.open, total);
    if (open) s.listed[place] = cell;
    sync_block();
    for (i32 j = 0; open && j < place; ++j) open = s.listed[j] != cell;  // the first of them counts
    place = found + rank(open, s.first, total);
    if (open && place < n) {
      cells[place + 1] = cell;
      atomicOr(&taken[cell / 32], 1u << cell % 32);
    }
    found += total;
    sync_block();
  }
}
