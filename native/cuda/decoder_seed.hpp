// From the heads' outputs to the glimpse: their combination, and the residual that makes rollouts differ by their seed
// vectors (PolyNet, Hottung et al. 2025).
#pragma once
#include "decoder_state.hpp"

namespace nds::inline NDS_ISA {

NDS_FN void combine_heads(const WarpState& state, const DecoderWeights& weights) {
  FragmentA heads[kRowTiles][kWidthTiles];
  unrolled<kRowTiles, kWidthTiles>([&](i32 q, i32 k) { heads[q][k] = state.activation(q, k); });
  linear<kWidthTiles, kWidthTiles>(
      weights.layer(Layers::combine), weights.bias(Biases::combine), [&](i32 q, i32 k) { return heads[q][k]; },
      [&](i32 j, const Accumulator(&sum)[kRowTiles]) {
        unrolled<kRowTiles>([&](i32 q) { state.activation(q, j) = to_fragment_a(sum[q]); });
      });
}

// Adds the residual, and divides by sqrt(width) for the scores of the pointer. 16 hidden units are computed at a time,
// and used at once.
NDS_FN void add_seed_residual(const WarpState& state, const DecoderWeights& weights,
                              const FragmentA (&seed)[kRowTiles]) {
  Accumulator out[kWidthTiles][kRowTiles];
  const Floats4* bias = weights.bias(Biases::seed_out);
  unrolled<kWidthTiles>([&](i32 j) {
    set_bias(out[j], bias[j * 4]);
    unrolled<kRowTiles>([&](i32 q) {
      const Accumulator glimpse = to_accumulator(state.activation(q, j));
      unrolled<8>([&](i32 i) { out[j][q].at[i / 4][i % 4] += glimpse.at[i / 4][i % 4]; });
    });
  });
  FragmentStream<kSeedPrefetch> stream(weights.layer(Layers::seed));
  bias = weights.bias(Biases::seed_in);
#pragma unroll 1
  for (i32 unit = 0; unit < kSeedTiles; ++unit) {
    Accumulator in[kRowTiles];
    set_bias(in, bias[unit * 4]);
    unrolled<kWidthTiles + 1>([&](i32 k) {
      stream.next(k, [&](const FragmentB& fragment) {
        unrolled<kRowTiles>([&](i32 q) {
          mma_accumulate(in[q], k < kWidthTiles ? state.activation(q, k % kWidthTiles) : seed[q], fragment);
        });
      });
    });
    FragmentA hidden[kRowTiles];
    unrolled<kRowTiles>([&](i32 q) {
      unrolled<8>([&](i32 i) {
        float& s = in[q].at[i / 4][i % 4];
        s = fmaxf(s, 0.0f);
      });
      hidden[q] = to_fragment_a(in[q]);
    });
    unrolled<kWidthTiles>([&](i32 j) {
      stream.next(kWidthTiles + 1 + j, [&](const FragmentB& fragment) {
        unrolled<kRowTiles>([&](i32 q) { mma_accumulate(out[j][q], hidden[q], fragment); });
      });
    });
#pragma unroll
    for (i32 i = 2 * kWidthTiles + 1; i < kSeedStride; ++i) stream.next(i, [](const FragmentB&) {});  // padding
    stream.advance(kSeedStride);
  }
  const float scale = fast_sqrt(1.0f / NDS_WIDTH);
  unrolled<kRowTiles, kWidthTiles>([&](i32 q, i32 k) {
    Accumulator& sum = out[k][q];
    unrolled<8>([&](i32 n) { sum.at[n / 4][n % 4] *= scale; });
    state.activation(q, k) = to_fragment_a(sum);
  });
}

}  // namespace nds::inline NDS_ISA
