// Collects signals, edges and expectations from syntax trees and renders them (signal_page.h).
#include "tests/tools/signal_page.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

namespace reflex::tools {
namespace {

std::string folder_of(std::string_view path) {
  const size_t end = path.rfind('/');
  if (end == std::string_view::npos) return "";
  const size_t begin = path.rfind('/', end - 1);
  return std::string(path.substr(begin == std::string_view::npos ? 0 : begin + 1,
                                 end - (begin == std::string_view::npos ? 0 : begin + 1)));
}

std::string last_part(const std::string& dotted) { return dotted.substr(dotted.rfind('.') + 1); }

std::string joined(const std::vector<ast::Name>& names) {
  std::string out;
  for (const ast::Name& name : names) out += (out.empty() ? "" : ", ") + name.text;
  return out;
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \n\t";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(kBlank) - begin + 1));
}

/// A comment's parts: what it says, and behind "Source:" where that comes from. Reasons for numbers
/// ("Why ..", "Leak: ..") stay in the pack.
std::pair<std::string, std::string> split_comment(const std::string& doc) {
  std::string text;
  for (const char c : doc) text += c == '\n' ? ' ' : c;
  constexpr std::array<std::string_view, 5> kMarks{"Source:", "Source of", "Why ", "Why:", "Leak:"};
  std::string meaning;
  std::string source;
  size_t at = 0;
  int part = -1;
  while (at <= text.size()) {
    size_t next = std::string::npos;
    int which = -1;
    for (size_t m = 0; m < kMarks.size(); ++m) {
      const size_t found = text.find(kMarks[m], part < 0 ? at : at + 1);
      if (found < next) next = found, which = static_cast<int>(m);
    }
    const std::string piece =
        trimmed(std::string_view(text).substr(at, next == std::string::npos ? next : next - at));
    if (part < 0) meaning = piece;
    if (part == 0) source = trimmed(std::string_view(piece).substr(kMarks[0].size()));
    if (part == 1) source = piece;
    if (next == std::string::npos) break;
    at = next;
    part = which;
  }
  while (meaning.starts_with("-")) meaning.erase(0, 1);
  return {trimmed(meaning), source};
}

class Collector {
 public:
  Collector(const source::SourceMap& map, Catalogue& out) : map_(map), out_(out) {}

  /// What the head of a pack says its facts are from: for signals that name no place of their own.
  void read_head(const ast::Module& module) {
    constexpr std::string_view kMark = "Facts:";
    const std::string_view text = map_.text(module.file);
    const size_t at = text.find(kMark);
    if (!module.head || at == std::string_view::npos) return;
    const std::string_view rest = text.substr(at + kMark.size());
    std::string facts = trimmed(rest.substr(0, rest.find('\n')));
    if (facts.starts_with("shared/domain/")) facts.erase(0, 14);
    facts_[folder_of(map_.path(module.file))] = std::move(facts);
  }

  void declare(const ast::Module& module) {
    const std::string folder = folder_of(map_.path(module.file));
    for (const ast::Decl& decl : module.decls) {
      if (const auto* signal = std::get_if<ast::SignalDecl>(&decl.node)) {
        add_signal(*signal, folder);
      } else if (const auto* fault = std::get_if<ast::FaultDecl>(&decl.node)) {
        out_.causes[fault->name.text] = {
            joined(fault->on), fault->severity.text, fault->remedy.text, fault->external, 0, 0};
      }
    }
  }

  void use(const ast::Module& module) {
    for (const ast::Decl& decl : module.decls) {
      if (const auto* edge = std::get_if<ast::CausesDecl>(&decl.node)) add_edge(*edge);
      if (const auto* test = std::get_if<ast::TestDecl>(&decl.node)) add_test(*test);
      if (const auto* incident = std::get_if<ast::IncidentDecl>(&decl.node)) {
        for (const auto& opener : incident->opens_on) {
          if (SignalEntry* entry = find(opener.kind.text)) entry->opens_incident = true;
        }
      }
    }
  }

