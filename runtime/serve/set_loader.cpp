// Compile, model, history. See set_loader.h.
#include "runtime/serve/set_loader.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "runtime/base/crc32c.h"
#include "runtime/base/time.h"
#include "runtime/learn/labels.h"
#include "runtime/learn/model_file.h"
#include "runtime/serve/disk.h"

namespace reflex::serve {

namespace {

/// Enough to see that a file changed; packs have a real hash.
std::string mark_of(const SourceText& file) {
  return fmt::format("|{}:{:08x}:{}", file.path, crc32c(file.text), file.text.size());
}

constexpr std::string_view kModel = "model";
constexpr std::string_view kHistory = "history";
constexpr std::string_view kInventory = "inventory";

std::shared_ptr<std::vector<engine::KnownIncident>> known_of(const SourceText& history) {
  auto known = std::make_shared<std::vector<engine::KnownIncident>>();
  for (const auto& label : learn::parse_labels(history.text, history.path).labels) {
    if (!label.truth_known || label.ts_ns == kNoTimeNs) continue;
    known->push_back({label.incident, label.ts_ns, label.culprits, label.fault});
  }
  return known;
}

}  // namespace

void LoadedSet::let_go_of_texts() {
  files = {};
  beside = {};
  lane.inventories.reset();
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

Result<std::vector<FileBeside>> SetLoader::read_beside() const {
  std::vector<FileBeside> beside;
  const auto name = [&](std::string_view role, const std::string& path) {
    if (!path.empty()) beside.push_back({std::string(role), {path, ""}});
  };
  name(kModel, config_->main.text("packs.model"));
  name(kHistory, config_->main.text("packs.history"));
  for (const auto& path : config_->main.texts("packs.inventories")) name(kInventory, path);
  for (auto& [role, file] : beside) {
    if (auto status = only_files({file.path}); !status.ok()) return status.error();
    auto text = read_whole(file.path);
    if (!text.ok()) return Error(text.error()).in(role);
    file.text = std::move(text).value();
  }
  return beside;
}

std::variant<LoadedSet, LoadFailure> SetLoader::compile(const PackRequest& request,
                                                        std::vector<FileBeside> beside) {
  auto compiled = source_(request);
  if (!compiled.ok()) return LoadFailure{{}, compiled.error().message};
  CompiledSet& all = compiled.value();
  if (!all.pack) return LoadFailure{std::move(all.diagnostics), "the packs have errors"};
  LoadedSet set;
  set.pack = std::move(all.pack);
  set.files = std::move(all.files);
  set.beside = std::move(beside);
  set.diagnostics = std::move(all.diagnostics);
  set.compile_ms = all.compile_ms;
  set.code_bytes = all.code_bytes;
  set.rest = std::move(all.rest);
  if (auto status = complete(set); !status.ok()) return LoadFailure{{}, status.error().message};
  return set;
}

reflex::Status SetLoader::complete(LoadedSet& set) const {
  set.identity = set.pack->set_sha256;
  set.lane.engine.threads =
      static_cast<unsigned>(std::max<int64_t>(1, config_->main.number("threads")));
  std::vector<SourceText> inventories;
  for (const auto& [role, file] : set.beside) {
    if (role == kInventory) {
      set.inventory += mark_of(file);
      inventories.push_back(file);
      continue;
    }
    set.identity += mark_of(file);
    if (role == kHistory) {
      set.lane.engine.known = known_of(file);
    } else {
      auto model = learn::parse_model(file.text, *set.pack, file.path);
      if (!model.ok()) return model.error();
      set.lane.engine.model = std::make_shared<const abi::Model>(std::move(model).value());
    }
  }
  if (!inventories.empty()) {
    set.lane.inventories = std::make_shared<const std::vector<SourceText>>(std::move(inventories));
  }
  set.identity += set.inventory;
  std::string where = set.identity;  // explanations name files
  for (const auto& file : set.files) where += "|" + file.path;
  set.key = fmt::format("{}-{:08x}", set.pack->set_sha256.substr(0, 16), crc32c(where));
  set.lane.set_key = set.key;
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
  auto loaded =
      load_configured(names.value(), {names.value().packs, names.value().profiles, symbols, {}});
  auto* set = std::get_if<LoadedSet>(&loaded);
  if (set == nullptr) return loaded;
  configured_ = set->identity;
  const auto promoted = kept_.promoted();
  if (promoted && promoted->instead_of == configured_) {
    auto stands_in = load_kept(promoted->key, symbols);
    if (std::holds_alternative<LoadedSet>(stands_in)) return stands_in;
  }
  return loaded;
}

std::variant<LoadedSet, LoadFailure> SetLoader::load_configured(const Named& named,
                                                                const PackRequest& request) {
  for (const auto* paths : {&request.paths, &request.profiles}) {
    if (auto status = only_files(*paths); !status.ok()) {
      return LoadFailure{{}, status.error().message};
    }
  }
  auto beside = read_beside();
  if (!beside.ok()) return LoadFailure{{}, beside.error().message};
  auto loaded = compile(request, std::move(beside).value());
  const auto* set = std::get_if<LoadedSet>(&loaded);
  if (set != nullptr && !named.sha256.empty() && set->pack->set_sha256 != named.sha256) {
    return LoadFailure{{},
                       fmt::format("the manifest wants set {}, the files are {}", named.sha256,
                                   set->pack->set_sha256)};
  }
  return loaded;
}

std::variant<LoadedSet, LoadFailure> SetLoader::load_paths(const std::vector<std::string>& paths) {
  return load_configured({}, {paths, config_->main.texts("packs.profiles"), nullptr, {}});
}

std::variant<LoadedSet, LoadFailure> SetLoader::load_kept(const std::string& key,
                                                          std::shared_ptr<SymbolTable> symbols) {
  auto kept = kept_.read(key);
  if (!kept.ok()) return LoadFailure{{}, kept.error().message};
  PackRequest request;
  request.symbols = std::move(symbols);
  request.files = std::move(kept.value().files);
  auto loaded = compile(request, std::move(kept.value().beside));
  const auto* set = std::get_if<LoadedSet>(&loaded);
  if (set != nullptr && set->key != key) {
    return LoadFailure{{}, fmt::format("what is kept of set {} is another one: {}", key, set->key)};
  }
  return loaded;
}

reflex::Status SetLoader::keep_promoted(const LoadedSet& set) {
  return kept_.note_promoted({set.key, configured_});
}

int64_t manifest_changed_ns(const Config& config) {
  const std::string& manifest = config.main.text("packs.manifest");
  struct stat info {};
  if (manifest.empty() || ::stat(manifest.c_str(), &info) != 0) return 0;
  return info.st_mtim.tv_sec * kNsPerSecond + info.st_mtim.tv_nsec;
}

}  // namespace reflex::serve
