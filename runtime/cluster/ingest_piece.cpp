// Pieces as bytes; see ingest_piece.h.
#include "runtime/cluster/ingest_piece.h"

#include "runtime/base/state_stream.h"

namespace reflex::cluster {
namespace {
constexpr char kOurs = '\x01';  // no JSON begins so
constexpr std::string_view kForm = "reflex.ingest/1";
}  // namespace

std::string encode(const IngestPiece& piece, const abi::CompiledPack& pack) {
  StateWriter out(*pack.symbols);
  out.text(kForm);
  out.u64(static_cast<uint64_t>(piece.what));
  out.u64(piece.sources.size());
  for (const auto& source : piece.sources) {
    out.text(source.name);
    out.flag(source.is_log);
    out.text(source.node);
  }
  out.text(piece.file);
  out.u64(piece.offset);
  out.u64(piece.end);
  out.i64(piece.base_ns);
  out.i64(piece.wall_ns);
  out.text(piece.text);
  return kOurs + out.take();
}

Result<IngestPiece> read_piece(std::string_view bytes, const abi::CompiledPack& pack) {
  IngestPiece piece;
  if (bytes.empty() || bytes.front() != kOurs) {
    piece.sources.push_back({"ingest", false, ""});
    piece.text = bytes;
    return piece;
  }
  StateReader in(bytes.substr(1), *pack.symbols);
  if (in.text() != kForm) in.fail();
  piece.what = static_cast<IngestPiece::What>(in.bounded(4));
  piece.sources.resize(in.count(3));
  for (auto& source : piece.sources) {
    source.name = in.text();
    source.is_log = in.flag();
    source.node = in.text();
  }
  piece.file = in.text();
  piece.offset = in.u64();
  piece.end = in.u64();
  piece.base_ns = in.i64();
  piece.wall_ns = in.i64();
  piece.text = in.text();
  const bool of_one =
      piece.what == IngestPiece::What::kText || piece.what == IngestPiece::What::kFinished;
  if (in.failed() || (of_one && piece.sources.size() != 1)) {
    return Error{"a damaged message of STREAM.ingest"};
  }
  return piece;
}

}  // namespace reflex::cluster
