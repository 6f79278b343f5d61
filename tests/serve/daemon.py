"""A `reflex serve` process in a folder of its own, for the tests and benchmarks beside this file."""
import http.client
import json
import os
import signal
import subprocess
import time

PACK = """pack crash 1.0.0
clock { lateness 2s }
event gpu.xid { key node: node  code: u16 }
event net.drop { key node: node  value: f64 }
signal xid on node { e: gpu.xid where e.code == 79 } leak 1e-4 per hour
signal drops on node { when count(net.drop, 5m) >= 3 } leak 1e-2 per hour
fault gpu on node { prior 2e-4 per job }
fault nic on node { prior 2e-4 per job }
gpu causes xid p 0.8 lag -1m .. 5m
nic causes drops p 0.7 lag -1m .. 5m
incident hang on job { opens on incident.open  settle 5s }
"""
BEGIN_MS = 1_700_000_000_000


def hang(job, ms, nodes=4, noise=0, places=None):
    """NDJSON of one job: start, errors of a node, a hang. On nodes of its own, or in one of `places`."""
    place = job if places is None else job % places
    lines = [{"ts": ms, "kind": "job.start", "source": "mon", "job": f"j{job}",
              "nodes": [f"j{place}n{i}" for i in range(nodes)]}]
    for i in range(noise):
        lines.append({"ts": ms + 10 + i % 80, "kind": "net.drop", "source": "mon",
                      "node": f"quiet{(job * 7 + i) % 5000}", "value": i})
    bad = f"j{place}n{job % nodes}"
    if job % 2:
        lines += [{"ts": ms + 100 + i, "kind": "net.drop", "source": "mon", "node": bad, "value": i}
                  for i in range(4)]
    else:
        lines.append({"ts": ms + 100, "kind": "gpu.xid", "source": "mon", "node": bad, "code": 79})
    lines.append({"ts": ms + 700, "kind": "incident.open", "source": "mon", "incident": f"i{job}",
                  "job": f"j{job}", "symptom": "hang"})
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def end_of(ms):
    """An event that lets everything before it be evaluated and every incident end."""
    return json.dumps({"ts": ms + 86_400_000, "kind": "net.drop", "source": "mon", "node": "end",
                       "value": 1}) + "\n"


def differences(expected, got):
    """Of two Counters: what is (lost, doubled, there and not expected)."""
    doubled = sum(count - 1 for count in got.values() if count > 1)
    return (sum((expected - got).values()), doubled, sum((got - expected).values()) - doubled)


class Daemon:
    def __init__(self, binary, folder, packs=None, settings=(), backend="interp"):
        self.binary, self.folder = binary, folder
        os.makedirs(folder, exist_ok=True)
        self.verdicts = os.path.join(folder, "verdicts.ndjson")
        if packs is None:
            packs = [os.path.join(folder, "pack.rfx")]
            with open(packs[0], "w") as file:
                file.write(PACK)
        self.packs = packs
        self.config = os.path.join(folder, "reflex.toml")
        with open(self.config, "w") as file:
            file.write(f'state_dir = "state"\n[packs]\npaths = {json.dumps(packs)}\n'
                       f'backend = "{backend}"\n[http]\nlisten = "127.0.0.1:0"\n'
                       '[clock]\nticks = false\n[store]\nkeep = "40000d"\n'
                       f'[[sinks]]\ntype = "file"\npath = "{self.verdicts}"\n')
        self.settings = list(settings)
        self.process = None
        self.port = None
        self.log = os.path.join(folder, "log")

    def start(self, seconds=60):
        arguments = [self.binary, "serve", "-c", self.config]
        for setting in self.settings:
            arguments += ["--set", setting]
        self.port = None
        begin = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        log = open(self.log, "a")
        self.process = subprocess.Popen(arguments, stderr=log, stdout=log)
        log.close()
        until = time.time() + seconds
        while time.time() < until:
            with open(self.log) as file:
                file.seek(begin)
                for line in file:
                    if "serving at" in line and line.endswith("\n"):
                        self.port = int(line.strip().rsplit(":", 1)[1])
                        return
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        raise RuntimeError("the daemon did not start:\n" + open(self.log).read()[-4000:])

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds=120):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def request(self, method, path, body=None, headers=(), timeout=60):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def give(self, body, key):
        """True: accepted. None: no answer, the daemon may have it or not."""
        try:
            status, _ = self.request("POST", "/api/v1/events?source=mon", body,
                                     {"Content-Type": "application/x-ndjson",
                                      "Idempotency-Key": key})
            return status < 300
        except (OSError, http.client.HTTPException):
            return None

    def status(self):
        return json.loads(self.request("GET", "/api/v1/status")[1])

    def rss_kb(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            for line in file:
                if line.startswith("VmRSS"):
                    return int(line.split()[1])
        return 0
