// `reflex backtest`: labelled history in, figures out.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>

#include "runtime/app/commands.h"
#include "runtime/app/heap_pages.h"
#include "runtime/app/replay.h"
#include "runtime/backtest/ablation.h"
#include "runtime/backtest/baselines.h"
#include "runtime/backtest/report.h"
#include "runtime/explain/explain.h"
#include "runtime/learn/model_file.h"

namespace reflex::app {
namespace {

struct BacktestFlags {
  InputFlags input;
  std::string labels;
  std::string model;
  std::string history;
  std::string from;
  double from_fraction = -1;
  std::vector<std::string> expect;
  std::vector<std::string> ablate;
  bool baseline = false;
  bool quick = false;
  std::string json;
  std::string markdown;
  std::string html;
};

constexpr const char* kParts[] = {"history",          "explain-away", "common-mode",
                                  "class-thresholds", "dynamic",      "learned"};

engine::Ablation without(const std::string& part) {
  engine::Ablation a;
  a.history = part == "history";
  a.explain_away = part == "explain-away";
  a.common_mode = part == "common-mode";
  a.class_thresholds = part == "class-thresholds";
  a.dynamic = part == "dynamic";
  return a;
}

std::string names_text(const std::vector<std::string>& names, const std::string& none) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ", ") + name;
  return out.empty() ? none : out;
}

class Backtest {
 public:
  Backtest(const BacktestFlags& flags, const CommonFlags& common)
      : flags_(flags), common_(common) {}

  int run() {
    const auto outputs = {flags_.json, flags_.markdown, flags_.html};
    if (auto status = check_files(flags_.input, outputs); !status.ok()) return fail(status.error());
    if (auto status = read_expectations(); !status.ok()) return fail(status.error());
    Loaded loaded = load_packs(flags_.input.load, common_);
    if (loaded.exit_code != kOk) return loaded.exit_code;
    pack_ = loaded.compilation->pack;
    if (auto status = load_model(); !status.ok()) return fail(status.error());
    History history(pack_, flags_.input, common_);
    if (auto status = history.read_labels(flags_.labels); !status.ok()) {
      return fail(status.error());
    }
    auto known = load_history(flags_.history, common_);
    if (!known.ok()) return fail(known.error());
    known_ = std::move(known).value();
    if (auto status = find_split(history); !status.ok()) return fail(status.error());
    if (auto status = measure(history); !status.ok()) return fail(status.error());
    if (auto status = ablations(history); !status.ok()) return fail(status.error());
    return finish(history);
  }

 private:
  int fail(const Error& error) {
    print_error(common_, error.message);
    return error.exit_code;
  }

  /// Each --expect is a requirement, or a file with one a line ('#' starts a comment).
  Status read_expectations() {
    for (const auto& text : flags_.expect) {
      backtest::Expectation e;
      if (backtest::parse_expectation(text, e)) {
        if (auto status = add_expectation("--expect", e); !status.ok()) return status;
        continue;
      }
      std::ifstream in(text);
      if (!in)
        return Error{fmt::format("--expect: '{}' is neither like 'f1>=0.88' nor a file", text)};
      std::string line;
      for (int number = 1; std::getline(in, line); ++number) {
        line = line.substr(0, line.find('#'));
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        if (!backtest::parse_expectation(line, e)) {
          return Error{fmt::format("{}:{}: not like 'f1>=0.88'", text, number)};
        }
        const std::string place = fmt::format("{}:{}", text, number);
        if (auto status = add_expectation(place, e); !status.ok()) return status;
      }
    }
    return ok_status();
  }

  Status add_expectation(const std::string& place, const backtest::Expectation& e) {
    if (!backtest::is_figure(e.name)) {
      return Error{fmt::format("{}: there is no figure '{}'; known are {}, of all incidents or of a "
                               "part, like explicit.f1",
                               place, e.name, backtest::figure_words())};
    }
    expectations_.push_back(e);
    return ok_status();
  }

