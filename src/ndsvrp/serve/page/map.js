// The map: routes on a canvas, with zoom, drag and selection.

import { colour } from "./colours.js";
import { clock, cut, nameOf, nodeInWords, short } from "./format.js";

const FLASH = 900; // milliseconds that new legs are emphasised

export class RouteMap {
  constructor(canvas, tip, onSelect) {
    Object.assign(this, { canvas, tip, onSelect, problem: null, routes: [], numbers: [], selected: null });
    this.routeOf = new Map();
    this.reset();
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    canvas.addEventListener("dblclick", () => { this.reset(); this.draw(); });
  }

  reset() {
    this.zoom = 1;
    this.shift = [0, 0];
  }

  setProblem(problem) {
    this.problem = problem;
    this.reset();
    this.setRoutes([], []);
    const points = problem?.coordinates;
    if (points) {
      const ys = points.map((point) => point[1]);
      // A degree of longitude is shorter than one of latitude.
      const middle = (ys.reduce((sum, y) => sum + y, 0) / ys.length) * (Math.PI / 180);
      this.stretch = problem.geographic ? Math.max(0.01, Math.cos(middle)) : 1;
      const xs = points.map((point) => point[0] * this.stretch);
      const extent = (values) => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);
      this.box = [extent(xs), extent(ys)];
    }
    this.draw();
  }

  setRoutes(routes, numbers) {
    const before = this.legs ?? new Set();
    this.legs = new Set();
    this.fresh = new Set();
    this.routeOf = new Map();
    routes.forEach((route, index) => {
      let last = 0;
      for (const stop of [...route.stops, 0]) {
        if (stop) this.routeOf.set(stop, index);
        const leg = last < stop ? `${last}-${stop}` : `${stop}-${last}`;
        this.legs.add(leg);
        if (last && stop && before.size && !before.has(leg)) this.fresh.add(leg);
        last = stop;
      }
    });
    Object.assign(this, { routes, numbers });
    this.changed = performance.now();
    if (this.selected !== null && this.selected >= routes.length) this.selected = null;
    this.draw();
  }

  select(index) {
    this.selected = index;
    this.draw();
  }

  /** Return the position of a node on the canvas, in CSS pixels. */
  place(node) {
    const { clientWidth: width, clientHeight: height } = this.canvas, [[x0, x1], [y0, y1]] = this.box, margin = 28;
    const scale = Math.min((width - 2 * margin) / (x1 - x0 || 1), (height - 2 * margin) / (y1 - y0 || 1)) * this.zoom;
    const [x, y] = this.problem.coordinates[node];
    return [
      width / 2 + (x * this.stretch - (x0 + x1) / 2) * scale + this.shift[0],
      height / 2 - (y - (y0 + y1) / 2) * scale + this.shift[1],
    ];
  }

  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame((now) => {
      this.pending = 0;
      this.paint(now);
    });
  }

  paint(now) {
    const { canvas } = this, ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width || !height) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    if (!this.problem?.coordinates) return;
    this.places = this.problem.coordinates.map((_, node) => this.place(node));
    const style = getComputedStyle(document.documentElement);
    this.inks = Object.fromEntries(["ink", "paper", "node", "faint"].map((name) => [name, style.getPropertyValue(`--${name}`)]));
    const order = this.routes.map((_, index) => index).filter((index) => index !== this.selected);
    for (const index of order) this.paintRoute(pen, index);
    this.paintFresh(pen, now);
    this.paintNodes(pen);
    if (this.selected !== null) this.paintRoute(pen, this.selected);
    this.paintDepot(pen);
  }

  paintRoute(pen, index) {
    const stops = this.routes[index].stops, isSelected = index === this.selected;
    const dim = this.selected !== null && !isSelected ? 0.28 : 1, n = this.places.length;
    pen.strokeStyle = colour(this.numbers[index]);
    pen.lineJoin = "round";
    pen.lineWidth = isSelected ? 3.2 : n > 2000 ? 1 : 1.7;
    pen.globalAlpha = dim;
    pen.beginPath();
    stops.forEach((stop, i) => (i ? pen.lineTo(...this.places[stop]) : pen.moveTo(...this.places[stop])));
    pen.stroke();
    // Legs of the depot are faint: drawn fully, they would hide the middle of the map.
    pen.globalAlpha = (isSelected ? 0.9 : n > 2000 ? 0.12 : 0.3) * dim;
    pen.lineWidth = isSelected ? 2 : 1;
    pen.beginPath();
    for (const stop of [stops[0], stops.at(-1)]) {
      pen.moveTo(...this.places[0]);
      pen.lineTo(...this.places[stop]);
    }
    pen.stroke();
    pen.globalAlpha = 1;
    if (!isSelected) return;
    pen.fillStyle = colour(this.numbers[index]);
    pen.strokeStyle = this.inks.paper;
    for (const stop of stops) this.disc(pen, stop, 5, true);
    this.paintLabels(pen, stops);
  }

  /** Write the numbers of stops, but for those that would cover another. */
  paintLabels(pen, stops) {
    pen.font = "600 11px system-ui, sans-serif";
    pen.lineWidth = 3;
    pen.fillStyle = this.inks.ink;
    const written = [];
    for (const stop of stops) {
      const [x, y] = this.places[stop];
      if (written.some(([wx, wy]) => Math.abs(wx - x) < 24 && Math.abs(wy - y) < 12)) continue;
      written.push([x, y]);
      const text = cut(nameOf(this.problem, stop), 16);
      pen.strokeText(text, x + 7, y - 5);
      pen.fillText(text, x + 7, y - 5);
    }
  }

  /** Emphasise legs that the last solution did not have. */
  paintFresh(pen, now) {
    const left = 1 - (now - this.changed) / FLASH;
    if (left <= 0 || !this.fresh.size || this.fresh.size > 400) return;
    pen.strokeStyle = this.inks.ink;
    pen.globalAlpha = 0.55 * left;
    pen.lineWidth = 3;
    pen.beginPath();
    for (const leg of this.fresh) {
      const [from, to] = leg.split("-");
      pen.moveTo(...this.places[from]);
      pen.lineTo(...this.places[to]);
    }
    pen.stroke();
    pen.globalAlpha = 1;
    this.draw();
  }

  paintNodes(pen) {
    const n = this.places.length, radius = n > 5000 ? 0.9 : n > 1500 ? 1.4 : n > 400 ? 2 : 2.8;
    const known = this.routes.length > 0;
    pen.globalAlpha = this.selected === null ? 1 : 0.35;
    for (let node = 1; node < n; node++) {
      const route = this.routeOf.get(node), unserved = known && route === undefined;
      pen.fillStyle = route === undefined ? this.inks.node : colour(this.numbers[route]);
      pen.strokeStyle = this.inks.faint;
      if (unserved) {
        pen.beginPath();
        pen.arc(...this.places[node], radius + 0.6, 0, 2 * Math.PI);
        pen.lineWidth = 1;
        pen.stroke(); // hollow: in no route
      } else this.disc(pen, node, radius, false);
    }
    pen.globalAlpha = 1;
  }

  disc(pen, node, radius, outlined) {
    pen.beginPath();
    pen.arc(...this.places[node], radius, 0, 2 * Math.PI);
    pen.fill();
    pen.lineWidth = 1.5;
    if (outlined) pen.stroke();
  }

  paintDepot(pen) {
    const [x, y] = this.places[0];
    pen.fillStyle = this.inks.ink;
    pen.strokeStyle = this.inks.paper;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.rect(x - 6, y - 6, 12, 12);
    pen.fill();
    pen.stroke();
  }

  wheel(event) {
    event.preventDefault();
    const factor = Math.exp(-event.deltaY * 0.0015), zoom = Math.min(200, Math.max(0.5, this.zoom * factor));
    const { clientWidth: width, clientHeight: height } = this.canvas, used = zoom / this.zoom;
    const [x, y] = [event.offsetX - width / 2, event.offsetY - height / 2];
    this.shift = [x - (x - this.shift[0]) * used, y - (y - this.shift[1]) * used];
    this.zoom = zoom;
    this.draw();
  }

  press(event) {
    this.held = { x: event.offsetX, y: event.offsetY, shift: this.shift, moved: false };
    this.canvas.setPointerCapture(event.pointerId);
  }

  move(event) {
    if (this.held) {
      const dx = event.offsetX - this.held.x, dy = event.offsetY - this.held.y;
      this.held.moved ||= Math.hypot(dx, dy) > 3;
      if (this.held.moved) {
        this.shift = [this.held.shift[0] + dx, this.held.shift[1] + dy];
        this.tip.hidden = true;
        this.draw();
      }
      return;
    }
    const node = this.nearest(event.offsetX, event.offsetY);
    this.tip.hidden = node === null;
    if (node === null) return;
    this.tip.textContent = this.describe(node);
    const right = event.offsetX > this.canvas.clientWidth - 190;
    this.tip.style.left = right ? "" : `${event.offsetX + 14}px`;
    this.tip.style.right = right ? `${this.canvas.clientWidth - event.offsetX + 14}px` : "";
    this.tip.style.top = `${event.offsetY + 12}px`;
  }

  release(event) {
    const moved = this.held?.moved;
    this.held = null;
    if (moved) return;
    const node = this.nearest(event.offsetX, event.offsetY);
    this.onSelect(node ? this.routeOf.get(node) ?? null : null);
  }

  nearest(x, y) {
    let best = null, closest = 12 * 12;
    this.places?.forEach(([px, py], node) => {
      const far = (px - x) ** 2 + (py - y) ** 2;
      if (far < closest) [best, closest] = [node, far];
    });
    return best;
  }

  describe(node) {
    const { demand, windows, service, prize } = this.problem, lines = [nodeInWords(this.problem, node)];
    if (node) lines.push(`demand ${short(demand[node])}`);
    const time = this.problem.clock_times ? clock : short;
    if (windows) lines.push(`${node ? "window" : "open"} ${time(windows[node][0])} – ${time(windows[node][1])}`);
    if (node && service?.[node]) lines.push(`service ${short(service[node])}`);
    if (node && prize) lines.push(prize[node] ? `prize ${short(prize[node])}` : "required");
    const route = this.routeOf.get(node);
    if (node && this.routes.length) lines.push(route === undefined ? "in no route" : `route ${route + 1}`);
    return lines.join("\n");
  }
}
