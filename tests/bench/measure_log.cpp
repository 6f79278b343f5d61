// Raw kernel log: a generated dmesg, and how fast the standard packs' decoders read it.
#include <array>
#include <fstream>
#include <string_view>

#include "runtime/stream/line_source.h"
#include "runtime/stream/log_decoder.h"
#include "tests/bench/replay_measure.h"

namespace reflex::bench {
namespace {

// What a training node's kernel says all day; most of it means nothing. Source: public kernel logs.
constexpr std::array<std::string_view, 14> kCalm{
    "usb 1-14.1: new high-speed USB device number 7 using xhci_hcd",
    "audit: type=1400 audit(1700000000.123:42): apparmor=\"STATUS\" operation=\"profile_load\" pid=9",
    "docker0: port 3(veth12ab34) entered blocking state",
    "veth12ab34: renamed from eth0",
    "IPv6: ADDRCONF(NETDEV_CHANGE): veth12ab34: link becomes ready",
    "nvidia-nvlink: Nvlink Core is being initialized, major device number 510",
    "EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode. Opts: (null). Quota mode: none.",
    "TCP: request_sock_TCP: Possible SYN flooding on port 8080. Sending cookies.",
    "pci 0000:3b:00.0: [10de:2330] type 00 class 0x030200",
    "perf: interrupt took too long (2501 > 2500), lowering kernel.perf_event_max_sample_rate to 79750",
    "overlayfs: upperdir is in-use as upperdir/workdir of another mount",
    "systemd[1]: Started Session 42 of user root.",
    "workqueue: blk_mq_run_work_fn hogged CPU for >10000us 4 times, consider switching to WQ_UNBOUND",
    "XFS (dm-3): Ending clean mount"};
constexpr std::array<std::string_view, 3> kTold{
    "NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, name=python3, Ch 00000008, intr 10000000. MMU Fault",
    "NVRM: Xid (PCI:0000:9d:00): 94, pid=77, name=pt_main_thread, Contained: SM (0x1). RST: No",
    "mlx5_core 0000:d2:00.0: mlx5_cmd_out_err:838:(pid 2682): ACCESS_REG(0x805) op_mod(0x1) failed"};
constexpr uint64_t kToldEvery = 500;  // Why: a busy node shows some hundred such lines in a day's log

}  // namespace

Status write_kernel_log(const std::string& path, size_t bytes) {
  std::ofstream file(path, std::ios::binary);
  uint64_t mix = 1;
  std::string line;
  size_t written = 0;
  for (uint64_t i = 0; written < bytes; ++i) {
    mix = mix * 6364136223846793005u + 1442695040888963407u;
    const uint64_t pick = mix >> 33;
    const std::string us = std::to_string(1'000'000 + i * 40'000 % 1'000'000);
    const std::string seconds = std::to_string(i / 25);
    line = "[" + std::string(seconds.size() < 5 ? 5 - seconds.size() : 0, ' ') + seconds + "." +
           us.substr(1) + "] ";
    line += pick % kToldEvery == 0 ? kTold[i % kTold.size()] : kCalm[pick % kCalm.size()];
    line += '\n';
    file << line;
    written += line.size();
  }
  if (!file.flush()) return Error{"cannot write " + path};
  return ok_status();
}

Result<RunResult> run_log_decoding(const std::shared_ptr<const abi::CompiledPack>& pack,
                                   const std::string& path) {
  auto source = stream::open_lines(path);
  if (!source.ok()) return source.error();
  const auto patterns = stream::compile_line_patterns(*pack);
  stream::LogDecoder decoder(pack, pack->symbols->intern("n1"), pack->symbols->intern(path), {}, {},
                             patterns);
  constexpr size_t kChunkBytes = 256u << 10;  // as the pipeline reads
  RunResult out;
  const double wall = wall_seconds();
  const double user = user_seconds();
  for (;;) {
    auto chunk = source.value()->next(kChunkBytes);
    if (!chunk.ok()) return chunk.error();
    if (chunk.value().text.empty()) break;
    stream::RecordBatch batch;
    decoder.decode(chunk.value().text, chunk.value().first_line, batch);
    out.events += batch.records.size();
  }
  out.wall_s = wall_seconds() - wall;
  out.user_s = user_seconds() - user;
  return out;
}

}  // namespace reflex::bench