  Status load_model() {
    if (flags_.model.empty()) return ok_status();
    auto model = learn::load_model(flags_.model, *pack_);
    if (!model.ok()) return model.error();
    model_ = std::make_shared<const abi::Model>(std::move(model).value());
    report_.model_sha256 = model_->sha256;
    return ok_status();
  }

  Status find_split(const History& history) {
    if (!flags_.from.empty()) {
      const auto t = parse_rfc3339(flags_.from);
      if (!t) return Error{fmt::format("--from: '{}' is not an RFC 3339 time", flags_.from)};
      from_ns_ = t->ns;
    } else if (flags_.from_fraction >= 0) {
      from_ns_ = history.split_ns(flags_.from_fraction);
    } else {
      return ok_status();
    }
    report_.from = to_rfc3339({from_ns_});
    if (history.labels().back().ts_ns < from_ns_) {
      return Error{"no labelled incident at or after " + report_.from};
    }
    return ok_status();
  }

  /// The replay that is reported; keeps features for baselines and the text of final verdicts.
  Status measure(const History& history) {
    ReplayRequest request;
    request.what = "replay";
    request.model = model_;
    request.known = known_;
    request.tell_labels = true;
    request.finals_only = flags_.quick;  // else latencies are those of operation
    request.verdict = [&](const abi::Verdict& v) {
      if (v.opened_ns >= from_ns_ - kNsPerHour) verdicts_[v.id] = v;
    };
    if (flags_.baseline) {
      request.input = [&](const attribution::Input& input, const learn::Label& label) {
        (label.ts_ns < from_ns_ ? train_ : test_)
            .push_back(backtest::features_of(*pack_, input, label));
      };
    }
    auto cases = history.replay(request);
    if (!cases.ok()) return cases.error();
    cases_ = later(cases.value(), from_ns_);
    report_.metrics = backtest::measure(cases_);
    return ok_status();
  }

  Status ablations(const History& history) {
    if (flags_.ablate.empty()) return ok_status();
    backtest::FaultTimes faults;
    for (const auto& label : history.labels()) faults.add(label);
    for (const auto& name : flags_.ablate) {
      if (name == "learned" && !model_) {
        print_note(common_, "--ablate learned: there is no --model to leave out");
        continue;
      }
      ReplayRequest request;
      request.what = "replay without " + name;
      request.model = name == "learned" ? nullptr : model_;
      request.ablate = without(name);
      request.known = known_;
      auto cases = history.replay(request);
      if (!cases.ok()) return cases.error();
      report_.ablations.push_back(
          backtest::worth_of(name, cases_, later(cases.value(), from_ns_), faults));
    }
    return ok_status();
  }

  void baselines() {
    if (!flags_.baseline) return;
    const auto by_time = [](const auto& a, const auto& b) {
      return a.label.ts_ns != b.label.ts_ns ? a.label.ts_ns < b.label.ts_ns
                                            : a.label.incident < b.label.incident;
    };
    std::sort(train_.begin(), train_.end(), by_time);
    std::sort(test_.begin(), test_.end(), by_time);
    if (train_.empty()) {
      print_note(common_, "--baseline: methods that learn need incidents before --from; left out");
    } else if (!backtest::has_boosting()) {
      print_note(common_, "--baseline: built without libxgboost; gradient boosting is left out");
    }
    for (auto& b : backtest::run_baselines(*pack_, train_, test_)) {
      report_.baselines.push_back({b.name, backtest::measure(b.cases)});
    }
  }

  void worst_cases() {
    constexpr size_t kWorst = 10;
    for (const auto* c : backtest::worst(cases_, kWorst)) {
      backtest::WorstCase w;
      w.incident = c->label.incident;
      w.truth = names_text(c->label.culprits,
                           c->label.external.empty() ? "no faulty node" : c->label.external);
      if (!c->label.category.empty()) w.truth += " (" + c->label.category + ")";
      w.said = c->answered ? names_text(c->culprits, c->external) : "no verdict";
      if (c->answered) w.said += (w.said.empty() ? "" : " ") + c->answer;
      w.surprise = backtest::surprise(*c);
      const auto it = verdicts_.find(c->verdict);
      if (it != verdicts_.end()) w.explanation = explain::to_text(it->second, false);
      report_.worst.push_back(std::move(w));
    }
  }

