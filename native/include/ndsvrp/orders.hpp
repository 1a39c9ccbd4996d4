// Insertion orders: random, sorted, or that of the ruin.
#pragma once
#include "rng.hpp"
#include "state.hpp"

namespace nds::inline NDS_ISA {

NDS_FN void shuffle(i32* items, i32 count, Random random) {
  for (i32 i = count - 1; i > 0; --i) {
    const i32 j = random.below(i + 1), held = items[i];
    items[i] = items[j];
    items[j] = held;
  }
}

NDS_FN void sort_by(const i32* rank, i32* items, i32 count) {
  for (i32 i = 1; i < count; ++i) {
    const i32 c = items[i];
    i32 j = i;
    for (; j > 0 && rank[items[j - 1]] > rank[c]; --j) items[j] = items[j - 1];
    items[j] = c;
  }
}

// The same with a lane per item: returns the index of the item that comes to the lane's place. All lanes draw at once,
// then each follows the swaps.
NDS_FN i32 shuffled(i32 count, const Random& random, auto lanes) {
  const i32 i = lanes.lane;
  i32 drawn = 0, place = i;
  if (i > 0 && i < count) drawn = Random{random.key, random.counter + u64(count - 1 - i)}.below(i + 1);
  for (i32 k = 1; k < count; ++k) {
    const i32 other = lanes.from(drawn, k);
    place = place == k ? other : place == other ? k : place;
  }
  return place;
}

NDS_FN i32 sorted_by(const i32* rank, const i32* items, i32* order, i32 count, auto lanes) {
  const bool there = lanes.lane < count;
  const i32 mine = there ? rank[items[lanes.lane]] : 0;
  i32 place = 0;
  for (i32 k = 0; k < count; ++k) {
    const i32 other = lanes.from(mine, k);
    place += (other < mine) | ((other == mine) & (k < lanes.lane));
  }
  if (there) order[place] = lanes.lane;
  lanes.sync();
  return there ? order[lanes.lane] : 0;
}

// Insertion orders are that of the ruin first and random ones after it, or, sorted, one of the sort orders of SISRs
// drawn by weight. Returns the number of that sort order, or 0.
NDS_FN i32 draw_sort(const Instance& in, const Recipe& recipe, Random& random) {
  i32 sort = 0;
  if (recipe.sorted_orders) {
    i32 total = 0;
    for (i32 k = 0; k <= in.sorts; ++k) total += in.sort_weight[k];
    i32 draw = random.below(total);
    while (draw >= in.sort_weight[sort]) draw -= in.sort_weight[sort++];
  }
  return sort;
}

// Insertion order `number` with a lane per customer: returns the index of the lane's customer among the removed.
NDS_FN i32 arranged(const Instance& in, const Recipe& recipe, const i32* removed, i32 count, i32 number, i32* order,
                    Random& random, auto lanes) {
  const i32 sort = draw_sort(in, recipe, random);
  if (sort > 0) return sorted_by(in.rank + i64(sort - 1) * (in.n + 1), removed, order, count, lanes);
  if (!recipe.sorted_orders && number == 0) return lanes.lane < count ? lanes.lane : 0;
  const i32 index = shuffled(count, random, lanes);
  random.counter += u64(most(0, count - 1));  // draws of the shuffle
  return lanes.lane < count ? index : 0;
}

NDS_FN void arrange(const Instance& in, const Recipe& recipe, const i32* removed, i32 count, i32 number, i32* order,
                    Random& random, auto lanes) {
  if constexpr (lanes.W > 1) {
    if (count <= lanes.W) {
      const i32 index = arranged(in, recipe, removed, count, number, order, random, lanes);
      lanes.sync();
      if (lanes.lane < count) order[lanes.lane] = removed[index];
      lanes.sync();
      return;
    }
  }
  for (i32 i = lanes.lane; i < count; i += lanes.W) order[i] = removed[i];
  const i32 sort = draw_sort(in, recipe, random);
  lanes.sync();
  if (sort > 0) {
    if (lanes.leads()) sort_by(in.rank + i64(sort - 1) * (in.n + 1), order, count);
  } else if (recipe.sorted_orders || number > 0) {
    if (lanes.leads()) shuffle(order, count, random);
    random.counter += u64(most(0, count - 1));
  }
  lanes.sync();
}

}  // namespace nds::inline NDS_ISA
