// One route in detail: times and windows of its stops, or its load over the distance.

import { clock, clockTicks, cut, element, nameOf, nodeInWords, number, short, svg, ticks, xy } from "./format.js";

const ROW = 17, LEFT = 96, TOP = 22;

/** Return a picture of a route. */
export function timeline(problem, route, colour, width) {
  const picture = problem.windows ? schedule(problem, route, width) : loads(problem, route, width);
  picture.style.setProperty("--colour", colour);
  return picture;
}

export function legend(problem) {
  const entry = (css, text) => {
    const sample = element("i");
    sample.style.cssText = css;
    return element("span", {}, sample, text);
  };
  const entries = problem.windows
    ? [
        entry("background: var(--good); opacity: .35", "window for the start of service"),
        entry("border-bottom: 2px dotted var(--wait)", "waiting"),
        entry("background: var(--accent)", "service"),
      ]
    : [entry("background: var(--accent); opacity: .35", "load over the distance travelled")];
  return element("span", { className: "legend" }, ...entries);
}

/** Return a time of a route: of a clock, or with as many decimals as its duration needs. */
export function times(problem, route, value) {
  return problem.clock_times ? clock(value) : span(route, value);
}

function span(route, value) {
  const duration = route.arrival.at(-1) - route.departure;
  return short(value, duration > 100 ? 1 : duration > 10 ? 2 : 3);
}

function axis(picture, x, low, high, top, bottom, width, hours = false) {
  for (const mark of (hours ? clockTicks : ticks)(low, high, width / 110)) {
    picture.append(svg("line", { class: "grid", x1: x(mark), x2: x(mark), y1: top, y2: bottom }));
    picture.append(svg("text", { x: x(mark), y: top - 7, "text-anchor": "middle" }, hours ? clock(mark) : short(mark)));
  }
}

function schedule(problem, route, width) {
  const { stops, arrival, start } = route, time = (value) => times(problem, route, value), height = TOP + ROW * (stops.length + 1) + 4, back = arrival.at(-1);
  const low = route.departure, high = Math.max(back, low + 1e-9);
  const x = (at) => LEFT + ((width - LEFT - 70) * (at - low)) / (high - low);
  const inside = (at) => Math.min(width - 62, Math.max(LEFT, x(at)));
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, height });
  axis(picture, x, low, high, TOP, height, width, problem.clock_times);
  let left = low, before = TOP;
  stops.forEach((stop, i) => {
    const y = TOP + ROW * i + 2, middle = y + (ROW - 4) / 2, service = problem.service?.[stop] ?? 0;
    const [ready, due] = problem.windows[stop];
    picture.append(svg("path", { class: "travel", d: `M${xy(x(left), before)}L${xy(x(arrival[i]), middle)}` }));
    if (due >= low) {
      picture.append(
        svg("rect", { class: "window", x: inside(ready), y, width: Math.max(1, inside(due) - inside(ready)), height: ROW - 4 }),
      );
    }
    if (start[i] > arrival[i]) {
      picture.append(svg("path", { class: "waiting", d: `M${xy(x(arrival[i]), middle)}H${x(start[i]).toFixed(1)}` }));
    }
    const done = start[i] + service;
    const bar = svg("rect", { class: "service", x: x(start[i]), y: y + 2, width: Math.max(3, x(done) - x(start[i])), height: ROW - 8, rx: 2 });
    const slack = due - start[i];
    bar.append(svg("title", {}, `${nodeInWords(problem, stop)}: arrives ${time(arrival[i])}, starts ${time(start[i])}, leaves ${time(done)}, slack ${span(route, slack)}`));
    picture.append(bar);
    picture.append(svg("text", { x: 4, y: middle + 4 }, cut(nodeInWords(problem, stop), 15)));
    picture.append(svg("text", { x: width - 4, y: middle + 4, "text-anchor": "end" }, time(start[i])));
    [left, before] = [done, middle];
  });
  const y = TOP + ROW * stops.length + ROW / 2;
  picture.append(svg("path", { class: "travel", d: `M${xy(x(left), before)}L${xy(x(back), y)}` }));
  picture.append(svg("text", { x: 4, y: y + 4 }, cut(nameOf(problem, 0), 15)));
  picture.append(svg("text", { x: width - 4, y: y + 4, "text-anchor": "end" }, time(back)));
  return picture;
}

function loads(problem, route, width) {
  const height = 132, top = TOP, bottom = height - 26, { stops, legs } = route, total = legs.reduce((a, b) => a + b, 0);
  const x = (distance) => LEFT + ((width - LEFT - 24) * distance) / (total || 1);
  const y = (load) => bottom - ((bottom - top) * load) / problem.capacity;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, height });
  axis(picture, x, 0, total, top, bottom, width);
  for (const mark of [0, problem.capacity]) {
    picture.append(svg("line", { class: "axis", x1: LEFT, x2: x(total), y1: y(mark), y2: y(mark) }));
    picture.append(svg("text", { x: LEFT - 6, y: y(mark) + 4, "text-anchor": "end" }, short(mark)));
  }
  picture.append(svg("text", { x: 4, y: top - 7 }, "distance"), svg("text", { x: 4, y: (top + bottom) / 2 + 4 }, "load"));
  let load = route.load, distance = 0, path = `M${xy(x(0), y(load))}`, labelled = -Infinity;
  stops.forEach((stop, i) => {
    distance += legs[i];
    load -= problem.demand[stop];
    path += `H${x(distance).toFixed(1)}V${y(load).toFixed(1)}`;
    const mark = svg("circle", { cx: x(distance), cy: bottom, r: 3.5, class: "service" });
    mark.append(svg("title", {}, `${nodeInWords(problem, stop)}: demand ${short(problem.demand[stop])}, after ${short(distance)}`));
    picture.append(mark);
    const name = cut(nameOf(problem, stop), 12);
    if (x(distance) - labelled > 12 + 6 * name.length) {
      labelled = x(distance);
      picture.append(svg("text", { x: labelled, y: bottom + 17, "text-anchor": "middle" }, name));
    }
  });
  path += `H${x(total).toFixed(1)}`;
  picture.append(
    svg("path", { class: "onboard", d: `${path}V${bottom}H${LEFT}Z` }), svg("path", { class: "loadline", d: path }),
  );
  return picture;
}

/** Return the heading of a route. */
export function describe(problem, route, index) {
  const parts = [`Route ${index + 1}`, `${route.stops.length} stop${route.stops.length === 1 ? "" : "s"}`, `load ${short(route.load)} of ${short(problem.capacity)}`];
  parts.push(`distance ${number(route.distance, Math.min(problem.decimals, 2))}`);
  if (problem.windows) parts.push(`back at ${times(problem, route, route.arrival.at(-1))}`);
  return parts.join(" · ");
}
