// Compile, model, history; the copies. See set_loader.h.
#include "runtime/serve/set_loader.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/base/crc32c.h"
#include "runtime/base/time.h"
#include "runtime/learn/labels.h"
#include "runtime/learn/model_file.h"

namespace reflex::serve {

namespace fs = std::filesystem;

namespace {

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return Error{fmt::format("{} cannot be read", path)};
  return text.str();
}

/// Enough to see that a file changed; packs have a real hash.
std::string mark_of(const std::string& path) {
  const auto text = read_file(path);
  return text.ok() ? fmt::format("{}:{:08x}:{}", path, crc32c(text.value()), text.value().size())
                   : path;
}

}  // namespace

std::string SetLoader::folder(const char* name) const {
  return config_->main.text("state_dir") + "/" + name;
}

Result<SetLoader::Named> SetLoader::named() const {
  Named named;
  const std::string& manifest = config_->main.text("packs.manifest");
  named.packs = config_->main.texts("packs.paths");
  named.profiles = config_->main.texts("packs.profiles");
  if (manifest.empty()) {
    if (named.packs.empty()) return Error{"no packs are named: set packs.paths or packs.manifest"};
    return named;
  }
  if (!named.packs.empty()) return Error{"packs.paths and packs.manifest are both set"};
  if (auto status = only_files({manifest}); !status.ok()) return status.error();
  auto read = read_manifest(manifest, named.sha256);
  if (!read.ok()) return read.error();
  named.packs = read.value()[0];
  if (!read.value()[1].empty()) named.profiles = read.value()[1];
  return named;
}

std::variant<LoadedSet, LoadFailure> SetLoader::compile(const PackRequest& request) {
  for (const auto* paths : {&request.paths, &request.profiles}) {
    if (auto status = only_files(*paths); !status.ok()) {
      return LoadFailure{{}, status.error().message};
    }
  }
  auto compiled = source_(request);
  if (!compiled.ok()) return LoadFailure{{}, compiled.error().message};
  CompiledSet& all = compiled.value();
  if (!all.pack) return LoadFailure{std::move(all.diagnostics), "the packs have errors"};
  LoadedSet set;
  set.pack = std::move(all.pack);
  set.files = std::move(all.files);
  set.diagnostics = std::move(all.diagnostics);
  set.compile_ms = all.compile_ms;
  set.code_bytes = all.code_bytes;
  set.rest = std::move(all.rest);
  if (auto status = complete(set); !status.ok()) return LoadFailure{{}, status.error().message};
  return set;
}

reflex::Status SetLoader::complete(LoadedSet& set) const {
  set.identity = set.pack->set_sha256;
  set.lane.inventories = config_->main.texts("packs.inventories");
  std::vector<std::string> others = set.lane.inventories;
  for (const char* key : {"packs.model", "packs.history"}) others.push_back(config_->main.text(key));
  if (auto status = only_files(others); !status.ok()) return status;
  set.lane.engine.threads =
      static_cast<unsigned>(std::max<int64_t>(1, config_->main.number("threads")));
  if (const auto& model = config_->main.text("packs.model"); !model.empty()) {
    auto loaded = learn::load_model(model, *set.pack);
    if (!loaded.ok()) return loaded.error();
    set.lane.engine.model = std::make_shared<const abi::Model>(std::move(loaded).value());
    set.identity += "|" + mark_of(model);
  }
  if (const auto& history = config_->main.text("packs.history"); !history.empty()) {
    auto file = learn::read_labels(history);
    if (!file.ok()) return file.error();
    auto known = std::make_shared<std::vector<engine::KnownIncident>>();
    for (const auto& label : file.value().labels) {
      if (!label.truth_known || label.ts_ns == kNoTimeNs) continue;
      known->push_back({label.incident, label.ts_ns, label.culprits, label.fault});
    }
    set.lane.engine.known = std::move(known);
    set.identity += "|" + mark_of(history);
  }
  for (const auto& path : set.lane.inventories) set.inventory += "|" + mark_of(path);
  set.identity += set.inventory;
  for (const auto& source : config_->sources) {
    const auto zone = parse_rfc3339("1970-01-02T00:00:00" + source.text("tz"));
    if (!zone)
      return Error{fmt::format("tz of a source: '{}' is not like +01:00", source.text("tz"))};
    const auto& name = source.text("name").empty() ? source.text("path") : source.text("name");
    set.lane.utc_offsets_ns[name] = kNsPerDay - zone->ns;
  }
  return ok_status();
}

std::variant<LoadedSet, LoadFailure> SetLoader::load(std::shared_ptr<SymbolTable> symbols) {
  auto names = named();
  if (!names.ok()) return LoadFailure{{}, names.error().message};
  auto loaded = compile({names.value().packs, names.value().profiles, symbols});
  auto* set = std::get_if<LoadedSet>(&loaded);
  if (set == nullptr) return loaded;
  const std::string& wanted = names.value().sha256;
  if (!wanted.empty() && set->pack->set_sha256 != wanted) {
    return LoadFailure{
        {},
        fmt::format("the manifest wants set {}, the files are {}", wanted, set->pack->set_sha256)};
  }
  configured_ = set->identity;
  const auto replaced = read_file(folder("promoted.of"));
  if (replaced.ok() && replaced.value() == configured_) {
    auto promoted = compile({{folder("promoted")}, {folder("promoted")}, symbols});
    if (std::holds_alternative<LoadedSet>(promoted)) return promoted;
  }
  return loaded;
}

std::variant<LoadedSet, LoadFailure> SetLoader::load_paths(const std::vector<std::string>& paths) {
  return compile({paths, config_->main.texts("packs.profiles"), nullptr});
}

std::variant<LoadedSet, LoadFailure> SetLoader::load_copy() {
  std::error_code none;
  if (!fs::exists(folder("active"), none))
    return LoadFailure{{}, "there is no copy of an older set"};
  return compile({{folder("active")}, {folder("active")}, nullptr});
}

/// Written beside and renamed: a crash leaves the old copy, the new one, or none, but no mixture.
reflex::Status SetLoader::write_copy(const LoadedSet& set, const std::string& target) const {
  const std::string part = target + ".part";
  std::error_code error;
  fs::remove_all(part, error);
  for (const auto& file : set.files) {
    const fs::path path = fs::path(part) / fs::absolute(file.path, error).relative_path();
    fs::create_directories(path.parent_path(), error);
    std::ofstream out(path, std::ios::binary);
    out << file.text;
    out.flush();
    if (!out) return Error{fmt::format("{} cannot be written", path.string())};
  }
  fs::remove_all(target, error);
  fs::rename(part, target, error);
  if (error) return Error{fmt::format("{}: {}", target, error.message())};
  return ok_status();
}

reflex::Status SetLoader::keep_copy(const LoadedSet& set) {
  return write_copy(set, folder("active"));
}

reflex::Status SetLoader::keep_promoted(const LoadedSet& set) {
  if (auto status = write_copy(set, folder("promoted")); !status.ok()) return status;
  std::ofstream out(folder("promoted.of"), std::ios::binary);
  out << configured_;
  out.flush();
  if (!out) return Error{folder("promoted.of") + " cannot be written"};
  return ok_status();
}

int64_t manifest_changed_ns(const Config& config) {
  const std::string& manifest = config.main.text("packs.manifest");
  struct stat info{};
  if (manifest.empty() || ::stat(manifest.c_str(), &info) != 0) return 0;
  return info.st_mtim.tv_sec * kNsPerSecond + info.st_mtim.tv_nsec;
}

}  // namespace reflex::serve
