// The view of one job: map, cost, routes, timeline.

import { download, follow, getJson, request } from "./api.js";
import { assignColours, colour } from "./colours.js";
import { CostCurve } from "./curve.js";
import { element, many, number, seconds, short } from "./format.js";
import { RouteMap } from "./map.js";
import { fillRoutes } from "./routes.js";
import { describe, legend, timeline } from "./timeline.js";

const part = (id) => document.getElementById(id);
const REDRAW = 400; // milliseconds between two updates of a long table

export class JobView {
  constructor(onChange, onCost) {
    Object.assign(this, { onChange, onCost, selected: null, numberOf: new Map() });
    this.map = new RouteMap(part("map").querySelector("canvas"), part("tip"), (index) => this.select(index));
    this.curve = new CostCurve(part("curve"));
    part("cancel").addEventListener("click", () => request(`/jobs/${this.job.id}/cancel`, { method: "POST" }));
    part("close-timeline").addEventListener("click", () => this.select(null));
    part("zoom").addEventListener("click", () => {
      this.curve.whole = !this.curve.whole;
      part("zoom").setAttribute("aria-pressed", String(this.curve.whole));
      this.curve.draw();
    });
    new ResizeObserver(() => this.drawTimeline()).observe(part("timeline-body"));
    setInterval(() => this.tick(), 250);
  }

  async open(id) {
    this.following?.abort();
    const stop = (this.following = new AbortController());
    const [job, problem] = await Promise.all([getJson(`/jobs/${id}`), getJson(`/jobs/${id}/problem`)]);
    if (stop.signal.aborted) return;
    Object.assign(this, { job, problem, incumbent: null, progress: null, selected: null, heard: 0 });
    part("empty").hidden = true;
    part("job").hidden = false;
    this.map.setProblem(this.problem);
    part("map-note").textContent = !this.problem.coordinates
      ? "The problem has no coordinates."
      : this.problem.estimated ? "Positions are estimated from the distances." : "";
    this.numberOf.clear();
    this.begin();
    this.showJob();
    follow(`/jobs/${id}/events`, (kind, data) => !stop.signal.aborted && this.hear(kind, data), stop.signal).catch((error) => {
      part("message").textContent = error.message;
      part("message").hidden = false;
    });
  }

  begin() {
    this.curve.clear();
    Object.assign(this.curve, { known: this.problem.best_known, decimals: this.problem.decimals });
    this.curve.limit = this.job.options.time ?? (this.job.options.iterations ? null : 30);
    this.showRoutes();
  }

  hear(kind, data) {
    if (kind === "open") this.curve.points = []; // the service repeats the course
    if (kind === "job") {
      if (data.attempts !== this.job.attempts && this.incumbent) this.begin();
      this.job = data;
    }
    if (kind === "points") this.curve.points.push(...data);
    if (kind === "progress") Object.assign(this, { progress: data, heard: performance.now() });
    if (kind === "incumbent") {
      this.incumbent = data;
      this.showRoutes();
    }
    if (kind === "end") {
      this.job = data;
      this.onChange();
    }
    document.body.dataset.lost = String(kind === "lost");
    this.showJob();
  }

  /** Return the seconds of the search by now. */
  elapsed() {
    const last = this.curve.points.at(-1)?.[0] ?? 0;
    if (this.job.state !== "running") {
      const limit = this.job.options.time;
      return Math.max(last, Math.min(this.progress?.seconds ?? last, limit ?? Infinity));
    }
    const since = this.heard ? (performance.now() - this.heard) / 1000 : 0;
    return Math.max(last, Math.min((this.progress?.seconds ?? 0) + since, this.curve.limit ?? Infinity));
  }

  tick() {
    if (this.job?.state === "running") this.showJob();
  }

