#!/usr/bin/env python3
"""Load over a long time with reloads, snapshots and restarts; memory must stay flat.

  soak.py BINARY SOURCE_DIR [--minutes N] [--rate EVENTS_PER_S]

Prints the resident memory as a curve, once a minute, and fails (exit 1) when the median of the last
quarter is more than 10 % and 20 MB over that of the second quarter, when a source's queue grows, or
when a reload or snapshot fails.
"""
import argparse
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import PACK, Daemon, hang  # noqa: E402


def main():
    options = argparse.ArgumentParser()
    options.add_argument("binary")
    options.add_argument("source")
    options.add_argument("--minutes", type=float, default=30)
    options.add_argument("--rate", type=float, default=20000)
    args = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="reflex_soak_") as folder:
        return soak(args, folder)


def soak(args, folder):
    daemon = Daemon(args.binary, folder, settings=["snapshot.interval=20s", "journal.max=4GiB"],
                    backend="jit")
    daemon.start(120)
    began = time.time()
    stamp = int(began * 1000)
    curve, failures = [], []
    job = reloads = bodies = 0
    next_sample, next_reload = began + 5, began + 3
    noise = 5000
    while time.time() < began + args.minutes * 60:
        # One job a second of event time on the 4,000 nodes of the cluster, one after another; noise of
        # 5,000 nodes around them. Nodes are bounded, as in a cluster; jobs are not.
        body = hang(job, stamp, noise=noise, places=1000)
        job += 1
        stamp += 1000
        if daemon.give(body, f"s{bodies}") is not True:
            failures.append("a body was refused")
            time.sleep(0.5)
        bodies += 1
        if time.time() > next_reload:
            next_reload += 10
            reloads += 1
            with open(daemon.packs[0], "w") as file:
                file.write(PACK.replace(">= 3", f">= {3 + reloads % 2}") + f"# {reloads}\n")
            status, answer = daemon.request("POST", "/-/reload")
            if status != 200:
                failures.append(f"reload: {answer[:200]}")
        if time.time() > next_sample:
            next_sample += min(60, args.minutes * 60 / 12)
            curve.append(daemon.rss_kb() / 1024)
            print(f"{time.time() - began:6.0f} s  {curve[-1]:7.1f} MB  " +
                  "#" * int(curve[-1] / 10), flush=True)
        ahead = bodies * noise / args.rate - (time.time() - began)
        if ahead > 0:
            time.sleep(ahead)
    status = daemon.status()
    if status["snapshot"]["error"]:
        failures.append("snapshot: " + status["snapshot"]["error"])
    behind = status["journal"]["end"] - status["live"]["position"]
    if behind > 50_000_000:
        failures.append(f"{behind} bytes are not evaluated")
    quarter = len(curve) // 4
    if quarter > 0:
        early = sorted(curve[quarter:2 * quarter])[quarter // 2]
        late = sorted(curve[-quarter:])[quarter // 2]
        print(f"memory: {early:.1f} MB in the second quarter, {late:.1f} MB in the last")
        if late > early * 1.1 and late > early + 20:
            failures.append("memory grows")
    events = bodies * noise
    print(f"{events:,} events in {time.time() - began:.0f} s, {job} incidents, {reloads} reloads, "
          f"{status['verdicts']['stored']} verdicts stored, {len(failures)} failures")
    for failure in failures[:10]:
        print("failure: " + failure)
    daemon.stop()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
