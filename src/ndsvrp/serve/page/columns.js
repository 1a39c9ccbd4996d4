// The columns of a table of stops: which are recognised by name, and a choice for those that are not.

import { element } from "./format.js";

const START = 2 ** 16; // bytes that hold the first row

/** Return the cells of the first row of a table. */
export function firstRow(text) {
  const line = text.replace(/^\uFEFF/, "").trimStart().split(/\r?\n|\r/, 1)[0];
  const count = (mark) => line.split(mark).length;
  const delimiter = [",", ";", "\t"].reduce((best, mark) => (count(mark) > count(best) ? mark : best));
  const cells = [""];
  let quoted = false;
  for (const letter of line) {
    if (letter === '"') quoted = !quoted;
    else if (letter === delimiter && !quoted) cells.push("");
    else cells[cells.length - 1] += letter;
  }
  return cells.map((cell) => cell.trim());
}

/** Return a name of a column as the service compares it. */
function plain(name) {
  return name.toLowerCase().replaceAll("-", " ").trim().split(/\s+/).join("_");
}

export class ColumnChoice {
  /** `known`: our names of columns, by the names that are recognised. `send` is called with a file, its columns, and those not used. */
  constructor(field, known, send) {
    Object.assign(this, { field, known, send, file: null, choices: [] });
    const part = (id) => field.querySelector(`#${id}`);
    Object.assign(this, { title: part("columns-file"), list: part("columns-list") });
    part("columns-send").addEventListener("click", async () => {
      if (await this.send(this.file, this.meanings(), this.unused())) this.hide();
    });
    part("columns-drop").addEventListener("click", () => this.hide());
  }

  hide() {
    this.field.hidden = true;
    this.answered?.();
  }

  /** Show a choice for each column that is not recognised, and wait until it is made. Return whether there is one. */
  async ask(file) {
    if (!/\.(csv|tsv)$/i.test(file.name)) return false;
    const names = firstRow(await file.slice(0, START).text()).filter((name) => name);
    const unknown = names.filter((name) => !(plain(name) in this.known));
    if (!unknown.length) return false;
    const taken = new Set(names.map((name) => this.known[plain(name)]));
    const free = [...new Set(Object.values(this.known))].filter((ours) => !taken.has(ours));
    this.choices = unknown.map((name) => {
      const options = ["", ...free].map((ours) => element("option", { value: ours, textContent: ours || "not used" }));
      return { name, select: element("select", { title: `Column ${name}` }, ...options) };
    });
    this.list.replaceChildren(...this.choices.map(({ name, select }) => element("label", {}, `${name} `, select)));
    this.title.textContent = file.name;
    this.file = file;
    this.field.hidden = false;
    await new Promise((resolve) => (this.answered = resolve));
    return true;
  }

  meanings() {
    return this.choices.filter(({ select }) => select.value).map(({ name, select }) => `${select.value}=${name}`);
  }

  unused() {
    return this.choices.filter(({ select }) => !select.value).map(({ name }) => name);
  }
}
