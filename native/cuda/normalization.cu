// Instance normalisation of x + y: each channel over the nodes of an instance. Activations are bfloat16 in memory,
// float32 in registers.
#include "bf16.hpp"

using namespace nds;

// A row in shared memory, in float32. Halves are swapped in every other row, so that lanes that write at the same time
// write to different banks.
NDS_FN float* half_of_row(char* rows, i32 row, i32 half) {
  const i32 at = (half ^ (row & 1)) * 16 + i32(threadIdx.x) % kRowLanes * 4;
  return reinterpret_cast<float*>(rows) + i64(row) * kBlockChannels + at;
}
NDS_FN void store_row(char* rows, i32 row, const float (&values)[8]) {
  unrolled<2>([&](i32 half) {
    Floats4 four;
    unrolled<4>([&](i32 i) { four.value[i] = values[4 * half + i]; });
    *reinterpret_cast<Floats4*>(half_of_row(rows, row, half)) = four;
  });
}
NDS_FN void load_row(char* rows, i32 row, float (&values)[8]) {
  unrolled<2>([&](i32 half) {
    const Floats4 four = *reinterpret_cast<const Floats4*>(half_of_row(rows, row, half));
    unrolled<4>([&](i32 i) { values[4 * half + i] = four.value[i]; });
  });
}
// A row of x and of y.
struct Rows {
  Bf16x8 x, y;
};
NDS_FN void sum_of(const Rows& rows, float (&sum)[8]) {
  unpack(rows.x, sum);
  add(rows.y, sum);
}

// x, y: (B, nodes, width); out: (B, nodes - skip, width), without the first `skip` nodes; means, scales: (B, width), a
// scale is 1 / standard deviation. kept: whether x + y is kept in shared memory, (nodes, kBlockChannels) float32, or
// computed twice.
extern "C" __global__ void __launch_bounds__(kThreads, 3)
    norm_forward(const bf16* __restrict__ x, const bf16* __restrict__ y, const float* __restrict__ weight,
                 const float* __restrict__ bias, bf16* out, float* means, float* scales, i32 nodes, i32 width, i32 skip,
                 i32 kept) {
  const Slice slice(width);
  const i64 at = slice.instance * nodes * width + slice.channel;
  const auto load_rows = [&](i32 row) {
    return Rows{load(x + at + i64(row) * width), load(y + at + i64(row) * width)};
  };
  char* rows = shared_memory() + kSumBytes;
  // Sums of differences from the first row: squares of the numbers themselves would lose precision.
  float origin[8], sums[16] = {};
  sum_of(load_rows(0), origin);
  with_rows_ahead(slice.row, nodes, kPassRows, load_rows, [&](i32 row, const Rows& loaded) {
    float value[8];
    sum_of(loaded, value);
    if (kept) store_row(rows, row, value);
    unrolled<8>([&](i32 i) {
      const float difference = value[i] - origin[i];
      sums[i] += difference, sums[8 + i] += difference * difference;
    });
  });
  const float* totals = sum_over_rows<2>(sums);
  const float share = 1.0f / float(nodes);
  float factor[8], shift[8];
  load(weight + slice.channel, factor);
  load(bias + slice.channel, shift);
  unrolled<8>([&](i32 i) {
    const i32 channel = slice.channel + i;
    const float difference = totals[channel % kBlockChannels] * share;
    const float square = totals[kBlockChannels + channel % kBlockChannels] * share;
    const float variance = square - difference * difference, mean = origin[i] + difference;
    const float scale = fast_rsqrt(fmaxf(variance, 0.0f) + 1e-5f);
    factor[i] *= scale;
    shift[i] -= mean * factor[i];
    if (slice.row == 0) {
      means[slice.instance * width + channel] = mean;
      scales[slice.instance * width + channel] = scale;
    }
  });
  bf16* to = out + slice.instance * (nodes - skip) * width + slice.channel;
  for (i32 row = slice.row; row < nodes; row += kPassRows) {
    float value[8];
    if (kept)
      load_row(rows, row, value);
    else
      sum_of(load_rows(row), value);
    unrolled<8>([&](i32 i) { value[i] = value[i] * factor[i] + shift[i]; });
    if (row >= skip) store(to + i64(row - skip) * width, pack(value));
  }
}

