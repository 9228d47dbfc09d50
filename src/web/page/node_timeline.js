// SPDX-License-Identifier: Apache-2.0
// What this node did in a job's last steps, by its own clock: submissions, operations, units by stream, chunks by flow.
import { bytes, count, el, seconds, svg } from "./dom.js";

const LANE = 14, THIN = 7, GAP = 3, SECTION = 20, FOOT = 24, LABEL = 150, NARROW_LABEL = 74;
const SPANS_MAX = 1500;  // drawn one by one; of more the shortest are left out, and that is said
const LANES_MAX = 24, FLOWS_MAX = 64;

// Of each list in its JSON the fields by their places: src/timeline/node_timeline.h.
const COLUMNS = {
  submits: ["rank", "tensor", "step", "at", "planned"],
  operations: ["tensor", "step", "begin", "go", "end", "bytes", "tensors", "plan"],
  units: ["loop", "stream", "tensor", "step", "unit", "begin", "end", "bytes"],
  chunks: ["loop", "flow", "peer", "rail", "tensor", "step", "unit", "begin", "end", "bytes", "sum", "resent"],
};

function read(told) {
  const lists = {};
  for (const [name, columns] of Object.entries(COLUMNS)) {
    lists[name] = (told[name] ?? []).map((row) => Object.fromEntries(columns.map((column, i) => [column, row[i]])));
  }
  return lists;
}

function spanOf(lists) {
  let begin = Infinity, end = -Infinity;
  for (const list of Object.values(lists)) {
    for (const one of list) {
      begin = Math.min(begin, one.begin ?? one.at);
      end = Math.max(end, one.end ?? one.at);
    }
  }
  return { begin, end };
}

function longest(list) {
  if (list.length <= SPANS_MAX) return list;
  return [...list].sort((a, b) => b.end - b.begin - (a.end - a.begin)).slice(0, SPANS_MAX).sort((a, b) => a.begin - b.begin);
}

// Spans that do not overlap share a lane.
function packed(list) {
  const ends = [];
  for (const one of [...list].sort((a, b) => a.begin - b.begin)) {
    let lane = ends.findIndex((end) => end <= one.begin);
    if (lane < 0) lane = ends.length < LANES_MAX ? ends.length : 0;
    ends[lane] = Math.max(ends[lane] ?? 0, one.end);
    one.lane = lane;
  }
  return ends.length;
}

function grouped(list, keyOf) {
  const groups = new Map();
  for (const one of list) {
    const key = keyOf(one);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(one);
  }
  return new Map([...groups].sort((a, b) => a[0].localeCompare(b[0], "en", { numeric: true })));
}

class Drawing {
  constructor(told, width) {
    this.told = told;
    this.width = width;
    this.left = width < 520 ? NARROW_LABEL : LABEL;
    this.parts = [];
    this.y = 4;
    this.lists = read(told);
    this.span = spanOf(this.lists);
    this.scale = (width - this.left - 30) / Math.max(1, this.span.end - this.span.begin);
  }

  x(at) { return this.left + (at - this.span.begin) * this.scale; }
  tensor(number) { return this.told.tensors[number] ?? "?"; }

  title(text) {
    this.parts.push(svg("text", { class: "muted", x: 0, y: this.y + 13 }, text));
    this.y += SECTION;
  }

  label(text, height) {
    const room = this.left === LABEL ? 22 : 10;
    this.parts.push(svg("text", { x: 0, y: this.y + height - 2 }, text.length > room ? `${text.slice(0, room - 1)}…` : text, svg("title", {}, text)));
  }

  rect(look, begin, end, y, height, text) {
    return svg("rect", { class: look, x: this.x(begin), y, width: Math.max(0.7, (end - begin) * this.scale), height }, svg("title", {}, text));
  }

  submits() {
    if (this.lists.submits.length === 0) return;
    this.title("Gradients given by each rank of this node");
    for (const [rank, list] of grouped(this.lists.submits, (one) => `rank ${one.rank}`)) {
      this.label(rank, LANE);
      const ticks = list.map((one) => `M${this.x(one.at).toFixed(1)} ${this.y}v${LANE}`).join("");
      this.parts.push(svg("path", { class: "tick", d: ticks }, svg("title", {}, `${rank}: ${list.length} submissions`)));
      this.y += LANE + GAP;
    }
  }

  operations() {
    const list = longest(this.lists.operations);
    if (list.length === 0) return;
    this.title("Operations: grey while they wait for memory or other nodes");
    const lanes = packed(list);
    for (const one of list) {
      const y = this.y + one.lane * (LANE + GAP);
      const text = `${this.tensor(one.tensor)}${one.tensors > 1 ? ` and ${one.tensors - 1} more` : ""}, step ${one.step}: ${bytes(one.bytes)} in ` +
        `${seconds((one.end - one.begin) * 1e-9)}, of which ${seconds((one.go - one.begin) * 1e-9)} waiting to begin`;
      this.parts.push(this.rect("before", one.begin, one.go, y, LANE, text), this.rect("backward", one.go, one.end, y, LANE, text));
    }
    this.y += lanes * (LANE + GAP);
  }

