# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: on made-up data for its layout (page_fixture.py), and on real daemons."""

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator

import pytest
from braid_build import IS_SANITIZED
from browser import Browser, needs_browser
from page_fixture import HOSTILE, MadeUp, served
from real_cluster import Node, end_running, needs_daemons, wait_until_running
from test_page import PLANNED, TOKEN, with_token  # noqa: F401  a fixture

pytestmark = needs_browser

JOB_ROWS = "document.querySelectorAll('#jobs tbody tr').length"
CELLS = "document.querySelectorAll('#steps .cell').length"
# What is drawn over the edge of the window would have to be scrolled to.
OVERFLOW = "document.documentElement.scrollWidth - innerWidth"
# The contrast of the text in each element of the selector with its background, as WCAG 2 counts.
CONTRASTS = """(() => {
  const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!/, 0\\)$/.test(colour)) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const found = {};
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || element.closest('svg') || !element.checkVisibility() || element.disabled) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(behind(element))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) found[`${element.tagName} ${element.textContent.slice(0, 40)}`] = contrast;
  }
  return found;
})()"""


TEXTS = "[...document.querySelectorAll('#steps text')].map((one) => one.textContent)"


def link_of(job: str) -> str:
    return f"[...document.querySelectorAll('#jobs a')].find((one) => one.textContent === {json.dumps(job)})"


def test_hostile_names_are_text():
    with served(MadeUp(names=tuple(HOSTILE))) as url, Browser() as browser:
        browser.open(url)
        browser.until(f"{JOB_ROWS} === {len(HOSTILE)}")
        shown = browser.run("[...document.querySelectorAll('#jobs tbody a')].map((one) => one.textContent)")
        assert sorted(shown) == sorted(HOSTILE)
        assert browser.run("document.querySelectorAll('#jobs script, #jobs img').length") == 0
        assert browser.run("document.title") == "node-0 – braid"
        for name in HOSTILE:
            browser.run(link_of(name) + ".click()")
            browser.until(f"document.querySelector('#job-title').textContent === {json.dumps('Job ' + name)}")
            browser.until(f"{CELLS} > 0 && !document.querySelector('#job').hidden")
            browser.run("location.hash = ''")
            browser.until("!document.querySelector('#overview').hidden")
        assert browser.errors == []


def test_a_thousand_jobs_are_searched_sorted_and_paged():
    with served(MadeUp(jobs=1000, peers=3, flows=64)) as url, Browser() as browser:
        browser.open(url)
        browser.until(f"{JOB_ROWS} === 25")
        assert "1 to 25 of 1000" in browser.text()
        # Three links, 64 bars each; what is out of order is marked by its shape, too.
        assert browser.run("document.querySelectorAll('#links tbody > tr').length") == 3
        assert browser.run("document.querySelectorAll('#links svg > g').length") == 3 * 64
        assert browser.run("document.querySelectorAll('#links .mark.slow').length") == 3 * 4
        assert browser.run("document.querySelectorAll('#links .cross').length") == 3 * 2
        label = browser.run("document.querySelector('#links svg').getAttribute('aria-label')")
        assert label.startswith("64 flows to node-1: 62 open, 2 failed, 4 slow")
        browser.run("document.querySelector('#links td button').click()")
        assert browser.run("document.querySelectorAll('#links td table tbody tr').length") == 128

        browser.run("document.querySelector('#jobs input').focus()")
        browser.type("train-99")
        browser.until(f"{JOB_ROWS} === 11")
        browser.run("document.querySelector('#jobs input').select()")
        browser.type("nobody's")
        browser.until(f"{JOB_ROWS} === 0")
        assert "Nothing of 1000 has “nobody's” in it." in browser.text()
        browser.run("document.querySelector('#jobs input').select()")
        browser.type("train")
        buttons = "[...document.querySelectorAll('#jobs th button')]"
        browser.run(f"{buttons}.find((one) => one.textContent === 'Step').click()")
        assert browser.run("document.querySelector('#jobs th[aria-sort]').textContent") == "Step ↓"
        browser.run("document.querySelector('#jobs .pager button:last-child').click()")
        browser.until("document.querySelector('#jobs .pager').innerText.includes('26 to 50 of 1000')")
        assert browser.errors == []


