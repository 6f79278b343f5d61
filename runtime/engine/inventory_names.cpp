// Renaming of nodes and GPUs by the inventory: see inventory_names.h.
#include "runtime/engine/inventory_names.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include "runtime/abi/gpu_address.h"
#include "runtime/engine/node_address.h"

namespace reflex::engine {
namespace {

// Why: four times the GPUs of the largest public server; labels beyond it are typing errors.
constexpr int kGpusMax = 64;

}  // namespace

InventoryNames::InventoryNames(std::shared_ptr<const abi::CompiledPack> pack,
                               const topology::Topology& topology)
    : pack_(std::move(pack)) {
  for (const SymbolId node : topology.nodes()) {
    if (node >= known_.size()) known_.resize(node + size_t{1}, 0);
    known_[node] = 1;
    read_gpus(node, topology);
  }
  read_addresses(topology);
  find_slots();
}

void InventoryNames::read_addresses(const topology::Topology& topology) {
  std::vector<SymbolId> labels;
  for (SymbolId symbol = 1; symbol < pack_->symbols->size(); ++symbol) {
    const std::string_view name = pack_->symbols->name(symbol);
    if (name == "ip" || name.starts_with("ip.")) labels.push_back(symbol);
  }
  for (const SymbolId node : topology.nodes()) {
    for (const SymbolId label : labels) {
      const SymbolId value = topology.label(node, label, std::numeric_limits<int64_t>::max());
      if (value == kNoSymbol) continue;
      const auto address = node_address(pack_->symbols->name(value));
      if (!address) continue;
      const auto [it, added] = addresses_.emplace(*address, node);
      if (!added && it->second != node) it->second = kNoSymbol;
    }
  }
}

void InventoryNames::read_gpus(SymbolId node, const topology::Topology& topology) {
  for (int index = 0; index < kGpusMax; ++index) {
    const SymbolId key = pack_->symbols->find("pci.gpu" + std::to_string(index));
    if (key == kNoSymbol) continue;
    const SymbolId address = topology.label(node, key, std::numeric_limits<int64_t>::max());
    if (address == kNoSymbol) continue;
    const auto pci = abi::gpu_from_pci(pack_->symbols->name(address));
    if (pci) gpus_[node].emplace(*pci, index);  // an address twice is the lower index
  }
}

void InventoryNames::find_slots() {
  for (abi::KindId kind = 0; kind < pack_->kinds.size(); ++kind) {
    Slots& slots = slots_.emplace_back();
    if (kind == abi::kNodeLabels) continue;
    const auto& fields = pack_->kinds[kind].fields;
    for (unsigned i = 0; i < fields.size(); ++i) {
      const abi::Type& type = fields[i].type;
      const bool placement = kind == abi::kJobStart || kind == abi::kJobNodes;
      if (placement && fields[i].name == "nodes") slots.node_list = static_cast<int>(i);
      if (type.scalar != abi::Scalar::kEntity) continue;
      if (type.gpu_index) {
        if (!gpus_.empty()) slots.gpus.push_back(i);
      } else if (pack_->entity_types[type.entity].name == "node") {
        slots.nodes.push_back({i, type.optional});
        if (fields[i].name == "node") slots.own_node = static_cast<int>(i);
      }
    }
  }
}

bool InventoryNames::is_known(SymbolId name) const {
  return name < known_.size() && known_[name] != 0;
}

SymbolId InventoryNames::known_name_of(SymbolId name) const {
  if (is_known(name)) return name;
  const std::string_view text = pack_->symbols->name(name);
  if (const auto address = node_address(text)) {
    const auto of = addresses_.find(*address);
    return of == addresses_.end() ? kNoSymbol : of->second;
  }
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return name;
  const std::string_view host = text.substr(0, dot);
  // "10.0.0" is no host of a domain either.
  if (host.find_first_not_of("0123456789") == std::string_view::npos) return name;
  const SymbolId known = pack_->symbols->find(host);
  return known != kNoSymbol && is_known(known) ? known : name;
}

SymbolId InventoryNames::node(SymbolId name) {
  if (name == kNoSymbol) return name;
  if (name >= renamed_.size()) {
    renamed_.resize(name + size_t{1}, kNoSymbol);
    nobody_.resize(name + size_t{1}, 0);
  }
  if (renamed_[name] == kNoSymbol) {
    const SymbolId known = known_name_of(name);
    nobody_[name] = known == kNoSymbol ? 1 : 0;
    renamed_[name] = known == kNoSymbol ? name : known;
  }
  return renamed_[name];
}

void InventoryNames::rename(stream::RecordBatch& batch) {
  for (abi::Record* record : batch.records) {
    const Slots& slots = slots_[record->kind];
    rename_nodes(slots, *record, *batch.slab);
    rename_gpus(slots, *record);
  }
}

void InventoryNames::rename_nodes(const Slots& slots, abi::Record& record, stream::Slab& slab) {
  for (const auto& [slot, optional] : slots.nodes) {
    if (!record.has(slot)) continue;
    const auto given = static_cast<SymbolId>(record.i64(slot));
    if (given == kNoSymbol) continue;
    record.set_i64(slot, node(given));
    if (!optional || nobody_[given] == 0) continue;
    record.present &= ~(uint64_t{1} << slot);
    ++unknown_peers_;
  }
  if (slots.node_list < 0) return;
  const auto slot = static_cast<unsigned>(slots.node_list);
  if (!record.has(slot)) return;
  const abi::IntArray& list = *record.array(slot);
  std::vector<int64_t> names(list.data(), list.data() + list.count);
  for (int64_t& name : names) name = node(static_cast<SymbolId>(name));
  record.slots()[slot] = reinterpret_cast<uint64_t>(slab.new_array(names));
}

void InventoryNames::rename_gpus(const Slots& slots, abi::Record& record) const {
  if (slots.gpus.empty() || slots.own_node < 0) return;
  const auto own = static_cast<unsigned>(slots.own_node);
  if (!record.has(own)) return;
  const auto node = static_cast<SymbolId>(record.i64(own));
  for (const unsigned slot : slots.gpus) {
    if (record.has(slot)) record.set_i64(slot, gpu(node, record.i64(slot)));
  }
}

void InventoryNames::save(StateWriter& writer) const {
  const SymbolTable& names = *pack_->symbols;
  std::vector<std::pair<std::string_view, SymbolId>> order;
  for (SymbolId id = 0; id < known_.size(); ++id) {
    if (known_[id] != 0) order.emplace_back(names.name(id), id);
  }
  std::sort(order.begin(), order.end());
  writer.begin("inventory_names");
  writer.u64(order.size());
  for (const auto& [name, node] : order) {
    writer.symbol(node);
    const auto it = gpus_.find(node);
    const std::map<int64_t, int64_t> gpus =
        it == gpus_.end() ? std::map<int64_t, int64_t>()
                          : std::map<int64_t, int64_t>(it->second.begin(), it->second.end());
    writer.u64(gpus.size());
    for (const auto& [pci, index] : gpus) {
      writer.i64(pci);
      writer.i64(index);
    }
  }
  const std::map<std::string, SymbolId> addresses(addresses_.begin(), addresses_.end());
  writer.u64(addresses.size());
  for (const auto& [address, node] : addresses) {
    writer.text(address);
    writer.symbol(node);
  }
  writer.u64(unknown_peers_);
  writer.end();
}

bool InventoryNames::load(StateReader& reader) {
  known_.clear();
  renamed_.clear();
  gpus_.clear();
  slots_.clear();
  nobody_.clear();
  addresses_.clear();
  if (!reader.enter("inventory_names")) return false;
  for (size_t left = reader.count(2); left > 0 && !reader.failed(); --left) {
    const SymbolId node = reader.symbol();
    if (node >= known_.size()) known_.resize(node + size_t{1}, 0);
    known_[node] = 1;
    for (size_t gpus = reader.count(2); gpus > 0 && !reader.failed(); --gpus) {
      const int64_t pci = reader.i64();
      gpus_[node].emplace(pci, reader.i64());
    }
  }
  for (size_t left = reader.count(2); left > 0 && !reader.failed(); --left) {
    std::string address(reader.text());
    addresses_[std::move(address)] = reader.symbol();
  }
  unknown_peers_ = reader.u64();
  reader.leave();
  find_slots();
  return !reader.failed();
}

void InventoryNames::take_over(InventoryNames& old) {
  known_ = std::move(old.known_);
  renamed_ = std::move(old.renamed_);
  nobody_ = std::move(old.nobody_);
  addresses_ = std::move(old.addresses_);
  gpus_ = std::move(old.gpus_);
  unknown_peers_ = old.unknown_peers_;
}

int64_t InventoryNames::gpu(SymbolId node, int64_t gpu) const {
  if (gpu < abi::kPciFlag) return gpu;
  const auto of_node = gpus_.find(node);
  if (of_node == gpus_.end()) return gpu;
  const auto index = of_node->second.find(gpu);
  return index == of_node->second.end() ? gpu : index->second;
}

}  // namespace reflex::engine
