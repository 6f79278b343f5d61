// Pack membership, imports and version ranges; see packs.h.
#include "compiler/sema/packs.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>

namespace reflex::sema {

namespace {

using source::Span;

constexpr const char* kOverlayPack = "overlays";

std::string folder_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(path.substr(0, slash));
}

std::string base_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

bool below_hwprofiles(std::string_view path) {
  const std::string text = "/" + std::string(path);
  return text.find("/hwprofiles/") != std::string::npos;
}

bool only_profiles(const ast::Module& module) {
  return !module.decls.empty() &&
         std::all_of(module.decls.begin(), module.decls.end(), [](const ast::Decl& d) {
           return std::holds_alternative<ast::ProfileDecl>(d.node);
         });
}

bool has_overlay(const ast::Module& module) {
  return std::any_of(module.decls.begin(), module.decls.end(), [](const ast::Decl& d) {
    return std::holds_alternative<ast::OverlayDecl>(d.node);
  });
}

/// A site's own words about packs that it did not write: they need no head of their own.
bool only_site_words(const ast::Module& module) {
  return !module.decls.empty() &&
         std::all_of(module.decls.begin(), module.decls.end(), [](const ast::Decl& d) {
           return std::holds_alternative<ast::OverlayDecl>(d.node) ||
                  std::holds_alternative<ast::TestDecl>(d.node) ||
                  std::holds_alternative<ast::SuppressDecl>(d.node) ||
                  std::holds_alternative<ast::MaintenanceDecl>(d.node) ||
                  std::holds_alternative<ast::BaselineDecl>(d.node) ||
                  std::holds_alternative<ast::VerdictRuleDecl>(d.node);
         });
}

struct Version {
  std::array<int64_t, 3> part{0, 0, 0};
  int given = 0;
  std::string pre;
};

Version parse_version(std::string_view text) {
  Version v;
  size_t i = 0;
  while (i < text.size() && v.given < 3) {
    int64_t n = 0;
    const size_t start = i;
    while (i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) && n < 1'000'000) {
      n = n * 10 + (text[i++] - '0');
    }
    if (i == start) break;
    v.part[static_cast<size_t>(v.given++)] = n;
    if (i < text.size() && text[i] == '.') {
      ++i;
    } else {
      break;
    }
  }
  if (i < text.size() && text[i] == '-') v.pre = std::string(text.substr(i + 1));
  return v;
}

/// A range without its operator.
std::string_view bare(std::string_view range) {
  const size_t digit = range.find_first_of("0123456789");
  return digit == std::string_view::npos ? std::string_view() : range.substr(digit);
}

int compare(const Version& a, const Version& b) {
  if (a.part != b.part) return a.part < b.part ? -1 : 1;
  if (a.pre.empty() != b.pre.empty()) return a.pre.empty() ? 1 : -1;
  return a.pre.compare(b.pre);
}

/// Sets of files by owner: headed files first, then the head-less ones by their nearest owner.
struct Grouping {
  const source::SourceMap& sources;
  const std::vector<ast::Module>& modules;
  diag::Sink& sink;
  PackSet out;
  std::map<std::string, PackIndex> by_name;
  std::map<std::string, PackIndex> by_folder;               // folder of a pack.rfx
  std::map<std::string, std::vector<PackIndex>> headed_in;  // folder -> packs with a head there

  [[nodiscard]] std::string path(uint32_t m) const {
    return std::string(sources.path(modules[m].file));
  }
  void add_headed();
  void add_headless();
  PackIndex implicit_pack(const std::string& name);
  void sort_packs();
  void resolve_imports();
  struct WrongVersion {
    const Pack* importer;
    const ast::Import* import;
    PackIndex target;
  };
  [[nodiscard]] std::string chain_to(const Pack& importer, const ast::Import& import) const;
  void report_version(const WrongVersion& wrong);
  void import_overlay_targets();
  void add_import(PackIndex importer, PackIndex target, source::Span span);
  void check_cycles();
};

void Grouping::add_headed() {
  for (uint32_t m = 0; m < modules.size(); ++m) {
    if (!modules[m].head) continue;
    const ast::PackHead& head = *modules[m].head;
    const auto found = by_name.find(head.name.text);
    if (found != by_name.end()) {
      auto& d = sink.report(diag::Id::kDuplicatePack, head.name.span,
                            "pack '" + head.name.text + "' is declared twice");
      d.notes.push_back({out.packs[found->second].span, "first declared here"});
      out.of_module[m] = found->second;
      continue;
    }
    const auto index = static_cast<PackIndex>(out.packs.size());
    out.packs.push_back({head.name.text, head.version, &head, head.name.span, {m}, {}});
    by_name[head.name.text] = index;
    out.of_module[m] = index;
    const std::string file = path(m);
    if (base_of(file) == "pack.rfx") by_folder[folder_of(file)] = index;
    headed_in[folder_of(file)].push_back(index);
  }
}

PackIndex Grouping::implicit_pack(const std::string& name) {
  const auto found = by_name.find(name);
  if (found != by_name.end()) return found->second;
  const auto index = static_cast<PackIndex>(out.packs.size());
  out.packs.push_back({name, "", nullptr, {}, {}, {}});
  by_name[name] = index;
  return index;
}

