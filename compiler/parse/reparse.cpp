// reparse: an edit of a file, with the trees of what it did not touch; see parse.h.
//
// The bytes that changed lie between two declarations that did not. Parsed anew is from the second
// last declaration before the change to the first one behind it: the last one before it may have
// been continued, and the comment above the first one behind it is its text. That the parser comes
// out at the same places as before proves that nothing else changed.
#include <antlr4-runtime.h>

#include <algorithm>
#include <exception>
#include <iterator>

#include "compiler/ast/relocate.h"
#include "compiler/parse/parse_file.h"
#include "compiler/parse/tokens.h"

namespace reflex::parse {
namespace {

/// The declarations that one statement made: the rows of a table of tests have one span.
struct Group {
  size_t first = 0;
  size_t end = 0;  // one past the last
  source::Span span;
};

bool same_place(source::Span a, source::Span b) { return a.begin == b.begin && a.end == b.end; }

std::vector<Group> groups_of(const ast::Module& module) {
  std::vector<Group> groups;
  for (size_t i = 0; i < module.decls.size(); ++i) {
    const source::Span span = module.decls[i].span;
    if (groups.empty() || !same_place(groups.back().span, span)) groups.push_back({i, i, span});
    groups.back().end = i + 1;
  }
  return groups;
}

/// Where the last statement that belongs to the head ends, as far as it has a span.
uint32_t head_end(const ast::Module& module) {
  if (!module.head.has_value()) return 0;
  uint32_t end = module.head->span.end;
  for (const ast::Import& import : module.head->imports) end = std::max(end, import.span.end);
  for (const auto* settings : {&module.head->clock, &module.head->limits}) {
    for (const ast::Setting& s : *settings) {
      end = std::max(end, s.name.span.end);
      if (s.value != nullptr) end = std::max(end, s.value->span.end);
    }
  }
  return end;
}

struct Change {
  uint32_t before = 0;      // bytes that are the same at the beginning
  uint32_t old_behind = 0;  // where the bytes begin that are the same at the end
  uint32_t delta = 0;       // new size - old size, modulo 2^32
};

Change find_change(std::string_view old_text, std::string_view text) {
  const size_t least = std::min(old_text.size(), text.size());
  size_t before = 0;
  while (before < least && old_text[before] == text[before]) ++before;
  size_t behind = 0;
  while (behind < least - before &&
         old_text[old_text.size() - 1 - behind] == text[text.size() - 1 - behind]) {
    ++behind;
  }
  return {static_cast<uint32_t>(before), static_cast<uint32_t>(old_text.size() - behind),
          static_cast<uint32_t>(text.size()) - static_cast<uint32_t>(old_text.size())};
}

/// Parses a part of a file; nothing unless there is nothing to report.
std::optional<ast::Module> parse_part(const source::SourceMap& map, source::Span part,
                                      const Limits& limits) {
  diag::Sink sink;
  ast::Module module;
  module.file = part.file;
  try {
    Tokens tokens(map, part);
    if (!check_limits(tokens, limits, sink)) return std::nullopt;
    parse_file(tokens, sink, module);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  if (!sink.all().empty() || module.head.has_value()) return std::nullopt;
  return module;
}

}  // namespace

bool reparse(const source::SourceMap& map, source::FileId file, std::string_view old_text,
             const Limits& limits, ast::Module& module) {
  const std::string_view text = map.text(file);
  // A token has a byte at least: no count of tokens is needed.
  if (module.file != file || text.size() > limits.tokens_max) return false;
  diag::Sink scratch;
  if (!check_text(map, file, limits, scratch)) return false;
  const Change change = find_change(old_text, text);
  const std::vector<Group> groups = groups_of(module);
  const auto intact = static_cast<size_t>(std::count_if(
      groups.begin(), groups.end(), [&](const Group& g) { return g.span.end <= change.before; }));
  if (intact < 2) return false;
  const Group& first = groups[intact - 2];  // parsed for the sake of what follows it
  if (head_end(module) > first.span.begin) return false;
  const auto behind = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
    return g.span.begin >= change.old_behind;
  });
  const bool has_behind = behind != groups.end();
  const uint32_t end =
      has_behind ? behind->span.end + change.delta : static_cast<uint32_t>(text.size());
  auto part = parse_part(map, {file, first.span.begin, end}, limits);
  if (!part) return false;
  const std::vector<Group> fresh = groups_of(*part);
  if (fresh.empty() || !same_place(fresh.front().span, first.span)) return false;
  if (has_behind) {
    const source::Span expected{file, behind->span.begin + change.delta, end};
    if (!same_place(fresh.back().span, expected)) return false;
  }
  std::vector<ast::Decl> decls;
  const auto take = [&decls](std::vector<ast::Decl>& from, size_t begin, size_t stop) {
    std::move(from.begin() + static_cast<ptrdiff_t>(begin),
              from.begin() + static_cast<ptrdiff_t>(stop), std::back_inserter(decls));
  };
  take(module.decls, 0, first.end);
  take(part->decls, fresh.front().end, part->decls.size());
  const size_t moved = decls.size();
  if (has_behind) take(module.decls, behind->end, module.decls.size());
  for (size_t i = moved; i < decls.size(); ++i) ast::relocate(decls[i], {file, change.delta});
  module.decls = std::move(decls);
  return true;
}

}  // namespace reflex::parse
