// Records in a saved state: fields by name, so that another pack set can read them.
//
// A kind's fields are written once, with its first record. What reads them back: a field that the
// new set has not, or has in another form, is left out; a kind that it has not makes the record
// unusable, as does a key that is missing (the decoder would have rejected it).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/abi/plan.h"
#include "runtime/abi/record.h"
#include "runtime/base/state_stream.h"

namespace reflex::abi {

class RecordWriter {
 public:
  explicit RecordWriter(StateWriter& writer) : writer_(writer) {}
  /// `schema` outlives the writer: its address is its identity.
  void write(const Record& record, const KindSchema& schema);

 private:
  void write_slot(const Record& record, const KindSchema& schema, unsigned slot);
  StateWriter& writer_;
  std::unordered_map<const KindSchema*, uint64_t> numbers_;
};

/// A record that was read, its texts and arrays held apart: where they shall live is the caller's.
struct RecordParts {
  Record head;  // slots do not follow it
  bool has_id = false;
  std::string id;
  const KindSchema* schema = nullptr;  // of the new set
  struct Slot {
    uint64_t bits = 0;
    std::string text;
    std::vector<int64_t> items;
  };
  std::vector<Slot> slots;  // by slot of the new set; those of head.present count
};

class RecordReader {
 public:
  /// The schema of a kind in the new set, or null; it outlives the reader. `out_kind` is its id.
  using FindKind = std::function<const KindSchema*(std::string_view name, uint16_t& out_kind)>;

  RecordReader(StateReader& reader, FindKind find) : reader_(reader), find_(std::move(find)) {}
  /// False: the record is of no use to this set (or the reader has failed).
  bool read(RecordParts& out);
  /// How many were of no use.
  [[nodiscard]] uint64_t dropped() const { return dropped_; }

 private:
  enum class Form : uint8_t { kNumber, kName, kReal, kText, kArray, kNameArray, kCount };
  struct Field {
    Form form = Form::kNumber;
    int slot = -1;  // in the new set
  };
  struct Kind {
    const KindSchema* schema = nullptr;
    uint16_t id = 0;
    std::vector<Field> fields;  // by slot of the old set
  };
  friend class RecordWriter;
  static Form form_of(const KindSchema& schema, const FieldSchema& field);
  void read_kind();
  void read_slot(const Field& field, RecordParts& out);

  StateReader& reader_;
  FindKind find_;
  std::vector<Kind> kinds_;
  RecordParts::Slot unused_;  // what the new set has no field for
  uint64_t dropped_ = 0;
};

}  // namespace reflex::abi
