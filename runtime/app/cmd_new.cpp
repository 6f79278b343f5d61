// `reflex new NAME`: a pack of one signal, one fault and two tests that pass, to be changed.
//
// The texts below are what a first pack needs and nothing else; cli_test makes one, checks it,
// formats it (no change) and runs its tests. Nothing that exists is overwritten.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "runtime/app/commands.h"
#include "runtime/app/load_packs.h"

namespace reflex::app {
namespace {

namespace fs = std::filesystem;

struct NewFlags {
  std::string name;
  std::string in = ".";
};

// @NAME@ is the name of the pack, @SHORT@ its last part.
constexpr std::string_view kPack = R"(# What this pack is about, in one sentence.
# Add `import std.kinds 1` to read the event kinds of the standard packs.
pack @NAME@ 0.1.0 requires engine >= 1.0 dsl 1
)";

constexpr std::string_view kRules =
    R"(# The kinds of events that this pack reads. Kinds are global: give them the pack's name.
event @NAME@.alarm { key node: node  key gpu: gpu_index?  code: u16  text: string? }
event @NAME@.job_stuck { key node: node  waited: duration? }

# A line of a kernel log becomes an event; `reflex help` and LANGUAGE.md section 10 have the rest.
decoder @SHORT@_kernel for text {
  line /^@SHORT@: gpu (?<gpu>\d+) alarm (?<code>\d+)(?:: (?<text>.*))?$/
    -> @NAME@.alarm { gpu = gpu  code = u16(code)  text = text }
}

# Three alarms in ten minutes. Why: one alone is seen on healthy nodes too.
# leak: how often a healthy GPU shows it; the most important number of a signal.
signal @SHORT@_alarms on (node, gpu) {
  count @NAME@.alarm where it.code in [1, 7..9] >= 3 within 10m
} leak 1e-4 per hour

# What everybody in the job shows when one node fails.
signal @SHORT@_stuck on node { e: @NAME@.job_stuck } leak 1e-3 per hour

fault @SHORT@_failure on (node, gpu) { prior 1e-4 per job  severity critical  remedy drain }

# p: the share of such failures that show the signal; lag: when, relative to the failure.
@SHORT@_failure causes @SHORT@_alarms p 0.9 lag -10m .. 2m
@SHORT@_failure causes @SHORT@_stuck p 0.9 lag -30s .. 15m scope peers

incident @SHORT@_hang on job { opens on @SHORT@_stuck  settle 30s  merge for 10m }
)";

constexpr std::string_view kTests =
    R"(# One test where the rule names the node, one where it stays silent.

test "three alarms before the job hangs name the node" {
  nodes n[1..4]  job j on n[1..4]
  at 10m: @NAME@.alarm n2/3 code 7 x3 every 30s
  at 12m: @NAME@.job_stuck n[1..4] waited 60s
  expect @SHORT@_alarms on n2/3 at 11m
  expect verdict @SHORT@_hang j { top n2 @SHORT@_failure p >= 0.8  not n[3..4]  gpu n2/3 }
  shuffle 3
}

test "an alarm of another code says nothing" {
  nodes n[1..4]  job j on n[1..4]
  at 10m: log n2 "@SHORT@: gpu 3 alarm 2: fan speed" x3 every 30s
  at 12m: @NAME@.job_stuck n[1..4]
  expect no @SHORT@_alarms
  expect verdict @SHORT@_hang j { not n[1..4] }
}
)";

std::string filled(std::string_view text, const std::string& name, const std::string& short_name) {
  std::string out(text);
  for (const auto& [mark, value] :
       {std::pair<std::string, std::string>{"@NAME@", name}, {"@SHORT@", short_name}}) {
    for (size_t at = out.find(mark); at != std::string::npos; at = out.find(mark, at)) {
      out.replace(at, mark.size(), value);
      at += value.size();
    }
  }
  return out;
}

int run(const NewFlags& flags, const CommonFlags& common) {
  static const std::regex kName("[a-z][a-z0-9_]*(\\.[a-z][a-z0-9_]*)*");
  if (!std::regex_match(flags.name, kName)) {
    print_error(common, fmt::format("'{}' is no name of a pack: write lower-case words with dots "
                                    "between them, like site.gpu",
                                    flags.name));
    return kUsage;
  }
  // Source: compiler/sema/packs.h: packs that the engine makes itself.
  static const std::set<std::string> kReserved{"builtin", "hw", "overlays"};
  if (kReserved.count(flags.name) != 0) {
    print_error(common, fmt::format("'{}' is a pack of the engine itself: take another name, like "
                                    "site.{}",
                                    flags.name, flags.name));
    return kUsage;
  }
  std::string below = flags.name;
  std::replace(below.begin(), below.end(), '.', '/');
  const fs::path folder = (fs::path(flags.in) / below).lexically_normal();
  const std::string short_name = flags.name.substr(flags.name.rfind('.') + 1);
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error)) {
    print_error(common, fmt::format("{} exists and is not empty", folder.string()));
    return kUsage;
  }
  fs::create_directories(folder, error);
  if (error) {
    print_error(common, fmt::format("{}: {}", folder.string(), error.message()));
    return kUsage;
  }
  for (const auto& [file, text] : {std::pair<std::string, std::string_view>{"pack.rfx", kPack},
                                   {short_name + ".rfx", kRules},
                                   {short_name + "_test.rfx", kTests}}) {
    const fs::path path = folder / file;
    std::ofstream out(path, std::ios::binary);
    out << filled(text, flags.name, short_name);
    out.close();
    if (!out) {
      print_error(common, path.string() + ": cannot be written");
      return kUsage;
    }
    fmt::print("{}\n", path.string());
  }
  print_note(common, fmt::format("next: reflex test {}", folder.string()));
  return kOk;
}

}  // namespace

Command add_new(CLI::App& app, const CommonFlags& common) {
  auto flags = std::make_shared<NewFlags>();
  auto* sub = app.add_subcommand("new", "make a pack with a signal, a fault and tests that pass");
  sub->add_option("name", flags->name, "name of the pack, like site.gpu: folder site/gpu")
      ->required();
  sub->add_option("--in", flags->in, "folder in which the pack's folder is made");
  return [sub, flags, &common] { return sub->parsed() ? run(*flags, common) : -1; };
}

}  // namespace reflex::app
