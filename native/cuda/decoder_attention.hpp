// Attention of the decoder over the customers that a rollout has not selected.
#pragma once
#include "decoder_state.hpp"

namespace nds::inline NDS_ISA {

constexpr i32 kPolynomialOf8 = 2;  // so many of 8 exponentials go to the FMA units

// Computes the queries of all heads from the hidden states.
NDS_FN void project_queries(const WarpState& state, const DecoderWeights& weights) {
  linear<kWidthTiles, kWidthTiles>(
      weights.layer(Layers::query), weights.bias(Biases::query), [&](i32 q, i32 k) { return state.hidden(q, k); },
      [&](i32 j, Accumulator(&sum)[kRowTiles]) {
        unrolled<kRowTiles>([&](i32 q) {
          for (i32 i = 0; i < 8; ++i) sum[q].at[i / 4][i % 4] *= 0.25f * kLog2E;  // 1 / sqrt(16)
          state.activation(q, j) = to_fragment_a(sum[q]);
        });
      });
}

// Keys and values of kChunk customers.
struct KeyValueChunk {
  FragmentB keys[4], values[4];

  KeyValueChunk() = default;
  NDS_FN explicit KeyValueChunk(const FragmentB* from) {
    unrolled<4>(
        [&](i32 i) { keys[i] = load_read_only(from + 64 * i), values[i] = load_read_only(from + 64 * i + 32); });
  }
};

// One head for all row tiles. key_values: fragments of keys and of values, alternating.
struct AttentionHead {
  FragmentA query[kRowTiles];
  Accumulator output[kRowTiles];
  float denominator[kRowTiles][4];
  Floats4 shift[kRowTiles];  // added to the scores of a row if `shifted`

  template <bool shifted> NDS_FN void attend(const WarpState& state, const FragmentB* key_values) {
    unrolled<kRowTiles>([&](i32 q) {
      output[q] = Accumulator{};
      for (float& value : denominator[q]) value = 0.0f;
    });
    KeyValueChunk here(key_values), next;
#pragma unroll 1
    for (i32 chunk = 0; chunk < state.chunks; chunk += 2) {
      next = KeyValueChunk(key_values + (chunk + 1) * 256);
      attend_chunk<shifted>(here, state, chunk);
      if (chunk + 1 == state.chunks) break;
      here = KeyValueChunk(key_values + (chunk + 2) * 256);
      attend_chunk<shifted>(next, state, chunk + 1);
    }
  }
  template <bool shifted> NDS_FN void attend_chunk(const KeyValueChunk& some, const WarpState& state, i32 chunk) {
    u32 mask[kRowTiles];
    unrolled<kRowTiles>([&](i32 q) { mask[q] = state.mask(q, chunk); });
    unrolled<4>([&](i32 i) {
      Accumulator score[kRowTiles];
      unrolled<kRowTiles>([&](i32 q) { score[q] = mma(query[q], some.keys[i], shifted ? shift[q] : Floats4{}); });
      FragmentA weight[kRowTiles];
      unrolled<kRowTiles>([&](i32 q) {
        unrolled<8>([&](i32 n) {
          float& s = score[q].at[n / 4][n % 4];
          s = mixed_exp2<kPolynomialOf8>(s, n);
        });
        weight[q] = to_fragment_a(score[q]);
        unrolled<4>([&](i32 n) { weight[q].word[n] &= ~expand_signs(mask[q] << (2 * i + n / 2), n % 2); });
      });
      unrolled<kRowTiles>([&](i32 q) {
        mma_accumulate(output[q], weight[q], some.values[i]);
        mma_accumulate(denominator[q], weight[q].word, kOnes, kOnes);
      });
    });
  }
  // Finds the shifts that make the highest score of each row 0.
  NDS_FN void find_shift(const WarpState& state, const FragmentB* key_values) {
    unrolled<kRowTiles>([&](i32 q) {
      float top[2] = {kMasked, kMasked};
#pragma unroll 1
      for (i32 tile = 0; tile < 4 * state.chunks; ++tile) {
        const Accumulator score = mma(query[q], load_read_only(key_values + tile * 64));
        const u32 mask = state.mask(q, tile / 4) << tile % 4 * 2;
        unrolled<8>([&](i32 n) {
          const u32 signs = expand_signs(mask << n / 4, n % 4 / 2);
          const bool is_masked = signs >> n % 2 * 16 & 1u;
          if (!is_masked) top[n % 4 / 2] = fmaxf(top[n % 4 / 2], score.at[n / 4][n % 4]);
        });
      }
      for (float& highest : top) highest = -max_over_row(highest);
      shift[q] = Floats4{{top[0], top[0], top[1], top[1]}};
    });
  }
};

// Replaces the queries of one head by its output. Exponentials are computed without subtracting the maximum; where
// their sum leaves the range of float32, the maximum is found and all is repeated.
NDS_FN void attend(const WarpState& state, const FragmentB* key_values, i32 number) {
  AttentionHead head;
  unrolled<kRowTiles>([&](i32 q) { head.query[q] = state.activation(q, number); });
  head.attend<false>(state, key_values);
  if (__ballot_sync(~0u, !in_range(head.denominator)) != 0) {
    head.find_shift(state, key_values);
    head.attend<true>(state, key_values);
  }
  unrolled<kRowTiles>([&](i32 q) {
    unrolled<2>([&](i32 r) {
      const float factor = fast_reciprocal(head.denominator[q][2 * r]);
      for (i32 i = 0; i < 4; ++i) head.output[q].at[i / 2][2 * r + i % 2] *= factor;
    });
    state.activation(q, number) = to_fragment_a(head.output[q]);
  });
}

}  // namespace nds::inline NDS_ISA
