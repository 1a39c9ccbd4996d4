// The decoder's M selections for many rollouts at once. A warp has some sets of 16 rollouts of one
// instance, and these are the rows of every matrix here. Weights, keys, values and pointers come as
// right sides of products (tiles.hpp), a tile of 16 x 16 after the other in the order in which they
// are used, so that a lane reads its part with one load, some tiles ahead. The warps of a block are
// never far from each other: what one has read the others find in the cache. `decoder_tiles.cu`
// puts them in order, `policy/decoding.py` launches; the plain form is `rollout.sample`.
//
// Exponentials are taken as they are, without looking for the highest first: only where their sum
// is far from 1 it is looked for, and everything is done again.
//
// A selection is drawn in one pass over the customers: of eight at a time, one takes the place of
// whom was drawn so far with the probability that it has among all seen. The numbers by which this
// is decided come from the one uniform number that the selection is given.
#include "decoder_layout.hpp"

namespace nds {
inline namespace NDS_ISA {

constexpr i32 kRowTiles = NDS_SETS;  // of 16 rollouts, in a warp
constexpr i32 kSpan = 64;            // customers that attention takes at once
constexpr i32 kPair = 32;            // customers that the pointer takes at once
constexpr float kLog2E = 1.44269504f, kLn2 = 0.69314718f;
constexpr float kClip = NDS_CLIP * kLog2E;
constexpr float kNoRoute = -2.0f;  // other than any customer's, also than that of those in none
constexpr float kTaken = -3e38f;   // the logit of whom a rollout has selected
constexpr i32 kPolynomialOf8 = 2;  // of 8 exponentials of attention

// Layers and biases as a lane reads them.
struct Weights {
  const FragmentB* rights;
  const Floats4* fours;

  NDS_FN const FragmentB* layer(i32 tile) const { return rights + tile * 32; }
  NDS_FN const Floats4* bias(i32 tile) const { return fours + tile * 4; }
};

// Tiles one after the other, read ahead. Behind the last of all there must be room for that.
template <i32 ahead> struct Stream {
  const FragmentB* at;
  FragmentB fetched[ahead];

  NDS_FN explicit Stream(const FragmentB* from) : at(from) {
#pragma unroll
    for (i32 i = 0; i < ahead; ++i) fetched[i] = load_read_only(at + i * 32);
  }
  // The i-th from where it is, for `use`; its place is then free for another.
  template <class Use> NDS_FN void give(i32 i, Use use) {
    use(fetched[i % ahead]);
    fetched[i % ahead] = load_read_only(at + (i + ahead) * 32);
  }
  NDS_FN void pass(i32 count) { at += count * 32; }  // a multiple of `ahead`
};
// How far ahead, where `count` tiles make a turn.
NDS_FN constexpr i32 ahead_of(i32 count) {
  i32 most = 1;
  for (i32 i = 2; i <= 9; ++i) most = count % i == 0 ? i : most;
  return most;
}

NDS_FN float sigmoid(float x) { return 0.5f + 0.5f * fast_tanh(0.5f * x); }

NDS_FN u32 mixed(u32 x) {
  x ^= x >> 16, x *= 0x7feb352du;
  x ^= x >> 15, x *= 0x846ca68bu;
  return x ^ x >> 16;
}
// In [0, 1), and so far from 1 that its product with a sum is below that.
NDS_FN float chance_of(u32 bits) { return __int_as_float(i32(bits >> 9 | 0x3f800000u)) - 1.0f; }

// What a warp has in shared memory, by lane.
struct Own {
  FragmentA* lefts;  // of the lane: each set's hidden states, then its scratch
  u32* words;        // taken: per set and span a word for every lane
  i32 spans, lane;

  static constexpr i32 kLefts = 2 * kWidthTiles;
  NDS_FN FragmentA& hidden(i32 q, i32 k) const { return lefts[(q * kLefts + k) * 32]; }
  NDS_FN FragmentA& scratch(i32 q, i32 k) const {
    return lefts[(q * kLefts + kWidthTiles + k) * 32];
  }
  // A lane's customers of a span, of two rows. Their bits stand such that, moved up by i, those of
  // customers 8 i + 2 t and 8 i + 2 t + 1 are the signs of the lower two bytes for row g, and of
  // the upper two for row g + 8.
  NDS_FN u32 taken(i32 q, i32 span) const { return words[(q * spans + span) * 32 + lane]; }
  NDS_FN u32& word(i32 q, i32 row, i32 c) const {
    return words[(q * spans + c / 64) * 32 + row % 8 * 4 + c / 2 % 4];
  }
  static NDS_FN u32 bit(i32 row, i32 c) { return 1u << (row / 8 * 16 + c % 2 * 8 + 7 - c / 8 % 8); }
};

// The customer that a rollout selected last, and what the pointer asks of it. -1: none yet.
struct Row {
  i32 last;
  float x, y, route;  // its route, or kNoRoute
};

// Whom the lane has drawn of its share of a row.
struct Draw {
  u32 state = 0;
  float sum = 0.0f, goal = 0.0f, weight[8] = {};  // goal: where in the sum of the eight it is
  i32 pair = 0, customer = 0;

  // Bf16x8 more.
  NDS_FN void see(const float (&more)[8], i32 number) {
    const float first = (more[0] + more[1]) + (more[2] + more[3]);
    const float all = first + ((more[4] + more[5]) + (more[6] + more[7]));
    sum += all;
    state = state * 1664525u + 1013904223u;
    const float at = chance_of(state) * sum;
    if (at < all) {
      goal = at, pair = number;
#pragma unroll
      for (i32 i = 0; i < 8; ++i) weight[i] = more[i];
    }
  }
  // Which of the eight it was. From now on weight[0] is its weight.
  NDS_FN void settle(i32 t) {
    float upto = 0.0f, found = 0.0f;
    bool open = true;
    i32 which = 0;
#pragma unroll
    for (i32 i = 0; i < 8; ++i) {
      upto += weight[i];
      if (open && weight[i] > 0.0f) found = weight[i], which = i;
      open = open && !(goal < upto);
    }
    weight[0] = found;
    customer = pair * kPair + which / 2 * 8 + 2 * t + which % 2;
  }
  // With those of the lanes that share the row, which have the same key.
  NDS_FN void meet(u32 key) {
    for (i32 step = 1; step <= 2; step *= 2) {
      const float other = __shfl_xor_sync(~0u, sum, step);
      const float w = __shfl_xor_sync(~0u, weight[0], step);
      const i32 c = __shfl_xor_sync(~0u, customer, step);
      // Both must come to the same: the one of the lower customer is asked first.
      const bool lower = customer < c;
      const float at = chance_of(mixed(key + u32(step))) * (lower ? sum + other : other + sum);
      if (lower == (at >= (lower ? sum : other))) weight[0] = w, customer = c;
      sum += other;
    }
  }
};

// Sums that begin with a bias.
NDS_FN void begin(Accumulator (&sum)[kRowTiles], Floats4 bias) {
#pragma unroll
  for (i32 q = 0; q < kRowTiles; ++q) {
#pragma unroll
    for (i32 i = 0; i < 8; ++i) sum[q].at[i / 4][i % 4] = bias.value[i / 4 * 2 + i % 2];
  }
}

// A layer: `given(q, k)` on the left, `done(j, sums)` with 16 outputs of all sets.
template <i32 inputs, i32 outputs, class Given, class Done>
NDS_FN void layer(const FragmentB* weight, const Floats4* bias, Given given, Done done) {
  Stream<ahead_of(inputs)> stream(weight);
  Floats4 next = *bias;
#pragma unroll 1
  for (i32 j = 0; j < outputs; ++j) {
    Accumulator sum[kRowTiles];
    begin(sum, next);
    next = bias[(j + 1) * 4];
#pragma unroll
    for (i32 k = 0; k < inputs; ++k) {
      stream.give(k, [&](const FragmentB& right) {
#pragma unroll
        for (i32 q = 0; q < kRowTiles; ++q) mma_accumulate(sum[q], given(q, k), right);
      });
    }
    stream.pass(inputs);
    done(j, sum);
  }
}

// The GRU (Network.recall); fed: of each row, by the customer selected last.
NDS_FN void recall(const Own& own, const Weights& weights, const bf16* const (&fed)[kRowTiles][2]) {
  const Floats4* bias = weights.bias(Biases::gru);
  FragmentA hidden[kRowTiles][kWidthTiles];
#pragma unroll
  for (i32 i = 0; i < kRowTiles * kWidthTiles; ++i)
    hidden[i / kWidthTiles][i % kWidthTiles] = own.hidden(i / kWidthTiles, i % kWidthTiles);
  Stream<ahead_of(kWidthTiles)> stream(weights.layer(Layers::gru));
#pragma unroll 1
  for (i32 j = 0; j < kWidthTiles; ++j) {
    u32 input[kRowTiles][4][3];  // [set][as in FragmentA][reset, update, new]
    Accumulator gate[3][kRowTiles];
#pragma unroll
    for (i32 i = 0; i < 3; ++i) {
      begin(gate[i], bias[(3 * j + i) * 4]);
#pragma unroll
      for (i32 q = 0; q < kRowTiles; ++q) {
#pragma unroll
        for (i32 n = 0; n < 4; ++n) {
          const bf16* from = fed[q][n % 2] + i * NDS_WIDTH + 16 * j + n / 2 * 8;
          input[q][n][i] = *reinterpret_cast<const u32*>(from);
        }
      }
    }
#pragma unroll
    for (i32 i = 0; i < 3; ++i) {
#pragma unroll
      for (i32 k = 0; k < kWidthTiles; ++k) {
        stream.give(i * kWidthTiles + k, [&](const FragmentB& right) {
#pragma unroll
          for (i32 q = 0; q < kRowTiles; ++q) mma_accumulate(gate[i][q], hidden[q][k], right);
        });
      }
    }
    stream.pass(3 * kWidthTiles);
#pragma unroll
    for (i32 q = 0; q < kRowTiles; ++q) {
      Accumulator h = to_accumulator(own.hidden(q, j));
#pragma unroll
      for (i32 i = 0; i < 8; ++i) {
        const u32(&from)[3] = input[q][i / 4 * 2 + i % 4 / 2];
        auto of = [&](i32 n) { return (i % 2 ? high_float(from[n]) : low_float(from[n])); };
        auto at = [&](i32 n) { return gate[n][q].at[i / 4][i % 4]; };
        float& value = h.at[i / 4][i % 4];
        const float fresh = fast_tanh(of(2) + sigmoid(of(0) + at(0)) * at(2));
        value = fresh + sigmoid(of(1) + at(1)) * (value - fresh);
      }
      own.scratch(q, j) = to_fragment_a(h);
    }
  }
#pragma unroll
  for (i32 i = 0; i < kRowTiles * kWidthTiles; ++i)
    own.hidden(i / kWidthTiles, i % kWidthTiles) = own.scratch(i / kWidthTiles, i % kWidthTiles);
}

// Questions of all heads, to `scratch`.
NDS_FN void ask(const Own& own, const Weights& weights) {
  layer<kWidthTiles, kWidthTiles>(
      weights.layer(Layers::query), weights.bias(Biases::query),
      [&](i32 q, i32 k) { return own.hidden(q, k); },
      [&](i32 j, Accumulator(&sum)[kRowTiles]) {
#pragma unroll
        for (i32 q = 0; q < kRowTiles; ++q) {
          for (i32 i = 0; i < 8; ++i) sum[q].at[i / 4][i % 4] *= 0.25f * kLog2E;  // 1 / sqrt(16)
          own.scratch(q, j) = to_fragment_a(sum[q]);
        }
      });
}

// Keys and values of kSpan customers.
struct Span {
  FragmentB keys[4], values[4];

  Span() = default;
  NDS_FN explicit Span(const FragmentB* from) {
#pragma unroll
    for (i32 i = 0; i < 4; ++i)
      keys[i] = load_read_only(from + 64 * i), values[i] = load_read_only(from + 64 * i + 32);
  }
};

// The questions of one head, and what they hear of the customers not yet taken.
struct Listening {
  FragmentA question[kRowTiles];
  Accumulator heard[kRowTiles];
  float whole[kRowTiles][4];
  float shift[kRowTiles][4];  // of scores, of the two rows

  // Everyone; memory: keys and values in turns. Scores as they are, or `shifted`.
  template <bool shifted> NDS_FN void listen(const Own& own, const FragmentB* memory) {
#pragma unroll
    for (i32 q = 0; q < kRowTiles; ++q) {
      heard[q] = Accumulator{};
      for (float& value : whole[q]) value = 0.0f;
    }
    Span here(memory), next;
#pragma unroll 1
    for (i32 span = 0; span < own.spans; span += 2) {
      next = Span(memory + (span + 1) * 256);
      listen_to<shifted>(here, own, span);
      if (span + 1 == own.spans) break;
      here = Span(memory + (span + 2) * 256);
      listen_to<shifted>(next, own, span + 1);
    }
  }
  template <bool shifted> NDS_FN void listen_to(const Span& some, const Own& own, i32 span) {
    u32 word[kRowTiles];
#pragma unroll
    for (i32 q = 0; q < kRowTiles; ++q) word[q] = own.taken(q, span);
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      Accumulator score[kRowTiles];
#pragma unroll
      for (i32 q = 0; q < kRowTiles; ++q) {
        if (shifted)
          mma(score[q], question[q], some.keys[i], shift[q]);
        else
          mma(score[q], question[q], some.keys[i]);
      }
      FragmentA chance[kRowTiles];
#pragma unroll
      for (i32 q = 0; q < kRowTiles; ++q) {
#pragma unroll
        for (i32 n = 0; n < 8; ++n) {
          float& s = score[q].at[n / 4][n % 4];
          s = mixed_exp2<kPolynomialOf8>(s, n);
        }
        chance[q] = to_fragment_a(score[q]);
#pragma unroll
        for (i32 n = 0; n < 4; ++n)
          chance[q].word[n] &= ~expand_signs(word[q] << (2 * i + n / 2), n % 2);
      }
#pragma unroll
      for (i32 q = 0; q < kRowTiles; ++q) {
        mma_accumulate(heard[q], chance[q], some.values[i]);
        mma_accumulate(whole[q], chance[q].word, kOnes, kOnes);
      }
    }
  }
  NDS_FN bool is_apt() const {
    bool apt = true;
#pragma unroll
    for (i32 i = 0; i < 2 * kRowTiles; ++i) apt = apt && in_range(whole[i / 2][i % 2 * 2]);
    return apt;
  }
  // Shifts by which the highest scores become 0.
  NDS_FN void find_shift(const Own& own, const FragmentB* memory) {
#pragma unroll
    for (i32 q = 0; q < kRowTiles; ++q) {
      float top[2] = {kTaken, kTaken};
#pragma unroll 1
      for (i32 tile = 0; tile < 4 * own.spans; ++tile) {
        Accumulator score;
        mma(score, question[q], load_read_only(memory + tile * 64));
        const u32 word = own.taken(q, tile / 4) << tile % 4 * 2;
#pragma unroll
        for (i32 n = 0; n < 8; ++n) {
          const u32 signs = expand_signs(word << n / 4, n % 4 / 2);
          const bool is_taken = signs >> n % 2 * 16 & 1u;
          if (!is_taken) top[n % 4 / 2] = fmaxf(top[n % 4 / 2], score.at[n / 4][n % 4]);
        }
      }
#pragma unroll
      for (i32 i = 0; i < 4; i += 2) shift[q][i] = shift[q][i + 1] = -max_over_row(top[i / 2]);
    }
  }
};

// One head: what the questions in `scratch` hear, in their place.
NDS_FN void hear(const Own& own, const FragmentB* memory, i32 head) {
  Listening it;
#pragma unroll
  for (i32 q = 0; q < kRowTiles; ++q) it.question[q] = own.scratch(q, head);
  it.listen<false>(own, memory);
  if (__ballot_sync(~0u, !it.is_apt()) != 0) {
    it.find_shift(own, memory);
    it.listen<true>(own, memory);
  }
#pragma unroll
  for (i32 q = 0; q < kRowTiles; ++q) {
#pragma unroll
    for (i32 r = 0; r < 2; ++r) {
      const float share = fast_reciprocal(it.whole[q][2 * r]);
      for (i32 i = 0; i < 4; ++i) it.heard[q].at[i / 2][2 * r + i % 2] *= share;
    }
    own.scratch(q, head) = to_fragment_a(it.heard[q]);
  }
}

// What was heard, and the residual that makes rollouts differ by their seed: from `scratch` to
// `scratch`, in the size that the pointer's scores want. Units of the residual's inner layer are
// used up 16 at a time, as they come.
NDS_FN void think(const Own& own, const Weights& weights, const FragmentA (&seed)[kRowTiles]) {
  FragmentA heard[kRowTiles][kWidthTiles];
#pragma unroll
  for (i32 i = 0; i < kRowTiles * kWidthTiles; ++i)
    heard[i / kWidthTiles][i % kWidthTiles] = own.scratch(i / kWidthTiles, i % kWidthTiles);
  layer<kWidthTiles, kWidthTiles>(
      weights.layer(Layers::combine), weights.bias(Biases::combine),
      [&](i32 q, i32 k) { return heard[q][k]; },
      [&](i32 j, const Accumulator(&sum)[kRowTiles]) {
#pragma unroll
        for (i32 q = 0; q < kRowTiles; ++q) own.scratch(q, j) = to_fragment_a(sum[q]);
      });
  Accumulator out[kWidthTiles][kRowTiles];
  const Floats4* bias = weights.bias(Biases::seed_out);
#pragma unroll
  for (i32 j = 0; j < kWidthTiles; ++j) {
    begin(out[j], bias[j * 4]);
#pragma unroll
    for (i32 q = 0; q < kRowTiles; ++q) {
      const Accumulator glimpse = to_accumulator(own.scratch(q, j));
#pragma unroll
      for (i32 i = 0; i < 8; ++i) out[j][q].at[i / 4][i % 4] += glimpse.at[i / 4][i % 4];
    }
  }
  Stream<kSeedAhead> stream(weights.layer(Layers::seed));
  bias = weights.bias(Biases::seed_in);
#pragma unroll 1
  for (i32 unit = 0; unit < kSeedTiles; ++unit) {
    Accumulator in[kRowTiles];
    begin(in, bias[unit * 4]);
#pragma unroll
    for (i32 k = 0; k <= kWidthTiles; ++k) {
      stream.give(k, [&](const FragmentB& right) {
#pragma unroll
        for (i32 q = 0; q < kRowTiles; ++q)
          mma_accumulate(in[q], k < kWidthTiles ? own.scratch(q, k % kWidthTiles) : seed[q], right);
      });
    }
    FragmentA inner[kRowTiles];
#pragma unroll
    for (i32 q = 0; q < kRowTiles; ++q) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i) {
        float& s = in[q].at[i / 4][i % 4];
        s = fmaxf(s, 0.0f);
      }
      inner[q] = to_fragment_a(in[q]);
    }
#pragma unroll
    for (i32 j = 0; j < kWidthTiles; ++j) {
      stream.give(kWidthTiles + 1 + j, [&](const FragmentB& right) {
#pragma unroll
        for (i32 q = 0; q < kRowTiles; ++q) mma_accumulate(out[j][q], inner[q], right);
      });
    }
#pragma unroll
    for (i32 i = 2 * kWidthTiles + 1; i < kSeedTurn; ++i) stream.give(i, [](const FragmentB&) {});
    stream.pass(kSeedTurn);
  }
  const float shorter = fast_sqrt(1.0f / NDS_WIDTH);
