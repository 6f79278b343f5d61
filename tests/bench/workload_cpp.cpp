// The compiled-in engine of the workload: each rule written out as C++ (the yardstick for our JIT).
//
// Uses the event struct, parsers and main() of tests/bench/baseline. Rules on one kind and window
// share the ring of samples; a rule is one `if` in the function of its kind.
#include <cstdio>
#include <map>

#include "tests/bench/workload_rules.h"

namespace reflex::bench {

namespace {

/// Code pieces of one engine, gathered rule by rule.
struct EngineText {
  std::array<std::string, kKindCount> by_kind;
  std::string state;
  // kind -> window -> rules
  std::map<uint32_t, std::map<uint32_t, std::vector<const WorkloadRule*>>> means;
};

std::string real(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string condition(const RuleLeaf& leaf) {
  return "(unsigned)(e.code-" + std::to_string(leaf.code_lo) +
         ")<=" + std::to_string(leaf.code_hi - leaf.code_lo) +
         "u && e.sev>=" + std::to_string(leaf.severity);
}

void add_rule(const WorkloadRule& rule, EngineText& out) {
  const std::string i = std::to_string(rule.id);
  const std::string a = condition(rule.a);
  const std::string window = std::to_string(rule.window_ms);
  std::string& code = out.by_kind[rule.a.kind];
  switch (rule.shape) {
    case 'a':
      code += "if(" + a + " && e.value>" + real(rule.value) + ") fire(" + i + ",e.node);\n";
      break;
    case 'b': {
      const std::string k = std::to_string(rule.count);
      const std::string last = std::to_string(rule.count - 1);
      out.state += "static int32_t b" + i + "[NN][" + k + "]; static uint8_t p" + i + "[NN];\n";
      code += "if(" + a + "){ auto&p=p" + i + "[e.node]; auto*q=b" + i +
              "[e.node]; q[p]=e.t+BIAS; p= p==" + last + "?0:p+1; if(q[p] && q[p]>e.t+BIAS-" +
              window + ") fire(" + i + ",e.node); }\n";
      break;
    }
    case 'c':
      out.state += "static int32_t l" + i + "[NN];\n";
      code += "if(" + a + ") l" + i + "[e.node]=e.t+BIAS;\n";
      out.by_kind[rule.b.kind] += "if(" + condition(rule.b) + "){ int32_t a=l" + i +
                                  "[e.node]; if(a){ if(e.t+BIAS-a<=" + window + ") fire(" + i +
                                  ",e.node); l" + i + "[e.node]=0; } }\n";
      break;
    case 'd':
      out.state += "static int32_t l" + i + "[NN];\n";
      code += "if(" + a + ") timer(" + i + ",e.node,e.t,l" + i + ");\n";
      out.by_kind[rule.b.kind] += "if(" + condition(rule.b) + ") l" + i + "[e.node]=e.t+BIAS;\n";
      break;
    default:
      out.means[rule.a.kind][rule.samples].push_back(&rule);
  }
}

void add_means(EngineText& out) {
  for (const auto& [kind, windows] : out.means) {
    const std::string g = "g" + std::to_string(kind);
    const std::string size = std::to_string(windows.rbegin()->first);
    const std::string last = std::to_string(windows.rbegin()->first - 1);
    out.state += "static double " + g + "[NN][" + size + "]; static uint8_t " + g + "n[NN], " + g +
                 "p[NN];\n";
    std::string code = "{ auto*v=" + g + "[e.node]; unsigned n=" + g + "n[e.node], p=" + g +
                       "p[e.node]; if(n>=4){ double s=0; unsigned j=0,x=p;\n";
    for (const auto& [samples, rules] : windows) {
      code += "for(;j<" + std::to_string(samples) + "&&j<n;j++){ x= x?x-1:" + last +
              "; s+=v[x]; } { double c=e.value*j; ";
      for (const WorkloadRule* rule : rules) {
        code +=
            "if(c>" + real(rule->factor) + "*s) fire(" + std::to_string(rule->id) + ",e.node); ";
      }
      code += "}\n";
    }
    code += "} v[p]=e.value; " + g + "p[e.node]= p==" + last + "?0:p+1; if(n<" + size + ") " + g +
            "n[e.node]=n+1; }\n";
    out.by_kind[kind] += code;
  }
}

std::string prelude(size_t rule_count) {
  return "#include \"common.hpp\"\n#include <deque>\nstatic const int NN=10048; static const "
         "int32_t BIAS=1000000; static const int R=" +
         std::to_string(rule_count) +
         R"(;
static uint32_t CNT[R]; static std::vector<uint64_t> SEEN;
static inline void fire(int r,int node){ CNT[r]++; uint64_t b=(uint64_t)r*NN+node; SEEN[b>>6]|=1ull<<(b&63); }
struct T{ int32_t dl; int32_t node; int rule; const int32_t*l; };
static std::vector<T> Q(1<<16); static size_t qh=0,qt=0;
static inline void timer(int r,int node,int32_t t,const int32_t*l){ if(qt-qh==Q.size()){ std::vector<T> n(Q.size()*2); for(size_t i=qh;i<qt;i++) n[i&(n.size()-1)]=Q[i&(Q.size()-1)]; Q.swap(n);} Q[qt++&(Q.size()-1)]={t+30000,node,r,l}; }
static inline void expire(int32_t t){ while(qh<qt){ T&x=Q[qh&(Q.size()-1)]; if(x.dl>=t) break; if(x.l[x.node]<=x.dl-30000+BIAS) fire(x.rule,x.node); qh++; } }
)";
}

constexpr std::string_view kEpilogue =
    R"(static inline void on_event(const Ev&e){ expire(e.t); switch(e.kind){ @CASES@ } }
static void finish(){ expire(1<<30); }
static void report(const char*o){ FILE*f=fopen(o,"w"); for(int r=0;r<R;r++){ int d=0; for(int n=0;n<NN;n++){ uint64_t b=(uint64_t)r*NN+n; d+=SEEN[b>>6]>>(b&63)&1; } fprintf(f,"%d\t%u\t%d\n",r,CNT[r],d); } fclose(f); }
#define ARGS_RULES
#include "main.inc"
)";

}  // namespace

std::string to_cpp(const std::vector<WorkloadRule>& rules) {
  EngineText text;
  for (const WorkloadRule& rule : rules) add_rule(rule, text);
  add_means(text);
  std::string out = prelude(rules.size()) + text.state;
  out += "static void init_engine(){ SEEN.resize((size_t)R*NN/64+1); }\n";
  std::string cases;
  for (size_t kind = 0; kind < kKindCount; ++kind) {
    const std::string k = std::to_string(kind);
    out += "static void k" + k + "(const Ev&e){ " + text.by_kind[kind] + " }\n";
    cases += "case " + k + ": k" + k + "(e); break; ";
  }
  std::string tail(kEpilogue);
  tail.replace(tail.find("@CASES@"), 7, cases);
  return out + tail;
}

}  // namespace reflex::bench
