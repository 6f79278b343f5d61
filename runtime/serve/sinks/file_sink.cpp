// Verdicts or alerts as NDJSON in a file, each once: what is valid of the file stands in the store,
// in the transaction that moves the cursor; what a crash left behind it is cut at the start.
// A file that the store knows nothing of (the store is new, the sink has another name) is not cut
// but for a line without end: it goes on behind what is there, and lines that it has are not
// written again. One that holds something else is left as it is: an error until another is named.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string_view>
#include <unordered_set>

#include "runtime/serve/sinks/sink.h"

namespace reflex::serve {
namespace {

class FileDelivery final : public Delivery {
 public:
  explicit FileDelivery(std::string path) : path_(std::move(path)) {}
  ~FileDelivery() override {
    if (fd_ >= 0) ::close(fd_);
  }

  reflex::Status begin(const SinkCursor* cursor) override {
    if (fd_ < 0) fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    struct stat info {};
    if (fd_ < 0 || ::fstat(fd_, &info) != 0) return failed();
    if (!S_ISREG(info.st_mode)) return Error{path_ + " is no file"};
    const auto size = static_cast<uint64_t>(info.st_size);
    if (cursor == nullptr) return go_on_behind(size);
    // Smaller: someone moved or cut it (rotation). It goes on at its end.
    return size < cursor->file_bytes ? go_on_at(size) : cut_to(cursor->file_bytes);
  }

  reflex::Status deliver(const SinkBatch& batch, SinkCursor& cursor) override {
    std::string text;
    const auto add = [&](const std::string& line) {
      if (!there_.contains(hash_of(line))) text += line + "\n";
    };
    for (const auto& verdict : batch.verdicts) add(verdict.json);
    for (const auto& alert : batch.alerts) add(alert.json);
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t wrote =
          ::pwrite(fd_, text.data() + done, text.size() - done, static_cast<off_t>(offset_ + done));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return undo();
      done += static_cast<size_t>(wrote);
    }
    if (::fdatasync(fd_) != 0) return undo();
    offset_ += text.size();
    cursor.file_bytes = offset_;
    return ok_status();
  }

 private:
  static size_t hash_of(std::string_view line) { return std::hash<std::string_view>()(line); }

  static bool is_ours(std::string_view line) {
    return line.starts_with('{') && line.find("\"schema\":\"reflex.") != std::string_view::npos;
  }

  reflex::Status go_on_at(uint64_t offset) {
    offset_ = offset;
    return ok_status();
  }
  reflex::Status cut_to(uint64_t bytes) {
    if (::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) return failed();
    return go_on_at(bytes);
  }

  /// Reads what is there, a piece at a time; memory: 8 bytes for each line.
  reflex::Status go_on_behind(uint64_t size) {
    std::string piece(1u << 20, '\0');
    std::string line;
    uint64_t whole = 0;  // bytes of whole lines
    there_.clear();
    for (uint64_t at = 0; at < size;) {
      const ssize_t got = ::pread(fd_, piece.data(), piece.size(), static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return failed();
      at += static_cast<uint64_t>(got);
      std::string_view text(piece.data(), static_cast<size_t>(got));
      for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
        line += text.substr(0, end);
        text.remove_prefix(end + 1);
        if (!is_ours(line)) return not_ours();
        whole += line.size() + 1;
        there_.insert(hash_of(line));
        line.clear();
      }
      line += text;
      // Why 64 MiB: an explanation of a large job is some hundred KiB.
      constexpr size_t kLineBytesMax = 64u << 20;
      if (line.size() > kLineBytesMax || (!line.empty() && line.front() != '{')) return not_ours();
    }
    return cut_to(whole);
  }

  reflex::Status not_ours() const {
    return Error{
        fmt::format("{} holds lines that are no verdicts or alerts: name another file, or "
                    "move it away",
                    path_)};
  }
  reflex::Status failed() const {
    return Error{fmt::format("{}: {}", path_, std::strerror(errno))};
  }
  reflex::Status undo() {
    auto status = failed();
    (void)!::ftruncate(fd_, static_cast<off_t>(offset_));
    return status;
  }

  std::string path_;
  int fd_ = -1;
  uint64_t offset_ = 0;
  std::unordered_set<size_t> there_;  // lines of before, where the store knew of none
};

}  // namespace

std::unique_ptr<Delivery> file_delivery(const std::string& path) {
  return std::make_unique<FileDelivery>(path);
}

}  // namespace reflex::serve
