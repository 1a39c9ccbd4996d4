// Random numbers of rollouts, the same as `by_torch` of policy/random_numbers.py.
#include "counter_random.hpp"

using namespace nds;

constexpr u32 kSeeds = 0x3c6ef372u, kUniforms = 0x1bd11bdau;
constexpr i32 kRounds = 16;

NDS_FN u32 seed_of(const Words& words, i32 rollout, i32 rollouts, i32 bits) {
  if (i64(rollouts) > 1ll << bits) return words.at(u32(rollout), kSeeds) >> (32 - bits);
  const u32 mask = (1u << bits) - 1;
  u32 seed = u32(rollout);
  for (i32 r = 0; r < kRounds; ++r) {  // the swap-or-not shuffle
    const u32 key = words.at(u32(r), kSeeds), partner = seed ^ (key & mask);
    if (mixed((seed > partner ? seed : partner) ^ key) >> 31) seed = partner;
  }
  return seed;
}

// A thread per uniform number; the first threads also compute a seed vector each.
// seeds: (count, rollouts, bits) of 0 and 1; uniforms: (count, rollouts, removals) in [0, 1).
extern "C" __global__ void rollout_random(u64 first, u64 first_key, u64 second_key, i32 count, i32 rollouts,
                                          i32 removals, i32 bits, float* seeds, float* uniforms) {
  const i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  const i32 each = rollouts * removals;
  if (i < i64(count) * each) {
    const Words words(first + u64(i / each), first_key, second_key);
    uniforms[i] = float(words.at(u32(i % each), kUniforms) >> 8) * 0x1p-24f;
  }
  if (i < i64(count) * rollouts) {
    const Words words(first + u64(i / rollouts), first_key, second_key);
    const u32 seed = seed_of(words, i32(i % rollouts), rollouts, bits);
    for (i32 bit = 0; bit < bits; ++bit) seeds[i * bits + bit] = float(seed >> bit & 1);
  }
}
