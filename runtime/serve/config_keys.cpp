// Every key of reflex.toml: the one place. See config.h.
#include "runtime/serve/config.h"

namespace reflex::serve {

using enum ValueForm;

const std::vector<KeySpec>& config_keys() {
  static const std::vector<KeySpec> keys{
      {"state_dir", kPath, "/var/lib/reflex",
       "Journal, snapshots, the store and the copy of the last good packs. One daemon a folder."},
      {"threads", kInt, "1", "Shards of one pack set; more than 1 pays from some 1,000 rules on."},
      {"packs.paths", kPaths, "", "Pack folders or .rfx files. Or name a manifest; not both."},
      {"packs.manifest", kPath, "",
       "packs.toml: `packs = [..]`, `overlays = [..]`, `profiles = [..]`, and optionally\n"
       "`sha256 = \"..\"` of the set: a set with another hash is refused."},
      {"packs.profiles", kPaths, "", "Hardware profiles; empty: hwprofiles/ near the packs."},
      {"packs.model", kPath, "", "Learned numbers (`reflex learn`)."},
      {"packs.history", kPath, "", "Labelled incidents (`reflex feedback`) for node history."},
      {"packs.inventories", kPaths, "", "Nodes, labels and jobs (JSON), read at start and reload."},
      {"packs.backend", kText, "jit", "jit or interp."},
      {"packs.watch", kBool, "false",
       "Reload when the manifest changes, 500 ms after its last change."},
      {"http.listen", kText, "127.0.0.1:7480",
       "Address and port; port 0: any free one. Anything but loopback needs http.tokens."},
      {"http.tokens", kPath, "",
       "File of bearer tokens: lines `NAME ROLES TOKEN` (roles: read, ingest, operate, with "
       "commas)\n"
       "or `NAME ROLES sha256:HEX`."},
      {"http.insecure", kBool, "false", "Listen beyond loopback without tokens."},
      {"http.tls_cert", kPath, "", "Certificate chain (PEM); with http.tls_key: HTTPS only."},
      {"http.tls_key", kPath, "", "Key of the certificate (PEM)."},
      {"http.connections_max", kInt, "256", "More at a time are told to come later (503)."},
      {"http.streams_max", kInt, "32", "Followers of verdicts at a time."},
      {"http.body_max", kBytes, "64MiB", "A larger request body is refused (413)."},
      {"http.bodies_max", kBytes, "512MiB",
       "Bodies of all requests in memory at one time, as sent and decoded; beyond it 429. At "
       "least\n"
       "twice http.body_max."},
      {"http.rate_max", kInt, "0", "Requests a second and client; 0: no limit (429 beyond it)."},
      {"http.rate_bytes_max", kBytes, "0", "Bytes of bodies a second and client; 0: no limit."},
      {"http.console", kBool, "true", "Serve the console, a page for people, at /."},
      {"journal.segment", kBytes, "64MiB",
       "Size of a journal file; space is freed by whole files."},
      {"journal.backlog_max", kBytes, "1GiB",
       "Accepted and not yet evaluated; beyond it input is refused (429) until it is less."},
      {"journal.max", kBytes, "16GiB",
       "Size of the journal; beyond it input is refused (507) until a snapshot frees some."},
      {"snapshot.interval", kDuration, "5m", "Time between snapshots of the state."},
      {"clock.ticks", kBool, "true",
       "Once a second the wall clock goes into the journal: silent sources become idle and "
       "absence\n"
       "becomes evidence. Off for replaying old traces."},
      {"store.path", kPath, "", "Verdicts, alerts, feedback (SQLite); empty: STATE_DIR/reflex.db."},
      {"store.keep", kDuration, "400d", "Verdicts and alerts of older events are removed."},
      {"store.max", kBytes, "0", "Bytes of verdicts; the oldest go; 0: no limit."},
  };
  return keys;
}

const std::vector<KeySpec>& source_keys() {
  static const std::vector<KeySpec> keys{
      {"type", kText, "", "tail, journald, stdin, nats or kafka."},
      {"name", kText, "",
       "Name in events, counters and the API; empty: the path, the subject, or the type."},
      {"form", kText, "log", "log: raw log text of `node`; events: NDJSON."},
      {"node", kText, "", "Whose log it is; empty: this host."},
      {"path", kPath, "", "Of tail: the file; followed over rotation and truncation."},
      {"from", kText, "begin",
       "Of tail, nats and kafka, the first time: begin or end of what there is."},
      {"tz", kText, "Z", "Zone of stamps without one, like +01:00."},
      {"match", kTexts, "", "Of journald: fields like _TRANSPORT=kernel."},
      {"url", kText, "",
       "Of nats: nats://HOST:4222[/STREAM]; of kafka: kafka://HOST:9092[,HOST:9092]."},
      {"subject", kText, "",
       "Of nats: the subject, like jobs.>, of a stream that is there; of kafka: the topic. A "
       "message\nis one or more lines."},
      {"group", kText, "reflex",
       "Of nats: the durable consumer; of kafka: the consumer group. Acknowledged (committed) is\n"
       "what is in the journal. Daemons that are each to read all of it have names of their own."},
      {"credentials", kPath, "", "Of nats: file of a user's JWT and key."},
      {"options", kTexts, "",
       "Of kafka: KEY=VALUE of librdkafka, like security.protocol=SASL_SSL."},
  };
  return keys;
}

const std::vector<KeySpec>& sink_keys() {
  static const std::vector<KeySpec> keys{
      {"type", kText, "", "file, webhook, alertmanager, nats or kafka."},
      {"name", kText, "", "Its delivery cursor is kept under this name; empty: the type."},
      {"path", kPath, "", "Of file: verdicts as NDJSON, each once."},
      {"url", kText, "",
       "Of webhook and alertmanager: http://host:port/path; of nats: nats://HOST:4222; of kafka:\n"
       "kafka://HOST:9092[,HOST:9092]."},
      {"subject", kText, "",
       "Of nats: the subject, of a stream that is there; of kafka: the topic. A message is a "
       "line,\n"
       "its headers are those of a CloudEvent."},
      {"credentials", kPath, "", "Of nats: file of a user's JWT and key."},
      {"options", kTexts, "",
       "Of kafka: KEY=VALUE of librdkafka, like security.protocol=SASL_SSL."},
      {"token_file", kPath, "", "Sent as a bearer token."},
      {"what", kText, "verdicts", "Of all but alertmanager: verdicts, finals or alerts."},
      {"timeout", kDuration, "10s", "Of one request."},
      {"retry_max", kDuration, "5m", "Longest wait between two tries; they never end."},
  };
  return keys;
}

}  // namespace reflex::serve
