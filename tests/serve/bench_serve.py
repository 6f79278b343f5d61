#!/usr/bin/env python3
"""What `reflex serve` sustains on this machine: bench_serve.py BINARY SOURCE_DIR [PART..]

  ingest     HTTP NDJSON with rules/std, journal on disk: events/s as fast as the rules keep up, then
             open loop at RATE with the full lateness of events in order (2 minutes)
  incidents  open loop at RATE with 1,024 incidents open at once: latency of first and final verdicts
             from when they could be made to their arrival on the stream (3 minutes)
  reload     one rule changed among 1,000, 20 times under load: all, compile, restore, pause
  snapshot   100,000 keys of state under a stream: time of a snapshot, pause of the rules
Each prints one line a figure. REFLEX_BENCH_SECONDS, REFLEX_BENCH_RATE change the load.
"""
import json
import os
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bench_stream import bench_incidents, bench_ingest, bench_snapshot  # noqa: E402
from daemon import Daemon  # noqa: E402
from load import Sender, caught_up, used as cpu_seconds  # noqa: E402


def thousand_rules(changed):
    head = "pack many 1.0.0\nevent m.sample { key node: node  value: f64  code: u16 }\n"
    rules = "".join(
        f"signal s{i} on node {{ when count(m.sample where it.code == {i}, 5m) >= "
        f"{3 + (changed if i == 500 else 0)} }} leak 1e-3 per hour\n" for i in range(1000))
    return head + rules


def bench_reload(binary, source, folder, reloads=20, nodes=1000, events_per_second=5000):
    """State first (each node 20 events: 20,000 pairs of node and rule), then a steady stream, and a
    changed rule again and again. REFLEX_BENCH_RELOAD_NODES: more state; REFLEX_BENCH_RELOAD_MORE=1: each
    second reload has a rule more, so that no state is taken over in place."""
    nodes = int(os.environ.get("REFLEX_BENCH_RELOAD_NODES", nodes))
    os.makedirs(folder, exist_ok=True)
    pack = os.path.join(folder, "many.rfx")

    more = os.environ.get("REFLEX_BENCH_RELOAD_MORE") == "1"

    def write(changed):
        with open(pack, "w") as file:
            file.write(thousand_rules(changed))
            if more and changed % 2 == 1:
                file.write("signal more on node { when count(m.sample where it.code == 1, 5m) >= 9 }\n")

    write(0)
    daemon = Daemon(binary, folder, [pack], backend="jit")
    daemon.start(120)
    stop = threading.Event()
    now = [int(time.time()) - 60]

    def body(n, count):
        return b"".join(
            b'{"ts":%d%03d,"kind":"m.sample","node":"n%d","value":1,"code":%d,"source":"mon"}\n'
            % (now[0], i * 1000 // count, (n * 7 + i) % nodes, (n + i) % 1000) for i in range(count))

    sender = Sender(daemon.port)
    for n in range(20):
        sender.post(body(n * 50, nodes))
        now[0] += 1
    caught_up(daemon)

    def load():
        own = Sender(daemon.port)
        n = 0
        while not stop.is_set():
            began = time.time()
            own.post(body(n % 20 * 50, events_per_second // 20))  # of pairs that are there
            n += 1
            if n % 20 == 0:
                now[0] += 1
            time.sleep(max(0.0, began + 0.05 - time.time()))

    thread = threading.Thread(target=load)
    thread.start()
    time.sleep(1)
    used, began = cpu_seconds(daemon.process.pid), time.time()
    time.sleep(4)
    of_stream = (cpu_seconds(daemon.process.pid) - used) / (time.time() - began)
    used, first = cpu_seconds(daemon.process.pid), time.time()
    rows, paths = [], {}
    for i in range(1, reloads + 1):
        write(i)
        began = time.time()
        status, answer = daemon.request("POST", "/-/reload", timeout=300)
        took = 1000 * (time.time() - began)
        answer = json.loads(answer)
        if status != 200 or not answer.get("swapped"):
            print(f"reload: failed: {status} {answer}")
            break
        rows.append((took, answer["compile_ms"], answer["restore_ms"], answer["pause_us"] / 1000))
        paths[answer["path"]] = paths.get(answer["path"], 0) + 1
        time.sleep(0.2)
    cpu = cpu_seconds(daemon.process.pid) - used - of_stream * (time.time() - first)
    stop.set()
    thread.join()
    if rows:
        def p50_max(column):
            values = sorted(row[column] for row in rows)
            return f"p50 {values[len(values) // 2]:.1f}, max {values[-1]:.1f} ms"

        print(f"reload: 1 rule of 1,000 changed, {len(rows)} times, under {events_per_second:,} events/s, "
              f"{answer.get('state_bytes', 0) / 1e6:.1f} MB of state of {nodes:,} nodes (load "
              f"{os.getloadavg()[0]:.1f}): in all {p50_max(0)}; compile {p50_max(1)}; "
              f"{', '.join(f'{path} {n}' for path, n in sorted(paths.items()))}: {p50_max(2)}; longest stop of the stream {p50_max(3)}; CPU of one (old set freed, state "
              f"saved) {1000 * cpu / len(rows):.0f} ms")
    daemon.stop()


def main():
    # The daemon takes paths relative to its configuration.
    binary, source = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    parts = {"ingest": bench_ingest, "incidents": bench_incidents, "reload": bench_reload,
             "snapshot": bench_snapshot}
    for name in sys.argv[3:] or parts:
        with tempfile.TemporaryDirectory(prefix="reflex_bench_") as folder:
            parts[name](binary, source, os.path.join(folder, name))


if __name__ == "__main__":
    main()
