// Grammar-aware fuzzing of what authors run: parse, fmt, check and compile.
//
//   author_fuzz SECONDS [SEED [FILE..]]
//
// The corpus is every .rfx of rules/, hwprofiles/ and tests/. A case is a handful of declarations
// of it with a few mutations on tokens (left out, twice, exchanged, another one of the same corpus,
// an edge value), so that most cases get past the lexer and many past the parser. It must hold:
//   - nothing crashes, hangs, or reports an internal error
//   - what fmt lays out has the same tree and is stable
//   - what compiles has IR that verifies (the driver says so itself), and one case in 16 JIT code
// A failure writes its case to author_fuzz_case.rfx and prints the seed; such a case, cut down,
// goes to tests/fuzz/corpus, whose files are run first. FILE: run these texts only, unmutated.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/driver/compile.h"
#include "compiler/format/format.h"
#include "compiler/parse/layout.h"

namespace {

using namespace reflex;
namespace fs = std::filesystem;

// Why: a case takes milliseconds; one that takes longer than this hangs.
constexpr unsigned kSecondsMax = 20;

struct Random {
  uint64_t state;
  uint64_t next() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
  }
  size_t below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(next() % n); }
};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

std::vector<std::string> rfx_files(const std::vector<fs::path>& folders) {
  std::vector<std::string> files;
  for (const auto& folder : folders) {
    if (!fs::exists(folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".rfx") files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

struct Corpus {
  std::vector<std::vector<std::string>> declarations;  // tokens of each
  std::vector<std::string> tokens;                     // all, for replacements
};

/// The blocks marked rfx of a Markdown file: the reference is a pack that compiles.
std::string rfx_blocks(const std::string& markdown) {
  std::string out;
  std::istringstream in(markdown);
  bool on = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      on = line == "```rfx";
    } else if (on) {
      out += line + "\n";
    }
  }
  return out;
}

Corpus load_corpus(const std::vector<std::string>& texts) {
  Corpus corpus;
  for (const auto& text : texts) {
    source::SourceMap map;
    diag::Sink sink;
    const auto file = map.add("corpus", text);
    const auto tokens = parse::layout_tokens(map, file, {}, sink);
    if (!tokens) continue;
    for (const auto& t : *tokens) {
      if (t.comment) continue;
      if (t.begins == parse::LayoutToken::Begins::kDeclaration || corpus.declarations.empty()) {
        corpus.declarations.emplace_back();
      }
      corpus.declarations.back().emplace_back(t.text);
      corpus.tokens.emplace_back(t.text);
    }
  }
  return corpus;
}

/// Words, numbers, texts and the rest: a token in the place of one of its class often still parses.
int class_of(const std::string& token) {
  const char c = token.empty() ? ' ' : token[0];
  if (c == '"') return 0;
  if (c >= '0' && c <= '9') return 1;
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ? 2 : 3;
}

const std::string& alike(const std::string& token, const Corpus& corpus, Random& random) {
  for (int tries = 0; tries < 100; ++tries) {
    const std::string& other = corpus.tokens[random.below(corpus.tokens.size())];
    if (class_of(other) == class_of(token)) return other;
  }
  return token;
}

void mutate(std::vector<std::string>& tokens, const Corpus& corpus, Random& random) {
  static constexpr const char* kEdges[] = {"0",         "-1",        "1e308", "9223372036854775807",
                                           "0s",        "99999999d", "100%",  "\"\"",
                                           "..",        "{",         "}",     "(",
                                           "#-",        "not",       "1.5s",  "in",
                                           "[]",        "a.b.c",     "it",    "peers(job).mad",
                                           "profile.x", ";"};
  if (tokens.empty()) return;
  const size_t at = random.below(tokens.size());
  const auto here = tokens.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random.below(10)) {
    case 0:
      tokens.erase(here);
      break;
    case 1:
      tokens.insert(here, std::string(tokens[at]));
      break;
    case 2:
      std::swap(tokens[at], tokens[random.below(tokens.size())]);
      break;
    case 3:
      tokens[at] = kEdges[random.below(std::size(kEdges))];
      break;
    case 4:
      tokens.insert(here, corpus.tokens[random.below(corpus.tokens.size())]);
      break;
    default:
      tokens[at] = alike(tokens[at], corpus, random);
      break;
  }
}

std::string joined(const std::vector<std::string>& tokens, Random& random) {
  std::string text;
  for (const auto& token : tokens) {
    text += token + (random.below(12) == 0 ? "\n" : " ");
    if (random.below(200) == 0) text += "# a comment\n";
  }
  return text + "\n";
}

/// Declarations from anywhere: seldom a pack that compiles, often one that parses.
std::string mixed_case(const Corpus& corpus, Random& random) {
  std::string text = random.below(4) == 0 ? "" : "pack t.fuzz 1.0.0\n";
  const size_t mutated = random.below(4);
  for (size_t i = 0; i < 4; ++i) {
    auto tokens = corpus.declarations[random.below(corpus.declarations.size())];
    if (i < mutated) mutate(tokens, corpus, random);
    text += joined(tokens, random);
  }
  return text;
}

/// A whole pack that compiles, less some declarations, with few mutations.
std::string pack_case(const Corpus& pack, const Corpus& corpus, Random& random) {
  std::string text;
  const size_t leave_out = random.below(3) == 0 ? 8 : 1000;  // one in so many
  const size_t mutated = random.below(pack.declarations.size());
  for (size_t i = 0; i < pack.declarations.size(); ++i) {
    if (i > 0 && random.below(leave_out) == 0) continue;
    auto tokens = pack.declarations[i];
    if (i == mutated) mutate(tokens, corpus, random);
    text += joined(tokens, random);
  }
  return text;
}

