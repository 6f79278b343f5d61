// See config_check.h.
#include "runtime/app/config_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>

#include "runtime/serve/http/access.h"
#include "runtime/serve/http/http_server.h"
#include "runtime/serve/ingest.h"
#include "runtime/serve/journal.h"
#include "runtime/serve/listen_address.h"
#include "runtime/serve/publisher.h"
#include "runtime/serve/set_loader.h"
#include "runtime/serve/sinks/sink.h"
#include "runtime/serve/sources/source.h"
#include "runtime/serve/store.h"

namespace reflex::app {
namespace {

namespace fs = std::filesystem;

/// A folder that is gone with the object.
class Scratch {
 public:
  Scratch() {
    std::error_code error;
    wanted_ = fs::temp_directory_path(error).string();
    if (error) wanted_ = "the folder for temporary files";
    std::string name = wanted_ + "/reflex_check_XXXXXX";
    if (!error && ::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& wanted() const { return wanted_; }

 private:
  std::string path_;  // "": it could not be made
  std::string wanted_;
};

class Checker {
 public:
  Checker(const serve::ReadConfig& read, CheckedFor what)
      : file_(read.file),
        config_(read.config),
        main_(config_.main),
        what_(what),
        problems_(read.problems) {}

  std::vector<std::string> run() {
    if (what_ == CheckedFor::kReport) packs();
    http();
    state();
    sources_and_sinks();
    serve::sort_problems(problems_, file_);
    return std::move(problems_);
  }

 private:
  void problem(const std::string& where, const std::string& cause, const std::string& fix) {
    problems_.push_back(fmt::format("{}: {}; {}", where, cause, fix));
  }
  void there(std::string_view key) {
    for (const auto& path : main_.texts(key)) {
      std::error_code none;
      if (path.empty() || fs::exists(path, none)) continue;
      problem(main_.place_of(key), fmt::format("{} names {}, which is not there", key, path),
              "name a file or folder that exists");
    }
  }

  void packs() {
    const bool paths = !main_.texts("packs.paths").empty();
    const bool manifest = !main_.text("packs.manifest").empty();
    if (!paths && !manifest) {
      problem(main_.place_of("packs.paths"), "no packs are named",
              "set packs.paths or packs.manifest");
    }
    if (paths && manifest) {
      problem(main_.place_of("packs.manifest"), "packs.paths and packs.manifest are both set",
              "keep one of them");
    }
    for (const char* key : {"packs.paths", "packs.manifest", "packs.profiles", "packs.model",
                            "packs.history", "packs.inventories"}) {
      there(key);
    }
    std::error_code none;
    if (manifest && fs::exists(main_.text("packs.manifest"), none)) {
      std::string sha256;
      const auto read = serve::read_manifest(main_.text("packs.manifest"), sha256);
      if (!read.ok())
        problem(main_.place_of("packs.manifest"), read.error().message, "mend the manifest");
    }
  }

  void http() {
    if (const auto& path = main_.text("http.tokens"); !path.empty()) {
      const auto tokens = serve::read_token_file(path);
      if (!tokens.ok())
        problem(main_.place_of("http.tokens"), tokens.error().message, "mend the file");
    }
    there("http.tls_cert");
    there("http.tls_key");
    const auto& cert = main_.text("http.tls_cert");
    const auto& key = main_.text("http.tls_key");
    std::error_code none;
    if (fs::exists(cert, none) && fs::exists(key, none)) {
      if (const auto status = serve::check_tls(cert, key); !status.ok())
        problem(main_.place_of("http.tls_cert"), status.error().message,
                "name a PEM file and its key");
    }
    const auto address = serve::parse_listen(main_.text("http.listen"));
    if (!address) return;  // was told by its value
    if (const auto status = serve::check_host(address->host); !status.ok())
      problem(main_.place_of("http.listen"), status.error().message,
              "write an address of this machine, like 127.0.0.1 or 0.0.0.0");
  }

  /// What stands there, or the nearest that does above it.
  static fs::path nearest(fs::path path) {
    std::error_code none;
    while (!fs::exists(path, none) && path.has_relative_path()) path = path.parent_path();
    return path;
  }

  void state() {
    std::error_code none;
    const fs::path above = nearest(main_.text("state_dir"));
    if (above != main_.text("state_dir") && !fs::is_directory(above, none)) {
      problem(main_.place_of("state_dir"),
              fmt::format("no folder can be made at {}: {} is a file", main_.text("state_dir"),
                          above.string()),
              "name another folder");
    }
    const fs::path store = main_.text("store.path");
    if (store.empty()) return;
    if (fs::is_directory(store, none)) {
      problem(main_.place_of("store.path"), fmt::format("{} is a folder", store.string()),
              "name a file in it");
    } else if (!fs::is_directory(store.parent_path(), none)) {
      problem(main_.place_of("store.path"),
              fmt::format("the folder of {} is not there", store.string()), "make it");
    } else if (!is_database(store)) {
      problem(main_.place_of("store.path"), fmt::format("{} is no SQLite database", store.string()),
              "name another file");
    }
  }

  /// Or nothing yet.
  static bool is_database(const fs::path& path) {
    constexpr std::string_view kMagic = "SQLite format 3";
    std::ifstream file(path, std::ios::binary);
    std::string begin(kMagic.size(), '\0');
    file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    return file.gcount() == 0 || begin == kMagic;
  }

  /// Where a file is written or read from; one that is not there yet may come.
  void file_of(const serve::ConfigTable& table) {
    const std::string& path = table.text("path");
    std::error_code none;
    if (fs::is_directory(path, none)) {
      problem(table.place_of("path"), fmt::format("{} is a folder", path), "name a file in it");
    } else if (table.text("type") == "file" &&
               !fs::is_directory(fs::path(path).parent_path(), none)) {
      problem(table.place_of("path"), fmt::format("the folder of {} is not there", path),
              "make it");
    }
  }

  void sources_and_sinks() {
    const Scratch scratch;
    if (scratch.path().empty()) {
      // A start makes them in a moment, where there is a folder for it.
      if (what_ == CheckedFor::kStart) return;
      return problem(scratch.wanted(), "no temporary folder can be made there",
                     "set TMPDIR to a folder that is writable");
    }
    serve::StoreOptions options;
    options.path = scratch.path() + "/store.db";
    auto store = serve::Store::open(options);
    std::vector<std::string> found;
    auto journal = serve::Journal::open({scratch.path() + "/journal", 1u << 20, nullptr}, found);
    if (!store.ok() || !journal.ok()) {
      const auto& error = store.ok() ? journal.error() : store.error();
      return problem(scratch.path(), error.message, "set TMPDIR to a folder that is writable");
    }
    serve::Publisher publisher(*store.value());
    serve::Ingest ingest(*journal.value(), {}, [] { return uint64_t{0}; });
    for (const auto& table : config_.sources) {
      if (table.text("type").empty()) continue;  // was told by its value
      if (!table.text("path").empty()) file_of(table);
      auto made = serve::make_source(table, ingest, nullptr);
      if (!made.ok())
        problem(table.place_of("type"), made.error().message, "mend this [[sources]]");
    }
    for (const auto& table : config_.sinks) {
      if (table.text("type").empty()) continue;
      if (!table.text("path").empty()) file_of(table);
      auto made = serve::make_sink(table, *store.value(), publisher);
      if (!made.ok()) problem(table.place_of("type"), made.error().message, "mend this [[sinks]]");
    }
  }

  const std::string& file_;
  const serve::Config& config_;
  const serve::ConfigTable& main_;
  const CheckedFor what_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> check_config(const serve::ReadConfig& read, CheckedFor what) {
  return Checker(read, what).run();
}

}  // namespace reflex::app