def test_keys_reach_everything():
    with served(MadeUp(jobs=3)) as url, Browser() as browser:
        browser.open(url)
        browser.until(f"{JOB_ROWS} === 3")
        reached = []
        for _ in range(40):
            browser.press("Tab")
            reached.append(browser.run("document.activeElement.textContent.trim() || document.activeElement.tagName"))
        for name in ("Skip to the content", "Pause", "train-0", "train-2", "Flows", "Job ↑"):
            assert name in reached, reached
        browser.run("[...document.querySelectorAll('#jobs a')].at(-1).focus()")
        assert browser.run("document.activeElement.matches(':focus-visible')")
        browser.until("document.querySelector('#jobs tbody td:nth-child(6)').textContent !== ''")
        before = browser.run("document.querySelector('#jobs tbody td:nth-child(6)').textContent")
        browser.until(f"document.querySelector('#jobs tbody td:nth-child(6)').textContent !== {before!r}")
        # What has the focus keeps it while the numbers change.
        assert browser.run("document.activeElement.textContent") == "train-2"
        browser.press("Enter")
        browser.until(f"{CELLS} === 4 * 5")
        browser.run("document.querySelector('#steps .cell[tabindex=\"0\"]').focus()")
        told = [browser.run("document.activeElement.getAttribute('aria-label')")]
        for key in ("ArrowLeft", "ArrowDown", "Home", "ArrowUp"):
            browser.press(key)
            told.append(browser.run("document.activeElement.getAttribute('aria-label')"))
            assert browser.run("document.querySelector('#tip').textContent") == told[-1]
        assert told[0].startswith("Rank 0 on node-0, step ") and told[2].startswith("Rank 1 on node-1, step ")
        assert len(set(told)) == 5 and all("waiting for results" in text for text in told)
        assert browser.errors == []


def test_late_ranks_are_named_and_the_table_says_the_same():
    made_up = MadeUp(jobs=1)
    made_up.sentences = [{"job": "train-0", "findings": [{"text": "Rank 1 is late", "advice": "look at it"}]}]
    with served(made_up) as url, Browser() as browser:
        browser.open(url + "/#job=train-0")
        browser.until(f"{CELLS} === 4 * 5 && document.querySelectorAll('#groups tbody tr').length === 7")
        assert "▲ Late, so that the others wait for it: rank 1 on node-1 (" in browser.text()
        (marked,) = [text for text in browser.run(TEXTS) if text.startswith("▲")]
        assert marked.startswith("▲ rank 1 node-1") and "late, the others wait" in marked
        assert "Rank 1 is late." in browser.text() and "What helps: look at it." in browser.text()
        browser.run("document.querySelector('#steps-table summary').click()")
        browser.until("document.querySelectorAll('#steps-table tbody tr').length === 4 * 5")
        assert "late" in browser.run("document.querySelector('#steps-table tbody').innerText")
        browser.run("document.querySelector('#steps-shown').value = '64'")
        browser.run("document.querySelector('#steps-shown').dispatchEvent(new Event('change'))")
        browser.until(f"{CELLS} === 4 * 64")
        assert browser.errors == []


def test_what_a_daemon_does_not_tell_is_not_shown():
    with served(MadeUp(jobs=1)) as url, Browser() as browser:
        browser.open(url + "/#job=train-0")
        browser.until(f"{CELLS} > 0")
        assert browser.run("document.querySelector('#sentences-section').hidden")
        browser.open(url + "/#job=nobody")
        browser.until("document.querySelector('#job-facts').innerText.includes('no job of this name')")
        assert browser.errors == []


