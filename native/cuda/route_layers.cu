// Layers that read the current solution: message passing along routes and tour encoding. Their matrix products come
// first, so that what remains is to gather and to add rows.
#include "bf16.hpp"

using namespace nds;

// --- message passing -----------------------------------------------------------------------------

// ReLU(first part + bias + second part of the previous node + third part of the next node).
// parts: (B, nodes, 3 width), previous, next: (B, nodes), out: (B, nodes, width). A thread per 8 numbers.
extern "C" __global__ void __launch_bounds__(kThreads)
    message_forward(const bf16* __restrict__ parts, const float* __restrict__ bias, const i64* __restrict__ previous,
                    const i64* __restrict__ next, bf16* out, i32 total, i32 nodes, i32 width) {
  const i32 lanes = width / 8, at = i32(blockIdx.x) * kThreads + i32(threadIdx.x);
  if (at >= total * lanes) return;
  const i32 row = at / lanes, channel = at % lanes * 8;
  const i64 first = row / nodes * nodes;
  float value[8], other[8], added[8];
  load(bias + channel, added);
  unpack(load(parts + i64(row) * 3 * width + channel), value);
  unpack(load(parts + (first + previous[row]) * 3 * width + width + channel), other);
  unrolled<8>([&](i32 i) { value[i] += added[i] + other[i]; });
  unpack(load(parts + (first + next[row]) * 3 * width + 2 * width + channel), other);
  unrolled<8>([&](i32 i) { value[i] = fmaxf(value[i] + other[i], 0.0f); });
  store(out + i64(row) * width + channel, pack(value));
}

// gradient, result: (B, nodes, width) of `out` above; to: (B, nodes, 3 width), of `parts`; sums: (B, width), of the
// bias per instance. A customer sends messages to its two neighbours, the depot to all first, last and unserved
// customers. kept: whether shared memory keeps (nodes, kBlockChannels) bfloat16 gradients.
extern "C" __global__ void __launch_bounds__(kThreads)
    message_backward(const bf16* __restrict__ gradient, const bf16* __restrict__ result,
                     const i64* __restrict__ previous, const i64* __restrict__ next, bf16* to, float* sums, i32 nodes,
                     i32 width, i32 kept) {
  const Slice slice(width);
  const i32 part = i32(threadIdx.x) % kRowLanes;
  const i64 at = slice.instance * nodes * width + slice.channel;
  Bf16x8* rows = reinterpret_cast<Bf16x8*>(shared_memory() + kSumBytes);
  const auto gradient_at = [&](i32 row) {
    return relu_gradient(load(gradient + at + i64(row) * width), load(result + at + i64(row) * width));
  };
  bf16* target = to + slice.instance * nodes * 3 * width + slice.channel;
  float totals[24] = {};
#pragma unroll 4
  for (i32 row = slice.row; row < nodes; row += kPassRows) {
    const Bf16x8 own = gradient_at(row);
    store(target + i64(row) * 3 * width, own);
    if (kept) rows[row * kRowLanes + part] = own;
    const bool first = previous[slice.instance * nodes + row] == 0;
    const bool last = next[slice.instance * nodes + row] == 0;
    float value[8];
    unpack(own, value);
    unrolled<8>([&](i32 i) {
      totals[i] += value[i];
      totals[8 + i] += first ? value[i] : 0.0f;
      totals[16 + i] += last ? value[i] : 0.0f;
    });
  }
  const float* all = sum_over_rows<3>(totals);
  for (i32 row = slice.row; row < nodes; row += kPassRows) {
    bf16* here = target + i64(row) * 3 * width;
    if (row == 0) {
      float depot[2][8];
      unrolled<8>([&](i32 i) {
        sums[slice.instance * width + slice.channel + i] = all[part * 8 + i];
        depot[0][i] = all[kBlockChannels + part * 8 + i], depot[1][i] = all[2 * kBlockChannels + part * 8 + i];
      });
      store(here + width, pack(depot[0]));
      store(here + 2 * width, pack(depot[1]));
      continue;
    }
    const i32 after = i32(next[slice.instance * nodes + row]);
    const i32 before = i32(previous[slice.instance * nodes + row]);
    const auto sent_by = [&](i32 node) {
      return node == 0 ? Bf16x8{} : kept ? rows[node * kRowLanes + part] : gradient_at(node);
    };
    const Bf16x8 from_next = sent_by(after), from_previous = sent_by(before);
    store(here + width, from_next);
    store(here + 2 * width, from_previous);
  }
}

// --- tours ---------------------------------------------------------------------------------------

