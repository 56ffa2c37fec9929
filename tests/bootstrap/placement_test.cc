#include "bootstrap/placement.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "base/text.h"

namespace sluice::bootstrap {
namespace {

using Values = std::map<std::string, std::string, std::less<>>;

Placement place(const Values& values, int parent = 0) {
  return placement_of(Environment{values, parent}).value();
}

std::string refusal(const Values& values) {
  return placement_of(Environment{values}).status().message();
}

void expect(const Placement& got, Rank rank, int ranks, Rank local_rank, int local_ranks,
            std::string_view job, std::string_view launcher) {
  EXPECT_EQ(got.rank, rank);
  EXPECT_EQ(got.ranks, ranks);
  EXPECT_EQ(got.local_rank, local_rank);
  EXPECT_EQ(got.local_ranks, local_ranks);
  EXPECT_EQ(got.job, job);
  EXPECT_EQ(got.launcher, launcher);
}

const Values kSluice{{"SLUICE_RANK", "3"},        {"SLUICE_RANKS", "4"}, {"SLUICE_LOCAL_RANK", "1"},
                     {"SLUICE_LOCAL_RANKS", "2"}, {"SLUICE_JOB", "j"},   {"SLUICE_TOKEN", "t"}};
const Values kOpenMpi{{"OMPI_COMM_WORLD_RANK", "5"},
                      {"OMPI_COMM_WORLD_SIZE", "8"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                      {"PMIX_NAMESPACE", "991"}};
const Values kMpich{
    {"PMI_RANK", "2"}, {"PMI_SIZE", "6"}, {"MPI_LOCALRANKID", "2"}, {"MPI_LOCALNRANKS", "3"}};
const Values kSlurm{
    {"SLURM_PROCID", "9"},  {"SLURM_NTASKS", "11"}, {"SLURM_STEP_TASKS_PER_NODE", "4(x2),3"},
    {"SLURM_LOCALID", "1"}, {"SLURM_NODEID", "2"},  {"SLURM_JOB_ID", "77"},
    {"SLURM_STEP_ID", "0"}};
const Values kTorchrun{{"RANK", "1"},
                       {"WORLD_SIZE", "2"},
                       {"LOCAL_RANK", "1"},
                       {"LOCAL_WORLD_SIZE", "2"},
                       {"MASTER_ADDR", "box"},
                       {"MASTER_PORT", "2950"},
                       {"TORCHELASTIC_RUN_ID", "none"}};

Values both(Values inner, const Values& outer) {
  inner.insert(outer.begin(), outer.end());
  return inner;
}

TEST(Placement, WithoutALauncherIsASingleRank) { expect(place({}), 0, 1, 0, 1, "", "none"); }

TEST(Placement, UnderstandsEveryLauncher) {
  expect(place(kSluice), 3, 4, 1, 2, "j", "sluice launch");
  EXPECT_EQ(place(kSluice).token, "t");
  expect(place(kOpenMpi), 5, 8, 1, 4, "991", "Open MPI");
  EXPECT_EQ(place(kOpenMpi).token, "991");
  expect(place(kMpich, 4242), 2, 6, 2, 3, "mpich-4242", "MPICH");
  expect(place(kSlurm), 9, 11, 1, 3, "slurm-77.0", "Slurm");
  expect(place(kTorchrun), 1, 2, 1, 2, "torch-none-box:2950-0", "torchrun");
  expect(place({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"SLUICE_JOB", "mine"}}), 1, 2, 1, 2, "mine",
         "RANK and WORLD_SIZE");
}

TEST(Placement, TheInnermostLauncherCounts) {
  EXPECT_EQ(place(both(kSluice, kSlurm)).launcher, "sluice launch");
  EXPECT_EQ(place(both(kTorchrun, kSlurm)).launcher, "torchrun");
  EXPECT_EQ(place(both(kOpenMpi, kSlurm)).launcher, "Open MPI");
  EXPECT_EQ(place(both(kMpich, kSlurm), 1).launcher, "MPICH");
}

TEST(Placement, SrunWithPmiIsSlurm) {
  expect(place(both({{"PMI_RANK", "9"}, {"PMI_SIZE", "11"}}, kSlurm), 1), 9, 11, 1, 3, "slurm-77.0",
         "Slurm");
}

TEST(Placement, AStepOfASlurmJobHasItsOwnRanks) {
  expect(place(both({{"SLURM_PROCID", "0"},
                     {"SLURM_STEP_NUM_TASKS", "2"},
                     {"SLURM_LOCALID", "0"},
                     {"SLURM_STEP_TASKS_PER_NODE", "2"},
                     {"SLURM_NODEID", "0"}},
                    kSlurm)),
         0, 2, 0, 2, "slurm-77.0", "Slurm");
}

TEST(Placement, ASlurmBatchScriptIsASingleRank) {
  Values batch = kSlurm;
  batch.erase("SLURM_STEP_ID");
  EXPECT_EQ(place(batch).ranks, 1);
}

TEST(Placement, WithoutLocalNumbersAllRanksAreOnThisNode) {
  expect(place({{"SLUICE_RANK", "3"}, {"SLUICE_RANKS", "4"}, {"SLUICE_JOB", "j"}}), 3, 4, 3, 4, "j",
         "sluice launch");
}

// Open MPI 6 does that.
TEST(Placement, ANodesRanksMayBeNumberedInAnyOrder) {
  expect(place(both({{"OMPI_COMM_WORLD_RANK", "0"}}, kOpenMpi)), 0, 8, 1, 4, "991", "Open MPI");
}

TEST(Placement, AnEmptyVariableCountsAsNotSet) {
  EXPECT_EQ(place({{"SLUICE_RANK", ""}, {"RANK", ""}}).ranks, 1);
}

TEST(Placement, AnErrorNamesTheVariableAndItsRange) {
  const auto with = [](Values values, const std::string& name, const std::string& value) {
    values[name] = value;
    return refusal(values);
  };
  EXPECT_EQ(with(kSluice, "SLUICE_RANK", "4"),
            "SLUICE_RANK must be a whole number from 0 to 3, not \"4\"");
  EXPECT_EQ(with(kSluice, "SLUICE_RANK", "-1"),
            "SLUICE_RANK must be a whole number from 0 to 3, not \"-1\"");
  EXPECT_EQ(with(kSluice, "SLUICE_RANKS", "4x"),
            "SLUICE_RANKS must be a whole number from 1 to 1048576, not \"4x\"");
  EXPECT_EQ(with(kSluice, "SLUICE_RANKS", ""),
            "SLUICE_RANKS is not set, but sluice launch seems to have started this process");
  EXPECT_EQ(with(kSluice, "SLUICE_LOCAL_RANKS", "5"),
            "SLUICE_LOCAL_RANKS must be a whole number from 1 to 4, not \"5\"");
  EXPECT_EQ(with(kSluice, "SLUICE_LOCAL_RANK", "2"),
            "SLUICE_LOCAL_RANK must be a whole number from 0 to 1, not \"2\"");
  EXPECT_EQ(with(kSluice, "SLUICE_LOCAL_RANK", ""),
            "SLUICE_LOCAL_RANK is not set, but sluice launch seems to have started this process");
  EXPECT_EQ(with(kSlurm, "SLURM_STEP_TASKS_PER_NODE", "4(x2"),
            "SLURM_STEP_TASKS_PER_NODE is \"4(x2\", which has no entry for node 2");
  EXPECT_EQ(with(kSlurm, "SLURM_NODEID", "3"),
            "SLURM_STEP_TASKS_PER_NODE is \"4(x2),3\", which has no entry for node 3");
  EXPECT_NE(with(kOpenMpi, "PMIX_NAMESPACE", "").find("set SLUICE_JOB"), std::string::npos);
}

Values with(Values values, const Values& more) {
  for (const auto& [name, value] : more) values[name] = value;
  return values;
}

TEST(Placement, KnowsWhetherTheLauncherSetTheLocalRanks) {
  EXPECT_FALSE(place({}).local_known);
  EXPECT_FALSE(place({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"SLUICE_JOB", "j"}}).local_known);
  for (const Values& values : {kSluice, kOpenMpi, kMpich, kSlurm, kTorchrun})
    EXPECT_TRUE(place(values, 1).local_known);
  Values bare = kSlurm;
  bare.erase("SLURM_STEP_TASKS_PER_NODE");
  EXPECT_FALSE(place(bare).local_known);
}

TEST(Placement, KnowsWhereRankZeroIs) {
  EXPECT_EQ(place(kTorchrun).master, "box");
  EXPECT_EQ(place(kTorchrun).port, 2951);
  EXPECT_EQ(place(kSluice).master, "");
  EXPECT_EQ(place(kSluice).port, 29501);
  const Placement own = place(with(kSluice, {{"MASTER_ADDR", "10.0.0.1"},
                                             {"MASTER_PORT", "29500"},
                                             {"SLUICE_PORT", "4000"},
                                             {"SLUICE_INTERFACE", "eth1"}}));
  EXPECT_EQ(own.master, "10.0.0.1");
  EXPECT_EQ(own.port, 4000);
  EXPECT_EQ(own.interface, "eth1");
  EXPECT_EQ(place(with(kSluice, {{"MASTER_PORT", "65535"}})).port, 65534);
  EXPECT_EQ(refusal(with(kSluice, {{"SLUICE_PORT", "70000"}})),
            "SLUICE_PORT must be a whole number from 1 to 65535, not \"70000\"");
  EXPECT_EQ(refusal(with(kSluice, {{"MASTER_PORT", "x"}})),
            "MASTER_PORT must be a whole number from 1 to 65535, not \"x\"");
}

TEST(Placement, UnderSlurmRankZeroIsOnTheFirstNode) {
  EXPECT_EQ(place(kSlurm).master, "") << "a missing list is not an error";
  const Values job = with(kSlurm, {{"SLURM_JOB_NODELIST", "a,b"}});
  EXPECT_EQ(place(job).master, "a");
  EXPECT_EQ(place(with(job, {{"SLURM_STEP_NODELIST", "node[03-07,9],x"}})).master, "node03");
  EXPECT_EQ(place(with(job, {{"MASTER_ADDR", "m"}})).master, "m");
  EXPECT_EQ(place(both(kOpenMpi, job)).master, "") << "mpirun may number the nodes differently";
}

TEST(Placement, TheTokenIsGivenOrReadFromAFileOrTheJobName) {
  EXPECT_TRUE(place(kSluice).token_given);
  EXPECT_FALSE(place(kOpenMpi).token_given);
  const std::string path = testing::TempDir() + "rendezvous-token." + std::to_string(getpid());
  const Values from_file = with(kOpenMpi, {{"SLUICE_TOKEN_FILE", path}});
  EXPECT_EQ(refusal(from_file), "the token file " + base::quote(path) + " cannot be read");
  std::ofstream{path} << " \t\n";
  EXPECT_EQ(refusal(from_file),
            "the token file " + base::quote(path) + " has no token in its first line");
  std::ofstream{path} << "  a secret \r\nand more\n";
  EXPECT_EQ(place(from_file).token, "a secret");
  EXPECT_TRUE(place(from_file).token_given);
  EXPECT_EQ(place(with(from_file, {{"SLUICE_TOKEN", "nearer"}})).token, "nearer");
  std::remove(path.c_str());
}

TEST(SlurmList, HasAFirstNode) {
  EXPECT_EQ(first_slurm_node("node[03-07,9],x"), "node03");
  EXPECT_EQ(first_slurm_node("a,b"), "a");
  EXPECT_EQ(first_slurm_node("a"), "a");
  EXPECT_EQ(first_slurm_node("n[9,03-07]"), "n9");
  EXPECT_EQ(first_slurm_node("rack[1-2]n[01-04]-ib,z"), "rack1n01-ib");
  EXPECT_EQ(first_slurm_node(""), "");
  EXPECT_EQ(first_slurm_node("n[3"), "");
  EXPECT_EQ(first_slurm_node("n[]"), "");
}

TEST(Environment, EveryVariableIsListedOnceWithItsMeaning) {
  std::set<std::string_view> names;
  for (const Variable& variable : variables()) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
    EXPECT_FALSE(variable.meaning.empty()) << variable.name;
  }
  for (const Values* values : {&kSluice, &kOpenMpi, &kMpich, &kSlurm, &kTorchrun}) {
    for (const auto& [name, value] : *values) EXPECT_TRUE(names.contains(name)) << name;
  }
}

// A variable that is declared but not listed would never be read.
TEST(Environment, EveryDeclaredVariableIsListed) {
  std::ifstream header{SLUICE_SOURCE_DIR "/src/bootstrap/environment.h"};
  std::size_t declared = 0;
  for (std::string line; std::getline(header, line);)
    declared += line.starts_with("inline constexpr Variable k") ? 1 : 0;
  EXPECT_GT(declared, 0U);
  EXPECT_EQ(variables().size(), declared);
}

}  // namespace
}  // namespace sluice::bootstrap
