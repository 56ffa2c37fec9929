// The command `sluice reproduce` and the page that it writes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/shell.h"

namespace sluice::cli {
namespace {

// `sluice reproduce --markdown > docs/reproduction.md` updates it.
TEST(ReproduceCommand, WritesTheCommittedPage) {
  const Outcome outcome = shell("SLUICE reproduce --markdown", 200);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, read_all(SLUICE_SOURCE_DIR "/docs/reproduction.md"));
}

TEST(ReproduceCommand, JsonHasItsKeys) {
  const Outcome outcome = shell("SLUICE reproduce --json", 200);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto rows = nlohmann::json::parse(outcome.out);
  EXPECT_GE(rows.size(), 23U);
  for (const auto& row : rows) {
    for (const char* key :
         {"name", "metric", "published", "simulated", "error", "calibrated", "degrees_of_freedom"})
      EXPECT_TRUE(row.contains(key)) << row.dump() << " lacks " << key;
    EXPECT_EQ(row["calibrated"].get<bool>(), row.contains("value")) << row.dump();
  }
}

}  // namespace
}  // namespace sluice::cli
