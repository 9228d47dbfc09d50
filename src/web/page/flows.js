// SPDX-License-Identifier: Apache-2.0
// Links and rails, from the flows of two statuses.
import { bytes, count, el, median, rate, setText, svg } from "./dom.js";
import { numberColumn, Table, textColumn } from "./table.js";

const BAR = 6, HEIGHT = 26;  // of a flow's bar
const SLOW_SHARE = 0.5;      // of the link's median: such flows are opened again

const keyOf = (flow) => `${flow.peer} ${flow.direction} ${flow.io_loop} ${flow.flow}`;
const isSlow = (flow, usual) => flow.bytes_per_second > 0 && flow.bytes_per_second < usual * SLOW_SHARE;

// Of all flows what they have carried since the status before, in bytes per second.
export function ratesOf(status, before) {
  const rates = new Map();
  const elapsed = before ? status.uptime_seconds - before.uptime_seconds : 0;
  if (!(elapsed > 0) || before.node.id !== status.node.id) return rates;
  const old = new Map(before.flows.map((flow) => [keyOf(flow), flow]));
  for (const flow of status.flows) {
    const was = old.get(keyOf(flow));
    // A flow that was opened again begins at 0.
    const grown = (name) => Math.max(0, flow[name] - (was && was[name] <= flow[name] ? was[name] : 0)) / elapsed;
    rates.set(flow, { sent: grown("bytes_sent"), received: grown("bytes_received") });
  }
  return rates;
}

function groupBy(flows, nameOf, rates) {
  const groups = new Map();
  for (const flow of flows) {
    const name = nameOf(flow);
    if (!groups.has(name)) groups.set(name, { name, flows: [], sent: 0, received: 0, failed: 0, open: 0, failures: 0 });
    const group = groups.get(name);
    group.flows.push(flow);
    group.sent += rates.get(flow)?.sent ?? 0;
    group.received += rates.get(flow)?.received ?? 0;
    group.open += flow.state === "open" ? 1 : 0;
    group.failed += flow.state === "failed" ? 1 : 0;
    group.failures += flow.failures;
  }
  return [...groups.values()];
}

function describe(link) {
  const flows = link.out;
  const slow = flows.filter((flow) => isSlow(flow, link.usual)).length;
  const parts = [`${flows.length} flows to ${link.name}: ${flows.filter((flow) => flow.state === "open").length} open`];
  const failed = flows.filter((flow) => flow.state === "failed").length;
  if (failed) parts.push(`${failed} failed`);
  if (slow) parts.push(`${slow} slow`);
  if (link.usual > 0) parts.push(`in the middle they deliver ${rate(link.usual)}`);
  return parts.join(", ");
}

function bar(flow, i, link) {
  const x = i * BAR + 1, width = BAR - 2;
  const title = svg("title", {}, `flow ${flow.flow} of loop ${flow.io_loop} on ${flow.rail}: ${flow.state}` +
    (flow.bytes_per_second > 0 ? `, delivers ${rate(flow.bytes_per_second)}` : "") + (flow.error ? `; last failure: ${flow.error}` : ""));
  if (flow.state === "failed") {
    return svg("g", {}, title, svg("rect", { class: "flow failed", x, y: 1, width, height: HEIGHT - 2 }),
      svg("path", { class: "cross", d: `M${x} ${HEIGHT / 2 - 2}l4 4m0 -4l-4 4` }));
  }
  if (flow.state !== "open") return svg("g", {}, title, svg("circle", { class: "ring", cx: x + 2, cy: HEIGHT - 4, r: 2 }));
  const share = link.best > 0 ? flow.bytes_per_second / link.best : 0;
  const height = Math.max(2, share * (HEIGHT - 6));
  const slow = isSlow(flow, link.usual);
  const shape = svg("rect", { class: slow ? "flow slow" : "flow", x, y: HEIGHT - height, width, height });
  if (!slow) return svg("g", {}, title, shape);
  const top = HEIGHT - height - 6;
  return svg("g", {}, title, shape, svg("path", { class: "mark slow", d: `M${x - 0.5} ${top + 5}h5l-2.5 -4.5z` }));
}

