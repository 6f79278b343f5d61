#!/usr/bin/env python3
"""What the package ships: packaging_test.py BUILD_DIR SOURCE_DIR

Installs into a scratch root and runs from there; reads unit, manifests, pages and the image's recipe
with the tools that know them, where they are installed (systemd-analyze, promtool, mandoc, PyYAML,
kubernetes-validate); what is missing is named. Ends with "N passed, N failed".
"""
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

BUILD, SOURCE = (os.path.abspath(p) for p in sys.argv[1:3])
PACKAGING = os.path.join(SOURCE, "runtime/serve/packaging")
try:
    import yaml
except ImportError:
    yaml = None


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, **more)


def shipped(name):
    with open(os.path.join(PACKAGING, name)) as file:
        return file.read()


def test_installed_tree(root):
    done = run("cmake", "--install", BUILD, "--prefix", "/usr", env=dict(os.environ, DESTDIR=root))
    assert done.returncode == 0, done.stderr
    binary = os.path.join(root, "usr/bin/reflex")
    assert run(binary, "--version").stdout.startswith("reflex ")
    share = os.path.join(root, "usr/share/reflex")
    checked = run(binary, "check", os.path.join(share, "rules/std"), os.path.join(share, "hwprofiles"))
    assert checked.returncode == 0, checked.stderr
    config = os.path.join(root, "etc/reflex/reflex.toml")
    shown = run(binary, "config", "show", "-c", config)
    assert shown.returncode == 0 and "/var/lib/reflex" in shown.stdout, shown.stderr
    # The shipped file names no packs: that is the one thing to do before a start.
    bad = run(binary, "config", "check", config)
    assert bad.returncode == 3 and "set packs.paths" in bad.stderr, bad.stderr
    with open(config) as file:
        text = file.read()
    with open(config, "w") as file:
        file.write(text.replace("paths = []", f'paths = ["{share}/rules/std"]', 1))
    good = run(binary, "config", "check", config)
    assert good.returncode == 0, good.stderr
    for page in ("man1/reflex.1", "man5/reflex.toml.5", "man8/reflex-serve.8"):
        with gzip.open(os.path.join(root, "usr/share/man", page + ".gz"), "rt") as file:
            check_page(page, file.read())
    with gzip.open(os.path.join(root, "usr/share/man/man1/reflex.1.gz"), "rt") as file:
        page = file.read()
    for command in re.findall(r"^  ([a-z]+) ", run(binary, "--help").stdout, re.M):
        assert f'.SS "reflex {command}"' in page, f"{command} is not in reflex(1)"
    with gzip.open(os.path.join(root, "usr/share/man/man5/reflex.toml.5.gz"), "rt") as file:
        page = file.read().replace("\\-", "-")
    for key in re.findall(r"^#? ?([a-z_.]+) = ", shown.stdout, re.M):
        assert f"\\fB{key}\\fR" in page, f"{key} is not in reflex.toml(5)"


def check_page(name, text):
    assert text.startswith(".TH "), name
    assert ".SH NAME" in text and ".SH \"" not in text.split(".SH NAME")[0], name
    if shutil.which("mandoc"):
        done = run("mandoc", "-T", "lint", "-W", "warning", input=text)
        # "missing date": builds are to be the same on every day.
        told = [line for line in done.stdout.splitlines() if "missing date" not in line]
        assert not told, f"{name}: {told[:5]}"


def test_unit(root):
    if not shutil.which("systemd-analyze"):
        return "no systemd-analyze"
    unit = os.path.join(root, "reflex.service")
    with open(unit, "w") as file:
        file.write(shipped("reflex.service").replace("/usr/bin/reflex", "/bin/true")
                   .replace("man:reflex-serve(8)", "https://example.org/"))
    done = run("systemd-analyze", "verify", "--man=no", unit)
    told = [line for line in done.stderr.splitlines() if "reflex.service" in line]
    assert done.returncode == 0 and not told, done.stderr
    done = run("systemd-analyze", "security", "--offline=yes", "--threshold=20", unit)
    assert done.returncode == 0, done.stdout[-300:]
    return None


