// Start of the page: asks what the service accepts, lists jobs, opens one.

import { getJson } from "./api.js";
import { short } from "./format.js";
import { connectForm, JobList } from "./jobs.js";
import { JobView } from "./view.js";

const part = (id) => document.getElementById(id);

function trouble(text) {
  part("connection").textContent = text;
}

async function start() {
  const limits = await getJson("/limits");
  const view = new JobView(() => list.refresh(), (id, cost) => list.showCost(id, cost));
  view.canStop = limits.accepts;
  const list = new JobList(part("jobs"), open, trouble);

  function open(id) {
    list.current = id;
    history.replaceState(null, "", `?job=${id}`);
    view.open(id).catch((error) => trouble(error.message));
    list.show(list.jobs ?? []);
  }

  if (limits.accepts) {
    part("limits").textContent = `up to ${short(limits.customers)} customers and ${short(limits.seconds)} s`;
    connectForm(part("submit"), limits, (job) => {
      open(job.id);
      list.refresh();
    });
  } else {
    part("submit").hidden = true;
    part("limits").textContent = "one search";
  }
  await list.refresh();
  const asked = new URLSearchParams(location.search).get("job") ?? (limits.accepts ? null : list.jobs?.[0]?.id);
  if (asked) open(asked);
}

start().catch((error) => trouble(error.message));
