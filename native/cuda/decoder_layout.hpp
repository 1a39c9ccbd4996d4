// What the decoder's kernels agree on: decoder_tiles.cu writes it, decode.cu reads it.
#pragma once
#include "tiles.hpp"

namespace nds {
inline namespace NDS_ISA {

constexpr i32 kWidthTiles = NDS_WIDTH / 16;      // also heads: a head is 16 to_float
constexpr i32 kSeedTiles = NDS_SEED_WIDTH / 16;  // of the layer that the seed goes into
// Tiles in and out of 16 units of it, read some ahead; the last of them are not used.
constexpr i32 kSeedAhead = 6, kSeedTurn = (2 * kWidthTiles + kSeedAhead) / kSeedAhead * kSeedAhead;

// Layers in the order of their use: right sides, and biases as four numbers per lane of a row.
struct Layers {
  static constexpr i32 gru = 0, query = gru + 3 * kWidthTiles * kWidthTiles,
                       combine = query + kWidthTiles * kWidthTiles,
                       seed = combine + kWidthTiles * kWidthTiles,
                       end = seed + kSeedTiles * kSeedTurn;
};
struct Biases {
  static constexpr i32 gru = 0, query = 3 * kWidthTiles, combine = query + kWidthTiles,
                       seed_in = combine + kWidthTiles, seed_out = seed_in + kSeedTiles,
                       end = seed_out + kWidthTiles;
};

// A customer: where it is, and its route, -1 if none.
struct __align__(16) CustomerInfo {
  float x, y, route, unused;
};

}  // namespace NDS_ISA
}  // namespace nds
