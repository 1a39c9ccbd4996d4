// The cost of the best solution over time.

import { decimalsOf, number, short, svg, ticks, xy } from "./format.js";

const SETTLED = 0.06; // share of the elapsed time after which costs decide about the axis
const NEAR = 0.05; // largest height of the axis, as a share of the best cost
const LEAST = 0.0005; // smallest height of the axis, as a share of the best cost

export class CostCurve {
  constructor(parent) {
    this.parent = parent;
    this.whole = false;
    this.clear();
    new ResizeObserver(() => this.draw()).observe(parent);
  }

  clear() {
    Object.assign(this, { points: [], elapsed: 0, limit: null, known: null, decimals: 0 });
    this.draw();
  }

  /**
   * Return the costs at the ends of the axis. The first seconds of a search reduce the cost by far more than the rest.
   * On an axis from the first cost down, everything after them would be a flat line. So the axis begins at the cost
   * that held after a small share of the time, and near the best cost; what was above is cut off, its beginning stated.
   */
  range() {
    const costs = this.points.map((point) => point[2]), best = costs.at(-1), first = costs[0];
    let high = first;
    if (!this.whole) {
      const settled = this.points.findLast((point) => point[0] <= SETTLED * this.elapsed);
      const near = costs.find((cost) => cost <= best + NEAR * Math.abs(best));
      high = Math.min(settled ? settled[2] : first, near);
    }
    let low = best;
    const least = LEAST * Math.abs(best) || 1;
    if (this.known && best - this.known.cost < Math.max(high - best, 2 * least)) low = Math.min(low, this.known.cost);
    high = Math.max(high, low + least);
    const room = 0.08 * (high - low);
    return [low - room, high + room];
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.parent;
    if (!width || !height) return;
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "cost over time" });
    this.parent.replaceChildren(picture);
    if (!this.points.length) {
      picture.append(svg("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "no solution yet"));
      return;
    }
    const [low, high] = this.range(), end = Math.max(this.elapsed, this.limit ?? 0, 0.1);
    const marks = ticks(low, high, Math.max(3, height / 45)), decimals = decimalsOf(marks);
    const widest = Math.max(...marks.map((mark) => number(mark, decimals).length));
    const left = 12 + 6.4 * widest, right = width - 54, top = 8, bottom = height - 20;
    const x = (seconds) => left + ((right - left) * seconds) / end;
    const y = (cost) => bottom - ((bottom - top) * (cost - low)) / (high - low);
    const best = this.points.at(-1)[2];
    for (const mark of marks) {
      picture.append(svg("line", { class: "grid", x1: left, x2: right, y1: y(mark), y2: y(mark) }));
      picture.append(svg("text", { x: left - 6, y: y(mark) + 4, "text-anchor": "end" }, number(mark, decimals)));
      const gap = (100 * (mark - best)) / Math.abs(best || 1);
      const clear = Math.abs(y(mark) - y(best)) > 13;
      if (gap > 0 && clear) picture.append(svg("text", { x: right + 5, y: y(mark) + 4 }, `+${short(gap, gap < 1 ? 2 : gap < 10 ? 1 : 0)}%`));
    }
    for (const mark of ticks(0, end, width / 90)) {
      picture.append(svg("text", { x: x(mark), y: height - 4, "text-anchor": "middle" }, `${short(mark)} s`));
    }
    picture.append(svg("text", { class: "strong", x: right + 5, y: y(best) + 4 }, "best"));
    this.drawLine(picture, x, y, { left, right, top, bottom }, high);
    if (this.known && this.known.cost >= low) {
      const at = y(this.known.cost);
      picture.append(svg("line", { class: "known", x1: left, x2: right, y1: at, y2: at }));
      const text = `best known ${number(this.known.cost, this.decimals)}`;
      const close = at > y(best) + 1 && at < y(best) + 18; // no room between the line and the curve
      picture.append(svg("text", { class: "known", x: right - 4, y: close ? at + 12 : at - 5, "text-anchor": "end" }, text));
    }
  }

  drawLine(picture, x, y, { left, right, top, bottom }, high) {
    const clip = svg("clipPath", { id: "plot" });
    clip.append(svg("rect", { x: left, y: top - 2, width: right - left + 2, height: bottom - top + 4 }));
    let path = "", last = null;
    for (const [seconds, , cost] of this.points) {
      path += last === null ? `M${xy(x(seconds), y(cost))}` : `H${x(seconds).toFixed(1)}V${y(cost).toFixed(1)}`;
      last = cost;
    }
    const now = Math.max(this.elapsed, this.points.at(-1)[0]);
    path += `H${x(now).toFixed(1)}`;
    const drawn = svg("g", { "clip-path": "url(#plot)" });
    const first = x(this.points[0][0]).toFixed(1);
    drawn.append(svg("path", { class: "area", d: `${path}V${bottom}H${first}Z` }), svg("path", { class: "cost", d: path }));
    drawn.append(svg("circle", { cx: x(now), cy: y(last), r: 3.5, fill: "var(--accent)" }));
    picture.append(clip, drawn);
    const start = this.points[0][2];
    if (start > high) {
      const visible = x(this.points.find((point) => point[2] <= high)[0]); // beside the line, where there is room
      const text = `↑ from ${number(start, this.decimals)}`;
      picture.append(svg("text", { x: visible < right - 120 ? visible + 8 : left + 8, y: top + 9 }, text));
    }
  }
}