def test_it_says_that_the_daemon_is_away_and_comes_back():
    made_up = MadeUp()
    with served(made_up) as url, Browser() as browser:
        browser.open(url)
        browser.until(f"{JOB_ROWS} === 3")
        made_up.refusal = (503, "the control loop has not answered within 3000 ms")
        browser.until("document.querySelector('#trouble').innerText.includes('has not answered within 3000 ms')")
        assert "What is shown is old. The next attempt is in" in browser.text()
        assert browser.run(JOB_ROWS) == 3
        made_up.refusal, made_up.ready = None, (503, "stopping: takes no new trainers")
        browser.until("document.querySelector('#trouble').hidden")
        browser.until("document.querySelector('#readiness').innerText === '! stopping: takes no new trainers'")
        browser.run("document.querySelector('#pause').click()")
        browser.until("document.querySelector('#freshness').innerText === 'paused'")
        assert browser.run("document.querySelector('#pause').getAttribute('aria-pressed')") == "true"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1200])
def test_all_is_legible(dark, width):
    made_up = MadeUp(jobs=40, peers=3, flows=64, ranks=40, names=tuple(HOSTILE))
    with served(made_up) as url, Browser(width, 900, dark=dark) as browser:
        for where, condition in (("/", f"{JOB_ROWS} === 25"), ("/#job=train-1", f"{CELLS} === 32 * 5")):
            browser.open("about:blank")
            browser.open(url + where)
            browser.until(condition)
            assert browser.run(OVERFLOW) <= 0
            assert browser.run(CONTRASTS) == {}
        assert browser.run("matchMedia('(prefers-color-scheme: dark)').matches") == dark
        assert browser.errors == []


@needs_daemons
def test_it_asks_for_the_token(with_token):  # noqa: F811
    with Browser() as browser:
        browser.open(f"http://127.0.0.1:{with_token.ports[1]}/")
        browser.until("!document.querySelector('#token-form').hidden")
        assert browser.run("document.activeElement.id") == "token"
        browser.type("wrong")
        browser.press("Enter")
        browser.until("document.querySelector('#trouble').innerText.includes('not the one that page.access names')")
        browser.until("!document.querySelector('#token-form').hidden")
        browser.run("document.querySelector('#token').focus()")
        browser.type(TOKEN)
        browser.press("Enter")
        browser.until("document.querySelector('#overview') && !document.querySelector('#overview').hidden")
        assert browser.run("document.querySelector('#trouble').hidden")
        assert TOKEN not in browser.run("document.documentElement.outerHTML + location.href + document.cookie")


@contextlib.contextmanager
def tunnel(node: Node) -> Iterator[str]:
    """The node's page at an address of this namespace, as ssh -L makes it."""

    class Forward(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = node.run("curl", "-si", "--path-as-is", f"http://{node.address}:9431{self.path}").encode()
            self.wfile.write(body)
            self.close_connection = True

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forward)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.skipif(IS_SANITIZED, reason="the page is the same, and the browser slow beside it")
@needs_daemons
def test_a_job_on_real_daemons(cluster_of):
    cluster = cluster_of(3)
    trainers = cluster.start(PLANNED, job="real <b>job</b>")
    wait_until_running(trainers)
    with tunnel(cluster.nodes[1]) as url, Browser() as browser:
        browser.open(url)
        browser.until(f"{JOB_ROWS} >= 1 && document.querySelectorAll('#links tbody > tr').length >= 1")
        assert browser.run("document.querySelector('#readiness').innerText") == "✓ ready"
        browser.run(link_of("real <b>job</b>") + ".click()")
        browser.until(f"{CELLS} === 3 * 5 && document.querySelectorAll('#groups tbody tr').length >= 1")
        # On a busy machine it may also be marked as late.
        assert any(text.removeprefix("▲ ").startswith("rank 2 node2") for text in browser.run(TEXTS))
        browser.until("!document.querySelector('#spans-section').hidden")
        browser.run("document.querySelector('#spans-open summary').click()")
        browser.until("document.querySelectorAll('#spans svg rect').length > 0")
        assert "By the clock of node node1" in browser.text()
        first = "document.querySelector('#steps .cell').getAttribute('aria-label')"
        shown = browser.run(first)
        browser.until(f"{first} !== {json.dumps(shown)}")  # further steps come
        assert browser.errors == []
    end_running(trainers)
