// Layers that read the current solution: message passing along routes and tour encoding. Their
// matrix products come first, so that what remains is to gather and to add rows.
#include "bf16.hpp"

using namespace nds;

// --- message passing -----------------------------------------------------------------------------

// ReLU(first part + bias + second part of the previous node + third part of the next node).
// parts: (B, nodes, 3 width), previous, next: (B, nodes), out: (B, nodes, width). A thread per 8
// numbers.
extern "C" __global__ void __launch_bounds__(kThreads)
    message_forward(const bf16* __restrict__ parts, const float* __restrict__ bias,
                    const i64* __restrict__ previous, const i64* __restrict__ next, bf16* out,
                    i32 total, i32 nodes, i32 width) {
  const i32 lanes = width / 8, at = i32(blockIdx.x) * kThreads + i32(threadIdx.x);
  if (at >= total * lanes) return;
  const i32 row = at / lanes, channel = at % lanes * 8;
  const i64 first = row / nodes * nodes;
  float value[8], other[8], added[8];
  load(bias + channel, added);
  unpack(load(parts + i64(row) * 3 * width + channel), value);
  unpack(load(parts + (first + previous[row]) * 3 * width + width + channel), other);
#pragma unroll
  for (i32 i = 0; i < 8; ++i) value[i] += added[i] + other[i];
  unpack(load(parts + (first + next[row]) * 3 * width + 2 * width + channel), other);
#pragma unroll
  for (i32 i = 0; i < 8; ++i) {
    value[i] += other[i];
    value[i] = fmaxf(value[i], 0.0f);
  }
  store(out + i64(row) * width + channel, pack(value));
}

// The gradient of a ReLU's input.
NDS_FN Bf16x8 relu_gradient(const bf16* gradient, const bf16* result, i64 at) {
  return where_positive(load(gradient + at), load(result + at));
}

// gradient, result: (B, nodes, width) of `out` above; to: (B, nodes, 3 width), of `parts`; sums:
// (B, width), of the bias per instance. A customer sends messages to its two neighbours, the depot
// to all first, last and unserved customers. kept: whether shared memory keeps (nodes,
// kBlockChannels) bfloat16 gradients.
extern "C" __global__ void __launch_bounds__(kThreads)
    message_backward(const bf16* __restrict__ gradient, const bf16* __restrict__ result,
                     const i64* __restrict__ previous, const i64* __restrict__ next, bf16* to,
                     float* sums, i32 nodes, i32 width, i32 kept) {
  const Slice slice(width);
  const i32 part = i32(threadIdx.x) % kRowLanes;
  const i64 at = slice.instance * nodes * width + slice.channel;
  Bf16x8* rows = reinterpret_cast<Bf16x8*>(shared_memory() + kSumBytes);
  const auto gradient_at = [&](i32 row) {
    return relu_gradient(gradient, result, at + i64(row) * width);
  };
  bf16* target = to + slice.instance * nodes * 3 * width + slice.channel;
  float totals[24];
#pragma unroll
  for (i32 i = 0; i < 24; ++i) totals[i] = 0.0f;
#pragma unroll 4
  for (i32 row = slice.row; row < nodes; row += kPassRows) {
    const Bf16x8 own = gradient_at(row);
    store(target + i64(row) * 3 * width, own);
    if (kept) rows[row * kRowLanes + part] = own;
    const bool first = previous[slice.instance * nodes + row] == 0;
    const bool last = next[slice.instance * nodes + row] == 0;
    float value[8];
    unpack(own, value);
#pragma unroll
    for (i32 i = 0; i < 8; ++i) {
      totals[i] += value[i];
      totals[8 + i] += first ? value[i] : 0.0f;
      totals[16 + i] += last ? value[i] : 0.0f;
    }
  }
  const float* all = sum_over_rows<3>(totals);
  for (i32 row = slice.row; row < nodes; row += kPassRows) {
    bf16* here = target + i64(row) * 3 * width;
    if (row == 0) {
      float depot[2][8];
#pragma unroll
      for (i32 i = 0; i < 8; ++i) {
        sums[slice.instance * width + slice.channel + i] = all[part * 8 + i];
        depot[0][i] = all[kBlockChannels + part * 8 + i],
        depot[1][i] = all[2 * kBlockChannels + part * 8 + i];
      }
      store(here + width, pack(depot[0]));
      store(here + 2 * width, pack(depot[1]));
      continue;
    }
    const i32 after = i32(next[slice.instance * nodes + row]);
    const i32 before = i32(previous[slice.instance * nodes + row]);
    const Bf16x8 from_next = after == 0 ? Bf16x8{}
                             : kept     ? rows[after * kRowLanes + part]
                                        : gradient_at(after);
    const Bf16x8 from_previous = before == 0 ? Bf16x8{}
                                 : kept      ? rows[before * kRowLanes + part]
                                             : gradient_at(before);
    store(here + width, from_next);
    store(here + 2 * width, from_previous);
  }
}

// --- tours ---------------------------------------------------------------------------------------

// The next customers of a route, at most kRowsAhead.
struct NextCustomers {
  i32 node[kRowsAhead], count;

  NDS_FN NextCustomers(const i32* after, i32& from) {
    count = 0;
#pragma unroll
    for (i32 k = 0; k < kRowsAhead; ++k) {
      node[k] = from;
      if (from != 0) from = after[from], ++count;
    }
  }
};