  units() {
    const list = longest(this.lists.units);
    if (list.length === 0) return;
    this.title("Units on the streams of each I/O loop");
    for (const [name, own] of grouped(list, (one) => (one.stream < 0 ? `loop ${one.loop}, no stream` : `loop ${one.loop}, stream ${one.stream}`))) {
      const lanes = packed(own);
      this.label(name, LANE);
      for (const one of own) {
        this.parts.push(this.rect(`unit${one.unit % 2 ? " odd" : ""}`, one.begin, one.end, this.y + one.lane * (LANE + GAP), LANE,
          `${this.tensor(one.tensor)}, step ${one.step}, unit ${one.unit}: ${bytes(one.bytes)} in ${seconds((one.end - one.begin) * 1e-9)}`));
      }
      this.y += lanes * (LANE + GAP);
    }
  }

  chunks() {
    if (this.lists.chunks.length === 0) return;
    this.title("Chunks on each flow, from sending to acknowledgement; thick ones were sent again");
    const flows = [...grouped(this.lists.chunks, (one) => `${this.told.peers[one.peer] ?? "?"} ${one.loop}/${one.flow}`)];
    for (const [name, own] of flows.slice(0, FLOWS_MAX)) {
      this.label(name, THIN + 5);
      // One element a row, however many chunks there are.
      const lines = (list) => list.map((one) => `M${this.x(one.begin).toFixed(1)} ${this.y + THIN / 2}H${Math.max(this.x(one.end), this.x(one.begin) + 0.7).toFixed(1)}`).join("");
      const again = own.filter((one) => one.resent);
      const text = `flow ${name} on ${this.told.rails[own[0].rail] ?? "?"}: ${count(own.length)} chunks, ` +
        `${bytes(own.reduce((all, one) => all + one.bytes, 0))}${again.length ? `, ${again.length} sent again` : ""}`;
      this.parts.push(svg("path", { class: "chunk", d: lines(own) }, svg("title", {}, text)));
      if (again.length) this.parts.push(svg("path", { class: "chunk again", d: lines(again) }));
      this.y += THIN + 7;
    }
    if (flows.length > FLOWS_MAX) this.title(`and ${flows.length - FLOWS_MAX} flows more`);
  }

  axis() {
    const total = (this.span.end - this.span.begin) * 1e-9, raw = total / Math.max(1, Math.floor((this.width - this.left) / 100));
    const power = 10 ** Math.floor(Math.log10(Math.max(raw, 1e-9)));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= raw);
    const lines = [];
    for (let i = 0; i * step <= total; ++i) {
      const x = this.x(this.span.begin + i * step * 1e9);
      lines.push(svg("path", { class: "grid-line", d: `M${x} 0V${this.y + 4}` }),
        svg("text", { class: "axis", x, y: this.y + 18, "text-anchor": i === 0 ? "start" : "middle" }, i === 0 ? "0" : seconds(i * step)));
    }
    return lines;
  }

  element() {
    for (const part of ["submits", "operations", "units", "chunks"]) this[part]();
    const { operations, units, chunks } = this.lists;
    return svg("svg", { width: this.width, height: this.y + FOOT, role: "img",
      "aria-label": `${operations.length} operations, ${units.length} units and ${chunks.length} chunks of ${seconds((this.span.end - this.span.begin) * 1e-9)}` },
    ...this.axis(), ...this.parts);
  }
}

function words(told, lists) {
  const parts = [`By the clock of node ${told.node}: ${count(lists.operations.length)} operations, ${count(lists.units.length)} units, ` +
    `${count(lists.chunks.length)} chunks sent.`];
  if (told.dropped > 0) parts.push(`${count(told.dropped)} spans had no room in the answer, chunks first: look at fewer steps.`);
  for (const name of ["operations", "units"]) {
    if (lists[name].length > SPANS_MAX) parts.push(`Of the ${name} the ${count(SPANS_MAX)} longest are drawn.`);
  }
  return parts.join(" ");
}

export function drawNodeTimeline(place, told, width) {
  const drawing = new Drawing(told, width);
  if (!(drawing.span.end > drawing.span.begin)) {
    return place.replaceChildren(el("p", { class: "empty" }, "This node has nothing to tell of these steps yet."));
  }
  place.replaceChildren(el("p", { class: "explains" }, words(told, drawing.lists)), el("div", { class: "wide" }, drawing.element()));
}
