// The phases of the compiler in order; see compile.h.
#include "compiler/driver/compile.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <system_error>

#include "compiler/backend/backend.h"
#include "compiler/driver/compile_cache.h"
#include "compiler/driver/test_packs.h"
#include "compiler/migrate/signature.h"
#include "compiler/parse/parse.h"
#include "compiler/pass/pipeline.h"
#include "compiler/sema/phases.h"
#include "compiler/sema/sema.h"

namespace reflex::compiler {

namespace fs = std::filesystem;

namespace {

class Stopwatch {
 public:
  /// Milliseconds since the last call or construction.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double ms = std::chrono::duration<double, std::milli>(now - last_).count();
    last_ = now;
    return ms;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// ---------------------------------------------------------------- hashes

/// SHA-256 over (name, bytes) pairs; sizes go in too, so that no two sequences look alike.
class Hash {
 public:
  Hash() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    RFX_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }
  void add(std::string_view part) {
    std::array<unsigned char, 8> size{};
    for (size_t i = 0; i < size.size(); ++i) {
      size[i] = static_cast<unsigned char>(static_cast<uint64_t>(part.size()) >> (8 * i));
    }
    EVP_DigestUpdate(context_.get(), size.data(), size.size());
    EVP_DigestUpdate(context_.get(), part.data(), part.size());
  }
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (unsigned int i = 0; i < size; ++i) {
      text += kDigits[digest[i] >> 4];
      text += kDigits[digest[i] & 15];
    }
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

// ---------------------------------------------------------------- files

Result<std::string> read_whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{path + ": cannot be read"};
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) return Error{path + ": reading failed"};
  return std::move(text).str();
}

/// Every .rfx at or below `path`; names sorted. A folder without any is an error of its own.
Status find_files(const std::string& path, std::vector<std::string>& out) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error || !fs::exists(status)) return Error{path + ": no such file or folder"};
  if (!fs::is_directory(status)) {
    out.push_back(path);
    return ok_status();
  }
  const size_t before = out.size();
  fs::recursive_directory_iterator it(path, fs::directory_options::follow_directory_symlink, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code ignored;
    if (it->path().extension() == ".rfx" && it->is_regular_file(ignored)) {
      out.push_back(it->path().lexically_normal().string());
    }
  }
  if (error) return Error{path + ": " + error.message()};
  if (out.size() == before) return Error{path + ": no .rfx file in it"};
  return ok_status();
}

// ---------------------------------------------------------------- the pipeline

using FileReader = std::function<std::optional<std::string>(const std::string&)>;

class Pipeline {
 public:
  Pipeline(const Options& options, FileReader reader)
      : options_(options), reader_(std::move(reader)), out_(std::make_unique<Compilation>()) {}

  Result<std::unique_ptr<Compilation>> run(std::vector<InMemoryFile> files);

 private:
  void parse(std::vector<InMemoryFile> files);
  void leave_out_test_packs();
  void identify(abi::CompiledPack& pack, const sema::PackSet& packs) const;
  [[nodiscard]] Hash content_hash(const sema::Pack& p) const;
  Status generate(const std::shared_ptr<abi::CompiledPack>& pack);

  const Options& options_;
  FileReader reader_;
  std::unique_ptr<Compilation> out_;
  std::map<std::string, std::string> data_files_;  // read by lists: part of the hash
  std::vector<std::string> test_files_;            // that were not parsed
};

void Pipeline::parse(std::vector<InMemoryFile> files) {
  for (InMemoryFile& file : files) {
    if (!options_.include_tests && is_test_file(file.path)) {
      test_files_.push_back(std::move(file.path));
      continue;
    }
    const source::FileId id = out_->sources.add(std::move(file.path), std::move(file.text));
    const size_t reported = out_->sink.all().size();
    auto known = options_.cache ? options_.cache->take(out_->sources, id) : std::nullopt;
    out_->modules.push_back(known ? std::move(*known)
                                  : parse::parse(out_->sources, id, {}, out_->sink));
    out_->modules.back().file = id;
    out_->has_syntax_findings.push_back(out_->sink.all().size() != reported);
  }
}

