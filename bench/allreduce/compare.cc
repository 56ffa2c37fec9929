// compare.cc - Sluice's all-reduce side by side with that of Open MPI, MPICH and Gloo.
//
//   compare [--ranks 2,4,8] [--sizes 4:64M] [--rounds 20] [--peers openmpi,mpich,gloo]
//           [--against BUILD [--slower 1.05]]
//
// All contenders run at once; in every round each gets a slice of about 10 ms, in turns, so that
// what else happens on the machine happens to all. A row is the median over rounds. Every result of
// every contender is checked.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/format.h"
#include "base/text.h"
#include "bench/allreduce/median.h"
#include "bench/allreduce/progress.h"
#include "bench/allreduce/results.h"
#include "bench/allreduce/team.h"
#include "bench/allreduce/temporary_folder.h"
#include "bench/program.h"
#include "cli/arguments.h"
#include "cli/bench/bench_allreduce.h"
#include "sluice/status.h"

namespace sluice::bench {
namespace {

namespace fs = std::filesystem;
constexpr double kSliceSeconds = 0.010;

struct Options {
  std::string ranks = "2,4,8";
  std::string sizes;
  std::string peers = "openmpi,mpich,gloo";
  std::string output;
  std::string against;  // the folder of another build of Sluice
  double slower = 1.05;
  int rounds = 20;
};

void say(const std::string& sentence) { base::print(stderr, "compare: {}\n", sentence); }

bool in_path(const std::string& program) {
  std::istringstream folders{std::getenv("PATH") == nullptr ? "" : std::getenv("PATH")};
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (fs::exists(fs::path{folder} / program)) return true;
  }
  return false;
}

struct Peer {
  std::string name;
  std::string launcher;  // "": the driver starts its ranks
  std::vector<std::string> arguments;
};

// Their own defaults, but for where ranks run: that is the same for all contenders.
std::vector<Peer> known_peers() {
  return {{"openmpi",
           "mpirun.openmpi",
           {"--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np"}},
          {"mpich", "mpirun.mpich", {"-bind-to", "none", "-n"}},
          {"gloo", "", {}}};
}

class Comparison {
 public:
  explicit Comparison(const Options& options)
      : rounds_{options.rounds}, programs_{fs::read_symlink("/proc/self/exe").parent_path()} {
    rank_counts_ = base::parse_list(options.ranks, 2, 64, "ranks").value();
    for (const int ranks : rank_counts_) {
      sizes_[ranks] = options.sizes.empty() ? default_sizes(ranks)
                                            : cli::parse_sizes(options.sizes, sizeof(float));
      // Twice the buffers of one contender: libraries have memory of their own.
      const auto largest = *std::max_element(sizes_[ranks].begin(), sizes_[ranks].end());
      cli::require_memory(2.0 * ranks * static_cast<double>(largest));
    }
    choose_peers(options.peers);
    if (!options.against.empty()) choose_other_build(options);
  }

  // Whether all went well.
  bool run() {
    double total = 0;
    for (const int ranks : rank_counts_) {
      for (const std::int64_t bytes : sizes_[ranks]) total += effort(ranks, bytes);
    }
    Progress progress{total};
    for (const int ranks : rank_counts_) measure(ranks, progress);
    if (!other_build_.empty()) compare_builds();
    return well_;
  }

  nlohmann::ordered_json json() const { return to_json(rows_, peer_names_); }

 private:
  struct Contestant {
    std::unique_ptr<Team> team;  // none: it failed
    double guess_s = 0;          // of the next operation
    std::vector<double> slices_s;
  };

  // Doublings from an element to where all ranks together hold half a gibibyte.
  static std::vector<std::int64_t> default_sizes(int ranks) {
    constexpr std::int64_t kMostTogether = std::int64_t{1} << 29;
    std::vector<std::int64_t> sizes{sizeof(float)};
    while (2 * sizes.back() * ranks <= kMostTogether) sizes.push_back(2 * sizes.back());
    return sizes;
  }

  // About how long a row takes, in any unit: slices cost what they cost until memory counts.
  static double effort(int ranks, std::int64_t bytes) {
    return 1.5 * kSliceSeconds + 0.6e-9 * static_cast<double>(bytes) * ranks;
  }

