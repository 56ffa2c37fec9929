#include "kernels/copy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/kernels/instruction_sets.h"

namespace sluice::kernels {
namespace {

TEST(Copy, MovesExactlyTheBytesAskedFor) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4097},
                                  kStreamBytes - 1, kStreamBytes, kStreamBytes + 333}) {
    for (const std::size_t shift : {0, 1, 63}) {
      std::vector<std::uint8_t> from(bytes + 128);
      for (std::size_t i = 0; i < from.size(); ++i)
        from[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
      on_every_instruction_set([&] {
        std::vector<std::uint8_t> to(bytes + 128, 0xee);
        std::vector<std::uint8_t> expected = to;
        for (std::size_t i = 0; i < bytes; ++i) expected[shift + i] = from[2 * shift / 3 + i];
        copy(to.data() + shift, from.data() + 2 * shift / 3, bytes);
        EXPECT_TRUE(to == expected) << bytes << " bytes, shift " << shift;
      });
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
