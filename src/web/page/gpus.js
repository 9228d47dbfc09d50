// SPDX-License-Identifier: Apache-2.0
// The node's GPUs; the section is there only where there are some.
import { byId, bytes, el, setText } from "./dom.js";
import { numberColumn, Table, textColumn } from "./table.js";

const UNKNOWN = "–";
const IDLE = "idle";

const known = (isKnown, format) => (value) => (isKnown(value) ? format(value) : UNKNOWN);
const positive = (format) => known((value) => value > 0, format);
const megahertz = (value) => `${value.toLocaleString("en")} MHz`;
const timeOf = (at) => new Date(at * 1000).toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hour12: false });

function troubles(gpu) {
  const found = [];
  if (gpu.error !== "") found.push(`does not answer: ${gpu.error}`);
  for (const reason of gpu.reasons) {
    if (reason.name !== IDLE) found.push(`slowed by ${reason.name.replaceAll("_", " ")} since ${timeOf(reason.since)}`);
  }
  if (gpu.last_xid_at > 0) found.push(`Xid ${gpu.last_xid} at ${timeOf(gpu.last_xid_at)}`);
  if (gpu.ecc_uncorrected > 0) found.push(`${gpu.ecc_uncorrected} uncorrectable memory error${gpu.ecc_uncorrected > 1 ? "s" : ""}`);
  if (gpu.pcie_width > 0 && gpu.pcie_width < gpu.pcie_width_max) found.push(`${gpu.pcie_width} of ${gpu.pcie_width_max} PCIe lanes`);
  return found;
}

function ranks(gpu) {
  const named = gpu.processes.map((process) => `${process.job} ${process.rank}`);
  if (gpu.other_processes > 0) named.push(`${gpu.other_processes} other${gpu.other_processes > 1 ? "s" : ""}`);
  return named.join(", ") || UNKNOWN;
}

function showTroubles(gpu, cell) {
  const found = troubles(gpu);
  let mark = cell.firstChild;
  if (!mark) cell.append((mark = el("span", {})));
  mark.setAttribute("class", gpu.error !== "" ? "sample failed" : "");
  setText(mark, found.length === 0 ? "none" : found.join("; "));
}

// Shows the GPUs of a status.
export function gpuTable(section, place) {
  const table = new Table(place, "GPUs", [
    numberColumn("GPU", (gpu) => gpu.index, String),
    textColumn("Name", (gpu) => gpu.name || UNKNOWN),
    numberColumn("Clock", (gpu) => gpu.clock_mhz, positive(megahertz)),
    numberColumn("Highest", (gpu) => gpu.clock_max_mhz, positive(megahertz)),
    numberColumn("Temperature", (gpu) => gpu.temperature_celsius, positive((value) => `${value} °C`)),
    numberColumn("Busy", (gpu) => gpu.utilization, known((value) => value >= 0, (value) => `${(value * 100).toFixed(0)} %`)),
    numberColumn("Memory", (gpu) => gpu.memory_used_bytes, positive(bytes)),
    textColumn("Nearest rails", (gpu) => gpu.near_rails.join(", ") || UNKNOWN),
    textColumn("Ranks", ranks),
    { title: "Trouble", name: true, value: (gpu) => troubles(gpu).length, show: showTroubles },
  ], { key: (gpu) => `${gpu.index} ${gpu.uuid}`, sortBy: 0, empty: "No GPUs." });
  return (status) => {
    const gpus = status.gpus ?? [];
    section.hidden = gpus.length === 0;
    if (gpus.length === 0) return;
    const silent = status.gpus_silent_seconds > 0;
    byId("gpus-silent").hidden = !silent;
    if (silent) setText(byId("gpus-silent"), `NVIDIA's library has not answered for ${status.gpus_silent_seconds.toFixed(0)} s: these numbers are so old.`);
    table.update(gpus);
  };
}
