// Adapters: bodies of other tools as lines that our decoders read: NDJSON events (events.md) and
// log text of a node.
//
// CloudEvents 1.0 (JSON, single, batch): `data` with a `kind` is the event; otherwise the type is
// the kind and the members of `data` its fields. `id`, `source`, `time` fill what the event has
// not, `subject` the node. Data with `healthEvent` (NVSentinel) is a log line of
// rules/std/adapters. Alertmanager webhook v4: each firing alert is a log line `TIME alert k=v ..`,
// labels by name, as rules/std/adapters/README.md makes it with jq; decoders of the packs say what
// it means. OTLP/HTTP JSON logs: the node is the resource's host.name (k8s.node.name, host.id); a
// text body is log text at its time, a structured body with a `kind` is an event. Contract: what
// cannot be read is counted in `rejected` with the first reason; the rest goes on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "runtime/serve/http/exchange.h"

namespace reflex::serve {

struct AdaptedLines {
  std::string events;                       // NDJSON
  std::map<std::string, std::string> logs;  // text by node
  uint64_t rejected = 0;
  std::string first_reason;
  void reject(std::string_view why) {
    if (rejected++ == 0) first_reason = why;
  }
};

/// An event or an array of them.
AdaptedLines from_cloud_events(const Json& body);
/// Binary mode: attributes in `ce-*` headers, data in the body.
AdaptedLines from_binary_cloud_event(const HttpRequest& request);
AdaptedLines from_alertmanager(const Json& body);
/// `now_ns`: of records without a time.
AdaptedLines from_otlp_logs(const Json& body, int64_t now_ns);

}  // namespace reflex::serve