  showJob() {
    const { job, problem } = this, elapsed = this.elapsed(), cost = this.curve.points.at(-1)?.[2] ?? job.cost;
    part("name").textContent = job.name;
    part("state").textContent = job.state;
    part("state").className = `badge ${job.state}`;
    const facts = [problem.variant, `${problem.customers.toLocaleString("en-US")} customers`];
    if (problem.demand.some(Boolean)) facts.push(`capacity ${short(problem.capacity)}`);
    if (problem.vehicles) facts.push(`at most ${problem.vehicles} vehicles`);
    part("facts").textContent = [...facts, `seed ${job.options.seed}`].join(" · ");
    const numbers = [["cost", cost === null ? "–" : number(cost, problem.decimals), "main"]];
    if (problem.best_known && cost !== null) {
      const gap = (100 * (cost - problem.best_known.cost)) / problem.best_known.cost;
      numbers.push([`to the best known (${problem.best_known.date})`, `${gap < 0 ? "−" : "+"}${number(Math.abs(gap), 2)}%`]);
    }
    if (this.incumbent) {
      numbers.push(["routes", short(this.incumbent.routes.length)]);
      if (problem.prize) numbers.push(["unserved", short(this.incumbent.unserved.length)]);
      if (problem.prize) numbers.push(["lost prizes", number(this.incumbent.lost_prizes, Math.min(2, problem.decimals))]);
      if (this.incumbent.vehicle_costs) numbers.push(["vehicle costs", number(this.incumbent.vehicle_costs, Math.min(2, problem.decimals))]);
    }
    numbers.push(["seconds", this.curve.limit && job.state === "running" ? `${elapsed.toFixed(1)} of ${short(this.curve.limit)}` : seconds(elapsed)]);
    if (this.progress) {
      numbers.push(["reconstructions", many(this.progress.reconstructions)]);
      if (this.progress.unserved) numbers.push(["customers without a route", short(this.progress.unserved)]);
    }
    part("numbers").replaceChildren(
      ...numbers.map(([name, value, main]) =>
        element("div", { className: main ?? "" }, element("dt", { textContent: name }), element("dd", { textContent: value }))),
    );
    const share = this.curve.limit ? elapsed / this.curve.limit : 0;
    part("bar").firstElementChild.style.width = job.state === "running" ? `${100 * Math.min(1, share)}%` : "0";
    part("bar").style.visibility = job.state === "running" ? "" : "hidden";
    part("cancel").hidden = !["queued", "running"].includes(job.state) || !this.canStop;
    const told = job.error ? [job.error] : job.warnings ?? [];
    part("message").textContent = told.join("\n");
    part("message").className = job.error ? "error" : "warning";
    part("message").hidden = told.length === 0;
    this.showDownloads();
    this.onCost(job.id, cost);
    this.curve.elapsed = elapsed;
    this.curve.draw();
  }

  showDownloads() {
    const key = `${this.job.id} ${this.job.forms}`;
    if (this.shownForms === key) return;
    this.shownForms = key;
    part("downloads").replaceChildren(
      ...(this.job.forms.length ? [element("span", { className: "faint", textContent: "Download" })] : []),
      ...this.job.forms.map((form) => {
        const button = element("button", { type: "button", textContent: `.${form}` });
        button.addEventListener("click", () => download(`/jobs/${this.job.id}/result?form=${form}`));
        return button;
      }),
    );
  }

  showRoutes() {
    const routes = this.incumbent?.routes ?? [];
    const numbers = (this.numbers = assignColours(routes, this.numberOf));
    if (this.selected !== null) this.selected = this.sameRoute(numbers);
    this.numberOf = new Map(routes.flatMap((route, index) => route.stops.map((stop) => [stop, numbers[index]])));
    this.map.selected = this.selected;
    this.map.setRoutes(routes, numbers);
    clearTimeout(this.later);
    if (routes.length > 200 && performance.now() - (this.filled ?? 0) < REDRAW) {
      this.later = setTimeout(() => this.fill(), REDRAW);
    } else this.fill();
  }

  /** Return the index of the route that has the colour of the selected one, null if there is none. */
  sameRoute(numbers) {
    const index = numbers.indexOf(this.selectedNumber);
    return index < 0 ? null : index;
  }

  fill() {
    this.filled = performance.now();
    const routes = this.incumbent?.routes ?? [];
    const table = part("routes").querySelector("table");
    this.rows = fillRoutes(table, this.problem, routes, this.numbers, this.selected, (index) => this.select(index));
    this.drawTimeline();
  }

  select(index) {
    this.selected = index;
    this.selectedNumber = index === null ? null : this.numbers[index];
    this.map.select(index);
    this.fill();
    this.rows[index]?.scrollIntoView({ block: "nearest" });
  }

  drawTimeline() {
    const route = this.selected === null ? null : this.incumbent?.routes[this.selected];
    part("timeline").hidden = !route;
    if (!route) return;
    part("timeline-title").replaceChildren(describe(this.problem, route, this.selected), legend(this.problem));
    const width = Math.max(300, part("timeline").clientWidth - 26);
    part("timeline-body").replaceChildren(timeline(this.problem, route, colour(this.numbers[this.selected]), width));
  }
}
