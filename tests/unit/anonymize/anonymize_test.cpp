// Anonymize: names go, topology and joins stay, nothing of the original is left, and it is proven.
#include "runtime/anonymize/anonymize.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/anonymize/fields.h"
#include "runtime/anonymize/rewriter.h"
#include "runtime/anonymize/survivors.h"
#include "runtime/base/time.h"

namespace reflex::anonymize {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
constexpr const char* kKey = "0123456789abcdef0123";

class Folder {
 public:
  Folder() {
    char path[] = "/tmp/anonymize_testXXXXXX";
    path_ = mkdtemp(path);
  }
  ~Folder() { fs::remove_all(path_); }
  [[nodiscard]] std::string path(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string path_;
};

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(Json::parse(line));
  return out;
}

constexpr const char* kInventory = R"({"nodes":[
{"node":"gpu-node-017","labels":{"hw":"H800","rack":"rack-7","tor":"tor-2","gpus":8,
 "nics":"mlx5_0,mlx5_1","team":"blue","acme.com/site":"fra-1","nvidia.com/gpu":"true"}},
{"node":"gpu-node-018","labels":{"hw":"H800","rack":"rack-7","tor":"tor-2"}}],
"jobs":[{"job":"train-llm","nodes":["gpu-node-017","gpu-node-018"],"start":"2026-03-01T00:00:00Z","end":null}]})";
constexpr const char* kEvents =
    R"({"ts":"2026-03-01T12:00:00.250Z","kind":"gpu.xid","node":"gpu-node-017","gpu":3,"code":79,"job":"train-llm","id":"dmesg/gpu-node-017/88","text":"Xid on gpu-node-017"}
{"ts":1772366400250,"kind":"nic.retrans","node":"gpu-node-018","nic":"mlx5_1","value":1.049,"peer":"gpu-node-017","severity":"warning","who":"alice","nested":{"list":[{"host":"gpu-node-018","note":"secret"}],"gpu-node-017":4}}
not json
{"ts":1772366401000,"kind":"incident.open","incident":"inc-1","job":"train-llm","symptom":"hang","code":"driver 550.127 -> 570.86"}
)";
constexpr const char* kLabels =
    R"({"incident":"inc-1","job":"train-llm","ts":1772366401000,"culprits":["gpu-node-017"],"fault":null,"external":null,"category":"hang_gpu"}
)";

Options options_in(const Folder& f, const std::string& out) {
  Options o;
  o.inventories = {f.write("inv.json", kInventory)};
  o.events = {f.write("ev.ndjson", kEvents)};
  o.labels = {f.write("lab.ndjson", kLabels)};
  o.output_dir = f.path(out);
  o.key = kKey;
  return o;
}

TEST(Anonymize, joins_hold_and_numbers_stay) {
  const Folder f;
  const auto r = anonymize(options_in(f, "out"));
  ASSERT_TRUE(r.ok()) << r.error().message;
  EXPECT_TRUE(r.value().survivors.empty());
  EXPECT_EQ(r.value().bad_lines, 1u);
  const Json inv = Json::parse(f.read("out/inventory.json"));
  const auto ev = lines_of(f.read("out/events.ndjson"));
  const auto lab = lines_of(f.read("out/labels.ndjson"));
  ASSERT_EQ(ev.size(), 3u);
  const std::string n17 = inv["nodes"][0]["node"];
  const std::string n18 = inv["nodes"][1]["node"];
  EXPECT_NE(n17, n18);
  EXPECT_EQ(ev[0]["node"], n17);
  EXPECT_EQ(ev[1]["node"], n18);
  EXPECT_EQ(ev[1]["peer"], n17);
  EXPECT_EQ(ev[1]["nested"]["list"][0]["host"], n18);
  EXPECT_EQ(ev[1]["nested"][n17], 4);  // a key that is a name
  EXPECT_EQ(lab[0]["culprits"][0], n17);
  EXPECT_EQ(lab[0]["incident"], ev[2]["incident"]);
  EXPECT_EQ(inv["jobs"][0]["job"], ev[0]["job"]);
  EXPECT_EQ(inv["nodes"][0]["labels"]["rack"], inv["nodes"][1]["labels"]["rack"]);
  const std::string nics = inv["nodes"][0]["labels"]["nics"];
  EXPECT_NE(nics.find("," + ev[1]["nic"].get<std::string>()), std::string::npos);
  EXPECT_EQ(inv["nodes"][0]["labels"]["hw"], "H800");
  EXPECT_EQ(inv["nodes"][0]["labels"]["gpus"], 8);
  EXPECT_EQ(ev[0]["code"], 79);
  EXPECT_EQ(ev[0]["gpu"], 3);
  EXPECT_EQ(ev[1]["value"], 1.049);
  EXPECT_EQ(ev[1]["severity"], "warning");
  EXPECT_EQ(ev[2]["code"], "driver 550.127 -> 570.86");
  EXPECT_EQ(lab[0]["category"], "hang_gpu");
}