  void choose_peers(const std::string& names) {
    std::istringstream list{names};
    const std::vector<Peer> known = known_peers();
    for (std::string name; std::getline(list, name, ',');) {
      const auto peer = std::find_if(known.begin(), known.end(),
                                     [&](const Peer& each) { return each.name == name; });
      if (peer == known.end()) {
        throw Error{Status{Code::InvalidArgument,
                           base::format("there is no peer {}: choose from openmpi, mpich, gloo",
                                        base::quote(name))}};
      }
      if (!fs::exists(program(name))) {
        say(base::format(
            "{} is left out: it was not there when this was built; tools/setup --bench "
            "installs it",
            name));
      } else if (!peer->launcher.empty() && !in_path(peer->launcher)) {
        say(base::format("{} is left out: there is no {} in PATH; tools/setup --bench installs it",
                         name, peer->launcher));
      } else {
        peers_.push_back(*peer);
        peer_names_.push_back(name);
      }
    }
  }

  void choose_other_build(const Options& options) {
    const fs::path folder = fs::path{options.against} / "bench" / "allreduce";
    other_build_ = (folder / "sluice_contender").string();
    slower_ = options.slower;
    if (!fs::exists(other_build_)) {
      throw Error{Status{Code::InvalidInput,
                         base::format("{} has no bench/allreduce/sluice_contender: build its bench "
                                      "preset first",
                                      base::quote(options.against))}};
    }
    for (const std::string& name : {kOtherPooled, kOtherForeign}) peer_names_.push_back(name);
  }

  // Fails where this build is slower than the other one by more than the user allows.
  void compare_builds() {
    const std::vector<std::pair<std::string, std::string>> pairs{{kPooled, kOtherPooled},
                                                                 {kForeign, kOtherForeign}};
    for (const auto& [ours, other] : pairs) {
      const BuildRatio ratio = slowest_against(rows_, ours, other);
      if (!ratio.row) continue;
      base::print(
          "{}: geometric mean {:.3f} of the other build's time, worst {:.3f} ({} ranks, {})\n",
          ours, ratio.mean, ratio.worst, ratio.row->ranks,
          base::format_bytes(static_cast<double>(ratio.row->bytes)));
      if (ratio.worst > slower_) well_ = false;
    }
  }

  std::string program(const std::string& name) const {
    return (programs_ / (name + "_contender")).string();
  }

  void start_all(int ranks) {
    std::vector<TeamOptions> teams{
        {.name = kPooled, .program = program("sluice"), .extra = "pooled"},
        {.name = kForeign, .program = program("sluice"), .extra = "foreign"}};
    for (const Peer& peer : peers_) {
      TeamOptions team{.name = peer.name, .program = program(peer.name)};
      if (!peer.launcher.empty()) {
        team.launcher = {peer.launcher};
        team.launcher.insert(team.launcher.end(), peer.arguments.begin(), peer.arguments.end());
        team.launcher.push_back(std::to_string(ranks));
      }
      teams.push_back(team);
    }
    if (!other_build_.empty()) {
      teams.push_back({.name = kOtherPooled, .program = other_build_, .extra = "pooled"});
      teams.push_back({.name = kOtherForeign, .program = other_build_, .extra = "foreign"});
    }
    teams.push_back({.name = kMinimal, .program = program("minimal")});
    names_.clear();
    contestants_.clear();
    for (TeamOptions& team : teams) {
      team.folder = folder_.make(base::format("{}.{}", team.name, ranks));
      if (team.name == "gloo") team.extra = "lo:" + team.folder;
      team.ranks = ranks;
      team.processes = team.name == kMinimal ? 1 : ranks;
      names_.push_back(team.name);
      Contestant& contestant = contestants_.emplace_back();
      try {
        contestant.team = std::make_unique<Team>(team, signals_);
      } catch (const Error& error) {
        lose(contestant, ranks, error.what());
      }
    }
  }

  void lose(Contestant& contestant, int ranks, const std::string& why) {
    contestant.team.reset();
    well_ = false;
    say(base::format("with {} ranks, {}", ranks, why));
  }

  // One slice of a contestant; what it takes is known from the slice before.
  void run_slice(Contestant& contestant, int ranks, std::int64_t bytes, bool measured) {
    if (!contestant.team) return;
    SliceOrder order{.bytes = static_cast<std::uint64_t>(bytes), .operations = 2, .batches = 1};
    if (contestant.guess_s > 0) {
      const double wanted = kSliceSeconds / contestant.guess_s;
      const int most = cli::BenchPattern{DataType::F32, ReduceOp::Sum, ranks}.most_operations();
      order.operations = static_cast<int>(std::clamp<double>(wanted, 2, most));
      order.batches =
          static_cast<int>(std::clamp<double>(wanted / order.operations, 1, kMostBatches));
    }
    try {
      contestant.guess_s = contestant.team->run(order).operation_s;
      if (measured) contestant.slices_s.push_back(contestant.guess_s);
    } catch (const Error& error) {
      lose(contestant, ranks,
           base::format("{}, {}", base::format_bytes(static_cast<double>(bytes)), error.what()));
    }
  }