// gradient: (B, nodes - skip, width) of `out`; to: (B, nodes, width), the gradient of x, which is also that of y;
// parts: (2, B, width), gradients of weight and bias per instance. kept: whether shared memory keeps (nodes,
// kBlockChannels) float32 normalised values, then as many bfloat16 gradients.
extern "C" __global__ void __launch_bounds__(kThreads)
    norm_backward(const bf16* __restrict__ gradient, const bf16* __restrict__ x, const bf16* __restrict__ y,
                  const float* __restrict__ weight, const float* __restrict__ means, const float* __restrict__ scales,
                  bf16* to, float* parts, i32 batch, i32 nodes, i32 width, i32 skip, i32 kept) {
  const Slice slice(width);
  const i64 at = slice.instance * nodes * width + slice.channel;
  const bf16* from = gradient + slice.instance * (nodes - skip) * width + slice.channel;
  struct RowsAndGradient : Rows {
    Bf16x8 gradient;
  };
  const auto load_rows = [&](i32 row) {
    const Bf16x8 given = row >= skip ? load(from + i64(row - skip) * width) : Bf16x8{};
    return RowsAndGradient{{load(x + at + i64(row) * width), load(y + at + i64(row) * width)}, given};
  };
  char* rows = shared_memory() + kSumBytes;
  Bf16x8* gradients = reinterpret_cast<Bf16x8*>(rows + i64(nodes) * kBlockChannels * 4);
  float mean[8], scale[8], sums[16] = {};
  load(means + slice.instance * width + slice.channel, mean);
  load(scales + slice.instance * width + slice.channel, scale);
  const auto normalise = [&](const RowsAndGradient& loaded, float (&value)[8], float (&given)[8]) {
    sum_of(loaded, value);
    unpack(loaded.gradient, given);
    unrolled<8>([&](i32 i) { value[i] = (value[i] - mean[i]) * scale[i]; });
  };
  const auto visit = [&](i32 row, const RowsAndGradient& loaded) {
    float value[8], given[8];
    normalise(loaded, value, given);
    unrolled<8>([&](i32 i) { sums[i] += given[i] * value[i], sums[8 + i] += given[i]; });
    if (kept) {
      store_row(rows, row, value);
      gradients[row * kRowLanes + i32(threadIdx.x) % kRowLanes] = loaded.gradient;
    }
  };
  with_rows_ahead(slice.row, nodes, kPassRows, load_rows, visit);
  const float* totals = sum_over_rows<2>(sums);
  const float share = 1.0f / float(nodes);
  float factor[8], along[8], shift[8];
  load(weight + slice.channel, factor);
  unrolled<8>([&](i32 i) {
    const i32 channel = slice.channel + i;
    const float of_weight = totals[channel % kBlockChannels],
                of_bias = totals[kBlockChannels + channel % kBlockChannels];
    if (slice.row == 0) {
      parts[slice.instance * width + channel] = of_weight;
      parts[(batch + slice.instance) * width + channel] = of_bias;
    }
    factor[i] *= scale[i];
    along[i] = factor[i] * of_weight * share, shift[i] = factor[i] * of_bias * share;
  });
  for (i32 row = slice.row; row < nodes; row += kPassRows) {
    float value[8], given[8];
    if (kept) {
      load_row(rows, row, value);
      unpack(gradients[row * kRowLanes + i32(threadIdx.x) % kRowLanes], given);
    } else {
      normalise(load_rows(row), value, given);
    }
    unrolled<8>([&](i32 i) { value[i] = factor[i] * given[i] - shift[i] - along[i] * value[i]; });
    store(to + at + i64(row) * width, pack(value));
  }
}
