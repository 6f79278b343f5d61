// Records and firings as they travel between the processes of one pack set.
//
// Contract: both sides have compiled the same set (SignalBatch and EventBatch carry its hash), so
// kinds, signals and slots go as numbers; names go as texts. What is read back equals what was
// written in every visible respect. A reader fails cleanly on damaged bytes (state_stream.h).
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/firing.h"
#include "runtime/abi/record.h"
#include "runtime/base/state_stream.h"
#include "runtime/stream/slab.h"

namespace reflex::cluster {

class RecordCodec {
 public:
  explicit RecordCodec(std::shared_ptr<const abi::CompiledPack> pack);

  void write(StateWriter& out, const abi::Record& record) const;
  /// Null when the reader failed.
  abi::Record* read(StateReader& in, stream::Slab& slab) const;

  /// All but `order`, which means nothing elsewhere.
  void write(StateWriter& out, const abi::Firing& firing) const;
  [[nodiscard]] abi::Firing read_firing(StateReader& in) const;

 private:
  enum class Form : uint8_t { kNumber, kName, kReal, kText, kArray, kNameArray };
  void write_slot(StateWriter& out, Form form, const abi::Record& record, unsigned slot) const;
  void read_slot(StateReader& in, Form form, abi::Record& record, unsigned slot,
                 stream::Slab& slab) const;

  std::shared_ptr<const abi::CompiledPack> pack_;
  std::vector<std::vector<Form>> slots_;        // [kind]
  std::vector<std::array<bool, 3>> name_keys_;  // [entity kind]
  std::vector<bool> name_parts_;                // [signal] Firing::part stands for a name
};

}  // namespace reflex::cluster
