#!/usr/bin/env python3
"""The real daemon with what stands around it: outside_test.py BINARY SOURCE_DIR

  webhook       against a server that refuses, answers 500 and 503, hangs up, then takes it: nothing
                is lost, repeats have the id of what they repeat
  alertmanager  a real one, when it is installed: alerts are read back from its API; skipped else
  journald      a real journal when there is one, and always a journalctl of our own on PATH: the
                cursor goes on over a restart of the daemon
Ends with "N passed, N failed".
"""
import http.server
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import BEGIN_MS, PACK, Daemon, end_of, hang  # noqa: E402

made = []  # daemons; what a failed test leaves behind is ended


RULE = """rule confirmed on verdict v of hang where v.top.p >= 0.5 {
  severity "critical"
  label team = "hw"
  annotate summary "{v.top.node}: {v.top.fault}"
}
"""


def wait_for(what, condition, seconds=60):
    until = time.time() + seconds
    while time.time() < until:
        result = condition()
        if result:
            return result
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {seconds} s")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def daemon_with(binary, folder, tables):
    os.makedirs(folder, exist_ok=True)
    pack = os.path.join(folder, "pack.rfx")
    with open(pack, "w") as file:
        file.write(PACK + RULE)
    daemon = Daemon(binary, folder, [pack])
    with open(daemon.config, "a") as file:
        file.write(tables)
    made.append(daemon)
    return daemon


def hangs(daemon, first, count):
    for job in range(first, first + count):
        assert daemon.give(hang(job, BEGIN_MS + job * 60_000), f"job{job}")


class Receiver(http.server.BaseHTTPRequestHandler):
    """Behaves as `plan` says, one word a request, then always well."""
    plan = []
    bodies = []
    good = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        events = json.loads(body)
        Receiver.bodies.append((self.headers["Content-Type"], events))
        word = Receiver.plan.pop(0) if Receiver.plan else "200"
        if word == "hang up":
            self.connection.close()
            return
        if word == "lost answer":
            Receiver.good += events
            self.connection.close()
            return
        self.send_response(int(word))
        self.end_headers()
        if word == "200":
            Receiver.good += events

    def log_message(self, *_):
        pass


def test_webhook(binary, folder):
    port = free_port()  # nobody listens there at first
    daemon = daemon_with(binary, folder, f"""
[[sinks]]
type = "webhook"
name = "hook"
url = "http://127.0.0.1:{port}/in"
what = "finals"
retry_max = "200ms"
""")
    daemon.start()
    hangs(daemon, 0, 2)
    assert daemon.give(end_of(BEGIN_MS), "end0")
    wait_for("a refused connection is counted", lambda: sink(daemon, "hook")["failed"] > 0)
    Receiver.plan = ["500", "503", "hang up", "404", "lost answer"]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    wait_for("everything is delivered", lambda: sink(daemon, "hook")["queued"] == 0)
    daemon.kill()  # and a restart repeats nothing that was taken and noted
    daemon.start()
    wait_for("ready", lambda: daemon.request("GET", "/-/ready")[0] == 200)
    time.sleep(0.5)
    daemon.stop()
    server.shutdown()
    assert not Receiver.plan, f"the sink gave up before {Receiver.plan}"
    types = {content_type for content_type, _ in Receiver.bodies}
    assert types == {"application/cloudevents-batch+json"}, types
    ids = [event["id"] for event in Receiver.good]
    final = [json.loads(line) for line in open(daemon.verdicts)]
    final = [v["id"] for v in final if v["final"]]
    assert sorted(set(ids)) == sorted(final), (ids, final)
    assert len(ids) == 2 * len(final), f"the lost answer is repeated once: {ids}"
    for event in Receiver.good:
        assert event["specversion"] == "1.0" and event["data"]["id"] == event["id"], event
    sent = [event["id"] for _, events in Receiver.bodies for event in events]
    assert len(sent) == 6 * len(final), f"six requests, each with all of them: {len(sent)}"


def sink(daemon, name):
    return next(s for s in daemon.status()["sinks"] if s["name"] == name)


