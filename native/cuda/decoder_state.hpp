// What all stages of the decoder use: a warp's state in shared memory, and linear layers whose weights are prefetched.
// q counts the row tiles of a warp, k and j tiles of channels.
#pragma once
#include "decoder_layout.hpp"

namespace nds::inline NDS_ISA {

constexpr i32 kRowTiles = NDS_ROW_TILES;  // tiles of 16 rollouts in a warp
constexpr i32 kChunk = 64;                // customers that attention processes at once
constexpr float kLog2E = 1.44269504f;
constexpr float kMasked = -3e38f;  // the logit of a customer that the rollout has selected

// Weights and biases of all layers, from the lane's first word on.
struct DecoderWeights {
  const FragmentB* fragments;
  const Floats4* biases;

  NDS_FN const FragmentB* layer(i32 tile) const { return fragments + tile * 32; }
  NDS_FN const Floats4* bias(i32 tile) const { return biases + tile * 4; }
};

// Consecutive fragments, prefetched `depth` ahead. It reads up to `depth` fragments beyond the last one that is used;
// the buffer must have room for that.
template <i32 depth> struct FragmentStream {
  const FragmentB* at;
  FragmentB fetched[depth];

  NDS_FN explicit FragmentStream(const FragmentB* from) : at(from) {
    unrolled<depth>([&](i32 i) { fetched[i] = load_read_only(at + i * 32); });
  }
  // Calls use(fragment) with the i-th from the current position, then prefetches into its registers.
  NDS_FN void next(i32 i, auto use) {
    use(fetched[i % depth]);
    fetched[i % depth] = load_read_only(at + (i + depth) * 32);
  }
  NDS_FN void advance(i32 count) { at += count * 32; }  // count: a multiple of `depth`
};
// The prefetch depth of a loop over `count` fragments: the largest divisor up to 9.
NDS_FN constexpr i32 prefetch_depth(i32 count) {
  i32 most = 1;
  for (i32 i = 2; i <= 9; ++i) most = count % i == 0 ? i : most;
  return most;
}

// What a warp keeps in shared memory, as seen by one lane.
struct WarpState {
  FragmentA* fragments;  // of each row tile: hidden states, then activations
  u32* masks;            // of each row tile and chunk: a word for every lane
  i32 chunks, lane;

  static constexpr i32 kFragments = 2 * kWidthTiles;
  NDS_FN FragmentA& hidden(i32 q, i32 k) const { return fragments[(q * kFragments + k) * 32]; }
  // Queries, then the output of attention, then the glimpse.
  NDS_FN FragmentA& activation(i32 q, i32 k) const { return fragments[(q * kFragments + kWidthTiles + k) * 32]; }
  // A bit for every customer of the lane in a chunk that is selected, for two rows. Shifted up by i, the bits of
  // customers 8 i + 2 t and 8 i + 2 t + 1 are the signs of the lower two bytes for row g, and of the upper two for row
  // g + 8, where g = lane / 4 and t = lane % 4.
  NDS_FN u32 mask(i32 q, i32 chunk) const { return masks[(q * chunks + chunk) * 32 + lane]; }
  NDS_FN u32& mask_word(i32 q, i32 row, i32 c) const {
    return masks[(q * chunks + c / 64) * 32 + row % 8 * 4 + c / 2 % 4];
  }
  static NDS_FN u32 mask_bit(i32 row, i32 c) { return 1u << (row / 8 * 16 + c % 2 * 8 + 7 - c / 8 % 8); }
};

// Sets accumulators to a bias.
NDS_FN void set_bias(Accumulator (&sum)[kRowTiles], Floats4 bias) {
  unrolled<kRowTiles, 8>([&](i32 q, i32 i) { sum[q].at[i / 4][i % 4] = bias.value[i / 4 * 2 + i % 2]; });
}

// A linear layer: `input(q, k)` returns a fragment, `output(j, sums)` receives 16 channels of all row tiles.
template <i32 inputs, i32 outputs>
NDS_FN void linear(const FragmentB* weight, const Floats4* bias, auto input, auto output) {
  FragmentStream<prefetch_depth(inputs)> stream(weight);
  Floats4 next = *bias;
#pragma unroll 1
  for (i32 j = 0; j < outputs; ++j) {
    Accumulator sum[kRowTiles];
    set_bias(sum, next);
    next = bias[(j + 1) * 4];
    unrolled<inputs>([&](i32 k) {
      stream.next(k, [&](const FragmentB& fragment) {
        unrolled<kRowTiles>([&](i32 q) { mma_accumulate(sum[q], input(q, k), fragment); });
      });
    });
    stream.advance(inputs);
    output(j, sum);
  }
}

}  // namespace nds::inline NDS_ISA
