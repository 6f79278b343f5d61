#!/usr/bin/env python3
"""kill -9 at random moments, again and again; nothing accepted may be lost, nothing doubled.

  crash_test.py BINARY [--kills N] [--bodies N] [--seed N]

Bodies go in over HTTP, each with a key; a body without an answer is sent again after the restart,
some that were accepted are sent a second time. At the end the verdicts of the file sink and of the
store are held against `reflex run` over the accepted events, byte by byte.
Prints: accepted, lost (0), doubled (0). Exit 1 when a number is not what it should be.
"""
import argparse
import collections
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


def main():
    options = argparse.ArgumentParser()
    options.add_argument("binary")
    options.add_argument("--reference", help="a `reflex` to run the events with; default: BINARY")
    options.add_argument("--kills", type=int, default=12)
    options.add_argument("--bodies", type=int, default=300)
    options.add_argument("--seed", type=int, default=int(time.time()))
    args = options.parse_args()
    rng = random.Random(args.seed)
    folder = tempfile.mkdtemp(prefix="reflex_crash_")
    bodies = [hang(i, BEGIN_MS + i * 1000, noise=20) for i in range(args.bodies)]
    bodies.append(end_of(BEGIN_MS + args.bodies * 1000))
    daemon = Daemon(args.binary, folder, settings=["snapshot.interval=2s", "journal.segment=64KiB"])
    daemon.start()
    killer = Killer(daemon, rng, args.kills)
    accepted = send_all(daemon, killer, bodies, rng)
    killer.thread.join()
    wait_until_done(daemon)
    daemon.stop()

    events = os.path.join(folder, "all.ndjson")
    with open(events, "w") as file:
        file.write("".join(bodies))
    want = os.path.join(folder, "want.ndjson")
    subprocess.run([args.reference or args.binary, "-q", "run", *daemon.packs, "--events", events, "--output", want],
                   check=True)
    got_lines, want_lines = lines_of(daemon.verdicts), lines_of(want)
    got, expected = collections.Counter(got_lines), collections.Counter(want_lines)
    lost, doubled, other = differences(expected, got)
    print(f"seed {args.seed}: {killer.done} kills, accepted {accepted} bodies, "
          f"{len(want_lines)} verdicts expected, lost {lost}, doubled {doubled}, differing {other}")
    good = lost == 0 and doubled == 0 and other == 0 and accepted == len(bodies)
    if not good:
        print(f"folder kept: {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