[[noreturn]] void fail(const std::string& text, const std::string& what, uint64_t seed) {
  std::ofstream("author_fuzz_case.rfx", std::ios::binary) << text;
  std::cerr << "author_fuzz: " << what << " (seed " << seed << ", case in author_fuzz_case.rfx)\n";
  std::exit(1);
}

std::string tree(const std::string& text) {
  source::SourceMap map;
  diag::Sink sink;
  const auto file = map.add("t.rfx", text);
  const std::string printed = ast::print(parse::parse(map, file, {}, sink));
  // Free texts keep their blanks and line breaks in the tree; which ones says nothing.
  std::string out;
  for (size_t i = 0; i < printed.size(); ++i) {
    const bool escape = printed.compare(i, 2, "\\n") == 0 || printed.compare(i, 2, "\\t") == 0;
    const char c = escape ? ' ' : printed[i];
    i += escape ? 1 : 0;
    if (c == ' ' && !out.empty() && out.back() == ' ') continue;
    out += c;
  }
  return out;
}

void check_internal(const std::string& text, const diag::Sink& sink, uint64_t seed) {
  for (const auto& d : sink.all()) {
    if (d.id == diag::Id::kParserInternal) fail(text, d.message, seed);
  }
}

struct Reached {
  size_t cases = 0;
  size_t parsed = 0;    // no syntax error: formatted
  size_t compiled = 0;  // no error at all
};

void run_format(const std::string& text, uint64_t seed, Reached& reached) {
  source::SourceMap map;
  diag::Sink sink;
  const auto file = map.add("t.rfx", text);
  const auto once = format::format_file(map, file, {}, sink);
  check_internal(text, sink, seed);
  if (!once) return;
  ++reached.parsed;
  if (tree(*once) != tree(text)) fail(text, "fmt changed the tree", seed);
  source::SourceMap again;
  const auto copy = again.add("t.rfx", *once);
  if (format::format_file(again, copy, {}, sink) != once) fail(text, "fmt is not stable", seed);
}

/// The hardware profiles, beside every case: the reference names some of them.
std::vector<compiler::InMemoryFile>& profiles() {
  static std::vector<compiler::InMemoryFile> files;
  return files;
}

void run_case(const std::string& text, bool jit, uint64_t seed, Reached& reached) {
  alarm(kSecondsMax);
  ++reached.cases;
  run_format(text, seed, reached);
  compiler::Options options;
  options.include_tests = true;
  std::vector<compiler::InMemoryFile> files = profiles();
  files.push_back({"t/pack.rfx", text});
  options.compile_threads = 1;
  options.backend = jit ? compiler::Backend::kJit : compiler::Backend::kInterp;
  auto result = compiler::compile_text(files, options);
  if (!result.ok()) fail(text, result.error().message, seed);
  check_internal(text, result.value()->sink, seed);
  // Whatever is said can be said in every form.
  const auto all = result.value()->sink.sorted();
  (void)diag::render_text(all, result.value()->sources, {});
  (void)diag::render_json(all, result.value()->sources);
  (void)diag::render_sarif(all, result.value()->sink.suppressed(), result.value()->sources, {});
  (void)diag::render_github(all, result.value()->sources);
  if (!result.value()->sink.has_errors() && !result.value()->pack) {
    fail(text, "no error and no pack", seed);
  }
  reached.compiled += result.value()->pack ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: author_fuzz SECONDS [SEED [FILE..]]\n";
    return 3;
  }
  const fs::path root = REFLEX_SOURCE_DIR;
  const auto seconds = std::chrono::seconds(std::strtol(argv[1], nullptr, 10));
  const uint64_t first_seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  for (const auto& path : rfx_files({root / "hwprofiles"})) {
    profiles().push_back({path, read(path)});
  }
  Reached reached;
  if (argc > 3) {
    for (int i = 3; i < argc; ++i) run_case(read(argv[i]), true, 0, reached);
    std::cout << argc - 3 << " files passed\n";
    return 0;
  }
  for (const auto& path : rfx_files({root / "tests/fuzz/corpus"})) {
    run_case(read(path), true, 0, reached);
  }
  std::vector<std::string> texts;
  for (const auto& path : rfx_files({root / "rules", root / "hwprofiles", root / "tests"})) {
    texts.push_back(read(path));
  }
  const Corpus corpus = load_corpus(texts);
  const std::vector<Corpus> packs = {load_corpus({rfx_blocks(read(root / "grammar/LANGUAGE.md"))}),
                                     load_corpus({rfx_blocks(read(root / "grammar/BUILTINS.md"))}),
                                     load_corpus({read(root / "tests/data/learn/pack/pack.rfx")})};
  const auto started = std::chrono::steady_clock::now();
  uint64_t seed = first_seed;
  for (; std::chrono::steady_clock::now() - started < seconds; ++seed) {
    Random random{seed};
    for (int i = 0; i < 4; ++i) random.next();
    const std::string text = random.below(2) == 0
                                 ? mixed_case(corpus, random)
                                 : pack_case(packs[random.below(packs.size())], corpus, random);
    {
      // What was running when the process died, if it dies.
      std::ofstream("author_fuzz_last.rfx", std::ios::binary) << text;
    }
    run_case(text, seed % 16 == 0, seed, reached);
  }
  std::cout << reached.cases << " cases passed, " << reached.parsed << " of them parsed, "
            << reached.compiled << " compiled; seeds " << first_seed << " to " << seed - 1 << "\n";
  return 0;
}
