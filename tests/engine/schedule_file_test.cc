// Schedules from files, run by ranks that are threads. tests/cli/schedule_file_test.cc runs them in
// launched processes.
#include "algorithms/schedule_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include "base/file.h"
#include "engine/endpoint.h"
#include "engine/plan.h"
#include "engine/select/choices.h"
#include "schedule/marks.h"
#include "tests/engine/ranks.h"

namespace sluice::engine {
namespace {

const std::string kStar = "file:" SLUICE_SOURCE_DIR "/tests/schedule/files/star.txt";

class ScheduleFiles : public testing::Test {
 protected:
  ScheduleFiles() { std::filesystem::create_directories(folder_); }
  ~ScheduleFiles() override { base::remove_folder(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream{folder_ / name} << text;
    return "file:" + (folder_ / name).string();
  }
  std::string write(const std::string& name, const Schedule& schedule) const {
    std::ostringstream text;
    print_schedule(text, schedule);
    return write(name, text.str());
  }
  static std::string text_of(const std::string& file) {
    std::ifstream in{file.substr(5)};
    return {std::istreambuf_iterator<char>{in}, {}};
  }
  static std::string without(std::string text, const std::string& line) {
    return text.erase(text.find(line), line.size());
  }
  // The error of each rank whose all_reduce names `file_of(rank)`.
  static std::map<Rank, Status> failures(int ranks, const std::function<std::string(Rank)>& file_of,
                                         Collective collective = Collective::AllReduce) {
    std::map<Rank, Status> statuses;
    std::mutex mutex;
    run_ranks(ranks, [&](Communicator& comm) {
      std::vector<float> data(100, 1);
      comm.barrier();
      Status status;
      try {
        const CollectiveOptions options{.algorithm = file_of(comm.rank())};
        (collective == Collective::AllReduce ? comm.all_reduce(data, options)
                                             : comm.broadcast(data, options))
            .wait();
      } catch (const Error& error) {
        status = {error.code(), error.what()};
      }
      const std::lock_guard lock{mutex};
      statuses[comm.rank()] = status;
    });
    return statuses;
  }
  static void expect_all(const std::map<Rank, Status>& statuses, std::size_t ranks, Code code,
                         const std::string& sentence) {
    EXPECT_EQ(statuses.size(), ranks);
    for (const auto& [rank, status] : statuses) {
      EXPECT_EQ(status.code(), code) << rank << ": " << status.message();
      EXPECT_NE(status.message().find(sentence), std::string::npos)
          << rank << ": " << status.message();
    }
  }

  std::filesystem::path folder_ = std::filesystem::temp_directory_path() /
                                  ("sluice-files-" + std::to_string(getpid()) + "-" +
                                   testing::UnitTest::GetInstance()->current_test_info()->name());
};

// The element i of rank r.
double element(Rank rank, std::size_t i) {
  return static_cast<double>((static_cast<std::size_t>(rank) * 31 + i * 7) % 101) + rank;
}

void expect_results(Communicator& comm, const std::string& file) {
  for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Mean, ReduceOp::Max}) {
    for (const std::size_t count : {0, 1, 2, 13, 1000, 100'000}) {
      const Pool pool = comm.allocate(std::max<std::size_t>(count, 1) * sizeof(double));
      std::vector<double> foreign(count);
      for (double* const data : {pool.as<double>().data(), foreign.data()}) {
        for (std::size_t i = 0; i < count; ++i) data[i] = element(comm.rank(), i);
        comm.all_reduce(std::span{data, count}, {.op = op, .algorithm = file}).wait();
        for (std::size_t i = 0; i < count; ++i) {
          double expected = 0;
          for (Rank rank = 0; rank < comm.size(); ++rank) {
            const double value = element(rank, i);
            expected = op == ReduceOp::Max ? std::max(expected, value) : expected + value;
          }
          if (op == ReduceOp::Mean) expected /= comm.size();
          ASSERT_DOUBLE_EQ(data[i], expected) << file << " element " << i << " of " << count;
        }
      }
    }
  }
}

TEST_F(ScheduleFiles, AStarWrittenByHandRuns) {
  run_ranks(4, [](Communicator& comm) {
    EXPECT_EQ(comm.algorithm_for(Collective::AllReduce, 10, {.algorithm = kStar}), kStar);
    expect_results(comm, kStar);
  });
}

TEST_F(ScheduleFiles, ABuiltInScheduleRunsFromAFileAsItselfDoes) {
  for (const char* const name : {"ring", "direct", "double_tree", "recursive_doubling"}) {
    for (const int ranks : {1, 3, 7}) {
      const Algorithm& algorithm = *find_algorithm(name).value();
      const Shape shape = complete_shape(algorithm, {.ranks = ranks}).value();
      const std::string file =
          write(std::string{name} + std::to_string(ranks), build_schedule(algorithm, shape));
      run_ranks(ranks, [&](Communicator& comm) { expect_results(comm, file); });
      // The marks are those of the closed form, so sums are pushed in both or in none.
      const Algorithm& from_file = *find_algorithm(file).value();
      std::vector<schedule::OperationMarks> marks;
      ASSERT_TRUE(schedule::verify_and_mark(from_file.file->schedule, marks).proven);
      const std::string packed = schedule::pack(marks);
      EXPECT_EQ(packed.size(), schedule::packed_bytes(from_file.file->schedule));
      for (Rank rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(schedule::unpack(packed, from_file.file->schedule, rank),
                  schedule::apply(algorithm.marks(shape, rank), algorithm.program(shape, rank)));
      }
    }
  }
}

TEST_F(ScheduleFiles, OfOneContentsAreOneAlgorithm) {
  const std::string same = write("same", text_of(kStar) + "# the same schedule\n");
  EXPECT_EQ(find_algorithm(same).value(), find_algorithm(kStar).value());
  run_ranks(4, [&](Communicator& comm) { expect_results(comm, comm.rank() == 2 ? same : kStar); });
}

TEST_F(ScheduleFiles, AMessageOfMarksMayHaveSeveralSegments) {
  constexpr int kRanks = 5;
  constexpr int kChunks = 1 << 16;
  Schedule schedule{"star", {.collective = Collective::Broadcast, .ranks = kRanks}, false, {}};
  for (Rank rank = 0; rank < kRanks; ++rank) {
    Program& program = schedule.programs.emplace_back(Chunking{kChunks});
    program.begin_step();
    for (std::int32_t chunk = 0; chunk < kChunks; ++chunk) {
      if (rank > 0) program.receive_copy(0, {kUserBuffer, chunk, 1});
      for (Rank peer = 1; rank == 0 && peer < kRanks; ++peer)
        program.send(peer, {kUserBuffer, chunk, 1});
    }
  }
  EXPECT_GE(schedule::packed_bytes(schedule), Endpoint::kStagedBytes);
  const std::string file = write("wide", schedule);
  run_ranks(kRanks, [&](Communicator& comm) {
    std::vector<float> data(1000, comm.rank() == 0 ? 7.0F : 0.0F);
    comm.broadcast(data, {.algorithm = file}).wait();
    EXPECT_EQ(data.front(), 7.0F);
    EXPECT_EQ(data.back(), 7.0F);
  });
}

TEST_F(ScheduleFiles, AScheduleThatIsNotProvenIsRefusedAtEveryRank) {
  std::string file =
      write("broken", without(text_of(kStar), "rank 2 step 1 send buffer[0] to 0\n"));
  expect_all(failures(4, [&](Rank) { return file; }), 4, Code::NotProven,
             file + " is not proven and will not run: rank 0, step 1, ");
}

TEST_F(ScheduleFiles, OfAnotherShapeAreRefusedAtEveryRank) {
  expect_all(failures(3, [&](Rank) { return kStar; }), 3, Code::InvalidInput,
             "rank 0: " + kStar + " is a schedule of 4 ranks, not 3");
  expect_all(failures(
                 4, [&](Rank) { return kStar; }, Collective::Broadcast),
             4, Code::InvalidInput,
             "rank 0: " + kStar + " does not support broadcast: it supports all_reduce");
}

TEST_F(ScheduleFiles, ThatOneRankCannotReadAreRefusedAtEveryRank) {
  for (const Rank wrong : {0, 1, 2, 3}) {
    const std::string missing = "file:" + (folder_ / ("none" + std::to_string(wrong))).string();
    expect_all(failures(4, [&](Rank rank) { return rank == wrong ? missing : kStar; }), 4,
               Code::InvalidInput,
               "rank " + std::to_string(wrong) + ": " + missing.substr(5) +
                   " cannot be read: No such file");
  }
  const std::string torn = write("torn", text_of(kStar) + "rank 1 step 3 send");
  expect_all(failures(4, [&](Rank rank) { return rank == 3 ? torn : kStar; }), 4,
             Code::InvalidInput, torn.substr(5) + ", line 17");
}

TEST_F(ScheduleFiles, ThatDifferBetweenRanksAreRefusedAtEveryRank) {
  std::string text = text_of(kStar);
  text.replace(text.find("own + 1 + 2 + 3"), 15, "own + 3 + 2 + 1");
  const std::string other = write("other", text);
  for (const Rank wrong : {1, 2, 3}) {
    const auto statuses = failures(4, [&](Rank rank) { return rank == wrong ? other : kStar; });
    expect_all(statuses, 4, Code::InvalidInput, " differs from that of rank ");
    expect_all(statuses, 4, Code::InvalidInput, "rank " + std::to_string(wrong));
  }
  // After each has been used by all ranks.
  std::mutex mutex;
  int named = 0;
  run_ranks(4, [&](Communicator& comm) {
    std::vector<float> data(100, 1);
    for (const std::string& file : {kStar, other})
      comm.all_reduce(data, {.algorithm = file}).wait();
    try {
      comm.all_reduce(data, {.algorithm = comm.rank() == 1 ? other : kStar}).wait();
    } catch (const Error& error) {
      const std::lock_guard lock{mutex};
      EXPECT_EQ(error.code(), Code::Mismatch) << error.what();
      named += std::string{error.what()}.find("by " + kStar) != std::string::npos &&
               std::string{error.what()}.find("by " + other) != std::string::npos;
    }
  });
  EXPECT_EQ(named, 4);
}

TEST_F(ScheduleFiles, AnOverrideWithoutItsFileIsNoticedAtTheFirstUse) {
  const auto overrides = parse_overrides("file:" + (folder_ / "none").string() + "@1K-");
  ASSERT_TRUE(overrides.ok());
  EXPECT_EQ(find_override(overrides.value(), Collective::AllReduce, 100), nullptr);
  EXPECT_NE(find_override(overrides.value(), Collective::Broadcast, 5000), nullptr);
  EXPECT_TRUE(overrides_of_part(overrides.value(), 4).empty());
  const auto star = parse_overrides(kStar);
  EXPECT_EQ(find_override(star.value(), Collective::Broadcast, 5000), nullptr);
  EXPECT_EQ(overrides_of_part(star.value(), 4).size(), 1U);
  EXPECT_EQ(overrides_of_part(star.value(), 2).size(), 0U);
}

}  // namespace
}  // namespace sluice::engine
