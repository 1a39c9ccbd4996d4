// Numbers as text, and elements.

export function number(value, decimals) {
  return value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

/** Return a number with at most `most` decimals. */
export function short(value, most = 2) {
  return value.toLocaleString("en-US", { maximumFractionDigits: most });
}

export function seconds(value) {
  if (value < 60) return `${value.toFixed(value < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(value / 60);
  return `${minutes} min ${Math.round(value - 60 * minutes)} s`;
}

export function many(value) {
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  return value >= 1e4 ? `${Math.round(value / 1e3)} k` : short(value, 0);
}

/** Return round numbers within a range, about `count` of them. */
export function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step || 0); // no -0
  return found;
}

/** Return how many decimals tell neighbouring ticks apart. */
export function decimalsOf(values) {
  const step = values.length > 1 ? values[1] - values[0] : Math.abs(values[0]) || 1;
  return Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));
}

/** Return 08:30 for 510 minutes. */
export function clock(minutes) {
  const whole = Math.round(Math.abs(minutes)), two = (part) => String(part).padStart(2, "0");
  return `${minutes < 0 && whole ? "-" : ""}${two(Math.floor(whole / 60))}:${two(whole % 60)}`;
}

const CLOCK_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720];

/** Return whole minutes or hours of a clock within a range, at most about `count` of them. */
export function clockTicks(low, high, count) {
  const rough = (high - low) / Math.max(1, count), step = CLOCK_STEPS.find((minutes) => minutes >= rough);
  if (!step) return ticks(low, high, count);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.max(0, Math.floor(high / step) - first + 1) }, (_, i) => (first + i) * step);
}

/** Return the name of a node; without names its number. */
export function nameOf(problem, node) {
  return problem.names?.[node] ?? (node ? String(node) : "depot");
}

/** Return a customer or the depot in words. */
export function nodeInWords(problem, node) {
  return problem.names || !node ? nameOf(problem, node) : `customer ${node}`;
}

/** Return text of at most so many characters. */
export function cut(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

export function svg(name, attributes = {}, text = null) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

/** Return the numbers of an SVG path or point as short text. */
export function xy(x, y) {
  return `${x.toFixed(1)},${y.toFixed(1)}`;
}
