// Every example of the language specification parses, and its tree is what the text says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/unit/parse/parse_fixture.h"

namespace reflex::parse_test {
namespace {

using testing::HasSubstr;

std::string examples() {
  std::ifstream file(REFLEX_SOURCE_DIR "/tests/unit/parse/language_examples.rfx");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(LanguageExamples, AllParseWithoutADiagnostic) {
  const Parsed p(examples());
  EXPECT_EQ(p.errors(), "");
  ASSERT_TRUE(p.module.head.has_value());
  EXPECT_EQ(p.module.head->imports.size(), 2u);
  EXPECT_EQ(p.module.decls.size(), 44u);
}

TEST(LanguageExamples, TreeHoldsWhatTheTextSays) {
  const std::string tree = Parsed(examples()).printed();
  for (const char* fragment : {
           "(import acme.fabric :range ^3 :only (tor_switch nic_port))",
           "(limits ((keys 200000) (partials 4 per key) (horizon 14d) (state 512 MiB)))",
           "(event gpu.xid :extends gpu.base :dedup (node gpu code pid) :dedup-for 2s",
           "(field reg array<u32, 5>?)",
           "(field text string :redact)",
           "(field total u64 :counter)",
           "(field kind enum(corrected, uncorrected))",
           "(param temp_hot celsius :value 85 :within (range 70 95))",
           ":matches (and (like (call label gpu.product) \"NVIDIA H100*\") (!= (call label site) "
           "\"lab\"))",
           "(param throttle_limit :settings ((quantile 0.9995) (default 5)))",
           "(and (in e.code xid_hw) (not (call in_maintenance e.node)))",
           "(set-profile hw.h100 (param temp_hot :value 89))",
           "(except hot_gpu known_sensor :keys (node gpu) (list n0417 3) (list n0981 0))",
           "(alias-kind gpu.ecc dcgm.sbe_burst (= total count))",
           "(unless c (job.ended :where (== c.job b.job)) :between (a b))",
           "(then-absent u (nic.state :where u.up) :for 30s)",
           "(condition (bursts (gpu.xid :where (call hw_xid it)) :gap 3m) >= 5 :within 1d)",
           "(condition (distinct gpu :of (gpu.xid :where (== it.code 31))) >= 2 :within 1d)",
           "(any-bits (index e.reg 0) 1 20)",
           "(none (gpu.xid :where (!= it.code 74)) :last 1d)",
           ">= (call max 3 (percent-of 5 (call nodes job))) :within 1m)",
           "(decayed :increase (gpu.ecc.total :where (== it.kind corrected)) :half_life 3d) "
           ":reset gpu.replaced",
           "(cusum gpu.bw.value :target peers.median :slack 2%)",
           "(mean gpu.temp.value :last 8)",
           "(+ (. (call peers job) median) (* 6 (call max (. (call peers job) mad) 0.5 celsius)))",
           ":clear below :clear-at (- profile.temp_hot 4 celsius) :nodata hold :nodata-for 10m "
           ":peers-at-least 8",
           ":doc \"A GPU that is hot.\\nSecond line.\"",
           "(causes gpu_memory (ecc_outlier) :p 0.6 :lag-lo -1d :lag-hi 1h :scope self)",
           "(masks tor_switch (nic_flap nic_down_stuck) :lag-lo -10s :lag-hi 5m :at-least "
           "(percent-of 30 members) :in 1m)",
           "(explained-by maintenance (nic_flap) :on node)",
           ":leak 0.001 :leak-per hour :learn)",
           ":opens job.stalled :opens nccl.timeout_seen :settle 30s :merge 10m)",
           "(action cordon v.top.node :limit 3 :per rack :in 1h :mode dry_run)",
           "(annotate summary (of v.top.node) \": \" (of v.top.fault) \" at \" (of v.top.p :format "
           "\"%.0f\") \", job \" (of v.job)",
           "(label hw_class v.top.profile)",
           "(maintenance :from maint.start :until maint.end :on node :grace 15m)",
           "(at 0s :until 20h :every 5h gpu.xid (\"n1\"/0) (code 48) :repeat 10 :repeat-every 2s)",
           "(at 1220m nccl.timeout (\"j\") (node n1) (rank 0) (op \"all_reduce\") (waited 10m))",
           "(top :targets (\"n1\") :names (gpu_memory) :p >= 0.8) (not :targets (\"n\"[2..8])) "
           "(because :names (xid_bursts)) (silent :names (nic_flap))",
           "(test \"limit follows class [hw.h100, 88]\" (for hw hw.h100) (for hot 88)",
           "(nodes \"n1\" :as hw.h100)",
           "(at 1m gpu.temp (\"n1\"/0) (value 88))",
           "(= pid (call u32? pid))",
       }) {
    EXPECT_THAT(tree, HasSubstr(fragment));
  }
}

TEST(LanguageExamples, PrintIsStable) {
  EXPECT_EQ(Parsed(examples()).printed(), Parsed(examples()).printed());
}

TEST(LanguageExamples, CrlfAndBomChangeNothing) {
  std::string crlf = "\xEF\xBB\xBF";
  for (char c : examples()) {
    crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  }
  const Parsed p(crlf);
  EXPECT_EQ(p.errors(), "");
  EXPECT_EQ(p.printed(), Parsed(examples()).printed());
}

TEST(LanguageExamples, SemicolonsSeparateStatements) {
  const Parsed p("event a { key node: node; x: u8; }; signal s on node { e: a; holds 1m; };");
  EXPECT_EQ(p.errors(), "");
  EXPECT_EQ(p.module.decls.size(), 2u);
}

/// The tree of the expression in `signal s on node { when EXPR }`.
std::string expression(const std::string& text) {
  const Parsed p("signal s on node { when " + text + " }");
  EXPECT_EQ(p.errors(), "") << text;
  const auto* s =
      p.module.decls.empty() ? nullptr : std::get_if<ast::SignalDecl>(&p.module.decls[0].node);
  if (s == nullptr || s->when == nullptr) {
    return "";
  }
  const std::string tree = p.printed();
  const size_t begin = tree.find(":when ") + 6;
  return tree.substr(begin, tree.size() - begin - 2);
}

TEST(Expressions, Precedence) {
  EXPECT_EQ(expression("a or b and not c == 1"), "(or a (and b (not (== c 1))))");
  EXPECT_EQ(expression("a and b or c and d"), "(or (and a b) (and c d))");
  EXPECT_EQ(expression("a | b & c + d * -e > 1"), "(> (| a (& b (+ c (* d (negate e))))) 1)");
  EXPECT_EQ(expression("a - b - c > 1"), "(> (- (- a b) c) 1)");
  EXPECT_EQ(expression("(a or b) and c"), "(and (or a b) c)");
  EXPECT_EQ(expression("not not a"), "(not (not a))");
  EXPECT_EQ(expression("x % 3 == 1"), "(== (% x 3) 1)");
}

TEST(Expressions, PredicateOperators) {
  EXPECT_EQ(expression("it.code in [48, 63]"), "(in it.code (list 48 63))");
  EXPECT_EQ(expression("x not in 10 .. 20"), "(not-in x (range 10 20))");
  EXPECT_EQ(expression("x in 10..20"), "(in x (range 10 20))");
  EXPECT_EQ(expression("x not like \"a*\""), "(not (like x \"a*\"))");
  EXPECT_EQ(expression("x matches /a\\/b+/ and y / 2 > z / 3"),
            "(and (matches x \"a/b+\") (> (/ y 2) (/ z 3)))");
  EXPECT_EQ(expression("e.reg[0] all bits (1, 0x14)"), "(all-bits (index e.reg 0) 1 20)");
  EXPECT_EQ(expression("x is missing or y is not missing"),
            "(or (call missing x) (not (call missing y)))");
}

TEST(Expressions, NumbersUnitsAndDurations) {
  EXPECT_EQ(expression("x > 0.5 celsius"), "(> x 0.5 celsius)");
  EXPECT_EQ(expression("x > 30 per hour"), "(> x 30 /hour)");
  EXPECT_EQ(expression("x > 2 celsius per hour"), "(> x 2 celsius/hour)");
  EXPECT_EQ(expression("x > 400 Gbit/s"), "(> x 400 Gbit/s)");
  EXPECT_EQ(expression("x > 400Gbit/s"), "(> x 400 Gbit/s)");
  EXPECT_EQ(expression("x > 16GiB"), "(> x 16 GiB)");
  EXPECT_EQ(expression("x > 0xff"), "(> x 255)");
  EXPECT_EQ(expression("x > 1e-3"), "(> x 0.001)");
  EXPECT_EQ(expression("x > 1h30m"), "(> x 90m)");
  EXPECT_EQ(expression("x > 1.5s"), "(> x 1500ms)");
  EXPECT_EQ(expression("x > -250ms"), "(> x -250ms)");
  EXPECT_EQ(expression("x > 3 count"), "(> x 3 count)");
}

TEST(Expressions, AggregatesAndCalls) {
  EXPECT_EQ(expression("x > 2.5 * mean(hbm.temp.value, last 8, min 4)"),
            "(> x (* 2.5 (mean hbm.temp.value :last 8 :min 4)))");
  EXPECT_EQ(expression("mean(a.b last 8 min 4) > 1"), "(> (mean a.b :last 8 :min 4) 1)");
  EXPECT_EQ(expression("max(a.b, last 3) > max(1, 2)"), "(> (max a.b :last 3) (call max 1 2))");
  EXPECT_EQ(expression("quantile(a.b, 0.99, within 1h) > 1"),
            "(> (quantile a.b 0.99 :within 1h) 1)");
  EXPECT_EQ(expression("peers(job).rank < 2"), "(< (. (call peers job) rank) 2)");
  EXPECT_EQ(expression("peers(job by label(node, role) by t.step.role).median < 2"),
            "(< (. (call peers job (call label node role) t.step.role) median) 2)");
  EXPECT_EQ(expression("nv.busy(e)"), "(call nv.busy e)");
}

TEST(Expressions, SpansAreExact) {
  const std::string text = "signal s on node { when \xC3\xA4 > 1 }";  // not a name: one error
  EXPECT_THAT(Parsed(text).errors(), HasSubstr("t.rfx:1:25: error: the character"));
  const std::string good = "# \xC3\xA4\xC3\xB6\nsignal s on node { when abc.d > max(1, 22) }";
  const Parsed p(good);
  ASSERT_EQ(p.errors(), "");
  const auto& s = std::get<ast::SignalDecl>(p.module.decls[0].node);
  const auto slice = [&](const source::Span& at) {
    return good.substr(at.begin, at.end - at.begin);
  };
  EXPECT_EQ(slice(s.when->span), "abc.d > max(1, 22)");
  EXPECT_EQ(slice(s.when->op_span), ">");
  EXPECT_EQ(slice(s.when->args[1]->args[1]->span), "22");
  EXPECT_EQ(slice(s.name.span), "s");
  EXPECT_EQ(slice(p.module.decls[0].span), good.substr(7));
}

TEST(SoftKeywords, AreNamesWhereverANameIsExpected) {
  const Parsed p(R"(
event kind.count { key gpu: gpu  value: f64  text: string  last: u8  min: u8  p: u8  for: u8
  rate: u8  where: u8  and: u8  key: u8  redact: u8  counter count: u64  event: u8 }
signal signal on node { e: kind.count where it.kind == none and e.last > e.min and e.and == 1 }
signal count on node { when kind.count.value > rate and text like "x" for 2m }
signal for on node { count: gpu.xid where count.code == 3 then keep: gpu.xid }
event causes count p 0.5
fault test on node { prior p severity info }
macro list(e: event.test) = e.rule in only
)");
  EXPECT_EQ(p.errors(), "");
  EXPECT_EQ(p.module.decls.size(), 7u);
  EXPECT_THAT(p.printed(),
              HasSubstr("(and (and (== it.kind none) (> e.last e.min)) (== e.and 1))"));
}

TEST(Signals, StepsCountsAndTails) {
  const std::string tree = Parsed(R"(
signal a on node within 2m {
  a: k where x
  then strictly b: k
  then ~2s c: k where y
  then absent nic.state where up for 30s
  unless d: k
  keep all max 3
  leak 0.01 learn
  was old.name
}
signal b on node { count gpu.xid where hw_xid(it) >= 2 within 1h each rearm 1 exact max 100 }
signal c on job { count distinct job of x != 2 within 1h }
signal d on node { when a > 1 clear when a < 2 nodata interrupt } holds 5m leak profile.l per day
)")
                               .printed();
  for (const char* fragment :
       {"(then-strictly b k)", "(then-either c (k :where y) :tolerance 2s)",
        "(then-absent (nic.state :where up) :for 30s)", "(unless d k) :keep all :keep-max 3",
        ":leak 0.01 :learn :was old.name",
        "(condition (count (gpu.xid :where (call hw_xid it))) >= 2 :within 1h :each :rearm 1 "
        ":exact :max 100)",
        "(condition (distinct job :of x) != 2 :within 1h)",
        ":when (> a 1) :clear when :clear-at (< a 2) :nodata interrupt :holds 5m :leak profile.l "
        ":leak-per day"}) {
    EXPECT_THAT(tree, HasSubstr(fragment));
  }
}

TEST(Signals, WithinMayStandInTheBlock) {
  EXPECT_THAT(Parsed("signal s on node { a: k where x then b: l within 90s }").printed(),
              HasSubstr("(signal s :on (node) :within 90s"));
}

TEST(Incidents, OpensOnKindsAndSignalsWithAPredicate) {
  const Parsed p(
      "incident h on job { opens on a.b or incident.open where it.symptom == \"hang\" "
      "opens on c settle 30s merge for 10m confirm 0.9 suspect 0.5 unexplained 1e-3 }");
  EXPECT_EQ(p.errors(), "");
  EXPECT_EQ(p.printed(),
            "(incident h :on (job) :opens a.b :opens (incident.open :where (== it.symptom "
            "\"hang\")) :opens c :settle 30s :merge 10m :confirm 0.9 :suspect 0.5 "
            ":unexplained 0.001)\n");
}

TEST(Edges, OptionsInAnyOrder) {
  EXPECT_EQ(Parsed("a causes b, c.d scope tor weight 2.5 nats lag 0s .. 1h learn\n"
                   "a causes b p profile.p_x\n")
                .printed(),
            "(causes a (b c.d) :weight 2.5 nats :lag-lo 0s :lag-hi 1h :scope tor :learn)\n"
            "(causes a (b) :p profile.p_x)\n");
}

TEST(Signals, DocIsTheCommentDirectlyAbove) {
  const Parsed p(
      "signal a on node { e: k }  # trailing\n"
      "# not this\n\n# first\n# second\nexport signal b on node { e: k }\n"
      "signal c on node { e: k }\n");
  EXPECT_EQ(p.errors(), "");
  EXPECT_EQ(std::get<ast::SignalDecl>(p.module.decls[1].node).doc, "first\nsecond");
  EXPECT_EQ(std::get<ast::SignalDecl>(p.module.decls[2].node).doc, "");
}

TEST(Tests, EventItemsAreSortedIntoTargetsAndFields) {
  const std::string tree = Parsed(R"(
test "t" {
  nodes n[1..8] as hw.h100 with rack "r1" tor "t1"
  nodes m1, "gpu-07" as hw.a100
  job j on n[1..8], m1 from 10s to 2h
  at 0s: job.start j2 nodes [n1, n2]
  at 1s: job.nodes j nodes n[3..4]
  at 1m: nic.flap n1/"mlx5_0" count 3 late 40s
  at 2m: gpu.temp n[2..8] value 91 celsius
  at 3m: maint.start rack "r1"
  at 4m: job.slow j n2 n3 factor -1.5 flag true
  at 5m: log n[1..6] """
NVRM: Xid
$node
""" x3 every 1s
  at 6m: log n1 "one line"
  gap n1 from 10m to 20m
  gap n2 source dmesg from 1m to 2m
  expect no verdict job_hang j
  expect no verdict
  expect no sig on n1 before 3h
  expect verdict job_hang j { suspect n1, n2 external tor_switch p < 0.2
    undetermined none gpu n1/3 }
  allow sig on n[1..2]
  strict
}
)")
                               .printed();
  for (const char* fragment :
       {"(nodes \"n\"[1..8] :as hw.h100 (rack \"r1\") (tor \"t1\"))",
        "(nodes \"gpu-07\" :as hw.a100)", "(job j (\"n\"[1..8] \"m1\") :from 10s :to 2h)",
        "(at 0s job.start (\"j2\") (nodes (list n1 n2)))",
        "(at 1s job.nodes (\"j\") (nodes (list n3 n4)))",
        "(at 1m nic.flap (\"n1\"/\"mlx5_0\") (count 3) :late 40s)",
        "(at 2m gpu.temp (\"n\"[2..8]) (value 91 celsius))", "(at 3m maint.start () (rack \"r1\"))",
        "(at 4m job.slow (\"j\" \"n2\" \"n3\") (factor -1.5) (flag true))",
        "log (\"n\"[1..6]) :log \"NVRM: Xid\\n$node\\n\" :repeat 3 :repeat-every 1s)",
        "(gap \"n1\" :from 10m :to 20m)", "(gap \"n2\" :source dmesg :from 1m :to 2m)",
        "(expect :no :verdict job_hang :job \"j\")", "(expect :no :verdict)",
        "(expect :no sig :on \"n1\" :before 3h)",
        "(suspect :targets (\"n1\" \"n2\")) (external :names (tor_switch) :p < 0.2) "
        "(undetermined) (none) (gpu :targets (\"n1\"/3))",
        "(allow sig :on \"n\"[1..2])", ":strict)"}) {
    EXPECT_THAT(tree, HasSubstr(fragment));
  }
}

TEST(Lists, MapsFilesAndRanges) {
  const std::string tree = Parsed(R"(
list m: map<u16, string> = [48: "dbe", 63: "row",]
list f from "codes.csv" column 2
list r = [1..5, 9]
)")
                               .printed();
  EXPECT_THAT(tree,
              HasSubstr("map<u16, string> :value (list (pair 48 \"dbe\") (pair 63 \"row\"))"));
  EXPECT_THAT(tree, HasSubstr("(list f :from \"codes.csv\" :column 2)"));
  EXPECT_THAT(tree, HasSubstr("(list r :value (list (range 1 5) 9))"));
}

}  // namespace
}  // namespace reflex::parse_test
