"""The parts of bench_serve.py that load the event stream: ingest, incidents, snapshot.

Every part ends with its figures, also when the daemon is too slow: then they say so. What is meant:
  evaluated   released by the order and seen by the rules; with rules/std that is 60 s of event time
              (their lateness) behind what was accepted
  behind      bytes accepted and not yet read; sustained means that they do not grow
  latency     open loop: of a body from when it was due to its answer; of a verdict from when the
              event was due that lets the watermark pass the incident, to its arrival on the stream
"""
import http.client
import json
import os
import subprocess
import sys
import time

from daemon import Daemon
from load import (CLOSED_BACKLOG, EVENTS_A_BODY, HOLE, Crowd, Sender, Watch, behind, bodies_of,
                  caught_up, quantile, ready, used)

SECONDS = float(os.environ.get("REFLEX_BENCH_SECONDS", "15"))
RATE = float(os.environ.get("REFLEX_BENCH_RATE", "300000"))
# Source: rules/std/train/pack.rfx (clock), and 2 s for kinds with `dedup` (runtime/stream/reorder.h).
LATENESS, DEDUP = 60, 2


def std(binary, source, folder, settings=()):
    daemon = Daemon(binary, folder, [os.path.join(source, "rules/std")], backend="jit",
                    settings=["packs.profiles=" + os.path.join(source, "hwprofiles"), *settings])
    daemon.start(120)
    ready(daemon)
    return daemon


def load_average():
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"


class Window:
    """What happened between two looks at the daemon, and what it took."""

    def __init__(self, daemon, crowd):
        self.daemon, self.crowd = daemon, crowd
        self.watch = Watch(daemon)
        self.begin = self.mark()

    def mark(self):
        now, status, rss = self.watch.look()
        return (now, status, rss, used(self.daemon.process.pid), used(), self.crowd.accepted)

    def end(self):
        began, first, _, cpu, own, accepted = self.begin
        now, last, rss, cpu_then, own_then, accepted_then = self.mark()
        rows = self.watch.stop()
        self.seconds = now - began
        self.accepted = accepted_then - accepted
        self.evaluated = last["live"]["events"] - first["live"]["events"]
        self.behind_begin, self.behind_end = behind(first), behind(last)
        self.behind_max = max([behind(row[1]) for row in rows] + [self.behind_begin, self.behind_end])
        self.cores, self.own = (cpu_then - cpu) / self.seconds, (own_then - own) / self.seconds
        self.rss = max([row[2] for row in rows] + [rss])
        self.mb_s = (last["journal"]["end"] - first["journal"]["end"]) / self.seconds / 1e6
        return self

    def print(self, name):
        print(f"{name}: accepted {self.accepted / self.seconds:,.0f} events/s, evaluated "
              f"{self.evaluated / self.seconds:,.0f} over {self.seconds:.1f} s ({self.mb_s:.0f} MB/s to "
              f"disk); behind {self.behind_begin / 1e6:.1f} MB at the beginning, "
              f"{self.behind_end / 1e6:.1f} at the end, {self.behind_max / 1e6:.1f} at most; the daemon "
              f"{self.cores:.2f} cores, {self.cores * self.seconds / max(1, self.accepted) * 1e9:.0f} ns of "
              f"CPU an event, {self.rss:.0f} MB; the generator {self.own:.2f} cores; {load_average()}",
              flush=True)


