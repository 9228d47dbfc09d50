// SPDX-License-Identifier: Apache-2.0
// One job: its steps as a timeline, the groups of its plan, and why its steps take what they take.
import { askJson, jobPath } from "./ask.js";
import { byId, bytes, count, el, facts, median, seconds, setText } from "./dom.js";
import { Groups } from "./groups.js";
import { drawNodeTimeline } from "./node_timeline.js";
import { describeCell, key, latest, Timeline, viewJob } from "./timeline.js";

const RANKS_SHOWN = 32;
const SPANS_STEPS_MAX = 20;
const STEPS = [1, 3, 5, 10, 20, 64];
// Each question about steps goes to all nodes of the job: large ones are asked less often.
const STEPS_PERIOD_MS = 1900, STEPS_PERIOD_MS_OF_NODE = 50, PLAN_PERIOD_MS = 10000, SENTENCES_PERIOD_MS = 4000, SPANS_PERIOD_MS = 4000, ABSENT_PERIOD_MS = 60000;

export class JobView {
  constructor() {
    this.groups = new Groups(byId("groups"));
    this.timeline = new Timeline();
    this.makeSteps();
    this.reset(null);
    const askAtOnce = () => {
      this.next.timeline = 0;
      this.askForSpans().catch(() => {});  // the next turn asks again, and says why it gets nothing
    };
    byId("spans-open").addEventListener("toggle", askAtOnce);
    this.steps.addEventListener("change", askAtOnce);
    new ResizeObserver(() => this.drawSteps()).observe(byId("steps"));
  }

  makeSteps() {
    this.steps = el("select", { id: "steps-shown" }, ...STEPS.map((value) => el("option", { value, selected: value === 5 }, String(value))));
    this.order = el("select", { id: "rank-order" }, el("option", { value: "rank" }, "rank"), el("option", { value: "late" }, "latest first"));
    this.which = el("select", { id: "which-job" });
    this.whichLabel = el("label", { for: "which-job", hidden: true }, "Jobs have this name; shown is number ", this.which);
    this.words = el("p", { id: "steps-words" });
    this.rows = el("tbody");
    this.asTable = el("details", { id: "steps-table" }, el("summary", {}, "The same as a table"),
      el("div", { class: "wide" }, el("table", {}, el("caption", { class: "unseen" }, "Times of each rank in each step"),
        el("thead", {}, el("tr", {}, ...["Step", "Rank", "Node", "Before", "Backward", "Waits", ""].map((head) => el("th", { scope: "col" }, head)))),
        this.rows)));
    const turn = (by) => () => {
      this.first = Math.max(0, this.first + by * RANKS_SHOWN);
      this.drawSteps();
    };
    this.back = el("button", { type: "button", onclick: turn(-1), "aria-label": "Earlier ranks" }, "←");
    this.on = el("button", { type: "button", onclick: turn(1), "aria-label": "Further ranks" }, "→");
    this.pageText = el("span", { role: "status" });
    this.pager = el("p", { class: "pager", hidden: true }, this.back, this.pageText, this.on);
    for (const one of [this.steps, this.order, this.which]) one.addEventListener("change", () => this.drawSteps());
    this.asTable.addEventListener("toggle", () => this.drawSteps());
    this.tools = el("p", { class: "tools" }, el("label", { for: "steps-shown" }, "Steps shown ", this.steps),
      el("label", { for: "rank-order" }, "Ranks by ", this.order), this.whichLabel);
    byId("steps").replaceChildren(this.tools, this.words, key(), this.timeline.place, this.pager, this.asTable);
  }

  reset(name) {
    this.name = name;
    this.first = 0;
    this.told = null;
    this.next = { steps: 0, plan: 0, explain: 0, timeline: 0 };
    this.groups.clear();
    this.timeline.focus = null;
    byId("sentences-section").hidden = byId("spans-section").hidden = true;
    byId("spans").replaceChildren();
    if (name !== null) this.drawSteps();
  }

  // Asks what is due.
  async refresh(name, status) {
    if (name !== this.name) this.reset(name);
    setText(byId("job-title"), `Job ${name}`);
    document.title = `${name} – ${status.node.name} – braid`;
    const jobs = status.jobs.filter((job) => job.name === name);
    const nodes = jobs.reduce((most, job) => Math.max(most, job.nodes.length), 1);
    await Promise.all([
      this.askWhenDue("steps", Math.max(STEPS_PERIOD_MS, nodes * STEPS_PERIOD_MS_OF_NODE), (told) => { this.told = told; }),
      this.askWhenDue("plan", PLAN_PERIOD_MS, (told) => this.groups.update(told.flatMap((job) => job.sets))),
      this.askWhenDue("explain", SENTENCES_PERIOD_MS, (told) => this.showSentences(told)),
      this.askForSpans(),
    ]);
    if (name !== this.name) return;  // another one was chosen meanwhile
    this.drawSteps();
    this.showFacts(jobs);
  }

  // Only while they are to be seen.
  async askForSpans() {
    const section = byId("spans-section");
    if (this.name === null || (!byId("spans-open").open && !section.hidden)) return;
    const steps = Math.min(SPANS_STEPS_MAX, Number(this.steps.value));
    await this.askWhenDue("timeline", SPANS_PERIOD_MS, (told) => {
      section.hidden = false;
      if (byId("spans-open").open) drawNodeTimeline(byId("spans"), told[0], Math.max(300, byId("steps").clientWidth));
    }, `?steps=${byId("spans-open").open ? steps : 1}`);
  }

