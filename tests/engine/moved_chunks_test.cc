// Schedules with equal chunks, whose values change their chunk numbers: proven or refused, printed,
// read, simulated and run.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "algorithms/schedule_file.h"
#include "base/file.h"
#include "cluster/cluster.h"
#include "schedule/dataflow.h"
#include "simulate/event_run.h"
#include "sluice/analysis/cost.h"
#include "sluice/verify.h"
#include "tests/engine/ranks.h"

namespace sluice::engine {
namespace {

std::string printed(const Schedule& schedule) {
  std::ostringstream text;
  print_schedule(text, schedule);
  return text.str();
}

Schedule parsed(const std::string& text) {
  std::istringstream in{text};
  return parse_schedule(in).value();
}

// Two ranks exchange their halves through scratch chunks with other numbers.
const std::string kExchange = R"(sluice-schedule 1
algorithm moved
collective all_reduce
ranks 2
chunks 2
equal_chunks
scratch tmp[5]
rank 0 step 1 send buffer[0..1] to 1
rank 0 step 1 copy tmp[4..0] from 1
rank 0 step 1 local copy tmp[1..2] = tmp[4..0]
rank 0 step 1 local reduce buffer[0..1] = buffer + tmp[1..2]
rank 1 step 1 send buffer[0..1] to 0
rank 1 step 1 copy tmp[2..3] from 0
rank 1 step 1 local reduce buffer[0..1] = tmp[2..3] + buffer
)";

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(MovedChunks, AreProvenAndKeepTheirText) {
  const Schedule schedule = parsed(kExchange);
  const Proof proof = verify(schedule);
  EXPECT_TRUE(proof.proven) << proof.reason;
  EXPECT_EQ(proof.bytes_factor, Fraction{1});
  EXPECT_EQ(parsed(printed(schedule)), schedule);
  EXPECT_EQ(printed(parsed(printed(schedule))), printed(schedule));
  const std::string received = changed(kExchange, "copy tmp[2..3] from 0", "copy tmp[1..2] from 0");
  const Schedule other = parsed(changed(received, "tmp[2..3] + buffer", "tmp[1..2] + buffer"));
  EXPECT_TRUE(verify(other).proven);
  EXPECT_NE(hash_schedule(schedule), hash_schedule(other));
}

TEST(MovedChunks, AreRefusedForTheRightReason) {
  const auto reason = [](const std::string& from, const std::string& to) {
    return verify(parsed(changed(kExchange, from, to))).reason;
  };
  EXPECT_EQ(reason("buffer + tmp[1..2]", "buffer + tmp[2..3]"),
            "rank 0, step 1, chunk 0: it adds chunks 0 and 1 of the input");
  EXPECT_EQ(reason("tmp[1..2] = tmp[4..0]", "tmp[1..2] = tmp[3..4]"),
            "rank 0, step 1, chunk 1: it reads tmp of rank 0, which holds nothing yet");
  EXPECT_EQ(reason("tmp[1..2] = tmp[4..0]", "tmp[0..1] = tmp[4..0]"),
            "rank 0, step 1, chunks 0 to 1: it copies from itself");
  EXPECT_EQ(reason("copy tmp[2..3] from 0", "copy tmp[2] from 0"),
            "rank 1, step 1, chunk 2: the next message from rank 0 carries chunks 0 to 1, sent in "
            "its step 1");
  EXPECT_EQ(reason("rank 0 step 1 local copy tmp[1..2] = tmp[4..0]\n",
                   "rank 0 step 1 local copy tmp[1..2] = tmp[4..0]\n"
                   "rank 0 step 1 local copy tmp[3] = tmp[4]\n"),
            "rank 0, step 1, chunk 3: the value that it writes to tmp is never used");
  EXPECT_EQ(reason("local reduce buffer[0..1] = tmp[2..3] + buffer",
                   "local copy buffer[0..1] = tmp[2..3]"),
            "rank 1, after the last step, chunk 0: the result lacks the contribution of rank 1");

  Schedule schedule = parsed(kExchange);
  schedule.equal_chunks = false;
  EXPECT_EQ(verify(schedule).reason,
            "a scratch buffer has chunks of its own, so the schedule must declare equal chunks");
  EXPECT_THROW(printed(schedule), Error);
}

TEST(MovedChunks, NeedTheDeclaration) {
  const auto reason = [](const std::function<void(Program&, Rank)>& write, bool weights = false) {
    Schedule schedule{"moved", {.ranks = 2}, false, {}, weights};
    for (Rank rank = 0; rank < 2; ++rank) {
      Program& program = schedule.programs.emplace_back(weights ? Chunking{{1, 2}} : Chunking{2},
                                                        std::vector<std::string>{"tmp"});
      program.begin_step();
      write(program, rank);
    }
    return verify(schedule).reason;
  };
  const auto exchange = [](Program& program, Rank rank) {
    program.send(1 - rank, {.first = 0});
    program.receive_copy(1 - rank, {.buffer = 1, .first = 1});
  };
  EXPECT_EQ(reason(exchange),
            "rank 0, step 1, chunk 1: the next message from rank 1 carries chunk 0, sent in its "
            "step 1");
  EXPECT_EQ(reason([](Program& program, Rank) { program.local_copy({.buffer = 1}, 0, 1); }),
            "rank 0, step 1, chunk 0: it reads chunk 1, so the schedule must declare equal chunks");
  EXPECT_EQ(reason(exchange, true), "it declares equal chunks, but chunks have weights");
}

TEST(MovedChunks, ThatEndInTheWrongPlaceAreRefused) {
  Schedule schedule{"moved", {.ranks = 1}, false, {}, true};
  Program& program = schedule.programs.emplace_back(Chunking{2}, std::vector<std::string>{"tmp"});
  program.begin_step();
  program.local_copy({.buffer = 1}, kUserBuffer, 1);
  program.local_copy({.buffer = 0}, 1, 0);
  EXPECT_EQ(verify(schedule).reason,
            "rank 0, after the last step, chunk 0: the result belongs to chunk 1");
}

TEST(MovedChunks, InOneStepMayNotRace) {
  const std::string text = R"(sluice-schedule 1
algorithm race
collective all_gather
ranks 3
chunks 3
equal_chunks
scratch tmp[4]
rank 0 step 1 copy tmp[3] from 1
rank 0 step 1 copy tmp[3] from 2
rank 1 step 1 send buffer[1] to 0
rank 2 step 1 send buffer[2] to 0
)";
  EXPECT_EQ(verify(parsed(text)).reason,
            "rank 0, step 1, chunk 3: race: another transfer of this step touches tmp while it is "
            "written");
}

