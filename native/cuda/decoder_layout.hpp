// Layout of the decoder's operands in memory: decoder_tiles.cu writes them, decode.cu reads them.
#pragma once
#include "tiles.hpp"

namespace nds::inline NDS_ISA {

constexpr i32 kWidthTiles = NDS_WIDTH / 16;      // also the number of heads: a head has 16 channels
constexpr i32 kSeedTiles = NDS_SEED_WIDTH / 16;  // of the hidden layer of the seed residual
// Tiles for 16 hidden units of the seed residual, those into the units before those out of them, padded to a multiple
// of the prefetch depth.
constexpr i32 kSeedPrefetch = 6;
constexpr i32 kSeedStride = (2 * kWidthTiles + kSeedPrefetch) / kSeedPrefetch * kSeedPrefetch;

// Where layers begin, in the order of their use: B fragments, and biases in tiles of 16.
struct Layers {
  static constexpr i32 gru = 0, query = gru + 3 * kWidthTiles * kWidthTiles,
                       combine = query + kWidthTiles * kWidthTiles, seed = combine + kWidthTiles * kWidthTiles,
                       end = seed + kSeedTiles * kSeedStride;
};
struct Biases {
  static constexpr i32 gru = 0, query = 3 * kWidthTiles, combine = query + kWidthTiles, seed_in = combine + kWidthTiles,
                       seed_out = seed_in + kSeedTiles, end = seed_out + kWidthTiles;
};

struct __align__(16) CustomerInfo {
  float x, y, route, unused;  // route: -1 if unserved
};

}  // namespace nds::inline NDS_ISA
