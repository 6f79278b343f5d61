#!/usr/bin/env python3
"""What `reflex serve` sustains on this machine: bench_serve.py BINARY SOURCE_DIR [PART..]

  ingest     HTTP NDJSON with rules/std, journal on disk: events/s as fast as the rules keep up, then
             open loop at RATE with the full lateness of events in order (2 minutes)
  incidents  open loop at RATE with 1,024 incidents open at once: latency of first and final verdicts
             from when they could be made to their arrival on the stream (3 minutes)
  reload     one rule changed among 1,000, under load: compile, restore, pause
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
from load import Sender  # noqa: E402


def thousand_rules(changed):
    head = "pack many 1.0.0\nevent m.sample { key node: node  value: f64  code: u16 }\n"
    rules = "".join(
        f"signal s{i} on node {{ when count(m.sample where it.code == {i}, 5m) >= "
        f"{3 + (changed if i == 500 else 0)} }} leak 1e-3 per hour\n" for i in range(1000))
    return head + rules


def bench_reload(binary, source, folder):
    os.makedirs(folder, exist_ok=True)
    pack = os.path.join(folder, "many.rfx")

    def write(changed):
        with open(pack, "w") as file:
            file.write(thousand_rules(changed))

    write(0)
    daemon = Daemon(binary, folder, [pack], backend="jit")
    daemon.start(120)
    stop = threading.Event()

    def load():
        sender = Sender(daemon.port)
        second = int(time.time())
        n = 0
        while not stop.is_set():
            lines = [b'{"ts":%d%03d,"kind":"m.sample","node":"n%d","value":1,"code":%d,"source":"mon"}\n'
                     % (second, i // 2, (n * 7 + i) % 10000, (n + i) % 1000) for i in range(1000)]
            n += 1
            second += 1
            sender.post(b"".join(lines))
            time.sleep(0.02)

    thread = threading.Thread(target=load)
    thread.start()
    time.sleep(2)
    rows = []
    for i in range(1, 6):
        write(i)
        began = time.time()
        status, body = daemon.request("POST", "/-/reload", timeout=300)
        answer = json.loads(body)
        if status != 200 or not answer.get("swapped"):
            print(f"reload: failed: {status} {body[:300]}")
            break
        rows.append((1000 * (time.time() - began), answer["compile_ms"], answer["restore_ms"],
                     answer["pause_us"]))
    stop.set()
    thread.join()
    if rows:
        median = [sorted(column)[len(column) // 2] for column in zip(*rows)]
        print(f"reload: 1 rule of 1,000 changed under load, median of {len(rows)}: "
              f"{median[0]:.0f} ms in all, compile {median[1]:.0f} ms, restore {median[2]:.0f} ms, "
              f"pause {median[3]:.0f} us (max {max(r[3] for r in rows):.0f} us)")
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
