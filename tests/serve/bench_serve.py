#!/usr/bin/env python3
"""What `reflex serve` sustains on this machine: bench_serve.py BINARY SOURCE_DIR [PART..]

  ingest     HTTP NDJSON with rules/std, as fast as it takes it: events/s, with the journal on disk
  incidents  open loop at RATE events/s with 1,024 incidents open at once: latency of a diagnosis
             from when it could be made (its event's time + lateness) to its verdict on the stream
  reload     one rule changed among 1,000, 20 times under load: all, compile, restore, event pause
  snapshot   100,000 keys of state: time of a snapshot, pause of the stream
Each prints one line a figure. REFLEX_BENCH_SECONDS, REFLEX_BENCH_RATE change the load.
"""
import http.client
import json
import os
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import Daemon  # noqa: E402

SECONDS = float(os.environ.get("REFLEX_BENCH_SECONDS", "15"))
RATE = float(os.environ.get("REFLEX_BENCH_RATE", "300000"))
EVENTS_A_BODY = 3000
HOLE = b"@@@@@@@@@@"  # seconds of all stamps of a body


def bodies_of(count, nodes=10000):
    """`count` bodies that fill one second of events."""
    bodies = []
    total = count * EVENTS_A_BODY
    for b in range(count):
        lines = []
        for i in range(EVENTS_A_BODY):
            n = b * EVENTS_A_BODY + i
            ms = n * 1000 // total
            node = n * 7919 % nodes
            kind = n % 4
            if kind == 0:
                rest = b'"kind":"gpu.temp","node":"n%05d","gpu":%d,"value":%d' % (node, n % 8, 50 + n % 30)
            elif kind == 1:
                rest = b'"kind":"nic.retrans","node":"n%05d","nic":"mlx5_%d","value":%d' % (node, n % 8, n % 3)
            elif kind == 2:
                rest = b'"kind":"nccl.progress","node":"n%05d","rank":%d,"work":%d' % (node, n % 8, n)
            else:
                rest = b'"kind":"gpu.ecc_ce","node":"n%05d","gpu":%d,"value":0' % (node, n % 8)
            lines.append(b'{"ts":' + HOLE + b"%03d," % ms + rest + b',"source":"mon"}\n')
        bodies.append(b"".join(lines))
    return bodies


class Sender:
    """Posts on one connection; waits and tries again when told to."""

    def __init__(self, port):
        self.port, self.connection = port, None
        self.refused = 0

    def post(self, body):
        while True:
            if self.connection is None:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            self.connection.request("POST", "/api/v1/events?source=mon", body,
                                    {"Content-Type": "application/x-ndjson"})
            answer = self.connection.getresponse()
            answer.read()
            if answer.status == 429:
                self.refused += 1
                time.sleep(0.05)
                continue
            if answer.status >= 300:
                raise RuntimeError(f"status {answer.status}")
            return


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def caught_up(daemon, seconds=120):
    until = time.time() + seconds
    while time.time() < until:
        status = daemon.status()
        if status["live"]["position"] == status["journal"]["end"]:
            return status
        time.sleep(0.02)
    raise RuntimeError("the daemon does not catch up")


def std(binary, source, folder, settings=()):
    daemon = Daemon(binary, folder, [os.path.join(source, "rules/std")], backend="jit",
                    settings=["packs.profiles=" + os.path.join(source, "hwprofiles"), *settings])
    daemon.start(120)
    return daemon


