// The options of `sluice train`: errors, dry runs and threads; all that needs no libtorch.
#include "cli/train/train_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "recipe/recipe.h"
#include "tests/base/has.h"
#include "tests/cli/shell.h"

namespace sluice::cli {
namespace {

using nlohmann::json;

TEST(Train, RefusesBadInputWithOneSentence) {
  expect_refused("SLUICE train --recipe dmeo", "demo");
  expect_refused("SLUICE train --recipe /no/such/file.toml", "/no/such/file.toml");
  expect_refused("SLUICE train --set epoch=3", "did you mean epochs?");
  expect_refused("SLUICE train --set epochs=-1", "epochs");
  expect_refused("SLUICE train --set epochs", "--set takes key=value, not \"epochs\"");
  expect_refused("SLUICE train --device cuda", "--device cuda is not supported yet");
  expect_refused("SLUICE train --device tpu", "there is no device \"tpu\"");
  expect_refused("SLUICE train --ranks 0", "--ranks must be a whole number from 1 to 4096");
  expect_refused("SLUICE train --target 101", "--target must be a percentage");
  expect_refused("SLUICE train --max-restarts many", "--max-restarts must be a whole number");
  expect_refused("SLUICE train --resume", "--resume needs the run's folder");
  expect_refused("SLUICE train --resume --run /no/such/run", "there is no run to resume");
#ifdef SLUICE_WITH_TORCH  // without libtorch, that error comes first
  expect_refused("SLUICE train --recipe facebook-1h", "recipe facebook-1h needs data");
#endif
  expect_refused("SLUICE train --data images:/somewhere", "give --recipe");
  expect_refused("SLUICE train --evaluate /no/such/run", "give --data");
  expect_refused("SLUICE train --frobnicate", "--frobnicate");
}

TEST(Train, ListsItsRecipes) {
  const Outcome outcome = shell("SLUICE train --recipe list");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Outcome listed = shell("SLUICE train --recipe list --json");
  const json document = json::parse(listed.out);
  EXPECT_EQ(document.size(), recipe::known_recipes().size());
  for (const char* const name : {"demo", "mnist", "cifar10", "facebook-1h", "pfn-15min",
                                 "sony-224s", "fujitsu-74s", "gradientflow-alexnet"})
    EXPECT_TRUE(base::has(outcome.out, name)) << name;
}

TEST(Train, EveryRecipeHasADryRun) {
  for (const recipe::RecipeSummary& recipe : recipe::known_recipes()) {
    const Outcome outcome =
        shell("SLUICE train --ranks 2 --dry-run --json --recipe " + recipe.name);
    ASSERT_EQ(outcome.status, 0) << recipe.name << outcome.err;
    const json document = json::parse(outcome.out);
    EXPECT_EQ(document["recipe"], recipe.name);
    EXPECT_GT(document["steps"], 0);
    EXPECT_GT(document["model"]["parameters"], 10000);
    EXPECT_GE(document["phases"].size(), 1U);
    std::int64_t steps = 0;
    for (const auto& phase : document["phases"])
      steps += phase["steps"].get<std::int64_t>() * phase["epochs"].get<std::int64_t>();
    EXPECT_EQ(steps, document["steps"].get<std::int64_t>()) << recipe.name;
    EXPECT_GE(document["rates"].size(), 3U);
    EXPECT_GT(document["settings"].size(), 40U);
  }
}

TEST(Train, DryRunPrintsThePlanOfTheTraining) {
  const Outcome outcome = shell(
      "cd $(mktemp -d); SLUICE train --recipe facebook-1h --ranks 256 --dry-run --set rate=0.2; "
      "ls");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  // 1,281,167 / 8,192 = 156 whole steps an epoch; 0.2 x 8192 / 256 = 6.4, a tenth at epoch 30.
  for (const char* const part : {"recipe facebook-1h: ", "25,557,032 parameters in 161 tensors",
                                 "ImageNet-1k (1,281,167 images", "14,040 steps in 90 epochs",
                                 "1-90 ", "156", "8,192", "6.4\n", "0.64\n", "--set", "[M]"})
    EXPECT_TRUE(base::has(outcome.out, part)) << part << "\n" << outcome.out;
  EXPECT_FALSE(base::has(outcome.out, "runs\n")) << "a dry run writes nothing";
}

#ifndef SLUICE_WITH_TORCH
TEST(Train, BuildWithoutLibtorchReportsThat) {
  expect_refused("SLUICE train ", "this sluice was built without libtorch and cannot train");
}
#endif

TEST(RankThreads, IncludeLoaderThreadsForImagesThatAreDecoded) {
  for (const int threads : {2, 3, 4, 8, 9, 64}) {
    const RankThreads shared = share_threads(threads, true);
    EXPECT_EQ(shared.compute + shared.loader, threads);
    EXPECT_GE(shared.loader, 1);
    EXPECT_GE(shared.compute, shared.loader);
  }
  EXPECT_EQ(share_threads(1, true).compute, 1) << "both on one core";
  EXPECT_EQ(share_threads(1, true).loader, 1);
}

TEST(RankThreads, NeedNoLoaderForDataInMemory) {
  for (const int threads : {1, 2, 16}) {
    EXPECT_EQ(share_threads(threads, false).compute, threads);
    EXPECT_EQ(share_threads(threads, false).loader, 0);
  }
}

TEST(RankThreads, ComeFromTheLauncher) {
  EXPECT_EQ(threads_of_rank(bootstrap::Environment{{{"OMP_NUM_THREADS", "6"}}}), 6);
  EXPECT_EQ(threads_of_rank(bootstrap::Environment{{}}), 1);
  EXPECT_EQ(threads_of_rank(bootstrap::Environment{{{"OMP_NUM_THREADS", "4,2"}}}), 1)
      << "a list of OpenMP";
}

}  // namespace
}  // namespace sluice::cli
