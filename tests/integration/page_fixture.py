# SPDX-License-Identifier: Apache-2.0
"""The page's files behind a server whose answers are made up: for its layout alone, with more than a test machine has.

What the page shows of real daemons is tested on real daemons (test_page.py, test_page_browser.py)."""

import contextlib
import http.server
import json
import random
import threading
import urllib.parse
from collections.abc import Iterator

from braid_build import REPOSITORY

PAGE = REPOSITORY / "src" / "web" / "page"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'"
HOSTILE = [
    "<script>document.title='broken'</script>",
    "<img src=x onerror=alert(1)>",
    "a/b c?d#e&f=%41",
    "\"quoted\" 'twice'",
    "two\nlines",
    "x" * 255,
    "ünïcode ☃ \u202eright to left",
]
STEP_S = 0.25


class MadeUp:
    """A node with so many jobs, links and flows; each question about its status comes two seconds later."""

    def __init__(self, jobs: int = 3, peers: int = 2, flows: int = 8, ranks: int = 4, names: tuple[str, ...] = ()):
        self.random = random.Random(1)
        self.names = [*names, *(f"train-{i}" for i in range(jobs - len(names)))]
        self.peers, self.flows, self.ranks = [f"node-{i + 1}" for i in range(peers)], flows, ranks
        self.uptime = 7300.0
        self.ready, self.refusal, self.sentences = (200, "ready"), None, None
        self.asked: list[str] = []

    def flow(self, peer: str, number: int, direction: str) -> dict:
        rate = self.random.uniform(0.9, 1.1) * 12e6
        state, failures, error = "open", 0, ""
        if direction == "out" and number % 16 == 5:
            rate *= 0.3
        if direction == "out" and number % 32 == 9:
            state, failures, error, rate = "failed", 3, "nothing acknowledged for 1.2 s", 0
        sent, received = (self.uptime * 11e6, 4e6) if direction == "out" else (4e6, self.uptime * 10e6)
        return {
            "peer": peer, "direction": direction, "io_loop": 0, "flow": number, "rail": f"eth{number % 2}",
            "state": state, "bytes_sent": int(sent), "bytes_received": int(received), "failures": failures,
            "error": error, "round_trip_ms": 0.41, "bytes_per_second": rate if direction == "out" else 0,
        }  # fmt: skip

    def job(self, number: int, name: str) -> dict:
        steps = int(self.uptime / STEP_S) + number
        nodes = [
            {"name": f"node-{i}", "address": f"192.0.2.{i + 1}", "ranks": [i], "rack": ""}
            for i in range(min(self.ranks, 8))
        ]
        here = {"rank": 0, "pid": 1000 + number, "uid": 1000, "arena_memory_bytes": 104857600}
        return {
            "name": name, "epoch": 1, "state": "running" if number % 9 else "starting",
            "world_size": self.ranks, "weight": 1, "nodes": nodes, "local_ranks": [here],
            "operations_done": steps * 8, "steps_done": steps, "operations_pending": 1,
            "bytes": steps * 102_400_000, "arena_memory_bytes": 104857600,
            "result_memory_bytes": 209715200, "result_memory_used_bytes": 1000, "planned_steps": steps,
            "step_seconds": steps * STEP_S * (1 + number % 7), "exposed_seconds": steps * 0.01,
        }  # fmt: skip

    def status(self) -> dict:
        self.uptime += 2
        ways = [(peer, i, way) for peer in self.peers for way in ("out", "in") for i in range(self.flows)]
        return {
            "version": "0.1.0", "node": {"name": "node-0", "id": "00000000000000ff", "address": "192.0.2.1"},
            "uptime_seconds": self.uptime, "polling": {"mode": "adaptive", "seconds": 12.0},
            "processor": {"seconds": self.uptime * 0.31, "wait_seconds": self.uptime * 0.02},
            "transport": "TCP on eth0, eth1, 64 flows per link and I/O loop",
            "rails": ["eth0", "eth1"], "rails_down": ["eth1"], "flows": [self.flow(*one) for one in ways],
            "jobs": [self.job(i, name) for i, name in enumerate(self.names)], "jobs_hidden": 2,
            "peers": [{"name": peer, "address": "192.0.2.9", "port": 7410} for peer in self.peers],
            "counters": {"braid_wire_bytes_total.sent": int(self.uptime * 6e8), "braid_operations_pending": 9,
                         "braid_wire_bytes_total.received": int(self.uptime * 5.4e8)},
        }  # fmt: skip

    def steps(self, name: str) -> list:
        last = int(self.uptime / STEP_S)
        nodes = []
        for i in range(self.ranks):
            steps = []
            for number in range(last - 63, last + 1):
                chance = random.Random(number * 1000 + i)
                late = 0.06 if i == 1 else 0.0
                before, backward = 0.08 + chance.uniform(0, 0.01), 0.1 + late + chance.uniform(0, 0.01)
                wait = 0.03 if late else 0.28 - before - backward
                times = {"before_ns": before, "backward_ns": backward, "wait_ns": wait}
                steps.append({"step": number, "step_ns": 250_000_000,
                              **{name: [int(value * 1e9)] for name, value in times.items()}})  # fmt: skip
            nodes.append({"node": f"node-{i}", "ranks": [i], "steps": steps})
        return [{"job": name, "nodes": nodes, "missing": []}]

    def plan(self, name: str) -> list:
        names = [f"layer{i}.weight" for i in range(161)]
        groups = [names[i:i + 23][::-1] for i in range(0, 161, 23)][::-1]
        trace = {"names": names, "numel": [1000 * (1 + i % 97) for i in range(161)], "dtype": ["float32"] * 161}
        plan = {
            "plan": 3, "from_step": 96, "planner": "streams", "streams": 4, "groups": groups, "plain": [],
            "predicted_iteration_seconds": 0.241, "measured_iteration_seconds": 0.249,
            "codecs": [{"codec": "int8" if i == 2 else "none", "reading": None} for i in range(len(groups))],
            "trace": {**trace, "tb": [0.001] * 161},
        }  # fmt: skip
        return [{"job": name, "sets": [plan]}]

    def answer(self, path: str) -> tuple[int, str, bytes]:
        self.asked.append(path)
        parts = [urllib.parse.unquote(part) for part in path.split("/")[1:]]
        if path == "/readyz":
            return self.ready[0], "text/plain", self.ready[1].encode()
        if parts[0] != "api":
            file = PAGE / (parts[0] or "page.html")
            if not file.is_file():
                return 404, "text/plain", b"There is no such path."
            return 200, TYPES[file.suffix], file.read_bytes()
        if self.refusal:
            return self.refusal[0], "text/plain", self.refusal[1].encode()
        if path == "/api/status":
            return 200, "application/json", json.dumps(self.status()).encode()
        name, what = parts[2], parts[3]
        if name not in self.names:
            return 404, "text/plain", b"No job of this name."
        answers = {"steps": self.steps, "plan": self.plan, "explain": lambda _: self.sentences}
        told = answers[what](name) if what in answers else None
        if told is None:
            return 404, "text/plain", b"There is no such path."
        return 200, "application/json", json.dumps(told).encode()


@contextlib.contextmanager
def served(made_up: MadeUp) -> Iterator[str]:
    """Its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            status, kind, body = made_up.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", POLICY)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


