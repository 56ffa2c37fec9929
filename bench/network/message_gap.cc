// message_gap.cc - the latency of a message between two emulated hosts, and the gap between two
// messages.
//
//   message_gap [--mbit 10000] [--rounds 9]
//
// Latency: an all-reduce of one element by recursive_doubling, in which each of two ranks sends one
// message. Gap: a broadcast of k elements by a double_tree of 1,024 segments in two trees. Every
// element is a message of its own, from one rank to the other, so each element more costs one gap.
// A cluster file that says that gaps cost nothing makes the engine choose so many segments. The
// medians of alternating rounds count.
#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "bench/program.h"
#include "sluice/status.h"
#include "tests/box/box_ranks.h"

namespace sluice::bench {
namespace {

constexpr std::size_t kElements[] = {256, 512, 1024, 2048};

constexpr const char* kNoGaps = R"(name = "no-gaps"
ranks_per_node = 1
[between]
gbit_per_s = 1
efficiency = 1
latency_us = 0
gap_us = 0
[inside]
gbyte_per_s = 1
latency_us = 0
gap_us = 0
[reduce]
gbyte_per_s = 100
)";

struct Options {
  int mbit = 10000;
  int rounds = 9;
};

// Seconds of one operation, as a mean over some in a row.
double time(Communicator& comm, int repeats, const std::function<void()>& operation) {
  using Clock = std::chrono::steady_clock;
  operation();
  comm.barrier();
  const auto begin = Clock::now();
  for (int i = 0; i < repeats; ++i) operation();
  return std::chrono::duration<double>(Clock::now() - begin).count() / repeats;
}

// Rank 0 writes a line for each figure: elements (0: an all-reduce of one) and seconds.
std::string measure(Communicator& comm, int rounds, const std::filesystem::path& results) {
  std::vector<float> data(kElements[std::size(kElements) - 1], 1.0F);
  std::ofstream file;
  if (comm.rank() == 0) file.open(results);
  for (int round = 0; round < rounds; ++round) {
    const double latency_s = time(comm, 1000, [&] {
      comm.all_reduce(data.data(), 1, {.algorithm = "recursive_doubling"}).wait();
    });
    file << 0 << ' ' << latency_s << '\n';
    for (const std::size_t elements : kElements) {
      const double seconds = time(comm, 50, [&] {
        comm.broadcast(data.data(), elements, {.algorithm = "double_tree"}).wait();
        comm.barrier();
      });
      file << elements << ' ' << seconds << '\n';
    }
  }
  return "";
}

void run(const Options& options) {
  const auto cluster = box::ClusterBox::make({.hosts = 2, .mbit_per_s = options.mbit});
  if (!cluster.ok()) throw Error{cluster.status()};
  const auto folder = std::filesystem::temp_directory_path();
  const auto topology = folder / base::format("message-gap-{}.toml", getpid());
  const auto results = folder / base::format("message-gap-{}.txt", getpid());
  std::ofstream{topology} << kNoGaps;
  const std::string wrong =
      box::run_job(cluster.value(), {.hosts = {0, 1},
                                     .environment = {{"SLUICE_TOPOLOGY", topology.string()}},
                                     .deadline = std::chrono::seconds{300},
                                     .body = [&](Communicator& comm, const box::Gate&) {
                                       return measure(comm, options.rounds, results);
                                     }});
  std::map<std::size_t, std::vector<double>> times;
  std::ifstream file{results};
  std::size_t elements = 0;
  for (double seconds = 0; file >> elements >> seconds;) times[elements].push_back(seconds);
  std::filesystem::remove(topology);
  std::filesystem::remove(results);
  if (!wrong.empty()) throw Error{Status{Code::PeerLost, wrong}};

  const double latency_s = median(times.at(0));
  base::print("latency of a message: {}\n", base::format_seconds(latency_s));
  std::size_t before = 0;
  for (const std::size_t each : kElements) {
    const double seconds = median(times.at(each));
    base::print("{:>5} messages: {}", each, base::format_seconds(seconds));
    if (before > 0) {
      const double gap_s =
          (seconds - median(times.at(before))) / static_cast<double>(each - before);
      base::print(", {} for each more, {:.3f} of the latency", base::format_seconds(gap_s),
                  gap_s / latency_s);
    }
    base::print("\n");
    before = each;
  }
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  CLI::App app{"The latency of a message between emulated hosts, and the gap between two",
               "message_gap"};
  sluice::bench::Options options;
  app.add_option("--mbit", options.mbit, "Mbit/s of a host's link")->check(CLI::Range(1, 100000));
  app.add_option("--rounds", options.rounds, "Rounds of measurements; the medians count")
      ->check(CLI::Range(1, 99));
  app.footer(
      "Exit status: 0 done, 2 wrong usage, or no network namespaces on this machine.\n"
      "Example:\n"
      "  message_gap --rounds 21");
  return sluice::bench::run_program(app, argc, argv, [&] {
    sluice::bench::run(options);
    return 0;
  });
}
