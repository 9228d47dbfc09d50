// SPDX-License-Identifier: Apache-2.0
// Questions to the daemon, with the token where it wants one.
import { byId } from "./dom.js";

const DEADLINE_MS = 8000;
const TOKEN = "braid-token";

// What went wrong, in words for people. `status`: of the answer; 0: there was none.
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export async function ask(path, read) {
  const token = sessionStorage.getItem(TOKEN);
  let reply, text;
  try {
    reply = await fetch(path, {
      headers: token === null ? {} : { Authorization: `Bearer ${token}` },
      cache: "no-store",
      credentials: "omit",
      signal: AbortSignal.timeout(DEADLINE_MS),
    });
    text = await reply.text();
  } catch {
    throw new Refused(0, "The daemon does not answer.");
  }
  if (reply.status === 401) {
    sessionStorage.removeItem(TOKEN);
    throw new Refused(401, text.trim());
  }
  if (!reply.ok) throw new Refused(reply.status, text.trim());
  return read(text);
}
export const askJson = (path) => ask(path, JSON.parse);
export const jobPath = (job, what) => `/api/jobs/${encodeURIComponent(job)}/${what}`;

// Calls back when there is a token to be tried.
export function askForToken(entered) {
  const form = byId("token-form"), input = byId("token");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(TOKEN, input.value.trim());
    input.value = "";
    form.hidden = true;
    entered();
  });
}
export function showTokenForm() {
  const form = byId("token-form");
  if (!form.hidden) return;
  form.hidden = false;
  byId("token").focus();
}
