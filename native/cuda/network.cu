// Layers of the policy network between the matrix products: bfloat16 in memory, float32 in between,
// each number read and written once. Nothing is added up by atomics: results do not depend on who
// comes first. SharedRows are nodes, the depot first; see policy/kernels.py for what each is for.
#include "bf16.hpp"

using namespace nds;

// --- instance normalisation of x + y -------------------------------------------------------------

namespace {

// Where a block keeps a row in float32: halves change places from row to row, so that lanes that
// write at the same time write to different banks.
NDS_FN float* half_of_row(char* rows, i32 row, i32 half) {
  const i32 at = (half ^ (row & 1)) * 16 + i32(threadIdx.x) % kRowLanes * 4;
  return reinterpret_cast<float*>(rows) + i64(row) * kBlockChannels + at;
}
NDS_FN void keep(char* rows, i32 row, const float (&values)[8]) {
#pragma unroll
  for (i32 half = 0; half < 2; ++half) {
    Floats4 four;
#pragma unroll
    for (i32 i = 0; i < 4; ++i) four.value[i] = values[4 * half + i];
    *reinterpret_cast<Floats4*>(half_of_row(rows, row, half)) = four;
  }
}
NDS_FN void recall(char* rows, i32 row, float (&values)[8]) {
#pragma unroll
  for (i32 half = 0; half < 2; ++half) {
    const Floats4 four = *reinterpret_cast<const Floats4*>(half_of_row(rows, row, half));
#pragma unroll
    for (i32 i = 0; i < 4; ++i) values[4 * half + i] = four.value[i];
  }
}
NDS_FN void sum_of(const Bf16x8& x, const Bf16x8& y, float (&sum)[8]) {
  float other[8];
  unpack(x, sum);
  unpack(y, other);
#pragma unroll
  for (i32 i = 0; i < 8; ++i) sum[i] += other[i];
}

}  // namespace

// x, y: (B, nodes, width); out: (B, nodes - skip, width), without the first `skip` nodes; means,
// scales: (B, width), the latter 1 / standard deviation. kept: the sum stays in shared memory,
// (nodes, kBlockChannels) float32; else it is made twice.
extern "C" __global__ void __launch_bounds__(kThreads, 3)
    norm_forward(const bf16* __restrict__ x, const bf16* __restrict__ y,
                 const float* __restrict__ weight, const float* __restrict__ bias, bf16* out,
                 float* means, float* scales, i32 nodes, i32 width, i32 skip, i32 kept) {
  const Slice slice(width);
  const i64 at = slice.instance * nodes * width + slice.channel;
  char* rows = shared_memory() + kSumBytes;
  // Squares of differences from some row: those of the numbers themselves could be far too large.
  float origin[8], sums[16];
  sum_of(load(x + at), load(y + at), origin);
#pragma unroll
  for (i32 i = 0; i < 16; ++i) sums[i] = 0.0f;
  for (i32 begin = slice.row; begin < nodes; begin += kRowsAhead * kPassRows) {
    Bf16x8 a[kRowsAhead], b[kRowsAhead];
#pragma unroll
    for (i32 k = 0; k < kRowsAhead; ++k) {
      const i32 row = begin + k * kPassRows;
      if (row < nodes)
        a[k] = load(x + at + i64(row) * width), b[k] = load(y + at + i64(row) * width);
    }
#pragma unroll
    for (i32 k = 0; k < kRowsAhead; ++k) {
      const i32 row = begin + k * kPassRows;
      if (row >= nodes) break;
      float value[8];
      sum_of(a[k], b[k], value);
      if (kept) keep(rows, row, value);
#pragma unroll
      for (i32 i = 0; i < 8; ++i) {
        const float away = value[i] - origin[i];
        sums[i] += away, sums[8 + i] += away * away;
      }
    }
  }
  const float* totals = sum_over_rows<2>(sums);
  const float share = 1.0f / float(nodes);
  float factor[8], shift[8];
  load(weight + slice.channel, factor);
  load(bias + slice.channel, shift);
#pragma unroll
  for (i32 i = 0; i < 8; ++i) {
    const i32 channel = slice.channel + i;
    const float away = totals[channel % kBlockChannels] * share;
    const float square = totals[kBlockChannels + channel % kBlockChannels] * share;
    const float variance = square - away * away, mean = origin[i] + away;
    const float scale = fast_rsqrt(fmaxf(variance, 0.0f) + 1e-5f);
    factor[i] *= scale;
    shift[i] -= mean * factor[i];
    if (slice.row == 0) {
      means[slice.instance * width + channel] = mean;
      scales[slice.instance * width + channel] = scale;
    }
  }
  bf16* to = out + slice.instance * (nodes - skip) * width + slice.channel;
  for (i32 row = slice.row; row < nodes; row += kPassRows) {
    float value[8];
    if (kept)
      recall(rows, row, value);
    else
      sum_of(load(x + at + i64(row) * width), load(y + at + i64(row) * width), value);
#pragma unroll
    for (i32 i = 0; i < 8; ++i) value[i] = value[i] * factor[i] + shift[i];
    if (row >= skip) store(to + i64(row - skip) * width, pack(value));
  }
}

