// Test blocks -> timed input: see test_script.h.
#include "runtime/app/test_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/driver/compile.h"
#include "runtime/base/time.h"

namespace reflex::app {
namespace {

using Json = nlohmann::ordered_json;

int64_t repeat_count(const ast::Expr* expr) {
  return expr ? std::max<int64_t>(1, expr->int_value) : 1;
}

/// 1.5 GHz -> 1.5e9: JSON carries numbers in the base unit of the field.
double in_base_unit(double value, const std::string& unit_text) {
  return unit_text.empty() ? value : value * compiler::unit_factor(unit_text);
}

/// A literal of the script as the JSON value that a monitoring system would send.
Json json_of(const ast::Expr& expr) {
  switch (expr.kind) {
    case ast::ExprKind::kInt:
      if (expr.unit_text.empty()) return expr.int_value;
      return in_base_unit(static_cast<double>(expr.int_value), expr.unit_text);
    case ast::ExprKind::kReal:
      return in_base_unit(expr.real_value, expr.unit_text);
    case ast::ExprKind::kDuration:
      return static_cast<double>(expr.int_value) / static_cast<double>(kNsPerSecond);
    case ast::ExprKind::kBool:
      return expr.int_value != 0;
    case ast::ExprKind::kNegate: {
      Json inner = json_of(*expr.args.at(0));
      if (inner.is_number_integer()) return -inner.get<int64_t>();
      if (inner.is_number()) return -inner.get<double>();
      return inner;
    }
    case ast::ExprKind::kList: {
      Json list = Json::array();
      for (const auto& item : expr.args) list.push_back(json_of(*item));
      return list;
    }
    default:
      return expr.text;
  }
}

// Why: a test is a story, not a load test; a mistyped repeat must not take the machine's memory.
constexpr size_t kItemsMax = 200'000;

class Builder {
 public:
  Builder(const ast::TestDecl& test, const abi::CompiledPack& pack) : test_(test), pack_(pack) {}

  Result<Script> build() {
    for (const auto& nodes : test_.nodes) add_nodes(nodes);
    for (const auto& job : test_.jobs) add_job(job);
    for (const auto& gap : test_.gaps) {
      for (const auto& node : expand_target(gap.target)) {
        script_.gaps.push_back(
            {node, gap.source.text, at(gap.from.get()), at(gap.to.get())});
      }
    }
    for (const auto& event : test_.events) {
      if (auto status = add_event(event); !status.ok()) return status.error();
    }
    std::stable_sort(script_.items.begin(), script_.items.end(),
                     [](const ScriptItem& a, const ScriptItem& b) { return a.ts_ns < b.ts_ns; });
    // Why: ties keep the order of the script, as lines of one source do.
    for (size_t i = 0; i < script_.items.size(); ++i) script_.items[i].seq = i + 1;
    script_.shuffles = test_.shuffle ? static_cast<unsigned>(test_.shuffle->int_value) : 0;
    return std::move(script_);
  }

 private:
  static int64_t at(const ast::Expr* expr) { return kTestEpochNs + script_offset_ns(expr); }

  void add_nodes(const ast::TestDecl::Nodes& nodes) {
    for (const auto& name : expand_target(nodes.target)) {
      ScriptNode node{name, nodes.profile.text, {}};
      for (const auto& [key, value] : nodes.labels) {
        const Json json = json_of(*value);
        node.labels.emplace_back(key.text,
                                 json.is_string() ? json.get<std::string>() : json.dump());
      }
      script_.nodes.push_back(std::move(node));
    }
  }

  void add_job(const ast::TestDecl::Job& job) {
    ScriptJob entry{job.name.text, {}, job.at ? at(job.at.get()) : kNoTimeNs + 1};
    for (const auto& target : job.nodes) {
      for (auto& node : expand_target(target)) entry.nodes.push_back(std::move(node));
    }
    // A job that starts within the script says so, as a scheduler would; one without a time was
    // there all along.
    if (job.at) add_job_event("job.start", job, entry, at(job.at.get()));
    if (job.to) add_job_event("job.end", job, entry, at(job.to.get()));
    if (!job.at) script_.jobs.push_back(std::move(entry));
  }

