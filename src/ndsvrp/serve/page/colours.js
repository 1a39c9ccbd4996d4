// Colours of routes. A route keeps its colour while its customers change.

const dark = matchMedia("(prefers-color-scheme: dark)");

/** Return colour number i: hues advance by the golden angle, lightness alternates, as in the pictures of ndsvrp.plot. */
export function colour(i) {
  const lightness = [0.58, 0.7, 0.48][i % 3] + (dark.matches ? 0.14 : 0), chroma = [0.15, 0.13, 0.12][i % 3];
  return `oklch(${lightness.toFixed(2)} ${chroma} ${(255 + 137.50776 * i) % 360})`;
}

/**
 * Return a number of a colour for each route, given the colour number of each customer in the last solution.
 * Routes with most customers of one colour choose first; others get the smallest free number.
 */
export function assignColours(routes, before) {
  const wishes = [];
  routes.forEach((route, index) => {
    const votes = new Map();
    for (const customer of route.stops) {
      const last = before.get(customer);
      if (last !== undefined) votes.set(last, (votes.get(last) ?? 0) + 1);
    }
    for (const [number, count] of votes) wishes.push({ index, number, count });
  });
  wishes.sort((a, b) => b.count - a.count || a.index - b.index);
  const chosen = new Array(routes.length).fill(-1), taken = new Set();
  for (const { index, number } of wishes) {
    if (chosen[index] < 0 && !taken.has(number)) {
      chosen[index] = number;
      taken.add(number);
    }
  }
  let free = 0;
  return chosen.map((number) => {
    if (number >= 0) return number;
    while (taken.has(free)) free++;
    taken.add(free);
    return free;
  });
}
