// A small compiled pack made by hand: the kinds, enums and decoders that the stream tests use.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/abi/compiled_pack.h"

namespace reflex::stream::testing {

inline abi::Type type_of(abi::Scalar scalar) {
  abi::Type type;
  type.scalar = scalar;
  return type;
}
inline abi::FieldSchema field(std::string name, abi::Type type) {
  abi::FieldSchema schema;
  schema.name = std::move(name);
  schema.type = type;
  return schema;
}
inline abi::FieldSchema key(std::string name, bool optional = false, bool index = false) {
  abi::FieldSchema schema = field(std::move(name), type_of(abi::Scalar::kEntity));
  schema.is_key = true;
  schema.type.optional = optional;
  schema.type.gpu_index = index;
  return schema;
}
inline abi::KindSchema kind(std::string name, std::vector<abi::FieldSchema> fields,
                            bool builtin = false) {
  abi::KindSchema schema;
  schema.name = std::move(name);
  schema.fields = std::move(fields);
  schema.builtin = builtin;
  return schema;
}

inline std::vector<abi::KindSchema> builtin_kinds() {
  using abi::Scalar;
  const abi::Type array = type_of(Scalar::kArray);
  const abi::Type word = type_of(Scalar::kEnum);
  return {
      kind("node.labels", {key("node"), field("labels", array)}, true),
      kind("job.start", {key("job"), field("nodes", array)}, true),
      kind("job.nodes", {key("job"), field("nodes", array)}, true),
      kind("job.end", {key("job"), field("status", word)}, true),
      kind("node.repaired", {key("node"), field("parts", array)}, true),
      kind("gpu.replaced", {key("node"), key("gpu", false, true)}, true),
      kind("maint.start", {key("node", true), key("rack", true), key("tor", true)}, true),
      kind("maint.end", {key("node", true), key("rack", true), key("tor", true)}, true),
      kind("incident.open", {field("incident", word), key("job"), field("symptom", word)}, true),
  };
}

/// Builtin kinds, then gpu.xid (9), gpu.ecc (10), nccl.timeout (11), bench.event (12).
inline std::shared_ptr<abi::CompiledPack> make_pack() {
  using abi::Scalar;
  auto pack = std::make_shared<abi::CompiledPack>();
  pack->symbols = std::make_shared<SymbolTable>();
  pack->entity_types = {{"node"}, {"gpu"}, {"job"}};
  pack->kinds = builtin_kinds();
  abi::Type five = type_of(Scalar::kArray);
  five.array_bound = 5;
  abi::KindSchema xid =
      kind("gpu.xid", {key("node"), key("gpu", true, true), field("code", type_of(Scalar::kInt)),
                       field("pid", type_of(Scalar::kInt)), field("reg", five),
                       field("text", type_of(Scalar::kString))});
  xid.aliases.push_back({"xid", {}, {}, {}});
  pack->kinds.push_back(xid);
  abi::Type declared = type_of(Scalar::kEnum);
  declared.enum_id = 1;
  pack->enums.resize(2);
  pack->enums[1].words = {"corrected", "uncorrected", "other"};
  for (const std::string& word : pack->enums[1].words) {
    pack->enums[1].symbols.push_back(pack->symbols->intern(word));
  }
  abi::KindSchema ecc = kind(
      "gpu.ecc", {key("node"), key("gpu", true, true), field("type", declared),
                  field("total", type_of(Scalar::kInt)), field("fatal", type_of(Scalar::kBool))});
  ecc.aliases.push_back({"site.ecc",
                         {{0, "host"}, {3, "count"}, {abi::KindAlias::kTs, "stamp"}},
                         {{2, pack->symbols->intern("corrected"), ""}},
                         {}});
  pack->kinds.push_back(ecc);
  pack->kinds.push_back(
      kind("nccl.timeout",
           {key("job"), key("node", true), field("rank", type_of(Scalar::kInt)),
            field("op", type_of(Scalar::kEnum)), field("waited", type_of(Scalar::kDuration)),
            field("at", type_of(Scalar::kInstant))}));
  abi::KindSchema bench =
      kind("bench.event",
           {key("node"), key("job", true), key("gpu", true, true),
            field("code", type_of(Scalar::kInt)), field("value", type_of(Scalar::kReal)),
            field("severity", type_of(Scalar::kInt)), field("msg", type_of(Scalar::kString))});
  bench.fields.back().used = false;
  pack->kinds.push_back(bench);
  return pack;
}

inline constexpr uint16_t kXid = 9;
inline constexpr uint16_t kEcc = 10;
inline constexpr uint16_t kNcclTimeout = 11;
inline constexpr uint16_t kBenchEvent = 12;

/// Text with the spare bytes that decoders may read.
class PaddedText {
 public:
  explicit PaddedText(std::string_view text) : size_(text.size()), bytes_(text) {
    bytes_.append(64, '\0');
  }
  [[nodiscard]] std::string_view view() const { return {bytes_.data(), size_}; }

 private:
  size_t size_;
  std::string bytes_;
};

/// A record as text, names instead of ids: what tests compare.
std::string show(const abi::Record& record, const abi::CompiledPack& pack);

}  // namespace reflex::stream::testing
