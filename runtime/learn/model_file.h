// Model files: abi::Model as JSON that people can read, diff and review like rules.
//
// Everything is by name (edges as "CAUSE -> SIGNAL on SCOPE"), in the order of the pack; beside
// each learned number stands the author's (`author`, ignored when read). Numbers that were not
// learned are left out. A model is bound to one pack set: another hash is refused with both hashes
// named, as are unknown names. What is written is read back bit for bit (property test).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/model.h"
#include "runtime/base/result.h"

namespace reflex::learn {

/// The name of each edge in a model file, [edge]; unique in the set.
std::vector<std::string> edge_names(const abi::CompiledPack& pack);

std::string to_json(const abi::Model& model, const abi::CompiledPack& pack);
/// `name` is the path, for messages. Sets Model::sha256 to the hash of `text`.
Result<abi::Model> parse_model(std::string_view text, const abi::CompiledPack& pack,
                               const std::string& name);
Result<abi::Model> load_model(const std::string& path, const abi::CompiledPack& pack);
/// Writes beside `path` and renames: a reader sees the old file or the new one.
Status save_model(const std::string& path, const abi::Model& model, const abi::CompiledPack& pack);

}  // namespace reflex::learn
