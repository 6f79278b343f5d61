#!/usr/bin/env python3
"""kill -9 at random moments, again and again; nothing accepted may be lost, nothing doubled.

  crash_test.py BINARY [--kills N] [--bodies N] [--seed N] [--edits N]

Bodies go in over HTTP, each with a key; a body without an answer is sent again after the restart,
some that were accepted are sent a second time. At the end the verdicts of the file sink and of the
store are held against `reflex run` over the accepted events, byte by byte.
With --edits the rules change meanwhile, while the daemon runs (and is told to reload) or not. No run
over the events says the same then; what must hold: every incident has its revisions 1, 2, 3 ..., the
last one final, once; no alert fires twice without having been resolved.
Prints: accepted, lost (0), doubled (0). Exit 1 when a number is not what it should be.
"""
import argparse
import collections
import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import BEGIN_MS, Daemon, differences, end_of, hang  # noqa: E402


class Killer:
    """Kills and restarts the daemon after random times, until told to end."""

    def __init__(self, daemon, rng, kills):
        self.daemon, self.rng, self.left = daemon, rng, kills
        self.lock = threading.Lock()  # held while there is no daemon
        self.done = 0
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while self.left > 0:
            time.sleep(self.rng.uniform(0.02, 0.5))
            with self.lock:
                self.daemon.kill()
                self.daemon.start()
            self.left -= 1
            self.done += 1


def variant_of(pack, rng):
    """The same pack with other rules; every other one has a signal more: then no reload is in place."""
    text = pack.replace("5m) >= 3", f"5m) >= {rng.randint(2, 4)}")
    text = text.replace("p 0.7", f"p 0.{rng.randint(5, 9)}")
    text += f"rule told on verdict v of hang where v.top.p >= 0.{rng.randint(2, 6)} {{ label team = \"a\" }}\n"
    if rng.random() < 0.5:
        text += "signal more on node { e: gpu.xid where e.code == 5 }\n"
    return text


class Editor:
    """Changes the rules at random times, and asks for a reload when there is a daemon."""

    def __init__(self, daemon, rng, edits):
        self.daemon, self.rng, self.left = daemon, rng, edits
        self.paths = collections.Counter()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        path = self.daemon.packs[0]
        with open(path) as file:
            pack = file.read()
        while self.left > 0:
            time.sleep(self.rng.uniform(0.01, 0.3))
            with open(path + ".new", "w") as file:
                file.write(variant_of(pack, self.rng))
            os.rename(path + ".new", path)
            try:
                status, answer = self.daemon.request("POST", "/-/reload")
                if status >= 400 and status not in (409, 503):
                    raise RuntimeError(f"a good set was refused: {status} {answer}")
                self.paths[json.loads(answer).get("path") or "unchanged"] += 1
            except (OSError, ValueError, http.client.HTTPException):
                self.paths["killed"] += 1
            self.left -= 1


def send_all(daemon, killer, bodies, rng):
    accepted = 0
    for number, body in enumerate(bodies):
        again = rng.random() < 0.1
        while True:
            with killer.lock:
                pass  # a daemon is there, for now
            answer = daemon.give(body, f"b{number}")
            if answer:
                accepted += 1
                if not again:
                    break
                again = False
                accepted -= 1
            else:
                time.sleep(0.01)
        if rng.random() < 0.05:
            try:
                daemon.request("POST", "/api/v1/snapshot")
            except Exception:
                pass  # killed meanwhile
        # The pace that leaves room for all kills.
        if killer.left > 0:
            time.sleep(rng.uniform(0, 0.02))
    return accepted


def lines_of(path):
    with open(path) as file:
        return [line for line in file.read().split("\n") if line]


def wait_until_done(daemon, seconds=120):
    until = time.time() + seconds
    while time.time() < until:
        status = daemon.status()
        queued = sum(sink.get("queued", 0) for sink in status.get("sinks", []))
        if status["live"]["position"] == status["journal"]["end"] and queued == 0:
            return status
        time.sleep(0.1)
    raise RuntimeError("the daemon does not come to an end: " + json.dumps(status))


