// The list of jobs, and the form that adds one.

import { getJson, request } from "./api.js";
import { ColumnChoice } from "./columns.js";
import { element, short } from "./format.js";

const POLL = 2000; // milliseconds

export class JobList {
  constructor(list, onOpen, onTrouble) {
    Object.assign(this, { list, onOpen, onTrouble, current: null, timer: 0 });
  }

  async refresh() {
    clearTimeout(this.timer);
    try {
      this.show(await getJson("/jobs?limit=50"));
      this.onTrouble("");
    } catch (error) {
      this.onTrouble(error.status ? error.message : "The service does not answer.");
    }
    this.timer = setTimeout(() => this.refresh(), POLL);
  }

  show(jobs) {
    this.jobs = jobs;
    this.list.replaceChildren(...jobs.map((job) => this.row(job)));
  }

  /** Show a cost that is newer than the list. */
  showCost(id, cost) {
    const shown = this.list.querySelector(`[data-id="${id}"]`);
    if (shown && cost !== null) shown.textContent = short(cost, 2);
  }

  row(job) {
    const words = { queued: "waits", failed: "failed" };
    const cost = element("span", { textContent: job.cost === null ? words[job.state] ?? "" : short(job.cost, 2) });
    cost.dataset.id = job.id;
    const button = element(
      "button", { type: "button", title: `${job.file}, ${job.state}` },
      element("span", { className: `dot ${job.state}` }),
      element("span", { className: "name", textContent: job.name }),
      cost,
      element(
        "span", { className: "more" },
        element("span", { textContent: `${job.variant}, ${job.customers.toLocaleString("en-US")} customers` }),
        element("span", { textContent: new Date(1000 * job.created).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) }),
      ),
    );
    button.setAttribute("aria-current", String(job.id === this.current));
    button.addEventListener("click", () => this.onOpen(job.id));
    return element("li", {}, button);
  }
}

/** Connect the form: a file that is dropped or chosen becomes a job. */
export function connectForm(form, limits, onAdded) {
  const part = (id) => form.querySelector(`#${id}`), drop = part("drop"), file = part("file"), refusal = part("refusal");
  const columns = new ColumnChoice(part("columns"), limits.columns, limits.column_words, send);
  part("time").max = limits.seconds;
  part("time").value = Math.min(30, limits.seconds);

  /** Take files one after another: a table with unknown columns is asked about, others are sent. */
  let taken = Promise.resolve();
  function take(files) {
    for (const chosen of files) taken = taken.then(async () => (await columns.ask(chosen)) || send(chosen)).catch(refuse);
  }

  function refuse(error) {
    refusal.textContent = error.message;
    refusal.hidden = false;
  }

  /** Send a file, with the meaning of columns such as ["demand=kg"], and others to ignore. Return whether it was accepted. */
  async function send(chosen, meanings = [], unused = []) {
    refusal.hidden = true;
    try {
      if (chosen.size > limits.bytes) throw new Error(`${chosen.name} is larger than ${short(limits.bytes / 2 ** 20)} MiB.`);
      const options = new URLSearchParams({ name: chosen.name });
      for (const id of ["time", "seed", "solver", "round", "capacity", "vehicles"]) if (part(id).value !== "") options.set(id, part(id).value);
      for (const meaning of meanings) options.append("column", meaning);
      for (const name of unused) options.append("ignore_field", name);
      const answer = await request(`/jobs?${options}`, { method: "POST", body: chosen });
      onAdded(await answer.json());
      return true;
    } catch (error) {
      refuse(error);
      return false;
    }
  }

  file.addEventListener("change", () => {
    take([...file.files]);
    file.value = "";
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  drop.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") file.click();
  });
  for (const kind of ["dragenter", "dragover"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  for (const kind of ["dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.remove("over");
    });
  }
  document.addEventListener("drop", (event) => take([...event.dataTransfer.files]));
}
