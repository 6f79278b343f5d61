#!/usr/bin/env python3
"""Makes the bundled trace of `./dev demo`: six incidents as raw logs. usage: make_trace.py

Writes inventory.json, events.ndjson (placement and the scheduler's reports), truth.ndjson and
logs/NODE.{kernel,train}.log beside this file. Deterministic; the output is committed, so nobody
needs Python to build or test. Line forms are those of public cases and kernel sources; host
names, serials and addresses are invented. Hand-made data, not recordings of a real cluster.
"""
import json
import random
from datetime import datetime, timedelta, timezone
from pathlib import Path

HERE = Path(__file__).parent
DAY = datetime(2026, 3, 2, tzinfo=timezone.utc)
rnd = random.Random(20260302)
PCI = ["1b", "43", "52", "61", "9d", "c3", "d1", "df"]  # bus of gpu 0..7

kernel = {}  # node -> [(time, text)]
train = {}   # node -> [(time, text)]
events = []
truth = []
nodes = {}   # node -> labels


def at(clock, seconds=0.0):
    h, m, s = (int(x) for x in clock.split(":"))
    return DAY + timedelta(hours=h, minutes=m, seconds=s + seconds)


def rfc(t, digits=3):
    return t.strftime("%Y-%m-%dT%H:%M:%S") + f".{t.microsecond:06d}"[: digits + 1] + "Z"


def klog(node, t, text):
    kernel.setdefault(node, []).append((t, text))


def tlog(node, t, text):
    train.setdefault(node, []).append((t, text))


def event(t, kind, **fields):
    events.append((t, {"ts": rfc(t), "kind": kind, **fields}))


def job(name, first, count, product, hw, tor, start, end, status):
    names = [f"n{first + i:03d}" for i in range(count)]
    for i, n in enumerate(names):
        nodes[n] = {"hw": hw, "gpu.product": product, "rack": f"rack-{(first + i) // 4:02d}",
                    "tor": tor, "zone": "z1",
                    **{f"pci.gpu{g}": f"0000:{PCI[g]}:00" for g in range(8)}}
    event(start, "job.start", job=name, nodes=names)
    event(end, "job.end", job=name, status=status)
    return names


def report(t, incident, name, symptom):
    event(t, "incident.open", incident=incident, job=name, symptom=symptom)


# ---- lines

def xid(gpu, code, rest):
    return f"NVRM: Xid (PCI:0000:{PCI[gpu]}:00): {code}, {rest}"


def nccl(node, pid, gpu, text):
    return f"{node}:{pid}:{pid + 373} [{gpu}] {text}"


def error12(node, gpu, peer, t):
    pid = 73000 + 17 * gpu
    tlog(node, t, nccl(node, pid, gpu,
         f"transport/net_ib.cc:1238 NCCL WARN NET/IB : Got completion from peer {peer}<{40000 + gpu}> "
         "with error 12, opcode 2, len 1, vendor err 129"))


def watchdog(node, rank, t, seq, op="ALLREDUCE", waited=600):
    stamp = f"E{t.month}{t.day:02d} {t.strftime('%H:%M:%S')}.{t.microsecond:06d}150"
    tlog(node, t, f"[rank{rank}]:[{stamp} ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught "
         f"collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn=466119168, "
         f"NumelOut=466119168, Timeout(ms)={waited * 1000}) ran for {waited * 1000 + 67} "
         "milliseconds before timing out.")
    tlog(node, t + timedelta(milliseconds=50),
         f"[rank{rank}]:[{stamp} ProcessGroupNCCL.cpp:1664] [PG 0 (default_pg) Rank {rank}] Exception "
         f"(either an error or timeout) detected by watchdog at work: {seq}, last enqueued NCCL work: "
         f"{seq + 2}, last completed NCCL work: {seq - 1}.")


def teardown(node, t, count=8):
    for g in range(count):
        klog(node, t + timedelta(milliseconds=13 * g),
             xid(g % 8, 45, f"pid={20100 + g}, name=pt_main_thread, Ch {8 + g:08x}"))


# ---- the incidents