def test_kubernetes(root):
    if yaml is None:
        return "no PyYAML"
    documents = [d for d in yaml.safe_load_all(shipped("kubernetes.yaml")) if d]
    by_kind = {d["kind"]: d for d in documents}
    assert set(by_kind) == {"Namespace", "ConfigMap", "Secret", "StatefulSet", "Service"}
    for document in documents:
        assert document["apiVersion"] and document["metadata"]["name"], document
    pod = by_kind["StatefulSet"]["spec"]["template"]["spec"]
    labels = by_kind["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    assert by_kind["Service"]["spec"]["selector"] == labels
    assert by_kind["StatefulSet"]["spec"]["selector"]["matchLabels"] == labels
    container = pod["containers"][0]
    volumes = {v["name"] for v in pod["volumes"]}
    volumes |= {v["metadata"]["name"] for v in by_kind["StatefulSet"]["spec"]["volumeClaimTemplates"]}
    assert {m["name"] for m in container["volumeMounts"]} <= volumes
    config = os.path.join(root, "reflex.toml")
    with open(config, "w") as file:
        file.write(by_kind["ConfigMap"]["data"]["reflex.toml"])
    shown = run(os.path.join(BUILD, "reflex"), "config", "show", "-c", config)
    assert shown.returncode == 0, shown.stderr
    tool = os.environ.get("KUBERNETES_VALIDATE") or shutil.which("kubernetes-validate")
    if tool:
        done = run(tool, "--strict", os.path.join(PACKAGING, "kubernetes.yaml"))
        assert done.returncode == 0, done.stdout + done.stderr
    return None


def test_alert_rules(_):
    if yaml is not None:
        rules = [r for g in yaml.safe_load(shipped("prometheus-alerts.yaml"))["groups"]
                 for r in g["rules"]]
        for rule in rules:
            assert rule["alert"] and rule["expr"] and rule["annotations"]["summary"], rule
            assert rule["labels"]["severity"] in ("warning", "critical"), rule
    if not shutil.which("promtool"):
        return "no promtool" if yaml is None else None
    done = run("promtool", "check", "rules", os.path.join(PACKAGING, "prometheus-alerts.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr
    # Expressions of the dashboard are PromQL too: as rules of their own.
    panels = json.loads(shipped("grafana-dashboard.json"))["panels"]
    targets = [t["expr"] for p in panels for t in p["targets"]]
    rules = "groups:\n- name: g\n  rules:\n" + "".join(
        f"  - record: r{i}\n    expr: {json.dumps(e)}\n" for i, e in enumerate(targets))
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        file.write(rules)
        file.flush()
        done = run("promtool", "check", "rules", file.name)
    assert done.returncode == 0, done.stdout + done.stderr
    return None


def test_dashboard(_):
    panels = json.loads(shipped("grafana-dashboard.json"))["panels"]
    assert len({p["id"] for p in panels}) == len(panels)
    places = {(p["gridPos"]["x"], p["gridPos"]["y"]) for p in panels}
    assert len(places) == len(panels), "two panels in one place"
    for panel in panels:
        assert panel["targets"] and all(t["expr"] for t in panel["targets"]), panel["title"]


def test_dockerfile(_):
    known = {"FROM", "COPY", "WORKDIR", "RUN", "USER", "VOLUME", "EXPOSE", "ENV", "ENTRYPOINT"}
    stages = set()
    text = re.sub(r"\\\n", " ", shipped("Dockerfile"))
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert lines[0].startswith("FROM ")
    for line in lines:
        word, _, rest = line.partition(" ")
        assert word in known, line
        if word == "FROM" and " AS " in rest:
            stages.add(rest.split(" AS ")[1])
        for stage in re.findall(r"--from=(\S+)", rest):
            assert stage in stages, line
        if word == "ENTRYPOINT":
            assert json.loads(rest)[:2] == ["/usr/bin/reflex", "serve"], line


def main():
    passed = failed = 0
    for test in (test_installed_tree, test_unit, test_kubernetes, test_alert_rules, test_dashboard,
                 test_dockerfile):
        with tempfile.TemporaryDirectory(prefix="reflex_packaging_") as root:
            try:
                skipped = test(root)
                print(f"{test.__name__}: " + (f"SKIPPED, {skipped}" if skipped else "ok"))
                passed += 1
            except Exception as error:  # noqa: BLE001  (each test stands alone)
                print(f"{test.__name__}: FAILED: {type(error).__name__}: {error}")
                failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
