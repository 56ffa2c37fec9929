#include "sluice/sluice.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
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
  EXPECT_EQ(CollectiveOptions{}.type, DataType::F32);
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
