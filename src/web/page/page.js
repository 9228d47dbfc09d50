// SPDX-License-Identifier: Apache-2.0
// Asks the daemon again and again, and shows what it says: all of the node, or one job (#job=NAME).
import { ask, askForToken, askJson, Refused, showTokenForm } from "./ask.js";
import { byId, setText } from "./dom.js";
import { JobView } from "./job.js";
import { Overview } from "./overview.js";

const PERIOD_MS = 2000;
const PERIOD_MS_MAX = 30000;

const overview = new Overview();
const job = new JobView();
let timer = 0, isAsking = false, isPaused = false, failures = 0;

function jobOfAddress() {
  const found = /^#job=(.*)$/s.exec(location.hash);
  if (!found) return null;
  try {
    return decodeURIComponent(found[1]);
  } catch {
    return found[1];
  }
}

function tell(text) {
  setText(byId("trouble"), text);
  byId("trouble").hidden = text === "";
}

async function showReadiness() {
  const badge = byId("readiness");
  let text;
  try {
    text = await ask("/readyz", (words) => words.trim());
  } catch (refused) {
    if (refused.status === 0) throw refused;
    text = refused.message;
  }
  setText(badge, text === "ready" ? "✓ ready" : `! ${text}`);
  badge.classList.toggle("good", text === "ready");
  badge.classList.toggle("bad", text !== "ready");
}

async function refresh() {
  await showReadiness();
  const status = await askJson("/api/status");
  overview.update(status);
  const name = jobOfAddress();
  byId("overview").hidden = name !== null;
  byId("job").hidden = name === null;
  if (name !== null) await job.refresh(name, status);
}

async function turn() {
  clearTimeout(timer);
  if (isAsking) return;
  isAsking = true;
  let wait = PERIOD_MS;
  try {
    await refresh();
    failures = 0;
    tell("");
    setText(byId("freshness"), isPaused ? "paused" : `as of ${new Date().toLocaleTimeString("en-GB")}`);
  } catch (error) {
    if (!(error instanceof Refused)) console.error(error);
    wait = Math.min(PERIOD_MS_MAX, PERIOD_MS * 2 ** failures);
    ++failures;
    explain(error, wait);
  }
  isAsking = false;
  plan(wait);
}

function explain(error, wait) {
  if (error.status === 401) {
    showTokenForm();
    wait = 0;
  }
  const words = error instanceof Refused ? error.message : "This page could not show what the daemon said.";
  tell(words + (wait > 0 ? ` What is shown is old. The next attempt is in ${Math.round(wait / 1000)} s.` : ""));
  setText(byId("freshness"), "not up to date");
}

function plan(wait) {
  clearTimeout(timer);
  const isWanted = !isPaused && !document.hidden && byId("token-form").hidden;
  if (isWanted) timer = setTimeout(turn, wait);
}

byId("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  byId("pause").setAttribute("aria-pressed", String(isPaused));
  setText(byId("pause"), isPaused ? "Go on" : "Pause");
  if (isPaused) setText(byId("freshness"), "paused");
  plan(0);
});
document.addEventListener("visibilitychange", () => plan(0));
addEventListener("hashchange", () => {
  scrollTo(0, 0);
  turn().then(() => byId(jobOfAddress() === null ? "main" : "job-title").focus({ preventScroll: true }));
});
askForToken(turn);
turn();
