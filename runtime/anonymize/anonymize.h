// Anonymize: an operator's traces, inventory and labels -> a set that can be shared.
//
// Contract: every name (node, job, rack, tor, pod, zone, nic, incident, serial, site label ..)
// becomes a keyed pseudonym, the same one wherever it stands, so topology and joins hold; time is
// shifted by one constant of the key, a whole number of weeks; numbers, kinds, codes, severities
// stay; free text and strings of unknown meaning are dropped and counted. The same key and input
// give the same bytes.
// How: three passes. Names are collected, then files are rewritten, then the output is searched
// for every original name (survivors.h).
// Bounds: one line, the inventory, the distinct names, and 8 bytes for each event id.
// Not here: raw logs (decode them first), and no promise against somebody who knows the site well:
// sizes, rates and fault mix are what is shared.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace reflex::anonymize {

struct Options {
  std::vector<std::string> events;       // NDJSON, also .gz and .zst
  std::vector<std::string> inventories;  // JSON
  std::vector<std::string> labels;       // NDJSON
  std::string output_dir;
  std::string key;                       // of the HMAC; at least kKeyBytesMin
  std::vector<std::string> keep_fields;  // string fields that hold words, not names or text
  std::vector<std::string> allow_words;  // original names that may stand in the output
  std::string mapping_path;              // optional: kind, name, pseudonym (keep it to yourself)
};

// Why: below 128 bits a key can be found by trying.
inline constexpr size_t kKeyBytesMin = 16;

/// An original name found in the output.
struct Survivor {
  std::string file;
  uint64_t line = 0;
  uint64_t column = 0;  // byte, from 1
  std::string kind;
  std::string name;
};

struct Report {
  std::vector<std::string> files;           // written
  std::map<std::string, uint64_t> names;    // by kind
  std::map<std::string, uint64_t> dropped;  // strings by field
  uint64_t lines = 0;
  uint64_t bad_lines = 0;  // no JSON object, too long, too deep: left out
  uint64_t ids = 0;
  uint64_t names_by_whole_string = 0;  // too short or too common for a search inside words
  std::vector<Survivor> survivors;     // the first kSurvivorsMax
};

/// Errors: files that cannot be read or written, an output that exists, a short key.
Result<Report> anonymize(const Options& options);

/// The key from a file (a last newline does not count), or a random one when `path` is empty.
Result<std::string> read_key(const std::string& path);

}  // namespace reflex::anonymize