  async askWhenDue(what, period, show, more = "") {
    const now = Date.now(), name = this.name;
    if (now < this.next[what]) return;
    this.next[what] = now + period;
    try {
      const told = await askJson(jobPath(name, what) + more);
      if (name === this.name) show(told);
    } catch (refused) {
      if (refused.status !== 404) throw refused;
      // This daemon does not tell such things, or the job is over: what was shown of it stays.
      const section = { explain: "sentences-section", timeline: "spans-section" }[what];
      if (section) {
        this.next[what] = now + ABSENT_PERIOD_MS;
        byId(section).hidden = true;
      }
    }
  }

  showFacts(jobs) {
    if (jobs.length === 0) {
      return facts(byId("job-facts"), [["State", this.told ? "has ended on this node" : "no job of this name runs on this node, or none that you may see"]]);
    }
    const job = jobs[Math.min(this.which.selectedIndex > 0 ? this.which.selectedIndex : 0, jobs.length - 1)];
    const here = job.local_ranks.map((one) => `${one.rank} (process ${one.pid})`);
    facts(byId("job-facts"), [
      ["State", job.state], ["Ranks", `${count(job.world_size)} on ${count(job.nodes.length)} nodes`],
      ["Here", here.length > 8 ? `${here.slice(0, 8).join(", ")} and ${here.length - 8} more` : here.join(", ")],
      ["Steps", count(job.steps_done)], ["Step", job.step > 0 ? seconds(job.step) : "–"],
      ["Exposed", job.exposed >= 0 ? seconds(job.exposed) : "–"], ["Results", bytes(job.bytes)],
      ["Memory", `${bytes(job.result_memory_bytes)} for results, ${bytes(job.arena_memory_bytes)} in input arenas`], ["Weight", String(job.weight)],
    ]);
  }

  drawSteps() {
    const jobs = this.told ?? [];
    this.chooseAmong(jobs.length);
    const job = jobs[Math.max(0, this.which.selectedIndex)] ?? jobs[0];
    const view = job ? viewJob(job) : { numbers: [], ranks: [], silent: [] };
    const shown = latest(view, Number(this.steps.value));
    if (this.order.value === "late") shown.ranks.sort((a, b) => b.cost - a.cost);
    setText(this.words, this.describe(job, view, shown));
    const isEmpty = shown.steps.length === 0 || shown.ranks.length === 0;
    this.asTable.hidden = this.timeline.place.hidden = isEmpty;
    this.pager.hidden = isEmpty || shown.ranks.length <= RANKS_SHOWN;
    if (isEmpty) return;
    if (this.first >= shown.ranks.length) this.first = 0;
    const page = { steps: shown.steps, ranks: shown.ranks.slice(this.first, this.first + RANKS_SHOWN) };
    setText(this.pageText, `${this.first + 1} to ${this.first + page.ranks.length} of ${shown.ranks.length} ranks`);
    this.back.disabled = this.first === 0;
    this.on.disabled = this.first + RANKS_SHOWN >= shown.ranks.length;
    this.timeline.draw(page, Math.max(300, byId("steps").clientWidth));
    if (this.asTable.open) this.fillTable(page);
  }

  chooseAmong(jobs) {
    this.whichLabel.hidden = jobs < 2;
    if (this.which.options.length === jobs) return;
    this.which.replaceChildren(...Array.from({ length: jobs }, (_, i) => el("option", { value: i }, `${i + 1} of ${jobs}`)));
  }

  describe(job, view, shown) {
    if (!job) return "Not known yet.";
    const parts = [];
    if (shown.steps.length === 0) {
      parts.push("No step is known yet: steps of planned tensors are measured from the first to the last result.");
    } else {
      const step = median(shown.steps.map((one) => one.width)), network = median(shown.steps.map((one) => one.network));
      parts.push(`Of ${shown.steps.length} steps the middle one takes ${seconds(step)}; the rank that comes last waits ${seconds(network)} of it for results.`);
      const late = shown.ranks.filter((rank) => rank.isLate).sort((a, b) => b.cost - a.cost);
      if (late.length > 0) {
        const named = late.slice(0, 3).map((rank) => `rank ${rank.rank} on ${rank.node} (${seconds(rank.cost)})`).join(", ");
        parts.push(`▲ Late, so that the others wait for it: ${named}${late.length > 3 ? ` and ${late.length - 3} more` : ""}.`);
      }
    }
    if (view.silent.length > 0 && view.ranks.length > 0) parts.push(`No steps are known of ${view.silent.join(", ")}.`);
    if (job.missing.length > 0) parts.push(`No answer came from ${job.missing.join(", ")}.`);
    return parts.join(" ");
  }

  fillTable(page) {
    const row = (rank, step, times) => el("tr", {}, ...[String(step.step), String(rank.rank), rank.node, seconds(times.before),
      seconds(times.backward), seconds(times.wait), rank.isLate ? "late" : ""].map((text) => el("td", {}, text)));
    this.rows.replaceChildren(...page.steps.flatMap((step, i) => page.ranks.map((rank) => {
      const one = row(rank, step, rank.times[i]);
      one.setAttribute("aria-label", describeCell(rank, step, rank.times[i]));
      return one;
    })));
  }

  // `told`: explanations as `braidctl explain --json` prints them.
  showSentences(told) {
    const findings = (Array.isArray(told) ? told : [told]).flatMap((one) => one.findings ?? []);
    byId("sentences-section").hidden = findings.length === 0;
    byId("sentences").replaceChildren(...findings.map((finding) => el("div", { class: "sentence" },
      el("p", {}, `${finding.text}.`),
      ...(finding.advice ? [el("p", { class: "advice" }, `What helps: ${finding.advice}.`)] : []))));
  }
}