#pragma unroll
  for (i32 i = 0; i < kRowTiles * kWidthTiles; ++i) {
    Accumulator& sum = out[i % kWidthTiles][i / kWidthTiles];
#pragma unroll
    for (i32 n = 0; n < 8; ++n) sum.at[n / 4][n % 4] *= shorter;
    own.scratch(i / kWidthTiles, i % kWidthTiles) = to_fragment_a(sum);
  }
}

// What the pointer says of customers: logits, and who is drawn by them.
struct Pointing {
  const Own& own;
  const FragmentB* pointers;
  const CustomerInfo* places;
  const float* matrix;
  i32 customers;
  float steep, together;  // in units of log 2

  // Calls visit(q, r, number, logits) for every 32 customers; `level` is taken from the logits.
  template <class Visit>
  NDS_FN void each(const Row (&rows)[kRowTiles][2], const float (&level)[kRowTiles][2],
                   Visit visit) const {
    const i32 t = own.lane % 4;
    Stream<ahead_of(2 * kWidthTiles)> stream(pointers);
    const CustomerInfo* here = places + 2 * t;
#pragma unroll 1
    for (i32 number = 0; number < 2 * own.spans; ++number) {
      CustomerInfo place[8];
#pragma unroll
      for (i32 i = 0; i < 8; ++i) place[i] = here[i / 2 * 8 + i % 2];
      Accumulator score[kRowTiles][2];
#pragma unroll
      for (i32 k = 0; k < kWidthTiles; ++k) {
#pragma unroll
        for (i32 half = 0; half < 2; ++half) {
          stream.give(2 * k + half, [&](const FragmentB& right) {
#pragma unroll
            for (i32 q = 0; q < kRowTiles; ++q) {
              if (k == 0)
                mma(score[q][half], own.scratch(q, k), right);
              else
                mma_accumulate(score[q][half], own.scratch(q, k), right);
            }
          });
        }
      }
      stream.pass(2 * kWidthTiles);
      here += kPair;
#pragma unroll
      for (i32 q = 0; q < kRowTiles; ++q) {
        const u32 word = own.taken(q, number / 2) << number % 2 * 4;
#pragma unroll
        for (i32 r = 0; r < 2; ++r) {
          const Row& row = rows[q][r];
          float logits[8];
#pragma unroll
          for (i32 i = 0; i < 8; ++i) {
            const float raw = score[q][i / 4].at[i / 2 % 2][2 * r + i % 2];
            float logit = kClip * fast_tanh(raw) - level[q][r];
            if (NDS_DISTANCE_TERM) {
              const float dx = place[i].x - row.x, dy = place[i].y - row.y;
              const i32 c = number * kPair + i / 2 * 8 + 2 * t + i % 2;
              logit -=
                  steep *
                  (NDS_MATRIX ? matrix[i64(most(row.last, 0)) * customers + least(c, customers - 1)]
                              : fast_sqrt(dx * dx + dy * dy));
              if (place[i].route == row.route) logit += together;
            }
            logits[i] = word & 1u << (16 * r + i % 2 * 8 + 7 - i / 2) ? kTaken : logit;
          }
          visit(q, r, number, logits);
        }
      }
    }
  }

