// abi::Model <-> JSON by names; see model_file.h.
#include "runtime/learn/model_file.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/base/time.h"

namespace reflex::learn {
namespace {

using Json = nlohmann::ordered_json;

// Why: a calibrated weight of a hundred times the author's is a broken file.
constexpr double kMultiplierMax = 100;
constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();
constexpr int kFormatVersion = 1;

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  RFX_CHECK(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

bool set(const std::vector<double>& values, size_t at) {
  return at < values.size() && !std::isnan(values[at]);
}

std::vector<std::string> synergy_names(const abi::CompiledPack& pack) {
  std::vector<std::string> names;
  for (const auto& synergy : pack.synergies) {
    std::string name = pack.causes[synergy.cause].name + ":";
    for (const auto signal : synergy.signals) name += " " + pack.signals[signal].name;
    names.push_back(name);
  }
  return names;
}

Json levels_json(const abi::DecisionLevels& levels) {
  return Json{{"confirm", levels.confirm}, {"suspect", levels.suspect}};
}

/// Reading: remembers the first thing that is wrong and where.
class Reader {
 public:
  Reader(const abi::CompiledPack& pack, std::string name) : pack_(pack), name_(std::move(name)) {}

  Result<abi::Model> read(std::string_view text) {
    const Json root = Json::parse(text, nullptr, false);
    if (root.is_discarded() || !root.is_object()) return Error{name_ + ": not a JSON object"};
    if (root.value("format", "") != "reflex-model") {
      return Error{name_ + ": not a model file (no \"format\": \"reflex-model\")"};
    }
    if (root.value("version", 0) != kFormatVersion) {
      return Error{fmt::format("{}: version {} of the format; this reflex reads {}", name_,
                               root.value("version", 0), kFormatVersion)};
    }
    model_.pack_sha256 = root.value("pack_sha256", "");
    if (model_.pack_sha256 != pack_.set_sha256) {
      return Error{
          fmt::format("{}: learned for another pack set ({}, loaded: {}); run `reflex "
                      "learn` again for these packs",
                      name_, model_.pack_sha256.substr(0, 12), pack_.set_sha256.substr(0, 12))};
    }
    read_all(root);
    if (!problem_.empty()) return Error{name_ + ": " + problem_};
    model_.sha256 = sha256_hex(text);
    return std::move(model_);
  }

 private:
  void fail(const std::string& what) {
    if (problem_.empty()) problem_ = what;
  }

  double number(const Json& entry, const char* key, const std::string& where) {
    const auto it = entry.find(key);
    if (it == entry.end() || !it->is_number()) {
      fail(fmt::format("{}: `{}` is no number", where, key));
      return kUnset;
    }
    return it->get<double>();
  }

  void range(const char* key, double value, double lowest, double highest) {
    if (value >= lowest && value <= highest) return;
    fail(fmt::format("calibration: {} = {} is not in [{}, {}]", key, value, lowest, highest));
  }

  int64_t time(const Json& root, const char* key) {
    if (!root.contains(key)) return 0;
    const auto t = root[key].is_string() ? parse_rfc3339(root[key].get<std::string>())
                                         : std::optional<EventTime>();
    if (!t) fail(fmt::format("`{}` is no RFC 3339 time", key));
    return t ? t->ns : 0;
  }

  /// `section` is an array of {name_key: NAME, value_key: number}.
  void table(const Json& root, const char* section, const char* name_key, const char* value_key,
             const std::vector<std::string>& names, double lowest, double highest,
             std::vector<double>& out) {
    if (!root.contains(section)) return;
    std::map<std::string, size_t> at;
    for (size_t i = 0; i < names.size(); ++i) at.emplace(names[i], i);
    out.assign(names.size(), kUnset);
    if (!root[section].is_array()) return fail(fmt::format("`{}` is no array", section));
    for (const Json& entry : root[section]) {
      const std::string name = entry.is_object() ? entry.value(name_key, "") : "";
      const auto it = at.find(name);
      if (it == at.end()) {
        return fail(fmt::format("{}: '{}' is not in the packs", section, name));
      }
      const double value = number(entry, value_key, name);
      if (!(value >= lowest && value <= highest)) {
        return fail(
            fmt::format("{}: {} = {} is not in [{}, {}]", name, value_key, value, lowest, highest));
      }
      out[it->second] = value;
    }
  }

  abi::DecisionLevels levels(const Json& entry, const std::string& where) {
    abi::DecisionLevels out{number(entry, "confirm", where), number(entry, "suspect", where)};
    for (const double level : {out.confirm, out.suspect}) {
      if (!(level >= 0 && level <= 1)) fail(where + ": a level is not in [0, 1]");
    }
    return out;
  }

  std::vector<std::string> names_of(const auto& plans) {
    std::vector<std::string> names;
    for (const auto& plan : plans) names.push_back(plan.name);
    return names;
  }

  void read_all(const Json& root) {
    model_.incidents = root.value("incidents", uint64_t{0});
    model_.from_ns = time(root, "from");
    model_.to_ns = time(root, "to");
    const auto signals = names_of(pack_.signals);
    constexpr double kAny = 1e9;
    table(root, "edges", "edge", "p", edge_names(pack_), 0, 1, model_.edge_p);
    table(root, "leaks", "signal", "per_hour", signals, 0, kAny, model_.leak_per_hour);
    table(root, "priors", "cause", "prior", names_of(pack_.causes), 0, kAny, model_.cause_prior);
    table(root, "graded", "signal", "extra", signals, 0, kAny, model_.graded_extra);
    table(root, "episode_leaks", "signal", "chance", signals, 0, 1, model_.episode_leak);
    profiles(root, signals);
    table(root, "synergies", "synergy", "nats", synergy_names(pack_), -1e3, 1e3,
          model_.synergy_nats);
    class_scales(root);
    if (const auto it = root.find("calibration"); it != root.end() && it->is_object()) {
      model_.temperature = number(*it, "temperature", "calibration");
      model_.none_shift_nats = number(*it, "none_shift_nats", "calibration");
      model_.ailing_multiplier = it->value("ailing_multiplier", 1.0);
      model_.agreement_multiplier = it->value("agreement_multiplier", 1.0);
      model_.history_multiplier = it->value("history_multiplier", 1.0);
      model_.co_culprit_odds = it->value("co_culprit_odds", 0.0);
      model_.degrading_elsewhere = it->value("degrading_elsewhere", 0.0);
      // Why: beyond these no posterior is a number; a fit stays within 0.2 to 5 and a few nats.
      range("temperature", model_.temperature, 1e-3, 1e3);
      range("none_shift_nats", model_.none_shift_nats, -1e3, 1e3);
      range("ailing_multiplier", model_.ailing_multiplier, 0, kMultiplierMax);
      range("history_multiplier", model_.history_multiplier, 0, kMultiplierMax);
      range("agreement_multiplier", model_.agreement_multiplier, 0, kMultiplierMax);
      range("co_culprit_odds", model_.co_culprit_odds, 0, 1e6);
      range("degrading_elsewhere", model_.degrading_elsewhere, 0, 1);
      table(*it, "multipliers", "signal", "multiplier", signals, 0, kMultiplierMax, model_.signal_multiplier);
    }
    if (const auto it = root.find("history"); it != root.end() && it->is_object()) history(*it);
    if (const auto it = root.find("levels"); it != root.end() && it->is_object()) {
      model_.levels = levels(*it, "levels");
    }
    class_levels(root);
  }

  void history(const Json& entry) {
    for (size_t s = 0; s < abi::kAfterFault; ++s) {
      double& factor = model_.history.again[s];
      factor = entry.value(abi::kAfterFaultNames[s], factor);
      range(abi::kAfterFaultNames[s], factor, 0.01, 1e3);
    }
    model_.history.same_cause = entry.value("same_cause", model_.history.same_cause);
    model_.history.usual = entry.value("usual", model_.history.usual);
    range("same_cause", model_.history.same_cause, 0, 1);
    range("usual", model_.history.usual, 0, 10);
  }

  /// Lead profiles of graded counts: kLeadBins shares each.
  void profiles(const Json& root, const std::vector<std::string>& signals) {
    if (!root.contains("lead_profiles")) return;
    model_.graded_profile.assign(signals.size(), {});
    for (const Json& entry : root["lead_profiles"]) {
      const auto at = std::find(signals.begin(), signals.end(), entry.value("signal", ""));
      if (at == signals.end()) return fail("lead_profiles: a signal that is not in the packs");
      const auto shares = entry.value("shares", std::vector<double>());
      if (shares.size() != abi::kLeadBins) {
        return fail(fmt::format("lead_profiles: {} needs {} shares", *at, abi::kLeadBins));
      }
      if (std::any_of(shares.begin(), shares.end(), [](double x) { return !(x >= 0 && x <= 1); })) {
        return fail(fmt::format("lead_profiles: {}: a share is not in [0, 1]", *at));
      }
      std::copy(shares.begin(), shares.end(),
                model_.graded_profile[static_cast<size_t>(at - signals.begin())].begin());
    }
  }

  size_t class_at(const Json& entry) {
    const std::string name = entry.is_object() ? entry.value("class", "") : "";
    for (size_t i = 0; i < pack_.classes.size(); ++i) {
      if (pack_.classes[i].name == name) return i;
    }
    fail(fmt::format("class '{}' is not in the packs", name));
    return 0;
  }

  void class_scales(const Json& root) {
    if (!root.contains("class_scales")) return;
    model_.cause_class_scale.assign(pack_.causes.size(),
                                    std::vector<double>(pack_.classes.size(), kUnset));
    for (const Json& entry : root["class_scales"]) {
      const std::string cause = entry.is_object() ? entry.value("cause", "") : "";
      size_t at = 0;
      while (at < pack_.causes.size() && pack_.causes[at].name != cause) ++at;
      if (at == pack_.causes.size())
        return fail(fmt::format("cause '{}' is not in the packs", cause));
      model_.cause_class_scale[at][class_at(entry)] = number(entry, "scale", cause);
    }
  }

  void class_levels(const Json& root) {
    if (!root.contains("class_levels")) return;
    model_.class_levels.assign(pack_.classes.size(), {});
    for (const Json& entry : root["class_levels"]) {
      model_.class_levels[class_at(entry)] = levels(entry, "class_levels");
    }
  }

  const abi::CompiledPack& pack_;
  std::string name_;
  abi::Model model_;
  std::string problem_;
};

Json edges_json(const abi::Model& model, const abi::CompiledPack& pack) {
  Json out = Json::array();
  const auto names = edge_names(pack);
  for (size_t i = 0; i < pack.edges.size(); ++i) {
    if (!set(model.edge_p, i)) continue;
    const auto& where = pack.edges[i].where;
    out.push_back({{"edge", names[i]},
                   {"p", model.edge_p[i]},
                   {"author", pack.edges[i].p},
                   {"rule", fmt::format("{}:{}", where.file, where.line)}});
  }
  return out;
}

Json history_json(const abi::HistoryLaw& law) {
  Json out;
  for (size_t s = 0; s < abi::kAfterFault; ++s) out[abi::kAfterFaultNames[s]] = law.again[s];
  out["same_cause"] = law.same_cause;
  out["usual"] = law.usual;
  return out;
}

Json calibration_json(const abi::Model& model, const abi::CompiledPack& pack) {
  Json multipliers = Json::array();
  for (size_t i = 0; i < pack.signals.size(); ++i) {
    if (!set(model.signal_multiplier, i)) continue;
    multipliers.push_back(
        {{"signal", pack.signals[i].name}, {"multiplier", model.signal_multiplier[i]}});
  }
  Json out{{"temperature", model.temperature}, {"none_shift_nats", model.none_shift_nats}};
  if (model.ailing_multiplier != 1) out["ailing_multiplier"] = model.ailing_multiplier;
  if (model.agreement_multiplier != 1) {
    out["agreement_multiplier"] = model.agreement_multiplier;
  }
  if (model.history_multiplier != 1) out["history_multiplier"] = model.history_multiplier;
  if (model.co_culprit_odds != 0) out["co_culprit_odds"] = model.co_culprit_odds;
  if (model.degrading_elsewhere != 0) out["degrading_elsewhere"] = model.degrading_elsewhere;
  if (!multipliers.empty()) out["multipliers"] = multipliers;
  return out;
}

void add_tables(Json& root, const abi::Model& model, const abi::CompiledPack& pack) {
  if (Json edges = edges_json(model, pack); !edges.empty()) root["edges"] = edges;
  for (size_t i = 0; i < pack.signals.size(); ++i) {
    const auto& signal = pack.signals[i];
    if (set(model.leak_per_hour, i)) {
      root["leaks"].push_back({{"signal", signal.name},
                               {"per_hour", model.leak_per_hour[i]},
                               {"author", signal.leak_per_hour}});
    }
    if (set(model.graded_extra, i)) {
      root["graded"].push_back({{"signal", signal.name},
                                {"extra", model.graded_extra[i]},
                                {"author", signal.count.graded.extra_mean}});
    }
    if (set(model.episode_leak, i)) {
      root["episode_leaks"].push_back({{"signal", signal.name},
                                       {"chance", model.episode_leak[i]},
                                       {"author", signal.leak_probability}});
    }
    if (i < model.graded_profile.size() &&
        model.graded_profile[i] != decltype(abi::GradedPlan::profile){}) {
      root["lead_profiles"].push_back(
          {{"signal", signal.name}, {"shares", model.graded_profile[i]}});
    }
  }
  for (size_t i = 0; i < pack.causes.size(); ++i) {
    if (!set(model.cause_prior, i)) continue;
    root["priors"].push_back({{"cause", pack.causes[i].name},
                              {"prior", model.cause_prior[i]},
                              {"author", pack.causes[i].prior}});
  }
  for (size_t i = 0; i < model.cause_class_scale.size(); ++i) {
    for (size_t c = 0; c < pack.classes.size(); ++c) {
      if (!set(model.cause_class_scale[i], c)) continue;
      root["class_scales"].push_back({{"cause", pack.causes[i].name},
                                      {"class", pack.classes[c].name},
                                      {"scale", model.cause_class_scale[i][c]}});
    }
  }
  const auto synergies = synergy_names(pack);
  for (size_t i = 0; i < synergies.size(); ++i) {
    if (!set(model.synergy_nats, i)) continue;
    root["synergies"].push_back({{"synergy", synergies[i]},
                                 {"nats", model.synergy_nats[i]},
                                 {"author", pack.synergies[i].weight_nats}});
  }
}

}  // namespace

std::vector<std::string> edge_names(const abi::CompiledPack& pack) {
  std::vector<std::string> names;
  std::map<std::string, int> used;
  for (const auto& edge : pack.edges) {
    const std::string& from =
        edge.from_signal ? pack.signals[edge.from].name : pack.causes[edge.cause].name;
    std::string name = fmt::format("{} -> {} on {}", from, pack.signals[edge.to].name,
                                   abi::scope_word(edge.scope));
    // Two edges between the same ends differ by their lags; their order in the pack tells them.
    if (const int n = ++used[name]; n > 1) name += fmt::format(" #{}", n);
    names.push_back(name);
  }
  return names;
}

std::string to_json(const abi::Model& model, const abi::CompiledPack& pack) {
  Json root;
  root["format"] = "reflex-model";
  root["version"] = kFormatVersion;
  root["pack_sha256"] = model.pack_sha256;
  root["packs"] = Json::array();
  for (const auto& p : pack.packs) root["packs"].push_back(p.name + " " + p.version);
  root["incidents"] = model.incidents;
  root["from"] = to_rfc3339({model.from_ns});
  root["to"] = to_rfc3339({model.to_ns});
  root["calibration"] = calibration_json(model, pack);
  root["history"] = history_json(model.history);
  root["levels"] = levels_json(model.levels);
  for (size_t c = 0; c < model.class_levels.size(); ++c) {
    if (model.class_levels[c].suspect == 0 && model.class_levels[c].confirm == 0) continue;
    Json entry{{"class", pack.classes[c].name}};
    entry.update(levels_json(model.class_levels[c]));
    root["class_levels"].push_back(entry);
  }
  add_tables(root, model, pack);
  return root.dump(1) + "\n";
}

Result<abi::Model> parse_model(std::string_view text, const abi::CompiledPack& pack,
                               const std::string& name) {
  // A member of a wrong type throws from nlohmann's value(): no exception leaves this folder.
  try {
    return Reader(pack, name).read(text);
  } catch (const Json::exception& error) {
    return Error{fmt::format("{}: {}", name, error.what())};
  }
}

Result<abi::Model> load_model(const std::string& path, const abi::CompiledPack& pack) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{fmt::format("cannot read {}: {}", path, std::strerror(errno))};
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) return Error{fmt::format("reading {} failed", path)};
  return parse_model(text.view(), pack, path);
}

Status save_model(const std::string& path, const abi::Model& model, const abi::CompiledPack& pack) {
  const std::string text = to_json(model, pack);
  // A device or a pipe is written to, never replaced by a file.
  struct stat existing {};
  const bool special = stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode);
  const std::string temporary = special ? path : fmt::format("{}.{}.tmp", path, getpid());
  FILE* file = std::fopen(temporary.c_str(), "w");
  if (!file) return Error{fmt::format("cannot write {}: {}", path, std::strerror(errno))};
  bool ok = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  ok = std::fflush(file) == 0 && (special || fsync(fileno(file)) == 0) && ok;
  const int written = errno;  // of the write that failed, if one did
  ok = std::fclose(file) == 0 && ok;
  int reason = written;
  if (ok && !special && std::rename(temporary.c_str(), path.c_str()) != 0) {
    ok = false;
    reason = errno;
  }
  if (ok) return ok_status();
  if (!special) std::remove(temporary.c_str());
  return Error{fmt::format("writing {} failed: {}", path, std::strerror(reason))};
}

}  // namespace reflex::learn