TEST(Anonymize, texts_and_unknown_strings_are_dropped_and_counted) {
  const Folder f;
  const auto r = anonymize(options_in(f, "out"));
  ASSERT_TRUE(r.ok());
  const std::string all = f.read("out/events.ndjson") + f.read("out/inventory.json");
  for (const char* secret : {"alice", "secret", "blue", "fra-1", "acme", "gpu-node", "mlx5_1",
                             "train-llm", "dmesg", "rack-7", "tor-2", "inc-1"}) {
    EXPECT_EQ(all.find(secret), std::string::npos) << secret;
  }
  EXPECT_EQ(r.value().dropped.at("who"), 1u);
  EXPECT_EQ(r.value().dropped.at("text"), 1u);
  EXPECT_EQ(r.value().dropped.at("note"), 1u);
}

TEST(Anonymize, time_moves_by_one_constant_of_whole_weeks) {
  const Folder f;
  ASSERT_TRUE(anonymize(options_in(f, "out")).ok());
  const auto ev = lines_of(f.read("out/events.ndjson"));
  const Json inv = Json::parse(f.read("out/inventory.json"));
  const int64_t text_ns = parse_rfc3339(ev[0]["ts"].get<std::string>())->ns;
  const int64_t shift = text_ns - parse_rfc3339("2026-03-01T12:00:00.250Z")->ns;
  EXPECT_LT(shift, 0);
  EXPECT_EQ(shift % (7 * kNsPerDay), 0);
  EXPECT_EQ(ev[1]["ts"].get<int64_t>() - 1772366400250, shift / kNsPerMs);
  EXPECT_EQ(parse_rfc3339(inv["jobs"][0]["start"].get<std::string>())->ns -
                parse_rfc3339("2026-03-01T00:00:00Z")->ns,
            shift);
}

TEST(Anonymize, one_key_gives_the_same_bytes_and_another_key_others) {
  const Folder f;
  ASSERT_TRUE(anonymize(options_in(f, "a")).ok());
  ASSERT_TRUE(anonymize(options_in(f, "b")).ok());
  Options other = options_in(f, "c");
  other.key = "another key of 32 bytes or so...";
  ASSERT_TRUE(anonymize(other).ok());
  EXPECT_EQ(f.read("a/events.ndjson"), f.read("b/events.ndjson"));
  EXPECT_EQ(f.read("a/inventory.json"), f.read("b/inventory.json"));
  EXPECT_NE(f.read("a/events.ndjson"), f.read("c/events.ndjson"));
}

TEST(Anonymize, compressed_input_gives_compressed_output) {
  const Folder f;
  Options plain = options_in(f, "plain");
  ASSERT_TRUE(anonymize(plain).ok());
  gzFile gz = gzopen(f.path("ev.gz").c_str(), "wb");
  gzputs(gz, kEvents);
  gzclose(gz);
  Options packed = options_in(f, "packed");
  packed.events = {f.path("ev.gz")};
  const auto r = anonymize(packed);
  ASSERT_TRUE(r.ok()) << r.error().message;
  gz = gzopen(f.path("packed/events.ndjson.gz").c_str(), "rb");
  std::string text(1 << 16, '\0');
  text.resize(static_cast<size_t>(gzread(gz, text.data(), static_cast<unsigned>(text.size()))));
  gzclose(gz);
  EXPECT_EQ(text, f.read("plain/events.ndjson"));
}

TEST(Anonymize, errors_are_clear) {
  const Folder f;
  Options o = options_in(f, "out");
  o.key = "short";
  EXPECT_NE(anonymize(o).error().message.find("16 bytes"), std::string::npos);
  o.key = kKey;
  o.events = {"-"};
  EXPECT_NE(anonymize(o).error().message.find("twice"), std::string::npos);
  o.events = {f.path("none")};
  EXPECT_NE(anonymize(o).error().message.find("no such file"), std::string::npos);
  ASSERT_TRUE(anonymize(options_in(f, "out")).ok());
  EXPECT_NE(anonymize(options_in(f, "out")).error().message.find("exists"), std::string::npos);
}