def bench_peak(binary, source, folder):
    """Closed loop: as fast as rules keep up. Event time runs ahead of the clock."""
    daemon = std(binary, source, folder, [CLOSED_BACKLOG])
    bodies = bodies_of(30)
    first = int(time.time())

    def make(number):
        return None, bodies[number % 30].replace(HOLE, b"%d" % (first + number // 30))

    crowd = Crowd(daemon.port, make)
    until = time.time() + 60
    while daemon.status()["live"]["events"] == 0 and time.time() < until and not crowd.error:
        time.sleep(0.2)
    window = Window(daemon, crowd)
    time.sleep(SECONDS)
    window.end()
    crowd.stop()
    window.print("ingest, closed loop")
    if crowd.error:
        print(f"ingest: the generator broke off: {crowd.error}")
    daemon.kill()


class Schedule:
    """RATE events/s whose time is the wall clock's, from a minute ago on: what lies in the past is
    sent at once, so that the order holds its full lateness of events when the schedule begins."""

    def __init__(self, past=LATENESS + DEDUP + 2):
        self.per_second = max(1, round(RATE / EVENTS_A_BODY))
        self.bodies = bodies_of(self.per_second)
        self.first = int(time.time()) - past
        self.live_at = None
        self.until = None
        self.extra = {}  # slot -> lines

    def due(self, slot):
        """A body is sent when the time of its last event has come."""
        return self.first + (slot + 1) / self.per_second

    def slot_of(self, ts):
        return int((ts - self.first) * self.per_second)

    def make(self, slot):
        due = self.due(slot)
        if self.until is not None and due > self.until:
            return None, None
        now = time.time()
        if self.live_at is None and due > now - 0.01:
            self.live_at = due
        second = self.first + slot // self.per_second
        body = self.bodies[slot % self.per_second].replace(HOLE, b"%d" % second)
        return (due if self.live_at is not None else None), body + self.extra.pop(slot, b"")

    def wait_live(self, crowd, seconds=180):
        until = time.time() + seconds
        while self.live_at is None and time.time() < until and not crowd.error:
            time.sleep(0.1)
        return self.live_at is not None


def report_delays(name, crowd, window):
    """Of bodies that were due inside the window."""
    began = window.begin[0]
    delays = [1000 * d for due, d in crowd.delays if began <= due <= began + window.seconds]
    print(f"{name}: a body's answer (on disk) p50 {quantile(delays, 0.5):.1f} ms, p99 "
          f"{quantile(delays, 0.99):.1f} ms, max {quantile(delays, 1):.1f} ms after it was due; "
          f"the generator was up to {crowd.behind * 1000:.0f} ms behind; {crowd.refused} times told to wait",
          flush=True)


def bench_sustained(binary, source, folder):
    daemon = std(binary, source, folder, ["clock.ticks=true"])
    schedule = Schedule()
    crowd = Crowd(daemon.port, schedule.make)
    if not schedule.wait_live(crowd):
        print(f"ingest, open loop: {RATE:,.0f} events/s are too many: a minute of them was not taken "
              f"in 180 s ({crowd.accepted:,} accepted, {behind(daemon.status()) / 1e6:.0f} MB behind)")
    until = time.time() + 60
    while behind(daemon.status()) > 10e6 and time.time() < until and not crowd.error:
        time.sleep(0.25)  # what came at once
    window = Window(daemon, crowd)
    time.sleep(SECONDS)
    window.end()
    began = time.time()
    watch = Watch(daemon)
    code, body = daemon.request("POST", "/api/v1/snapshot", timeout=120)
    took = time.time() - began
    rows = watch.stop()
    snapshot = daemon.status()["snapshot"]
    crowd.stop()
    window.print(f"ingest, open loop at {RATE:,.0f}")
    if code == 200:
        print(f"ingest: a snapshot under this load: {snapshot['bytes'] / 1e6:.0f} MB (events that wait for "
              f"their order are part of it) in {took:.1f} s; the rules stood still for "
              f"{snapshot['pause_us'] / 1000:.0f} ms, {max(behind(r[1]) for r in rows) / 1e6:.0f} MB behind at "
              f"most, {max(r[2] for r in rows):.0f} MB of memory", flush=True)
    else:
        print(f"ingest: a snapshot failed: {body[:200]}")
    report_delays("ingest, open loop", crowd, window)
    # Why 8 MB: the position is published four times a second, which is 7 MB of text.
    grows = window.behind_end > window.behind_begin + 8e6 or window.accepted < 0.98 * RATE * window.seconds
    print("ingest: " + ("NOT sustained: it falls behind" if grows else
                        "sustained: what waits does not grow"), flush=True)
    daemon.kill()


def bench_ingest(binary, source, folder):
    bench_peak(binary, source, os.path.join(folder, "peak"))
    bench_sustained(binary, source, os.path.join(folder, "sustained"))


# A process of its own: (incident, final, wall time) of each verdict, one line each, when it ends.
FOLLOWER = r"""
import http.client, re, sys, time
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=600)
connection.request("GET", "/api/v1/verdicts/stream")
stream = connection.getresponse()
print("follows", flush=True)
rows = []
try:
    while True:
        line = stream.readline()
        if not line:
            break
        if line.startswith(b"data:"):
            now = time.time()
            name = re.search(rb'"incident":"([^"]*)"', line).group(1).decode()
            rows.append((name, b'"final":true' in line[:4000], now))
except Exception:
    pass
for name, final, now in rows:
    print(name, int(final), repr(now))
"""


def incident_lines(i, ms):
    """A fault, and three seconds later the hang of its job."""
    bad = f"n{i * 8 % 10000:05d}"
    fault = f'{{"ts":{ms - 3000},"kind":"gpu.xid","node":"{bad}","gpu":0,"code":79,"source":"mon"}}\n'
    hang = (f'{{"ts":{ms},"kind":"incident.open","incident":"b{i}","job":"b{i}","symptom":"hang",'
            f'"source":"mon"}}\n')
    return fault.encode(), hang.encode()


def job_line(i, ms):
    nodes = ",".join(f'"n{(i * 8 + k) % 10000:05d}"' for k in range(8))
    return f'{{"ts":{ms},"kind":"job.start","job":"b{i}","nodes":[{nodes}],"source":"mon"}}\n'


def bench_incidents(binary, source, folder, incidents=1024, spread=10.0):
    daemon = std(binary, source, folder, ["clock.ticks=true"])
    follower = subprocess.Popen([sys.executable, "-c", FOLLOWER, str(daemon.port)],
                                stdout=subprocess.PIPE, text=True)
    follower.stdout.readline()
    schedule = Schedule()
    Sender(daemon.port).post("".join(job_line(i, schedule.first * 1000) for i in range(incidents)).encode())
    # They open while the schedule begins, and are due when it holds.
    opening = schedule.first + LATENESS + DEDUP + 10
    allowed = {}
    for i in range(incidents):
        ms = int(1000 * (opening + i * spread / incidents))
        fault, hang = incident_lines(i, ms)
        for line, at in ((fault, ms - 3000), (hang, ms)):
            slot = schedule.slot_of(at / 1000)
            schedule.extra[slot] = schedule.extra.get(slot, b"") + line
        # The order releases whole milliseconds that lie LATENESS + DEDUP behind the newest event.
        allowed[f"b{i}"] = schedule.due(schedule.slot_of((ms + 1) / 1000 + LATENESS + DEDUP))
    # Source: rules/std/train/incidents.rfx, settle 30s: the final verdict is due that much later.
    schedule.until = opening + spread + LATENESS + DEDUP + 32
    crowd = Crowd(daemon.port, schedule.make)
    lives = schedule.wait_live(crowd)
    if not lives:
        print("incidents: the load is too high, it was not taken in 180 s")
    time.sleep(max(0, min(allowed.values()) - 1 - time.time()))
    window = Window(daemon, crowd)
    open_most = 0
    while any(thread.is_alive() for thread in crowd.threads) and time.time() < schedule.until + 60:
        open_most = max(open_most, daemon.status()["live"]["incidents_open"])
        time.sleep(0.5)
    window.end()
    crowd.stop()
    try:
        caught_up(daemon)
        time.sleep(1)
    except RuntimeError as error:
        print(f"incidents: {error}")
    daemon.kill()  # the end of its answers is the follower's
    rows = [line.split() for line in follower.communicate(timeout=60)[0].splitlines()]
    window.print(f"incidents, load of {schedule.per_second * EVENTS_A_BODY:,}")
    report_delays("incidents", crowd, window)
    late = schedule.live_at is None or min(allowed.values()) < schedule.live_at
    print(f"incidents: {len(allowed)} opened within {spread:.0f} s, {open_most} open at once, {len(rows)} "
          f"verdicts" + ("; the schedule did not hold yet when the first was due" if late else ""))
    for name, final, wait in (("first verdict", "0", 0), ("final verdict", "1", 30)):
        seen = {}
        for incident, is_final, at in rows:
            if is_final == final:
                seen.setdefault(incident, float(at))
        delays = [1000 * (seen[i] - allowed[i] - wait) for i in allowed if i in seen]
        print(f"incidents: {name} of {len(delays)}: latency p50 {quantile(delays, 0.5):.0f} ms, p99 "
              f"{quantile(delays, 0.99):.0f} ms, max {quantile(delays, 1):.0f} ms after the event was due "
              f"that allows it", flush=True)


def bench_snapshot(binary, source, folder):
    """100,000 keys, under a stream of 20,000 events/s: time, and how long bodies and rules waited."""
    del source
    daemon = Daemon(binary, folder, backend="jit")
    daemon.start(120)
    ready(daemon)
    sender = Sender(daemon.port)
    second = int(time.time())
    for part in range(50):
        lines = [b'{"ts":%d%03d,"kind":"net.drop","node":"n%06d","value":1,"source":"mon"}\n'
                 % (second + part, i // 2, part * 2000 + i) for i in range(2000)]
        sender.post(b"".join(lines * 3))
    status = caught_up(daemon)

    def make(number):
        ms = (second + 60) * 1000 + number * 10
        lines = [b'{"ts":%d,"kind":"net.drop","node":"n%06d","value":1,"source":"mon"}\n'
                 % (ms + i // 20, (number * 200 + i) * 7919 % 100000) for i in range(200)]
        return began + number * 0.01, b"".join(lines)

    began = time.time() + 0.1
    crowd = Crowd(daemon.port, make)
    time.sleep(1)
    rows = []
    for _ in range(5):
        at, cpu = time.time(), used(daemon.process.pid)
        code, body = daemon.request("POST", "/api/v1/snapshot", timeout=120)
        if code != 200:
            print(f"snapshot: failed: {body[:300]}")
            break
        row = daemon.status()
        rows.append((time.time() - at, row["snapshot"]["pause_us"], row["snapshot"]["bytes"],
                     used(daemon.process.pid) - cpu, at))
        time.sleep(1)
    status = daemon.status()
    crowd.stop()
    if rows:
        calm = [d for due, d in crowd.delays if not any(r[4] <= due <= r[4] + r[0] for r in rows)]
        during = [d for due, d in crowd.delays if any(r[4] <= due <= r[4] + r[0] for r in rows)]
        print(f"snapshot: {status['live']['keys']:,} keys, {rows[0][2] / 1e6:.1f} MB in "
              f"{1000 * quantile([r[0] for r in rows], 0.5):.0f} ms (median of {len(rows)}, with fsync, max "
              f"{1000 * max(r[0] for r in rows):.0f} ms); the rules stood still for "
              f"{quantile([r[1] for r in rows], 0.5) / 1000:.1f} ms (max {max(r[1] for r in rows) / 1000:.1f}); "
              f"bodies were answered in p99 {1000 * quantile(during, 0.99):.0f} ms while it was taken, "
              f"{1000 * quantile(calm, 0.99):.0f} ms otherwise; {load_average()}", flush=True)
    daemon.kill()