  // Everyone's draw by the keys of their rows; log2 of its probability is added to `chances`.
  NDS_FN void draw(const Row (&rows)[kRowTiles][2], const u32 (&keys)[kRowTiles][2],
                   i32 (&drawn)[kRowTiles][2], float (&chances)[kRowTiles][2]) const {
    float level[kRowTiles][2];
#pragma unroll
    for (i32 i = 0; i < 2 * kRowTiles; ++i) level[i / 2][i % 2] = kClip + fmaxf(together, 0.0f);
    for (bool sure = false;; sure = true) {
      Draw draws[kRowTiles][2];
#pragma unroll
      for (i32 i = 0; i < 2 * kRowTiles; ++i)
        draws[i / 2][i % 2].state = mixed(keys[i / 2][i % 2] - u32(own.lane % 4 + 1) * 0x9e3779b9u);
      each(rows, level, [&](i32 q, i32 r, i32 number, const float (&logits)[8]) {
        float weights[8];
#pragma unroll
        for (i32 i = 0; i < 8; ++i) weights[i] = fast_exp2(logits[i]);
        draws[q][r].see(weights, number);
      });
      bool apt = true;
      float chance[kRowTiles][2];
#pragma unroll
      for (i32 i = 0; i < 2 * kRowTiles; ++i) {
        Draw& one = draws[i / 2][i % 2];
        one.settle(own.lane % 4);
        one.meet(keys[i / 2][i % 2]);
        apt = apt && in_range(one.sum);
        drawn[i / 2][i % 2] = one.customer;
        chance[i / 2][i % 2] = fast_log2(one.weight[0]) - fast_log2(one.sum);
      }
      if (sure || __ballot_sync(~0u, !apt) == 0) {
#pragma unroll
        for (i32 i = 0; i < 2 * kRowTiles; ++i) chances[i / 2][i % 2] += chance[i / 2][i % 2];
        return;
      }
      // Now by the highest.
      float top[kRowTiles][2];
#pragma unroll
      for (i32 i = 0; i < 2 * kRowTiles; ++i)
        top[i / 2][i % 2] = kTaken, level[i / 2][i % 2] = 0.0f;
      each(rows, level, [&](i32 q, i32 r, i32, const float (&logits)[8]) {
#pragma unroll
        for (i32 i = 0; i < 8; ++i) top[q][r] = fmaxf(top[q][r], logits[i]);
      });
#pragma unroll
      for (i32 i = 0; i < 2 * kRowTiles; ++i) level[i / 2][i % 2] = max_over_row(top[i / 2][i % 2]);
    }
  }
};

}  // namespace NDS_ISA
}  // namespace nds

