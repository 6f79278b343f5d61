// Lines of a node's log -> records. See the header for the steps of a line.
#include "runtime/stream/log_decoder.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "runtime/base/time.h"
#include "runtime/stream/document_reader.h"
#include "runtime/stream/field_convert.h"
#include "runtime/stream/line_matcher.h"
#include "runtime/stream/log_clock.h"
#include "runtime/stream/log_prefix.h"
#include "runtime/stream/log_record.h"
#include "runtime/stream/reject_sampler.h"

namespace reflex::stream {
namespace {

constexpr size_t kPaddingBytes = 64;
constexpr size_t kCandidateSetsMax = 4096;  // Why: bounds memory; logs show some hundreds

/// Removes ANSI escape sequences (ECMA-48: ESC '[' parameters final, or ESC and one character).
void strip_escapes(std::string_view line, std::string& out) {
  out.clear();
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      out += line[i];
      continue;
    }
    if (++i >= line.size() || line[i] != '[') continue;
    while (i + 1 < line.size() && (line[i + 1] < '@' || line[i + 1] > '~')) ++i;
    ++i;
  }
}

}  // namespace

class LogDecoder::Impl {
 public:
  Impl(std::shared_ptr<const abi::CompiledPack> pack, SymbolId node, SymbolId source,
       const LogOptions& options, RejectSink sink, std::shared_ptr<const LineMatcher> patterns)
      : options_(options),
        source_(source),
        sampler_(counters_, std::move(sink)),
        patterns_(patterns ? std::move(patterns) : compile_line_patterns(*pack)),
        matcher_(*patterns_),
        builder_(pack, node, options_),
        clock_(options_, notices_) {}

  void decode(std::string_view text, uint64_t first_line, RecordBatch& out) {
    out.input = source_;
    if (text.empty()) return;
    counters_.bytes += text.size();
    const bool has_escapes = std::memchr(text.data(), '\x1b', text.size()) != nullptr;
    const bool has_nuls = std::memchr(text.data(), '\0', text.size()) != nullptr;
    for (uint64_t number = first_line; !text.empty(); ++number) {
      const size_t newline = text.find('\n');
      std::string_view line = text.substr(0, newline);
      text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
      ++counters_.lines;
      if (line.size() > kLineBytesMax) {
        sampler_.reject(Reject::kLineTooLong, source_, number, line);
        continue;
      }
      if (has_nuls && line.find('\0') != std::string_view::npos) {
        sampler_.reject(Reject::kBinary, source_, number, line);
        continue;
      }
      if (has_escapes && line.find('\x1b') != std::string_view::npos) {
        strip_escapes(line, plain_);
        line = plain_;
      }
      while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
      if (!line.empty()) decode_line(line, number, out);
    }
  }
  [[nodiscard]] const IngestCounters& counters() const { return counters_; }
  [[nodiscard]] const std::vector<std::string>& notices() const { return notices_; }

  void save(StateWriter& writer) const {
    writer.begin("log");
    writer.i64(options_.year);
    writer.i64(options_.boot_ns);
    writer.i64(options_.base_ns);
    clock_.save(writer);
    writer.flag(in_kmsg_);
    writer.flag(said_user_space_);
    writer.text(last_matched_);
    writer.u64(notices_.size());
    for (const std::string& notice : notices_) writer.text(notice);
    writer.u64(fold_chance_);
    const uint64_t count = std::min<uint64_t>(remembered_, recent_.size());
    writer.u64(count);
    for (uint64_t age = count; age > 0; --age) {
      const Recent& entry = recent(age);
      writer.text(entry.message);
      writer.i64(entry.ns);
      writer.u64(entry.number);
      writer.flag(entry.consumed);
      writer.flag(entry.user_space);
    }
    writer.end();
  }

  void use(std::shared_ptr<const abi::CompiledPack> pack, RejectSink sink) {
    builder_.use(std::move(pack));
    sampler_.set_sink(std::move(sink));
  }

