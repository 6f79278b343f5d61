// `reflex fmt`: the canonical layout of .rfx files.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "compiler/driver/compile.h"
#include "compiler/format/format.h"
#include "runtime/app/commands.h"
#include "runtime/app/load_packs.h"

namespace reflex::app {
namespace {

namespace fs = std::filesystem;

struct FmtFlags {
  std::vector<std::string> paths;
  bool diff = false;
  bool check = false;
  bool write = false;
};

Result<std::string> read_standard_input() {
  std::string text;
  char buffer[1 << 16];
  size_t size = 0;
  while ((size = std::fread(buffer, 1, sizeof buffer, stdin)) > 0) text.append(buffer, size);
  if (std::ferror(stdin) != 0) return Error{"standard input: reading failed"};
  return text;
}

/// Over the text that is there: other names of the file keep naming it.
Status overwrite(const fs::path& target, const std::string& text) {
  std::ofstream out(target, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out)
    return Error{fmt::format("{}: cannot be written: {}", target.string(), strerror(errno))};
  return ok_status();
}

/// Beside the file and then in its place, so that no reader sees half of it. A link stays a link; a
/// file with several names is written in place; one that its owner made read-only is left alone,
/// also by root.
Status replace_file(const std::string& path, const std::string& text) {
  std::error_code error;
  const fs::path target = fs::weakly_canonical(path, error);
  const fs::perms mode = fs::status(target, error).permissions();
  if (!error && (mode & fs::perms::owner_write) == fs::perms::none) {
    return Error{path + ": is read-only; it is not rewritten"};
  }
  if (fs::hard_link_count(target, error) > 1 && !error) return overwrite(target, text);
  const std::string temporary = target.string() + ".reflex-fmt";
  if (const Status written = overwrite(temporary, text); !written) return written;
  fs::permissions(temporary, mode, error);
  fs::rename(temporary, target, error);
  if (error) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    return Error{path + ": " + error.message()};
  }
  return ok_status();
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

/// One file: its exit code.
int format_one(const std::string& path, const FmtFlags& flags, const CommonFlags& common) {
  auto text = path == "-" ? read_standard_input() : compiler::read_source(path);
  if (!text.ok()) {
    print_error(common, text.error().message);
    return kUsage;
  }
  compiler::Compilation holder;  // for the sink and the sources that diagnostics are printed from
  const auto file = holder.sources.add(path, text.value());
  const auto formatted = format::format_file(holder.sources, file, {}, holder.sink);
  if (!formatted) {
    print_diagnostics(holder, /*warnings=*/false, kInvalidPack, common);
    return kInvalidPack;
  }
  const bool same = *formatted == text.value();
  if (flags.check) {
    if (!same) fmt::print("{}\n", path);
    return same ? kOk : kFindings;
  }
  if (flags.diff) {
    print(format::unified_diff(path, text.value(), *formatted));
    return kOk;
  }
  if (!flags.write) {
    print(*formatted);
    return kOk;
  }
  if (same) return kOk;
  if (const Status written = replace_file(path, *formatted); !written) {
    print_error(common, written.error().message);
    return kUsage;
  }
  print_note(common, fmt::format("{} formatted", path));
  return kOk;
}

int run(const FmtFlags& flags, const CommonFlags& common) {
  std::vector<std::string> files;
  if (flags.paths == std::vector<std::string>{"-"}) {
    if (flags.write) {
      print_error(common, "-w needs files: standard input cannot be rewritten");
      return kUsage;
    }
    files = flags.paths;
  } else {
    auto found = compiler::find_sources(flags.paths);
    if (!found.ok()) {
      print_error(common, found.error().message);
      return kUsage;
    }
    files = std::move(found).value();
  }
  int worst = kOk;
  for (const std::string& file : files) {
    worst = std::max(worst, format_one(file, flags, common));
  }
  return worst;
}

}  // namespace

Command add_fmt(CLI::App& app, const CommonFlags& common) {
  auto flags = std::make_shared<FmtFlags>();
  auto* sub = app.add_subcommand("fmt", "lay out .rfx files: to stdout, or in place with -w");
  sub->add_option("files", flags->paths, ".rfx files or folders, or - for standard input")
      ->required();
  auto* diff = sub->add_flag("-d,--diff", flags->diff, "print what would change");
  auto* check = sub->add_flag("--check", flags->check,
                              "list the files that are not laid out so, exit 1 if there is one");
  auto* write = sub->add_flag("-w,--write", flags->write, "rewrite the files");
  diff->excludes(check)->excludes(write);
  check->excludes(write);
  return [sub, flags, &common] { return sub->parsed() ? run(*flags, common) : -1; };
}

}  // namespace reflex::app
