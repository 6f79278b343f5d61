// reflex.toml: origins, errors that help, and an example that says what the code does.
#include "runtime/serve/config.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "tests/unit/serve/scratch_folder.h"

namespace reflex::serve {
namespace {

Result<Config> load(const std::string& text, ConfigRequest request = {}) {
  static const ScratchFolder folder;  // one file, overwritten
  request.file = folder.file("reflex.toml");
  std::ofstream(request.file) << text;
  return load_config(request);
}

std::string error_of(const std::string& text) {
  const auto config = load(text);
  return config.ok() ? "no error" : config.error().message;
}

TEST(Config, FlagOverEnvironmentOverFileOverDefault) {
  ConfigRequest request;
  request.environment["REFLEX_JOURNAL_SEGMENT"] = "2MiB";
  request.environment["REFLEX_THREADS"] = "3";
  request.flags.emplace_back("threads", "4");
  const auto config = load("threads = 2\n[journal]\nsegment = \"1MiB\"\nmax = \"5MiB\"\n", request);
  ASSERT_TRUE(config.ok()) << config.error().message;
  const ConfigTable& main = config.value().main;
  EXPECT_EQ(main.number("threads"), 4);
  EXPECT_EQ(main.bytes("journal.segment"), 2u << 20);
  EXPECT_EQ(main.bytes("journal.max"), 5u << 20);
  EXPECT_EQ(main.duration_ns("snapshot.interval"), 300'000'000'000);
  const std::string shown = show_config(config.value());
  EXPECT_NE(shown.find("threads = 4  # flag\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("journal.segment = \"2MiB\"  # environment REFLEX_JOURNAL_SEGMENT\n"),
            std::string::npos);
  EXPECT_NE(shown.find("journal.max = \"5MiB\"  # reflex.toml:4\n"), std::string::npos);
  EXPECT_NE(shown.find("clock.ticks = true  # default\n"), std::string::npos);
}

TEST(Config, UnknownKeysAreErrorsWithTheNearestOne) {
  EXPECT_EQ(error_of("thread = 2\n"),
            "reflex.toml:1: there is no key 'thread'; did you mean 'threads'?");
  EXPECT_EQ(error_of("[jurnal]\nsegment = 1\n"),
            "reflex.toml:2: there is no key 'jurnal.segment'; did you mean 'journal.segment'?");
  EXPECT_EQ(error_of("[[sources]]\ntype = \"tail\"\npth = \"x\"\n"),
            "reflex.toml:3: there is no key 'pth'; did you mean 'path'?");
  EXPECT_EQ(error_of("zzzzzzzz = 1\n"),
            "reflex.toml:1: there is no key 'zzzzzzzz'; `reflex config default` shows all that "
            "there are");
}

TEST(Config, WhatIsNoFileIsToldBeforeItIsOpened) {
  static const ScratchFolder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::ofstream(folder.file("plain")) << "x";
  EXPECT_EQ(
      error_of("state_dir = \"" + folder.file("plain") + "\"\n[http]\ntokens = \"" + pipe +
               "\"\n[packs]\nmodel = \"/dev/zero\"\npaths = [\"not.there\", \"" + pipe + "\"]\n"),
      "reflex.toml:1: state_dir: " + folder.file("plain") + " is a file; it names a folder\n" +
          "reflex.toml:3: http.tokens: " + pipe + " is neither a file nor a folder\n" +
          "reflex.toml:5: packs.model: /dev/zero is neither a file nor a folder\n" +
          "reflex.toml:6: packs.paths: " + pipe + " is neither a file nor a folder");
  ConfigRequest request;
  request.file = pipe;
  EXPECT_EQ(load_config(request).error().message, pipe + " is neither a file nor a folder");
  request.file = folder.file("");
  EXPECT_NE(load_config(request).error().message.find(" is a folder; name the file in it"),
            std::string::npos);
}

TEST(Config, TwoOfOneNameAreTold) {
  EXPECT_EQ(
      error_of("[[sinks]]\ntype = \"webhook\"\n[[sinks]]\ntype = \"webhook\"\n"),
      "reflex.toml:4: two of [[sinks]] go by the name 'webhook', under which its cursor is kept: "
      "give each a name of its own");
  EXPECT_EQ(error_of("[[sources]]\ntype = \"tail\"\npath = \"/a\"\nname = \"n\"\n[[sources]]\n"
                     "type = \"tail\"\npath = \"/b\"\nname = \"n\"\n"),
            "reflex.toml:6: two of [[sources]] go by the name 'n', under which its cursor is kept: "
            "give each a name of its own");
}

TEST(Config, WrongFormsAreAllTold) {
  EXPECT_EQ(error_of("threads = \"two\"\n[journal]\nmax = \"5 XB\"\n[snapshot]\ninterval = \"0s\"\n"
                     "[packs]\npaths = \"a\"\nwatch = 1\n"),
            "reflex.toml:1: 'threads' wants a whole number that is not negative\n"
            "reflex.toml:3: 'journal.max' wants a size like \"64MiB\"\n"
            "reflex.toml:5: 'snapshot.interval' wants a time like \"5m\"\n"
            "reflex.toml:7: 'packs.paths' wants a list of paths\n"
            "reflex.toml:8: 'packs.watch' wants true or false");
  EXPECT_NE(error_of("a = = 1\n").find("reflex.toml:1"), std::string::npos);
}

TEST(Config, WhatADaemonCouldNotRunWithIsToldWithPlaceCauseAndFix) {
  EXPECT_EQ(error_of("threads = 0\n[http]\nconnections_max = 0\n[journal]\nsegment = 0\n"),
            "reflex.toml:1: threads = 0: it is the number of shards; write 1 to 64\n"
            "reflex.toml:3: http.connections_max = 0: each connection has a thread, 0 would serve "
            "nobody; write 1 to 10000\n"
            "reflex.toml:5: journal.segment = 0: no input would ever be taken; write a size like "
            "64MiB");
  EXPECT_EQ(error_of("threads = 100000\n"),
            "reflex.toml:1: threads = 100000: it is the number of shards; write 1 to 64");
  EXPECT_EQ(error_of("threads = -1\n"),
            "reflex.toml:1: 'threads' wants a whole number that is not negative");
  EXPECT_EQ(error_of("[http]\nbody_max = \"300MiB\"\n").substr(0, 14), "reflex.toml:2:");
  EXPECT_EQ(error_of("[http]\nbodies_max = \"64MiB\"\n").substr(0, 14), "reflex.toml:2:");
  EXPECT_EQ(error_of("[http]\nbody_max = \"256MiB\"\n"), "no error");  // just half
  ConfigRequest request;
  request.environment["REFLEX_THREADS"] = "100000";
  EXPECT_EQ(load("", request).error().message.substr(0, 27), "environment REFLEX_THREADS:");
}

TEST(Config, AJournalHoldsTwoOfItsFiles) {
  EXPECT_EQ(
      error_of("[journal]\nsegment = \"1MiB\"\nmax = \"2047KiB\"\n"),
      "reflex.toml:3: journal.max = 2047KiB is less than twice journal.segment = 1MiB: a full "
      "journal would stay full, as space is freed by whole files and never that of the newest; "
      "raise journal.max or lower journal.segment");
  EXPECT_EQ(error_of("[journal]\nsegment = \"1MiB\"\nmax = \"2MiB\"\n"), "no error");
  EXPECT_EQ(error_of("[journal]\nsegment = \"9GiB\"\n").substr(0, 14), "reflex.toml:2:");
}

TEST(Config, NamesOfTheEnvironmentThatAreNearlyThoseOfKeysAreTold) {
  ConfigRequest request;
  request.environment["REFLEX_THREAD"] = "2";
  request.environment["REFLEX_JOURNAL_SEGMENTS"] = "2MiB";
  // Of the client, and what Kubernetes gives for a Service called reflex.
  request.environment["REFLEX_URL"] = "http://x";
  request.environment["REFLEX_TOKEN_FILE"] = "/x";
  request.environment["REFLEX_PORT"] = "tcp://10.0.0.1:7480";
  request.environment["REFLEX_SERVICE_HOST"] = "10.0.0.1";
  request.environment["REFLEX_SERVICE_PORT_HTTP"] = "7480";
  request.environment["REFLEX_PORT_7480_TCP_PROTO"] = "tcp";
  EXPECT_EQ(load("", request).error().message,
            "environment REFLEX_JOURNAL_SEGMENTS: there is no such variable; did you mean "
            "REFLEX_JOURNAL_SEGMENT?\n"
            "environment REFLEX_THREAD: there is no such variable; did you mean REFLEX_THREADS?");
}

TEST(Config, WhatIsNoTomlIsToldWithWhatToWrite) {
  const auto fix = [](const std::string& text) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find("reflex.toml:"), std::string::npos) << error;
    EXPECT_NE(error.find(": this is no TOML: "), std::string::npos) << error;
    return error.substr(error.rfind("; ") + 2);
  };
  const std::string quotes = "texts, sizes and times stand in quotes: ";
  EXPECT_EQ(fix("state_dir = /var/lib/reflex # here\n"),
            quotes + "state_dir = \"/var/lib/reflex\"");
  EXPECT_EQ(fix("[http]\nlisten = 127.0.0.1:7480\n"), quotes + "listen = \"127.0.0.1:7480\"");
  EXPECT_EQ(fix("[snapshot]\ninterval = 5m\n"), quotes + "interval = \"5m\"");
  EXPECT_EQ(fix("[packs]\nbackend = jit\n"), quotes + "backend = \"jit\"");
  EXPECT_EQ(fix("[packs]\nwatch = True\n"), "write true or false, in small letters");
  EXPECT_EQ(fix("[packs]\npaths = [a, b]\n"),
            "write paths = [\"A\", \"B\"]: each in quotes, commas between, a ] at the end");
  EXPECT_EQ(fix("state_dir = \"x\n"),
            "end the text with the quote that it begins with, on its line");
  EXPECT_EQ(fix("state_dir \"x\"\n"), "write KEY = VALUE");
  EXPECT_EQ(fix("state_dir =\n"), "write a value behind state_dir =");
  EXPECT_EQ(fix("[http\n"), "write a table like [packs], a list entry like [[sources]]");
  EXPECT_EQ(fix("threads = 1\nthreads = 2\n"), "keep one of them");
  EXPECT_EQ(fix("a = = 1\n"), "`reflex config default` prints an example with every key");
  EXPECT_NE(error_of("threads = 1\n\n[http]\nlisten = a\n").find("reflex.toml:4:"),
            std::string::npos);
}

TEST(Config, AFileThatIsNotThereHasNoLine) {
  ConfigRequest request;
  request.file = "/no/reflex.toml";
  EXPECT_EQ(load_config(request).error().message,
            "/no/reflex.toml cannot be read: No such file or directory; name a file that is there "
            "(an example: `reflex config default > reflex.toml`)");
}

TEST(Config, AnEmptySourceOrSinkIsToldAtItsPlace) {
  EXPECT_EQ(
      error_of("threads = 1\n[[sources]]\n[[sources]]\n[[sinks]]\nname = \"a\"\n"),
      "reflex.toml:2: this [[sources]] has no type; write type = \"..\" in it: tail, journald, "
      "stdin, nats or kafka\n"
      "reflex.toml:3: this [[sources]] has no type; write type = \"..\" in it: tail, journald, "
      "stdin, nats or kafka\n"
      "reflex.toml:4: this [[sinks]] has no type; write type = \"..\" in it: file, webhook, "
      "alertmanager, nats or kafka");
}

TEST(Config, AZoneIsAnOffset) {
  const auto with = [](const std::string& zone) {
    return error_of("[[sources]]\ntype = \"tail\"\npath = \"a\"\ntz = \"" + zone + "\"\n");
  };
  for (const char* good : {"Z", "+01:00", "-0530"}) EXPECT_EQ(with(good), "no error") << good;
  for (const char* bad : {"", "CET", "Europe/Berlin", "+1", "01:00", "+24:00", ".5Z", "+01:00x"}) {
    EXPECT_EQ(with(bad), "reflex.toml:4: tz = '" + std::string(bad) +
                             "' is no offset from UTC; write it like +01:00 (names of zones are "
                             "not known), or Z");
  }
}

TEST(Config, AnAddressBeyondThisMachineWantsTokens) {
  const auto with = [](const std::string& listen) {
    return error_of("[http]\nlisten = \"" + listen + "\"\n");
  };
  for (const char* good : {"127.0.0.1:0", "localhost:80", "[::1]:65535"}) {
    EXPECT_EQ(with(good), "no error") << good;
  }
  for (const char* bad : {"7480", "127.0.0.1", "127.0.0.1:65536", "127.0.0.1:a", "127.0.0.1:"}) {
    EXPECT_EQ(with(bad), "reflex.toml:2: '" + std::string(bad) +
                             "' is no address and port; write it like 127.0.0.1:7480");
  }
  for (const char* open : {"0.0.0.0:80", "[::]:80", ":80"}) {
    EXPECT_NE(with(open).find("is not loopback and asks for no token; set http.tokens"),
              std::string::npos)
        << open;
  }
}

TEST(Config, PathsOfTheFileAreRelativeToIt) {
  const auto config = load("state_dir = \"state\"\n[packs]\npaths = [\"a\", \"/b\"]\n");
  ASSERT_TRUE(config.ok());
  const auto& paths = config.value().main.texts("packs.paths");
  ASSERT_EQ(paths.size(), 2u);
  EXPECT_EQ(paths[0].substr(paths[0].size() - 2), "/a");
  EXPECT_EQ(paths[0][0], '/');
  EXPECT_EQ(paths[1], "/b");
}

TEST(Config, TheExampleIsTheOneThatIsShippedAndLoads) {
  std::ifstream file(REFLEX_SOURCE_DIR "/runtime/serve/packaging/reflex.toml");
  std::stringstream shipped;
  shipped << file.rdbuf();
  EXPECT_EQ(shipped.str(), example_config()) << "write it with: reflex config default";
  EXPECT_TRUE(load(example_config()).ok());
}

// As a reader takes them: without the sign before each line.
TEST(Config, TheExamplesOfSourcesAndSinksLoad) {
  std::istringstream example(example_config());
  std::string toml;
  bool inside = false;
  for (std::string line; std::getline(example, line);) {
    if (!line.starts_with("#")) inside = false;
    if (inside && line.size() > 2) toml += line.substr(2) + "\n";
    if (line == "# Examples:") inside = true;
  }
  const auto config = load(toml);
  ASSERT_TRUE(config.ok()) << config.error().message << "\n" << toml;
  EXPECT_EQ(config.value().sources.size(), 3u);
  EXPECT_EQ(config.value().sinks.size(), 3u);
}

}  // namespace
}  // namespace reflex::serve
