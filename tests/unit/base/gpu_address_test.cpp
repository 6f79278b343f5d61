// Spellings of PCI addresses (public case A09, parser trap 14).
#include "runtime/abi/gpu_address.h"

#include <gtest/gtest.h>

namespace reflex::abi {
namespace {

TEST(GpuAddress, All_spellings_of_one_gpu_are_one_identity) {
  const auto expected = gpu_from_pci("0000:3b:00");
  ASSERT_TRUE(expected.has_value());
  for (std::string_view text : {"3B:00.0", "00000000:3b:00.0", "GPU0000:3b:00.0", "PCI:0000:3b:00",
                                "0000:3B:00.0", "3b:00", "0000:3b"}) {
    EXPECT_EQ(gpu_from_pci(text), expected) << text;
  }
  EXPECT_EQ(gpu_to_text(*expected), "0000:3b:00");
  EXPECT_EQ(gpu_from_pci("0000000B:00:00.0"), gpu_from_pci("000b:00:00"));
  EXPECT_NE(gpu_from_pci("0001:3b:00"), expected);
  EXPECT_EQ(gpu_to_text(3), "3");
}

TEST(GpuAddress, Other_text_is_refused) {
  for (std::string_view text : {"", "3", "nvlink", "3b:", ":3b:00", "0000:3b:00.0.1", "0000:zz:00",
                                "123456789:00:00", "0000:3b:ff", "1:2:3:4"}) {
    EXPECT_FALSE(gpu_from_pci(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace reflex::abi
