# SPDX-License-Identifier: Apache-2.0
"""The alert rules and the dashboard use metrics that holdfastd has, and the alerts fire when they should."""
import json
import re
import shutil
import subprocess

import pytest
import yaml
from holdfastd import LIMIT, ROOT, Cluster, Etcd, SqliteFile

RULES = ROOT / "share" / "prometheus" / "holdfast.rules.yaml"
DASHBOARD = ROOT / "share" / "grafana" / "holdfast.json"
DOCUMENT = ROOT / "docs" / "monitoring.md"
# Words in PromQL that are not metrics of holdfastd. `up` is Prometheus' own metric.
WORDS = {"by", "sum", "max", "min", "rate", "increase", "histogram_quantile", "label_values", "time", "up"}
SUFFIXES = ("_bucket", "_sum", "_count")


def alerts():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def panel_expressions():
    dashboard = json.loads(DASHBOARD.read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] if panel["type"] != "row" for target in panel["targets"]]
    return expressions + [v["query"]["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"]


def selectors(expression):
    """Returns [(metric, {label: pattern})] of an expression. Labels after `by` and in label_values are not metrics."""
    text = re.sub(r"by \([^)]*\)", "", expression)
    text = re.sub(r"(label_values\(\w+), \w+\)", r"\1)", text)
    text = re.sub(r"\[[^\]]*\]", "", text)
    found = []
    for name, labels in re.findall(r"\b([a-z][a-z_]*)\b(?:\{([^}]*)\})?", text):
        if name not in WORDS:
            found.append((name, set(re.findall(r"(\w+)[!=]", labels))))
    assert found or "up{" in expression, expression
    return found


def scrape(instance):
    """Returns {name: labels} and the types of all metrics."""
    code, text = instance.get("/metrics")
    assert code == 200
    samples = {}
    for name, labels in re.findall(r"^([a-z_]+)(?:\{(.*)\})? ", text, re.M):
        samples.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return samples, dict(re.findall(r"^# TYPE (\S+) (\S+)", text, re.M))


@pytest.mark.parametrize("store", [Etcd, SqliteFile])
def test_each_metric_of_the_rules_and_of_the_dashboard_exists(store):
    with Cluster(with_witness=False, etcd=store) as cluster:
        a = cluster.instance("a").wait_ready()
        b = cluster.instance("b").wait_ready()
        assert a.kubectl("get", "namespaces").returncode == 0
        for instance in (a, b):
            samples, types = scrape(instance)
            # The leader alone has queues.
            expressions = [r["expr"] for r in alerts()] + panel_expressions()
            for expression in expressions:
                for name, labels in selectors(expression):
                    if (instance is b and name.startswith("workqueue_")) or (store is SqliteFile and name.startswith("etcd_request")):
                        continue
                    assert name in samples, f"{instance.name} has no {name}: {expression}"
                    assert labels - {"job"} <= samples[name], (name, labels, samples[name])
                    for function in ("rate", "increase"):
                        if f"{function}({name}" in expression:
                            base = name.removesuffix("_bucket")
                            assert types[base] in ("counter", "histogram"), f"{function} of a {types[base]}: {expression}"


def test_each_alert_is_documented_and_has_a_severity():
    text = DOCUMENT.read_text()
    for rule in alerts():
        assert f"`{rule['alert']}`" in text, rule["alert"]
        assert rule["labels"]["severity"] in ("critical", "warning", "info") and set(rule["annotations"]) == {"summary", "description"}
    assert set(re.findall(r"^\| `(Holdfast\w+)`", text, re.M)) == {rule["alert"] for rule in alerts()}


def test_each_alert_is_tested():
    tested = yaml.safe_load((ROOT / "tests" / "lib" / "holdfast_rules_test.yaml").read_text())["tests"]
    fires = {case["alertname"] for test in tested for case in test["alert_rule_test"] if case["exp_alerts"]}
    assert fires == {rule["alert"] for rule in alerts()}


def test_promtool_accepts_the_rules_and_their_tests():
    promtool = shutil.which("promtool") or ROOT / ".cache" / "promtool" / "promtool"  # where tools/deps puts it
    for command in (["check", "rules", RULES], ["test", "rules", ROOT / "tests" / "lib" / "holdfast_rules_test.yaml"]):
        done = subprocess.run([promtool, *command], capture_output=True, text=True, timeout=LIMIT, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_has_no_panel_twice():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({p["id"] for p in panels}) == len({p["title"] for p in panels}) == len(panels)
    places = {(p["gridPos"]["x"], p["gridPos"]["y"]) for p in panels}
    assert len(places) == len(panels)
