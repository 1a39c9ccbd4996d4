// From the heads' outputs to the glimpse: their combination, and the residual that makes rollouts
// differ by their seed vectors (PolyNet, Hottung et al. 2025).
#pragma once
#include "decoder_state.hpp"

namespace nds::inline NDS_ISA {

NDS_FN void combine_heads(const WarpState& state, const DecoderWeights& weights) {
  FragmentA heads[kRowTiles][kWidthTiles];
#pragma unroll
  for (i32 i = 0; i < kRowTiles * kWidthTiles; ++i)
    heads[i / kWidthTiles][i % kWidthTiles] = state.activation(i / kWidthTiles, i % kWidthTiles);
  linear<kWidthTiles, kWidthTiles>(
      weights.layer(Layers::combine), weights.bias(Biases::combine),
      [&](i32 q, i32 k) { return heads[q][k]; },
      [&](i32 j, const Accumulator(&sum)[kRowTiles]) {
#pragma unroll
        for (i32 q = 0; q < kRowTiles; ++q) state.activation(q, j) = to_fragment_a(sum[q]);
      });
}

// Adds the residual, and divides by sqrt(width) for the scores of the pointer. 16 hidden units are
// computed at a time, and used at once.
NDS_FN void add_seed_residual(const WarpState& state, const DecoderWeights& weights,
                              const FragmentA (&seed)[kRowTiles]) {
  Accumulator out[kWidthTiles][kRowTiles];
  const Floats4* bias = weights.bias(Biases::seed_out);
#pragma unroll
  for (i32 j = 0; j < kWidthTiles; ++j) {
    set_bias(out[j], bias[j * 4]);
#pragma unroll
    for (i32 q = 0; q < kRowTiles; ++q) {
      const Accumulator glimpse = to_accumulator(state.activation(q, j));
#pragma unroll
      for (i32 i = 0; i < 8; ++i) out[j][q].at[i / 4][i % 4] += glimpse.at[i / 4][i % 4];
    }
  }
  FragmentStream<kSeedPrefetch> stream(weights.layer(Layers::seed));
  bias = weights.bias(Biases::seed_in);
#pragma unroll 1
  for (i32 unit = 0; unit < kSeedTiles; ++unit) {
    Accumulator in[kRowTiles];
    set_bias(in, bias[unit * 4]);
#pragma unroll
    for (i32 k = 0; k <= kWidthTiles; ++k) {
      stream.next(k, [&](const FragmentB& fragment) {
#pragma unroll
        for (i32 q = 0; q < kRowTiles; ++q) {
          mma_accumulate(in[q], k < kWidthTiles ? state.activation(q, k % kWidthTiles) : seed[q],
                         fragment);
        }
      });
    }
    FragmentA hidden[kRowTiles];
#pragma unroll
    for (i32 q = 0; q < kRowTiles; ++q) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i) {
        float& s = in[q].at[i / 4][i % 4];
        s = fmaxf(s, 0.0f);
      }
      hidden[q] = to_fragment_a(in[q]);
    }
#pragma unroll
    for (i32 j = 0; j < kWidthTiles; ++j) {
      stream.next(kWidthTiles + 1 + j, [&](const FragmentB& fragment) {
#pragma unroll
        for (i32 q = 0; q < kRowTiles; ++q) mma_accumulate(out[j][q], hidden[q], fragment);
      });
    }
#pragma unroll
    for (i32 i = 2 * kWidthTiles + 1; i < kSeedStride; ++i)
      stream.next(i, [](const FragmentB&) {});  // padding
    stream.advance(kSeedStride);
  }
  const float scale = fast_sqrt(1.0f / NDS_WIDTH);
#pragma unroll
  for (i32 i = 0; i < kRowTiles * kWidthTiles; ++i) {
    Accumulator& sum = out[i % kWidthTiles][i / kWidthTiles];
#pragma unroll
    for (i32 n = 0; n < 8; ++n) sum.at[n / 4][n % 4] *= scale;
    state.activation(i / kWidthTiles, i % kWidthTiles) = to_fragment_a(sum);
  }
}

}  // namespace nds::inline NDS_ISA
