// The answer, its reasons and the next steps as plain sentences.
#include "runtime/explain/story.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "runtime/base/time.h"
#include "runtime/explain/verdict_words.h"

namespace reflex::explain {
namespace {

using What = abi::Hypothesis::What;

const abi::Contribution* strongest(const abi::Hypothesis& h) {
  const abi::Contribution* best = nullptr;
  for (const auto& c : h.contributions) {
    // What no event stands behind (agreement of signals, synergies) is no first reason.
    if (c.state != abi::SignalState::kFired || c.nats <= 0 || c.events.empty()) continue;
    if (!best || c.nats > best->nats) best = &c;
  }
  return best;
}

const abi::Hypothesis* best_of(const abi::Verdict& v, const std::string& node) {
  for (const auto& h : v.hypotheses) {
    if (h.what == What::kNode && h.node == node) return &h;
  }
  return nullptr;
}

double probability(const abi::Verdict& v, const std::string& node) {
  for (const auto& n : v.nodes) {
    if (n.node == node) return n.p;
  }
  const abi::Hypothesis* h = best_of(v, node);
  return h ? h->p : 0;
}

std::string because(const abi::Hypothesis* h, int64_t opened_ns) {
  const abi::Contribution* c = h ? strongest(*h) : nullptr;
  return c ? ", because " + reason(*c, opened_ns) : "";
}

std::string when(int64_t ts_ns, int64_t opened_ns) {
  if (ts_ns == kNoTimeNs) return "";
  // Why: people think of the distance to the opening; the exact time is in JSON.
  const int64_t d = (ts_ns - opened_ns) / kNsPerMs * kNsPerMs;
  if (d == 0) return ", at the opening";
  return ", " + to_text(Duration{std::abs(d)}) + (d < 0 ? " before" : " after") + " the opening";
}

std::string nodes_sentence(const abi::Verdict& v) {
  const bool sure = v.level == "confirmed";
  if (v.culprits.size() == 1) {
    const std::string& node = v.culprits.front();
    const abi::Hypothesis* h = best_of(v, node);
    return node + (sure ? " is the faulty node (confirmed, " : " is suspected (") +
           percent(probability(v, node)) + ")" + (h ? ": " + title(*h) : "") +
           because(h, v.opened_ns);
  }
  std::string who;
  for (size_t i = 0; i < v.culprits.size(); ++i) {
    if (i > 0) who += i + 1 == v.culprits.size() ? " and " : ", ";
    const abi::Hypothesis* h = best_of(v, v.culprits[i]);
    who += v.culprits[i] + " (" + (h ? short_name(h->cause) + ", " : "") +
           percent(probability(v, v.culprits[i])) + ")";
  }
  return who + (sure ? " are the faulty nodes (confirmed)" : " are suspected");
}

}  // namespace

std::string short_name(const std::string& name) { return name.substr(name.rfind('.') + 1); }

std::string place(const abi::SourceRef& where) {
  return where.file.empty() ? "" : where.file + ":" + std::to_string(where.line);
}

std::string event_text(const abi::EventRefText& e) {
  if (!e.id.empty()) return e.id;
  if (e.seq != 0) return e.source + "#" + std::to_string(e.seq);
  // Without a number of its own the time finds the line; the folder of the file does not help.
  return e.source.substr(e.source.rfind('/') + 1) + "@" + to_rfc3339(EventTime{e.ts_ns});
}

std::string percent(double p) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, p >= 0.9995 || p < 0.0095 ? "%.2f%%" : "%.1f%%", p * 100);
  return buffer;
}

std::string nats_text(double nats) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%+.2f", nats);
  return buffer;
}

const abi::Hypothesis* lead(const abi::Verdict& v) {
  const auto fits = [&](const abi::Hypothesis& h) {
    switch (v.answer) {
      case abi::Answer::kNodes:
        return h.what == What::kNode && !v.culprits.empty() && h.node == v.culprits.front();
      case abi::Answer::kExternal:
        return h.what == What::kExternal;
      case abi::Answer::kNone:
        return h.what == What::kNone;
      case abi::Answer::kUndetermined:
        return true;
    }
    return false;
  };
  const auto it = std::find_if(v.hypotheses.begin(), v.hypotheses.end(), fits);
  return it == v.hypotheses.end() ? nullptr : &*it;
}