def test_alertmanager(binary, folder):
    program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    if not program:
        return "no Alertmanager is installed (Debian: prometheus-alertmanager)"
    os.makedirs(folder, exist_ok=True)
    port = free_port()
    config = os.path.join(folder, "alertmanager.yml")
    with open(config, "w") as file:
        file.write("route: {receiver: none}\nreceivers: [{name: none}]\n")
    url = f"http://127.0.0.1:{port}"
    manager = subprocess.Popen(
        [program, f"--config.file={config}", f"--storage.path={folder}/data",
         f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        def alerts():
            with urllib.request.urlopen(f"{url}/api/v2/alerts", timeout=5) as answer:
                return json.load(answer)

        def up():
            try:
                return alerts() == []
            except OSError:
                return False

        wait_for("Alertmanager answers", up)
        daemon = daemon_with(binary, folder, f'\n[[sinks]]\ntype = "alertmanager"\nurl = "{url}"\n')
        daemon.start()
        # Now: Alertmanager takes alerts of the past for resolved.
        now = int(time.time() * 1000)
        assert daemon.give(hang(2, now), "now")
        assert daemon.give(json.dumps({"ts": now + 9000, "kind": "net.drop", "source": "mon",
                                       "node": "end", "value": 1}) + "\n", "later")
        found = wait_for("the alert is there", alerts)
        daemon.stop()
    finally:
        manager.terminate()
        manager.wait(30)
    assert len(found) == 1, found
    labels = found[0]["labels"]
    assert labels["alertname"].endswith("confirmed") and labels["team"] == "hw", labels
    assert labels["incident"] == "i2" and labels["severity"] == "critical", labels
    assert found[0]["annotations"]["summary"].startswith("j2n2: "), found[0]["annotations"]
    assert found[0]["status"]["state"] == "active", found[0]


FAKE = """#!/usr/bin/env python3
# Stands for journalctl -o json -f: entries of a file, from behind a cursor on.
import json, sys, time
arguments = sys.argv[1:]
assert arguments[:5] == ["-o", "json", "-f", "--all", arguments[4]], arguments
with open(%(log)r, "a") as log:
    log.write(" ".join(arguments) + "\\n")
after = [a.split("=", 1)[1] for a in arguments if a.startswith("--after-cursor=")]
seen = not after
with open(%(entries)r) as file:
    while True:
        line = file.readline()
        if not line:
            time.sleep(0.05)
            continue
        if seen:
            sys.stdout.write(line)
            sys.stdout.flush()
        seen = seen or json.loads(line)["__CURSOR"] == after[0]
"""


def entry(number):
    return json.dumps({"__CURSOR": f"c{number}", "MESSAGE": f"line {number}",
                       "__REALTIME_TIMESTAMP": str(1_700_000_000_000_000 + number)},
                      separators=(",", ":")) + "\n"


def test_journald(binary, folder):
    os.makedirs(folder, exist_ok=True)
    entries = os.path.join(folder, "entries")
    calls = os.path.join(folder, "calls")
    bin_folder = os.path.join(folder, "bin")
    os.makedirs(bin_folder)
    fake = os.path.join(bin_folder, "journalctl")
    with open(fake, "w") as file:
        file.write(FAKE % {"log": calls, "entries": entries})
    os.chmod(fake, os.stat(fake).st_mode | stat.S_IXUSR)
    with open(entries, "w") as file:
        file.writelines(entry(n) for n in range(1, 4))
    before = os.environ["PATH"]
    os.environ["PATH"] = bin_folder + ":" + before
    try:
        daemon = daemon_with(binary, folder, '\n[[sources]]\ntype = "journald"\nname = "jd"\n'
                             'node = "n1"\nmatch = ["_TRANSPORT=kernel"]\n')
        daemon.start()

        def lines():
            return sum(s["lines"] for s in daemon.status()["sources"] if s["name"] == "jd")

        wait_for("three lines", lambda: lines() == 3)
        daemon.kill()
        with open(entries, "a") as file:
            file.writelines(entry(n) for n in range(4, 6))
        daemon.start()
        wait_for("five lines", lambda: lines() == 5)
        time.sleep(0.3)
        assert lines() == 5, f"each line once, there are {lines()}"
        daemon.stop()
    finally:
        os.environ["PATH"] = before
    first, second = open(calls).read().splitlines()[:2]
    assert "--no-tail" in first and first.endswith("_TRANSPORT=kernel"), first
    assert "--after-cursor=c3" in second, second


def test_real_journal(binary, folder):
    if not shutil.which("systemd-cat") or not shutil.which("journalctl"):
        return "no systemd-cat or journalctl"
    if subprocess.run(["systemd-cat", "true"], capture_output=True).returncode != 0:
        return "no journald runs here"
    daemon = daemon_with(binary, folder, '\n[[sources]]\ntype = "journald"\nname = "jd"\nfrom = "end"\n'
                         'match = ["SYSLOG_IDENTIFIER=reflex-test"]\n')
    daemon.start()
    time.sleep(1)
    subprocess.run(["systemd-cat", "-t", "reflex-test", "echo", "hello"], check=True)
    wait_for("the line", lambda: any(s["name"] == "jd" and s["lines"] >= 1
                                     for s in daemon.status()["sources"]))
    daemon.stop()
    return None


def main():
    binary = os.path.abspath(sys.argv[1])
    passed = failed = 0
    for test in (test_webhook, test_alertmanager, test_journald, test_real_journal):
        with tempfile.TemporaryDirectory(prefix="reflex_outside_") as folder:
            try:
                skipped = test(binary, os.path.join(folder, "d"))
                print(f"{test.__name__}: " + (f"SKIPPED, {skipped}" if skipped else "ok"))
                passed += 1
            except Exception as error:  # noqa: BLE001  (each test stands alone)
                print(f"{test.__name__}: FAILED: {type(error).__name__}: {error}")
                log = os.path.join(folder, "d", "log")
                if os.path.exists(log):
                    print(open(log).read()[-2000:])
                failed += 1
            for daemon in made:
                if daemon.process is not None and daemon.process.poll() is None:
                    daemon.kill()
            made.clear()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