// gradient: (B, nodes - skip, width) of `out`; to: (B, nodes, width), of x and of y alike; parts:
// (2, B, width), per instance what belongs to weight and bias. kept: (nodes, kBlockChannels)
// float32, then as many bfloat16, in shared memory.
extern "C" __global__ void __launch_bounds__(kThreads)
    norm_backward(const bf16* __restrict__ gradient, const bf16* __restrict__ x,
                  const bf16* __restrict__ y, const float* __restrict__ weight,
                  const float* __restrict__ means, const float* __restrict__ scales, bf16* to,
                  float* parts, i32 batch, i32 nodes, i32 width, i32 skip, i32 kept) {
  const Slice slice(width);
  const i64 at = slice.instance * nodes * width + slice.channel;
  const bf16* from = gradient + slice.instance * (nodes - skip) * width + slice.channel;
  char* rows = shared_memory() + kSumBytes;
  Bf16x8* gradients = reinterpret_cast<Bf16x8*>(rows + i64(nodes) * kBlockChannels * 4);
  float mean[8], scale[8], sums[16];
  load(means + slice.instance * width + slice.channel, mean);
  load(scales + slice.instance * width + slice.channel, scale);
#pragma unroll
  for (i32 i = 0; i < 16; ++i) sums[i] = 0.0f;
  for (i32 begin = slice.row; begin < nodes; begin += kRowsAhead * kPassRows) {
    Bf16x8 a[kRowsAhead], b[kRowsAhead], c[kRowsAhead];
#pragma unroll
    for (i32 k = 0; k < kRowsAhead; ++k) {
      const i32 row = begin + k * kPassRows;
      if (row >= nodes) break;
      a[k] = load(x + at + i64(row) * width), b[k] = load(y + at + i64(row) * width);
      c[k] = row >= skip ? load(from + i64(row - skip) * width) : Bf16x8{};
    }
#pragma unroll
    for (i32 k = 0; k < kRowsAhead; ++k) {
      const i32 row = begin + k * kPassRows;
      if (row >= nodes) break;
      float value[8], slope[8];
      sum_of(a[k], b[k], value);
      unpack(c[k], slope);
#pragma unroll
      for (i32 i = 0; i < 8; ++i) {
        value[i] = (value[i] - mean[i]) * scale[i];
        sums[i] += slope[i] * value[i], sums[8 + i] += slope[i];
      }
      if (kept) {
        keep(rows, row, value);
        gradients[row * kRowLanes + i32(threadIdx.x) % kRowLanes] = c[k];
      }
    }
  }
  const float* totals = sum_over_rows<2>(sums);
  const float share = 1.0f / float(nodes);
  float factor[8], along[8], shift[8];
  load(weight + slice.channel, factor);
#pragma unroll
  for (i32 i = 0; i < 8; ++i) {
    const i32 channel = slice.channel + i;
    const float of_weight = totals[channel % kBlockChannels],
                of_bias = totals[kBlockChannels + channel % kBlockChannels];
    if (slice.row == 0) {
      parts[slice.instance * width + channel] = of_weight;
      parts[(batch + slice.instance) * width + channel] = of_bias;
    }
    factor[i] *= scale[i];
    along[i] = factor[i] * of_weight * share, shift[i] = factor[i] * of_bias * share;
  }
  for (i32 row = slice.row; row < nodes; row += kPassRows) {
    float value[8], slope[8];
    if (kept) {
      recall(rows, row, value);
      unpack(gradients[row * kRowLanes + i32(threadIdx.x) % kRowLanes], slope);
    } else {
      sum_of(load(x + at + i64(row) * width), load(y + at + i64(row) * width), value);
#pragma unroll
      for (i32 i = 0; i < 8; ++i) value[i] = (value[i] - mean[i]) * scale[i];
      unpack(row >= skip ? load(from + i64(row - skip) * width) : Bf16x8{}, slope);
    }
#pragma unroll
    for (i32 i = 0; i < 8; ++i) value[i] = factor[i] * slope[i] - shift[i] - along[i] * value[i];
    store(to + at + i64(row) * width, pack(value));
  }
}