void Grouping::add_headless() {
  for (uint32_t m = 0; m < modules.size(); ++m) {
    if (modules[m].head) continue;
    const std::string file = path(m);
    std::optional<PackIndex> owner;
    for (std::string folder = folder_of(file); !owner;) {
      const auto found = by_folder.find(folder);
      if (found != by_folder.end()) owner = found->second;
      if (folder.empty()) break;
      folder = folder_of(folder);
    }
    if (!owner) {
      const auto here = headed_in.find(folder_of(file));
      if (here != headed_in.end() && here->second.size() == 1) owner = here->second[0];
    }
    if (!owner && (below_hwprofiles(file) || only_profiles(modules[m]))) {
      owner = implicit_pack("hw");
    }
    if (!owner && only_site_words(modules[m])) owner = implicit_pack(kOverlayPack);
    // A file that did not parse has its own diagnostics; an empty one must not pass for a pack.
    if (!owner && modules[m].decls.empty() && sink.has_errors()) continue;
    if (!owner) {
      auto& d = sink.report(diag::Id::kNoPackHead, {modules[m].file, 0, 0},
                            "the file has no `pack` head and no pack.rfx stands above it");
      d.help = "start it with: pack my.pack 1.0.0";
      continue;
    }
    out.of_module[m] = *owner;
    out.packs[*owner].modules.push_back(m);
  }
}

void Grouping::sort_packs() {
  std::vector<PackIndex> order(out.packs.size());
  for (PackIndex i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin() + 1, order.end(),
            [&](PackIndex a, PackIndex b) { return out.packs[a].name < out.packs[b].name; });
  std::vector<PackIndex> new_index(order.size());
  std::vector<Pack> packs;
  for (PackIndex i = 0; i < order.size(); ++i) {
    new_index[order[i]] = i;
    packs.push_back(std::move(out.packs[order[i]]));
    std::sort(packs.back().modules.begin(), packs.back().modules.end());
  }
  out.packs = std::move(packs);
  for (PackIndex& p : out.of_module) p = new_index[p];
  for (auto& [name, index] : by_name) index = new_index[index];
}

/// "site -> a -> std.nvidia ^1": how a range came in, from a pack that nobody imports.
std::string Grouping::chain_to(const Pack& importer, const ast::Import& import) const {
  std::string text = importer.name + " -> " + import.pack.text + " " + import.range;
  const std::string* below = &importer.name;
  for (size_t depth = 0; depth < out.packs.size(); ++depth) {
    const Pack* above = nullptr;
    for (const Pack& pack : out.packs) {
      if (pack.head == nullptr || above != nullptr) continue;
      for (const ast::Import& other : pack.head->imports) {
        if (other.pack.text == *below) above = &pack;
      }
    }
    if (above == nullptr) break;
    text = above->name + " -> " + text;
    below = &above->name;
  }
  return text;
}

/// The version that is loaded does not satisfy a range: with another importer that it does satisfy
/// the two disagree, and no version would do for both.
void Grouping::report_version(const WrongVersion& wrong) {
  const Pack& target = out.packs[wrong.target];
  for (const Pack& pack : out.packs) {
    if (pack.head == nullptr || &pack == wrong.importer) continue;
    for (const ast::Import& other : pack.head->imports) {
      const bool apart = other.pack.text == target.name && !other.range.empty() &&
                         parse_version(bare(other.range)).part[0] !=
                             parse_version(bare(wrong.import->range)).part[0];
      if (!apart) continue;
      auto& d = sink.report(diag::Id::kImportDiamond, wrong.import->pack.span,
                            "two versions of pack '" + target.name + "' are wanted: " +
                                chain_to(*wrong.importer, *wrong.import) + ", and " +
                                chain_to(pack, other));
      d.notes.push_back({other.pack.span, "the other import"});
      d.notes.push_back({target.span, "loaded is " + target.version});
      d.help = "move both to one major version";
      return;
    }
  }
  auto& d = sink.report(diag::Id::kImportVersion, wrong.import->pack.span,
                        "pack '" + target.name + "' is version " + target.version +
                            ", the import wants " + wrong.import->range);
  d.notes.push_back({target.span, "this version is loaded"});
  d.help = "write: import " + target.name + " ^" +
           target.version.substr(0, target.version.find('.')) +
           ", or give a version of the pack in that range";
}

void Grouping::resolve_imports() {
  std::vector<WrongVersion> wrong_versions;
  std::vector<std::string> names;
  for (const auto& [name, index] : by_name) names.push_back(name);
  for (Pack& pack : out.packs) {
    if (pack.head == nullptr) continue;
    for (const ast::Import& import : pack.head->imports) {
      const auto found = by_name.find(import.pack.text);
      if (found == by_name.end()) {
        auto& d = sink.report(diag::Id::kUnknownPack, import.pack.span,
                              "pack '" + import.pack.text + "' is not among the given paths");
        const auto near = diag::did_you_mean(import.pack.text, names);
        d.help = near ? "did you mean '" + *near + "'?"
                      : "add the folder that holds its pack.rfx to the command line";
        continue;
      }
      ImportRef ref{found->second, import.as.text, {}, import.span};
      for (const ast::Name& name : import.only) ref.only.push_back(name.text);
      const Pack& target = out.packs[found->second];
      if (!version_satisfies(target.version, import.range)) {
        wrong_versions.push_back({&pack, &import, found->second});
      }
      pack.imports.push_back(std::move(ref));
    }
  }
  for (const WrongVersion& wrong : wrong_versions) report_version(wrong);
}

