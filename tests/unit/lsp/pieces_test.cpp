// The parts of the language server that have edges of their own: places, framing, URIs; and the
// server without a stream. What a client sees is tested by tests/lsp.
#include <gtest/gtest.h>

#include <random>

#include "compiler/lsp/rpc.h"
#include "compiler/lsp/server.h"
#include "compiler/lsp/text_lines.h"
#include "compiler/lsp/uri.h"

namespace reflex::lsp {
namespace {

TEST(TextLines, CountsUtf16Units) {
  const TextLines lines(
      "a\xF0\x9F\x94\xA5"
      "b\xC3\xA9"
      "c\n");  // a, a pair, b, e acute, c
  EXPECT_EQ(lines.position(0), (Position{0, 0}));
  EXPECT_EQ(lines.position(5), (Position{0, 3}));
  EXPECT_EQ(lines.position(8), (Position{0, 5}));
  EXPECT_EQ(lines.offset({0, 3}), 5u);
  EXPECT_EQ(lines.offset({0, 2}), 1u) << "inside of the pair: before it";
  EXPECT_EQ(lines.offset({0, 99}), 9u) << "behind the line: its end";
  EXPECT_EQ(lines.offset({9, 9}), 10u);
  EXPECT_EQ(lines.position(3), (Position{0, 1})) << "inside of the character: before it";
}

TEST(TextLines, KnowsEveryLineEnd) {
  const TextLines lines("a\r\nb\rc\n\r\n");
  EXPECT_EQ(lines.line_count(), 5u);
  EXPECT_EQ(lines.position(3), (Position{1, 0}));
  EXPECT_EQ(lines.position(5), (Position{2, 0}));
  EXPECT_EQ(lines.line_end(0), 1u);
  EXPECT_EQ(lines.offset({0, 5}), 1u);
}

TEST(TextLines, GoesThereAndBackInAnyText) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) {
      static constexpr const char* kParts[] = {
          "a", "\n", "\r", "\r\n", "\xC3\xA9", "\xF0\x9F\x94\xA5", "\xFF", "\xE2\x82"};
      text += kParts[random() % std::size(kParts)];
    }
    const TextLines lines(text);
    for (uint32_t at = 0; at <= text.size(); ++at) {
      const Position p = lines.position(at);
      const uint32_t back = lines.offset(p);
      EXPECT_LE(back, at);
      EXPECT_EQ(lines.position(back).line, p.line);
    }
  }
}

TEST(Frames, TakesBytesAsTheyCome) {
  const std::string bytes =
      "Content-Type: x\r\ncontent-length: 2\r\n\r\n{}Content-Length: 3\r\n\r\nabc";
  for (size_t step = 1; step < bytes.size(); ++step) {
    Frames frames;
    std::vector<std::string> bodies;
    std::string body;
    for (size_t at = 0; at < bytes.size(); at += step) {
      frames.push(std::string_view(bytes).substr(at, step));
      while (frames.next(body) == Frames::Next::kBody) bodies.push_back(body);
    }
    EXPECT_EQ(bodies, (std::vector<std::string>{"{}", "abc"})) << step;
  }
}

TEST(Frames, SkipsWhatIsNoHeaderAndWhatIsTooLong) {
  Frames frames;
  std::string body;
  frames.push("hello\r\n\r\nContent-Length: x\r\n\r\nContent-Length: 99999999999\r\n\r\n");
  EXPECT_EQ(frames.next(body), Frames::Next::kNone);
  Frames noise;
  for (int i = 0; i < 100; ++i) noise.push(std::string(1000, 'x'));
  EXPECT_EQ(noise.next(body), Frames::Next::kNone);
  noise.push("\nContent-Length: 1\r\n\r\n7");
  EXPECT_EQ(noise.next(body), Frames::Next::kBody);
  EXPECT_EQ(body, "7");
}

