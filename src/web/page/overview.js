// SPDX-License-Identifier: Apache-2.0
// Numbers of the node, and its jobs.
import { age, byId, bytes, count, el, facts, rate, seconds, setText } from "./dom.js";
import { linkTable, railTable, ratesOf } from "./flows.js";
import { gpuTable } from "./gpus.js";
import { numberColumn, Table, textColumn } from "./table.js";

const WINDOW_S = 20;  // of a job's step time

const UNKNOWN = "–";  // rates need two looks

const nothing = (format) => (value) => (value > 0 ? format(value) : UNKNOWN);

function showName(job, cell) {
  let link = cell.firstChild;
  if (!link) cell.append((link = el("a", {})));
  setText(link, job.name === "" ? "(no name)" : job.name);
  link.setAttribute("href", `#job=${encodeURIComponent(job.name)}`);
}

function jobTable(place) {
  return new Table(place, "Jobs", [
    { title: "Job", value: (job) => job.name, name: true, show: showName },
    textColumn("State", (job) => job.state),
    numberColumn("Ranks", (job) => job.world_size, count),
    numberColumn("Here", (job) => job.local_ranks.length, count),
    numberColumn("Nodes", (job) => job.nodes.length, count),
    numberColumn("Steps", (job) => job.steps_done, count),
    numberColumn("Step", (job) => job.step, nothing(seconds)),
    numberColumn("Exposed", (job) => job.exposed, (value) => (value >= 0 ? seconds(value) : "–")),
    numberColumn("Rate", (job) => job.rate, rate),
    numberColumn("Results", (job) => job.bytes, bytes),
  ], { key: (job) => job.key, search: (job) => job.name, sortBy: 0, empty: "No jobs." });
}

// What a job's steps took of late: from the numbers of WINDOW_S ago.
class Recent {
  constructor() { this.kept = new Map(); }

  add(jobs, now) {
    const kept = new Map();
    for (const job of jobs) {
      const points = (this.kept.get(job.key) ?? []).filter((point) => point.now > now - WINDOW_S && point.now < now);
      points.push({ now, steps: job.planned_steps, took: job.step_seconds, exposed: job.exposed_seconds, bytes: job.bytes, all: job.steps_done });
      kept.set(job.key, points);
      this.measure(job, points[0], points[points.length - 1], points[points.length - 2]);
    }
    this.kept = kept;
  }

  measure(job, first, last, before) {
    const since = last.steps > first.steps ? first : { steps: 0, took: 0, exposed: 0 };
    const steps = last.steps - since.steps;
    // Jobs without planned tensors have steps, too, but nobody measures them.
    const counted = last.all - first.all;
    job.step = steps > 0 ? (last.took - since.took) / steps : counted > 0 ? (last.now - first.now) / counted : 0;
    job.exposed = steps > 0 ? (last.exposed - since.exposed) / steps : -1;
    job.rate = before ? Math.max(0, last.bytes - before.bytes) / (last.now - before.now) : 0;
  }
}

function keyJobs(jobs) {
  const seen = new Map();
  for (const job of jobs) {
    // Jobs of one name are those of several users, or subgroups.
    const name = `${job.epoch} ${job.local_ranks.map((one) => one.pid).join()} ${job.name}`;
    const times = seen.get(name) ?? 0;
    seen.set(name, times + 1);
    job.key = `${times} ${name}`;
  }
}

export class Overview {
  constructor() {
    this.recent = new Recent();
    this.jobs = jobTable(byId("jobs"));
    this.showGpus = gpuTable(byId("gpus-section"), byId("gpus"));
    this.showLinks = linkTable(byId("links"));
    this.showRails = railTable(byId("rails"));
  }

  update(status) {
    const before = this.before && this.before.node.id === status.node.id ? this.before : null;
    if (!before) this.recent = new Recent();
    keyJobs(status.jobs);
    this.recent.add(status.jobs, status.uptime_seconds);
    // The daemon answers all who ask within a second alike.
    if (before && status.uptime_seconds === before.uptime_seconds) return;
    const rates = ratesOf(status, before);
    this.jobs.update(status.jobs);
    this.showGpus(status);
    this.showLinks(status, rates);
    this.showRails(status, rates);
    this.showNode(status);
    this.showTiles(status, before);
    this.before = status;
  }

  showNode(status) {
    document.title = `${status.node.name} – braid`;
    setText(byId("node-name"), status.node.name);
    setText(byId("node-facts"), `braidd ${status.version} at ${status.node.address}, up ${age(status.uptime_seconds)}. ${status.transport}.`);
  }

  showTiles(status, before) {
    const elapsed = before ? status.uptime_seconds - before.uptime_seconds : 0;
    const growth = (name) => Math.max(0, (status.counters[name] ?? 0) - (before.counters[name] ?? 0)) / elapsed;
    const wire = (direction) => (before ? rate(growth(`braid_wire_bytes_total.${direction}`)) : UNKNOWN);
    const failed = status.flows.filter((flow) => flow.state === "failed").length;
    const running = status.jobs.filter((job) => job.state === "running").length;
    const cores = (name) => (before ? ((status.processor[name] - before.processor[name]) / elapsed).toFixed(2) : UNKNOWN);
    const down = status.rails_down.length;
    const hidden = status.jobs_hidden > 0 ? `${running} running; ${status.jobs_hidden} of other users not shown` : `${running} running`;
    facts(byId("tiles"), [
      ["Sends", [wire("sent"), "chunks to other nodes"]],
      ["Receives", [wire("received"), "chunks from other nodes"]],
      ["Jobs", [count(status.jobs.length), hidden]],
      ["Operations", [count(status.counters.braid_operations_pending ?? 0), "under way"]],
      ["Failed flows", [failed === 0 ? "none" : `✕ ${count(failed)}`, `of ${count(status.flows.length)}`], failed && "bad"],
      ["Rails", [down === 0 ? "all up" : `✕ ${down} down`, status.rails.join(", ")], down && "bad"],
      ["Processor", [`${cores("seconds")} cores`, `${cores("wait_seconds")} waited for`]],
    ].map(([name, value, look]) => [name, value, look || ""]));
  }
}
