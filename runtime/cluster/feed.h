// Feed: tails and standard input -> STREAM.ingest, on any number of machines.
//
// Where a tail goes on after a restart is kept at the broker, behind what was sent; what is sent
// twice because of a crash in between is cut by the router.
#pragma once

#include <string>
#include <vector>

#include "runtime/cluster/roles.h"

namespace reflex::cluster {

struct FeedSource {
  std::string path;  // "-": standard input, NDJSON
  bool is_log = false;
  std::string node;  // whose log
};
struct FeedOptions {
  std::vector<FeedSource> sources;
  std::string prefix;     // of the names of sources: paths of several machines may be the same
  bool from_end = false;  // tails, the first time
  /// Files are read to their end; when all sources of this feeder have ended, the run has
  /// (replays).
  bool to_end = false;
};

/// Until stopped, or until all of it has ended: standard input does; with `to_end` files do, too.
Status feed(const RoleContext& context, const FeedOptions& options);

/// STREAM.ingest -> events: of several processes one does it, the others stand by. `ticks`: once a
/// second the wall clock goes in, so that silent sources become idle.
Status route_live(const RoleContext& context, const stream::LogOptions& log, bool ticks);

}  // namespace reflex::cluster
