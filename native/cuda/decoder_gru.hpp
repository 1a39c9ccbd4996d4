// The GRU step of the decoder (`Network.gru_step`).
#pragma once
#include "decoder_state.hpp"

namespace nds::inline NDS_ISA {

NDS_FN float sigmoid(float x) { return 0.5f + 0.5f * fast_tanh(0.5f * x); }

// Updates the hidden states. gates: of each row, W x + b of the customer selected last.
NDS_FN void gru_step(const WarpState& state, const DecoderWeights& weights, const bf16* const (&gates)[kRowTiles][2]) {
  const Floats4* bias = weights.bias(Biases::gru);
  FragmentA hidden[kRowTiles][kWidthTiles];
  unrolled<kRowTiles, kWidthTiles>([&](i32 q, i32 k) { hidden[q][k] = state.hidden(q, k); });
  FragmentStream<prefetch_depth(kWidthTiles)> stream(weights.layer(Layers::gru));
#pragma unroll 1
  for (i32 j = 0; j < kWidthTiles; ++j) {
    u32 input[kRowTiles][4][3];  // [row tile][as in FragmentA][reset, update, new]
    Accumulator gate[3][kRowTiles];
    unrolled<3>([&](i32 i) {
      set_bias(gate[i], bias[(3 * j + i) * 4]);
      unrolled<kRowTiles, 4>([&](i32 q, i32 n) {
        const bf16* from = gates[q][n % 2] + i * NDS_WIDTH + 16 * j + n / 2 * 8;
        input[q][n][i] = *reinterpret_cast<const u32*>(from);
      });
    });
    unrolled<3, kWidthTiles>([&](i32 i, i32 k) {
      stream.next(i * kWidthTiles + k, [&](const FragmentB& fragment) {
        unrolled<kRowTiles>([&](i32 q) { mma_accumulate(gate[i][q], hidden[q][k], fragment); });
      });
    });
    stream.advance(3 * kWidthTiles);
    unrolled<kRowTiles>([&](i32 q) {
      Accumulator h = to_accumulator(state.hidden(q, j));
      unrolled<8>([&](i32 i) {
        const u32(&from)[3] = input[q][i / 4 * 2 + i % 4 / 2];
        auto of = [&](i32 n) { return (i % 2 ? high_float(from[n]) : low_float(from[n])); };
        auto at = [&](i32 n) { return gate[n][q].at[i / 4][i % 4]; };
        float& value = h.at[i / 4][i % 4];
        const float fresh = fast_tanh(of(2) + sigmoid(of(0) + at(0)) * at(2));
        value = fresh + sigmoid(of(1) + at(1)) * (value - fresh);
      });
      state.activation(q, j) = to_fragment_a(h);
    });
  }
  unrolled<kRowTiles, kWidthTiles>([&](i32 q, i32 k) { state.hidden(q, k) = state.activation(q, k); });
}

}  // namespace nds::inline NDS_ISA
