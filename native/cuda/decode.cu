// The decoder's M selections for many rollouts at once. A warp has 16 rollouts of one instance, and
// they are the rows of every matrix here: nothing waits for another warp. Weights, keys, values and
// pointers come as right sides of products (mma.hpp), a tile of 16 x 16 after the other, so that
// every lane reads its part with one load; what is read is shared by the warps of a multiprocessor
// in its cache. `policy/decoding.py` packs and launches; the plain form is `rollout.sample`.
//
// A selection is drawn in one pass over the customers: of four at a time, one takes the place of
// whom was drawn so far with the probability that it has among all seen. The numbers by which this
// is decided are hashes of the one uniform number that the selection is given.
#include "mma.hpp"

namespace nds {
inline namespace NDS_ISA {

constexpr i32 kTiles = NDS_WIDTH / 16;           // also heads: a head is 16 wide
constexpr i32 kSeedTiles = NDS_SEED_WIDTH / 16;  // of the layer that the seed goes into
constexpr i32 kScratch = kTiles > kSeedTiles ? kTiles : kSeedTiles;
constexpr i32 kSpan = 64;  // customers that attention takes at once
constexpr float kLog2E = 1.44269504f, kLn2 = 0.69314718f;
constexpr float kClip = NDS_CLIP * kLog2E;
constexpr float kNoRoute = -2.0f;  // other than any customer's, also than that of those in none
constexpr float kTaken = -3e38f;   // the logit of whom a rollout has selected
constexpr float kLow = -1e30f;     // below every logit, and not infinite

// A layer: right sides, tiles of 16 outputs and within them of 16 inputs; and the bias.
struct Layer {
  const Right* weight;
  const float* bias;
};

// A customer: where it is, and its route, -1 if none.
struct alignas(16) Place {
  float x, y, route, unused;
};

NDS_FN Right load(const Right* from) {
#ifdef NDS_EMULATED
  return *from;
#else
  Right r;
  asm("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];"
      : "=r"(r.a0), "=r"(r.a1), "=r"(r.b0), "=r"(r.b1)
      : "l"(from));
  return r;
#endif
}

// The bias of 16 outputs, in every row; `at` is that of the lane's first.
NDS_FN Sum biased(const float* at) {
  return Sum{{{at[0], at[1], at[0], at[1]}, {at[8], at[9], at[8], at[9]}}};
}

// sum += left x right over `count` tiles; `left` in shared memory.
template <i32 count> NDS_FN void multiply(Sum& sum, const Left* left, const Right* right) {
#pragma unroll
  for (i32 k = 0; k < count; ++k) multiply_add(sum, left[k * 32], load(right + k * 32));
}

NDS_FN float sigmoid(float x) { return 0.5f + 0.5f * tanh_of(0.5f * x); }

// Of the four lanes that share a row.
NDS_FN float most_in_row(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
NDS_FN float sum_in_row(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

NDS_FN u32 mixed(u32 x) {
  x ^= x >> 16, x *= 0x7feb352du;
  x ^= x >> 15, x *= 0x846ca68bu;
  return x ^ x >> 16;
}

// A number in [0, 1), by a key and a count; so far from 1 that its product with a sum is below
// that.
NDS_FN float chance(u32 key, u32 count) {
  return float(mixed(key ^ count * 0x9e3779b9u) >> 9) * 0x1p-23f;
}

// What a rollout knows of its selections; lanes hold those of two rows.
struct Row {
  i32 last;       // -1: nothing selected yet
  float x, y;     // of the last
  float route;    // of the last, or kNoRoute
  float chances;  // log2 of the probability so far
};

// Whom the lane has drawn of its share of a row: customers count as 2^(logit - top).
struct Draw {
  float top, sum, logit;
  i32 customer;

  // Four more: customers c, c + 1, c + 8, c + 9.
  NDS_FN void see(const float (&logits)[4], i32 c, float chance) {
    const float high = fmaxf(fmaxf(top, fmaxf(logits[0], logits[1])), fmaxf(logits[2], logits[3]));
    float upto[4];  // running sums of the four
    upto[0] = exp2_of(logits[0] - high);
    for (i32 i = 1; i < 4; ++i) upto[i] = upto[i - 1] + exp2_of(logits[i] - high);
    sum = sum * exp2_of(top - high) + upto[3];
    top = high;
    const float goal = chance * sum;
    if (goal < upto[3]) {
      const bool late = goal >= upto[1], odd = goal >= (late ? upto[2] : upto[0]);
      customer = c + (late ? 8 : 0) + (odd ? 1 : 0);
      logit = late ? (odd ? logits[3] : logits[2]) : (odd ? logits[1] : logits[0]);
    }
  }
  // With those of the lanes that share the row, which have the same chances.
  NDS_FN void meet(u32 key) {
    for (i32 step = 1; step <= 2; step *= 2) {
      const float t = __shfl_xor_sync(~0u, top, step), s = __shfl_xor_sync(~0u, sum, step);
      const float l = __shfl_xor_sync(~0u, logit, step);
      const i32 c = __shfl_xor_sync(~0u, customer, step);
      const float high = fmaxf(top, t);
      const float mine = sum * exp2_of(top - high), other = s * exp2_of(t - high);
      // Both must come to the same: the one of the lower customer is asked first.
      const bool lower = customer < c;
      const float goal = chance(key, u32(-step)) * (lower ? mine + other : other + mine);
      if (lower == (goal >= (lower ? mine : other))) logit = l, customer = c;
      sum = mine + other, top = high;
    }
  }
};

}  // namespace NDS_ISA
}  // namespace nds

using namespace nds;

// Right sides made of what the encoder says of customers: (B, N, D) embeddings, (B, N, 2 D) keys
// and values, bfloat16. A block per 16 customers of an instance, a warp per 16 channels; customers
// beyond N are zeros.
extern "C" __global__ void pack_customers(const unsigned short* embeddings,
                                          const unsigned short* remembered, i32 customers,
                                          i32 groups, Right* keys, Right* values, Right* pointers) {
  const i32 lane = threadIdx.x % 32, tile = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const i32 b = i32(blockIdx.x) / groups, from = i32(blockIdx.x) % groups * 16;
  const i64 row = i64(b) * customers;
  // A pair of channels of a customer, and a channel of a pair of customers.
  auto across = [&](const unsigned short* rows, i32 width, i32 customer, i32 channel) {
    if (customer >= customers) return 0u;
    return *reinterpret_cast<const u32*>(rows + (row + customer) * width + channel);
  };
  auto along = [&](i32 customer, i32 channel) {
    u32 two = 0;
    for (i32 i = 0; i < 2; ++i) {
      if (customer + i >= customers) continue;
      two |= u32(remembered[(row + customer + i) * (2 * NDS_WIDTH) + channel]) << 16 * i;
    }
    return two;
  };
  const i32 c = 16 * tile + 2 * t, n = from + g, width = 2 * NDS_WIDTH;
  const i64 at = (i64(blockIdx.x) * kTiles + tile) * 32 + lane;
  keys[at] = Right{across(remembered, width, n, c), across(remembered, width, n, c + 8),
                   across(remembered, width, n + 8, c), across(remembered, width, n + 8, c + 8)};
  pointers[at] =
      Right{across(embeddings, NDS_WIDTH, n, c), across(embeddings, NDS_WIDTH, n, c + 8),
            across(embeddings, NDS_WIDTH, n + 8, c), across(embeddings, NDS_WIDTH, n + 8, c + 8)};
  const i32 first = from + 2 * t, channel = NDS_WIDTH + 16 * tile + g;
  values[at] = Right{along(first, channel), along(first + 8, channel), along(first, channel + 8),
                     along(first + 8, channel + 8)};
}

extern "C" __global__ void __launch_bounds__(NDS_THREADS, 2)
    decode(const Right* keys, const Right* values, const Right* pointers,
           const unsigned short* gates, const unsigned short* first_gates, const Right* recall,
           const float* recall_bias, const Right* query, const Right* combine,
           const float* combine_bias, const Right* seed_in, const float* seed_in_bias,
           const Right* seed_out, const float* seed_out_bias, const float* terms,
           const Place* places, const float* matrix, const float* seeds, const float* uniforms,
           i32 customers, i32 rollouts, i32 removals, i32 parts, i64* removed,
           float* log_probability) {
  const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const i32 b = i32(blockIdx.x) / parts;
  const i32 first = (i32(blockIdx.x) % parts * (i32(blockDim.x) / 32) + warp) * 16;
  if (first >= rollouts) return;
  const i32 spans = (customers + kSpan - 1) / kSpan, groups = spans * (kSpan / 16);
  const i32 stride = 2 * spans + 2;  // words of a row of `taken`: rows then lie in different banks
  char* own = shared_memory() + warp * (32 * (kTiles + kScratch) * i32(sizeof(Left)) + 64 * stride);
  Left* hidden = reinterpret_cast<Left*>(own) + lane;  // a lane reads what it wrote
  Left* scratch = hidden + 32 * kTiles;
  u32* taken = reinterpret_cast<u32*>(own + 32 * (kTiles + kScratch) * i32(sizeof(Left)));

  for (i32 k = 0; k < kTiles; ++k) hidden[k * 32] = Left{0, 0, 0, 0};
  for (i32 i = lane; i < 16 * stride; i += 32) {
    const i32 left = customers - i % stride * 32;  // beyond the last customer everything is taken
    taken[i] = left >= 32 ? 0u : left <= 0 ? ~0u : ~0u << left;
  }
  __syncwarp();

  // Rows beyond the last rollout do as it does, and are not written down.
  i64 rollout[2];
  Row rows[2];
  for (i32 r = 0; r < 2; ++r) {
    rollout[r] = i64(b) * rollouts + least(first + g + 8 * r, rollouts - 1);
    rows[r] = Row{-1, 0.0f, 0.0f, kNoRoute, 0.0f};
  }
  auto bits = [&](i32 r, i32 bit) {
    auto one = [&](i32 i) {
      return i < NDS_SEED_BITS ? seeds[rollout[r] * NDS_SEED_BITS + i] : 0.0f;
    };
    return pair(one(bit), one(bit + 1));
  };
  const Left seed{bits(0, 2 * t), bits(1, 2 * t), bits(0, 2 * t + 8), bits(1, 2 * t + 8)};
  const float steep = terms[0], together = terms[1];  // in units of log 2
  const Right* keys_here = keys + i64(b) * groups * kTiles * 32 + lane;
  const Right* values_here = values + i64(b) * groups * kTiles * 32 + lane;
  const Right* pointers_here = pointers + i64(b) * groups * kTiles * 32 + lane;
  const Place* places_here = places + i64(b) * groups * 16;

  for (i32 m = 0; m < removals; ++m) {
    // The GRU (Network.recall).
    const unsigned short* fed[2];
    for (i32 r = 0; r < 2; ++r) {
      const i64 row = i64(b) * customers + rows[r].last;
      fed[r] = (m == 0 ? first_gates : gates + row * (3 * NDS_WIDTH)) + 2 * t;
    }
#pragma unroll 1
    for (i32 j = 0; j < kTiles; ++j) {
      Sum gate[3];  // reset, update, new
      for (i32 i = 0; i < 3; ++i) gate[i] = biased(recall_bias + i * NDS_WIDTH + 16 * j + 2 * t);
      const Right* weight = recall + j * kTiles * 32 + lane;
#pragma unroll
      for (i32 k = 0; k < kTiles; ++k) {
        const Left left = hidden[k * 32];
        for (i32 i = 0; i < 3; ++i) {
          multiply_add(gate[i], left, load(weight + (i * kTiles * kTiles + k) * 32));
        }
      }
      Sum h = numbers(hidden[j * 32]);
#pragma unroll
      for (i32 side = 0; side < 2; ++side) {
#pragma unroll
        for (i32 r = 0; r < 2; ++r) {
          u32 input[3];
          for (i32 i = 0; i < 3; ++i) {
            input[i] = *reinterpret_cast<const u32*>(fed[r] + i * NDS_WIDTH + 16 * j + 8 * side);
          }
          for (i32 e = 0; e < 2; ++e) {
            auto of = [&](i32 i) { return e ? second_of(input[i]) : first_of(input[i]); };
            const i32 at = 2 * r + e;
            const float reset = sigmoid(of(0) + gate[0].at[side][at]);
            const float update = sigmoid(of(1) + gate[1].at[side][at]);
            const float fresh = tanh_of(of(2) + reset * gate[2].at[side][at]);
            h.at[side][at] = fresh + update * (h.at[side][at] - fresh);
          }
        }
      }
      scratch[j * 32] = rounded(h);
    }
    for (i32 j = 0; j < kTiles; ++j) hidden[j * 32] = scratch[j * 32];

    // Attention over the customers not yet taken, head by head.
    constexpr float kScale = 0.25f * kLog2E;  // 1 / sqrt(16)
#pragma unroll 1
    for (i32 head = 0; head < kTiles; ++head) {
      Sum asked{};
      multiply<kTiles>(asked, hidden, query + head * kTiles * 32 + lane);
      const Left question = rounded(asked);
      Sum heard{};
      float top[2] = {kLow, kLow}, whole[2] = {0.0f, 0.0f};
      // Keys are fetched a span ahead; behind the last of all there is room for that.
      const Right* key_at = keys_here + head * 32;
      const Right* value_at = values_here + head * 32;
      Right key[4], value[4];
#pragma unroll
      for (i32 i = 0; i < 4; ++i) key[i] = load(key_at + i * kTiles * 32);
#pragma unroll 1
      for (i32 span = 0; span < spans; ++span) {
        Sum score[4];
        key_at += 4 * kTiles * 32;
#pragma unroll
        for (i32 i = 0; i < 4; ++i) {
          value[i] = load(value_at + i * kTiles * 32);
          score[i] = Sum{};
          multiply_add(score[i], question, key[i]);
          key[i] = load(key_at + i * kTiles * 32);
        }
        value_at += 4 * kTiles * 32;
        float high[2] = {top[0], top[1]};
#pragma unroll
        for (i32 r = 0; r < 2; ++r) {
          const u32* words = taken + (g + 8 * r) * stride + 2 * span;
          const u32 word[2] = {words[0] >> 2 * t, words[1] >> 2 * t};
#pragma unroll
          for (i32 i = 0; i < 16; ++i) {
            float& s = score[i / 4].at[i / 2 % 2][2 * r + i % 2];
            if (word[i / 8] >> (i / 2 % 4 * 8 + i % 2) & 1u) s = kTaken;
            high[r] = fmaxf(high[r], s);
          }
          high[r] = most_in_row(high[r]);
          const float fade = exp2_of((top[r] - high[r]) * kScale);
          top[r] = high[r], whole[r] *= fade;
          for (i32 i = 0; i < 4; ++i) heard.at[i / 2][2 * r + i % 2] *= fade;
          const float shift = high[r] * kScale;
#pragma unroll
          for (i32 i = 0; i < 16; ++i) {
            float& s = score[i / 4].at[i / 2 % 2][2 * r + i % 2];
            s = exp2_of(s * kScale - shift);
            whole[r] += s;
          }
        }
#pragma unroll
        for (i32 i = 0; i < 4; ++i) {
          multiply_add(heard, rounded(score[i]), value[i]);
        }
      }
      for (i32 r = 0; r < 2; ++r) {
        const float share = 1.0f / sum_in_row(whole[r]);
        for (i32 i = 0; i < 4; ++i) heard.at[i / 2][2 * r + i % 2] *= share;
      }
      scratch[head * 32] = rounded(heard);
    }

    // What was heard, and the residual that makes rollouts differ by their seed.
    Left glimpse[kTiles];
#pragma unroll
    for (i32 j = 0; j < kTiles; ++j) {
      Sum sum = biased(combine_bias + 16 * j + 2 * t);
      multiply<kTiles>(sum, scratch, combine + j * kTiles * 32 + lane);
      glimpse[j] = rounded(sum);
    }
#pragma unroll 1
    for (i32 j = 0; j < kSeedTiles; ++j) {
      Sum sum = biased(seed_in_bias + 16 * j + 2 * t);
      const Right* weight = seed_in + j * (kTiles + 1) * 32 + lane;
#pragma unroll
      for (i32 k = 0; k < kTiles; ++k) multiply_add(sum, glimpse[k], load(weight + k * 32));
      multiply_add(sum, seed, load(weight + kTiles * 32));
      for (i32 i = 0; i < 8; ++i) {
        float& s = sum.at[i / 4][i % 4];
        s = s > 0.0f ? s : 0.0f;
      }
      scratch[j * 32] = rounded(sum);
    }
#pragma unroll
    for (i32 j = 0; j < kTiles; ++j) {
      Sum sum = biased(seed_out_bias + 16 * j + 2 * t);
      multiply<kSeedTiles>(sum, scratch, seed_out + j * kSeedTiles * 32 + lane);
      const Sum before = numbers(glimpse[j]);
      for (i32 i = 0; i < 8; ++i) sum.at[i / 4][i % 4] += before.at[i / 4][i % 4];
      glimpse[j] = rounded(sum);
    }
    for (i32 j = 0; j < kTiles; ++j) scratch[j * 32] = glimpse[j];

    // The pointer, and the draw.
    u32 key[2];
    Draw draw[2];
    const float* away[2];
    for (i32 r = 0; r < 2; ++r) {
      key[r] = mixed(u32(__float_as_int(uniforms[rollout[r] * removals + m])) + 0x9e3779b9u);
      draw[r] = Draw{kLow, 0.0f, 0.0f, 0};
      away[r] = matrix + i64(most(rows[r].last, 0)) * customers;
    }
    const float narrow = root_of(1.0f / NDS_WIDTH);
#pragma unroll 1
    for (i32 group = 0; group < groups; group += 2) {
      Sum score[2] = {};
      const Right* pointer = pointers_here + group * kTiles * 32;
#pragma unroll
      for (i32 k = 0; k < kTiles; ++k) {
        const Left left = scratch[k * 32];
        multiply_add(score[0], left, load(pointer + k * 32));
        multiply_add(score[1], left, load(pointer + (kTiles + k) * 32));
      }
      const u32 word[2] = {taken[g * stride + group / 2] >> 2 * t,
                           taken[(g + 8) * stride + group / 2] >> 2 * t};
#pragma unroll
      for (i32 half = 0; half < 2; ++half) {  // 16 customers, of which the lane has four
        const i32 c = 16 * (group + half) + 2 * t;
        float logits[2][4];
#pragma unroll
        for (i32 i = 0; i < 4; ++i) {
          const i32 other = c + i / 2 * 8 + i % 2;
          const Place place = places_here[other];
#pragma unroll
          for (i32 r = 0; r < 2; ++r) {
            float logit = kClip * tanh_of(score[half].at[i / 2][2 * r + i % 2] * narrow);
            if (NDS_DISTANCE_TERM && m > 0) {
              const float dx = place.x - rows[r].x, dy = place.y - rows[r].y;
              const float d =
                  NDS_MATRIX ? away[r][least(other, customers - 1)] : root_of(dx * dx + dy * dy);
              logit -= steep * d;
              if (place.route == rows[r].route) logit += together;
            }
            logits[r][i] = word[r] >> (16 * half + i / 2 * 8 + i % 2) & 1u ? kTaken : logit;
          }
        }
        // Lanes of a row draw apart: c differs by lane.
        for (i32 r = 0; r < 2; ++r) draw[r].see(logits[r], c, chance(key[r], u32(c)));
      }
    }

    for (i32 r = 0; r < 2; ++r) {
      draw[r].meet(key[r]);
      const u32* row = taken + (g + 8 * r) * stride;
      i32 c = draw[r].customer;
      // Weights that are no numbers draw nobody; an engine must not be given anyone twice all the
      // same.
      while (row[c / 32] >> c % 32 & 1u) c = c + 1 < customers ? c + 1 : 0;
      const Place place = places_here[c];
      const float chances = draw[r].logit - draw[r].top - log2_of(draw[r].sum);
      rows[r] = Row{c, place.x, place.y, place.route < 0.0f ? kNoRoute : place.route,
                    rows[r].chances + chances};
    }
    __syncwarp();  // all have looked at what was taken before
    for (i32 r = 0; r < 2 && t == 0; ++r) {
      const i32 c = rows[r].last;
      taken[(g + 8 * r) * stride + c / 32] |= 1u << c % 32;
      if (first + g + 8 * r < rollouts) removed[rollout[r] * removals + m] = c + 1;
    }
    __syncwarp();
  }
  for (i32 r = 0; r < 2; ++r) {
    if (t != 0 || first + g + 8 * r >= rollouts) continue;
    log_probability[rollout[r]] = rows[r].chances * kLn2;
  }
}
