// PCI addresses of gpus in every public spelling <-> one integer.
//
// Source: domain_reference.md 1.1 (addr grammar of Xid lines) and 6.4 trap 14.
#include "runtime/abi/gpu_address.h"

#include <fmt/format.h>

#include <array>

namespace reflex::abi {
namespace {

// Why: the identity keeps 24 bits of domain below kPciFlag; real domains have 16 (20 under VMD).
constexpr uint32_t kDomainMax = 0xffffff;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

struct Part {
  uint32_t value = 0;
  unsigned digits = 0;
};

Part read_part(std::string_view& text) {
  Part part;
  while (!text.empty() && part.digits < 9) {
    const int digit = hex_digit(text.front());
    if (digit < 0) break;
    part.value = part.value << 4 | static_cast<uint32_t>(digit);
    ++part.digits;
    text.remove_prefix(1);
  }
  return part;
}

bool drop_prefix(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::optional<int64_t> gpu_from_pci(std::string_view address) {
  for (std::string_view prefix : {"GPU", "PCI:", "pci:"}) {
    if (drop_prefix(address, prefix)) break;
  }
  std::array<Part, 3> parts;
  size_t count = 0;
  while (count < parts.size()) {
    parts[count] = read_part(address);
    if (parts[count].digits == 0 || parts[count].digits > 8) return std::nullopt;
    ++count;
    if (address.empty() || address.front() != ':') break;
    address.remove_prefix(1);
  }
  if (!address.empty() && address.front() == '.') {  // the function: one digit, ignored
    address.remove_prefix(1);
    if (read_part(address).digits != 1) return std::nullopt;
  }
  if (!address.empty() || count < 2) return std::nullopt;
  // Two parts are "domain:bus" when the first has the width of a domain, else "bus:device".
  const bool has_domain = count == 3 || parts[0].digits >= 4;
  const uint32_t domain = has_domain ? parts[0].value : 0;
  const uint32_t bus = has_domain ? parts[1].value : parts[0].value;
  const uint32_t device = count == 3 ? parts[2].value : has_domain ? 0 : parts[1].value;
  if (domain > kDomainMax || bus > 0xff || device > 0x1f) return std::nullopt;
  return kPciFlag | int64_t{domain} << 16 | int64_t{bus} << 8 | int64_t{device};
}

std::string gpu_to_text(int64_t gpu) {
  if (gpu < kPciFlag) return fmt::format("{}", gpu);
  const int64_t address = gpu & ~kPciFlag;
  return fmt::format("{:04x}:{:02x}:{:02x}", address >> 16, address >> 8 & 0xff, address & 0xff);
}

}  // namespace reflex::abi
