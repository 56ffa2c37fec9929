// message_gap.cc - the latency of a short message, and the gap between two messages out of one
// rank: between two hosts (network namespaces, TCP) and between two ranks of a host (shared
// memory).
//
//   message_gap [--rounds 21]
//
// Latency: an all-reduce of one element by recursive_doubling, in which each of the two ranks sends
// one message. Gap: a reduce of k elements by a double_tree of 1,024 segments, in which every
// element is a message of its own from rank 1 to rank 0. So each further element costs one gap. The
// ranks get links without latency and gap, which make them choose so many segments. The rounds
// alternate, and the shortest times count: a disturbance can only make a time longer.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "bench/program.h"
#include "engine/communicator_state.h"
#include "sluice/status.h"
#include "tests/box/box_ranks.h"

namespace sluice::bench {
namespace {

constexpr std::size_t kElements[] = {256, 512, 1024, 2048};

// Seconds of one operation, as a mean over some in a row.
double time(Communicator& comm, int repeats, const std::function<void()>& operation) {
  using Clock = std::chrono::steady_clock;
  operation();
  comm.barrier();
  const auto begin = Clock::now();
  for (int i = 0; i < repeats; ++i) operation();
  return std::chrono::duration<double>(Clock::now() - begin).count() / repeats;
}

// Rank 0 writes a line for each figure: elements (0: an all-reduce of one) and seconds. Returns ""
// or an error.
std::string measure(Communicator& comm, int rounds, const std::filesystem::path& results) {
  const CostConstants no_gaps{
      .inside = {0, 1e9}, .between = {0, 1e9}, .reduce_s_per_byte = 1e-9, .measured = {}};
  comm.state()->set_choices({comm.state()->choices().order(), comm.rank(), no_gaps, {}});
  std::vector<float> data(kElements[std::size(kElements) - 1]);
  std::ofstream file;
  if (comm.rank() == 0) file.open(results);
  for (int round = 0; round < rounds; ++round) {
    const double latency_s = time(comm, 1000, [&] {
      comm.all_reduce(std::span{data.data(), 1}, {.algorithm = "recursive_doubling"}).wait();
    });
    file << 0 << ' ' << latency_s << '\n';
    for (const std::size_t elements : kElements) {
      const double seconds = time(comm, 50, [&] {
        comm.reduce(std::span{data.data(), elements}).wait();
      });
      file << elements << ' ' << seconds << '\n';
    }
  }
  data.assign(data.size(), 1.0F);
  comm.reduce(data).wait();
  if (comm.rank() == 0 && data.back() != 2.0F) return "a sum is wrong";
  const std::string_view chosen =
      comm.algorithm_for(Collective::Reduce, data.size() * sizeof(float));
  return chosen == "double_tree" ? "" : base::format("reduce ran by {}", chosen);
}

void run(const box::ClusterBox& cluster, const std::vector<int>& hosts, std::string_view name,
         int rounds) {
  const auto results =
      std::filesystem::temp_directory_path() / base::format("message-gap-{}.txt", getpid());
  const std::string wrong =
      box::run_job(cluster, {.hosts = hosts,
                             .deadline = std::chrono::seconds{300},
                             .body = [&](Communicator& comm, const box::Gate&) {
                               return measure(comm, rounds, results);
                             }});
  std::map<std::size_t, std::vector<double>> times;
  std::ifstream file{results};
  std::size_t elements = 0;
  for (double seconds = 0; file >> elements >> seconds;) times[elements].push_back(seconds);
  std::filesystem::remove(results);
  if (!wrong.empty()) throw Error{Status{Code::PeerLost, wrong}};

  const auto shortest = [&](std::size_t key) {
    return *std::min_element(times.at(key).begin(), times.at(key).end());
  };
  const double latency_s = shortest(0);
  base::print("{}: a message takes {}\n", name, base::format_seconds(latency_s));
  std::size_t before = 0;
  for (const std::size_t each : kElements) {
    const double seconds = shortest(each);
    base::print("{:>5} messages: {}", each, base::format_seconds(seconds));
    if (before > 0) {
      const double gap_s = (seconds - shortest(before)) / static_cast<double>(each - before);
      base::print(", {} for each more: {:.3f} of the latency", base::format_seconds(gap_s),
                  gap_s / latency_s);
    }
    base::print("\n");
    before = each;
  }
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice;
  CLI::App app{"The latency of a short message, and the gap between two out of one rank",
               "message_gap"};
  int rounds = 21;
  app.add_option("--rounds", rounds, "Rounds of measurements; the shortest times count")
      ->check(CLI::Range(1, 99))
      ->capture_default_str();
  app.footer(
      "Exit status: 0 done, 2 wrong usage, or no network namespaces on this machine.\n"
      "Example:\n"
      "  message_gap --rounds 9");
  return bench::run_program(app, argc, argv, [&] {
    const auto cluster = box::ClusterBox::make({.hosts = 2, .mbit_per_s = 0}).value();
    bench::run(cluster, {0, 1}, "between two hosts", rounds);
    bench::run(cluster, {0, 0}, "on one host", rounds);
    return 0;
  });
}
