// Counter-based randomness: a draw is a function of (seed, iteration, chain, step, order) and its number, so that a
// trajectory does not depend on threads, slices or the device.
#pragma once
#include "lanes.hpp"

namespace nds::inline NDS_ISA {

// The finalizer of SplitMix64 (Steele, Lea & Flood 2014, variant 13 of Stafford).
NDS_FN u64 mix(u64 z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

NDS_FN u64 key_of(u64 key, u64 part) { return mix(key + 0x9e3779b97f4a7c15ull * (part + 1)); }

NDS_FN i32 in_range(u32 bits, i32 n) { return i32((u64(bits) * u32(n)) >> 32); }
NDS_FN float in_unit(u32 bits) { return float(bits >> 8) * (1.0f / 16777216.0f); }  // [0, 1)

struct Random {
  u64 key;
  u64 counter = 0;

  NDS_FN u32 bits() { return u32(mix(key + 0x9e3779b97f4a7c15ull * ++counter) >> 32); }
  NDS_FN i32 below(i32 n) { return in_range(bits(), n); }
  NDS_FN float unit() { return in_unit(bits()); }
};

// The same numbers, drawn by all lanes of a team at once, for code in which they draw together.
template <class L> class TeamRandom {
 public:
  u64 counter;

  NDS_FN TeamRandom(const Random& random, const L& lanes) : counter(random.counter), key_(random.key), lanes_(lanes) {}
  NDS_FN u32 bits() {
    if (left_ == 0) mine_ = i32(Random{key_, counter + u64(lanes_.lane)}.bits()), left_ = L::W;
    ++counter;
    return u32(lanes_.from(mine_, L::W - left_--));
  }
  NDS_FN i32 below(i32 n) { return in_range(bits(), n); }
  NDS_FN float unit() { return in_unit(bits()); }

 private:
  u64 key_;
  L lanes_;
  i32 mine_ = 0, left_ = 0;  // of the numbers drawn: the lane's, and how many are not used yet
};

// Whether a blink skips a position: a hash of the position, so that positions can be tried in any order.
struct Blinks {
  u32 key, threshold;

  NDS_FN bool at(i32 turn, i32 route, i32 place) const {
    if (threshold == 0) return false;
    u32 h = key ^ (u32(turn) * 0x9e3779b1u) ^ (u32(route) * 0x85ebca77u) ^ (u32(place) * 0xc2b2ae3du);
    h = (h ^ (h >> 16)) * 0x7feb352du;
    h = (h ^ (h >> 15)) * 0x846ca68bu;
    return (h ^ (h >> 16)) < threshold;
  }
};

// -ln(u) for u = (k + 1) / 2^24, k = 0 … 2^24 - 1: not the one of a library, so that all devices agree. u = 2^e f with
// f in [1, 2) and ln f = 2 artanh z, z = (f - 1) / (f + 1) <= 1/3: the series to z^15 is good to 1e-9.
NDS_FN double minus_log(u32 k) {
  u32 value = k + 1;
  const i32 exponent = last_bit(value);
  double f = double(value) / double(1u << exponent);
  double z = (f - 1.0) / (f + 1.0), w = z * z, sum = 0.0;
  for (i32 term = 15; term >= 1; term -= 2) sum = sum * w + 1.0 / term;
  return double(24 - exponent) * 0.6931471805599453 - 2.0 * z * sum;
}

// By how much a step may be worse at this temperature: -T ln(u).
NDS_FN double margin_of(double temperature, Random& random) { return temperature * minus_log(random.bits() >> 8); }

}  // namespace nds::inline NDS_ISA