  void add_job_event(const char* kind, const ast::TestDecl::Job& job, const ScriptJob& entry,
                     int64_t ts_ns) {
    Json line;
    line["ts"] = to_rfc3339(EventTime{ts_ns});
    line["kind"] = kind;
    line["job"] = entry.name;
    if (kind == std::string_view("job.start")) line["nodes"] = entry.nodes;
    ScriptItem item;
    item.ts_ns = ts_ns;
    item.span = job.span;
    item.text = line.dump() + "\n";
    script_.items.push_back(std::move(item));
  }

  Status add_event(const ast::TestDecl::Event& event) {
    const int64_t first = at(event.at.get());
    const int64_t last = event.until ? at(event.until.get()) : first;
    const int64_t every = event.every ? event.every->int_value : 0;
    if (last > first && every <= 0) {
      return Error{"a range of times needs `every D`: `at 0h..20h every 5h: ...`", 2};
    }
    const int64_t repeat_every = event.repeat_every ? event.repeat_every->int_value : 0;
    for (int64_t t = first; t <= last; t += std::max<int64_t>(every, 1)) {
      for (int64_t r = 0; r < repeat_count(event.repeat.get()); ++r) {
        if (auto status = add_occurrence(event, t + r * repeat_every); !status.ok()) return status;
      }
      if (every <= 0) break;
    }
    return ok_status();
  }

  Status add_occurrence(const ast::TestDecl::Event& event, int64_t ts_ns) {
    if (script_.items.size() >= kItemsMax) {
      return Error{
          fmt::format("the script makes more than {} events; use fewer repeats", kItemsMax), 2};
    }
    return event.kind.text == "log" ? add_log(event, ts_ns) : add_structured(event, ts_ns);
  }

  Status add_log(const ast::TestDecl::Event& event, int64_t ts_ns) {
    for (const auto& target : event.targets) {
      for (const auto& node : expand_target(target)) {
        ScriptItem item = item_at(event, ts_ns);
        item.is_log = true;
        item.node = node;
        item.text = event.log_text;
        for (size_t p; (p = item.text.find("$node")) != std::string::npos;) {
          item.text.replace(p, 5, node);
        }
        if (item.text.empty() || item.text.back() != '\n') item.text += '\n';
        script_.items.push_back(std::move(item));
      }
    }
    return ok_status();
  }

  static ScriptItem item_at(const ast::TestDecl::Event& event, int64_t ts_ns) {
    ScriptItem item;
    item.ts_ns = ts_ns;
    item.late_ns = event.late ? event.late->int_value : 0;
    item.span = event.span;
    return item;
  }

  /// A kind by its own name or by an alias, which has members of its own.
  struct Named {
    const abi::KindSchema* kind = nullptr;
    const abi::KindAlias* alias = nullptr;

    /// What the member is called that a field is read from.
    [[nodiscard]] std::string member(const std::string& field) const {
      for (const auto& rename : alias != nullptr ? alias->renames : std::vector<Rename>()) {
        if (rename.slot < kind->fields.size() && kind->fields[rename.slot].name == field) {
          return rename.member;
        }
      }
      // Fields that are called like the envelope are spelled with `_` in JSON.
      return field == "kind" || field == "ts" ? field + "_" : field;
    }
    [[nodiscard]] std::string envelope(uint16_t slot, const char* name) const {
      for (const auto& rename : alias != nullptr ? alias->renames : std::vector<Rename>()) {
        if (rename.slot == slot) return rename.member;
      }
      return name;
    }
    /// A written field: of an alias it is a member, by whichever name.
    [[nodiscard]] std::string written(const std::string& name) const {
      for (const auto& rename : alias != nullptr ? alias->renames : std::vector<Rename>()) {
        if (rename.member == name) return name;
      }
      return member(name);
    }
    using Rename = abi::KindAlias::Rename;
  };

