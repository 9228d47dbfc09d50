# SPDX-License-Identifier: Apache-2.0
"""Alerts and dashboards: the distribution's Prometheus understands them, and real daemons have what they ask for."""

import json
import pathlib
import re
import subprocess
import time

import pytest
from braid_build import IS_SANITIZED, PATIENCE_S, REPOSITORY, ran
from document_links import anchors
from fake_gpus import HEAT, FakeGpus, needs_fake_nvml
from real_cluster import Cluster, Node, end_running, needs_daemons, until, wait_until_running
from test_metrics import ONE_IS_LATE

PROGRAMS = REPOSITORY / "build" / "prometheus"
RULES = REPOSITORY / "packaging" / "prometheus"
DASHBOARDS = sorted((REPOSITORY / "packaging" / "grafana").glob("*.json"))
WATCHING = (REPOSITORY / "docs" / "watching.md").read_text(encoding="utf-8")
REFERENCE = (REPOSITORY / "docs" / "reference.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.skipif(IS_SANITIZED, reason="of the daemon it sees only its metrics, as test_metrics.py does")
needs_prometheus = pytest.mark.skipif(
    not (PROGRAMS / "promtool").exists(), reason="there is no build/prometheus: run scripts/setup --prometheus"
)

# Nothing has these but in situations that are rare, or need more than this test's job: large operations, a second
# plan, a codec. Nor has an expression that only lets through what is bad.
RARE = re.compile(
    r"_flow_bytes_per_second|_iteration_predicted_seconds|braid_codec_|[<>=]=? ?[\d.]+(?: and on .*)?$|_duration"
)


# Variables that Grafana sets.
GRAFANAS_OWN = {"__rate_interval", "__field", "__value", "__url_time_range"}
# No panel draws these as a line: a state, a count of what must not be at all, or of what the alert's own time decides.
WITHOUT_A_LINE = {
    "BraidDaemonDown", "BraidDaemonRestarts", "BraidJobStandsStill", "BraidGradientsNotFinite", "BraidGpuError",
    "BraidGuardEndsCodec",
}  # fmt: skip


def panels_of(path: pathlib.Path) -> list[dict]:
    """A dashboard's panels, without the titles of its rows."""
    return [one for one in json.loads(path.read_text(encoding="utf-8"))["panels"] if one["type"] != "row"]


def panels() -> list[tuple[str, str]]:
    """Title and expression of all panels' targets."""
    found = []
    for path in DASHBOARDS:
        found += [(f"{path.stem}: {p['title']}", t["expr"]) for p in panels_of(path) for t in p["targets"]]
    return found


def annotations() -> list[tuple[str, str]]:
    """Name and expression of what is marked in all graphs of a dashboard."""
    found = []
    for path in DASHBOARDS:
        listed = json.loads(path.read_text(encoding="utf-8"))["annotations"]["list"]
        found += [(f"{path.stem}: {one['name']}", one["expr"]) for one in listed]
    return found


def rules() -> dict[str, str]:
    """Expressions by the name of the alert, or of the series that is recorded."""
    text = (RULES / "braid.rules.yml").read_text(encoding="utf-8")
    found = {}
    for rule in re.split(r"^      - (?=record|alert)", text, flags=re.M)[1:]:
        name = re.match(r"(?:record|alert): (\S+)", rule)[1]
        expression = re.search(r"^        expr: (?:\|\n)?((?:.|\n(?=          ))*)", rule, re.M)[1]
        found[name] = " ".join(expression.split())
    return found


def test_what_they_name_is_there():
    known = set(re.findall(r"^\| `(braid_\w+)` \|", REFERENCE, re.M))
    assert len(known) > 50
    recorded = {name for name in rules() if ":" in name}
    for where, expression in [*panels(), *annotations(), *rules().items()]:
        named = set(re.findall(r"\b(?:[\w]+:)*braid_\w+(?::\w+)*", expression))
        assert named - recorded <= known, where
        assert named or where == "BraidDaemonDown", where


def alerts() -> dict[str, str]:
    """The text of each alert's rule, by its name."""
    text = (RULES / "braid.rules.yml").read_text(encoding="utf-8")
    parts = re.split(r"^      - alert: (\w+)\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_document_says_of_each_alert_what_it_means_where_it_is_and_what_to_do():
    parts = re.split(r"^### (Braid\w+)\n", WATCHING.partition("\n## Alerts\n")[2].partition("\n## ")[0], flags=re.M)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert list(sections) == list(alerts())
    for name, rule in alerts().items():
        text = sections[name]
        (severity,) = re.findall(r"severity: (\w+)", rule)
        assert text.startswith(f"\n*{severity}* – "), name
        where, do = re.fullmatch(r".*\n\n- \*\*Where:\*\* (.+)\n- \*\*Do:\*\* (.+)", text.strip(), re.S).groups()
        for label in re.findall(r"\$labels\.(\w+)", rule):
            assert f"`{label}`" in where, (name, label)
        assert len(do.split()) > 5, name


def test_each_alert_leads_to_its_section():
    known = anchors(REPOSITORY / "docs" / "watching.md")
    for name, rule in alerts().items():
        (address,) = re.findall(r"^          runbook_url: (\S+)$", rule, re.M)
        assert address == f"file:///usr/share/doc/braid-doc/docs/watching.md#{name.lower()}"
        assert address.partition("#")[2] in known, name


def test_the_address_of_the_documents_is_set_once():
    as_installed = ran([RULES / "rules"])
    assert as_installed.returncode == 0 and as_installed.stdout == (RULES / "braid.rules.yml").read_text()
    done = ran([RULES / "rules", "--documents", "https://wiki.example.org/a&b/"])
    assert done.returncode == 0, done.stderr
    given = re.findall(r"runbook_url: (\S+)/watching.md#", done.stdout)
    assert given == ["https://wiki.example.org/a&b"] * len(alerts())
    assert "file:" not in done.stdout
    for wrong in ([" https://x"], ["wiki"], []):
        refused = ran([RULES / "rules", "--documents", *wrong])
        assert refused.returncode == 2 and "is no address" in refused.stderr and refused.stdout == ""


def test_dashboards_are_whole():
    assert [path.stem for path in DASHBOARDS] == ["fleet", "job", "node"]
    uids = set()
    for path in DASHBOARDS:
        board = json.loads(path.read_text(encoding="utf-8"))
        assert board["id"] is None
        uids.add(board["uid"])
        assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
        places = set()
        for panel in panels_of(path):
            assert panel["datasource"]["uid"] == "${datasource}" and panel["fieldConfig"]["defaults"]["unit"]
        for panel in board["panels"]:
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            assert not cells & places and max(x for x, _ in cells) < 24, panel["title"]
            places |= cells
        variables = {one["name"] for one in board["templating"]["list"]}
        asked = json.dumps([board["panels"], board["annotations"]])
        used = set(re.findall(r"\$\{?(\w+)", asked)) - GRAFANAS_OWN
        assert board["graphTooltip"] == 1, "one cursor for all graphs"
        assert used <= variables, path
    linked = {link["url"] for path in DASHBOARDS for link in json.loads(path.read_text())["links"]}
    assert linked == {f"/d/{uid}" for uid in uids}


def data_links(panel: dict) -> list[tuple[str, str]]:
    """Address of each link of its series and columns, and what the value that it passes is taken of."""
    config = panel["fieldConfig"]
    found = [(link["url"], "") for link in config["defaults"].get("links", [])]
    for override in config["overrides"]:
        for one in override["properties"]:
            if one["id"] == "links":
                found += [(link["url"], override["matcher"]["options"]) for link in one["value"]]
    return found


def test_links_lead_to_dashboards_with_the_variables_that_they_set():
    boards = [json.loads(path.read_text(encoding="utf-8")) for path in DASHBOARDS]
    variables = {board["uid"]: {one["name"] for one in board["templating"]["list"]} for board in boards}
    label_of = {"instance": "instance", "job": "training_job"}
    lead = set()
    for path, board in zip(DASHBOARDS, boards, strict=True):
        for panel in panels_of(path):
            for url, column in data_links(panel):
                uid, query = re.fullmatch(r"/d/([\w-]+)\?(.*)", url).groups()
                first, *set_here, last = query.split("&")
                assert (first, last) == ("${datasource:queryparam}", "${__url_time_range}"), url
                for name, value in (re.fullmatch(r"var-(\w+)=(.+)", one).groups() for one in set_here):
                    assert name in variables[uid], (panel["title"], url)
                    # The label of each series that is drawn, or the cell of the column that has the link.
                    label = label_of[name]
                    taken = "${__value.text:percentencode}" if column else f"${{__field.labels.{label}:percentencode}}"
                    assert value == taken and column in ("", label), (panel["title"], url)
                lead.add((board["uid"], uid))
    assert lead == {("braid-fleet", "braid-node"), ("braid-fleet", "braid-job"), ("braid-node", "braid-job"),
                    ("braid-job", "braid-node")}  # fmt: skip


def limits() -> dict[str, set[tuple[str, float]]]:
    """What each alert compares with, and in which direction."""
    found = {}
    for name, expression in rules().items():
        if ":" not in name:
            compared = re.findall(r"(<|>)=? ([\d.]+)", expression)
            found[name] = {(direction, float(limit)) for direction, limit in compared}
    return found


def metrics_in(expression: str) -> set[str]:
    """Names of metrics; those that are recorded stand for what they are made of."""
    found = set()
    for name in re.findall(r"[\w:]*braid_\w+(?::\w+)*", expression):
        found |= metrics_in(rules()[name]) if ":" in name else {name}
    return found


def test_thresholds_are_the_limits_of_the_alerts():
    drawn = set()
    for path in DASHBOARDS:
        for panel in panels_of(path):
            defaults = panel["fieldConfig"]["defaults"]
            if "thresholds" not in defaults:
                continue
            base, step = defaults["thresholds"]["steps"]
            assert base["value"] is None and {base["color"], step["color"]} == {"green", "red"}
            if panel["type"] == "timeseries":
                assert defaults["custom"]["thresholdsStyle"]["mode"] == "dashed", panel["title"]
            asked = [target["expr"] for target in panel["targets"]]
            direction = ">" if step["color"] == "red" else "<"
            shown = set().union(*map(metrics_in, asked))
            alert_of = {
                name for name, compared in limits().items()
                if (direction, step["value"]) in compared and metrics_in(rules()[name]) & shown
            }  # fmt: skip
            # Or it counts what must not be.
            counts = [one for one in asked if re.match(r"(count|sum)\(", one)]
            for name, rule in rules().items():
                alert_of |= {name for one in counts if f"({rule})" in one or f"({rule} and" in one}
            assert alert_of or (counts == asked and (direction, step["value"]) == (">", 1)), (path.stem, panel["title"])
            drawn |= alert_of
    lines = {name for name, compared in limits().items() if compared and compared != {(">", 0.0)}}
    assert lines - drawn <= WITHOUT_A_LINE, lines - drawn
    assert not drawn & WITHOUT_A_LINE, drawn & WITHOUT_A_LINE


def promtool(*arguments: str) -> None:
    done = ran([PROGRAMS / "promtool", *arguments], cwd=RULES)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_prometheus
def test_prometheus_reads_them_and_alerts_fire_when_they_should():
    promtool("check", "config", "prometheus.yml")
    promtool("check", "rules", "braid.rules.yml")
    promtool("test", "rules", "braid.rules.test.yml")
    tested = (RULES / "braid.rules.test.yml").read_text(encoding="utf-8")
    fired = set(re.findall(r"alertname: (\w+)\n +exp_alerts:", tested))
    assert fired == {name for name in rules() if ":" not in name}, "each alert fires in a test"


class Prometheus:
    """On the first node, and it reads all of them, twice a second."""

    def __init__(self, cluster: Cluster, folder):
        self._node: Node = cluster.nodes[0]
        targets = ", ".join(f"{node.address}:9431" for node in cluster.nodes)
        text = (RULES / "prometheus.yml").read_text(encoding="utf-8")
        text = text.replace("braid.rules.yml", str(RULES / "braid.rules.yml")).replace("15s", "500ms")
        text, replaced = re.subn(r"targets: \[.*\]", f"targets: [{targets}]", text)
        assert replaced == 1
        config = folder / "prometheus.yml"
        config.write_text("global: {evaluation_interval: 1s}\n" + text, encoding="utf-8")
        self._address = f"{self._node.address}:9090"
        self._log = open(folder / "prometheus.log", "w+", encoding="utf-8")
        argv = [str(PROGRAMS / "prometheus"), f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
        argv += [f"--web.listen-address={self._address}", "--log.level=warn"]
        self._process = subprocess.Popen(
            self._node.enter(argv), stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT
        )

    def __enter__(self):
        try:
            until(self._is_ready, "Prometheus is ready")
        except BaseException:
            self._end()
            raise
        return self

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, self.said()
        ask = self._node.enter(["curl", "-sf", f"http://{self._address}/-/ready"])
        return subprocess.run(ask, capture_output=True, timeout=PATIENCE_S, check=False).returncode == 0

    def said(self) -> str:
        self._log.seek(0)
        return self._log.read()

    def ask(self, expression: str) -> list[dict]:
        """What the expression has now."""
        url = f"http://{self._address}/api/v1/query"
        answer = json.loads(self._node.run("curl", "-sG", "--data-urlencode", f"query={expression}", url))
        assert answer["status"] == "success", (expression, answer)
        return answer["data"]["result"]

    def ask_range(self, expression: str, seconds: int, step: float) -> list[dict]:
        """What it had in the last so many seconds."""
        url, now = f"http://{self._address}/api/v1/query_range", time.time()
        span = [f"start={now - seconds}", f"end={now}", f"step={step}", f"query={expression}"]
        options = [word for one in span for word in ("--data-urlencode", one)]
        answer = json.loads(self._node.run("curl", "-sG", *options, url))
        assert answer["status"] == "success", (expression, answer)
        return answer["data"]["result"]

    def rules(self) -> list[dict]:
        answer = json.loads(self._node.run("curl", "-sf", f"http://{self._address}/api/v1/rules"))
        return [rule for group in answer["data"]["groups"] for rule in group["rules"]]

    def __exit__(self, *_):
        self._end()

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


def assert_ranks_are_on_their_gpus(prometheus: Prometheus) -> None:
    (where,) = [expression for title, expression in panels() if title == "job: Where its ranks compute"]
    (clocks,) = [expression for title, expression in panels() if title == "job: Lowest clocks, of the highest"]
    found = prometheus.ask(where.replace("$job", "watched"))
    on_gpu = {one["metric"]["rank"]: one["metric"]["gpu"] for one in found}
    assert on_gpu == {"0": "0", "1": "1", "2": "0", "3": "1"}
    assert all(one["metric"]["name"] == "NVIDIA Fake 80GB" for one in found)
    slow = prometheus.ask(clocks.replace("$job", "watched"))
    # As Grafana asks, and scripts/pictures.
    assert prometheus.ask_range(clocks.replace("$job", "watched"), 5, 1)
    assert [float(one["value"][1]) for one in slow] == [pytest.approx(1140 / 1980)] * 4


def filled_in(expression: str) -> str:
    """As Grafana asks for the job `watched` on all nodes."""
    return expression.replace("$__rate_interval", "30s").replace("$job", "watched").replace("$instance", ".*")


@needs_daemons
@needs_prometheus
@needs_fake_nvml
def test_real_daemons_have_what_they_ask_for(cluster_of, tmp_path, monkeypatch):
    gpus = FakeGpus(tmp_path, 2)
    for name, value in gpus.environment.items():
        monkeypatch.setenv(name, value)
    cluster = cluster_of(2, "plan.planner=first", "tune.mode=off", "debug.explain_seconds=1", "gpu.watch_seconds=1")
    flags = tmp_path / "flags"
    flags.mkdir()
    trainers = cluster.start(ONE_IS_LATE, nodes=[0, 0, 1, 1], argument=str(flags), job="watched")
    wait_until_running(trainers)
    for gpu in range(2):
        computing = " ".join(str(trainer.pid) for trainer in trainers[gpu::2])
        gpus.set(gpu, processes=computing, clock=1140, reasons=HEAT, pcie_width=8)
    with Prometheus(cluster, tmp_path) as prometheus:
        for where, expression in panels():
            chosen = filled_in(expression)
            if RARE.search(expression):
                prometheus.ask(chosen)
            else:
                until(lambda chosen=chosen: prometheus.ask(chosen), f"{where}: {chosen} has data")
        for expression in [*(filled_in(one) for _, one in annotations()), *rules().values()]:
            prometheus.ask(expression)

        def is_blamed() -> bool:
            found = prometheus.ask("job_rank:braid_late:ratio5m")
            late = {one["metric"]["rank"]: float(one["value"][1]) for one in found}
            return len(late) == 4 and late["1"] > 0.3 and late["1"] == max(late.values())

        until(is_blamed, "rank 1 is the late one")
        assert_ranks_are_on_their_gpus(prometheus)
        until(lambda: all(rule["health"] == "ok" for rule in prometheus.rules()), "all rules work")
        assert len(prometheus.rules()) == len(rules())
    end_running(trainers)
