// SetLoader: what the configuration names (packs, model, history, inventories) -> a set to run.
//
// Sets that have been live are kept as they were (kept_sets.h): when the packs on disk are broken
// at a restart, the daemon goes on with the last of them. A promoted shadow set stays in force over
// restarts as long as the configured packs are the ones that it replaced.
// Threads: one call at a time.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/serve/config.h"
#include "runtime/serve/kept_sets.h"
#include "runtime/serve/lane.h"
#include "runtime/serve/pack_source.h"

namespace reflex::serve {

struct LoadedSet {
  std::shared_ptr<const abi::CompiledPack> pack;
  LaneOptions lane;
  std::string identity;   // of the packs and the files beside them
  std::string key;        // the same and where, short: what it is kept under, and named by in the
                          // journal
  std::string inventory;  // of the inventories alone
  std::vector<SourceText> files;
  std::vector<FileBeside> beside;
  std::vector<std::string> diagnostics;
  double compile_ms = 0;
  uint64_t code_bytes = 0;     // of machine code
  std::shared_ptr<void> rest;  // CompiledSet::rest

  /// What only keeping it and the beginning of its lane need.
  void let_go_of_texts();
};

/// Why there is no set.
struct LoadFailure {
  std::vector<std::string> diagnostics;  // of rule authors' mistakes; empty: `error` says all
  std::string error;
};

class SetLoader {
 public:
  SetLoader(std::shared_ptr<const Config> config, PackSource source, KeptSets& kept)
      : config_(std::move(config)), source_(std::move(source)), kept_(kept) {}

  /// From the next load() on.
  void use(std::shared_ptr<const Config> config) { config_ = std::move(config); }

  /// The set that should be live. `symbols`: of the one that is, or null.
  std::variant<LoadedSet, LoadFailure> load(std::shared_ptr<SymbolTable> symbols = nullptr);
  /// Other packs with the configured model, history and inventories.
  std::variant<LoadedSet, LoadFailure> load_paths(const std::vector<std::string>& paths);
  /// One that is kept, with what was beside it.
  std::variant<LoadedSet, LoadFailure> load_kept(const std::string& key,
                                                 std::shared_ptr<SymbolTable> symbols = nullptr);

  reflex::Status keep(const LoadedSet& set) {
    return kept_.keep(set.key, {set.identity, set.files, set.beside});
  }
  /// `set` stays in place of the configured packs.
  reflex::Status keep_promoted(const LoadedSet& set);

 private:
  struct Named {
    std::vector<std::string> packs, profiles;
    std::string sha256;  // "": any
  };
  Result<Named> named() const;
  std::variant<LoadedSet, LoadFailure> load_configured(const Named& named,
                                                       const PackRequest& request);
  std::variant<LoadedSet, LoadFailure> compile(const PackRequest& request,
                                               std::vector<FileBeside> beside);
  [[nodiscard]] Result<std::vector<FileBeside>> read_beside() const;
  reflex::Status complete(LoadedSet& set) const;

  std::shared_ptr<const Config> config_;
  PackSource source_;
  KeptSets& kept_;
  std::string configured_;  // identity of the configured set, as of the last load()
};

/// When the manifest was changed last; 0: there is none. Threads: any.
int64_t manifest_changed_ns(const Config& config);

/// packs.toml. Errors: with the place.
Result<std::vector<std::vector<std::string>>> read_manifest(const std::string& path,
                                                            std::string& sha256);

}  // namespace reflex::serve
