// LogRecordBuilder: groups of a matched pattern -> a record, by DecoderAssign (runtime/abi/plan.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/stream/field_convert.h"
#include "runtime/stream/log_decoder.h"

namespace reflex::stream {

class LogRecordBuilder {
 public:
  LogRecordBuilder(std::shared_ptr<const abi::CompiledPack> pack, SymbolId node,
                   const LogOptions& options);
  /// Another set whose ids mean the same and that reads the same fields.
  void use(std::shared_ptr<const abi::CompiledPack> pack) {
    converter_.use(pack);
    pack_ = std::move(pack);
  }
  /// Null when a key that is not optional has no value; `missing_key` then names it. `groups[i]` is
  /// RE2 group i; an unset one has no data.
  abi::Record* build(const abi::DecoderLine& line, std::span<const std::string_view> groups,
                     Slab& slab, std::string& missing_key);

 private:
  void assign(const abi::DecoderAssign& assign, const FieldPlan& field, std::string_view text,
              abi::Record& record, Slab& slab);
  void assign_group(const abi::DecoderAssign& assign, const FieldPlan& field, std::string_view text,
                    abi::Record& record, Slab& slab);
  void assign_constant_text(const abi::DecoderAssign& assign, const FieldPlan& field,
                            abi::Record& record, Slab& slab);
  void assign_words(const abi::DecoderAssign& assign, const FieldPlan& field, std::string_view text,
                    abi::Record& record, Slab& slab);
  bool gpu_at(std::string_view address, int64_t& out) const;
  static void set_text(unsigned slot, std::string_view text, abi::Record& record, Slab& slab);

  std::shared_ptr<const abi::CompiledPack> pack_;
  FieldConverter converter_;
  SymbolId node_;
  std::map<int64_t, int> gpu_map_;
  std::vector<int> node_slot_;  // [kind]: the key field "node", or -1
  std::vector<int64_t> words_;  // scratch
};

}  // namespace reflex::stream
