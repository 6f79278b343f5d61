// Export as lines and as tar: see export.h. Source: POSIX.1-2017, pax, ustar interchange format.
#include "runtime/serve/http/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>

#include "runtime/explain/explain.h"

namespace reflex::serve {
namespace {

constexpr size_t kBlock = 512;

/// Verdicts one by one, a page at a time.
class Walk {
 public:
  Walk(Store& store, const VerdictFilter& filter) : store_(store), filter_(filter) {
    filter_.newest_first = false;
    filter_.limit = 16;
  }
  enum class Step : uint8_t { kVerdict, kEnd, kFailed };
  Step next(StoredVerdict& out) {
    if (waiting_.empty() && more_) {
      auto page = store_.verdicts(filter_);
      if (!page) return Step::kFailed;
      more_ = page.value().more;
      for (auto& verdict : page.value().verdicts) {
        filter_.after = verdict.sequence;
        waiting_.push_back(std::move(verdict));
      }
    }
    if (waiting_.empty()) return Step::kEnd;
    out = std::move(waiting_.front());
    waiting_.pop_front();
    return Step::kVerdict;
  }

 private:
  Store& store_;
  VerdictFilter filter_;
  std::deque<StoredVerdict> waiting_;
  bool more_ = true;
};

class Lines : public BodyStream {
 public:
  Lines(Store& store, const VerdictFilter& filter) : walk_(store, filter) {}
  bool next(std::string& piece) override {
    StoredVerdict verdict;
    switch (walk_.next(verdict)) {
      case Walk::Step::kVerdict:
        piece += verdict.json + "\n";
        return true;
      case Walk::Step::kEnd:
        return false;
      case Walk::Step::kFailed:
        break;
    }
    piece += "{\"error\":\"the store cannot be read; the export is not whole\"}\n";
    return false;
  }

 private:
  Walk walk_;
};

/// A name that is one part of a path on any system.
std::string safe_name(const std::string& text, size_t bytes_max) {
  std::string out = text.substr(0, bytes_max);
  for (char& c : out) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    if (!plain) c = '_';
  }
  if (out.empty() || out[0] == '.') out = "_" + out;
  return out;
}

class Tar : public BodyStream {
 public:
  Tar(Store& store, const VerdictFilter& filter) : walk_(store, filter) {}

  bool next(std::string& piece) override {
    StoredVerdict verdict;
    const auto step = walk_.next(verdict);
    if (step == Walk::Step::kVerdict) {
      const std::string name = fmt::format("{}/{:04}-{}", safe_name(verdict.incident, 60),
                                           verdict.revision, safe_name(verdict.id, 20));
      const int64_t seconds = std::max<int64_t>(0, verdict.ts_ns / 1'000'000'000);
      file(name + ".json", verdict.json + "\n", seconds, piece);
      if (auto read = explain::from_json(verdict.json)) {
        file(name + ".md", explain::to_markdown(read.value()), seconds, piece);
      }
      ++count_;
      return true;
    }
    if (step == Walk::Step::kEnd) {
      file("COUNT.txt", fmt::format("{} verdicts\n", count_), 0, piece);
      piece.append(2 * kBlock, '\0');
    }
    return false;
  }

 private:
  static void file(const std::string& name, const std::string& content, int64_t seconds,
                   std::string& out) {
    std::array<char, kBlock> head{};
    const auto put = [&](size_t at, const std::string& text) {
      std::memcpy(head.data() + at, text.data(), text.size());
    };
    put(0, name.substr(0, 99));
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    put(124, fmt::format("{:011o}", content.size()));
    put(136, fmt::format("{:011o}", seconds));
    put(148, "        ");  // the sum counts its own field as blanks
    head[156] = '0';
    put(257, "ustar");
    put(263, "00");
    unsigned sum = 0;
    for (const char c : head) sum += static_cast<unsigned char>(c);
    put(148, fmt::format("{:06o}", sum));
    head[154] = '\0';
    out.append(head.data(), head.size());
    out += content;
    out.append((kBlock - content.size() % kBlock) % kBlock, '\0');
  }

  Walk walk_;
  uint64_t count_ = 0;
};

}  // namespace

std::shared_ptr<BodyStream> export_lines(Store& store, const VerdictFilter& filter) {
  return std::make_shared<Lines>(store, filter);
}

std::shared_ptr<BodyStream> export_tar(Store& store, const VerdictFilter& filter) {
  return std::make_shared<Tar>(store, filter);
}

}  // namespace reflex::serve
