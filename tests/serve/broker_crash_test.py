#!/usr/bin/env python3
"""kill -9 of a daemon that reads a broker; nothing published may be lost, nothing doubled.

  broker_crash_test.py nats|kafka BINARY KAFKA_MOCK [--kills N] [--bodies N] [--seed N]

Messages are published while the daemon is killed at random moments and started again. At the end its
verdicts are held against `reflex run` over the same events, byte by byte; of JetStream, also what the
daemon's sink has published. Prints published, lost (0), doubled (0). nats: exit 77 without nats-server.
"""
import argparse
import base64
import collections
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from crash_test import Killer, lines_of  # noqa: E402
from daemon import BEGIN_MS, Daemon, differences, end_of, hang  # noqa: E402


class Nats:
    """A nats-server with the streams `in` and `out`, by hand over its text protocol."""

    def __init__(self, folder):
        with socket.socket() as any_port:
            any_port.bind(("127.0.0.1", 0))
            self.port = any_port.getsockname()[1]
        self.process = subprocess.Popen(
            ["nats-server", "-js", "-sd", os.path.join(folder, "js"), "-a", "127.0.0.1",
             "-p", str(self.port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                self.socket = socket.create_connection(("127.0.0.1", self.port))
                break
            except OSError:
                time.sleep(0.05)
        self.file = self.socket.makefile("rb")
        self.file.readline()
        self.socket.sendall(b'CONNECT {"verbose":false}\r\nSUB answers 1\r\n')
        for name in ("in", "out"):
            self.ask("$JS.API.STREAM.CREATE." + name, json.dumps(
                {"name": name, "subjects": [name + ".>"], "storage": "file",
                 "retention": "limits", "num_replicas": 1}).encode())

    def ask(self, subject, data):
        self.socket.sendall(b"PUB %s answers %d\r\n%s\r\n" % (subject.encode(), len(data), data))
        while True:
            line = self.file.readline()
            if line.startswith(b"PING"):
                self.socket.sendall(b"PONG\r\n")
            if line.startswith(b"MSG"):
                answer = json.loads(self.file.read(int(line.split()[-1])))
                self.file.readline()
                if "error" in answer:
                    raise RuntimeError(f"{subject}: {answer['error']}")
                return answer

    def tables(self):
        url = f"nats://127.0.0.1:{self.port}"
        return (f'[[sources]]\ntype = "nats"\nurl = "{url}"\nsubject = "in.>"\nform = "events"\n'
                f'[[sinks]]\ntype = "nats"\nurl = "{url}"\nsubject = "out.verdicts"\n')

    def publish(self, body):
        self.ask("in.events", body.encode())

    def delivered(self):
        last = self.ask("$JS.API.STREAM.INFO.out", b"")["state"]["last_seq"]
        return [base64.b64decode(self.ask("$JS.API.STREAM.MSG.GET.out", json.dumps(
            {"seq": seq}).encode())["message"]["data"]).decode() for seq in range(1, last + 1)]

    def stop(self):
        self.process.kill()
        self.process.wait()


class Kafka:
    def __init__(self, mock, folder):
        self.folder = folder
        self.process = subprocess.Popen([mock, "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.servers = self.process.stdout.readline().strip()
        self.command("topic in 1")

    def command(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def tables(self):
        url = f"kafka://{self.servers}"
        return (f'[[sources]]\ntype = "kafka"\nurl = "{url}"\nsubject = "in"\nform = "events"\n'
                'options = ["session.timeout.ms=6000", "heartbeat.interval.ms=500"]\n'
                f'[[sinks]]\ntype = "kafka"\nurl = "{url}"\nsubject = "out"\n')

    def publish(self, body):
        path = os.path.join(self.folder, "message")
        with open(path, "w") as file:
            file.write(body)
        self.command(f"send in {path}")

    def delivered(self):
        return None  # at least once

    def stop(self):
        self.process.kill()
        self.process.wait()


def wait_until_done(daemon, count, seconds=120):
    """All lines are accepted and evaluated, all sinks have all."""
    until = time.time() + seconds
    status = None
    while time.time() < until:
        status = daemon.status()
        lines = sum(source["lines"] for source in status["sources"])
        queued = sum(sink.get("queued", 0) for sink in status.get("sinks", []))
        if lines >= count and status["live"]["position"] == status["journal"]["end"] and queued == 0:
            return lines
        time.sleep(0.2)
    raise RuntimeError("the daemon does not come to an end: " + json.dumps(status))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("kind", choices=["nats", "kafka"])
    options.add_argument("binary")
    options.add_argument("kafka_mock")
    options.add_argument("--kills", type=int, default=4)
    options.add_argument("--bodies", type=int, default=200)
    options.add_argument("--seed", type=int, default=int(time.time()))
    args = options.parse_args()
    if args.kind == "nats" and shutil.which("nats-server") is None:
        print("skipped: no nats-server on this machine")
        return 77
    rng = random.Random(args.seed)
    folder = tempfile.mkdtemp(prefix="reflex_broker_crash_")
    broker = Nats(folder) if args.kind == "nats" else Kafka(args.kafka_mock, folder)
    bodies = [hang(i, BEGIN_MS + i * 1000, noise=20) for i in range(args.bodies)]
    bodies.append(end_of(BEGIN_MS + args.bodies * 1000))
    daemon = Daemon(args.binary, os.path.join(folder, "daemon"),
                    settings=["snapshot.interval=2s", "journal.segment=64KiB"])
    with open(daemon.config, "a") as file:
        file.write(broker.tables())
    daemon.start()
    killer = Killer(daemon, rng, args.kills)
    # As long as there are kills, but slowly: a killed daemon's messages come again after seconds.
    for number, body in enumerate(bodies):
        broker.publish(body)
        if killer.left > 0:
            time.sleep(rng.uniform(0, 0.03))
    killer.thread.join()
    count = sum(body.count("\n") for body in bodies)
    lines = wait_until_done(daemon, count)
    time.sleep(1)
    delivered = broker.delivered()
    daemon.stop()
    broker.stop()

    events = os.path.join(folder, "all.ndjson")
    with open(events, "w") as file:
        file.write("".join(bodies))
    want = os.path.join(folder, "want.ndjson")
    subprocess.run([args.binary, "-q", "run", *daemon.packs, "--events", events, "--output", want],
                   check=True)
    expected = collections.Counter(lines_of(want))
    good = lines == count
    for name, said in (("file", lines_of(daemon.verdicts)), (args.kind, delivered)):
        if said is None:
            continue
        got = collections.Counter(said)
        lost, doubled, other = differences(expected, got)
        print(f"{args.kind}, seed {args.seed}: {killer.done} kills, {count} lines published, {lines} "
              f"accepted; sink {name}: {sum(expected.values())} verdicts expected, lost {lost}, "
              f"doubled {doubled}, differing {other}")
        good = good and lost == 0 and doubled == 0 and other == 0
    if not good:
        print(f"folder kept: {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