def alerts_twice(daemon):
    """Alerts that fire anew while they fire."""
    firing, twice, after = set(), 0, 0
    while True:
        page = json.loads(daemon.request("GET", f"/api/v1/alerts?limit=1000&after={after}")[1])
        for row in page["alerts"]:
            after = max(after, row["sequence"])
            line = row["line"]
            key = (line.get("rule"), line.get("incident"))
            if row["type"] != "alert":
                continue
            if line["state"] == "resolved":
                firing.discard(key)
            elif line["reason"] == "new":
                twice += key in firing
                firing.add(key)
        if not page["alerts"]:
            return twice


def check_with_edits(daemon, bodies):
    """(incidents, lost, doubled, differing) of what the file sink has."""
    revisions = collections.defaultdict(list)
    for line in lines_of(daemon.verdicts):
        verdict = json.loads(line)
        revisions[verdict["incident"]].append((verdict["revision"], verdict["final"]))
    lost = sum(f"i{job}" not in revisions or not any(final for _, final in revisions[f"i{job}"])
               for job in range(bodies))
    doubled = sum(len(said) - len(set(number for number, _ in said)) +
                  max(0, sum(final for _, final in said) - 1) for said in revisions.values())
    differing = sum([number for number, _ in said] != list(range(1, len(said) + 1)) or not said[-1][1]
                    for said in revisions.values())
    return len(revisions), lost, doubled, differing


def check_against_run(args, daemon, bodies, folder):
    events = os.path.join(folder, "all.ndjson")
    with open(events, "w") as file:
        file.write("".join(bodies))
    want = os.path.join(folder, "want.ndjson")
    subprocess.run([args.reference or args.binary, "-q", "run", *daemon.packs, "--events", events, "--output", want],
                   check=True)
    got, expected = collections.Counter(lines_of(daemon.verdicts)), collections.Counter(lines_of(want))
    return sum(expected.values()), *differences(expected, got)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("binary")
    options.add_argument("--reference", help="a `reflex` to run the events with; default: BINARY")
    options.add_argument("--kills", type=int, default=12)
    options.add_argument("--bodies", type=int, default=300)
    options.add_argument("--edits", type=int, default=0)
    options.add_argument("--seed", type=int, default=int(time.time()))
    args = options.parse_args()
    rng = random.Random(args.seed)
    folder = tempfile.mkdtemp(prefix="reflex_crash_")
    bodies = [hang(i, BEGIN_MS + i * 1000, noise=20) for i in range(args.bodies)]
    bodies.append(end_of(BEGIN_MS + args.bodies * 1000))
    daemon = Daemon(args.binary, folder, settings=["snapshot.interval=2s", "journal.segment=64KiB"])
    daemon.start()
    killer = Killer(daemon, rng, args.kills)
    editor = Editor(daemon, random.Random(args.seed + 1), args.edits) if args.edits else None
    accepted = send_all(daemon, killer, bodies, rng)
    killer.thread.join()
    if editor:
        editor.thread.join()
    wait_until_done(daemon)
    doubled_alerts = alerts_twice(daemon)
    daemon.stop()
    if editor:
        count, lost, doubled, other = check_with_edits(daemon, args.bodies)
        print(f"reloads: {dict(sorted(editor.paths.items()))}")
        what = "incidents"
    else:
        count, lost, doubled, other = check_against_run(args, daemon, bodies, folder)
        what = "verdicts expected"
    doubled += doubled_alerts
    print(f"seed {args.seed}: {killer.done} kills, accepted {accepted} bodies, "
          f"{count} {what}, lost {lost}, doubled {doubled}, differing {other}")
    good = lost == 0 and doubled == 0 and other == 0 and accepted == len(bodies)
    if not good:
        print(f"folder kept: {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
