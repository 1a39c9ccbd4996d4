// Writes the decoder's operands as B fragments, in the order in which decode.cu reads them.
#include "decoder_layout.hpp"

using namespace nds;

// From the weights (out, in) and biases of layers: `fragments`, `biases` in the order of lanes, `first_gates`, the
// GRU's input before the first selection, and `projection`, the layer (5 D, D) that computes gates, keys and values of
// customers, its biases last. A warp per tile.
extern "C" __global__ void tile_weights(const float* gru, const float* query, const float* combine,
                                        const float* seed_in, const float* seed_out, const float* gru_bias,
                                        const float* combine_bias, const float* seed_in_bias,
                                        const float* seed_out_bias, const float* gru_input, const float* gru_input_bias,
                                        const float* keys_values, const float* start, FragmentB* fragments,
                                        float* biases, bf16* first_gates, bf16* projection) {
  constexpr i32 kGates = 3 * NDS_WIDTH * NDS_WIDTH, kKeysValues = 2 * NDS_WIDTH * NDS_WIDTH;
  const i32 lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const i32 thread = i32(blockIdx.x * blockDim.x + threadIdx.x), tile = thread / 32;
  for (i32 i = thread; i < kGates + kKeysValues; i += i32(gridDim.x * blockDim.x))
    projection[i] = to_bf16(i < kGates ? gru_input[i] : keys_values[i - kGates]);
  for (i32 i = thread; i < 5 * NDS_WIDTH; i += i32(gridDim.x * blockDim.x))
    projection[kGates + kKeysValues + i] = to_bf16(i < 3 * NDS_WIDTH ? gru_input_bias[i] : 0.0f);
  if (tile < Layers::end) {
    // Outputs from 16 j on, inputs from 16 k on.
    const float* from;
    i32 width = NDS_WIDTH, j, k;
    if (tile < Layers::query) {
      from = gru, k = tile % kWidthTiles;
      j = tile / kWidthTiles % 3 * kWidthTiles + tile / kWidthTiles / 3;
    } else if (tile < Layers::seed) {
      const bool is_query = tile < Layers::combine;
      const i32 at = tile - (is_query ? Layers::query : Layers::combine);
      from = is_query ? query : combine, j = at / kWidthTiles, k = at % kWidthTiles;
    } else {
      const i32 unit = (tile - Layers::seed) / kSeedStride;
      const i32 at = (tile - Layers::seed) % kSeedStride;
      if (at <= kWidthTiles)
        from = seed_in, width = NDS_WIDTH + NDS_SEED_BITS, j = unit, k = at;
      else  // padding repeats the first tiles
        from = seed_out, width = NDS_SEED_WIDTH, j = (at - kWidthTiles - 1) % kWidthTiles, k = unit;
    }
    FragmentB fragment;
    for (i32 i = 0; i < 4; ++i) {
      const i32 row = 16 * j + g + i / 2 * 8, column = 16 * k + 2 * t + i % 2 * 8;
      auto number = [&](i32 c) { return c < width ? from[i64(row) * width + c] : 0.0f; };
      fragment.word[i] = to_bf16x2(number(column), number(column + 1));
    }
    fragments[tile * 32 + lane] = fragment;
  }
  if (tile < Biases::end && lane < 16) {
    const i32 channel = lane / 4 * 2 + lane % 2 + lane % 4 / 2 * 8;
    float value = 0.0f;
    if (tile < Biases::query)
      value = gru_bias[(tile % 3 * kWidthTiles + tile / 3) * 16 + channel];
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
      sum += to_float(to_bf16(start[i])) * to_float(to_bf16(gru_input[out * NDS_WIDTH + i]));
    for (i32 bit = 16; bit > 0; bit /= 2) sum += __shfl_xor_sync(~0u, sum, bit);
    if (lane == 0) first_gates[out] = to_bf16(sum + gru_input_bias[out]);
  }
}

// From the customers' embeddings (B, N, D), projected (B, N, 5 D) gates, keys and values, nodes (B, N + 1, inputs) and
// routes (B, N + 1): `key_values`, by head, keys and then values for every 16 customers; `pointers`, for every 32
// customers and 16 channels the first 16 customers, then the others; `customer_info`. A block per 16 customers of an
// instance, a warp per 16 channels; padding beyond customer N is zero.
extern "C" __global__ void tile_customers(const bf16* embeddings, const bf16* projected, const float* nodes,
                                          const i64* routes, i32 customers, i32 groups, i32 inputs,
                                          FragmentB* key_values, FragmentB* pointers, CustomerInfo* customer_info) {
  constexpr i32 kProjected = 5 * NDS_WIDTH;
  const i32 lane = threadIdx.x % 32, tile = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const i32 b = i32(blockIdx.x) / groups, group = i32(blockIdx.x) % groups, from = group * 16;
  const i64 row = i64(b) * customers;
  auto channel_pair = [&](const bf16* rows, i32 width, i32 customer, i32 channel) {
    if (customer >= customers) return 0u;
    return *reinterpret_cast<const u32*>(rows + (row + customer) * width + channel);
  };
  auto customer_pair = [&](i32 customer, i32 channel) {
    u32 two = 0;
    for (i32 i = 0; i < 2; ++i) {
      if (customer + i >= customers) continue;
      two |= u32(projected[(row + customer + i) * kProjected + channel]) << 16 * i;
    }
    return two;
  };
  auto fragment = [&](const bf16* rows, i32 width, i32 customer, i32 channel) {
    return FragmentB{{channel_pair(rows, width, customer, channel), channel_pair(rows, width, customer, channel + 8),
                      channel_pair(rows, width, customer + 8, channel),
                      channel_pair(rows, width, customer + 8, channel + 8)}};
  };
  const i32 c = 16 * tile + 2 * t, n = from + g;
  FragmentB* to = key_values + ((i64(b) * kWidthTiles + tile) * groups + group) * 64 + lane;
  to[0] = fragment(projected, kProjected, n, c + 3 * NDS_WIDTH);
  const i32 first = from + 2 * t, channel = 4 * NDS_WIDTH + 16 * tile + g;
  to[32] = FragmentB{{customer_pair(first, channel), customer_pair(first + 8, channel),
                      customer_pair(first, channel + 8), customer_pair(first + 8, channel + 8)}};
  const i64 pair = (i64(b) * groups + group) / 2 * kWidthTiles + tile;
  pointers[(2 * pair + group % 2) * 32 + lane] = fragment(embeddings, NDS_WIDTH, n, c);
  if (threadIdx.x < 16) {
    const i32 customer = from + i32(threadIdx.x);
    const i64 node = i64(b) * (customers + 1) + customer + 1;
    CustomerInfo info{0.0f, 0.0f, -1.0f, 0.0f};
    if (customer < customers)
      info = CustomerInfo{nodes[node * inputs], nodes[node * inputs + 1], float(routes[node]), 0.0f};
    customer_info[(i64(b) * groups + group) * 16 + i32(threadIdx.x)] = info;
  }
}
