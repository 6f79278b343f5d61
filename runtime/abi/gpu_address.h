// A gpu as an integer: a small index (0..255), or a PCI address when no index is known.
//
// Logs name a gpu by PCI address ("0000:3b:00", "3B:00.0", "00000000:3b:00.0", "GPU0000:03:00.0");
// inventories may give the index of each address. Without one the address itself is the identity:
// kPciFlag | domain << 16 | bus << 8 | device. All spellings of one address give one integer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reflex::abi {

inline constexpr int64_t kPciFlag = int64_t{1} << 40;

/// The identity of a PCI address in any public spelling (function digit ignored).
std::optional<int64_t> gpu_from_pci(std::string_view address);

/// "3" for an index, "0000:3b:00" for an address.
std::string gpu_to_text(int64_t gpu);

}  // namespace reflex::abi