def bench_ingest(binary, source, folder):
    daemon = std(binary, source, folder)
    bodies = bodies_of(30)
    first = int(time.time())
    sent = [0]
    turn = threading.Lock()
    stop_at = time.time() + SECONDS

    def work():
        sender = Sender(daemon.port)
        while time.time() < stop_at:
            with turn:
                number = sent[0]
                sent[0] += 1
            stamp = b"%d" % (first + number // len(bodies))
            sender.post(bodies[number % len(bodies)].replace(HOLE, stamp))

    began, cpu = time.time(), cpu_seconds(daemon.process.pid)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    status = caught_up(daemon)
    seconds = time.time() - began
    events = sent[0] * EVENTS_A_BODY
    used = cpu_seconds(daemon.process.pid) - cpu
    print(f"ingest: {events / seconds:,.0f} events/s over {seconds:.1f} s, evaluated and on disk "
          f"({status['journal']['end'] / seconds / 1e6:.0f} MB/s); the daemon used "
          f"{used / seconds:.2f} cores, {used / events * 1e9:.0f} ns of CPU an event; "
          f"{daemon.rss_kb() // 1024} MB")
    daemon.stop()


def job_lines(i, sec):
    nodes = ",".join(f'"n{(i * 8 + k) % 10000:05d}"' for k in range(8))
    bad = f"n{i * 8 % 10000:05d}"
    start = f'{{"ts":{sec}000,"kind":"job.start","job":"b{i}","nodes":[{nodes}],"source":"mon"}}\n'
    fault = f'{{"ts":{sec}100,"kind":"gpu.xid","node":"{bad}","gpu":0,"code":79,"source":"mon"}}\n'
    return start, fault


def bench_incidents(binary, source, folder, incidents=1024, lateness=5.0):
    daemon = std(binary, source, folder)
    per_second = max(1, round(RATE / EVENTS_A_BODY))
    bodies = bodies_of(per_second)
    first = int(time.time()) + 2
    opened = {}
    seen = {}

    def follow():
        connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=300)
        connection.request("GET", "/api/v1/verdicts/stream")
        stream = connection.getresponse()
        try:
            while True:
                line = stream.readline()
                if not line:
                    return
                if not line.startswith(b"data:"):
                    continue
                verdict = json.loads(line[5:])
                seen.setdefault(verdict["incident"]["id"] if isinstance(verdict["incident"], dict)
                                else verdict["incident"], time.time())
        except Exception:
            return

    threading.Thread(target=follow, daemon=True).start()
    jobs = "".join("".join(job_lines(i, first)) for i in range(incidents)).encode()
    Sender(daemon.port).post(jobs)
    slots = int(SECONDS * per_second)
    each = max(1, incidents // max(1, slots - per_second))
    number = [0]
    turn = threading.Lock()
    late = [0.0]

    def work():
        sender = Sender(daemon.port)
        while True:
            with turn:
                slot = number[0]
                number[0] += 1
            if slot >= slots + int((lateness + 2) * per_second):
                return
            at = first + slot / per_second
            wait = at - time.time()
            if wait > 0:
                time.sleep(wait)
            late[0] = max(late[0], -wait)
            sec = first + slot // per_second
            body = bodies[slot % per_second].replace(HOLE, b"%d" % sec)
            ms = (slot % per_second) * 1000 // per_second
            for i in range(slot * each, min(incidents, (slot + 1) * each)):
                # Both belong to this slot's time; the answer is due `lateness` later.
                body += (f'{{"ts":{sec}{ms:03d},"kind":"incident.open","incident":"b{i}",'
                         f'"job":"b{i}","symptom":"hang","source":"mon"}}\n').encode()
                opened[f"b{i}"] = at
            sender.post(body)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    caught_up(daemon)
    time.sleep(1)
    delays = sorted(1000 * (seen[i] - opened[i] - lateness) for i in opened if i in seen)
    if not delays:
        print("incidents: no verdict was seen")
    else:
        pick = [delays[min(len(delays) - 1, int(q * len(delays)))] for q in (0.5, 0.99, 1)]
        print(f"incidents: {len(opened)} opened, {len(delays)} diagnosed under "
              f"{per_second * EVENTS_A_BODY:,} events/s; latency p50 {pick[0]:.0f} ms, p99 "
              f"{pick[1]:.0f} ms, max {pick[2]:.0f} ms (the sender was up to {late[0] * 1000:.0f} ms "
              f"behind its schedule)")
    daemon.stop()


def thousand_rules(changed):
    head = "pack many 1.0.0\nevent m.sample { key node: node  value: f64  code: u16 }\n"
    rules = "".join(
        f"signal s{i} on node {{ when count(m.sample where it.code == {i}, 5m) >= "
        f"{3 + (changed if i == 500 else 0)} }} leak 1e-3 per hour\n" for i in range(1000))
    return head + rules


def bench_reload(binary, source, folder, reloads=20, nodes=1000, events_per_second=5000):
    """State first (each node 20 events: 20,000 pairs of node and rule), then a steady stream, and a
    changed rule again and again. REFLEX_BENCH_RELOAD_NODES: more state; restoring is linear in it."""
    nodes = int(os.environ.get("REFLEX_BENCH_RELOAD_NODES", nodes))
    os.makedirs(folder, exist_ok=True)
    pack = os.path.join(folder, "many.rfx")

    def write(changed):
        with open(pack, "w") as file:
            file.write(thousand_rules(changed))

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
    rows = []
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
              f"{os.getloadavg()[0]:.1f}): in all {p50_max(0)}; compile {p50_max(1)}; restore "
              f"{p50_max(2)}; longest stop of the stream {p50_max(3)}; CPU of one (old set freed, state "
              f"saved) {1000 * cpu / len(rows):.0f} ms")
    daemon.stop()


def bench_snapshot(binary, source, folder):
    daemon = Daemon(binary, folder, backend="jit")
    daemon.start(120)
    sender = Sender(daemon.port)
    second = int(time.time())
    for part in range(50):
        lines = [b'{"ts":%d%03d,"kind":"net.drop","node":"n%06d","value":1,"source":"mon"}\n'
                 % (second + part, i // 2, part * 2000 + i) for i in range(2000)]
        sender.post(b"".join(lines * 3))
    sender.post(b'{"ts":%d000,"kind":"net.drop","node":"n0","value":1,"source":"mon"}\n'
                % (second + 60))
    status = caught_up(daemon)
    times = []
    for _ in range(5):
        began = time.time()
        code, body = daemon.request("POST", "/api/v1/snapshot", timeout=120)
        if code != 200:
            print(f"snapshot: failed: {body[:300]}")
            break
        times.append(time.time() - began)
    keys = daemon.status()["live"].get("keys", 0)
    if times:
        print(f"snapshot: {keys:,} keys in {1000 * sorted(times)[len(times) // 2]:.0f} ms (median of "
              f"{len(times)}, with fsync)")
    daemon.stop()


def main():
    binary, source = sys.argv[1], sys.argv[2]
    parts = {"ingest": bench_ingest, "incidents": bench_incidents, "reload": bench_reload,
             "snapshot": bench_snapshot}
    for name in sys.argv[3:] or parts:
        with tempfile.TemporaryDirectory(prefix="reflex_bench_") as folder:
            parts[name](binary, source, os.path.join(folder, name))


if __name__ == "__main__":
    main()
