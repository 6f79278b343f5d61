// The three passes over all files; see anonymize.h.
#include "runtime/anonymize/anonymize.h"

#include <openssl/rand.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/anonymize/byte_sink.h"
#include "runtime/anonymize/rewriter.h"
#include "runtime/anonymize/survivors.h"
#include "runtime/stream/byte_source.h"
#include "runtime/stream/line_source.h"

namespace reflex::anonymize {
namespace {

namespace fs = std::filesystem;
using Json = Rewriter::Json;

constexpr size_t kChunkBytes = 1u << 20;
// Why: an event is flat; the walk recurses once a level.
constexpr unsigned kDepthMax = 64;
// Why: an inventory of 100,000 nodes is some 30 MB.
constexpr size_t kInventoryBytesMax = 512u << 20;

/// Whether brackets nest deeper than an event does, strings left out.
bool too_deep(std::string_view text) {
  unsigned depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDepthMax) return true;
    } else if (c == '}' || c == ']') {
      if (depth > 0) --depth;
    }
  }
  return false;
}

/// `indent` -1: one line.
std::string dumped(const Json& j, int indent) {
  return j.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

struct File {
  std::string input;
  std::string output;
  bool lines = true;  // NDJSON; else one document
};

class Run {
 public:
  explicit Run(const Options& options)
      : options_(options),
        keep_(options.keep_fields.begin(), options.keep_fields.end()),
        allow_(options.allow_words.begin(), options.allow_words.end()),
        pseudonyms_(options.key),
        book_(pseudonyms_),
        rewriter_(book_, keep_) {}

  Result<Report> run() {
    if (auto s = plan(); !s.ok()) return s.error();
    for (const File& f : files_) {
      if (auto s = read(f, nullptr); !s.ok()) return s.error();
    }
    rewriter_.start_rewriting();
    report_.lines = report_.bad_lines = 0;
    for (const File& f : files_) {
      if (auto s = rewrite(f); !s.ok()) return s.error();
    }
    if (auto s = check(); !s.ok()) return s.error();
    if (auto s = write_mapping(); !s.ok()) return s.error();
    for (size_t k = 0; k < static_cast<size_t>(NameKind::kCount); ++k) {
      const auto& names = book_.names(static_cast<NameKind>(k));
      if (!names.empty()) report_.names[std::string(word(static_cast<NameKind>(k)))] = names.size();
    }
    report_.ids = book_.id_count();
    report_.dropped = rewriter_.dropped();
    return std::move(report_);
  }

 private:
  /// Output names say nothing: the names of inputs may hold the name of the site.
  Status plan() {
    const auto add = [&](const std::vector<std::string>& inputs, const std::string& stem,
                         const std::string& extension, bool lines) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        const std::string number = i == 0 ? "" : "-" + std::to_string(i + 1);
        const Packing packing = packing_of(inputs[i]);
        files_.push_back(
            {inputs[i],
             options_.output_dir + "/" + stem + number + extension + std::string(suffix(packing)),
             lines});
      }
    };
    add(options_.inventories, "inventory", ".json", false);
    add(options_.events, "events", ".ndjson", true);
    add(options_.labels, "labels", ".ndjson", true);
    for (const File& f : files_) {
      std::error_code none;
      if (f.input == "-") return Error{"anonymize reads its input twice: give a file, not -"};
      if (!fs::is_regular_file(f.input, none)) {
        return Error{f.input + ": no such file (anonymize reads its input twice)"};
      }
      if (fs::exists(f.output, none)) return Error{f.output + " exists; give an empty folder"};
    }
    std::error_code error;
    fs::create_directories(options_.output_dir, error);
    if (error) return Error{"cannot make " + options_.output_dir + ": " + error.message()};
    return ok_status();
  }

  Status rewrite(const File& f) {
    auto sink = open_sink(f.output, packing_of(f.input));
    if (!sink.ok()) return sink.error();
    if (auto s = read(f, sink.value().get()); !s.ok()) return s;
    report_.files.push_back(f.output);
    return sink.value()->close();
  }

  /// Walks a file; `out` null: only to collect names.
  Status read(const File& f, ByteSink* out) {
    return f.lines ? read_lines(f, out) : read_document(f, out);
  }

  Status read_lines(const File& f, ByteSink* out) {
    auto lines = stream::open_lines(f.input);
    if (!lines.ok()) return lines.error();
    std::string written;
    for (;;) {
      auto chunk = lines.value()->next(kChunkBytes);
      if (!chunk.ok()) return Error(chunk.error()).in(f.input);
      report_.bad_lines += chunk.value().lines_too_long;
      std::string_view text = chunk.value().text;
      if (text.empty()) return ok_status();
      written.clear();
      while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        one_line(text.substr(0, end), out ? &written : nullptr);
        text.remove_prefix(std::min(end + 1, text.size()));
      }
      if (out) out->write(written);
    }
  }

  void one_line(std::string_view line, std::string* out) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    ++report_.lines;
    const Json in = too_deep(line) ? Json() : Json::parse(line, nullptr, false);
    if (!in.is_object()) {
      ++report_.bad_lines;
      return;
    }
    const Json result = rewriter_.document(in);
    if (out) *out += dumped(result, -1);
  }

  Status read_document(const File& f, ByteSink* out) {
    auto bytes = stream::open_bytes(f.input);
    if (!bytes.ok()) return bytes.error();
    std::string text;
    std::vector<char> block(kChunkBytes);
    for (;;) {
      auto n = bytes.value()->read(block.data(), block.size());
      if (!n.ok()) return Error(n.error()).in(f.input);
      if (n.value() == 0) break;
      text.append(block.data(), n.value());
      if (text.size() > kInventoryBytesMax) return Error{f.input + ": more than 512 MiB"};
    }
    const Json in = too_deep(text) ? Json() : Json::parse(text, nullptr, false);
    if (!in.is_object()) return Error{f.input + ": not a JSON object"};
    const Json result = rewriter_.document(in);
    // Why indented: the check reads lines, and one line would be longer than a line may be.
    if (out) out->write(dumped(result, 0));
    return ok_status();
  }

  /// Reads back what is on disk, as whoever gets it will.
  Status check() {
    const SurvivorSearch search(book_, rewriter_.kept_words(), allow_);
    report_.names_by_whole_string = search.by_whole_string();
    for (const std::string& path : report_.files) {
      auto lines = stream::open_lines(path);
      if (!lines.ok()) return lines.error();
      for (;;) {
        auto chunk = lines.value()->next(kChunkBytes);
        if (!chunk.ok()) return Error(chunk.error()).in(path);
        if (chunk.value().lines_too_long > 0) {
          return Error{path + ": a line is too long to be checked; do not share it"};
        }
        if (chunk.value().text.empty()) break;
        search.search(chunk.value().text, chunk.value().first_line, path, report_.survivors);
      }
    }
    return ok_status();
  }

  Status write_mapping() {
    if (options_.mapping_path.empty()) return ok_status();
    auto sink = open_sink(options_.mapping_path, Packing::kPlain);
    if (!sink.ok()) return sink.error();
    for (size_t k = 0; k < static_cast<size_t>(NameKind::kCount); ++k) {
      for (const auto& [name, pseudonym] : book_.names(static_cast<NameKind>(k))) {
        sink.value()->write(std::string(word(static_cast<NameKind>(k))) + "\t" + name + "\t" +
                            pseudonym + "\n");
      }
    }
    return sink.value()->close();
  }

  const Options& options_;
  std::set<std::string> keep_;
  std::set<std::string> allow_;
  Pseudonyms pseudonyms_;
  NameBook book_;
  Rewriter rewriter_;
  std::vector<File> files_;
  Report report_;
};

}  // namespace

Result<Report> anonymize(const Options& options) {
  if (options.key.size() < kKeyBytesMin) {
    return Error{"the key is shorter than 16 bytes; make one with: head -c 32 /dev/urandom"};
  }
  return Run(options).run();
}

Result<std::string> read_key(const std::string& path) {
  std::string key;
  if (path.empty()) {
    key.resize(32);
    if (RAND_bytes(reinterpret_cast<unsigned char*>(key.data()), static_cast<int>(key.size())) !=
        1) {
      return Error{"no random bytes for a key"};
    }
    return key;
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{"cannot read the key file " + path};
  key.assign(std::istreambuf_iterator<char>(in), {});
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
  return key;
}

}  // namespace reflex::anonymize