// --- ReLU ----------------------------------------------------------------------------------------

// gradient: (rows, width), set to 0 where the result of the ReLU is; parts: (blocks, width) sums of
// each block's rows. A block's threads are a multiple of width / 8, and so is what a row takes.
extern "C" __global__ void __launch_bounds__(kThreads)
    relu_backward(bf16* gradient, const bf16* __restrict__ result, float* parts, i32 rows,
                  i32 width) {
  const i32 lanes = width / 8, together = i32(blockDim.x) / lanes;
  const i32 lane = i32(threadIdx.x) % lanes, first = i32(threadIdx.x) / lanes;
  const i32 each = (rows + i32(gridDim.x) - 1) / i32(gridDim.x);
  const i32 begin = i32(blockIdx.x) * each, end = begin + each < rows ? begin + each : rows;
  float sums[8];
#pragma unroll
  for (i32 i = 0; i < 8; ++i) sums[i] = 0.0f;
  for (i32 row = begin + first; row < end; row += kRowsAhead * together) {
    Bf16x8 values[kRowsAhead], signs[kRowsAhead];
#pragma unroll
    for (i32 k = 0; k < kRowsAhead; ++k) {
      const i64 at = i64(row + k * together) * width + lane * 8;
      if (row + k * together < end) values[k] = load(gradient + at), signs[k] = load(result + at);
    }
#pragma unroll
    for (i32 k = 0; k < kRowsAhead; ++k) {
      if (row + k * together >= end) break;
      const Bf16x8 kept = where_positive(values[k], signs[k]);
      store(gradient + i64(row + k * together) * width + lane * 8, kept);
      float value[8];
      unpack(kept, value);
#pragma unroll
      for (i32 i = 0; i < 8; ++i) sums[i] += value[i];
    }
  }
  float* all = reinterpret_cast<float*>(shared_memory());  // (together, width)
#pragma unroll
  for (i32 i = 0; i < 8; ++i) all[first * width + lane * 8 + i] = sums[i];
  sync_block();
  for (i32 channel = i32(threadIdx.x); channel < width; channel += i32(blockDim.x)) {
    float sum = 0.0f;
    for (i32 k = 0; k < together; ++k) sum += all[k * width + channel];
    parts[i64(blockIdx.x) * width + channel] = sum;
  }
}

// --- message passing -----------------------------------------------------------------------------

// ReLU(own + bias + the second part of the one before + the third part of the one after).
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

namespace {

// Of what went into a ReLU, from that of its result.
NDS_FN Bf16x8 slope_at(const bf16* gradient, const bf16* result, i64 at) {
  return where_positive(load(gradient + at), load(result + at));
}

}  // namespace

// gradient, result: (B, nodes, width) of `out` above; to: (B, nodes, 3 width), of `parts`; sums:
// (B, width), per instance what belongs to the bias. A customer is heard by the one after and by
// the one before it, the depot by everybody beside it and by those in no route. kept: (nodes,
// kBlockChannels) bfloat16 in shared memory.
extern "C" __global__ void __launch_bounds__(kThreads)
    message_backward(const bf16* __restrict__ gradient, const bf16* __restrict__ result,
                     const i64* __restrict__ previous, const i64* __restrict__ next, bf16* to,
                     float* sums, i32 nodes, i32 width, i32 kept) {
  const Slice slice(width);
  const i32 part = i32(threadIdx.x) % kRowLanes;
  const i64 at = slice.instance * nodes * width + slice.channel;
  Bf16x8* rows = reinterpret_cast<Bf16x8*>(shared_memory() + kSumBytes);
  const auto slope = [&](i32 row) { return slope_at(gradient, result, at + i64(row) * width); };
  bf16* mine = to + slice.instance * nodes * 3 * width + slice.channel;
  float totals[24];
#pragma unroll
  for (i32 i = 0; i < 24; ++i) totals[i] = 0.0f;
#pragma unroll 4
  for (i32 row = slice.row; row < nodes; row += kPassRows) {
    const Bf16x8 own = slope(row);
    store(mine + i64(row) * 3 * width, own);
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
    bf16* here = mine + i64(row) * 3 * width;
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
    const Bf16x8 by_next = after == 0 ? Bf16x8{}
                           : kept     ? rows[after * kRowLanes + part]
                                      : slope(after);
    const Bf16x8 by_last = before == 0 ? Bf16x8{}
                           : kept      ? rows[before * kRowLanes + part]
                                       : slope(before);
    store(here + width, by_next);
    store(here + 2 * width, by_last);
  }
}

