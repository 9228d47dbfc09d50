// SPDX-License-Identifier: Apache-2.0
// The last steps of a job as a drawing: a row for each rank, the steps beside each other. Clocks of nodes are not
// compared: a step ends with its last result, which comes to all ranks at once, so steps are drawn up to that.
import { el, hideTip, median, seconds, showTip, svg } from "./dom.js";

const ROW = 20, GAP = 5, HEAD = 22, FOOT = 24, LABEL = 150, NARROW_LABEL = 74, STEP_GAP = 3;
const WORTH_SHARE = 0.05, WORTH_S = 0.001;  // what is spoken of, as braidctl explain has it

// {steps: [{step, width}], ranks: [{rank, node, times: [{before, backward, wait}], isLate, cost}], silent: [nodes]};
// seconds. Of the steps that all nodes know.
export function viewJob(facts) {
  const known = facts.nodes.filter((node) => node.steps.length > 0);
  const counts = new Map();
  for (const node of known) for (const step of node.steps) counts.set(step.step, (counts.get(step.step) ?? 0) + 1);
  const numbers = [...counts].filter(([, times]) => times === known.length).map(([step]) => step).sort((a, b) => a - b);
  const ranks = [];
  for (const node of known) {
    const steps = new Map(node.steps.map((step) => [step.step, step]));
    node.ranks.forEach((rank, i) => ranks.push({
      rank,
      node: node.node,
      times: numbers.map((number) => {
        const step = steps.get(number);
        return { before: step.before_ns[i] * 1e-9, backward: step.backward_ns[i] * 1e-9, wait: step.wait_ns[i] * 1e-9 };
      }),
    }));
  }
  ranks.sort((a, b) => a.rank - b.rank);
  const silent = facts.nodes.filter((node) => node.steps.length === 0).map((node) => node.node);
  return { numbers, ranks, silent };
}

// Of the latest `shown` steps.
export function latest(view, shown) {
  const from = Math.max(0, view.numbers.length - shown);
  const ranks = view.ranks.map((rank) => ({ ...rank, times: rank.times.slice(from) }));
  const numbers = view.numbers.slice(from);
  const steps = numbers.map((step, i) => ({
    step,
    width: ranks.reduce((most, rank) => Math.max(most, sum(rank.times[i])), 0),
    // The rank that came last waits least; what it waits is the network's.
    network: ranks.reduce((least, rank) => Math.min(least, rank.times[i].wait), Infinity),
  }));
  markLate(ranks, steps);
  return { steps, ranks };
}

const sum = (times) => times.before + times.backward + times.wait;

function markLate(ranks, steps) {
  const usual = median(steps.map((step) => step.width));
  const enough = Math.max(WORTH_S, usual * WORTH_SHARE);
  const costs = steps.map((step, i) => median(ranks.map((rank) => rank.times[i].wait)) - step.network);
  for (const rank of ranks) {
    rank.cost = median(rank.times.map((times, i) => costs[i] - (times.wait - steps[i].network)));
    rank.isLate = ranks.length > 1 && rank.cost > enough;
  }
}

export function describeCell(rank, step, times) {
  return `Rank ${rank.rank} on ${rank.node}, step ${step.step}: ${seconds(times.before)} before its first gradient, ` +
    `${seconds(times.backward)} backward, then ${seconds(times.wait)} waiting for results.`;
}

// What the three kinds of time look like.
export function key() {
  const one = (look, text) => el("span", { class: "key" },
    svg("svg", { width: 22, height: 14, "aria-hidden": "true" }, svg("rect", { class: look, x: 0.5, y: 0.5, width: 21, height: 13 })), text);
  return el("p", { class: "tools explains" }, one("before", "optimizer, input, forward"), one("backward", "backward"),
    one("waits", "exposed: backward is over, results have not come"));
}

function bars(times, x, y, scale, texts) {
  const parts = [];
  let from = x;
  for (const [look, text] of [["before", "before"], ["backward", "backward"], ["wait", "waits"]]) {
    const width = times[look] * scale;
    if (width > 0.2) parts.push(svg("rect", { class: look === "wait" ? "waits" : look, x: from, y, width, height: ROW }));
    if (texts && width > text.length * 6.6 + 6 && look !== "wait") {
      parts.push(svg("text", { class: `inside on-${look}`, x: from + width / 2, y: y + ROW - 6, "text-anchor": "middle" }, text));
    }
    from += width;
  }
  return parts;
}

function niceStep(range, most) {
  const raw = range / Math.max(1, most), power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= raw);
}

function timeAxis(total, scale, left, y) {
  const step = niceStep(total, Math.floor((total * scale) / 90));
  const parts = [];
  for (let at = 0; at <= total * 1.0001; at += step) {
    const x = left + at * scale;
    parts.push(svg("path", { class: "grid-line", d: `M${x} ${HEAD - 4}V${y + 4}` }),
      svg("text", { class: "axis", x, y: y + 18, "text-anchor": at === 0 ? "start" : "middle" }, at === 0 ? "0" : seconds(at)));
  }
  return parts;
}

