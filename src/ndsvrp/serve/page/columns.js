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
  /** `known`: our names of columns, by the names that are recognised; `words`: by words in other names, which they may mean.
   * `send` is called with a file, its columns, and those not used. */
  constructor(field, known, words, send) {
    Object.assign(this, { field, known, words, send, file: null, choices: [] });
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
    if (!names.some((name) => plain(name) === "name")) taken.delete("name"); // an id may stand in for a better one
    const free = [...new Set(Object.values(this.known))].filter((ours) => !taken.has(ours));
    const guessed = new Set();
    this.choices = unknown.map((name) => {
      const options = ["", ...free].map((ours) => element("option", { value: ours, textContent: ours || "not used" }));
      const select = element("select", { title: `Column ${name}` }, ...options);
      const guess = this.meaning(name);
      if (free.includes(guess) && !guessed.has(guess)) select.value = guess;
      guessed.add(guess);
      return { name, select };
    });
    this.list.replaceChildren(...this.choices.map(({ name, select }) => element("label", {}, `${name} `, select)));
    this.title.textContent = file.name;
    this.file = file;
    this.field.hidden = false;
    await new Promise((resolve) => (this.answered = resolve));
    return true;
  }

  /** Return which of our columns a name may mean: a window that is not used by mistake would give routes that are too late. */
  meaning(name) {
    const parts = plain(name).split("_");
    return this.words[Object.keys(this.words).find((word) => parts.includes(word))];
  }

  meanings() {
    return this.choices.filter(({ select }) => select.value).map(({ name, select }) => `${select.value}=${name}`);
  }

  unused() {
    return this.choices.filter(({ select }) => !select.value).map(({ name }) => name);
  }
}