// --- tours ---------------------------------------------------------------------------------------

namespace {

// The next customers of a route, a few at a time; none: its end.
struct Ahead {
  i32 node[kRowsAhead], count;

  NDS_FN Ahead(const i32* after, i32& from) {
    count = 0;
#pragma unroll
    for (i32 k = 0; k < kRowsAhead; ++k) {
      node[k] = from;
      if (from != 0) from = after[from], ++count;
    }
  }
};

// For every route its sum (or mean) of the rows that `heard` loads; then, for every customer of it,
// `finish` with that and what `own` loads. Lanes that share a row go along the route together and
// wait for a few customers at once.
template <class Heard, class Own, class Finish>
NDS_FN void over_routes(const Slice& slice, const i64* previous, const i64* next, const i64* route,
                        i32 nodes, i32 mean, Heard heard, Own own, Finish finish) {
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
    float sum[8];
#pragma unroll
    for (i32 i = 0; i < 8; ++i) sum[i] = 0.0f;
    i32 size = 0;
    for (i32 node = heads[r]; node != 0;) {
      const Ahead ahead(after, node);
      Bf16x8 rows[kRowsAhead];
#pragma unroll
      for (i32 k = 0; k < kRowsAhead; ++k)
        rows[k] = k < ahead.count ? heard(ahead.node[k]) : Bf16x8{};
#pragma unroll
      for (i32 k = 0; k < kRowsAhead; ++k) {
        float value[8];
        unpack(rows[k], value);
#pragma unroll
        for (i32 i = 0; i < 8; ++i) sum[i] += value[i];
      }
      size += ahead.count;
    }
    const float factor = mean ? 1.0f / float(size) : 1.0f;
#pragma unroll
    for (i32 i = 0; i < 8; ++i) sum[i] *= factor;
    for (i32 node = heads[r]; node != 0;) {
      const Ahead ahead(after, node);
      Bf16x8 rows[kRowsAhead];
#pragma unroll
      for (i32 k = 0; k < kRowsAhead; ++k)
        rows[k] = k < ahead.count ? own(ahead.node[k]) : Bf16x8{};
#pragma unroll
      for (i32 k = 0; k < kRowsAhead; ++k)
        if (k < ahead.count) finish(ahead.node[k], rows[k], sum);
    }
  }
}

}  // namespace

// ReLU(own + bias + the mean (or sum) of the second part over the route); nothing of a route for
// those in none. parts: (B, nodes, 2 width); previous, next, route: (B, nodes); out: (B, nodes,
// width). Shared memory: (2 nodes + 1) int32.
extern "C" __global__ void __launch_bounds__(kThreads)
    tour_forward(const bf16* __restrict__ parts, const float* __restrict__ bias,
                 const i64* __restrict__ previous, const i64* __restrict__ next,
                 const i64* __restrict__ route, bf16* out, i32 nodes, i32 width, i32 mean) {
  const Slice slice(width);
  const bf16* mine = parts + slice.instance * nodes * 2 * width + slice.channel;
  bf16* to = out + slice.instance * nodes * width + slice.channel;
  float added[8];
  load(bias + slice.channel, added);
  const auto own = [&](i32 row) { return load(mine + i64(row) * 2 * width); };
  const auto finish = [&](i32 row, const Bf16x8& of_row, const float (&heard)[8]) {
    float value[8];
    unpack(of_row, value);
#pragma unroll
    for (i32 i = 0; i < 8; ++i) value[i] = fmaxf(value[i] + added[i] + heard[i], 0.0f);
    store(to + i64(row) * width, pack(value));
  };
  over_routes(
      slice, previous, next, route, nodes, mean,
      [&](i32 row) { return load(mine + i64(row) * 2 * width + width); }, own, finish);
  const float nothing[8] = {};
  for (i32 row = slice.row; row < nodes; row += kPassRows) {
    if (route[slice.instance * nodes + row] < 0) finish(row, own(row), nothing);
  }
}

