// Verdicts or alerts as NDJSON in a file, each once: what is valid of the file stands in the store,
// in the transaction that moves the cursor; what a crash left behind it is cut at the start.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/serve/sinks/sink.h"

namespace reflex::serve {
namespace {

class FileDelivery final : public Delivery {
 public:
  explicit FileDelivery(std::string path) : path_(std::move(path)) {}
  ~FileDelivery() override {
    if (fd_ >= 0) ::close(fd_);
  }

  reflex::Status begin(const SinkCursor& cursor) override {
    if (fd_ < 0) fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    struct stat info {};
    if (fd_ < 0 || ::fstat(fd_, &info) != 0) return failed();
    const auto size = static_cast<uint64_t>(info.st_size);
    if (size < cursor.file_bytes) {
      // Someone moved or cut it (rotation): go on at its end, nothing is written twice.
      offset_ = size;
      return ok_status();
    }
    if (::ftruncate(fd_, static_cast<off_t>(cursor.file_bytes)) != 0) return failed();
    offset_ = cursor.file_bytes;
    return ok_status();
  }

  reflex::Status deliver(const SinkBatch& batch, SinkCursor& cursor) override {
    std::string text;
    for (const auto& verdict : batch.verdicts) text += verdict.json + "\n";
    for (const auto& alert : batch.alerts) text += alert.json + "\n";
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
};

}  // namespace

std::unique_ptr<Delivery> file_delivery(const std::string& path) {
  return std::make_unique<FileDelivery>(path);
}

}  // namespace reflex::serve
