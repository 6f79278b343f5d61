// simdjson behind our types. Every member is iterated, so that a syntax error anywhere at the top
// level rejects the line; nested values of keys that nobody asked for are only skipped.
#include "runtime/stream/document_reader.h"

#include <simdjson.h>

#include <deque>
#include <vector>

namespace reflex::stream {
namespace {

using simdjson::error_code;
namespace ondemand = simdjson::ondemand;

std::string_view trim(std::string_view token) {
  const size_t last = token.find_last_not_of(" \t\r\n");
  return token.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

Reject reason_of(error_code code, std::string_view line) {
  if (line.find('\0') != std::string_view::npos) return Reject::kBinary;
  return code == simdjson::UTF8_ERROR ? Reject::kBadUtf8 : Reject::kBadJson;
}

}  // namespace

class DocumentReader::Impl {
 public:
  Reject read(std::string_view line, const RecordBuilder* keys) {
    members_.clear();
    pools_used_ = 0;
    ondemand::document document;
    error_code code =
        parser_.iterate(line.data(), line.size(), line.size() + simdjson::SIMDJSON_PADDING)
            .get(document);
    if (code != simdjson::SUCCESS) return reason_of(code, line);
    ondemand::json_type type;
    code = document.type().get(type);
    if (code != simdjson::SUCCESS) return reason_of(code, line);
    if (type != ondemand::json_type::object) return Reject::kNotObject;
    ondemand::object object;
    code = document.get_object().get(object);
    if (code == simdjson::SUCCESS) code = read_members(object, keys);
    if (code != simdjson::SUCCESS) return reason_of(code, line);
    const char* rest = nullptr;
    if (document.current_location().get(rest) == simdjson::SUCCESS) return Reject::kBadJson;
    return Reject::kCount;
  }
  [[nodiscard]] std::span<const JsonValue> members() const { return members_; }

 private:
  error_code read_members(ondemand::object& object, const RecordBuilder* keys) {
    for (auto field : object) {
      std::string_view name;
      if (const error_code code = field.unescaped_key().get(name)) return code;
      ondemand::value value;
      if (const error_code code = field.value().get(value)) return code;
      JsonValue member;
      if (keys != nullptr) {
        member.key = keys->find_key(name);
      } else {
        JsonValue pair_name;
        pair_name.type = JsonType::kString;
        pair_name.text = name;
        members_.push_back(pair_name);
      }
      const bool wants_items = member.key >= kFirstFieldKey || keys == nullptr;
      if (const error_code code = read_value(value, wants_items, member)) return code;
      members_.push_back(member);
    }
    return simdjson::SUCCESS;
  }

  error_code read_value(ondemand::value& value, bool wants_items, JsonValue& out) {
    ondemand::json_type type;
    if (const error_code code = value.type().get(type)) return code;
    switch (type) {
      case ondemand::json_type::string:
        out.type = JsonType::kString;
        return value.get_string().get(out.text);
      case ondemand::json_type::array:
        out.type = JsonType::kArray;
        return wants_items ? read_array(value, out) : simdjson::SUCCESS;
      case ondemand::json_type::object:
        out.type = JsonType::kObject;
        return wants_items ? read_object(value, out) : simdjson::SUCCESS;
      default:
        return scan_scalar(trim(value.raw_json_token()), out) ? simdjson::SUCCESS
                                                              : simdjson::TAPE_ERROR;
    }
  }

  error_code read_array(ondemand::value& value, JsonValue& out) {
    out.items = new_items();
    ondemand::array array;
    if (const error_code code = value.get_array().get(array)) return code;
    for (auto element : array) {
      ondemand::value item;
      if (const error_code code = element.get(item)) return code;
      JsonValue parsed;
      if (const error_code code = read_value(item, false, parsed)) return code;
      out.items->push_back(parsed);
    }
    return simdjson::SUCCESS;
  }

  error_code read_object(ondemand::value& value, JsonValue& out) {
    out.items = new_items();
    ondemand::object object;
    if (const error_code code = value.get_object().get(object)) return code;
    for (auto field : object) {
      JsonValue name;
      name.type = JsonType::kString;
      if (const error_code code = field.unescaped_key().get(name.text)) return code;
      ondemand::value item;
      if (const error_code code = field.value().get(item)) return code;
      JsonValue parsed;
      if (const error_code code = read_value(item, false, parsed)) return code;
      out.items->push_back(name);
      out.items->push_back(parsed);
    }
    return simdjson::SUCCESS;
  }

  std::vector<JsonValue>* new_items() {
    if (pools_used_ == pools_.size()) pools_.emplace_back();
    std::vector<JsonValue>* items = &pools_[pools_used_++];
    items->clear();
    return items;
  }

  ondemand::parser parser_;
  std::vector<JsonValue> members_;
  std::deque<std::vector<JsonValue>> pools_;  // a deque: items pointers stay valid
  size_t pools_used_ = 0;
};

DocumentReader::DocumentReader() : impl_(std::make_unique<Impl>()) {}
DocumentReader::~DocumentReader() = default;
Reject DocumentReader::read(std::string_view line, const RecordBuilder& keys) {
  return impl_->read(line, &keys);
}
Reject DocumentReader::read_pairs(std::string_view line) { return impl_->read(line, nullptr); }
std::span<const JsonValue> DocumentReader::members() const { return impl_->members(); }

}  // namespace reflex::stream
