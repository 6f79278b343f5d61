// Snapshot file: the state of a lane at one place of its journal, on disk (language.md B6, rule 6).
//
// Form (little-endian): magic, format version, header with its checksum, then the state in blocks,
// each with its crc32c, and an end mark: a file that was cut or changed anywhere is an Error, never
// a part of a state. Names and places of sections inside the state are those of StateWriter.
// Writing: to `PATH.part`, fsync, rename over PATH, fsync of the folder. So PATH is the old snapshot
// or the new one at every moment; a full disk leaves the old one and no `.part`.
// Reading: refuses another engine major and a format that is newer than this engine's; every older
// format stays readable (tests/data/snapshot: one file of each format).
// Contract for a forked child: write_snapshot() takes no lock but malloc's and starts no thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/base/result.h"

namespace reflex::engine {

/// Of the container and of all states inside. A new member at the end of a section needs no new
/// number (readers look for the end of a section); a change of what is there does.
inline constexpr uint32_t kSnapshotFormat = 1;

struct SnapshotHeader {
  uint32_t format = kSnapshotFormat;
  std::string engine;  // version that wrote it
  std::string set_sha256;
  std::vector<abi::PackIdentity> packs;
  uint64_t position = 0;  // of the journal: everything before it is in the state
  int64_t wall_ns = 0;    // when it was taken
  std::string set_key;    // what the set and the files beside it are kept under; "": not known
};

struct Snapshot {
  SnapshotHeader header;
  std::string state;
};

/// `header.format` and `header.engine` are filled in here.
Status write_snapshot(const std::string& path, SnapshotHeader header, std::string_view state);
Result<Snapshot> read_snapshot(const std::string& path);
/// The header alone: cheap, and what of the state is damaged is not noticed.
Result<SnapshotHeader> read_snapshot_header(const std::string& path);

}  // namespace reflex::engine
