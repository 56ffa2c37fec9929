#include "data/formats/formats.h"
#include "tests/data/files.h"

namespace sluice::data {
namespace {

constexpr std::size_t kRecords = 4;  // the real files have 10,000

// Every pixel has a value of its file, record and position.
std::uint8_t pixel(int file, std::size_t record, std::size_t position) {
  return static_cast<std::uint8_t>(static_cast<std::size_t>(file) * 101 + record * 31 +
                                   position * 3);
}

std::string batch(int file) {
  std::string bytes;
  for (std::size_t record = 0; record < kRecords; ++record) {
    bytes += static_cast<char>((static_cast<std::size_t>(file) + record) % 10);
    for (std::size_t i = 0; i < 3072; ++i) bytes += static_cast<char>(pixel(file, record, i));
  }
  return bytes;
}

class Cifar10Files : public WithFiles {
 protected:
  Cifar10Files() {
    for (int i = 1; i <= 5; ++i) write("data_batch_" + std::to_string(i) + ".bin", batch(i));
    write("test_batch.bin", batch(6));
  }
  std::string refusal() const { return open_cifar10(root_, kRecords).status().message(); }
};

TEST_F(Cifar10Files, AreReadInOrder) {
  const Data data = open_cifar10(root_, kRecords).value();
  EXPECT_EQ(data.train->size(), 5 * kRecords);
  EXPECT_EQ(data.validation->size(), kRecords);
  EXPECT_EQ(data.classes.at(3), "cat");
  EXPECT_EQ(data.channels, 3);
  EXPECT_EQ(data.height, 32);
  Image image;
  ASSERT_TRUE(data.train->decode(2 * kRecords + 1, image).ok());
  EXPECT_EQ(data.train->label(2 * kRecords + 1), 4);
  for (std::size_t i = 0; i < 3072; ++i) ASSERT_EQ(image.pixels[i], pixel(3, 1, i));
  EXPECT_EQ(data.validation->label(3), 9);
}

TEST_F(Cifar10Files, MayLieInTheFolderOfTheArchive) {
  std::filesystem::create_directory(root_ / "cifar-10-batches-bin");
  for (int i = 1; i <= 5; ++i) {
    const std::string name = "data_batch_" + std::to_string(i) + ".bin";
    std::filesystem::rename(root_ / name, root_ / "cifar-10-batches-bin" / name);
  }
  std::filesystem::rename(root_ / "test_batch.bin", root_ / "cifar-10-batches-bin/test_batch.bin");
  EXPECT_EQ(open_cifar10(root_, kRecords).value().train->size(), 5 * kRecords);
}

TEST_F(Cifar10Files, AnErrorNamesTheWrongFile) {
  write("data_batch_4.bin", batch(4).substr(0, 10000));
  EXPECT_EQ(refusal(), path("data_batch_4.bin") +
                           " is truncated: 4 records of 3073 bytes are 12292 bytes, it has 10000");
  std::string wrong = batch(4);
  wrong[2 * 3073] = 10;
  write("data_batch_4.bin", wrong);
  EXPECT_EQ(refusal(), path("data_batch_4.bin") +
                           " is not a batch of CIFAR-10: record 2 has the label 10, of 10 classes");
  std::filesystem::remove(root_ / "data_batch_4.bin");
  EXPECT_EQ(refusal(), path("data_batch_4.bin") + " cannot be read: No such file or directory");
}

}  // namespace
}  // namespace sluice::data
