"""Load for the benchmarks of `reflex serve`: bodies of events, senders with and without a schedule,
a watcher of the daemon. What is not here: what is measured (bench_stream.py, bench_serve.py).

The generator shares the machine with the daemon: used() tells what it takes itself.
"""
import http.client
import json
import os
import resource
import threading
import time

EVENTS_A_BODY = 3000
HOLE = b"@@@@@@@@@@"  # seconds of all stamps of a body
# 64 bodies of the benchmark's size: what waits between accepting and evaluating is back-pressure, not memory.
CLOSED_BACKLOG = "journal.backlog_max=32MiB"


def bodies_of(count, nodes=10000):
    """`count` bodies that fill one second of events: four kinds, each from every node."""
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
    """Posts on one connection; waits and tries again when told to, until `until` (wall time)."""

    def __init__(self, port):
        self.port, self.connection = port, None
        self.refused = 0

    def post(self, body, until=None):
        """False: it was refused up to the end."""
        while True:
            if self.connection is None:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            self.connection.request("POST", "/api/v1/events?source=mon", body,
                                    {"Content-Type": "application/x-ndjson"})
            answer = self.connection.getresponse()
            answer.read()
            if answer.status == 429:
                self.refused += 1
                if until is not None and time.time() >= until:
                    return False
                time.sleep(0.01)
                continue
            if answer.status >= 300:
                raise RuntimeError(f"status {answer.status}")
            return True


def used(process=None):
    """CPU seconds: of this program with its ended children, or of a process."""
    if process is None:
        return sum(sum(resource.getrusage(who)[:2])
                   for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ready(daemon, seconds=60):
    """Input that no rules read would be a figure of nothing."""
    until = time.time() + seconds
    while True:
        status = daemon.status()
        if status["ready"]:
            return
        if time.time() > until:
            raise RuntimeError(f"the daemon is not ready: {status['not_ready_because']}")
        time.sleep(0.1)


def caught_up(daemon, seconds=120):
    until = time.time() + seconds
    while time.time() < until:
        status = daemon.status()
        if status["live"]["position"] == status["journal"]["end"]:
            return status
        time.sleep(0.02)
    raise RuntimeError("the daemon does not catch up")


class Crowd:
    """Threads that post what `make(number)` gives: (due, body), body None: the end. `due` None: at once."""

    def __init__(self, port, make, count=4):
        self.make, self.turn, self.number = make, threading.Lock(), 0
        self.accepted = 0  # events
        self.delays = []  # (due, seconds from due to the answer)
        self.behind = 0.0  # of the schedule, at worst
        self.refused = 0
        self.stopped = False
        self.error = None
        self.threads = [threading.Thread(target=self.work, args=(port,)) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def work(self, port):
        sender = Sender(port)
        try:
            while not self.stopped:
                with self.turn:
                    due, body = self.make(self.number)
                    self.number += 1
                if body is None:
                    break
                if due is not None:
                    wait = due - time.time()
                    if wait > 0:
                        time.sleep(wait)
                    self.behind = max(self.behind, -wait)
                if not sender.post(body, 0 if self.stopped else None):
                    break
                with self.turn:
                    self.accepted += body.count(b"\n")
                    if due is not None:
                        self.delays.append((due, time.time() - due))
        except Exception as error:  # a broken connection ends the run with a figure and its reason
            self.error = error
        with self.turn:
            self.refused += sender.refused

    def join(self, seconds=60):
        until = time.time() + seconds
        for thread in self.threads:
            thread.join(max(0, until - time.time()))
        return not any(thread.is_alive() for thread in self.threads)

    def stop(self):
        self.stopped = True
        return self.join()


class Watch:
    """Asks the daemon for its status, four times a second: rows of (time, status, MB)."""

    def __init__(self, daemon):
        self.daemon, self.rows, self.stopped = daemon, [], False
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def look(self):
        status = self.daemon.status()
        return time.time(), status, self.daemon.rss_kb() / 1024

    def work(self):
        while not self.stopped:
            try:
                self.rows.append(self.look())
            except (OSError, http.client.HTTPException, json.JSONDecodeError):
                pass
            time.sleep(0.25)

    def stop(self):
        self.stopped = True
        self.thread.join()
        return self.rows


def behind(status):
    """Bytes that are accepted and not read by the rules."""
    return status["journal"]["end"] - status["live"]["position"]


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else float("nan")
