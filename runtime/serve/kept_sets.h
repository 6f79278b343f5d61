// KeptSets: the pack sets that the state on disk speaks of, as they were, in STATE_DIR/sets.
//
// Why: what the journal holds was, or will be, evaluated with the set that was live then. After a
// crash the start reads it with that set again, whatever stands in the configured files by now.
// Form: KEY.set names its texts (packs, data of lists, model, history, inventories) and the paths
// that they had; a text is a file under texts/, which sets that hold the same text share.
// KEY@POSITION.state: the state that a promoted shadow had there. `promoted`: the key of the
// promoted set and the identity of the configured one that it stands in for. Contract: keep()
// returns when all is on disk. A set that was cut or changed is an Error at read(), never another
// set. Threads: any. Cost: keep() writes the texts that are new, and syncs each.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/engine/snapshot.h"
#include "runtime/serve/pack_source.h"
#include "runtime/serve/state_capture.h"

namespace reflex::serve {

/// A file that belongs to a set beside its packs: "model", "history" or "inventory".
struct FileBeside {
  std::string role;
  SourceText file;
};

struct KeptSet {
  std::string identity;
  std::vector<SourceText> files;  // packs, data of lists
  std::vector<FileBeside> beside;
};

class KeptSets {
 public:
  explicit KeptSets(std::string folder) : folder_(std::move(folder)) {}

  /// What is there already is needed for what the journal holds up to `journal_end`.
  reflex::Status prepare(uint64_t journal_end);
  /// And needed from now on.
  reflex::Status keep(const std::string& key, const KeptSet& set);
  [[nodiscard]] Result<KeptSet> read(const std::string& key) const;
  /// What a shadow becomes live with; needed for what follows its place.
  reflex::Status keep_state(const std::string& key, const CapturedState& state);
  [[nodiscard]] Result<engine::Snapshot> read_state(const std::string& key,
                                                    uint64_t position) const;

  struct Promoted {
    std::string key;
    std::string instead_of;  // identity
  };
  reflex::Status note_promoted(const Promoted& promoted);
  [[nodiscard]] std::optional<Promoted> promoted() const;

  /// It is live.
  void use(const std::string& key);
  /// Another set is live from `position` on: this one is needed for what is before that.
  void retire(const std::string& key, uint64_t position);
  /// Removes what neither the journal from `position` on nor a promotion needs.
  void trim(uint64_t position);

 private:
  struct Index {  // what KEY.set says
    std::string identity;
    std::vector<std::pair<std::string, SourceText>> texts;  // role; path and name under texts/
  };
  [[nodiscard]] std::string path_of(const std::string& key) const;
  [[nodiscard]] Result<Index> read_index(const std::string& key) const;
  Result<std::string> keep_text(const std::string& text);
  [[nodiscard]] std::vector<std::string> keys() const;

  [[nodiscard]] std::string state_path(const std::string& key, uint64_t position) const;
  void remove_states_before(uint64_t position) const;
  void remove_texts_but(const std::set<std::string>& used) const;

  std::string folder_;
  std::mutex mutex_;
  std::map<std::string, uint64_t> until_;  // UINT64_MAX: no end is known yet
  uint64_t found_until_ = 0;               // of those that were there
};

}  // namespace reflex::serve
