// Counter-based random words: the same bits as `Words` of counter_random.py.
#pragma once
#include "warp.hpp"

namespace nds::inline NDS_ISA {

NDS_FN u32 mixed(u32 x) {
  x = (x ^ x >> 16) * 0x21f0aaadu;
  x = (x ^ x >> 15) * 0x735a2d97u;
  return x ^ x >> 15;
}

// The random words of an instance, by kind and position.
struct Words {
  u32 one, two;

  NDS_FN Words(u32 first, u32 second) : one(first), two(second) {}
  NDS_FN Words(u64 number, u64 first_key, u64 second_key) : one(of(number, first_key)), two(of(number, second_key)) {}
  static NDS_FN u32 of(u64 number, u64 key) {
    return mixed(mixed(u32(number) ^ u32(key)) ^ u32(number >> 32) ^ u32(key >> 32));
  }
  NDS_FN u32 at(u32 position, u32 kind) const { return mixed(mixed(position + one) ^ two ^ kind); }
};

}  // namespace nds::inline NDS_ISA