def ecc_victims_shout():
    """Double-bit error on n003 gpu 4; the other seven nodes print 56 watchdogs, n003 none."""
    names = job("llm-70b", 1, 8, "NVIDIA A100-SXM4-80GB", "A100-80G", "leaf-01", at("06:00:00"),
                at("09:30:00"), "failed")
    t = at("09:12:40")
    bad, gpu = "n003", 4
    for d in (9000, 5400, 2700, 900):
        klog(bad, t - timedelta(seconds=d), "NVRM: Xid (PCI:0000:9d:00): 92, pid='<unknown>', "
             "name=<unknown>, High single-bit ECC error rate")
    klog(bad, t, "NVRM: GPU at PCI:0000:9d:00: GPU-8a6f2c0e-5a1b-7d34-9c58-0b8b6f3d2a11")
    klog(bad, t, "NVRM: GPU Board Serial Number: 1654922000000")
    klog(bad, t, xid(gpu, 48, "pid='<unknown>', name=<unknown>, An uncorrectable double bit error "
                     "(DBE) has been detected on GPU in the framebuffer at partition 4, subpartition 0."))
    klog(bad, t + timedelta(seconds=0.2), xid(gpu, 63, "pid='<unknown>', name=<unknown>, Row Remapper: "
                                              "New row marked for remapping, reset gpu to activate."))
    tlog(bad, t + timedelta(seconds=0.9), "[rank20]: RuntimeError: CUDA error: uncorrectable ECC error "
         "encountered")
    for i in range(40):
        klog(bad, t + timedelta(seconds=2, milliseconds=7 * i),
             xid(i % 8, 45, f"pid={18200 + i % 8}, name=pt_main_thread, Ch {i:08x}"))
    peers = [n for n in names if n != bad]
    for i, n in enumerate(peers[:6]):
        error12(n, gpu, bad, t + timedelta(seconds=8 + 5.2 * i))
    for i, n in enumerate(peers):
        for local in range(8):
            watchdog(n, names.index(n) * 8 + local,
                     t + timedelta(seconds=600, milliseconds=40 * (i * 8 + local)), 1580)
        teardown(n, t + timedelta(seconds=604, milliseconds=60 * i))
    report(t + timedelta(seconds=605), "demo-1", "llm-70b", "hang")
    truth.append({"incident": "demo-1", "job": "llm-70b", "culprits": [bad], "external": None,
                  "story": "double-bit ECC error on n003; the watchdogs of its peers are louder"})


def leaf_reboot():
    """Leaf switch leaf-12 reboots: 16 nodes lose their links within 1.2 s and get them back."""
    names = job("moe-16", 9, 16, "NVIDIA H800", "H800", "leaf-12", at("07:00:00"), at("10:50:00"),
                "failed")
    t = at("10:31:05")
    for i, n in enumerate(names):
        down = t + timedelta(seconds=1.2 * i / 15)
        for port in (0, 1):
            klog(n, down + timedelta(milliseconds=3 * port),
                 f"mlx5_core 0000:{'1a' if port == 0 else '3c'}:00.0 mlx5_{port}: Port: 1 Link DOWN")
        for port in (0, 1):
            klog(n, down + timedelta(seconds=185 + 2 * port),
                 f"mlx5_core 0000:{'1a' if port == 0 else '3c'}:00.0 mlx5_{port}: Port: 1 Link ACTIVE")
        for local in (0, 1):
            tlog(n, down + timedelta(seconds=0.3), nccl(n, 34050 + local, local,
                 f"transport/net_ib.cc:93 NCCL WARN NET/IB : mlx5_{local}:1 Got async event : port error"))
        error12(n, 0, names[(i + 5) % 16], down + timedelta(seconds=31 + 0.2 * i))
        watchdog(n, i * 8, t + timedelta(seconds=600, milliseconds=90 * i), 88210)
        teardown(n, t + timedelta(seconds=603, milliseconds=30 * i), 4)
    report(t + timedelta(seconds=602), "demo-2", "moe-16", "hang")
    truth.append({"incident": "demo-2", "job": "moe-16", "culprits": [], "external": "switch",
                  "story": "leaf-12 rebooted; no node is at fault"})


def user_bug():
    """Illegal memory access in the program: Xid 31 on all 40 GPUs within 2 s, then 43 and 45."""
    names = job("sft-5", 25, 5, "NVIDIA H20", "H20", "leaf-03", at("11:00:00"), at("11:43:00"),
                "failed")
    t = at("11:41:17")
    for i, n in enumerate(names):
        for g in range(8):
            when = t + timedelta(seconds=2.0 * (i * 8 + g) / 40)
            pid = 41000 + g
            klog(n, when, xid(g, 31, f"pid={pid}, name=pt_main_thread, Ch 00000008, intr 00000000. MMU "
                              "Fault: ENGINE GRAPHICS GPCCLIENT_T1_8 faulted @ 0x73ac_1c000000. Fault is "
                              "of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE"))
            klog(n, when + timedelta(seconds=0.6), xid(g, 43, f"pid={pid}, name=pt_main_thread, Ch 00000008"))
            klog(n, when + timedelta(seconds=3), xid(g, 45, f"pid={pid}, name=pt_main_thread, Ch 00000009"))
            tlog(n, when + timedelta(seconds=0.4), f"[rank{i * 8 + g}]: RuntimeError: CUDA error: an illegal "
                 "memory access was encountered")
    report(t + timedelta(seconds=20), "demo-3", "sft-5", "crash")
    truth.append({"incident": "demo-3", "job": "sft-5", "culprits": [], "external": "application",
                  "story": "a bad pointer in the user's kernel, on every GPU at once"})