function showStrip(link, cell) {
  const shown = JSON.stringify(link.out.map((flow) => [flow.state, flow.bytes_per_second, flow.error]));
  if (cell.dataset.shown === shown) return;
  cell.dataset.shown = shown;
  if (link.out.length === 0) return cell.replaceChildren("only receives");
  const width = link.out.length * BAR;
  cell.replaceChildren(svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": describe(link) },
    ...link.out.map((flow, i) => bar(flow, i, link))));
}

function showCounts(link, cell) {
  setText(cell, link.failed > 0 ? `${link.open} open, ${link.failed} failed` : `${link.open} open`);
  cell.classList.toggle("bad", link.failed > 0);
}

function listFlows(link) {
  const cell = (text, number) => el("td", { class: number && "number" }, text);
  const row = (flow) => el("tr", {},
    cell(`${flow.direction} ${flow.io_loop}/${flow.flow}`), cell(flow.rail),
    cell(flow.state + (flow.direction === "out" && isSlow(flow, link.usual) ? ", slow" : "")),
    cell(flow.bytes_per_second > 0 ? rate(flow.bytes_per_second) : "–", true), cell(bytes(flow.bytes_sent), true),
    cell(bytes(flow.bytes_received), true), cell(flow.round_trip_ms > 0 ? `${flow.round_trip_ms.toFixed(2)} ms` : "–", true),
    cell(count(flow.failures), true), el("td", { class: "name" }, flow.error));
  const heads = ["Flow", "Rail", "State", "Delivers", "Sent", "Received", "Round trip", "Failures", "Last failure"];
  return el("table", {}, el("caption", { class: "unseen" }, `Flows of the link with ${link.name}`),
    el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, ...link.flows.map(row)));
}

export function linkTable(place) {
  const table = new Table(place, "Links", [
    textColumn("With node", (link) => link.name, { name: true }),
    numberColumn("Sends", (link) => link.sent, rate),
    numberColumn("Receives", (link) => link.received, rate),
    { title: "Flows", value: (link) => link.failed, number: true, show: showCounts },
    { title: "Each flow", show: showStrip },
  ], { key: (link) => link.name, search: (link) => link.name, empty: "No links: no job here spans nodes yet.", more: listFlows, moreName: "Flows" });
  return (status, rates) => {
    const links = groupBy(status.flows, (flow) => flow.peer, rates);
    for (const link of links) {
      link.out = link.flows.filter((flow) => flow.direction === "out");
      const known = link.out.map((flow) => flow.bytes_per_second).filter((value) => value > 0);
      link.usual = median(known);
      link.best = known.reduce((a, b) => Math.max(a, b), 0);
    }
    table.update(links);
  };
}

export function railTable(place) {
  const showState = (rail, cell) => {
    setText(cell, rail.isUp ? "up" : "down: switched off, or without a carrier");
    cell.classList.toggle("bad", !rail.isUp);
  };
  const table = new Table(place, "Rails", [
    textColumn("Rail", (rail) => rail.name, { name: true }),
    { title: "State", value: (rail) => String(rail.isUp), show: showState },
    numberColumn("Sends", (rail) => rail.sent, rate),
    numberColumn("Receives", (rail) => rail.received, rate),
    numberColumn("Open flows", (rail) => rail.open, count),
    numberColumn("Failed flows", (rail) => rail.failed, count),
  ], { key: (rail) => rail.name, empty: "No rails." });
  return (status, rates) => {
    const none = { sent: 0, received: 0, open: 0, failed: 0 };
    const used = new Map(groupBy(status.flows, (flow) => flow.rail, rates).map((rail) => [rail.name, rail]));
    table.update(status.rails.map((name) => ({ ...none, ...used.get(name), name, isUp: !status.rails_down.includes(name) })));
  };
}
