// gzip, deflate and zstd bodies: see body_decode.h. Members and frames may be concatenated.
#include "runtime/serve/http/body_decode.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cctype>
#include <memory>

namespace reflex::serve {
namespace {

constexpr size_t kPieceBytes = 256 * 1024;

/// Room for one more piece at the end of `out`, at most one byte beyond the bound; 0: the budget of
/// all requests is used up.
size_t grow(std::string& out, size_t used, size_t bytes_max, BodyLease& lease) {
  const size_t size = std::min(used + kPieceBytes, bytes_max + 1);
  if (size > out.capacity()) {
    const size_t before = out.capacity();
    const size_t after = std::min(std::max(2 * before, size), bytes_max + 1);
    // While it is copied both are there.
    if (!lease.more(after)) return 0;
    std::string larger;
    larger.reserve(after);  // exact, as out.reserve() is not
    larger.assign(out, 0, used);
    out.swap(larger);
    lease.less(used == 0 ? 0 : before);
  }
  out.resize(size);
  return size - used;
}

BodyFault inflate_body(const std::string& body, size_t bytes_max, BodyLease& lease,
                       std::string& out) {
  z_stream stream{};
  // 32 + 15: gzip or zlib, told by the header.
  if (inflateInit2(&stream, 32 + MAX_WBITS) != Z_OK) return BodyFault::kDamaged;
  const std::unique_ptr<z_stream, int (*)(z_stream*)> owner(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
  stream.avail_in = static_cast<uInt>(body.size());
  size_t used = 0;
  for (;;) {
    const size_t room = grow(out, used, bytes_max, lease);
    if (room == 0) return BodyFault::kNoRoom;
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + used);
    stream.avail_out = static_cast<uInt>(room);
    const int result = inflate(&stream, Z_NO_FLUSH);
    used += room - stream.avail_out;
    if (used > bytes_max) return BodyFault::kTooLarge;
    if (result == Z_STREAM_END) {
      if (stream.avail_in == 0) break;
      if (inflateReset(&stream) != Z_OK) return BodyFault::kDamaged;
    } else if (result != Z_OK) {
      return BodyFault::kDamaged;  // Z_BUF_ERROR: it ends in the middle
    }
  }
  out.resize(used);
  return BodyFault::kNone;
}

BodyFault unzstd_body(const std::string& body, size_t bytes_max, BodyLease& lease,
                      std::string& out) {
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                   ZSTD_freeDCtx);
  // Source: RFC 8878, 3.1.1.1.2 recommends to accept windows up to 8 MiB; more is a memory attack.
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, 23);
  ZSTD_inBuffer in{body.data(), body.size(), 0};
  size_t used = 0;
  size_t open = 1;  // of the frame; 0: it is whole
  while (in.pos < in.size || open != 0) {
    const size_t room = grow(out, used, bytes_max, lease);
    if (room == 0) return BodyFault::kNoRoom;
    ZSTD_outBuffer piece{out.data() + used, room, 0};
    const size_t before = in.pos;
    open = ZSTD_decompressStream(context.get(), &piece, &in);
    if (ZSTD_isError(open) != 0) return BodyFault::kDamaged;
    used += piece.pos;
    if (used > bytes_max) return BodyFault::kTooLarge;
    if (open != 0 && in.pos == before && piece.pos == 0) return BodyFault::kDamaged;
  }
  out.resize(used);
  return BodyFault::kNone;
}

}  // namespace

BodyFault decode_body(const std::string& encoding, std::string&& body, size_t bytes_max,
                      BodyLease& lease, std::string& out) {
  std::string name;
  for (const char c : encoding) {
    if (c != ' ') name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (name.empty() || name == "identity") {
    if (body.size() > bytes_max) return BodyFault::kTooLarge;
    out = std::move(body);
    return BodyFault::kNone;
  }
  if (name == "gzip" || name == "x-gzip" || name == "deflate") {
    return inflate_body(body, bytes_max, lease, out);
  }
  if (name == "zstd") return unzstd_body(body, bytes_max, lease, out);
  return BodyFault::kUnknownEncoding;
}

}  // namespace reflex::serve