  void measure(int ranks, Progress& progress) {
    start_all(ranks);
    print_header(ranks, names_);
    const std::size_t first_row = rows_.size();
    const std::int64_t smallest = sizes_[ranks].front();
    for (const std::int64_t bytes : sizes_[ranks]) {
      progress.begin(
          base::format("{} ranks, {}", ranks, base::format_bytes(static_cast<double>(bytes))));
      // Twice at first: the very first slice runs on caches and pages that are not there yet.
      for (int i = 0; i < (bytes == smallest ? 2 : 0); ++i) {
        for (Contestant& contestant : contestants_) run_slice(contestant, ranks, bytes, false);
      }
      for (Contestant& contestant : contestants_) contestant.slices_s.clear();
      for (int round = 0; round < rounds_; ++round) {
        for (std::size_t i = 0; i < contestants_.size(); ++i) {
          Contestant& contestant = contestants_[(i + round) % contestants_.size()];
          if (round == 0 && bytes != smallest) contestant.guess_s *= 2;  // twice the bytes
          run_slice(contestant, ranks, bytes, true);
        }
        progress.advance(effort(ranks, bytes) / rounds_);
      }
      progress.clear();
      rows_.push_back(row_of(ranks, bytes));
      print_row(rows_.back(), names_);
    }
    print_summary(std::span{rows_}.subspan(first_row));
    contestants_.clear();
  }

  Row row_of(int ranks, std::int64_t bytes) {
    Row row{.ranks = ranks, .bytes = static_cast<std::uint64_t>(bytes)};
    for (std::size_t i = 0; i < contestants_.size(); ++i) {
      const std::vector<double>& slices_s = contestants_[i].slices_s;
      if (!contestants_[i].team || slices_s.empty()) {
        row.verified = false;
        continue;
      }
      row.seconds[names_[i]] = median(slices_s);
    }
    return row;
  }

  int rounds_;
  fs::path programs_;
  std::vector<int> rank_counts_;
  std::map<int, std::vector<std::int64_t>> sizes_;  // by ranks
  std::vector<Peer> peers_;
  std::vector<std::string> peer_names_;
  std::string other_build_;  // its contender; "": none
  double slower_ = 1;
  StopSignals signals_;
  TemporaryFolder folder_;
  std::vector<std::string> names_;
  std::vector<Contestant> contestants_;
  std::vector<Row> rows_;
  bool well_ = true;
};

int run(const Options& options) {
  Comparison comparison{options};
  const bool well = comparison.run();
  if (!options.output.empty()) {
    std::ofstream file{options.output};
    file << comparison.json().dump(2) << "\n";
    if (!file.flush()) {
      say(base::format("{} cannot be written", options.output));
      return 3;
    }
  }
  return well ? 0 : 1;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  CLI::App app{"Sluice's all-reduce side by side with Open MPI, MPICH and Gloo", "compare"};
  sluice::bench::Options options;
  app.add_option("--ranks", options.ranks, "Rank counts: 2,4,8")->capture_default_str();
  app.add_option("--sizes", options.sizes,
                 "4:1M is all doublings, 1K,1M these two (default: 4 to 512M / ranks)");
  app.add_option("--rounds", options.rounds, "Slices of every contender at every size")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--peers", options.peers, "Libraries to compare with")->capture_default_str();
  app.add_option("--against", options.against,
                 "The build folder of another Sluice, which takes turns with this one");
  app.add_option("--slower", options.slower,
                 "Fail where this build takes more than this many times the other's time")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--output", options.output, "A file for the results as JSON")->take_last();
  app.footer(
      "Exit status: 0 done, 1 a contender failed, computed a wrong result, or this build is "
      "slower\n"
      "than the other by more than --slower, 2 wrong usage.\n"
      "Examples:\n  compare --ranks 2 --sizes 1K:64K --peers openmpi\n"
      "  compare --peers '' --against ../before/build/bench");
  return sluice::bench::run_program(app, argc, argv, [&] { return sluice::bench::run(options); });
}
