// What the decoder reads, in the order in which it reads it: weights, and what the encoder says of
// customers.
#include "decoder_layout.hpp"

using namespace nds;

// FragmentB sides made of the weights of layers (out, in), biases in the order of lanes, what is
// fed into the GRU before the first selection, and the layer that makes gates, keys and values of
// customers: (5 D, D) weights, then biases. A warp per tile; as many warps as there are tiles.
extern "C" __global__ void tile_weights(const float* recall, const float* query,
                                        const float* combine, const float* seed_in,
                                        const float* seed_out, const float* recall_bias,
                                        const float* combine_bias, const float* seed_in_bias,
                                        const float* seed_out_bias, const float* input,
                                        const float* input_bias, const float* remember,
                                        const float* start, FragmentB* weights, float* biases,
                                        bf16* first_gates, bf16* making) {
  constexpr i32 kInput = 3 * NDS_WIDTH * NDS_WIDTH, kRemember = 2 * NDS_WIDTH * NDS_WIDTH;
  const i32 lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const i32 thread = i32(blockIdx.x * blockDim.x + threadIdx.x), tile = thread / 32;
  for (i32 i = thread; i < kInput + kRemember; i += i32(gridDim.x * blockDim.x))
    making[i] = to_bf16(i < kInput ? input[i] : remember[i - kInput]);
  for (i32 i = thread; i < 5 * NDS_WIDTH; i += i32(gridDim.x * blockDim.x))
    making[kInput + kRemember + i] = to_bf16(i < 3 * NDS_WIDTH ? input_bias[i] : 0.0f);
  if (tile < Layers::end) {
    // Outputs from 16 j on, inputs from 16 k on.
    const float* from;
    i32 width = NDS_WIDTH, j, k;
    if (tile < Layers::query) {
      from = recall, k = tile % kWidthTiles;
      j = tile / kWidthTiles % 3 * kWidthTiles + tile / kWidthTiles / 3;
    } else if (tile < Layers::seed) {
      const bool asks = tile < Layers::combine;
      const i32 at = tile - (asks ? Layers::query : Layers::combine);
      from = asks ? query : combine, j = at / kWidthTiles, k = at % kWidthTiles;
    } else {
      const i32 unit = (tile - Layers::seed) / kSeedTurn, at = (tile - Layers::seed) % kSeedTurn;
      if (at <= kWidthTiles)
        from = seed_in, width = NDS_WIDTH + NDS_SEED_BITS, j = unit, k = at;
      else  // those not used are whatever comes again
        from = seed_out, width = NDS_SEED_WIDTH, j = (at - kWidthTiles - 1) % kWidthTiles, k = unit;
    }
    FragmentB right;
    for (i32 i = 0; i < 4; ++i) {
      const i32 row = 16 * j + g + i / 2 * 8, column = 16 * k + 2 * t + i % 2 * 8;
      auto number = [&](i32 c) { return c < width ? from[i64(row) * width + c] : 0.0f; };
      right.word[i] = to_bf16x2(number(column), number(column + 1));
    }
    weights[tile * 32 + lane] = right;
  }
  if (tile < Biases::end && lane < 16) {
    const i32 channel = lane / 4 * 2 + lane % 2 + lane % 4 / 2 * 8;
    float value = 0.0f;
    if (tile < Biases::query)
      value = recall_bias[(tile % 3 * kWidthTiles + tile / 3) * 16 + channel];
    else if (tile >= Biases::seed_out)
      value = seed_out_bias[(tile - Biases::seed_out) * 16 + channel];
    else if (tile >= Biases::seed_in)
      value = seed_in_bias[(tile - Biases::seed_in) * 16 + channel];
    else if (tile >= Biases::combine)
      value = combine_bias[(tile - Biases::combine) * 16 + channel];
    biases[tile * 16 + lane] = value;
  }
  for (i32 out = tile; out < 3 * NDS_WIDTH; out += Layers::end) {
    float sum = 0.0f;
    for (i32 i = lane; i < NDS_WIDTH; i += 32)
      sum += to_float(to_bf16(start[i])) * to_float(to_bf16(input[out * NDS_WIDTH + i]));
    for (i32 bit = 16; bit > 0; bit /= 2) sum += __shfl_xor_sync(~0u, sum, bit);
    if (lane == 0) first_gates[out] = to_bf16(sum + input_bias[out]);
  }
}

// FragmentB sides made of what the encoder says of customers, and where these are. embeddings: (B,
// N, D); made: (B, N, 5 D) gates, keys, values; nodes: (B, N + 1, inputs); routes: (B, N + 1).
// Memory: by head, for every 16 customers keys and then values; pointers: for every 32 customers,
// 16 channels of the first 16 and then of the others. A block per 16 customers of an instance, a
// warp per 16 channels; customers beyond N are zeros.
extern "C" __global__ void tile_customers(const bf16* embeddings, const bf16* made,
                                          const float* nodes, const i64* routes, i32 customers,
                                          i32 groups, i32 inputs, FragmentB* memory,
                                          FragmentB* pointers, CustomerInfo* places) {
  constexpr i32 kMade = 5 * NDS_WIDTH;
  const i32 lane = threadIdx.x % 32, tile = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const i32 b = i32(blockIdx.x) / groups, group = i32(blockIdx.x) % groups, from = group * 16;
  const i64 row = i64(b) * customers;
  // A pair of channels of a customer, and a channel of a pair of customers.
  auto across = [&](const bf16* rows, i32 width, i32 customer, i32 channel) {
    if (customer >= customers) return 0u;
    return *reinterpret_cast<const u32*>(rows + (row + customer) * width + channel);
  };
  auto along = [&](i32 customer, i32 channel) {
    u32 two = 0;
    for (i32 i = 0; i < 2; ++i) {
      if (customer + i >= customers) continue;
      two |= u32(made[(row + customer + i) * kMade + channel]) << 16 * i;
    }
    return two;
  };
  const i32 c = 16 * tile + 2 * t, n = from + g, key = c + 3 * NDS_WIDTH;
  FragmentB* to = memory + ((i64(b) * kWidthTiles + tile) * groups + group) * 64 + lane;
  to[0] = FragmentB{{across(made, kMade, n, key), across(made, kMade, n, key + 8),
                     across(made, kMade, n + 8, key), across(made, kMade, n + 8, key + 8)}};
  const i32 first = from + 2 * t, channel = 4 * NDS_WIDTH + 16 * tile + g;
  to[32] = FragmentB{{along(first, channel), along(first + 8, channel), along(first, channel + 8),
                      along(first + 8, channel + 8)}};
  const i64 pair = (i64(b) * groups + group) / 2 * kWidthTiles + tile;
  pointers[(2 * pair + group % 2) * 32 + lane] = FragmentB{
      {across(embeddings, NDS_WIDTH, n, c), across(embeddings, NDS_WIDTH, n, c + 8),
       across(embeddings, NDS_WIDTH, n + 8, c), across(embeddings, NDS_WIDTH, n + 8, c + 8)}};
  if (threadIdx.x < 16) {
    const i32 customer = from + i32(threadIdx.x);
    const i64 node = i64(b) * (customers + 1) + customer + 1;
    CustomerInfo place{0.0f, 0.0f, -1.0f, 0.0f};
    if (customer < customers)
      place =
          CustomerInfo{nodes[node * inputs], nodes[node * inputs + 1], float(routes[node]), 0.0f};
    places[(i64(b) * groups + group) * 16 + i32(threadIdx.x)] = place;
  }
}