  Status load(StateReader& reader) {
    if (!reader.enter("log")) return Error{"the state of a log is damaged"};
    const int64_t year = reader.i64();
    options_.year = year >= 0 && year < 10'000 ? static_cast<int>(year) : 0;
    options_.boot_ns = reader.i64();
    options_.base_ns = reader.i64();
    clock_.load(reader);
    in_kmsg_ = reader.flag();
    said_user_space_ = reader.flag();
    last_matched_ = reader.text();
    for (size_t left = reader.count(); left > 0 && !reader.failed(); --left) {
      notices_.emplace_back(reader.text());
    }
    // Fold patterns are those of this pack set: what its guard words say of the lines is asked anew.
    fold_chance_ = std::min(static_cast<unsigned>(reader.bounded(UINT32_MAX)), matcher_.fold_max());
    for (size_t left = reader.count(5); left > 0 && !reader.failed(); --left) {
      const std::string message(reader.text());
      const int64_t ns = reader.i64();
      const uint64_t number = reader.u64();
      const bool consumed = reader.flag();
      const bool user_space = reader.flag();
      if (matcher_.folds().empty()) continue;
      matcher_.find_atoms(message, atoms_);
      recent_.resize(matcher_.fold_max());
      recent_[remembered_++ % recent_.size()] = {message,  ns,        number, guards_of_atoms(),
                                                 consumed, user_space};
    }
    reader.leave();
    return reader.failed() ? Status(Error{"the state of a log is damaged"}) : ok_status();
  }

 private:
  /// A physical line that a folded pattern may still need.
  struct Recent {
    std::string message;
    int64_t ns = 0;
    uint64_t number = 0;
    uint64_t guards = 0;  // bit i: guard word of fold pattern i stands in it
    bool consumed = false;
    bool user_space = false;
  };

  void decode_line(std::string_view line, uint64_t number, RecordBatch& out) {
    if (in_kmsg_ && line.front() == ' ') return;  // " SUBSYSTEM=pci": belongs to the line before
    int64_t envelope_ns = kNoTimeNs;
    bool envelope_user = false;
    if (line.front() == '{') line = open_envelope(line, envelope_ns, envelope_user);
    LogPrefix prefix = read_prefix(line);
    in_kmsg_ = prefix.kmsg;
    user_space_ = prefix.user_space || envelope_user;
    if (envelope_ns != kNoTimeNs) {
      prefix.stamp = StampKind::kAbsolute;
      prefix.ns = envelope_ns;
    }
    const int64_t ns = clock_.resolve(prefix);
    std::string_view message = prefix.message;
    const uint32_t times = unwrap_repeats(message);
    if (message.empty() && times > 1) message = last_matched_;
    if (message.empty()) return;
    match(message, ns, number, times - 1, out);
  }