/// Unless nothing else is there. A pack with mistakes stays: they are to be seen.
void Pipeline::leave_out_test_packs() {
  diag::Sink scratch;
  const sema::PackSet packs = sema::group_packs(out_->sources, out_->modules, scratch);
  std::vector<bool> only = test_packs(out_->sources, out_->modules, packs, test_files_);
  std::vector<ast::Module> modules;
  std::vector<uint8_t> findings;
  for (size_t m = 0; m < out_->modules.size(); ++m) {
    if (out_->has_syntax_findings[m] != 0) only[packs.of_module[m]] = false;
  }
  const auto leaves = [&](size_t m) { return only[packs.of_module[m]]; };
  size_t left = 0;
  for (size_t m = 0; m < out_->modules.size(); ++m) left += leaves(m);
  if (left == 0 || left == out_->modules.size()) return;
  for (size_t m = 0; m < out_->modules.size(); ++m) {
    const bool out = leaves(m);
    (out ? out_->left_out : modules).push_back(std::move(out_->modules[m]));
    if (!out) findings.push_back(out_->has_syntax_findings[m]);
  }
  out_->modules = std::move(modules);
  out_->has_syntax_findings = std::move(findings);
}

/// The part of a path below its pack's folder: hashes must not depend on where packs lie.
std::string relative_path(std::string_view path, std::string_view folder) {
  if (path.size() > folder.size() && path.substr(0, folder.size()) == folder) {
    path.remove_prefix(folder.size());
    while (!path.empty() && path.front() == '/') path.remove_prefix(1);
  }
  return std::string(path);
}

std::string folder_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(path.substr(0, slash));
}

void Pipeline::identify(abi::CompiledPack& pack, const sema::PackSet& packs) const {
  std::vector<std::string> hashes(packs.packs.size());
  // Imports first: an importer's hash holds theirs. There is no cycle any more (R521).
  auto hash_of = [&](auto&& self, size_t index) -> const std::string& {
    if (!hashes[index].empty()) return hashes[index];
    const sema::Pack& p = packs.packs[index];
    Hash own = content_hash(p);
    std::map<std::string, std::string> imports;
    for (const sema::ImportRef& i : p.imports) {
      imports[packs.packs[i.pack].name] = self(self, i.pack);
    }
    for (const auto& [name, hash] : imports) {
      own.add(name);
      own.add(hash);
    }
    hashes[index] = own.hex();
    return hashes[index];
  };
  // A set is the same with and without the packs that only test it.
  std::vector<bool> only = test_packs(out_->sources, out_->modules, packs, test_files_);
  const auto adds_nothing = [&](size_t i) { return packs.packs[i].modules.empty() || only[i]; };
  size_t others = 0;
  for (size_t i = 0; i < packs.packs.size(); ++i) others += !adds_nothing(i);
  if (others == 0) only.assign(only.size(), false);
  Hash set;
  for (size_t i = 0; i < packs.packs.size(); ++i) {
    if (packs.packs[i].modules.empty()) continue;
    pack.packs.push_back({packs.packs[i].name, packs.packs[i].version, hash_of(hash_of, i)});
    if (only[i]) continue;
    set.add(packs.packs[i].name);
    set.add(hashes[i]);
  }
  pack.set_sha256 = set.hex();
}

/// Over the files of the pack and the data files in its folder, in the order of their names.
Hash Pipeline::content_hash(const sema::Pack& p) const {
  Hash own;
  std::string folder = folder_of(out_->sources.path(out_->modules[p.modules[0]].file));
  for (const uint32_t m : p.modules) {
    const std::string other = folder_of(out_->sources.path(out_->modules[m].file));
    while (other.compare(0, folder.size(), folder) != 0) folder = folder_of(folder);
  }
  std::map<std::string, std::string_view> parts;
  for (const uint32_t m : p.modules) {
    const std::string_view path = out_->sources.path(out_->modules[m].file);
    // Tests do not change what a pack means; with or without them the hash is the same.
    if (is_test_file(std::string(path))) continue;
    parts[relative_path(path, folder)] = out_->sources.text(out_->modules[m].file);
  }
  for (const auto& [path, text] : data_files_) {
    if (path.compare(0, folder.size(), folder) == 0) parts[relative_path(path, folder)] = text;
  }
  for (const auto& [path, text] : parts) {
    own.add(path);
    own.add(text);
  }
  return own;
}

Status Pipeline::generate(const std::shared_ptr<abi::CompiledPack>& pack) {
  backend::CodegenInput input;
  input.ir = std::make_shared<const ir::Module>(out_->ir);
  input.plans = pack.get();
  input.symbols = pack->symbols;
  input.compile_threads = options_.compile_threads;
  if (options_.cache) input.cache = options_.cache->code();
  auto code =
      options_.backend == Backend::kJit ? backend::make_jit(input) : backend::make_interp(input);
  if (!code) return Error(code.error());
  pack->code = std::move(code).value();
  return ok_status();
}

