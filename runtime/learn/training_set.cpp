// Dossiers -> compact training rows; see training_set.h.
#include "runtime/learn/training_set.h"

#include <algorithm>
#include <cmath>

namespace reflex::learn {
namespace {

// Why: a strength of exactly 0 or 1 has no finite weight; authors' numbers lie inside.
constexpr double kProbabilityMin = 1e-4;

double clamp_p(double p) { return std::clamp(p, kProbabilityMin, 1 - kProbabilityMin); }

constexpr float kNever = -80;  // exp(-80) is no ratio that changes a sum

float ratio_log(double log_ratio) {
  return static_cast<float>(std::clamp(log_ratio, static_cast<double>(kNever), 80.0));
}

}  // namespace

TrainingSet::TrainingSet(std::shared_ptr<const abi::CompiledPack> pack, const abi::Model* model)
    : pack_(std::move(pack)), model_(model) {
  for (const auto& edge : pack_->edges) {
    author_p_.push_back(clamp_p(edge.p));
    // A weight in nats, or a strength that profiles set, is the author's word.
    learnable_.push_back(!edge.has_weight && edge.class_p.empty());
  }
}

uint32_t TrainingSet::intern(SilentPattern pattern) {
  std::sort(pattern.edges.begin(), pattern.edges.end());
  const auto [it, fresh] =
      pattern_of_.emplace(pattern.edges, static_cast<uint32_t>(patterns_.size()));
  if (fresh) patterns_.push_back(std::move(pattern));
  return it->second;
}

void TrainingSet::add_terms(const attribution::DossierHypothesis& from, TrainingHypothesis& to,
                            GroupIds& known) {
  SilentPattern silent;
  to.term = static_cast<uint32_t>(terms_.size());
  for (const auto& t : from.terms) {
    if (t.agreement) {
      to.agreement_nats += static_cast<float>(t.nats);
      continue;
    }
    if (t.ailing) {
      to.ailing_nats += static_cast<float>(t.nats);
      continue;
    }
    if (t.edge != abi::kNone32 && t.members == 0) continue;  // nothing observed
    Term term;
    term.edge = t.edge;
    term.leak = static_cast<float>(t.leak);
    term.value = static_cast<float>(t.nats);
    if (t.edge == abi::kNone32) {
      term.what = Term::What::kSynergy;
      term.index = t.synergy & 0xffffffu;
    } else if (!learnable_[t.edge]) {
      term.what = Term::What::kFixed;
    } else if (t.group) {
      term.what = Term::What::kGroup;
      const auto [it, fresh] =
          known.emplace(std::pair(t.edge, t.nats), static_cast<uint32_t>(groups_.size()));
      if (fresh) {
        groups_.push_back(t);
        shapes_.push_back(attribution::group_shape(t, level_weights_));
      }
      term.index = it->second & 0xffffffu;
    } else if (t.fired > 0) {
      term.what = Term::What::kFired;
      term.value = ratio_log(t.log_ratio);
    } else if (t.silent_ratio <= 0) {
      silent.edges.push_back(t.edge);
      continue;
    } else {
      term.what = Term::What::kSilent;
      term.value = ratio_log(std::log(t.silent_ratio));
    }
    terms_.push_back(term);
  }
  to.terms = static_cast<uint32_t>(terms_.size()) - to.term;
  to.pattern = intern(std::move(silent));
}

void TrainingSet::add_counts(const attribution::Input& input, TrainingIncident& incident) const {
  for (uint32_t n = 0; n < incident.nodes.size(); ++n) {
    if (!incident.nodes[n].culprit) continue;
    const SymbolId node = pack_->symbols->find(incident.nodes[n].name);
    for (const auto& evidence : input.evidence) {
      const auto& plan = pack_->signals[evidence.signal];
      const auto& keys = pack_->entity_kinds[evidence.entity.kind].keys;
      if (!plan.count.graded.on || keys.empty() || keys[0] != "node" ||
          evidence.entity.values[0] != node || evidence.episodes.empty()) {
        continue;
      }
      CulpritCounts counts{n, evidence.signal, evidence.episodes.back().lead_counts, 0};
      if (input.tables) {
        counts.benign_per_hour =
            input.tables->benign(evidence.signal, incident.nodes[n].hw_class, node)
                .firings_per_hour;
      }
      incident.counts.push_back(counts);
    }
  }
}

void TrainingSet::mark_truth(TrainingIncident& incident) const {
  const auto& culprits = incident.label.culprits;
  incident.truth_is_node = !culprits.empty();
  std::vector<double> alike(pack_->causes.size(), 0);  // nodes that stand together, by cause
  for (const auto& h : incident.hypotheses) {
    if (h.is_node && h.alike_log > 0) alike[h.cause] += std::exp(h.alike_log);
  }
  const bool hidden = !incident.unseen_culprits.empty();
  for (auto& h : incident.hypotheses) {
    if (!incident.truth_is_node) {
      h.truth = h.is_node ? 0.0f : 1.0f;
    } else if (h.is_node) {
      if (h.node != abi::kNone32 && incident.nodes[h.node].culprit) {
        // The culprit stands for others that look the same: only its own share is true.
        h.truth = static_cast<float>(std::exp(-h.alike_log));
      } else if (hidden && h.alike_log > 0) {
        h.truth = static_cast<float>(1 / alike[h.cause]);
      }
    }
  }
  // A known fault narrows the truth, when it is a cause of this pack.
  const std::string& fault = incident.label.fault;
  const auto is_named = [&](const TrainingHypothesis& h) {
    const std::string& name = pack_->causes[h.cause].name;
    return name == fault || (name.size() > fault.size() && name.ends_with("." + fault));
  };
  if (fault.empty() || std::none_of(incident.hypotheses.begin(), incident.hypotheses.end(),
                                    [&](const auto& h) { return h.truth > 0 && is_named(h); })) {
    return;
  }
  for (auto& h : incident.hypotheses) {
    if (!is_named(h)) h.truth = 0;
  }
}

void TrainingSet::add(const attribution::Dossier& dossier, const Label& label, int64_t opened_ns,
                      const attribution::Input* input) {
  if (!label.truth_known) return;
  TrainingIncident incident;
  incident.label = label;
  incident.opened_ns = opened_ns;
  std::map<SymbolId, uint32_t> node_at;
  GroupIds known;
  for (const auto& from : dossier.hypotheses) {
    TrainingHypothesis h;
    h.cause = from.cause;
    h.hw_class = from.hw_class;
    h.is_node = pack_->causes[from.cause].kind == abi::CauseKind::kFault;
    h.prior_nats = static_cast<float>(from.prior_nats);
    h.hazard_log = static_cast<float>(std::log(std::max(from.hazard, 1e-6)));
    h.alike_log = static_cast<float>(std::log1p(from.alike));
    h.node = abi::kNone32;
    if (from.node != kNoSymbol) {
      const auto [it, fresh] =
          node_at.emplace(from.node, static_cast<uint32_t>(incident.nodes.size()));
      if (fresh) {
        TrainingNode node;
        node.name = std::string(pack_->symbols->name(from.node));
        node.hw_class = from.hw_class;
        node.culprit = std::binary_search(label.culprits.begin(), label.culprits.end(), node.name);
        incident.nodes.push_back(std::move(node));
      }
      h.node = it->second;
    }
    add_terms(from, h, known);
    incident.hypotheses.push_back(h);
  }
  for (const auto& culprit : label.culprits) {
    const bool seen = std::any_of(incident.nodes.begin(), incident.nodes.end(),
                                  [&](const auto& n) { return n.name == culprit; });
    if (!seen) incident.unseen_culprits.push_back(culprit);
  }
  mark_truth(incident);
  if (input) add_counts(*input, incident);
  incidents_.push_back(std::move(incident));
}

void TrainingSet::sort_by_time() {
  std::sort(incidents_.begin(), incidents_.end(), [](const auto& a, const auto& b) {
    return a.opened_ns != b.opened_ns ? a.opened_ns < b.opened_ns
                                      : a.label.incident < b.label.incident;
  });
}

}  // namespace reflex::learn