  [[nodiscard]] Named kind_named(const std::string& name) const {
    for (const auto& kind : pack_.kinds) {
      if (kind.name == name) return {&kind, nullptr};
      for (const auto& alias : kind.aliases) {
        if (alias.name == name) return {&kind, &alias};
      }
    }
    return {};
  }

  [[nodiscard]] bool is_job(const std::string& name) const {
    return std::any_of(test_.jobs.begin(), test_.jobs.end(),
                       [&](const auto& job) { return job.name.text == name; });
  }

  static bool has_field(const abi::KindSchema& kind, std::string_view name) {
    return std::any_of(kind.fields.begin(), kind.fields.end(),
                       [&](const abi::FieldSchema& f) { return f.name == name; });
  }

  /// The field that the part after '/' names: the first key besides node and job.
  static std::string sub_field(const abi::KindSchema& kind) {
    for (const auto& field : kind.fields) {
      if (field.is_key && field.name != "node" && field.name != "job") return field.name;
    }
    for (const auto& field : kind.fields) {
      if (field.name == "gpu" || field.name == "nic") return field.name;
    }
    return "";
  }

  Status add_structured(const ast::TestDecl::Event& event, int64_t ts_ns) {
    const Named named = kind_named(event.kind.text);
    const abi::KindSchema* kind = named.kind;
    if (!kind) return Error{fmt::format("no event kind '{}'", event.kind.text), 2};
    Json base;
    base[named.envelope(abi::KindAlias::kTs, "ts")] = to_rfc3339(EventTime{ts_ns});
    base["kind"] = event.kind.text;
    for (const auto& [name, value] : event.fields) {
      base[named.written(name.text)] = json_of(*value);
    }
    const std::string node_member = named.member("node");
    const std::string job_member = named.member("job");
    std::vector<Json> lines;
    for (const auto& target : event.targets) {
      const bool only_jobs = !has_field(*kind, "node") && has_field(*kind, "job");
      if ((is_job(target.base) || only_jobs) && !target.ranged && target.sub.empty()) {
        base[job_member] = target.base;
        for (auto& line : lines) line[job_member] = target.base;
        continue;
      }
      for (const auto& node : expand_target(target)) {
        Json line = base;
        line[node_member] = node;
        if (!target.sub.empty()) {
          const std::string field = sub_field(*kind);
          if (field.empty()) {
            return Error{
                fmt::format("'{}': kind {} has no key besides its node", target.text, kind->name),
                2};
          }
          line[named.member(field)] = json_of(*target.sub.front());
        }
        lines.push_back(std::move(line));
      }
    }
    if (lines.empty()) lines.push_back(base);
    for (auto& line : lines) {
      ScriptItem item = item_at(event, ts_ns);
      item.text = line.dump() + "\n";
      script_.items.push_back(std::move(item));
    }
    return ok_status();
  }

  const ast::TestDecl& test_;
  const abi::CompiledPack& pack_;
  Script script_;
};

}  // namespace

int64_t script_offset_ns(const ast::Expr* expr) {
  if (!expr) return 0;
  if (expr->kind == ast::ExprKind::kNegate) return -script_offset_ns(expr->args.at(0).get());
  return expr->int_value;  // kDuration in ns; a bare 0 is 0
}

std::vector<std::string> expand_target(const ast::TestTarget& target) {
  if (!target.ranged) return {target.base};
  std::vector<std::string> names;
  for (int64_t i = target.lo; i <= target.hi; ++i)
    names.push_back(fmt::format("{}{}", target.base, i));
  return names;
}

Result<Script> build_script(const ast::TestDecl& test, const abi::CompiledPack& pack) {
  return Builder(test, pack).build();
}

}  // namespace reflex::app