def nic_port():
    """Port of n033 fails: it says so itself, six nodes get error 12 towards it."""
    names = job("vision-8", 30, 8, "NVIDIA H100 80GB HBM3", "H100", "leaf-04", at("12:00:00"),
                at("13:25:00"), "failed")
    t = at("13:07:52")
    bad = "n033"
    klog(bad, t, "mlx5_core 0000:9c:00.0 mlx5_4: Port: 1 Link DOWN")
    klog(bad, t + timedelta(seconds=0.1), "mlx5_core 0000:9c:00.0: Port module event[error]: module 0, "
         "Cable error, Bad or shorted cable/module")
    for local in range(8):
        tlog(bad, t + timedelta(seconds=0.2, milliseconds=4 * local), nccl(bad, 34050 + 2 * local, local,
             "transport/net_ib.cc:93 NCCL WARN NET/IB : mlx5_4:1 Got async event : port error"))
    for i, n in enumerate([n for n in names if n != bad][:6]):
        error12(n, 4, bad, t + timedelta(seconds=30.5 + 0.6 * i))
    for i, n in enumerate(names):
        watchdog(n, i * 8 + 4, t + timedelta(seconds=601, milliseconds=70 * i), 40233)
    report(t + timedelta(seconds=603), "demo-4", "vision-8", "hang")
    truth.append({"incident": "demo-4", "job": "vision-8", "culprits": [bad], "external": None,
                  "story": "NIC port of n033; its six partners are victims"})


def nfs_stall():
    """Storage server nfs-3 stops answering: every node names it within 3 s."""
    names = job("eval-6", 38, 6, "NVIDIA L20", "L20", "leaf-05", at("14:00:00"), at("15:10:00"),
                "completed")
    t = at("14:36:20")
    for i, n in enumerate(names):
        klog(n, t + timedelta(seconds=3.0 * i / 5), "nfs: server nfs-3.example.net not responding, still trying")
        for p in range(2):
            klog(n, t + timedelta(seconds=123 + i + 2 * p),
                 f"INFO: task python3:{136986 + 10 * i + p} blocked for more than 120 seconds.")
        klog(n, t + timedelta(seconds=420 + i), "nfs: server nfs-3.example.net OK")
    report(t + timedelta(seconds=200), "demo-5", "eval-6", "slow")
    truth.append({"incident": "demo-5", "job": "eval-6", "culprits": [], "external": "storage",
                  "story": "NFS server nfs-3 stalled; no node is at fault"})


def off_the_bus():
    """A GPU of n046 leaves the bus; the driver prints no Xid number."""
    names = job("rl-4", 44, 4, "NVIDIA A100-SXM4-80GB", "A100-80G", "leaf-06", at("15:30:00"),
                at("16:40:00"), "failed")
    t = at("16:18:09")
    bad, gpu = "n046", 6
    port = f"pcieport 0000:{PCI[gpu][0]}0:01.0"
    device = f"0000:{PCI[gpu]}:00.0"
    for d in (3000, 2100, 1500, 700, 300, 120):
        klog(bad, t - timedelta(seconds=d), f"{port}: AER: Multiple Corrected error received: {device}")
        klog(bad, t - timedelta(seconds=d), f"nvidia {device}: PCIe Bus Error: severity=Corrected, type=Physical "
             "Layer, (Receiver ID)")
        klog(bad, t - timedelta(seconds=d), f"nvidia {device}:   device [10de:20b2] error status/mask=00000001/0000a000")
        klog(bad, t - timedelta(seconds=d), f"nvidia {device}:    [ 0] RxErr                  (First)")
    klog(bad, t, f"NVRM: The NVIDIA GPU {device}")
    klog(bad, t, "NVRM: (PCI ID: 10de:20b2) installed in this system has")
    klog(bad, t, "NVRM: fallen off the bus and is not responding to commands.")
    klog(bad, t + timedelta(seconds=0.4), f"NVRM: GPU {device}: GPU has fallen off the bus.")
    for i in range(5):
        klog(bad, t + timedelta(seconds=40 + 11 * i), f"NVRM: GPU {device}: RmInitAdapter failed! (0x22:0x56:894)")
        klog(bad, t + timedelta(seconds=40 + 11 * i), f"NVRM: GPU {device}: rm_init_adapter failed, device minor number {gpu}")
    for i, n in enumerate([n for n in names if n != bad]):
        tlog(n, t + timedelta(seconds=2 + i), nccl(n, 51200, gpu,
             f"misc/socket.cc:484 NCCL WARN Net : Call to recv from {bad}<47292> failed : Connection reset by peer"))
        for local in (0, 6):
            watchdog(n, names.index(n) * 8 + local, t + timedelta(seconds=600, milliseconds=55 * i + local), 7071)
    report(t + timedelta(seconds=604), "demo-6", "rl-4", "hang")
    truth.append({"incident": "demo-6", "job": "rl-4", "culprits": [bad], "external": None,
                  "story": "GPU 6 of n046 fell off the bus without an Xid number"})


