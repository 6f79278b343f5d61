// What the engine knows: packs, signals, entities and their state, thresholds in force.
//
// Everything is read on the lane's thread in one look and put into JSON afterwards, so that the
// stream waits for copies only.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/attribution/past.h"
#include "runtime/engine/engine.h"
#include "runtime/serve/http/api.h"
#include "runtime/serve/http/engine_words.h"

namespace reflex::serve {
namespace {

Json place(const abi::SourceRef& where) {
  if (where.file.empty()) return Json();
  return Json{{"file", where.file}, {"line", where.line}};
}

std::string_view shape_word(abi::SignalShape shape) {
  switch (shape) {
    case abi::SignalShape::kSequence:
      return "sequence";
    case abi::SignalShape::kCount:
      return "count";
    case abi::SignalShape::kCondition:
      break;
  }
  return "condition";
}

HttpReply packs(Api& api, const HttpRequest&) {
  Json out;
  auto failed = api.ask([&](engine::Engine&, const abi::CompiledPack& pack) {
    out["set_sha256"] = pack.set_sha256;
    out["packs"] = Json::array();
    for (const auto& p : pack.packs) {
      out["packs"].push_back({{"name", p.name}, {"version", p.version}, {"sha256", p.sha256}});
    }
    out["classes"] = Json::array();
    for (const auto& c : pack.classes) {
      out["classes"].push_back(
          {{"name", c.name}, {"abstract", c.abstract_class}, {"where", place(c.where)}});
    }
    out["overlay_changes"] = Json::array();
    for (const auto& change : pack.overlay_changes) {
      out["overlay_changes"].push_back(
          {{"overlay", change.overlay}, {"change", change.text}, {"inert", change.inert}});
    }
    out["counts"] = {{"kinds", pack.kinds.size()},       {"signals", pack.signals.size()},
                     {"causes", pack.causes.size()},     {"edges", pack.edges.size()},
                     {"features", pack.features.size()}, {"rules", pack.rules.size()}};
    out["backend"] = pack.code == nullptr ? "" : std::string(pack.code->backend());
  });
  return failed ? *failed : reply_json(out);
}

HttpReply signals(Api& api, const HttpRequest&) {
  Json list = Json::array();
  auto failed = api.ask([&](engine::Engine& engine, const abi::CompiledPack& pack) {
    const auto fired = engine.signals().firings_by_signal();
    for (size_t i = 0; i < pack.signals.size(); ++i) {
      const abi::SignalPlan& s = pack.signals[i];
      Json kinds = Json::array();
      for (const abi::KindId kind : s.kinds) kinds.push_back(pack.kinds[kind].name);
      list.push_back({{"name", s.name},
                      {"doc", s.doc.empty() ? Json() : Json(s.doc)},
                      {"entity", pack.entity_kinds[s.entity_kind].keys},
                      {"shape", shape_word(s.shape)},
                      {"kinds", kinds},
                      {"leak_per_hour", s.leak_per_hour > 0 ? Json(s.leak_per_hour) : Json()},
                      {"holds_s", static_cast<double>(s.holds_ns) / 1e9},
                      {"bytes_per_key", s.bytes_per_key},
                      {"disabled_by", s.disabled_by.empty() ? Json() : Json(s.disabled_by)},
                      {"firings", i < fired.size() ? fired[i] : 0},
                      {"where", place(s.where)}});
    }
  });
  return failed ? *failed : reply_json({{"signals", list}});
}

HttpReply entities(Api& api, const HttpRequest& request) {
  uint64_t limit = 100;
  if (!number_param(request, "limit", 1, 10'000, limit)) {
    return bad_param("limit", "a number from 1 to 10000");
  }
  const std::string prefix = request.param("prefix");
  const std::string after = request.param("after");
  Json list = Json::array();
  bool more = false;
  auto failed = api.ask([&](engine::Engine& engine, const abi::CompiledPack& pack) {
    const int64_t now_ns = engine.last_event_ns();
    for (const SymbolId node : engine.topology().nodes()) {  // by name
      const std::string_view name = pack.symbols->name(node);
      if (!name.starts_with(prefix) || (!after.empty() && name <= after)) continue;
      more = list.size() >= limit;
      if (more) break;
      const auto hw_class = engine.topology().hw_class(node, now_ns);
      list.push_back({{"node", name}, {"class", pack.classes[hw_class].name}});
    }
  });
  if (failed) return *failed;
  return reply_json({{"entities", list}, {"more", more}});
}

HttpReply no_entity(const std::string& id) {
  return reply_error(404, fmt::format("nothing is known of '{}'", id),
                     "give a node, or what the first key of a signal names (a job, a switch)");
}

/// What the topology and the node's history say now.
Json node_json(engine::Engine& engine, const abi::CompiledPack& pack, SymbolId node) {
  const int64_t now_ns = engine.last_event_ns();
  const topology::Topology& topology = engine.topology();
  const auto name = [&](SymbolId s) {
    return s == kNoSymbol ? Json() : Json(pack.symbols->name(s));
  };
  Json labels = Json::object();
  for (const char* key : {"rack", "tor", "pod", "zone", "site", "hw"}) {
    const SymbolId value = topology.label(node, pack.symbols->find(key), now_ns);
    if (value != kNoSymbol) labels[key] = name(value);
  }
  const auto hw_class = topology.hw_class(node, now_ns);
  const int64_t repaired_ns = topology.last_repair_ns(node, now_ns);
  // By the default law: a model's may differ, and verdicts hold it to the mean of the job.
  const abi::HistoryLaw law;
  const abi::Past past =
      engine.adaptation().history().past(node, repaired_ns, now_ns).value_or(abi::Past{});
  Json causes = Json::array();
  for (const auto& own : past.causes) {
    causes.push_back(
        {{"fault", pack.causes[own.cause].name}, {"factor", attribution::hazard(past, law, own)}});
  }
  return Json{{"node", name(node)},
              {"class", pack.classes[hw_class].name},
              {"cohort", engine.adaptation().rates().cohort_text(node)},
              {"labels", labels},
              {"job", name(topology.job_of(node, now_ns))},
              {"in_maintenance", topology.in_maintenance(node, now_ns)},
              {"last_repair", instant(repaired_ns)},
              {"hazard",
               {{"factor", attribution::hazard(past, law)},
                {"origin", past.origin.empty() ? Json() : Json(past.origin)},
                {"causes", causes}}}};
}

bool is_node(engine::Engine& engine, const abi::CompiledPack& pack, SymbolId symbol) {
  const auto nodes = engine.topology().nodes();
  if (std::find(nodes.begin(), nodes.end(), symbol) != nodes.end()) return true;
  return engine.topology().job_of(symbol, engine.last_event_ns()) != kNoSymbol ||
         (symbol != kNoSymbol && engine.adaptation().rates().knows(symbol) &&
          !pack.classes.empty());
}

HttpReply entity(Api& api, const HttpRequest& request) {
  const std::string& id = request.named.at("id");
  Json out;
  auto failed = api.ask([&](engine::Engine& engine, const abi::CompiledPack& pack) {
    const SymbolId symbol = pack.symbols->find(id);
    if (symbol == kNoSymbol) return;
    if (is_node(engine, pack, symbol)) out = node_json(engine, pack, symbol);
    const auto& of_job = engine.topology().nodes_of(symbol, engine.last_event_ns());
    if (!of_job.empty()) {
      out["job_nodes"] = Json::array();
      for (const SymbolId node : of_job) out["job_nodes"].push_back(pack.symbols->name(node));
    }
  });
  if (failed) return *failed;
  VerdictFilter filter;
  filter.mentions = id;
  filter.newest_first = true;
  filter.limit = 50;
  auto page = api.store().verdicts(filter);
  if (!page) return store_error(page.error());
  if (out.is_null() && page.value().verdicts.empty()) return no_entity(id);
  Json history = Json::array();
  for (const StoredVerdict& v : page.value().verdicts) {
    if (!v.final) continue;
    const Json verdict = Json::parse(v.json, nullptr, false);
    Json row{{"id", v.id}, {"incident", v.incident}, {"ts", instant(v.ts_ns)}};
    for (const char* member : {"level", "answer", "culprits"}) {
      row[member] = verdict.is_object() && verdict.contains(member) ? verdict[member] : Json();
    }
    history.push_back(std::move(row));
  }
  out["verdicts"] = history;
  return reply_json(out);
}

Json feature_json(const abi::CompiledPack& pack, abi::FeatureId feature, const std::string& name,
                  double value) {
  const abi::FeaturePlan& plan = pack.features[feature];
  return Json{
      {"feature", plan.name},
      {"entity", name},
      {"value", number_json(value)},
      {"window_s", plan.window_ns == 0 ? Json() : Json(static_cast<double>(plan.window_ns) / 1e9)},
      {"half_life_s",
       plan.half_life_ns == 0 ? Json() : Json(static_cast<double>(plan.half_life_ns) / 1e9)},
      {"where", place(plan.where)}};
}

Json episode_json(const abi::CompiledPack& pack, const attribution::Evidence& evidence,
                  const attribution::Evidence::Episode& e) {
  return Json{{"signal", pack.signals[evidence.signal].name},
              {"entity", entity_words(pack, evidence.entity)},
              {"onset", instant(e.onset_ns)},
              {"end", e.end_ns == INT64_MAX ? Json() : instant(e.end_ns)},
              {"firings", e.firings},
              {"value", e.value.known != 0 ? number_json(e.value.f64()) : Json()},
              {"limit", e.limit.known != 0 ? number_json(e.limit.f64()) : Json()}};
}

HttpReply entity_state(Api& api, const HttpRequest& request) {
  const std::string& id = request.named.at("id");
  std::string key = request.param("key");
  if (key.empty()) key = "node";
  Json features = Json::array();
  Json episodes = Json::array();
  int64_t now_ns = kNoTimeNs;
  bool known = false;
  auto failed = api.ask([&](engine::Engine& engine, const abi::CompiledPack& pack) {
    const SymbolId symbol = pack.symbols->find(id);
    if (symbol == kNoSymbol) return;
    known = true;
    now_ns = engine.last_event_ns();
    engine.signals().features_of(
        key, symbol, now_ns,
        [&](abi::FeatureId feature, const abi::EntityKey& entity, abi::ClassId, double value) {
          // Those without a name were made by the compiler for an expression of a signal.
          if (pack.features[feature].name.empty()) return;
          features.push_back(feature_json(pack, feature, entity_words(pack, entity), value));
        });
    std::vector<attribution::Evidence> evidence;
    engine.evidence().collect(key, symbol, {now_ns, now_ns, kNoTimeNs}, evidence);
    for (const auto& e : evidence) {
      for (const auto& episode : e.episodes) episodes.push_back(episode_json(pack, e, episode));
    }
  });
  if (failed) return *failed;
  if (!known) return no_entity(id);
  const auto by = [](const char* first, const char* second) {
    return [first, second](const Json& a, const Json& b) {
      return std::pair(a[first].dump(), a[second].dump()) <
             std::pair(b[first].dump(), b[second].dump());
    };
  };
  std::sort(features.begin(), features.end(), by("feature", "entity"));
  std::sort(episodes.begin(), episodes.end(), by("onset", "signal"));
  return reply_json({{"entity", id},
                     {"key", key},
                     {"at", instant(now_ns)},
                     {"features", features},
                     {"episodes", episodes}});
}

HttpReply thresholds(Api& api, const HttpRequest& request) {
  const std::string wanted = request.param("class");
  Json classes = Json::array();
  uint64_t version = 0;
  Json shifts = Json::array();
  auto failed = api.ask([&](engine::Engine& engine, const abi::CompiledPack& pack) {
    const auto tables = engine.adaptation().tables();
    version = tables->version();
    for (abi::ClassId c = 0; c < pack.classes.size(); ++c) {
      if (!wanted.empty() && pack.classes[c].name != wanted) continue;
      classes.push_back(class_json(engine.adaptation().thresholds(), *tables, pack, c));
    }
    for (const auto& shift : engine.adaptation().thresholds().shifts()) {
      shifts.push_back({{"class", pack.classes[shift.hw_class].name},
                        {"what", shift.what},
                        {"at", instant(shift.at_ns)},
                        {"factor", shift.factor}});
    }
  });
  if (failed) return *failed;
  if (!wanted.empty() && classes.empty()) {
    return reply_error(404, fmt::format("there is no class '{}'", wanted), "see GET /api/v1/packs");
  }
  return reply_json({{"table_version", version}, {"classes", classes}, {"shifts", shifts}});
}

}  // namespace

void add_engine_routes(Api& api) {
  Router& router = api.router();
  const auto with = [&api](HttpReply (*handle)(Api&, const HttpRequest&)) {
    return [&api, handle](const HttpRequest& request) { return handle(api, request); };
  };
  router.add({"GET", "/api/v1/packs", Role::kRead, with(packs)});
  router.add({"GET", "/api/v1/signals", Role::kRead, with(signals)});
  router.add({"GET", "/api/v1/entities", Role::kRead, with(entities), {"prefix", "after", "limit"}});
  router.add({"GET", "/api/v1/entities/{id}", Role::kRead, with(entity)});
  router.add({"GET", "/api/v1/entities/{id}/state", Role::kRead, with(entity_state), {"key"}});
  router.add({"GET", "/api/v1/thresholds", Role::kRead, with(thresholds), {"class"}});
}

}  // namespace reflex::serve
