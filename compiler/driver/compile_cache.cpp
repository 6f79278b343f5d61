// CompileCache: see compile_cache.h.
#include "compiler/driver/compile_cache.h"

#include <utility>

#include "compiler/ast/relocate.h"
#include "compiler/driver/compile.h"
#include "compiler/parse/parse.h"

namespace reflex::compiler {

std::optional<ast::Module> CompileCache::take(const source::SourceMap& map, source::FileId file) {
  const auto it = files_.find(map.path(file));
  if (it == files_.end()) {
    ++now_.files_parsed;
    return std::nullopt;
  }
  File known = std::move(it->second);
  bytes_ -= known.text.size();
  files_.erase(it);
  if (known.module.file != file) ast::relocate(known.module, {file, 0});
  if (known.text == map.text(file)) {
    ++now_.files_taken;
    return std::move(known.module);
  }
  if (parse::reparse(map, file, known.text, {}, known.module)) {
    ++now_.files_edited;
    return std::move(known.module);
  }
  ++now_.files_parsed;
  return std::nullopt;
}

void CompileCache::keep(Compilation&& done) {
  ++number_;
  const auto keep_module = [&](ast::Module& module) {
    const source::FileId file = module.file;
    File& kept = files_[std::string(done.sources.path(file))];
    bytes_ -= kept.text.size();
    kept = {std::string(done.sources.text(file)), std::move(module), number_};
    bytes_ += kept.text.size();
  };
  for (size_t i = 0; i < done.modules.size(); ++i) {
    if (done.has_syntax_findings[i] == 0) keep_module(done.modules[i]);
  }
  for (ast::Module& module : done.left_out) keep_module(module);
  done.modules.clear();
  done.left_out.clear();
  last_ = std::exchange(now_, {});
  shrink();
}

void CompileCache::shrink() {
  for (const bool old_ones : {true, false}) {
    for (auto it = files_.begin(); it != files_.end() && bytes_ > kTextMax;) {
      if (old_ones && it->second.used == number_) {
        ++it;
        continue;
      }
      bytes_ -= it->second.text.size();
      it = files_.erase(it);
    }
  }
}

}  // namespace reflex::compiler
