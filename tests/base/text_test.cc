#include "base/text.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace sluice::base {
namespace {

constexpr std::string_view kNames[] = {"ring", "torus", "double_tree", "hierarchical", "direct"};

TEST(NearestName, FindsTheNameBehindATypingError) {
  EXPECT_EQ(nearest_name("rign", kNames), "ring");
  EXPECT_EQ(nearest_name("doubletree", kNames), "double_tree");
  EXPECT_EQ(nearest_name("hier", kNames), "hierarchical");
}

TEST(NearestName, IsEmptyWhenNoNameIsNear) {
  EXPECT_EQ(nearest_name("xyzzyplugh", kNames), "");
  EXPECT_EQ(nearest_name(std::string(1 << 20, 'r'), kNames), "");
}

TEST(ParseBytes, AcceptsBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("4096").value(), 4096);
  EXPECT_EQ(parse_bytes("51M").value(), 51 * 1024 * 1024);
  EXPECT_EQ(parse_bytes("51MB").value(), 51'000'000);
  EXPECT_EQ(parse_bytes("1.5G").value(), 3LL * 512 * 1024 * 1024);
  EXPECT_EQ(parse_bytes("0").value(), 0);
}

TEST(ParseBytes, RejectsATextThatIsNotASize) {
  for (const char* text : {"", "M", "-1", "5X", "1 M", "nan", "inf", "1e300", "9999999T", "0x10"}) {
    EXPECT_FALSE(parse_bytes(text).ok()) << text;
  }
}

TEST(ParseList, SortsRangesAndRemovesDuplicates) {
  EXPECT_EQ(parse_list("3,1-2,2", 1, 9, "ranks").value(), (std::vector{1, 2, 3}));
  EXPECT_EQ(parse_list("7", 1, 9, "ranks").value(), std::vector{7});
}

TEST(ParseList, NamesTheListInAnError) {
  for (const char* text :
       {"", "0", "-3", "10", "5-2", "1-", "-", "1,,2", "a", "1-64x", "99999999999999999999"}) {
    const auto list = parse_list(text, 1, 9, "ranks");
    ASSERT_FALSE(list.ok()) << text;
    EXPECT_NE(list.status().message().find("ranks"), std::string::npos) << list.status().message();
  }
}

TEST(Quote, ShortensAndEscapes) {
  EXPECT_EQ(quote("ring"), "\"ring\"");
  EXPECT_EQ(quote(std::string_view{"\0\n", 2}), "\"\\x00\\x0a\"");
  EXPECT_LT(quote(std::string(1000, 'a')).size(), 60U);
}

TEST(Format, ChoosesUnits) {
  EXPECT_EQ(format_bytes(4), "4 B");
  EXPECT_EQ(format_bytes(51 * 1048576.0), "51 MiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_seconds(1.25e-5), "12.5 us");
  EXPECT_EQ(format_seconds(0.0125), "12.5 ms");
  EXPECT_EQ(format_seconds(12.5), "12.5 s");
}

TEST(ToHexadecimal, WritesTwoDigitsForEachByte) {
  EXPECT_EQ(to_hexadecimal({}), "");
  constexpr std::array bytes{std::byte{0}, std::byte{0x0f}, std::byte{0xa0}, std::byte{0xff}};
  EXPECT_EQ(to_hexadecimal(bytes), "000fa0ff");
}

}  // namespace
}  // namespace sluice::base