Result<std::unique_ptr<Compilation>> Pipeline::run(std::vector<InMemoryFile> files) {
  Stopwatch watch;
  parse(std::move(files));
  out_->parse_ms = watch.lap();
  if (out_->modules.empty()) return Error{"no pack files given"};

  if (!options_.include_tests) leave_out_test_packs();
  const sema::PackSet packs = sema::group_packs(out_->sources, out_->modules, out_->sink);
  for (const sema::PackIndex p : packs.of_module) {
    out_->module_packs.push_back(packs.packs[p].name);
  }
  sema::Input input{out_->sources,
                    out_->modules,
                    packs,
                    options_.symbols ? options_.symbols : std::make_shared<SymbolTable>(),
                    options_.include_tests,
                    [this](const std::string& path) {
                      auto text = reader_ ? reader_(path) : std::nullopt;
                      if (text) data_files_[path] = *text;
                      return text;
                    },
                    options_.now_ns};
  sema::Output output;
  // Broken packs are checked too: one run shows the mistakes of all statements that parsed.
  sema::analyze(input, out_->sink, output);
  out_->check_ms = watch.lap();
  for (const auto& [path, text] : data_files_) out_->data_files.push_back({path, text});
  out_->tests = std::move(output.tests);
  if (out_->sink.has_errors()) return std::move(out_);

  for (const ir::Function& f : output.ir.functions) {
    const std::string problem = ir::verify(output.ir, f);
    if (!problem.empty()) {
      return Error{"internal error: the IR of '" + f.name + "' is not valid: " + problem, 4};
    }
  }
  pass::run_all(output.ir);
  out_->ir = std::move(output.ir);
  auto pack = std::make_shared<abi::CompiledPack>(std::move(output.pack));
  identify(*pack, packs);
  migrate::describe_states(*pack, out_->ir, [](const std::string& text) {
    Hash hash;
    hash.add(text);
    return hash.hex().substr(0, 32);  // Why 32: 128 bits; no two of a site's signals meet
  });
  out_->lower_ms = watch.lap();

  if (const Status done = generate(pack); !done) return Error(done.error());
  out_->codegen_ms = watch.lap();
  out_->pack = std::move(pack);
  return std::move(out_);
}

}  // namespace

Result<std::vector<std::string>> find_sources(const std::vector<std::string>& paths) {
  std::vector<std::string> found;
  for (const std::string& path : paths) {
    if (const Status status = find_files(path, found); !status) return Error(status.error());
  }
  for (std::string& path : found) path = fs::path(path).lexically_normal().string();
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

Result<std::string> read_source(const std::string& path) { return read_whole(path); }

Result<std::unique_ptr<Compilation>> compile(const std::vector<std::string>& paths,
                                             const Options& options) {
  if (paths.empty()) return Error{"no packs given: name files or folders with .rfx files"};
  auto found = find_sources(paths);
  if (!found) return Error(found.error());
  std::vector<InMemoryFile> files;
  for (const std::string& path : found.value()) {
    auto text = read_whole(path);
    if (!text) return Error(text.error());
    files.push_back({path, std::move(text).value()});
  }
  Pipeline pipeline(options, [](const std::string& path) -> std::optional<std::string> {
    std::error_code none;
    if (!fs::is_regular_file(path, none)) return std::nullopt;  // a pipe may wait for ever
    auto text = read_whole(path);
    if (!text) return std::nullopt;
    return std::move(text).value();
  });
  return pipeline.run(std::move(files));
}

Result<std::unique_ptr<Compilation>> compile_text(const std::vector<InMemoryFile>& files,
                                                  const Options& options) {
  // Data files may be given in memory too: everything that is not .rfx.
  std::vector<InMemoryFile> packs;
  std::map<std::string, std::string> data;
  for (const InMemoryFile& file : files) {
    const bool rfx = file.path.size() > 4 && file.path.substr(file.path.size() - 4) == ".rfx";
    if (rfx)
      packs.push_back(file);
    else
      data[file.path] = file.text;
  }
  std::sort(packs.begin(), packs.end(),
            [](const InMemoryFile& a, const InMemoryFile& b) { return a.path < b.path; });
  if (packs.empty()) return Error{"no packs given"};
  Pipeline pipeline(options, [&data](const std::string& path) -> std::optional<std::string> {
    const auto found = data.find(path);
    if (found == data.end()) return std::nullopt;
    return found->second;
  });
  return pipeline.run(std::move(packs));
}

std::vector<InMemoryFile> compiled_files(const Compilation& compilation) {
  std::vector<InMemoryFile> files;
  for (const ast::Module& module : compilation.modules) {
    files.push_back({std::string(compilation.sources.path(module.file)),
                     std::string(compilation.sources.text(module.file))});
  }
  files.insert(files.end(), compilation.data_files.begin(), compilation.data_files.end());
  return files;
}

double unit_factor(const std::string& word) {
  const auto unit = sema::parse_unit(word);
  return unit ? unit->multiply / unit->divide : 1.0;
}

}  // namespace reflex::compiler