  Status write(const std::string& path, const std::string& text) {
    if (path.empty()) return ok_status();
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << text;
    out.flush();
    if (!out) return Error{fmt::format("cannot write {}", path)};
    return ok_status();
  }

  int finish(const History& history) {
    baselines();
    worst_cases();
    report_.pack_sha256 = pack_->set_sha256;
    report_.labels_bad = history.bad_lines();
    std::vector<std::string> packs;
    for (const auto& p : pack_->packs) packs.push_back(p.name + " " + p.version);
    report_.title = names_text(packs, "");
    for (const auto& e : expectations_) {
      if (auto missed = backtest::check(report_.metrics, e); !missed.empty()) {
        report_.missed.push_back(std::move(missed));
      }
    }
    if (auto s = write(flags_.json, backtest::to_json(report_)); !s.ok()) return fail(s.error());
    if (auto s = write(flags_.markdown, to_markdown(report_)); !s.ok()) return fail(s.error());
    if (auto s = write(flags_.html, to_html(report_)); !s.ok()) return fail(s.error());
    const std::string text =
        common_.format == "json" ? backtest::to_json(report_) : backtest::to_text(report_);
    std::fwrite(text.data(), 1, text.size(), stdout);
    for (const auto& missed : report_.missed) print_error(common_, missed);
    return report_.missed.empty() ? kOk : kFindings;
  }

  const BacktestFlags& flags_;
  const CommonFlags& common_;
  std::shared_ptr<const abi::CompiledPack> pack_;
  std::shared_ptr<const abi::Model> model_;
  std::shared_ptr<const std::vector<engine::KnownIncident>> known_;
  std::vector<backtest::Expectation> expectations_;
  int64_t from_ns_ = INT64_MIN + kNsPerHour;
  std::vector<backtest::Case> cases_;
  std::map<std::string, abi::Verdict> verdicts_;  // by id
  std::vector<backtest::IncidentFeatures> train_;
  std::vector<backtest::IncidentFeatures> test_;
  backtest::Report report_;
};

}  // namespace

Command add_backtest(CLI::App& app, const CommonFlags& common) {
  auto flags = std::make_shared<BacktestFlags>();
  auto* sub = app.add_subcommand("backtest", "measure verdicts against labelled incidents");
  add_input_options(*sub, flags->input);
  sub->add_option("--labels", flags->labels, "labelled incidents (NDJSON)")->required();
  sub->add_option("--model", flags->model, "learned numbers (`reflex learn`)");
  sub->add_option("--history", flags->history,
                  "feed this labelled history to the nodes as it would have come in");
  auto* from = sub->add_option("--from", flags->from, "measure from this time on (RFC 3339)");
  sub->add_option("--from-fraction", flags->from_fraction,
                  "measure after this part of the labelled time")
      ->check(CLI::Range(0.0, 0.999))
      ->excludes(from);
  sub->add_option(
      "--expect", flags->expect,
      "like 'f1>=0.88' or 'implicit.f1>=0.85', or a file of such lines; missed: exit 1");
  std::vector<std::string> parts;
  for (const char* part : kParts) parts.emplace_back(part);
  sub->add_option("--ablate", flags->ablate,
                  "what each of these parts is worth: " + names_text(parts, ""))
      ->delimiter(',')
      ->check(CLI::IsMember(parts));
  sub->add_flag("--baseline", flags->baseline, "other methods on the same evidence");
  sub->add_flag("--quick", flags->quick,
                "one look an incident: the same final answers, but neither latencies of operation "
                "nor counterfactuals");
  sub->add_option("-o,--json", flags->json, "write the report as JSON");
  sub->add_option("--markdown", flags->markdown, "write the report as Markdown");
  sub->add_option("--html", flags->html, "write the report as one HTML page");
  return [sub, flags, &common] {
    if (!sub->parsed()) return -1;
    put_heap_in_huge_pages();
    return Backtest(*flags, common).run();
  };
}

}  // namespace reflex::app
