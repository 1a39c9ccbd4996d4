// What the decoder's kernels agree on: pack.cu writes it, decode.cu reads it.
#pragma once
#include "tiles.hpp"

namespace nds {
inline namespace NDS_ISA {

constexpr i32 kTiles = NDS_WIDTH / 16;           // also heads: a head is 16 wide
constexpr i32 kSeedTiles = NDS_SEED_WIDTH / 16;  // of the layer that the seed goes into
// Tiles in and out of 16 units of it, read some ahead; the last of them are not used.
constexpr i32 kSeedAhead = 6, kSeedTurn = (2 * kTiles + kSeedAhead) / kSeedAhead * kSeedAhead;

// Layers in the order of their use: right sides, and biases as four numbers per lane of a row.
struct Layers {
  static constexpr i32 recall = 0, query = recall + 3 * kTiles * kTiles,
                       combine = query + kTiles * kTiles, seed = combine + kTiles * kTiles,
                       end = seed + kSeedTiles * kSeedTurn;
};
struct Biases {
  static constexpr i32 recall = 0, query = 3 * kTiles, combine = query + kTiles,
                       seed_in = combine + kTiles, seed_out = seed_in + kSeedTiles,
                       end = seed_out + kTiles;
};

// A customer: where it is, and its route, -1 if none.
struct __align__(16) Place {
  float x, y, route, unused;
};

}  // namespace NDS_ISA
}  // namespace nds
