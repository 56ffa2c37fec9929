#include "train/checkpoint/checkpoint_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "bench/allreduce/temporary_folder.h"
#include "train/checkpoint/sections.h"

namespace sluice::train {
namespace {

namespace fs = std::filesystem;

constexpr CheckpointHeader kHeader{
    .step = 1250, .run = 77, .ranks = 3, .owner = 2, .accuracy = 81.5};

class CheckpointFile : public testing::Test {
 protected:
  CheckpointFile() {
    list_.add_copy<float>("weights", std::vector<float>{1, -2, 0.5F});
    list_.add_value("step", std::int64_t{-9});
    list_.add_text("warning", "");
    list_.add_copy<std::uint8_t>("odd", std::vector<std::uint8_t>(130, 7));
    list_.add({.name = "matrix",
               .type = DataType::F32,
               .shape = {3, 1},
               .data = list_.sections()[0].data});
  }

  Status write() const { return write_part(file_, kHeader, list_.sections()); }
  std::string bytes() const {
    std::ifstream in{file_, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
  }
  void replace(const std::string& bytes) const {
    std::ofstream{file_, std::ios::binary | std::ios::trunc} << bytes;
  }
  std::string refusal() const {
    const Result<CheckpointPart> part = read_part(file_);
    EXPECT_TRUE(part.ok() || part.status().code() == Code::InvalidInput);
    return part.status().message();
  }

  bench::TemporaryFolder folder_;
  fs::path file_ = fs::path{folder_.make("checkpoints")} / "rank-2";
  SectionWriter list_;
};

TEST_F(CheckpointFile, IsReadAsItWasWritten) {
  ASSERT_TRUE(write().ok());
  const Result<CheckpointPart> part = read_part(file_);
  ASSERT_TRUE(part.ok()) << part.status().message();
  const CheckpointHeader& header = part.value().header();
  EXPECT_EQ(header.step, 1250);
  EXPECT_EQ(header.run, 77U);
  EXPECT_EQ(header.ranks, 3);
  EXPECT_EQ(header.owner, 2);
  EXPECT_EQ(header.accuracy, 81.5);
  SectionReader reader{part.value()};
  EXPECT_EQ(reader.vector<float>("weights"), (std::vector<float>{1, -2, 0.5F}));
  EXPECT_EQ(reader.value<std::int64_t>("step"), -9);
  EXPECT_EQ(reader.text("warning"), "");
  EXPECT_EQ(reader.values<std::uint8_t>("odd").size(), 130U);
  EXPECT_EQ(part.value().find("matrix")->shape, (std::vector<std::int64_t>{3, 1}));
  EXPECT_TRUE(reader.status().ok());
  EXPECT_EQ(part.value().find("none"), nullptr);
  reader.value<double>("step");
  reader.value<std::int64_t>("none");
  EXPECT_EQ(reader.status().message(), "the checkpoint's array 'step' is of another type");
  EXPECT_EQ(read_part_header(file_).value().accuracy, 81.5);
}

TEST_F(CheckpointFile, DataBeginsAtMultiplesOf64Bytes) {
  ASSERT_TRUE(write().ok());
  const std::string all = bytes();
  EXPECT_EQ(all.size() % 64, 0U);
  const std::array<float, 3> weights = {1, -2, 0.5F};
  const std::string wanted{reinterpret_cast<const char*>(weights.data()), sizeof weights};
  EXPECT_EQ(all.find(wanted) % 64, 0U);
}

TEST_F(CheckpointFile, ATruncatedFileIsTorn) {
  ASSERT_TRUE(write().ok());
  const std::string whole = bytes();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    replace(whole.substr(0, length));
    ASSERT_NE(refusal().find("it is torn"), std::string::npos) << length << ": " << refusal();
  }
  replace(whole + "x");
  EXPECT_NE(refusal(), "");
}

TEST_F(CheckpointFile, AChangedByteIsNoticed) {
  ASSERT_TRUE(write().ok());
  const std::string whole = bytes();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string other = whole;
    other[at] = static_cast<char>(other[at] ^ (at % 2 == 0 ? 0x80 : 1));
    replace(other);
    ASSERT_NE(refusal(), "") << "byte " << at;
  }
}

TEST_F(CheckpointFile, AnErrorNamesTheReason) {
  EXPECT_EQ(refusal(), "it is missing");
  ASSERT_TRUE(write().ok());
  const std::string whole = bytes();
  std::string other = whole;
  other[8] = 2;
  replace(other);
  EXPECT_EQ(refusal(), "it is of version 2, and this Sluice reads version 1");
  replace(std::string(1000, 'x'));
  EXPECT_EQ(refusal(), "it is not a checkpoint of Sluice");
  other = whole;
  other[20] ^= 1;
  replace(other);
  EXPECT_EQ(refusal(), "its header is damaged");
  other = whole;
  other[whole.size() - 1] ^= 1;
  replace(other);
  EXPECT_EQ(refusal(), "its array 4 is damaged");
  fs::remove(file_);
  fs::create_directory(file_);
  EXPECT_EQ(refusal(), "it is not a regular file");
}

TEST_F(CheckpointFile, NoTemporaryFileIsLeft) {
  ASSERT_TRUE(write().ok());
  ASSERT_TRUE(write().ok());
  EXPECT_EQ(std::distance(fs::directory_iterator{file_.parent_path()}, {}), 1);
}

TEST_F(CheckpointFile, AnErrorNamesAMissingFolder) {
  const Status status = write_part("/nowhere/at/all", kHeader, list_.sections());
  EXPECT_NE(status.message().find("/nowhere/at/"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace sluice::train