  /// {"log":"..","time":".."} of container runtimes, {"MESSAGE":..,"__REALTIME_TIMESTAMP":..} of
  /// the journal: the text inside. Anything else is a line as it is.
  std::string_view open_envelope(std::string_view line, int64_t& ns, bool& user_space) {
    json_.assign(line);
    json_.append(kPaddingBytes, '\0');
    if (envelope_.read_pairs({json_.data(), line.size()}) != Reject::kCount) return line;
    const std::span<const JsonValue> pairs = envelope_.members();
    bool found = false;
    for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
      const std::string_view name = pairs[i].text;
      const JsonValue& value = pairs[i + 1];
      if (name == "MESSAGE" || name == "log" || name == "message" || name == "msg") {
        found = envelope_text(value) || found;
      } else if (name == "_TRANSPORT" || name == "_PID" || name == "SYSLOG_FACILITY") {
        user_space |= !is_of_kernel(name, value.text);
      } else if (name == "__REALTIME_TIMESTAMP" && value.type == JsonType::kString) {
        int64_t us = 0;
        if (parse_integer(value.text, 10, us) && us >= 0 && us < INT64_MAX / kNsPerUs) {
          ns = us * kNsPerUs;
        }
      } else if (name == "time" || name == "timestamp" || name == "@timestamp" || name == "ts") {
        if (value.type != JsonType::kString) continue;
        if (const auto parsed = parse_rfc3339(value.text); parsed) ns = parsed->ns;
      }
    }
    return found ? std::string_view(envelope_text_) : line;
  }

  /// Whether a field of the journal lets the kernel be the writer: its lines have no pid, and what
  /// a process writes to /dev/kmsg has another facility. Source: systemd.journal-fields(7).
  static bool is_of_kernel(std::string_view name, std::string_view value) {
    if (name == "_TRANSPORT") return value == "kernel";
    return name == "SYSLOG_FACILITY" && value == "0";
  }

  /// A string, or the array of bytes by which the journal writes text that is not UTF-8.
  bool envelope_text(const JsonValue& value) {
    if (value.type == JsonType::kString) {
      envelope_text_ = value.text;
    } else if (value.type == JsonType::kArray && value.items != nullptr) {
      envelope_text_.clear();
      for (const JsonValue& item : *value.items) {
        if (item.type == JsonType::kInt) envelope_text_ += static_cast<char>(item.i64);
      }
    } else {
      return false;
    }
    while (!envelope_text_.empty() && envelope_text_.back() == '\n') envelope_text_.pop_back();
    return true;
  }

  /// The first pattern in declaration order that matches: each on the line alone, a folded one then
  /// on the last lines as well.
  void match(std::string_view message, int64_t ns, uint64_t number, uint32_t repeats,
             RecordBatch& out) {
    matcher_.find_atoms(message, atoms_);
    remember(message, ns, number);
    const std::vector<int>& folds = matcher_.folds();
    size_t fold = fold_chance_ > 0 ? 0 : folds.size();
    for (const int id : candidates()) {
      for (; fold < folds.size() && folds[fold] < id; ++fold) {
        if (match_folded(fold, out)) return;
      }
      if (!matches(id, message) || is_closed_to(id, user_space_, number)) continue;
      emit(id, ns, number, repeats, out);
      last_matched_ = message;
      if (!folds.empty()) recent(1).consumed = true;
      return;
    }
    ++counters_.unmatched_lines;
    for (; fold < folds.size(); ++fold) {
      if (match_folded(fold, out)) {
        --counters_.unmatched_lines;
        return;
      }
    }
  }

  /// Lines that may match, for the atoms of this text. Few sets of atoms ever occur, and the filter
  /// allocates for each question: answers are kept.
  const std::vector<int>& candidates() {
    if (candidates_.size() >= kCandidateSetsMax) candidates_.clear();
    const auto [entry, is_new] = candidates_.try_emplace(atoms_);
    if (is_new) matcher_.potentials(atoms_, entry->second);
    return entry->second;
  }

  /// A kernel decoder's pattern does not read what user space wrote (`logger -t kernel`).
  bool is_closed_to(int id, bool user_space, uint64_t number) {
    if (!user_space || !matcher_.lines()[id].kernel_only) return false;
    if (!said_user_space_) {
      said_user_space_ = true;
      notices_.push_back("line " + std::to_string(number) +
                         " looks like the kernel's but user space wrote it: such lines are left out");
    }
    return true;
  }

  bool matches(int id, std::string_view text) {
    const re2::RE2& pattern = *matcher_.lines()[id].pattern;
    const auto count = static_cast<size_t>(pattern.NumberOfCapturingGroups()) + 1;
    pieces_.resize(count);
    if (!pattern.Match({text.data(), text.size()}, 0, text.size(), re2::RE2::UNANCHORED,
                       pieces_.data(), static_cast<int>(count))) {
      return false;
    }
    groups_.clear();
    for (const re2::StringPiece& piece : pieces_) groups_.emplace_back(piece.data(), piece.size());
    return true;
  }

  void emit(int id, int64_t ns, uint64_t number, uint32_t repeats, RecordBatch& out) {
    const abi::DecoderLine& plan = *matcher_.lines()[id].plan;
    if (plan.ignore) return;
    std::string missing_key;
    abi::Record* record = builder_.build(plan, groups_, *out.slab, missing_key);
    if (record == nullptr) {
      sampler_.reject(Reject::kMissingKey, source_, number, groups_[0],
                      "key '" + missing_key + "' is missing");
      return;
    }
    record->ts_ns = ns;
    record->seq = number;
    record->source = source_;
    record->repeats = repeats;
    ++counters_.events;
    out.records.push_back(record);
  }

  void remember(std::string_view message, int64_t ns, uint64_t number) {
    if (matcher_.folds().empty()) return;
    recent_.resize(matcher_.fold_max());
    Recent& entry = recent_[remembered_++ % recent_.size()];  // keeps the string's memory
    entry.message = message;
    entry.ns = ns;
    entry.number = number;
    entry.consumed = false;
    entry.user_space = user_space_;
    entry.guards = guards_of_atoms();
    if (entry.guards != 0) {
      fold_chance_ = matcher_.fold_max();
    } else if (fold_chance_ > 0) {
      --fold_chance_;
    }
  }
  [[nodiscard]] uint64_t guards_of_atoms() const {
    uint64_t guards = 0;
    const std::vector<int>& folds = matcher_.folds();
    for (size_t i = 0; i < folds.size(); ++i) {
      const int guard = matcher_.lines()[folds[i]].guard;
      const bool hit = guard < 0 || std::find(atoms_.begin(), atoms_.end(), guard) != atoms_.end();
      if (hit) guards |= guard_bit(i);
    }
    return guards;
  }
  /// The line `age` - 1 lines before the newest one.
  Recent& recent(uint64_t age) { return recent_[(remembered_ - age) % recent_.size()]; }
  [[nodiscard]] const Recent& recent(uint64_t age) const {
    return recent_[(remembered_ - age) % recent_.size()];
  }
  /// Patterns beyond the 64th share a bit: then a guard only filters less.
  static uint64_t guard_bit(size_t fold) { return uint64_t{1} << fold % 64; }

  /// Tries a folded pattern on the newest line and those before it that nothing has matched. True:
  /// they are one event, and the lines before the newest one do not count as unmatched.
  bool match_folded(size_t fold, RecordBatch& out) {
    const int id = matcher_.folds()[fold];
    const uint64_t remembered = std::min<uint64_t>(remembered_, recent_.size());
    const uint64_t lines_max =
        std::min<uint64_t>(remembered, matcher_.lines()[id].plan->fold_lines);
    uint64_t guards = recent(1).guards;
    bool user_space = recent(1).user_space;
    for (unsigned count = 2; count <= lines_max; ++count) {
      const Recent& first = recent(count);
      if (first.consumed) break;
      guards |= first.guards;
      user_space |= first.user_space;
      if ((guards & guard_bit(fold)) == 0) continue;
      for (const char separator : {'\n', ' '}) {
        join(count, separator);
        if (!matches(id, joined_) || is_closed_to(id, user_space, first.number)) continue;
        counters_.unmatched_lines -= count - 1;
        for (unsigned k = 1; k <= count; ++k) recent(k).consumed = true;
        emit(id, first.ns, first.number, 0, out);
        return true;
      }
    }
    return false;
  }
  void join(unsigned count, char separator) {
    joined_.clear();
    for (unsigned age = count; age > 0; --age) {
      if (!joined_.empty()) joined_ += separator;
      joined_ += recent(age).message;
    }
  }

  LogOptions options_;
  SymbolId source_;
  IngestCounters counters_;
  RejectSampler sampler_;
  std::vector<std::string> notices_;
  std::shared_ptr<const LineMatcher> patterns_;
  const LineMatcher& matcher_;
  LogRecordBuilder builder_;
  LogClock clock_;
  DocumentReader envelope_;
  bool in_kmsg_ = false;
  bool user_space_ = false;  // the line at hand
  bool said_user_space_ = false;
  std::vector<Recent> recent_;  // ring of fold_max lines; only when a pattern folds
  uint64_t remembered_ = 0;     // lines that were put into it
  unsigned fold_chance_ = 0;    // lines to come that can still fold with a guard word seen so far
  std::string last_matched_;    // for "last message repeated"
  std::map<std::vector<int>, std::vector<int>> candidates_;  // by atoms
  // Scratch of one line.
  std::string plain_;
  std::string json_;
  std::string envelope_text_;
  std::string joined_;
  std::vector<int> atoms_;
  std::vector<re2::StringPiece> pieces_;
  std::vector<std::string_view> groups_;
};

