// The decoder's M selections for many rollouts in one kernel. A warp holds one or two tiles of 16 rollouts of one
// instance, the rows of its matrix products. Weights, keys, values and pointers lie in memory as B fragments in the
// order of their use (decoder_tiles.cu), so that a lane prefetches its words with one load each. The warps of a block
// stay close to each other in that order and find in the cache what another warp has loaded. policy/fused_decoder.py
// launches the kernel; `rollout.sample` does the same in torch operations.
#include "decoder_attention.hpp"
#include "decoder_gru.hpp"
#include "decoder_pointer.hpp"
#include "decoder_seed.hpp"

using namespace nds;

// Grid: `parts` blocks per instance; the first `share` warps of a block hold rollouts, its other warps help with
// attention. beta, gamma: null if the network has no distance term.
extern "C" __global__ void __launch_bounds__(NDS_THREADS, 1)
    decode(const FragmentB* key_values, const FragmentB* pointers, const CustomerInfo* customer_info,
           const FragmentB* fragments, const float* biases, const bf16* projected, const bf16* first_gates,
           const float* beta, const float* gamma, const float* matrix, const float* seeds, const float* uniforms,
           i32 customers, i32 rollouts, i32 removals, i32 parts, i32 share, i64* removed, float* log_probability) {
  const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const i32 b = i32(blockIdx.x) / parts;
  constexpr i32 kRollouts = 16 * kRowTiles;
  const i32 before = i32(blockIdx.x) % parts * share * kRollouts, first = before + warp * kRollouts;
  const i32 busy = least(share, (rollouts - before + kRollouts - 1) / kRollouts);  // warps
  const i32 chunks = (customers + kChunk - 1) / kChunk, groups = chunks * (kChunk / 16);
  auto state_of = [&](i32 number) {
    char* from = shared_memory() + number * kRowTiles * (512 * WarpState::kFragments + 128 * chunks);
    u32* masks = reinterpret_cast<u32*>(from + kRowTiles * 512 * WarpState::kFragments);
    return WarpState{reinterpret_cast<FragmentA*>(from) + lane, masks, chunks, lane};
  };
  const WarpState state = state_of(warp);

  // Rows beyond the last rollout repeat it; their results are not stored.
  i32 rollout[kRowTiles][2], last[kRowTiles][2];
  float log2_probability[kRowTiles][2];
  FragmentA seed[kRowTiles];
  for (i32 q = 0; q < kRowTiles; ++q) {
    for (i32 k = 0; k < kWidthTiles && warp < busy; ++k) state.hidden(q, k) = FragmentA{};
    for (i32 chunk = 0; chunk < chunks && warp < busy; ++chunk) {
      u32 mask = 0;  // padding beyond the last customer is masked
      for (i32 i = 0; i < 32; ++i) {
        const i32 row = g + i / 16 * 8, c = chunk * kChunk + i % 16 / 2 * 8 + 2 * t + i % 2;
        if (c >= customers) mask |= WarpState::mask_bit(row, c);
      }
      state.masks[(q * chunks + chunk) * 32 + lane] = mask;
    }
    for (i32 r = 0; r < 2; ++r) {
      rollout[q][r] = b * rollouts + least(first + 16 * q + g + 8 * r, rollouts - 1);
      last[q][r] = -1, log2_probability[q][r] = 0.0f;
    }
    for (i32 i = 0; i < 4; ++i) {
      const i32 bit = 2 * t + i / 2 * 8;
      const float* bits = seeds + i64(rollout[q][i % 2]) * NDS_SEED_BITS;
      seed[q].word[i] =
          to_bf16x2(bit < NDS_SEED_BITS ? bits[bit] : 0.0f, bit + 1 < NDS_SEED_BITS ? bits[bit + 1] : 0.0f);
    }
  }
  __syncwarp();
  const float scaled_beta = NDS_DISTANCE_TERM ? *beta * fast_sqrt(float(customers)) * kLog2E : 0.0f;
  const float scaled_gamma = NDS_DISTANCE_TERM ? *gamma * kLog2E : 0.0f;
  const FragmentB* heads = key_values + i64(b) * kWidthTiles * groups * 64 + lane;
  const FragmentB* pointers_here = pointers + i64(b) * groups * kWidthTiles * 32 + lane;
  const CustomerInfo* info_here = customer_info + i64(b) * groups * 16;
  const DecoderWeights weights{fragments + lane, reinterpret_cast<const Floats4*>(biases) + t};

  for (i32 m = 0; m < removals; ++m) {
    sync_block();
    if (warp < busy) {
      const bf16* gates[kRowTiles][2];
      unrolled<kRowTiles, 2>([&](i32 q, i32 r) {
        const i64 row = i64(b) * customers + last[q][r];
        gates[q][r] = (m == 0 ? first_gates : projected + row * (5 * NDS_WIDTH)) + 2 * t;
      });
      gru_step(state, weights, gates);
      project_queries(state, weights);
    }
    // Attention of all busy warps is spread evenly over all warps.
    const i32 units = busy * kWidthTiles, warps = i32(blockDim.x) / 32;
    sync_block();
#pragma unroll 1
    for (i32 unit = warp; unit < units; unit += warps) {
      const i32 head = unit / busy;
      attend(state_of(unit % busy), heads + i64(head) * groups * 64, head);
    }
    sync_block();
    if (warp >= busy) continue;
    combine_heads(state, weights);
    add_seed_residual(state, weights, seed);

    u32 keys[kRowTiles][2];
    LastCustomer last_customer[kRowTiles][2];
    unrolled<kRowTiles, 2>([&](i32 q, i32 r) {
      const i32 c = last[q][r];
      const float uniform = uniforms[i64(rollout[q][r]) * removals + m];
      keys[q][r] = hash_bits(u32(__float_as_int(uniform)) + 0x9e3779b9u);
      const CustomerInfo info = c < 0 ? CustomerInfo{0.0f, 0.0f, -1.0f, 0.0f} : info_here[c];
      last_customer[q][r] = LastCustomer{c, info.x, info.y, info.route < 0.0f ? kNoRoute : info.route};
    });
    const Pointer pointer{state,       pointers_here, info_here, matrix, customers, m == 0 ? 0.0f : scaled_beta,
                          scaled_gamma};
    pointer.select(last_customer, keys, last, log2_probability);
    unrolled<kRowTiles, 2>([&](i32 q, i32 r) {
      const i32 row = g + 8 * r;
      // Logits that are NaN select an arbitrary customer, but an engine must not receive one twice.
      i32& c = last[q][r];
      while (state.mask_word(q, row, c) & WarpState::mask_bit(row, c)) c = c + 1 < customers ? c + 1 : 0;
    });
    __syncwarp();  // all lanes have read the masks
    unrolled<kRowTiles, 2>([&](i32 q, i32 r) {
      const i32 row = g + 8 * r, c = last[q][r];
      if (t == 0) state.mask_word(q, row, c) |= WarpState::mask_bit(row, c);
      __syncwarp();  // the bits of rows g and g + 8 share a word
      if (t == 0 && first + 16 * q + row < rollouts) removed[i64(rollout[q][r]) * removals + m] = c + 1;
    });
  }
  constexpr float kLn2 = 0.69314718f;
  unrolled<kRowTiles, 2>([&](i32 q, i32 r) {
    if (warp < busy && t == 0 && first + 16 * q + g + 8 * r < rollouts)
      log_probability[rollout[q][r]] = log2_probability[q][r] * kLn2;
  });
}
