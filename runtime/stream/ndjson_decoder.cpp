// Lines of NDJSON: the template reader first, then the predictive reader, simdjson for the rest.
#include "runtime/stream/ndjson_decoder.h"

#include <cstring>
#include <string>

#include "runtime/stream/document_reader.h"
#include "runtime/stream/predictive_reader.h"
#include "runtime/stream/record_builder.h"
#include "runtime/stream/template_reader.h"

namespace reflex::stream {
namespace {

constexpr size_t kPaddingBytes = 64;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

class NdjsonDecoder::Impl {
 public:
  Impl(std::shared_ptr<const abi::CompiledPack> pack, RejectSink sink, bool predict)
      : sampler_(counters_, std::move(sink)),
        builder_(std::move(pack), counters_, sampler_),
        templates_(builder_),
        fast_(builder_),
        predict_(predict) {}

  void decode(std::string_view text, SymbolId source, uint64_t first_line, RecordBatch& out) {
    counters_.bytes += text.size();
    out.input = source;
    LineOrigin origin{source, first_line, {}};
    if (first_line == 1 && text.substr(0, 3) == kByteOrderMark) text.remove_prefix(3);
    const size_t last_newline = text.rfind('\n');
    const size_t whole = last_newline == std::string_view::npos ? 0 : last_newline + 1;
    decode_lines(text.data(), text.data() + whole, origin, out);
    if (whole == text.size()) return;
    // A last line without '\n': the readers need one, and spare bytes after it.
    tail_.assign(text.substr(whole));
    tail_ += '\n';
    tail_.append(kPaddingBytes, '\0');
    decode_lines(tail_.data(), tail_.data() + tail_.size() - kPaddingBytes, origin, out);
  }
  [[nodiscard]] const IngestCounters& counters() const { return counters_; }

 private:
  void decode_lines(const char* p, const char* end, LineOrigin& origin, RecordBatch& out) {
    for (; p < end; ++origin.line) {
      ++counters_.lines;
      if (abi::Record* record = predict_ ? templates_.read(p, origin, *out.slab) : nullptr) {
        ++counters_.events;
        counters_.unknown_fields += templates_.unknown_members();
        out.records.push_back(record);
        continue;
      }
      const char* next = predict_ ? fast_.read(p) : nullptr;
      if (next != nullptr && static_cast<size_t>(next - p) <= kLineBytesMax) {
        origin.text = {p, static_cast<size_t>(next - p) - 1};
        builder_.build_kind(fast_.kind(), fast_.members(), origin, out);
        templates_.observe(fast_);
        p = next;
        continue;
      }
      const void* newline = std::memchr(p, '\n', static_cast<size_t>(end - p));
      origin.text = {p, static_cast<size_t>(static_cast<const char*>(newline) - p)};
      p += origin.text.size() + 1;
      if (!is_blank(origin.text)) decode_document(origin, out);
    }
  }

  void decode_document(const LineOrigin& origin, RecordBatch& out) {
    Reject reason = Reject::kLineTooLong;
    if (origin.text.size() < kLineBytesMax) reason = slow_.read(origin.text, builder_);
    if (reason == Reject::kCount) {
      builder_.build(slow_.members(), origin, out);
    } else {
      sampler_.reject(reason, origin.source, origin.line, origin.text);
    }
  }

  IngestCounters counters_;
  RejectSampler sampler_;
  RecordBuilder builder_;
  TemplateReader templates_;
  PredictiveReader fast_;
  DocumentReader slow_;
  bool predict_;
  std::string tail_;
};

NdjsonDecoder::NdjsonDecoder(std::shared_ptr<const abi::CompiledPack> pack, RejectSink sink,
                             bool predict)
    : impl_(std::make_unique<Impl>(std::move(pack), std::move(sink), predict)) {}
NdjsonDecoder::~NdjsonDecoder() = default;

void NdjsonDecoder::decode(std::string_view text, SymbolId source, uint64_t first_line,
                           RecordBatch& out) {
  impl_->decode(text, source, first_line, out);
}
const IngestCounters& NdjsonDecoder::counters() const { return impl_->counters(); }

}  // namespace reflex::stream