using namespace nds;

// Blocks: for each instance as many as it takes for all rollouts, if each has those of `share`
// warps; it may have more warps than that. beta, gamma: of distance and of the same route, if the
// network has them.
extern "C" __global__ void __launch_bounds__(NDS_THREADS, 1)
    decode(const FragmentB* memory, const FragmentB* pointers, const CustomerInfo* places,
           const FragmentB* rights, const float* biases, const bf16* made, const bf16* first_gates,
           const float* beta, const float* gamma, const float* matrix, const float* seeds,
           const float* uniforms, i32 customers, i32 rollouts, i32 removals, i32 parts, i32 share,
           i64* removed, float* log_probability) {
  const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const i32 b = i32(blockIdx.x) / parts;
  constexpr i32 kRollouts = 16 * kRowTiles;
  const i32 before = i32(blockIdx.x) % parts * share * kRollouts, first = before + warp * kRollouts;
  const i32 busy = least(share, (rollouts - before + kRollouts - 1) / kRollouts);  // warps
  const i32 spans = (customers + kSpan - 1) / kSpan, groups = spans * (kSpan / 16);
  auto own_of = [&](i32 number) {
    char* its = shared_memory() + number * kRowTiles * (512 * Own::kLefts + 128 * spans);
    u32* words = reinterpret_cast<u32*>(its + kRowTiles * 512 * Own::kLefts);
    return Own{reinterpret_cast<FragmentA*>(its) + lane, words, spans, lane};
  };
  const Own own = own_of(warp);

  // SharedRows beyond the last rollout do as it does, and are not written down.
  i32 rollout[kRowTiles][2], last[kRowTiles][2];
  float chances[kRowTiles][2];  // log2 of the probability so far
  FragmentA seed[kRowTiles];
  for (i32 q = 0; q < kRowTiles; ++q) {
    for (i32 k = 0; k < kWidthTiles && warp < busy; ++k) own.hidden(q, k) = FragmentA{};
    for (i32 span = 0; span < spans && warp < busy; ++span) {
      u32 word = 0;  // beyond the last customer everything is taken
      for (i32 i = 0; i < 32; ++i) {
        const i32 row = g + i / 16 * 8, c = span * kSpan + i % 16 / 2 * 8 + 2 * t + i % 2;
        if (c >= customers) word |= Own::bit(row, c);
      }
      own.words[(q * spans + span) * 32 + lane] = word;
    }
    for (i32 r = 0; r < 2; ++r) {
      rollout[q][r] = b * rollouts + least(first + 16 * q + g + 8 * r, rollouts - 1);
      last[q][r] = -1, chances[q][r] = 0.0f;
    }
    for (i32 i = 0; i < 4; ++i) {
      const i32 bit = 2 * t + i / 2 * 8;
      const float* bits = seeds + i64(rollout[q][i % 2]) * NDS_SEED_BITS;
      seed[q].word[i] = to_bf16x2(bit < NDS_SEED_BITS ? bits[bit] : 0.0f,
                                  bit + 1 < NDS_SEED_BITS ? bits[bit + 1] : 0.0f);
    }
  }
  __syncwarp();
  const float steep = NDS_DISTANCE_TERM ? *beta * fast_sqrt(float(customers)) * kLog2E : 0.0f;
  const float together = NDS_DISTANCE_TERM ? *gamma * kLog2E : 0.0f;
  const FragmentB* heads = memory + i64(b) * kWidthTiles * groups * 64 + lane;
  const FragmentB* pointers_here = pointers + i64(b) * groups * kWidthTiles * 32 + lane;
  const CustomerInfo* places_here = places + i64(b) * groups * 16;
  const Weights weights{rights + lane, reinterpret_cast<const Floats4*>(biases) + t};

  for (i32 m = 0; m < removals; ++m) {
    sync_block();
    if (warp < busy) {
      const bf16* fed[kRowTiles][2];
#pragma unroll
      for (i32 i = 0; i < 2 * kRowTiles; ++i) {
        const i64 row = i64(b) * customers + last[i / 2][i % 2];
        fed[i / 2][i % 2] = (m == 0 ? first_gates : made + row * (5 * NDS_WIDTH)) + 2 * t;
      }
      recall(own, weights, fed);
      ask(own, weights);
    }
    // All warps listen, also for others, so that each has the same to do.
    const i32 units = busy * kWidthTiles, warps = i32(blockDim.x) / 32;
    sync_block();
#pragma unroll 1
    for (i32 unit = warp; unit < units; unit += warps) {
      const i32 head = unit / busy;
      hear(own_of(unit % busy), heads + i64(head) * groups * 64, head);
    }
    sync_block();
    if (warp >= busy) continue;
    think(own, weights, seed);

    u32 keys[kRowTiles][2];
    Row rows[kRowTiles][2];
#pragma unroll
    for (i32 i = 0; i < 2 * kRowTiles; ++i) {
      const i32 q = i / 2, r = i % 2, c = last[q][r];
      const float uniform = uniforms[i64(rollout[q][r]) * removals + m];
      keys[q][r] = mixed(u32(__float_as_int(uniform)) + 0x9e3779b9u);
      const CustomerInfo place = c < 0 ? CustomerInfo{0.0f, 0.0f, -1.0f, 0.0f} : places_here[c];
      rows[q][r] = Row{c, place.x, place.y, place.route < 0.0f ? kNoRoute : place.route};
    }
    const Pointing pointing{own,       pointers_here,         places_here, matrix,
                            customers, m == 0 ? 0.0f : steep, together};
    pointing.draw(rows, keys, last, chances);
#pragma unroll
    for (i32 i = 0; i < 2 * kRowTiles; ++i) {
      const i32 q = i / 2, r = i % 2, row = g + 8 * r;
      // Weights that are no numbers draw nobody; an engine must not be given anyone twice all the
      // same.
      i32& c = last[q][r];
      while (own.word(q, row, c) & Own::bit(row, c)) c = c + 1 < customers ? c + 1 : 0;
    }
    __syncwarp();  // all have looked at what was taken before
#pragma unroll
    for (i32 i = 0; i < 2 * kRowTiles; ++i) {
      const i32 q = i / 2, r = i % 2, row = g + 8 * r, c = last[q][r];
      if (t == 0) own.word(q, row, c) |= Own::bit(row, c);
      __syncwarp();  // rows g and g + 8 have their bits in one word
      if (t == 0 && first + 16 * q + row < rollouts)
        removed[i64(rollout[q][r]) * removals + m] = c + 1;
    }
  }
#pragma unroll
  for (i32 i = 0; i < 2 * kRowTiles; ++i) {
    const i32 q = i / 2, r = i % 2;
    if (warp < busy && t == 0 && first + 16 * q + g + 8 * r < rollouts)
      log_probability[rollout[q][r]] = chances[q][r] * kLn2;
  }
}