TEST(Uri, GoesThereAndBack) {
  EXPECT_EQ(path_of_uri("file:///a%20b/%C3%A9.rfx"), "/a b/\xC3\xA9.rfx");
  EXPECT_EQ(path_of_uri("file:///a/../b.rfx"), "/b.rfx");
  EXPECT_EQ(path_of_uri("untitled:Untitled-1"), std::nullopt);
  EXPECT_EQ(path_of_uri("file:///a%00b"), std::nullopt);
  EXPECT_EQ(path_of_uri("file:///100%"), "/100%");
  EXPECT_EQ(uri_of_path("/a b/\xC3\xA9%.rfx"), "file:///a%20b/%C3%A9%25.rfx");
  EXPECT_EQ(path_of_uri(uri_of_path("/x y#z?.rfx")), "/x y#z?.rfx");
}

/// A server with one open document.
class ServerTest : public testing::Test {
 protected:
  ServerTest() : server_({}, "test", [this](const Json& m) { sent_.push_back(m); }) {
    ask("initialize", Json::object());
    tell("initialized", Json::object());
  }
  Json ask(const std::string& method, Json params) {
    server_.handle(
        {{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", std::move(params)}});
    return sent_.back();
  }
  void tell(const std::string& method, Json params) {
    server_.handle({{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}});
  }
  void open(const std::string& text) {
    tell("textDocument/didOpen",
         {{"textDocument", {{"uri", "untitled:a"}, {"version", 1}, {"text", text}}}});
  }
  Server server_;
  std::vector<Json> sent_;
};

TEST_F(ServerTest, EveryFeatureLivesThroughEveryPrefixOfAPack) {
  const std::string text =
      "pack t.p 1.0.0\nevent k.e { key node: node  v: u16 }\nlist l: set<u16> = [1, 2]\n"
      "signal s on node { a: k.e where a.v in l then b: k.e where b.v == a.v }\n"
      "test \"t\" { nodes n[1..2]  at 1s: k.e n1 v 3 x4 every 1s  expect s on n1 }\n"
      "overlay o for t.p { set profile p.q r = 3  except s w (node) [ (n1) ] }\n"
      "rule r on verdict v of i where v.top.p > 1% { annotate a \"{v.top}\" }\n";
  open("");
  for (size_t size = 0; size <= text.size(); ++size) {
    tell("textDocument/didChange",
         {{"textDocument", {{"uri", "untitled:a"}, {"version", size + 2}}},
          {"contentChanges", Json::array({{{"text", text.substr(0, size)}}})}});
    const auto lines = std::count(text.begin(), text.begin() + static_cast<long>(size), '\n');
    const Json params = {
        {"textDocument", {{"uri", "untitled:a"}}},
        {"position", {{"line", lines}, {"character", 999}}},
        {"range",
         {{"start", {{"line", 0}, {"character", 0}}}, {"end", {{"line", 99}, {"character", 0}}}}},
        {"context", {{"diagnostics", Json::array()}}}};
    for (const char* method :
         {"completion", "hover", "signatureHelp", "definition", "documentSymbol",
          "semanticTokens/full", "codeAction", "foldingRange", "inlayHint"}) {
      const Json answer = ask(std::string("textDocument/") + method, params);
      ASSERT_TRUE(answer.contains("result")) << method << " of " << text.substr(0, size) << answer;
    }
  }
}

TEST_F(ServerTest, PushesAfterTheDebounceOnly) {
  open("signal {");
  ASSERT_TRUE(server_.due());
  const auto due = *server_.due();
  sent_.clear();
  server_.tick(due - std::chrono::milliseconds(1));
  EXPECT_TRUE(sent_.empty());
  server_.tick(due);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0]["params"]["uri"], "untitled:a");
  EXPECT_FALSE(sent_[0]["params"]["diagnostics"].empty());
  EXPECT_FALSE(server_.due());
}

TEST_F(ServerTest, AnswersEachRequestOnce) {
  for (const Json& params :
       {Json(nullptr), Json(3), Json::array(), Json::object(), Json({{"textDocument", 3}}),
        Json({{"textDocument", {{"uri", "x"}}}})}) {
    for (const char* method :
         {"textDocument/hover", "textDocument/rename", "workspace/executeCommand",
          "callHierarchy/incomingCalls", "textDocument/codeAction", "nothing"}) {
      const size_t before = sent_.size();
      const Json answer = ask(method, params);
      EXPECT_EQ(sent_.size(), before + 1) << method;
      EXPECT_TRUE(answer.contains("error")) << method << params;
    }
  }
}

}  // namespace
}  // namespace reflex::lsp
