#include "sluice/sluice.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace sluice::base {
namespace {

namespace fs = std::filesystem;

TEST(SluiceHeader, IncludesEveryPublicHeaderThatNeedsOnlyTheStandardLibrary) {
  const fs::path include = SLUICE_SOURCE_DIR "/include";
  std::stringstream header;
  header << std::ifstream{include / "sluice/sluice.h"}.rdbuf();
  int headers = 0;
  for (const auto& entry : fs::recursive_directory_iterator{include / "sluice"}) {
    const std::string name = fs::relative(entry.path(), include).string();
    if (!entry.is_regular_file()) continue;
    ++headers;
    if (name == "sluice/sluice.h" || name.starts_with("sluice/torch/")) continue;
    EXPECT_NE(header.str().find("#include \"" + name + "\"\n"), std::string::npos) << name;
  }
  EXPECT_LE(headers, 20);
}

TEST(SluiceHeader, GivesTheWholeApi) {
  const Algorithm& ring = *find_algorithm("ring").value();
  const Shape shape = complete_shape(ring, {.ranks = 4}).value();
  EXPECT_TRUE(prove(ring, shape).proven);
  EXPECT_EQ(Selector(Collective::AllReduce, Topology::flat(4), {}).choose(1).shape.ranks, 4);
  EXPECT_EQ(CollectiveOptions{}.op, ReduceOp::Sum);
}

TEST(Types, HaveSizesAndNames) {
  EXPECT_EQ(size_of(DataType::F32), sizeof(float));
  EXPECT_EQ(size_of(DataType::F64), sizeof(double));
  EXPECT_EQ(size_of(DataType::F16), 2u);
  EXPECT_EQ(size_of(DataType::BF16), 2u);
  EXPECT_EQ(size_of(DataType::I32), 4u);
  EXPECT_EQ(size_of(DataType::I64), 8u);
  for (const DataType type : {DataType::U8, DataType::I8, DataType::Bool})
    EXPECT_EQ(size_of(type), 1u);
  EXPECT_EQ(name(DataType::BF16), "bf16");
  EXPECT_EQ(name(DataType::Bool), "bool");
  EXPECT_EQ(name(ReduceOp::Mean), "mean");
  EXPECT_EQ(name(ReduceOp::Xor), "xor");
}

static_assert(std::is_convertible_v<std::vector<double>&, Elements>);
static_assert(std::is_convertible_v<std::array<bool, 3>&, Elements>);
static_assert(std::is_convertible_v<std::int32_t (&)[3], Elements>);
static_assert(std::is_convertible_v<std::span<std::int64_t, 3>, Elements>);
static_assert(std::is_convertible_v<const std::vector<float>&, ConstElements>);
static_assert(std::is_convertible_v<Elements, ConstElements>);
static_assert(!std::is_convertible_v<const std::vector<float>&, Elements>, "it is only read");
static_assert(!std::is_convertible_v<ConstElements, Elements>, "it is only read");
static_assert(!std::is_convertible_v<std::vector<float>, Elements>, "the memory would be gone");
static_assert(!std::is_convertible_v<std::vector<bool>&, Elements>, "it packs eight into a byte");
static_assert(!std::is_convertible_v<std::vector<std::uint16_t>&, Elements>, "f16 or bf16?");

TEST(Types, ElementsKnowTheirType) {
  std::vector<std::uint8_t> bytes(5);
  const Elements elements = bytes;
  EXPECT_EQ(elements.data(), bytes.data());
  EXPECT_EQ(elements.count(), 5u);
  EXPECT_EQ(elements.type(), DataType::U8);
  EXPECT_EQ(Elements(bytes.data(), 2, DataType::F16).bytes(), 4u);
}

// The table of docs/types.md.
TEST(Types, AndOperationsAreLegalAsTheDocumentSays) {
  constexpr DataType kTypes[] = {DataType::F32,  DataType::F64, DataType::F16,
                                 DataType::BF16, DataType::I32, DataType::I64,
                                 DataType::U8,   DataType::I8,  DataType::Bool};
  constexpr ReduceOp kOps[] = {ReduceOp::Sum,     ReduceOp::Mean, ReduceOp::Min, ReduceOp::Max,
                               ReduceOp::Product, ReduceOp::And,  ReduceOp::Or,  ReduceOp::Xor};
  std::ifstream document{SLUICE_SOURCE_DIR "/docs/types.md"};
  std::set<std::string> documented;
  std::vector<std::string> operations;
  for (std::string line; std::getline(document, line);) {
    if (!line.starts_with("| ")) continue;
    std::vector<std::string> cells;
    std::istringstream row{line.substr(2)};
    for (std::string cell; row >> cell;) {
      if (cell != "|") cells.push_back(cell);
    }
    if (cells.front() == "type") operations = cells;
    if (cells.size() != operations.size()) continue;
    for (std::size_t i = 1; i < cells.size(); ++i) {
      if (cells[i] == "yes") documented.insert(cells.front() + " " + operations[i]);
    }
  }
  std::set<std::string> legal;
  for (const DataType type : kTypes) {
    for (const ReduceOp op : kOps) {
      if (is_legal(type, op)) legal.insert(std::string{name(type)} + " " + std::string{name(op)});
    }
  }
  EXPECT_EQ(documented, legal);
}

}  // namespace
}  // namespace sluice::base