TEST(Anonymize, a_name_that_a_kept_word_hides_is_found) {
  const Folder f;
  Options o = options_in(f, "out");
  // A kind is kept as it is, but for tokens that are names; here the name is a part of a token.
  o.events = {f.write("ev2.ndjson",
                      R"({"ts":1772366400250,"kind":"xgpu-node-017y","node":"gpu-node-017"})"
                      "\n")};
  const auto r = anonymize(o);
  ASSERT_TRUE(r.ok());
  ASSERT_EQ(r.value().survivors.size(), 1u);
  EXPECT_EQ(r.value().survivors[0].name, "gpu-node-017");
  EXPECT_EQ(r.value().survivors[0].line, 1u);
  EXPECT_EQ(r.value().survivors[0].kind, "node");
  Options allowed = o;
  allowed.output_dir = f.path("out2");
  allowed.allow_words = {"gpu-node-017"};
  EXPECT_TRUE(anonymize(allowed).value().survivors.empty());
}

struct Search {
  explicit Search(std::vector<std::pair<NameKind, std::string>> names) : book(pseudonyms) {
    for (const auto& [kind, name] : names) book.of(kind, name);
  }
  size_t found(const std::string& text) {
    std::vector<Survivor> out;
    SurvivorSearch(book, kept, {}).search(text, 1, "f", out);
    return out.size();
  }
  Pseudonyms pseudonyms{kKey};
  NameBook book;
  std::set<std::string> kept;
};

TEST(Survivors, finds_names_by_their_shape) {
  Search s({{NameKind::kNode, "gpu-node-1"},
            {NameKind::kJob, "work"},
            {NameKind::kRack, "r1"},
            {NameKind::kJob, "1234567"},
            {NameKind::kLabel, "prod"},
            {NameKind::kEventId, "e1"}});
  EXPECT_EQ(s.found(R"({"a":"xgpu-node-1y"})"), 1u);  // anywhere
  EXPECT_EQ(s.found(R"({"gpu-node-1":1})"), 1u);      // a key
  EXPECT_EQ(s.found(R"({"a":"work/7"})"), 1u);        // a token
  EXPECT_EQ(s.found(R"({"a":"worker"})"), 0u);
  EXPECT_EQ(s.found(R"({"a":"r1"})"), 1u);  // short: a whole string
  EXPECT_EQ(s.found(R"({"a":"xr1"})"), 0u);
  EXPECT_EQ(s.found(R"({"a":1234567})"), 1u);  // digits: a whole number
  EXPECT_EQ(s.found(R"({"a":0.1234567})"), 0u);
  EXPECT_EQ(s.found(R"({"a":"prod"})"), 1u);
  EXPECT_EQ(s.found(R"({"a":"e1"})"), 1u);  // by fingerprint
  EXPECT_EQ(s.found("{\"a\":1}\n{\"a\":\"r1\"}\n{\"a\":\"r1\"}"), 2u);
  s.kept.insert("prod");
  EXPECT_EQ(s.found(R"({"a":"prod"})"), 0u);  // also a word that was kept on purpose
}

TEST(Fields, what_is_a_name_and_what_is_not) {
  EXPECT_EQ(field_of("Node").use, FieldUse::kName);
  EXPECT_EQ(field_of("serial.gpu3").kind, NameKind::kSerial);
  EXPECT_EQ(field_of("ip.ib0").kind, NameKind::kSerial);  // an address of the node
  EXPECT_EQ(field_of("submit_time").use, FieldUse::kTime);
  EXPECT_EQ(field_of("who").use, FieldUse::kUnknown);
  EXPECT_TRUE(is_site_key("acme.com/site"));
  EXPECT_FALSE(is_site_key("feature.node.kubernetes.io/cpu"));
  EXPECT_FALSE(is_site_key("rack"));
  EXPECT_TRUE(is_plain_value("True"));
  EXPECT_TRUE(is_plain_value("8"));
  EXPECT_FALSE(is_plain_value("prod"));
}

TEST(Pseudonyms, depend_on_key_kind_and_name_only) {
  const Pseudonyms a(kKey);
  const Pseudonyms b("some other key, long enough");
  EXPECT_EQ(a.of(NameKind::kNode, "n1"), Pseudonyms(kKey).of(NameKind::kNode, "n1"));
  EXPECT_NE(a.of(NameKind::kNode, "n1"), a.of(NameKind::kNode, "n2"));
  EXPECT_NE(a.of(NameKind::kNode, "n1").substr(1), a.of(NameKind::kJob, "n1").substr(1));
  EXPECT_NE(a.of(NameKind::kNode, "n1"), b.of(NameKind::kNode, "n1"));
  EXPECT_EQ(a.of(NameKind::kNode, "n1").size(), 17u);
}

}  // namespace
}  // namespace reflex::anonymize