// gradient, result: (B, nodes, width) of `out` above; to: (B, nodes, 2 width), of `parts`; sums:
// (B, width), per instance what belongs to the bias. What a route heard together comes back to each
// of it: the same mean (or sum), of gradients.
extern "C" __global__ void __launch_bounds__(kThreads)
    tour_backward(const bf16* __restrict__ gradient, const bf16* __restrict__ result,
                  const i64* __restrict__ previous, const i64* __restrict__ next,
                  const i64* __restrict__ route, bf16* to, float* sums, i32 nodes, i32 width,
                  i32 mean) {
  const Slice slice(width);
  const i64 at = slice.instance * nodes * width + slice.channel;
  bf16* mine = to + slice.instance * nodes * 2 * width + slice.channel;
  float totals[8];
#pragma unroll
  for (i32 i = 0; i < 8; ++i) totals[i] = 0.0f;
#pragma unroll 4
  for (i32 row = slice.row; row < nodes; row += kPassRows) {
    const Bf16x8 own = slope_at(gradient, result, at + i64(row) * width);
    store(mine + i64(row) * 2 * width, own);
    if (route[slice.instance * nodes + row] < 0)
      store(mine + i64(row) * 2 * width + width, Bf16x8{});
    float value[8];
    unpack(own, value);
#pragma unroll
    for (i32 i = 0; i < 8; ++i) totals[i] += value[i];
  }
  const float* all =
      sum_over_rows<1>(totals);  // what was written is seen by the block from here on
  if (i32(threadIdx.x) < kBlockChannels) {
    const i32 channel =
        i32(blockIdx.x) % (width / kBlockChannels) * kBlockChannels + i32(threadIdx.x);
    sums[slice.instance * width + channel] = all[threadIdx.x];
  }
  over_routes(
      slice, previous, next, route, nodes, mean,
      [&](i32 row) { return load(mine + i64(row) * 2 * width); }, [](i32) { return Bf16x8{}; },
      [&](i32 row, const Bf16x8&, const float (&heard)[8]) {
        store(mine + i64(row) * 2 * width + width, pack(heard));
      });
}

// --- the GRU -------------------------------------------------------------------------------------

namespace {

struct Gates {
  float reset, update, fresh, heard;  // heard: what the hidden state adds to the fresh one

  NDS_FN Gates(const bf16* input, const bf16* hidden, i64 at, i32 width) {
    reset = sigmoid(to_float(input[at]) + to_float(hidden[at]));
    update = sigmoid(to_float(input[at + width]) + to_float(hidden[at + width]));
    heard = to_float(hidden[at + 2 * width]);
    fresh = tanhf(to_float(input[at + 2 * width]) + reset * heard);
  }
  static NDS_FN float sigmoid(float x) { return 1.0f / (1.0f + fast_exp2(-1.44269504f * x)); }
};

}  // namespace

// input, hidden: (rows, 3 width); before, after: (rows, width) states. A thread per number.
extern "C" __global__ void __launch_bounds__(kThreads)
    gru_forward(const bf16* __restrict__ input, const bf16* __restrict__ hidden,
                const bf16* __restrict__ before, bf16* after, i32 rows, i32 width) {
  const i32 at = i32(blockIdx.x) * kThreads + i32(threadIdx.x);
  if (at >= rows * width) return;
  const Gates gates(input, hidden, i64(at / width) * 3 * width + at % width, width);
  after[at] = to_bf16(gates.fresh + gates.update * (to_float(before[at]) - gates.fresh));
}

// gradient: (rows, width) of `after` from outside; direct, through: (rows, width) float32, from the
// step that follows, past its gates and through them; `direct` becomes that of this step.
extern "C" __global__ void __launch_bounds__(kThreads)
    gru_backward(const bf16* __restrict__ input, const bf16* __restrict__ hidden,
                 const bf16* __restrict__ before, const bf16* __restrict__ gradient,
                 const float* __restrict__ through, float* direct, bf16* to_input, bf16* to_hidden,
                 i32 rows, i32 width) {
  const i32 at = i32(blockIdx.x) * kThreads + i32(threadIdx.x);
  if (at >= rows * width) return;
  const i64 gate = i64(at / width) * 3 * width + at % width;
  const Gates gates(input, hidden, gate, width);
  const float slope = to_float(gradient[at]) + through[at] + direct[at];
  const float fresh = slope * (1.0f - gates.update) * (1.0f - gates.fresh * gates.fresh);
  const float update =
      slope * (to_float(before[at]) - gates.fresh) * gates.update * (1.0f - gates.update);
  const float reset = fresh * gates.heard * gates.reset * (1.0f - gates.reset);
  direct[at] = slope * gates.update;
  to_input[gate] = to_hidden[gate] = to_bf16(reset);
  to_input[gate + width] = to_hidden[gate + width] = to_bf16(update);
  to_input[gate + 2 * width] = to_bf16(fresh);
  to_hidden[gate + 2 * width] = to_bf16(fresh * gates.reset);
}