// Computes for every route the sum (or mean) of the rows that `load_summand` returns, then calls
// finish(customer, load_own(customer), sum) for each of its customers. Lanes that share a row
// follow the route together and load a few customers at once.
NDS_FN void over_routes(const Slice& slice, const i64* previous, const i64* next, const i64* route,
                        i32 nodes, i32 mean, auto load_summand, auto load_own, auto finish) {
  i32* after = reinterpret_cast<i32*>(shared_memory() + kSumBytes);
  i32 *heads = after + nodes, *count = heads + nodes;
  if (threadIdx.x == 0) *count = 0;
  sync_block();
  for (i32 node = i32(threadIdx.x); node < nodes; node += kThreads) {
    const i64 at = slice.instance * nodes + node;
    after[node] = i32(next[at]);
    if (node > 0 && route[at] >= 0 && previous[at] == 0) heads[atomicAdd(count, 1)] = node;
  }
  sync_block();
  for (i32 r = slice.row; r < *count; r += kPassRows) {
    float sum[8] = {};
    i32 size = 0;
    for (i32 node = heads[r]; node != 0;) {
      const NextCustomers some(after, node);
      Bf16x8 rows[kRowsAhead];
#pragma unroll
      for (i32 k = 0; k < kRowsAhead; ++k)
        rows[k] = k < some.count ? load_summand(some.node[k]) : Bf16x8{};
#pragma unroll
      for (i32 k = 0; k < kRowsAhead; ++k) {
        float value[8];
        unpack(rows[k], value);
#pragma unroll
        for (i32 i = 0; i < 8; ++i) sum[i] += value[i];
      }
      size += some.count;
    }
    const float factor = mean ? 1.0f / float(size) : 1.0f;
#pragma unroll
    for (i32 i = 0; i < 8; ++i) sum[i] *= factor;
    for (i32 node = heads[r]; node != 0;) {
      const NextCustomers some(after, node);
      Bf16x8 rows[kRowsAhead];
#pragma unroll
      for (i32 k = 0; k < kRowsAhead; ++k)
        rows[k] = k < some.count ? load_own(some.node[k]) : Bf16x8{};
#pragma unroll
      for (i32 k = 0; k < kRowsAhead; ++k)
        if (k < some.count) finish(some.node[k], rows[k], sum);
    }
  }
}

// ReLU(first part + bias + mean (or sum) of the second part over the route, 0 for unserved
// customers). parts: (B, nodes, 2 width); previous, next, route: (B, nodes); out: (B, nodes,
// width). Shared memory: (2 nodes + 1) int32.
extern "C" __global__ void __launch_bounds__(kThreads)
    tour_forward(const bf16* __restrict__ parts, const float* __restrict__ bias,
                 const i64* __restrict__ previous, const i64* __restrict__ next,
                 const i64* __restrict__ route, bf16* out, i32 nodes, i32 width, i32 mean) {
  const Slice slice(width);
  const bf16* target = parts + slice.instance * nodes * 2 * width + slice.channel;
  bf16* to = out + slice.instance * nodes * width + slice.channel;
  float added[8];
  load(bias + slice.channel, added);
  const auto own = [&](i32 row) { return load(target + i64(row) * 2 * width); };
  const auto finish = [&](i32 row, const Bf16x8& first_part, const float (&tour)[8]) {
    float value[8];
    unpack(first_part, value);
#pragma unroll
    for (i32 i = 0; i < 8; ++i) value[i] = fmaxf(value[i] + added[i] + tour[i], 0.0f);
    store(to + i64(row) * width, pack(value));
  };
  over_routes(
      slice, previous, next, route, nodes, mean,
      [&](i32 row) { return load(target + i64(row) * 2 * width + width); }, own, finish);
  const float zeros[8] = {};
  for (i32 row = slice.row; row < nodes; row += kPassRows) {
    if (route[slice.instance * nodes + row] < 0) finish(row, own(row), zeros);
  }
}

// gradient, result: (B, nodes, width) of `out` above; to: (B, nodes, 2 width), of `parts`; sums:
// (B, width), of the bias per instance. The gradient of the second part is again a mean (or sum)
// over the route, of gradients.
extern "C" __global__ void __launch_bounds__(kThreads)
    tour_backward(const bf16* __restrict__ gradient, const bf16* __restrict__ result,
                  const i64* __restrict__ previous, const i64* __restrict__ next,
                  const i64* __restrict__ route, bf16* to, float* sums, i32 nodes, i32 width,
                  i32 mean) {
  const Slice slice(width);
  const i64 at = slice.instance * nodes * width + slice.channel;
  bf16* target = to + slice.instance * nodes * 2 * width + slice.channel;
  float totals[8];
#pragma unroll
  for (i32 i = 0; i < 8; ++i) totals[i] = 0.0f;
#pragma unroll 4
  for (i32 row = slice.row; row < nodes; row += kPassRows) {
    const Bf16x8 own = relu_gradient(gradient, result, at + i64(row) * width);
    store(target + i64(row) * 2 * width, own);
    if (route[slice.instance * nodes + row] < 0)
      store(target + i64(row) * 2 * width + width, Bf16x8{});
    float value[8];
    unpack(own, value);
#pragma unroll
    for (i32 i = 0; i < 8; ++i) totals[i] += value[i];
  }
  const float* all = sum_over_rows<1>(totals);  // synchronises: all rows are written
  if (i32(threadIdx.x) < kBlockChannels) {
    const i32 channel =
        i32(blockIdx.x) % (width / kBlockChannels) * kBlockChannels + i32(threadIdx.x);
    sums[slice.instance * width + channel] = all[threadIdx.x];
  }
  over_routes(
      slice, previous, next, route, nodes, mean,
      [&](i32 row) { return load(target + i64(row) * 2 * width); }, [](i32) { return Bf16x8{}; },
      [&](i32 row, const Bf16x8&, const float (&tour)[8]) {
        store(target + i64(row) * 2 * width + width, pack(tour));
      });
}
