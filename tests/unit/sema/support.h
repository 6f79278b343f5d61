// Compiling pack text in tests: what was reported, and the plans by name.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "compiler/driver/compile.h"

namespace reflex::test {

inline std::unique_ptr<compiler::Compilation> compile_files(
    const std::vector<compiler::InMemoryFile>& files, bool tests = true) {
  compiler::Options options;
  options.backend = compiler::Backend::kInterp;
  options.include_tests = tests;
  auto result = compiler::compile_text(files, options);
  if (!result) {
    ADD_FAILURE() << result.error().message;
    return std::make_unique<compiler::Compilation>();
  }
  return std::move(result).value();
}

/// Event kinds that most tests use; the pack is called "t".
inline constexpr const char* kKinds = R"(
pack t 1.0.0
event gpu.base abstract { key node: node  key gpu: gpu_index? }
event gpu.xid extends gpu.base { code: u16  pid: u32?  reg: array<u32, 5>?  text: string redact }
  dedup (node, gpu, code) for 2s
event gpu.ecc extends gpu.base { kind: enum(corrected, uncorrected)  counter total: u64 }
event gpu.temp extends gpu.base { value: celsius  limit: celsius  power: watt }
event gpu.throttle extends gpu.base { }
event nic.state { key node: node  key nic: nic  up: bool  speed: bit/s? }
event nccl.timeout { key job: job  key node: node?  rank: u32  op: string  waited: duration }
event job.ended { key job: job  reason: word }
event node.heartbeat { key node: node }
event job.step { key node: node  slow: bool }
event fs.lost { key storage: storage }
)";

inline std::unique_ptr<compiler::Compilation> compile_pack(const std::string& text) {
  return compile_files({{"t/pack.rfx", kKinds + text}});
}

inline std::string rendered(const compiler::Compilation& c) {
  return diag::render_text(c.sink.sorted(), c.sources, {});
}

/// "R105 R108": the ids of what was reported, in order of place.
inline std::string ids(const compiler::Compilation& c, bool warnings = false) {
  std::string text;
  for (const auto& d : c.sink.sorted()) {
    if (d.severity != diag::Severity::kError && !warnings) continue;
    text += (text.empty() ? "" : " ") + diag::to_text(d.id);
  }
  return text;
}

/// The one diagnostic with this id; fails the test when there is none.
inline diag::Diagnostic only(const compiler::Compilation& c, const std::string& id) {
  for (const auto& d : c.sink.sorted()) {
    if (diag::to_text(d.id) == id) return d;
  }
  ADD_FAILURE() << "no " << id << " in:\n" << rendered(c);
  return {};
}

/// The source text that a diagnostic underlines.
inline std::string underlined(const compiler::Compilation& c, const diag::Diagnostic& d) {
  return std::string(c.sources.text(d.span.file).substr(d.span.begin, d.span.end - d.span.begin));
}

inline const abi::SignalPlan& signal(const abi::CompiledPack& pack, const std::string& name) {
  for (const auto& s : pack.signals) {
    if (s.name == name) return s;
  }
  ADD_FAILURE() << "no signal " << name;
  static const abi::SignalPlan kNone{};
  return kNone;
}

inline const abi::FeaturePlan& feature(const abi::CompiledPack& pack, const std::string& name) {
  for (const auto& f : pack.features) {
    if (f.name == name) return f;
  }
  ADD_FAILURE() << "no feature " << name;
  static const abi::FeaturePlan kNone{};
  return kNone;
}

inline std::string ir_text(const compiler::Compilation& c, abi::ExprId expr) {
  if (expr == abi::kNone32) return "";
  return ir::print(c.ir, c.ir.functions[expr]);
}

/// "2:[48..48][63..63]": slot and intervals of the constraints of a leaf.
inline std::string constraints(const abi::LeafPlan& leaf) {
  std::string text;
  for (const auto& c : leaf.constraints) {
    text += (text.empty() ? "" : " ") + std::to_string(c.slot) + ":";
    for (const auto& i : c.intervals) {
      text += "[" + (i.lo == INT64_MIN ? "min" : std::to_string(i.lo)) + ".." +
              (i.hi == INT64_MAX ? "max" : std::to_string(i.hi)) + "]";
    }
  }
  return text;
}

}  // namespace reflex::test