// An SVG in which arrow keys go from cell to cell; `focus`: {rank, step} of the one that has the focus, or had it.
export class Timeline {
  constructor() {
    this.focus = null;
    this.place = el("div", { class: "wide" });
  }

  // `shown`: as latest() gives it, with the ranks of one page.
  draw(shown, width) {
    const hadFocus = this.place.contains(document.activeElement);
    const left = width < 520 ? NARROW_LABEL : LABEL;
    const total = shown.steps.reduce((all, step) => all + step.width, 0);
    const room = Math.max(120, width - left - 34 - STEP_GAP * (shown.steps.length - 1));
    const scale = room / Math.max(total, 1e-9);
    const bottom = HEAD + shown.ranks.length * (ROW + GAP);
    const edges = [];
    let x = left;
    for (const step of shown.steps) {
      edges.push(x);
      x += step.width * scale + STEP_GAP;
    }
    this.cells = shown.ranks.map((rank, row) => shown.steps.map((step, i) => this.cell(rank, step, i, row, edges[i], scale)));
    const heads = shown.steps.map((step, i) => this.stepName(step, edges[i], step.width * scale)).filter(Boolean);
    const drawing = svg("svg", { width, height: bottom + FOOT, role: "group",
      "aria-label": `${shown.ranks.length} ranks, ${shown.steps.length} steps. Arrow keys go from step to step and from rank to rank.` },
    ...timeAxis(total, scale, left, bottom), ...heads,
    ...shown.ranks.map((rank, row) => this.rankName(rank, row, left)), ...this.cells.flat());
    drawing.addEventListener("keydown", (event) => this.onKey(event));
    this.place.replaceChildren(drawing);
    this.restore(shown, hadFocus);
  }

  cell(rank, step, i, row, x, scale) {
    const times = rank.times[i], y = HEAD + row * (ROW + GAP);
    const start = x + (step.width - sum(times)) * scale;
    const text = describeCell(rank, step, times);
    const cell = svg("g", { class: "cell", tabindex: "-1", role: "img", "aria-label": text },
      ...bars(times, start, y, scale, true), svg("rect", { class: "frame", x: x - 1, y: y - 1, width: step.width * scale + 2, height: ROW + 2 }));
    const show = () => showTip(text, cell.getBoundingClientRect());
    cell.addEventListener("pointerenter", show);
    cell.addEventListener("pointerleave", hideTip);
    cell.addEventListener("focus", () => {
      this.focus = { rank: rank.rank, step: step.step };
      show();
    });
    cell.addEventListener("blur", hideTip);
    return cell;
  }

  stepName(step, x, width) {
    const text = String(step.step);
    if (width < text.length * 7.5 + 6) return null;
    return svg("text", { class: "axis", x: x + width / 2, y: HEAD - 8, "text-anchor": "middle" }, text);
  }

  rankName(rank, row, left) {
    const name = left === LABEL ? `rank ${rank.rank} ${rank.node}` : `rank ${rank.rank}`;
    const room = left === LABEL ? (rank.isLate ? 18 : 22) : 8;
    const text = (rank.isLate ? "▲ " : "") + (name.length > room ? `${name.slice(0, room - 1)}…` : name);
    return svg("text", { x: 0, y: HEAD + row * (ROW + GAP) + ROW - 5, "font-weight": rank.isLate ? 700 : 400 }, text,
      svg("title", {}, `rank ${rank.rank} on ${rank.node}` + (rank.isLate ? `: late, the others wait ${seconds(rank.cost)} for it` : "")));
  }

  restore(shown, hadFocus) {
    let row = this.focus ? shown.ranks.findIndex((rank) => rank.rank === this.focus.rank) : 0;
    let column = this.focus ? shown.steps.findIndex((step) => step.step === this.focus.step) : shown.steps.length - 1;
    if (row < 0) row = 0;
    if (column < 0) column = 0;  // the step has gone by
    const cell = this.cells[row]?.[column];
    if (!cell) return;
    cell.setAttribute("tabindex", "0");
    this.at = [row, column];
    if (hadFocus) cell.focus({ preventScroll: true });
  }

  onKey(event) {
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -1e6], End: [0, 1e6] };
    const move = moves[event.key];
    if (!move || !this.at) return;
    event.preventDefault();
    const clamp = (value, most) => Math.max(0, Math.min(most, value));
    const row = clamp(this.at[0] + move[0], this.cells.length - 1);
    const column = clamp(this.at[1] + move[1], this.cells[row].length - 1);
    this.cells[this.at[0]][this.at[1]].setAttribute("tabindex", "-1");
    this.at = [row, column];
    const cell = this.cells[row][column];
    cell.setAttribute("tabindex", "0");
    cell.focus();
  }
}