 private:
  SignalEntry* find(const std::string& name) {
    const auto found = out_.signals.find(last_part(name));
    return found == out_.signals.end() ? nullptr : &found->second;
  }

  void add_signal(const ast::SignalDecl& signal, const std::string& folder) {
    if (signal.name.text.starts_with("probe_")) return;
    auto [meaning, source] = split_comment(signal.doc);
    SignalEntry& entry = out_.signals[signal.name.text];
    entry.folder = folder;
    entry.keys = joined(signal.on);
    entry.meaning = std::move(meaning);
    entry.source = source.empty() ? facts_[folder] : std::move(source);
  }

  void add_edge(const ast::CausesDecl& edge) {
    using Verb = ast::CausesDecl::Verb;
    if (edge.verb == Verb::kExplainedBy) return;
    for (const ast::Name& effect : edge.effects) {
      SignalEntry* entry = find(effect.text);
      if (entry == nullptr) continue;
      const double p = edge.p && edge.p->kind == ast::ExprKind::kReal ? edge.p->real_value : 0;
      const bool own = edge.scope.empty() || edge.scope.text == "self";
      const bool on_others = edge.scope.text == "peers" || edge.scope.text == "job";
      entry->reasons.push_back(
          {last_part(edge.cause.text), p, own, edge.verb == Verb::kMasks, on_others});
    }
  }

  void add_test(const ast::TestDecl& test) {
    ++out_.tests;
    out_.titles.insert(test.title);
    for (const auto& expect : test.expects) {
      if (expect.allow) continue;
      if (!expect.verdict) {
        if (SignalEntry* entry = find(expect.signal.text)) {
          ++(expect.negated ? entry->silent : entry->fires);
        }
        continue;
      }
      for (const auto& clause : expect.clauses) {
        if (clause.what != "top" && clause.what != "external") continue;
        for (const ast::Name& name : clause.names) count_cause(name.text, test);
      }
    }
  }

  void count_cause(const std::string& name, const ast::TestDecl& test) {
    const auto found = out_.causes.find(last_part(name));
    if (found == out_.causes.end()) return;
    ++found->second.tests;
    if (test.shuffle) ++found->second.shuffled;
  }

