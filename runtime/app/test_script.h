// TestScript: a `test` block of the language (A12) as timed input for a real engine.
//
// Structured events become NDJSON and raw text stays text, so that a test takes the same path as
// production: decoders, order, signals, attribution. Times are relative to kTestEpochNs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ast/ast.h"
#include "runtime/abi/compiled_pack.h"
#include "runtime/base/result.h"

namespace reflex::app {

/// 2026-01-01T00:00:00Z
inline constexpr int64_t kTestEpochNs = 1'767'225'600'000'000'000;

struct ScriptItem {
  int64_t ts_ns = 0;
  int64_t late_ns = 0;  // delivered so much after its time
  uint64_t seq = 0;     // position in the script: breaks ties of equal times
  bool is_log = false;
  std::string node;  // of a log line
  std::string text;  // one NDJSON line, or raw text
  source::Span span;
};

struct ScriptNode {
  std::string name;
  std::string profile;  // full class name
  std::vector<std::pair<std::string, std::string>> labels;
};

struct ScriptJob {
  std::string name;
  std::vector<std::string> nodes;
  int64_t start_ns = 0;
};

struct ScriptGap {
  std::string node;
  std::string source;  // a kind, "log", or "" for all sources of the node
  int64_t from_ns = 0;
  int64_t to_ns = 0;
};

struct Script {
  std::vector<ScriptNode> nodes;
  std::vector<ScriptJob> jobs;
  std::vector<ScriptGap> gaps;
  std::vector<ScriptItem> items;  // by (ts, seq)
  unsigned shuffles = 0;
};

/// A time of the script ("20h20m", 0) in ns after the epoch of the test.
int64_t script_offset_ns(const ast::Expr* expr);
/// n[1..3] -> n1 n2 n3; n1 -> n1; the part after '/' is left out.
std::vector<std::string> expand_target(const ast::TestTarget& target);

Result<Script> build_script(const ast::TestDecl& test, const abi::CompiledPack& pack);

}  // namespace reflex::app