// Call use(customer, load(customer)) for the customers of a route from `node` on. kRowsAhead rows are loaded before the
// first of them is used.
NDS_FN void along_route(const i32* after, i32 node, auto load, auto use) {
  while (node != 0) {
    i32 customer[kRowsAhead], count = 0;
    Bf16x8 rows[kRowsAhead];
    unrolled<kRowsAhead>([&](i32 k) {
      customer[k] = node;
      if (node != 0) node = after[node], ++count;
    });
    unrolled<kRowsAhead>([&](i32 k) { rows[k] = k < count ? load(customer[k]) : Bf16x8{}; });
    unrolled<kRowsAhead>([&](i32 k) {
      if (k < count) use(customer[k], rows[k]);
    });
  }
}

// Computes for every route the sum (or mean) of the rows that `load_summand` returns, then calls finish(customer,
// load_own(customer), sum) for each of its customers. Lanes that share a row follow the route together and load a few
// customers at once.
NDS_FN void over_routes(const Slice& slice, const i64* previous, const i64* next, const i64* route, i32 nodes, i32 mean,
                        auto load_summand, auto load_own, auto finish) {
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
    along_route(after, heads[r], load_summand, [&](i32, const Bf16x8& summand) {
      add(summand, sum);
      ++size;
    });
    const float factor = mean ? 1.0f / float(size) : 1.0f;
    unrolled<8>([&](i32 i) { sum[i] *= factor; });
    along_route(after, heads[r], load_own, [&](i32 customer, const Bf16x8& own) { finish(customer, own, sum); });
  }
}

// ReLU(first part + bias + mean (or sum) of the second part over the route, 0 for unserved customers). parts: (B,
// nodes, 2 width); previous, next, route: (B, nodes); out: (B, nodes, width). Shared memory: (2 nodes + 1) int32.
extern "C" __global__ void __launch_bounds__(kThreads)
    tour_forward(const bf16* __restrict__ parts, const float* __restrict__ bias, const i64* __restrict__ previous,
                 const i64* __restrict__ next, const i64* __restrict__ route, bf16* out, i32 nodes, i32 width,
                 i32 mean) {
  const Slice slice(width);
  const bf16* target = parts + slice.instance * nodes * 2 * width + slice.channel;
  bf16* to = out + slice.instance * nodes * width + slice.channel;
  float added[8];
  load(bias + slice.channel, added);
  const auto own = [&](i32 row) { return load(target + i64(row) * 2 * width); };
  const auto finish = [&](i32 row, const Bf16x8& first_part, const float (&tour)[8]) {
    float value[8];
    unpack(first_part, value);
    unrolled<8>([&](i32 i) { value[i] = fmaxf(value[i] + added[i] + tour[i], 0.0f); });
    store(to + i64(row) * width, pack(value));
  };
  over_routes(
      slice, previous, next, route, nodes, mean, [&](i32 row) { return load(target + i64(row) * 2 * width + width); },
      own, finish);
  const float zeros[8] = {};
  for (i32 row = slice.row; row < nodes; row += kPassRows) {
    if (route[slice.instance * nodes + row] < 0) finish(row, own(row), zeros);
  }
}

// gradient, result: (B, nodes, width) of `out` above; to: (B, nodes, 2 width), of `parts`; sums: (B, width), of the
// bias per instance. The gradient of the second part is again a mean (or sum) over the route, of gradients.
extern "C" __global__ void __launch_bounds__(kThreads)
    tour_backward(const bf16* __restrict__ gradient, const bf16* __restrict__ result, const i64* __restrict__ previous,
                  const i64* __restrict__ next, const i64* __restrict__ route, bf16* to, float* sums, i32 nodes,
                  i32 width, i32 mean) {
  const Slice slice(width);
  const i64 at = slice.instance * nodes * width + slice.channel;
  bf16* target = to + slice.instance * nodes * 2 * width + slice.channel;
  float totals[8] = {};
#pragma unroll 4
  for (i32 row = slice.row; row < nodes; row += kPassRows) {
    const i64 here = at + i64(row) * width;
    const Bf16x8 own = relu_gradient(load(gradient + here), load(result + here));
    store(target + i64(row) * 2 * width, own);
    if (route[slice.instance * nodes + row] < 0) store(target + i64(row) * 2 * width + width, Bf16x8{});
    add(own, totals);
  }
  const float* all = sum_over_rows<1>(totals);  // synchronises: all rows are written
  if (i32(threadIdx.x) < kBlockChannels) {
    const i32 channel = i32(blockIdx.x) % (width / kBlockChannels) * kBlockChannels + i32(threadIdx.x);
    sums[slice.instance * width + channel] = all[threadIdx.x];
  }
  over_routes(
      slice, previous, next, route, nodes, mean, [&](i32 row) { return load(target + i64(row) * 2 * width); },
      [](i32) { return Bf16x8{}; },
      [&](i32 row, const Bf16x8&, const float (&tour)[8]) {
        store(target + i64(row) * 2 * width + width, pack(tour));
      });
}