// The same schedule, except that some received copies bounce: into a scratch chunk at random, then
// perhaps into another one, and then to their place.
Schedule bounced(const Schedule& schedule, std::mt19937& random) {
  const Program& first = schedule.programs.front();
  const int chunks = first.chunking().chunks();
  const int bounce_chunks = chunks + 1 + static_cast<int>(random() % 5);
  std::vector<std::string> names = first.scratch();
  std::vector<int> counts(names.size(), chunks);
  names.emplace_back("bounce");
  names.emplace_back("again");
  counts.push_back(bounce_chunks);
  counts.push_back(chunks);
  const BufferId bounce = first.buffers();
  Schedule moved{"bounced", schedule.shape, schedule.ordered, {}, true};
  for (const Program& program : schedule.programs) {
    Program& written = moved.programs.emplace_back(Program{first.chunking(), names, counts});
    for (int step = 0; step < program.steps(); ++step) {
      written.begin_step();
      for (const Send& send : program.sends(step)) written.send(send.peer, send.range);
      std::int32_t next = static_cast<std::int32_t>(random() % 1000) % bounce_chunks;
      int free = bounce_chunks;
      for (const Write& receive : program.receives(step)) {
        const auto sources = program.sources(receive);
        const Range range = receive.range;
        if (receive.combine == Combine::Reduce) {
          written.receive_reduce(range, sources);
        } else if (free < range.count || random() % 3 == 0) {
          written.receive_copy(sources.front(), range);
        } else {
          written.receive_copy(sources.front(), {bounce, next, range.count});
          if (random() % 2 == 0) {
            const auto again = static_cast<std::int32_t>(random() % 1000) % chunks;
            written.local_copy({bounce + 1, again, range.count}, bounce, next);
            written.local_copy(range, bounce + 1, again);
          } else {
            written.local_copy(range, bounce, next);
          }
          next = (next + range.count) % bounce_chunks;
          free -= range.count;
        }
      }
      for (const Write& local : program.locals(step)) {
        if (local.combine == Combine::Copy) {
          written.local_copy(local.range, program.sources(local).front());
        } else {
          written.local_reduce(local.range, program.sources(local));
        }
      }
    }
  }
  return moved;
}