std::string reason(const abi::Contribution& c, int64_t opened_ns) {
  if (c.leak_origin == "chance") {  // agreement on one part
    return std::to_string(c.fired_count) + " of " + std::to_string(c.entity_count) +
           " signs on " + c.entity + " name the " + c.signal;
  }
  if (c.signal == "ailing for another reason") {
    return c.entity + " may be ailing without being the cause of this";
  }
  std::string out = short_name(c.signal) + " ";
  switch (c.state) {
    case abi::SignalState::kFired:
      out += c.entity_count > 1 ? "fired on " : c.nats < 0 ? "fired (against it) on " : "fired on ";
      break;
    case abi::SignalState::kSilent:
      out += c.nats <= 0 ? "did not fire on " : "stayed silent on ";
      break;
    case abi::SignalState::kUnobserved:
      out += "could not be seen on ";
      break;
    case abi::SignalState::kSuppressed:
      out += "is suppressed on ";
      break;
  }
  const bool nobody = c.state == abi::SignalState::kSilent && c.entity.starts_with("0 of ");
  out += nobody ? "any of " + c.entity.substr(5) : c.entity;
  out += when(c.onset_ns, opened_ns);
  if (c.firings > 1) out += ", " + std::to_string(c.firings) + " times";
  if (const std::string value = value_text(c); !value.empty()) out += ", value " + value;
  return out;
}

std::string numbers(const abi::Contribution& c) {
  std::string out = "p " + number_text(c.p) + " leak " + number_text(c.leak);
  if (!c.leak_origin.empty()) out += " (" + c.leak_origin + ")";
  if (c.multiplier != 1) out += " x" + number_text(c.multiplier) + " (model)";
  return out;
}

std::string sentence(const abi::Verdict& v) {
  const abi::Hypothesis* h = lead(v);
  switch (v.answer) {
    case abi::Answer::kNodes:
      return nodes_sentence(v) +
             (v.external.empty() ? "" : "; besides, the external cause " + v.external) + ".";
    case abi::Answer::kExternal:
      return "No node is at fault: the external cause " + v.external + " explains it (" +
             percent(h ? h->p : 0) + ")" + because(h, v.opened_ns) + ".";
    case abi::Answer::kNone:
      return "No faulty node: nothing that was seen speaks for one (" + percent(h ? h->p : 0) +
             ").";
    case abi::Answer::kUndetermined:
      break;
  }
  std::string out = "Undetermined: no answer is likely enough";
  if (h) out += "; the best is " + title(*h) + " (" + percent(h->p) + ")";
  return out + ".";
}

std::vector<std::string> next_steps(const abi::Verdict& v) {
  std::vector<std::string> out;
  const bool sure = v.level == "confirmed";
  for (const std::string& node : v.culprits) {
    const abi::Hypothesis* h = best_of(v, node);
    const std::string remedy = h ? h->remedy : "";
    const std::string what = h ? " (" + title(*h) + ")" : "";
    if (remedy.empty()) {
      out.push_back("take " + node + " out of the job and check it" + what +
                    "; its rule names no remedy");
    } else {
      out.push_back((sure ? "" : "check first, then: ") + remedy + " " + node + what);
    }
  }
  if (!v.external.empty()) {
    std::string remedy;
    for (const auto& h : v.hypotheses) {
      if (h.what == What::kExternal && remedy.empty()) remedy = h.remedy;
    }
    out.push_back((remedy.empty() ? "look at " : remedy + ": ") + v.external +
                  (v.culprits.empty() ? "; evict no node for this" : ""));
  }
  if (v.answer == abi::Answer::kNone) {
    out.push_back("evict no node; look at the job itself (code, data, configuration)");
  }
  if (v.answer == abi::Answer::kUndetermined) {
    const abi::Hypothesis* h = lead(v);
    out.push_back(h && h->what == What::kNode ? "watch " + h->node + "; do not act on this alone"
                                              : "act on no node yet");
    if (h && !h->unobserved.empty()) {
      out.push_back("get the missing sources back: " + h->unobserved.front().signal + " on " +
                    h->unobserved.front().entity + " (" + h->unobserved.front().reason + ")");
    }
  }
  return out;
}

std::vector<std::string> changes(const abi::Verdict& v) {
  std::vector<std::string> out;
  for (const auto& c : v.counterfactual) {
    std::string set;
    for (const std::string& w : c.without) set += (set.empty() ? "" : " and ") + w;
    out.push_back("without " + set + ": " + c.answer +
                  (c.exact ? "" : " (a smaller set may do it; not all were tried)"));
  }
  return out;
}

}  // namespace reflex::explain
