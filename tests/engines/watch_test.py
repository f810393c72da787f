# SPDX-License-Identifier: Apache-2.0
"""Prometheus watches a run of four peers: it takes every metric, and its alert fires when the run stops.

Answers skypilot#1670 (what does it cost by now?) and ray#60665 (why does nothing go on?).
"""
import json
import re
import signal
import subprocess
import urllib.error
import urllib.parse
from pathlib import Path

import pytest
from launched import TW, missing, wait_for
from watch_bed import Crew, free_port, get

ROOT = Path(__file__).resolve().parents[2]
ALERTS = ROOT / "share/prometheus/alerts.yml"
ABSENT = missing("prometheus", "promtool")
pytestmark = pytest.mark.skipif(bool(ABSENT), reason=ABSENT)


@pytest.fixture
def crew(tmp_path):
    crew = Crew(tmp_path)
    try:
        yield crew
    finally:
        crew.end()


class Prometheus:
    """A server of its own that scrapes one address, with our rules made quicker."""

    def __init__(self, folder, target):
        self.folder = Path(folder)
        self.folder.mkdir()
        rules = re.sub(r"for: \d+m", "for: 2s", ALERTS.read_text()).replace("> 300 and", "> 5 and")
        (self.folder / "alerts.yml").write_text(rules)
        (self.folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
            "rule_files: [alerts.yml]\n"
            f"scrape_configs: [{{job_name: tradewind, static_configs: [{{targets: ['{target}']}}]}}]\n")
        self.url = f"http://127.0.0.1:{free_port()}"
        with open(self.folder / "said.txt", "w") as out:
            self.process = subprocess.Popen(
                ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
                 f"--web.listen-address={self.url[7:]}"], cwd=self.folder, stdout=out, stderr=out)

    def ask(self, path, **query):
        try:
            return json.loads(get(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"))["data"]
        except OSError:  # it starts
            return {}

    def values(self, query):
        return [float(one["value"][1]) for one in self.ask("query", query=query).get("result", [])]

    def firing(self):
        alerts = self.ask("alerts").get("alerts", [])
        return {one["labels"]["alertname"] for one in alerts if one["state"] == "firing"}

    def end(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def prometheus(crew, tmp_path):
    server = Prometheus(tmp_path / "prometheus", crew.url[len("http://"):])
    try:
        yield server
    finally:
        server.end()


def test_prometheus_takes_the_metrics_and_warns_when_the_run_stops(crew, prometheus):
    wait_for(lambda: prometheus.values("tw_round > 3"), "Prometheus sees rounds", every=0.5)
    assert prometheus.values("tw_parameters_identical") == [1]
    wait_for(lambda: len(prometheus.values("tw_peer_up == 1")) == 4, "one peer shows all four", every=0.5)
    metrics = get(crew.url + "/metrics")
    checked = subprocess.run(["promtool", "check", "metrics"], input=metrics, capture_output=True, text=True)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    assert not prometheus.firing() & {"TradewindUnreachable", "TradewindStalled"}
    crew.send(signal.SIGSTOP)
    wait_for(lambda: "TradewindUnreachable" in prometheus.firing(), "an alert fires", every=0.5)


def test_a_watcher_beside_the_run_sees_that_no_round_comes(crew, tmp_path):
    command = [TW, "watch", "logs", "--listen", "127.0.0.1:0"]
    wait_for(lambda: (tmp_path / "logs/events-1.jsonl").exists(), "there is a log")
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as watcher:
        url = watcher.stdout.readline().split()[1].rstrip("/")
        server = Prometheus(tmp_path / "prometheus", url[len("http://"):])
        try:
            wait_for(lambda: server.values("tw_round > 3"), "Prometheus sees rounds", every=0.5)
            wait_for(lambda: len(server.values("tw_peer_up == 1")) == 4, "four peers are seen", every=0.5)
            crew.send(signal.SIGSTOP)
            wait_for(lambda: "TradewindStalled" in server.firing(), "an alert fires", every=0.5)
            assert "TradewindUnreachable" not in server.firing()
        finally:
            server.end()
            watcher.kill()


def round_of(url):
    """None: it has no board yet."""
    try:
        return json.loads(get(url + "/board.json"))["round"]
    except urllib.error.HTTPError as error:
        assert error.code == 503, error
        return None


def test_a_watcher_of_a_peer_shows_what_the_peer_shows(crew, tmp_path):
    wait_for(lambda: json.loads(get(crew.url + "/board.json"))["round"] > 2, "rounds go on")
    command = [TW, "watch", crew.url[len("http://"):], "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as watcher:
        try:
            url = watcher.stdout.readline().split()[1].rstrip("/")
            shown = wait_for(lambda: round_of(url), "it has a board")
            assert shown > 2
        finally:
            watcher.kill()


def test_rules_are_sound():
    tests = Path(__file__).parent / "alerts_test.yml"
    for words in (["check", "rules", str(ALERTS)], ["test", "rules", str(tests)]):
        done = subprocess.run(["promtool", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_deadline_is_a_rule_of_the_user(tmp_path):
    rules = ALERTS.read_text().replace("expr: vector(Inf)", "expr: vector(3600)")
    (tmp_path / "alerts.yml").write_text(rules)
    summary = "the run will likely be over at 1970-01-01 01:15:00 +0000 UTC, after its deadline"
    labels = "{severity: warning, job: tradewind, instance: a}"
    alert = f'{{exp_labels: {labels}, exp_annotations: {{summary: "{summary}"}}}}'
    (tmp_path / "test.yml").write_text(
        "rule_files: [alerts.yml]\nevaluation_interval: 1m\ntests:\n- interval: 1m\n  input_series:\n"
        "  - {series: 'tw_left_seconds{job=\"tradewind\",instance=\"a\"}', values: '3000x30'}\n"
        "  - {series: 'tw_run_over{job=\"tradewind\",instance=\"a\"}', values: '0x27 1x3'}\n"
        "  alert_rule_test:\n  - {eval_time: 9m, alertname: TradewindBehindDeadline, exp_alerts: []}\n"
        f"  - {{eval_time: 25m, alertname: TradewindBehindDeadline, exp_alerts: [{alert}]}}\n"
        "  - {eval_time: 28m, alertname: TradewindBehindDeadline, exp_alerts: []}\n")
    command = ["promtool", "test", "rules", "test.yml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_asks_for_metrics_that_there_are():
    named = set(re.findall(r"\btw_[a-z_]+", (ROOT / "share/grafana/tradewind.json").read_text()))
    named |= set(re.findall(r"\btw_[a-z_]+", ALERTS.read_text()))
    exported = (ROOT / "src/monitor/export/metrics.cc").read_text()
    known = set(re.findall(r'Metric\{\s*"(tw_[a-z_]+)"', exported))
    assert named and named <= known, named - known
