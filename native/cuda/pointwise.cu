// Pointwise parts of layers: the gradient of a ReLU, and the gates of the GRU in training.
#include "bf16.hpp"

using namespace nds;

// gradient: (rows, width), set to 0 where the result of the ReLU is 0; parts: (blocks, width), sums over the rows of
// each block. The number of threads is a multiple of width / 8, the lanes of a row.
extern "C" __global__ void __launch_bounds__(kThreads)
    relu_backward(bf16* gradient, const bf16* __restrict__ result, float* parts, i32 rows, i32 width) {
  const i32 lanes = width / 8, together = i32(blockDim.x) / lanes;
  const i32 lane = i32(threadIdx.x) % lanes, first = i32(threadIdx.x) / lanes;
  const i32 each = (rows + i32(gridDim.x) - 1) / i32(gridDim.x);
  const i32 begin = i32(blockIdx.x) * each, end = begin + each < rows ? begin + each : rows;
  float sums[8] = {};
  struct Rows {
    Bf16x8 gradient, result;
  };
  const auto at = [&](i32 row) { return i64(row) * width + lane * 8; };
  const auto load_rows = [&](i32 row) { return Rows{load(gradient + at(row)), load(result + at(row))}; };
  with_rows_ahead(begin + first, end, together, load_rows, [&](i32 row, const Rows& loaded) {
    const Bf16x8 kept = relu_gradient(loaded.gradient, loaded.result);
    store(gradient + at(row), kept);
    add(kept, sums);
  });
  float* all = reinterpret_cast<float*>(shared_memory());  // (together, width)
  unrolled<8>([&](i32 i) { all[first * width + lane * 8 + i] = sums[i]; });
  sync_block();
  for (i32 channel = i32(threadIdx.x); channel < width; channel += i32(blockDim.x)) {
    float sum = 0.0f;
    for (i32 k = 0; k < together; ++k) sum += all[k * width + channel];
    parts[i64(blockIdx.x) * width + channel] = sum;
  }
}

struct Gates {
  float reset, update, fresh, from_hidden;  // from_hidden: W h + b of the new state

  NDS_FN Gates(const bf16* input, const bf16* hidden, i64 at, i32 width) {
    reset = sigmoid(to_float(input[at]) + to_float(hidden[at]));
    update = sigmoid(to_float(input[at + width]) + to_float(hidden[at + width]));
    from_hidden = to_float(hidden[at + 2 * width]);
    fresh = tanhf(to_float(input[at + 2 * width]) + reset * from_hidden);
  }
  static NDS_FN float sigmoid(float x) { return 1.0f / (1.0f + fast_exp2(-1.44269504f * x)); }
};

// input, hidden: (rows, 3 width), W x + b of the input and of the hidden state; before, after: (rows, width), hidden
// states. A thread per number.
extern "C" __global__ void __launch_bounds__(kThreads)
    gru_forward(const bf16* __restrict__ input, const bf16* __restrict__ hidden, const bf16* __restrict__ before,
                bf16* after, i32 rows, i32 width) {
  const i32 at = i32(blockIdx.x) * kThreads + i32(threadIdx.x);
  if (at >= rows * width) return;
  const Gates gates(input, hidden, i64(at / width) * 3 * width + at % width, width);
  after[at] = to_bf16(gates.fresh + gates.update * (to_float(before[at]) - gates.fresh));
}

// gradient: (rows, width), of `after` by its use outside the GRU; direct, through: (rows, width) float32, of `after` by
// the next step, past its gates and through them. `direct` is replaced by that of this step.
extern "C" __global__ void __launch_bounds__(kThreads)
    gru_backward(const bf16* __restrict__ input, const bf16* __restrict__ hidden, const bf16* __restrict__ before,
                 const bf16* __restrict__ gradient, const float* __restrict__ through, float* direct, bf16* to_input,
                 bf16* to_hidden, i32 rows, i32 width) {
  const i32 at = i32(blockIdx.x) * kThreads + i32(threadIdx.x);
  if (at >= rows * width) return;
  const i64 gate = i64(at / width) * 3 * width + at % width;
  const Gates gates(input, hidden, gate, width);
  const float total = to_float(gradient[at]) + through[at] + direct[at];
  const float fresh = total * (1.0f - gates.update) * (1.0f - gates.fresh * gates.fresh);
  const float update = total * (to_float(before[at]) - gates.fresh) * gates.update * (1.0f - gates.update);
  const float reset = fresh * gates.from_hidden * gates.reset * (1.0f - gates.reset);
  direct[at] = total * gates.update;
  to_input[gate] = to_hidden[gate] = to_bf16(reset);
  to_input[gate + width] = to_hidden[gate + width] = to_bf16(update);
  to_input[gate + 2 * width] = to_bf16(fresh);
  to_hidden[gate + 2 * width] = to_bf16(fresh * gates.reset);
}
