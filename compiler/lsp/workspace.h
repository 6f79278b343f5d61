// Workspace: the texts that the server knows, from disk and from the editor, and what they mean.
//
// Contract: every .rfx at or below the roots, and every open document wherever it lies, is one set
// of packs. The text of an open document wins over the disk; closing it returns to the disk. Hidden
// folders and node_modules are left out. With `paths` only these folders of each root are read.
// `index`, `check` and `lines` are fresh after every change. Disk errors make a file absent.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "compiler/driver/session.h"
#include "compiler/lsp/index.h"
#include "compiler/lsp/text_lines.h"

namespace reflex::lsp {

/// What the last set without errors costs, by the full name of the signal.
struct SignalFacts {
  uint32_t bytes_per_key = 0;
  int64_t horizon_ns = 0;
};

class Workspace {
 public:
  Workspace();

  void set_roots(std::vector<std::string> roots, std::vector<std::string> paths);
  [[nodiscard]] const std::vector<std::string>& roots() const { return roots_; }
  /// Reads the disk again: files that came, went or changed.
  void rescan();
  /// One file of the disk changed, came or went.
  void refresh(const std::string& path);

  struct Document {
    std::string uri;
    std::string text;
    int64_t version = 0;
  };
  void open(const std::string& uri, std::string text, int64_t version);
  void change(const std::string& uri, std::string text, int64_t version);
  void close(const std::string& uri);
  [[nodiscard]] const Document* document(const std::string& uri) const;
  [[nodiscard]] const std::map<std::string, Document>& documents() const { return documents_; }

  /// The name under which a URI stands in the session.
  [[nodiscard]] static std::string path_of(const std::string& uri);
  /// The URI that the client knows for a path.
  [[nodiscard]] std::string uri_of(const std::string& path) const;
  [[nodiscard]] std::optional<FileId> file_of(const std::string& uri) const;
  [[nodiscard]] std::string uri_of(FileId file) const;

  [[nodiscard]] const compiler::Session& session() const { return session_; }
  const compiler::Session::Check& check();
  const Index& index();
  const TextLines& lines(FileId file);
  [[nodiscard]] std::string_view text(FileId file) const { return session_.sources().text(file); }
  [[nodiscard]] const std::map<std::string, SignalFacts>& facts() const { return facts_; }
  /// Every text, for commands that compile.
  [[nodiscard]] std::vector<compiler::InMemoryFile> files() const;
  /// Changes with every text.
  [[nodiscard]] uint64_t generation() const { return generation_; }

 private:
  void put(const std::string& path, std::string text);
  void drop(const std::string& path);
  void changed();
  [[nodiscard]] bool is_ours(const std::string& path) const;

  compiler::Session session_;
  std::vector<std::string> roots_;
  std::vector<std::string> paths_;
  std::map<std::string, Document> documents_;  // by path
  std::unique_ptr<Index> index_;
  std::map<FileId, TextLines> lines_;
  std::map<std::string, SignalFacts> facts_;
  uint64_t generation_ = 0;
};

}  // namespace reflex::lsp