TEST(MovedChunks, OfRandomSchedulesPassThroughAllReaders) {
  std::mt19937 random{18};
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("sluice-moved-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const char* const name : {"ring", "direct", "halving_doubling", "recursive_doubling"}) {
    for (const int ranks : {2, 3, 7}) {
      for (int run = 0; run < 3; ++run) {
        const Algorithm& algorithm = *find_algorithm(name).value();
        const Shape shape = complete_shape(algorithm, {.ranks = ranks}).value();
        const Schedule whole = build_schedule(algorithm, shape);
        const Schedule moved = bounced(whole, random);
        const Proof proof = verify(moved);
        ASSERT_TRUE(proof.proven) << name << " " << ranks << ": " << proof.reason;
        EXPECT_EQ(proof.bytes_factor, verify(whole).bytes_factor);
        EXPECT_EQ(parsed(printed(moved)), moved);
        // The same messages: the same load but for the local copies.
        const Load load = count_load(moved, Topology::flat(ranks));
        const Load expected = count_load(whole, Topology::flat(ranks));
        ASSERT_EQ(load.size(), expected.size());
        for (std::size_t step = 0; step < load.size(); ++step) {
          EXPECT_EQ(load[step].between.messages, expected[step].between.messages);
          EXPECT_DOUBLE_EQ(load[step].between.bytes, expected[step].between.bytes);
        }
        const auto network =
            simulate::FlowNetwork::of(cluster::find_cluster("generic").value(), ranks, {});
        const auto times = simulate::run_events(simulate::dataflow_of(moved).value(),
                                                network.value(), {.bytes = 1e6});
        EXPECT_GT(times.front(), 0);

        const auto path = folder / std::to_string(++number);
        std::ofstream{path} << printed(moved);
        const std::string file = "file:" + path.string();
        const int chunks = moved.programs.front().chunking().chunks();
        run_ranks(ranks, [&](Communicator& comm) {
          for (const int each : {0, 1, 40, 5000}) {
            const auto count = static_cast<std::size_t>(each * chunks);
            const Pool pool = comm.allocate((count + 1) * sizeof(double));
            double* const data = pool.as<double>().data();
            for (std::size_t i = 0; i < count; ++i)
              data[i] = static_cast<double>(i % 97) * (comm.rank() + 1);
            comm.all_reduce(data, count,
                            {.type = DataType::F64, .op = ReduceOp::Mean, .algorithm = file})
                .wait();
            for (std::size_t i = 0; i < count; ++i) {
              const double expected_value =
                  static_cast<double>(i % 97) * (ranks + 1) * ranks / 2 / ranks;
              ASSERT_DOUBLE_EQ(data[i], expected_value) << file << " element " << i;
            }
          }
        });
      }
    }
  }
  base::remove_folder(folder);
}

TEST(MovedChunks, NeedANumberOfElementsThatTheirChunksDivide) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("sluice-moved-" + std::to_string(getpid()) + ".txt");
  std::ofstream{path} << kExchange;
  const std::string file = "file:" + path.string();
  run_ranks(2, [&](Communicator& comm) {
    std::vector<float> data(3, 1);
    try {
      comm.all_reduce(data.data(), data.size(), {.algorithm = file}).wait();
      ADD_FAILURE() << "3 elements in 2 equal chunks";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::InvalidArgument);
      EXPECT_EQ(std::string{error.what()},
                file +
                    " cuts the buffer into 2 equal chunks: give a number of elements that is a "
                    "multiple of 2, not 3");
    }
    comm.all_reduce(data.data(), 2, {.algorithm = file}).wait();  // nothing is poisoned
    EXPECT_EQ(data[1], 2.0F);
    EXPECT_EQ(data[2], 1.0F);
  });
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace sluice::engine
