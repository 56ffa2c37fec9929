#include <zlib.h>

#include <algorithm>

#include "data/formats/file_bytes.h"
#include "tests/data/files.h"

namespace sluice::data {
namespace {

class Gzip : public WithFiles {
 protected:
  // Longer than the piece that is inflated at once.
  Gzip() {
    base::Random random{3};
    for (std::size_t i = 0; i < 3'000'000; ++i) text_ += static_cast<char>(random.below(7));
    const gzFile file = gzopen(path("text.gz").c_str(), "wb");
    EXPECT_EQ(gzwrite(file, text_.data(), static_cast<unsigned>(text_.size())),
              static_cast<int>(text_.size()));
    gzclose(file);
  }
  std::string refusal(const std::string& name) const {
    std::vector<std::uint8_t> bytes;
    return read_maybe_gzipped(path(name), bytes).message();
  }

  std::string text_;
};

TEST_F(Gzip, FilesAreReadCompressedOrNot) {
  std::vector<std::uint8_t> bytes{1, 2, 3};
  ASSERT_TRUE(read_maybe_gzipped(path("text.gz"), bytes).ok());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), text_.begin(), text_.end(),
                         [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); }));
  write("plain", "hello");
  ASSERT_TRUE(read_maybe_gzipped(path("plain"), bytes).ok());
  EXPECT_EQ(bytes, (std::vector<std::uint8_t>{'h', 'e', 'l', 'l', 'o'}));
}

TEST_F(Gzip, AFileTruncatedAnywhereIsRefused) {
  const std::string whole = read("text.gz");
  for (const std::size_t length : {std::size_t{2}, std::size_t{10}, std::size_t{1000},
                                   whole.size() / 2, whole.size() - 8, whole.size() - 1}) {
    write("cut.gz", whole.substr(0, length));
    EXPECT_EQ(refusal("cut.gz"),
              "is a gzip file that ends early, " + std::to_string(length) + " bytes in");
  }
}

TEST_F(Gzip, ADamagedFileIsRefused) {
  std::string damaged = read("text.gz");
  damaged[damaged.size() - 6] ^= 1;  // in the checksum
  write("damaged.gz", damaged);
  EXPECT_NE(refusal("damaged.gz").find("is a broken gzip file: incorrect data check"),
            std::string::npos)
      << refusal("damaged.gz");
}

}  // namespace
}  // namespace sluice::data
