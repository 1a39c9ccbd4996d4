// The table of routes.

import { colour } from "./colours.js";
import { element, number, short } from "./format.js";
import { times } from "./timeline.js";

/** Fill the table and return its rows; `select` is called with the index of a route that is clicked. */
export function fillRoutes(table, problem, routes, numbers, selected, select) {
  const timed = Boolean(problem.windows);
  const titles = ["route", "stops", "load", "distance", ...(timed ? ["back at"] : [])];
  table.tHead.replaceChildren(element("tr", {}, ...titles.map((title) => element("th", { textContent: title }))));
  const decimals = Math.min(2, problem.decimals);
  const rows = routes.map((route, index) => {
    const swatch = element("span", { className: "swatch" });
    swatch.style.background = colour(numbers[index]);
    const bar = element("i");
    bar.style.width = `${Math.min(100, (100 * route.load) / problem.capacity)}%`;
    const cells = [
      element("td", {}, swatch, String(index + 1)),
      element("td", { textContent: String(route.stops.length) }),
      element("td", {}, element("span", { className: "load" }, short(route.load), bar)),
      element("td", { textContent: number(route.distance, decimals) }),
    ];
    if (timed) cells.push(element("td", { textContent: times(problem, route, route.arrival.at(-1)) }));
    const row = element("tr", { tabIndex: 0 }, ...cells);
    row.setAttribute("aria-selected", String(index === selected));
    row.addEventListener("click", () => select(index === selected ? null : index));
    row.addEventListener("keydown", (event) => {
      if (event.key === "Enter") select(index === selected ? null : index);
    });
    return row;
  });
  table.tBodies[0].replaceChildren(...rows);
  return rows;
}