void Grouping::add_import(PackIndex importer, PackIndex target, source::Span span) {
  auto& imports = out.packs[importer].imports;
  const bool there = std::any_of(imports.begin(), imports.end(),
                                 [&](const ImportRef& i) { return i.pack == target; });
  if (!there && importer != target) imports.push_back({target, "", {}, span});
}

/// The implicit pack of overlays sees what the packs see that it is about. A file without an
/// overlay names no target: it sees every pack.
void Grouping::import_overlay_targets() {
  const auto own = by_name.find(kOverlayPack);
  if (own == by_name.end() || out.packs[own->second].head != nullptr) return;
  for (const uint32_t m : out.packs[own->second].modules) {
    if (!has_overlay(modules[m])) {
      const source::Span top{modules[m].file, 0, 0};
      for (PackIndex p = kBuiltinPack + 1; p < out.packs.size(); ++p) {
        add_import(own->second, p, top);
      }
      continue;
    }
    for (const ast::Decl& d : modules[m].decls) {
      const auto* overlay = std::get_if<ast::OverlayDecl>(&d.node);
      const auto target = overlay ? by_name.find(overlay->target.text) : by_name.end();
      if (target == by_name.end()) continue;
      add_import(own->second, target->second, overlay->target.span);
      for (const ImportRef& import : out.packs[target->second].imports) {
        add_import(own->second, import.pack, overlay->target.span);
      }
    }
  }
}

void Grouping::check_cycles() {
  std::vector<int> state(out.packs.size(), 0);  // 0 new, 1 on the path, 2 done
  std::vector<PackIndex> path_now;
  // Depth is bounded by the number of packs; a pack set of thousands is not realistic.
  auto visit = [&](auto&& self, PackIndex p) -> void {
    state[p] = 1;
    path_now.push_back(p);
    for (const ImportRef& import : out.packs[p].imports) {
      if (state[import.pack] == 0) self(self, import.pack);
      if (state[import.pack] != 1) continue;
      std::string text;
      auto at = std::find(path_now.begin(), path_now.end(), import.pack);
      for (; at != path_now.end(); ++at) text += out.packs[*at].name + " -> ";
      sink.report(diag::Id::kImportCycle, import.span,
                  "packs import each other in a circle: " + text + out.packs[import.pack].name);
    }
    path_now.pop_back();
    state[p] = 2;
  };
  for (PackIndex p = 0; p < out.packs.size(); ++p) {
    if (state[p] == 0) visit(visit, p);
  }
}

}  // namespace

bool version_satisfies(const std::string& version, const std::string& range) {
  std::string r;
  for (const char c : range) {
    if (!std::isspace(static_cast<unsigned char>(c))) r += c;
  }
  if (r.empty()) return true;
  if (version.empty()) return false;
  const Version have = parse_version(version);
  if (r.rfind("<=", 0) == 0) return compare(have, parse_version(r.substr(2))) <= 0;
  if (r.rfind("!=", 0) == 0) return compare(have, parse_version(r.substr(2))) != 0;
  if (r[0] == '<') return compare(have, parse_version(r.substr(1))) < 0;
  if (r[0] == '~') {  // the same major and minor version, at least this one
    const Version want = parse_version(r.substr(1));
    return have.pre.empty() && have.part[0] == want.part[0] &&
           (want.given < 2 || have.part[1] == want.part[1]) && compare(have, want) >= 0;
  }
  if (r.rfind(">=", 0) == 0) return compare(have, parse_version(r.substr(2))) >= 0;
  if (r.rfind("==", 0) == 0) return compare(have, parse_version(r.substr(2))) == 0;
  if (r[0] == '=') return compare(have, parse_version(r.substr(1))) == 0;
  if (r[0] == '>') return compare(have, parse_version(r.substr(1))) > 0;
  // "^3", "^1.4" and a bare "1.2": the same major version, at least this one.
  const Version want = parse_version(r[0] == '^' ? r.substr(1) : r);
  return have.pre.empty() && have.part[0] == want.part[0] && compare(have, want) >= 0;
}

PackSet group_packs(const source::SourceMap& sources, const std::vector<ast::Module>& modules,
                    diag::Sink& sink) {
  Grouping g{sources, modules, sink, {}, {}, {}, {}};
  g.out.packs.push_back({"builtin", "", nullptr, {}, {}, {}});
  g.out.of_module.assign(modules.size(), kBuiltinPack);
  g.add_headed();
  g.add_headless();
  g.sort_packs();
  g.resolve_imports();
  g.import_overlay_targets();
  g.check_cycles();
  return std::move(g.out);
}

}  // namespace reflex::sema