def background():
    """What healthy nodes print all day."""
    for n in nodes:
        klog(n, at("05:00:00", rnd.uniform(0, 900)),
             "mlx5_core 0000:1a:00.0: 252.056 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)")
        for _ in range(rnd.randint(2, 5)):
            klog(n, at("05:30:00", rnd.uniform(0, 38000)),
                 "mlx5_core 0000:d2:00.0: mlx5_cmd_out_err:838:(pid 268269): ACCESS_REG(0x805) op_mod(0x1) "
                 "failed, status bad resource(0x5), syndrome (0x305684), err(-22)")
        if rnd.random() < 0.3:
            klog(n, at("06:00:00", rnd.uniform(0, 36000)),
                 "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#1_Chan#0_DIMM#0 (channel:0 slot:0 "
                 "page:0x5c1f offset:0x0 grain:32 syndrome:0x0)")
        if rnd.random() < 0.3:
            klog(n, at("06:00:00", rnd.uniform(0, 36000)),
                 "CPU12: Core temperature above threshold, cpu clock throttled (total events = 34)")
        tlog(n, at("06:00:30", rnd.uniform(0, 30)),
             f"{n}:984:1357 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.59<0>")


# ---- writing

def kernel_line(node, t, text):
    """Four of the prefixes that kernel lines come with, by node."""
    form = int(node[1:]) % 4
    if form == 0:
        return f"{t.strftime('%Y-%m-%dT%H:%M:%S')}.{t.microsecond:06d}+00:00 {node} kernel: {text}"
    if form == 1:
        return f"kern  :warn  : {t.strftime('%Y-%m-%dT%H:%M:%S')},{t.microsecond:06d}+00:00 {text}"
    if form == 2:
        return f"[{t.strftime('%a %b')} {t.day:2d} {t.strftime('%H:%M:%S %Y')}] {text}"
    return f"10.0.0.{int(node[1:])}: kern: warning: [{t.strftime('%Y-%m-%dT%H:%M:%S')}.{t.microsecond:06d}998Z]: {text}"


def train_line(t, text):
    return f"{t.strftime('%Y-%m-%dT%H:%M:%S')}.{t.microsecond:06d}302Z stderr F {text}"


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines))


def main():
    ecc_victims_shout()
    leaf_reboot()
    user_bug()
    nic_port()
    nfs_stall()
    off_the_bus()
    background()
    for log, lines, form in ((kernel, "kernel", kernel_line), (train, "train", None)):
        for node, entries in log.items():
            entries.sort(key=lambda e: e[0])  # stable: lines of one instant keep their order
            write(HERE / "logs" / f"{node}.{lines}.log",
                  [form(node, t, text) if form else train_line(t, text) for t, text in entries])
    write(HERE / "events.ndjson", [json.dumps(e, separators=(",", ":"))
                                   for _, e in sorted(events, key=lambda e: e[0])])
    write(HERE / "truth.ndjson", [json.dumps(t, separators=(",", ":")) for t in truth])
    body = ",\n".join(json.dumps({"node": n, "labels": l}, separators=(",", ":"))
                      for n, l in sorted(nodes.items()))
    (HERE / "inventory.json").write_text('{"nodes":[\n' + body + "\n]}\n")


if __name__ == "__main__":
    main()
