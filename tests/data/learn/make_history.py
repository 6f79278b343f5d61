#!/usr/bin/env python3
"""Makes the labelled history of this folder: 120 incidents of 12 nodes, synthetic, small enough to
read. The pack's author is wrong about some strengths on purpose, so that learning has something to
find. Output: events.ndjson, labels.ndjson beside this file. Same bytes in every run."""
import json
import os
import random

HERE = os.path.dirname(os.path.abspath(__file__))
START = 1767225600  # 2026-01-01T00:00:00Z
NODES = [f"n{i:02d}" for i in range(1, 13)]


def main():
    rng = random.Random(7)
    events, labels = [], []
    for i in range(120):
        opened = START + 6 * 3600 * i
        nodes = rng.sample(NODES, 6)
        job = f"j{i:03d}"
        events.append((opened - 7200, {"kind": "job.start", "job": job, "nodes": nodes}))
        what = rng.choices(["gpu_lost", "nic_down", "user_bug"], [45, 30, 25])[0]
        culprit = None if what == "user_bug" else rng.choice(nodes)

        def show(kind, node, before):
            events.append((opened - before, {"kind": kind, "node": node}))

        explicit = False
        for node in nodes:
            if rng.random() < 0.25:
                show("site.warm", node, rng.randint(60, 3000))
            if rng.random() < 0.06:
                show("site.link", node, rng.randint(60, 500))
        if what == "gpu_lost":
            if rng.random() < 0.6:
                show("site.gpu", culprit, rng.randint(5, 200))
                explicit = True
            if rng.random() < 0.85:
                show("site.warm", culprit, rng.randint(60, 3000))
            if rng.random() < 0.7:
                show("site.slow", culprit, rng.randint(60, 3000))
        if what == "nic_down":
            if rng.random() < 0.95:
                show("site.link", culprit, rng.randint(5, 300))
            if rng.random() < 0.7:
                show("site.retry", culprit, rng.randint(60, 3000))
        for node in nodes:
            if rng.random() < 0.08:
                show("site.slow", node, rng.randint(60, 3000))
            if rng.random() < 0.08:
                show("site.retry", node, rng.randint(60, 3000))
        events.append((opened, {"kind": "incident.open", "incident": f"inc-{i:03d}", "job": job,
                                "symptom": "crash"}))
        events.append((opened + 1200, {"kind": "job.end", "job": job, "status": "failed"}))
        kind = "none" if culprit is None else ("explicit" if explicit else "implicit")
        labels.append({"incident": f"inc-{i:03d}", "job": job, "ts": opened * 1000,
                       "culprits": [] if culprit is None else [culprit], "fault": None,
                       "external": "application" if culprit is None else None, "category": what,
                       "type": kind})
    events.sort(key=lambda e: (e[0], json.dumps(e[1])))
    with open(os.path.join(HERE, "events.ndjson"), "w") as out:
        for ts, event in events:
            out.write(json.dumps({"ts": ts * 1000, **event}, separators=(",", ":")) + "\n")
    with open(os.path.join(HERE, "labels.ndjson"), "w") as out:
        for label in labels:
            out.write(json.dumps(label, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