std::shared_ptr<const LineMatcher> compile_line_patterns(const abi::CompiledPack& pack) {
  return std::make_shared<const LineMatcher>(pack);
}

LogDecoder::LogDecoder(std::shared_ptr<const abi::CompiledPack> pack, SymbolId node,
                       SymbolId source, const LogOptions& options, RejectSink sink,
                       std::shared_ptr<const LineMatcher> patterns)
    : impl_(std::make_unique<Impl>(std::move(pack), node, source, options, std::move(sink),
                                   std::move(patterns))) {}
LogDecoder::~LogDecoder() = default;
void LogDecoder::decode(std::string_view text, uint64_t first_line, RecordBatch& out) {
  impl_->decode(text, first_line, out);
}
void LogDecoder::finish(RecordBatch& /*out*/) {
  // A folded event is emitted at its last line: nothing is ever held back.
}
void LogDecoder::save(StateWriter& writer) const { impl_->save(writer); }
Status LogDecoder::load(StateReader& reader) { return impl_->load(reader); }
const IngestCounters& LogDecoder::counters() const { return impl_->counters(); }
const std::vector<std::string>& LogDecoder::notices() const { return impl_->notices(); }

void LogDecoder::use(std::shared_ptr<const abi::CompiledPack> pack, RejectSink sink) {
  impl_->use(std::move(pack), std::move(sink));
}

}  // namespace reflex::stream
