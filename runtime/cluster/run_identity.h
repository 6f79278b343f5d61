// RunIdentity: what all processes of one stream must agree on; who comes with something else is
// told so instead of waiting for messages that never come.
//
// Idea: the oldest message of a subject says what the run is; whoever finds none says it, and reads
// it back, so that of two who come at one time both believe the same one.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/broker/broker.h"

namespace reflex::cluster {

/// What stands there: `text`, or what another one has said before.
Result<std::string> agree(broker::Broker& broker, const std::string& subject,
                          const std::string& text);

/// Errors: the stream is of another pack set or another number of partitions.
Status join_run(broker::Broker& broker, const std::string& stream, const std::string& set_sha256,
                uint32_t partitions);

/// What some processes of a run must have in common: `what` names the subject ("inventory"), `mine`
/// is what this one has, `flag` the option that says so. Errors: another one has something else.
Status join_same(broker::Broker& broker, const std::string& stream, const std::string& what,
                 const std::string& mine, const std::string& flag);

/// A router that is started again reads the same files and says what it said. Errors: the stream
/// holds other input, or standard input, which nobody can read again.
Status join_input(broker::Broker& broker, const std::string& stream,
                  const std::vector<std::string>& paths);
/// The input of the run comes in live (STREAM.ingest). Errors: the stream holds a run over files.
Status join_live(broker::Broker& broker, const std::string& stream);

}  // namespace reflex::cluster
