// A small world of faults and signals with known strengths, and labelled incidents drawn from it as
// dossiers. For the tests of learning; nothing here knows how learning works.
#pragma once

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/attribution/attribution.h"
#include "runtime/learn/training_set.h"

namespace reflex::learn {

struct LearnWorld {
  std::shared_ptr<abi::CompiledPack> pack = std::make_shared<abi::CompiledPack>();
  std::vector<double> true_p;   // [edge]
  std::vector<double> leak;     // [signal]
  std::vector<double> weights;  // [fault] how often it is the cause; the rest: none
  int nodes = 6;

  LearnWorld() {
    pack->symbols = std::make_shared<SymbolTable>();
    pack->set_sha256 = std::string(64, 'a');
    pack->packs.push_back({"t.world", "1.0.0", std::string(64, 'b')});
    pack->entity_kinds.push_back({{"node"}});
    for (const char* name : {"hw.a", "hw.b"}) {
      abi::ClassPlan c;
      c.name = name;
      pack->classes.push_back(c);
    }
  }

  abi::SignalId signal(const std::string& name, double leak_chance) {
    abi::SignalPlan s;
    s.name = name;
    s.leak_probability = leak_chance;
    pack->signals.push_back(s);
    leak.push_back(leak_chance);
    return static_cast<abi::SignalId>(pack->signals.size() - 1);
  }

  abi::CauseId fault(const std::string& name, double prior, double weight) {
    abi::CausePlan c;
    c.name = name;
    c.prior = prior;
    pack->causes.push_back(c);
    weights.push_back(weight);
    return static_cast<abi::CauseId>(pack->causes.size() - 1);
  }

  void edge(abi::CauseId cause, abi::SignalId to, double author, double truth) {
    abi::EdgePlan e;
    e.cause = cause;
    e.to = to;
    e.p = author;
    e.lag_lo_ns = -kNsPerHour;
    pack->edges.push_back(e);
    true_p.push_back(truth);
  }

  /// Two faults that share a signal, each with two of its own.
  static LearnWorld two_faults() {
    LearnWorld w;
    const auto shared = w.signal("shared", 0.05);
    const auto gpu = w.fault("gpu_lost", 0.02, 0.45);
    const auto nic = w.fault("nic_down", 0.02, 0.25);
    w.edge(gpu, w.signal("xid", 0.002), 0.5, 0.92);
    w.edge(gpu, w.signal("warm", 0.10), 0.5, 0.30);
    w.edge(gpu, shared, 0.5, 0.70);
    w.edge(nic, w.signal("link", 0.002), 0.5, 0.85);
    w.edge(nic, w.signal("flap", 0.08), 0.5, 0.60);
    w.edge(nic, shared, 0.5, 0.15);
    return w;
  }

  static double uniform(std::mt19937_64& random) {
    return static_cast<double>(random() >> 11) * 0x1p-53;
  }

  attribution::DossierTerm term(uint32_t edge_at, bool fired) const {
    const double p = pack->edges[edge_at].p;
    const double l = leak[pack->edges[edge_at].to];
    attribution::DossierTerm t;
    t.edge = edge_at;
    t.members = 1;
    t.fired = fired ? 1 : 0;
    t.leak = l;
    t.p = p;
    t.log_ratio = std::log(1 / l);
    t.nats = fired ? std::log(1 - p + p / l) : std::log(1 - p);
    return t;
  }

  /// Draws incident `i` and adds it, with its label, to the set.
  void draw(int i, std::mt19937_64& random, TrainingSet& set) const {
    double u = uniform(random);
    int cause = -1;
    for (size_t c = 0; c < weights.size() && cause < 0; ++c) {
      if (u < weights[c]) cause = static_cast<int>(c);
      u -= weights[c];
    }
    Label label;
    label.incident = "inc-" + std::to_string(10000 + i);
    label.ts_ns = i * kNsPerHour;
    const int culprit = static_cast<int>(random() % static_cast<uint64_t>(nodes));
    if (cause >= 0) label.culprits = {"n" + std::to_string(culprit)};
    attribution::Dossier dossier;
    for (int n = 0; n < nodes; ++n) {
      std::vector<bool> fired;
      for (size_t s = 0; s < leak.size(); ++s) fired.push_back(uniform(random) < leak[s]);
      for (uint32_t e = 0; e < pack->edges.size() && n == culprit; ++e) {
        if (static_cast<int>(pack->edges[e].cause) != cause) continue;
        if (uniform(random) < true_p[e]) fired[pack->edges[e].to] = true;
      }
      add_hypotheses(n, fired, dossier);
    }
    set.add(dossier, label, label.ts_ns);
  }

  void add_hypotheses(int n, const std::vector<bool>& fired, attribution::Dossier& dossier) const {
    for (abi::CauseId c = 0; c < pack->causes.size(); ++c) {
      attribution::DossierHypothesis h;
      h.cause = c;
      h.node = pack->symbols->intern("n" + std::to_string(n));
      h.hw_class = static_cast<abi::ClassId>(n % 2);
      h.prior_nats = std::log(pack->causes[c].prior);
      for (uint32_t e = 0; e < pack->edges.size(); ++e) {
        if (pack->edges[e].cause == c) h.terms.push_back(term(e, fired[pack->edges[e].to]));
      }
      dossier.hypotheses.push_back(std::move(h));
    }
  }

  [[nodiscard]] TrainingSet incidents(int count, uint64_t seed) const {
    std::mt19937_64 random(seed);
    TrainingSet set(pack);
    for (int i = 0; i < count; ++i) draw(i, random, set);
    set.sort_by_time();
    return set;
  }
};

}  // namespace reflex::learn
