// What comes in live, as messages of one subject (STREAM.ingest): the journal of a live run.
// Routing is a function of it, so that a router that is begun again says the same.
//
// A message that is not of our form is NDJSON of the source "ingest": what others publish there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/base/result.h"

namespace reflex::cluster {

struct IngestPiece {
  enum class What : uint8_t {
    kSources,   // before their first text; the watermark waits for them
    kText,      // whole lines of a source
    kFinished,  // a source has ended
    kTick,      // the wall clock
    kEnd,       // nothing comes any more
  };
  struct Source {
    std::string name;
    bool is_log = false;
    std::string node;  // whose log
  };
  What what = What::kText;
  std::vector<Source> sources;  // of kSources: all; of kText, kFinished: the one
  std::string text;
  /// Which file and where in it the text begins, so that what is sent twice is read once. "":
  /// unknown.
  std::string file;
  uint64_t offset = 0;
  uint64_t end = 0;  // of the text there; a line that was too long may be left out between
  int64_t base_ns = 0;  // for stamps without a year or a date: the file's time
  int64_t wall_ns = 0;  // of kTick
};

std::string encode(const IngestPiece& piece, const abi::CompiledPack& pack);
Result<IngestPiece> read_piece(std::string_view bytes, const abi::CompiledPack& pack);

}  // namespace reflex::cluster