  const source::SourceMap& map_;
  Catalogue& out_;
  std::map<std::string, std::string> facts_;  // by folder
};

/// The likeliest cause that shows here (own) or elsewhere; null: none.
const Reason* likeliest(const SignalEntry& entry, const Catalogue& catalogue, bool own) {
  const Reason* best = nullptr;
  for (const Reason& reason : entry.reasons) {
    if (reason.masks || reason.own != own || !catalogue.causes.contains(reason.cause)) continue;
    if (best == nullptr || reason.p > best->p) best = &reason;
  }
  return best;
}

/// What an operator does when this signal decides: the remedy of its likeliest own cause. What
/// shows more often on others than on the culprit is a victim's word.
std::string action_of(const SignalEntry& entry, const Catalogue& catalogue) {
  const Reason* own = likeliest(entry, catalogue, true);
  const Reason* elsewhere = likeliest(entry, catalogue, false);
  if (elsewhere != nullptr && (own == nullptr || elsewhere->p > own->p)) {
    return "none: caused elsewhere";
  }
  if (own == nullptr) return entry.opens_incident ? "opens an incident" : "none";
  const CauseEntry& cause = catalogue.causes.at(own->cause);
  return (cause.remedy.empty() ? "no node" : cause.remedy) + " (" + own->cause + ")";
}

std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string causes_of(const SignalEntry& entry) {
  std::vector<std::string> names;
  for (const Reason& reason : entry.reasons) {
    if (!reason.masks) names.push_back(reason.cause);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  // Why 4: whoever is a victim of everything lists every cause; the pack has them.
  constexpr size_t kShown = 4;
  std::string out;
  for (size_t i = 0; i < names.size() && i < kShown; ++i) out += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kShown) out += ", and " + std::to_string(names.size() - kShown) + " more";
  return out;
}

/// The tests that a signal must have which the victims of a node's fault show: alone on one, two
/// and all nodes of a job, nobody is named.
void add_victim_gaps(const Catalogue& catalogue, const std::string& name, const SignalEntry& entry,
                     std::vector<std::string>& out) {
  const bool of_victims =
      std::any_of(entry.reasons.begin(), entry.reasons.end(), [&](const Reason& reason) {
        const auto cause = catalogue.causes.find(reason.cause);
        return reason.on_others && cause != catalogue.causes.end() && !cause->second.external;
      });
  if (!of_victims) return;
  for (const char* where : {"one node", "two nodes", "all nodes"}) {
    const std::string title = "victims alone: " + name + ", " + where;
    if (!catalogue.titles.contains(title)) out.push_back(name + ": no test \"" + title + "\"");
  }
}

}  // namespace

Catalogue collect(const std::vector<ast::Module>& modules, const source::SourceMap& map) {
  Catalogue out;
  Collector collector(map, out);
  for (const ast::Module& module : modules) collector.read_head(module);
  for (const ast::Module& module : modules) collector.declare(module);
  for (const ast::Module& module : modules) collector.use(module);
  return out;
}

std::string to_markdown(const Catalogue& catalogue) {
  std::string out =
      "# Every signal of the standard packs\n\n"
      "Made by `build/release/list_signals write` from the packs (tests/tools); a test fails when "
      "it "
      "is not up to date. " +
      std::to_string(catalogue.signals.size()) + " signals, " +
      std::to_string(catalogue.causes.size()) + " causes, " + std::to_string(catalogue.tests) +
      " tests.\n\n"
      "*Action* is the remedy of the likeliest cause that shows on this entity; `none: caused "
      "elsewhere`: it shows more often on others than on a culprit (a victim's word, a mark). "
      "*Tests*: "
      "expectations in which it fires / stays silent.\n\n"
      "## Causes\n\n"
      "| cause | on | kind | severity | remedy | verdicts in tests | of these shuffled |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const auto& [name, cause] : catalogue.causes) {
    out += "| `" + name + "` | " + cause.keys + " | " + (cause.external ? "external" : "fault") +
           " | " + cause.severity + " | " + cause.remedy + " | " + std::to_string(cause.tests) +
           " | " + std::to_string(cause.shuffled) + " |\n";
  }
  std::map<std::string, std::vector<const std::pair<const std::string, SignalEntry>*>> folders;
  for (const auto& item : catalogue.signals) folders[item.second.folder].push_back(&item);
  for (const auto& [folder, items] : folders) {
    out += "\n## " + folder +
           "\n\n| signal | on | meaning | source | causes | action | tests |\n"
           "|---|---|---|---|---|---|---|\n";
    for (const auto* item : items) {
      const SignalEntry& entry = item->second;
      out += "| `" + item->first + "` | " + entry.keys + " | " + cell(entry.meaning) + " | " +
             cell(entry.source) + " | " + causes_of(entry) + " | " + action_of(entry, catalogue) +
             " | " + std::to_string(entry.fires) + " / " + std::to_string(entry.silent) + " |\n";
    }
  }
  return out;
}

std::vector<std::string> gaps(const Catalogue& catalogue) {
  std::vector<std::string> out;
  for (const auto& [name, entry] : catalogue.signals) {
    if (entry.meaning.empty()) out.push_back(name + ": no comment says what it means");
    if (entry.fires == 0) out.push_back(name + ": no test in which it fires");
    if (entry.silent == 0) out.push_back(name + ": no test in which it stays silent");
    if (entry.reasons.empty() && !entry.opens_incident) {
      out.push_back(name + ": no cause and no incident reads it");
    }
    add_victim_gaps(catalogue, name, entry, out);
  }
  for (const auto& [name, cause] : catalogue.causes) {
    if (cause.shuffled == 0) out.push_back(name + ": no shuffled test whose verdict names it");
  }
  return out;
}

}  // namespace reflex::tools
