// SPDX-License-Identifier: Apache-2.0
// Elements and the text of numbers. Whatever the daemon says becomes text nodes and attributes, never markup.

export const byId = (id) => document.getElementById(id);

// `attributes`: "on…" are listeners. `children`: elements and texts.
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}
export const el = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
export const svg = (name, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

// Only what differs is touched, so that what is selected stays so.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const scaled = (value, steps, units) => {
  let unit = 0;
  while (unit + 1 < units.length && value >= steps) {
    value /= steps;
    ++unit;
  }
  return [value, units[unit], unit === 0];
};
// As braidctl shows them.
export function bytes(count) {
  const [value, unit, isWhole] = scaled(count, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
  return `${value.toFixed(isWhole ? 0 : 1)} ${unit}`;
}
export function rate(bytesPerSecond) {
  const [value, unit, isWhole] = scaled(bytesPerSecond * 8, 1000, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
  return `${value.toFixed(value >= 100 || isWhole ? 0 : value >= 10 ? 1 : 2)} ${unit}`;
}
export const count = (value) => Math.round(value).toLocaleString("en");
export function seconds(value) {
  if (value < 1e-3) return `${(value * 1e6).toFixed(0)} µs`;
  if (value < 1) return `${(value * 1e3).toFixed(value < 0.00995 ? 1 : 0)} ms`;
  return value < 60 ? `${value.toFixed(2)} s` : age(value);
}
export function age(value) {
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const at = Math.max(0, parts.findIndex(([size]) => value >= size));
  const [size, unit] = value >= 1 ? parts[at] : parts[3];
  const whole = Math.floor(value / size);
  const next = parts[at + 1];
  const rest = next && value >= 60 ? Math.floor((value % size) / next[0]) : 0;
  return rest > 0 ? `${whole} ${unit} ${rest} ${next[1]}` : `${whole} ${unit}`;
}

export function median(values) {
  if (values.length === 0) return 0;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[(sorted.length - 1) >> 1];
}

// "Name: value" pairs of a <dl>.
export function facts(list, pairs) {
  const shown = pairs.map(([name, value, look]) => [name, value, look ?? ""]);
  const text = JSON.stringify(shown);
  if (list.dataset.shown === text) return;
  list.dataset.shown = text;
  list.replaceChildren(...shown.map(([name, value, look]) => {
    const values = (Array.isArray(value) ? value : [value]).map((one, i) => el("dd", { class: i === 0 ? look : "" }, one));
    return el("div", {}, el("dt", {}, name), ...values);
  }));
}

// What an element tells while the pointer or the focus is on it.
const tip = byId("tip");
export function showTip(text, box) {
  tip.textContent = text;
  tip.hidden = false;
  const width = tip.offsetWidth, height = tip.offsetHeight;
  tip.style.left = `${Math.max(4, Math.min(box.left + box.width / 2 - width / 2, innerWidth - width - 4))}px`;
  tip.style.top = `${box.top > height + 8 ? box.top - height - 6 : box.bottom + 6}px`;
}
export const hideTip = () => { tip.hidden = true; };
