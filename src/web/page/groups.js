// SPDX-License-Identifier: Apache-2.0
// The groups of a job's plan: which gradients are reduced together, and how many bytes that is.
import { bytes, count, el, seconds, setText, svg } from "./dom.js";
import { numberColumn, Table, textColumn } from "./table.js";

const HEIGHT = 22, LEAST = 2;
const NAMES_SHOWN = 200;
const PLAIN = "none";  // without a codec

function bytesOf(dtype) {
  const bits = /(\d+)/.exec(dtype);
  return bits ? Number(bits[1]) / 8 : 1;
}

function groupsOf(set) {
  const sizes = new Map(set.trace.names.map((name, i) => [name, set.trace.numel[i] * bytesOf(set.trace.dtype[i])]));
  return set.groups.map((names, i) => ({
    number: i + 1,
    names,
    bytes: names.reduce((all, name) => all + (sizes.get(name) ?? 0), 0),
    codec: set.codecs[i]?.codec ?? PLAIN,
  }));
}

function strip(groups, width) {
  const all = groups.reduce((sum, group) => sum + group.bytes, 0);
  const scale = all > 0 ? (width - LEAST * groups.length) / all : 0;
  let x = 0;
  const shapes = groups.map((group) => {
    const own = LEAST + group.bytes * Math.max(0, scale);
    const look = group.codec === PLAIN ? (group.number % 2 ? "group odd" : "group") : "group coded";
    const shape = svg("rect", { class: look, x, y: 0, width: own, height: HEIGHT },
      svg("title", {}, `group ${group.number}: ${bytes(group.bytes)} in ${group.names.length} tensors`));
    x += own;
    return shape;
  });
  return svg("svg", { width, height: HEIGHT, role: "img", "aria-label": `${groups.length} groups as wide as they are large, in the order of backward` },
    ...shapes);
}

function listNames(group) {
  const shown = group.names.slice(0, NAMES_SHOWN).join(", ");
  return el("p", { class: "explains" }, group.names.length > NAMES_SHOWN ? `${shown} and ${group.names.length - NAMES_SHOWN} more` : shown);
}

export class Groups {
  constructor(place) {
    this.place = place;
    this.clear();
  }

  clear() {
    this.sets = [];
    this.place.replaceChildren(el("p", { class: "empty" }, "Not known yet."));
  }

  // `sets`: of the answer about the plan.
  update(sets) {
    const shown = sets.filter((set) => set.groups.length > 0);
    if (shown.length === 0) {
      this.sets = [];
      return this.place.replaceChildren(el("p", { class: "empty" },
        "This job has registered no planned tensors, so nothing is merged and no steps are measured."));
    }
    if (this.sets.length !== shown.length) {
      this.sets = shown.map(() => this.makeSet());
      this.place.replaceChildren(...this.sets.map((one) => one.element));
    }
    shown.forEach((set, i) => this.showSet(this.sets[i], set));
  }

  makeSet() {
    const words = el("p", {}), drawing = el("div", { class: "wide" }), list = el("div");
    const table = new Table(list, "Groups", [
      numberColumn("Group", (group) => group.number, count),
      numberColumn("Size", (group) => group.bytes, bytes),
      numberColumn("Tensors", (group) => group.names.length, count),
      textColumn("Travels", (group) => (group.codec === PLAIN ? "plain" : group.codec)),
      textColumn("First tensor", (group) => group.names[0] ?? "", { name: true }),
    ], { key: (group) => String(group.number), rows: 10, empty: "No groups.", more: listNames, moreName: "Tensors" });
    return { element: el("div", {}, words, drawing, list), words, drawing, table };
  }

  showSet(one, set) {
    const groups = groupsOf(set);
    const times = set.predicted_iteration_seconds > 0
      ? ` A step was predicted to take ${seconds(set.predicted_iteration_seconds)}; ${seconds(set.measured_iteration_seconds)} were measured.` : "";
    setText(one.words, `Plan ${set.plan} (planner ${set.planner === "" ? "first" : set.planner}), from step ${set.from_step} on: ` +
      `${groups.reduce((all, group) => all + group.names.length, 0)} tensors in ${groups.length} groups, ` +
      `${bytes(groups.reduce((all, group) => all + group.bytes, 0))}.${times}`);
    one.drawing.replaceChildren(strip(groups, Math.max(240, this.place.clientWidth)));
    one.table.update(groups);
  }
}
