// Rewriter: one JSON document -> the same document without names, times and texts.
//
// The same walk collects and rewrites, so that whatever is replaced has been collected: in the
// first pass the result is thrown away.
// Errors: none; what is not understood is dropped, never kept.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "runtime/anonymize/fields.h"
#include "runtime/anonymize/name_book.h"

namespace reflex::anonymize {

class Rewriter {
 public:
  using Json = nlohmann::ordered_json;
  Rewriter(NameBook& book, const std::set<std::string>& keep_fields)
      : book_(book), keep_fields_(keep_fields) {}

  [[nodiscard]] Json document(const Json& in);
  /// From now on unknown strings are looked up and what is dropped or kept is counted.
  void start_rewriting() { rewriting_ = true; }

  [[nodiscard]] const std::map<std::string, uint64_t>& dropped() const { return dropped_; }
  /// Words that were kept on purpose: they may also be the value of some label.
  [[nodiscard]] const std::set<std::string>& kept_words() const { return kept_; }

 private:
  [[nodiscard]] Json object(const Json& in, bool labels);
  [[nodiscard]] Json value(const std::string& key, Field field, const Json& in);
  [[nodiscard]] Json name(Field field, const Json& in, const std::string& key);
  [[nodiscard]] Json time(const Json& in);
  [[nodiscard]] Json unknown(const std::string& key, const Json& in);
  [[nodiscard]] Json word_text(const std::string& key, const std::string& text);
  [[nodiscard]] Json name_text(Field field, const std::string& key, const std::string& text);
  [[nodiscard]] Json place(const std::string& key, const Json& in);
  [[nodiscard]] std::string label_pair(const std::string& text);
  [[nodiscard]] std::string key_text(const std::string& key, bool label);
  Json drop(const std::string& key);

  NameBook& book_;
  const std::set<std::string>& keep_fields_;
  bool rewriting_ = false;
  std::map<std::string, uint64_t> dropped_;
  std::set<std::string> kept_;
};

}  // namespace reflex::anonymize
