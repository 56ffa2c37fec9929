// compare.cc - times Sluice's all-reduce against Open MPI, MPICH, Gloo or another build of Sluice.
//
//   compare [--ranks 2,4,8] [--sizes 4:64M] [--rounds 20] [--peers openmpi,mpich,gloo]
//           [--against BUILD [--slower 1.05]]
//
// The processes of all contenders run at once and take turns: each gets a slice of about 10 ms per
// round, so that other load on the machine affects all of them alike. A row is the median over the
// rounds. All results of all contenders are checked.
//
// --against names the build folder of another Sluice, such as build/bench of a second checkout at
// an older commit. It becomes two more contenders, `other` and `other-frgn`, and the program fails
// if this build is slower than --slower times the other one at any size.

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
  std::string against;  // the build folder of another Sluice
  double slower = 1.05;
  int rounds = 20;
};

void print_message(const std::string& sentence) { base::print(stderr, "compare: {}\n", sentence); }

bool in_path(const std::string& program) {
  std::istringstream folders{std::getenv("PATH") == nullptr ? "" : std::getenv("PATH")};
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (fs::exists(fs::path{folder} / program)) return true;
  }
  return false;
}

struct Peer {
  std::string name;
  std::string launcher;  // "": the driver starts the ranks
  std::vector<std::string> arguments;
};

// Default settings, except that the contenders, not the launchers, pin the ranks to cores.
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
      // Twice the buffers of one contender: libraries allocate memory, too.
      const auto largest = *std::max_element(sizes_[ranks].begin(), sizes_[ranks].end());
      cli::require_memory(2.0 * ranks * static_cast<double>(largest));
    }
    choose_peers(options.peers);
    if (!options.against.empty()) choose_other_build(options);
  }

  // Returns false if a contender failed or this build is too slow.
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
  struct ContenderState {
    std::unique_ptr<Team> team;  // null: the contender failed
    double guess_s = 0;          // expected time of the next operation
    std::vector<double> slices_s;
  };

  // Doublings from one element up to half a gibibyte for all ranks together.
  static std::vector<std::int64_t> default_sizes(int ranks) {
    constexpr std::int64_t kMostTogether = std::int64_t{1} << 29;
    std::vector<std::int64_t> sizes{sizeof(float)};
    while (2 * sizes.back() * ranks <= kMostTogether) sizes.push_back(2 * sizes.back());
    return sizes;
  }

  // The approximate time of a row: constant for small sizes, proportional to the bytes for large
  // ones.
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
        print_message(base::format(
            "skipping {}: not found when this program was built; install it with tools/setup "
            "--bench and build again",
            name));
      } else if (!peer->launcher.empty() && !in_path(peer->launcher)) {
        print_message(
            base::format("skipping {}: {} is not in PATH; install it with tools/setup --bench",
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
                         base::format("{} has no bench/allreduce/sluice_contender: build the bench "
                                      "preset there first",
                                      base::quote(options.against))}};
    }
    for (const std::string& name : {kOtherPooled, kOtherForeign}) peer_names_.push_back(name);
  }

  // Fails if this build is slower than the other one by more than --slower.
  void compare_builds() {
    const std::vector<std::pair<std::string, std::string>> pairs{{kPooled, kOtherPooled},
                                                                 {kForeign, kOtherForeign}};
    for (const auto& [ours, other] : pairs) {
      const BuildRatio ratio = slowest_against(rows_, ours, other);
      if (!ratio.row) continue;
      base::print(
          "{}: this build's time / the other build's: geometric mean {:.3f}, worst {:.3f} ({} "
          "ranks, "
          "{})\n",
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
    contenders_.clear();
    for (TeamOptions& team : teams) {
      team.folder = folder_.make(base::format("{}.{}", team.name, ranks));
      if (team.name == "gloo") team.extra = "lo:" + team.folder;
      team.ranks = ranks;
      team.processes = team.name == kMinimal ? 1 : ranks;
      names_.push_back(team.name);
      ContenderState& contender = contenders_.emplace_back();
      try {
        contender.team = std::make_unique<Team>(team, signals_);
      } catch (const Error& error) {
        lose(contender, ranks, error.what());
      }
    }
  }

  void lose(ContenderState& contender, int ranks, const std::string& why) {
    contender.team.reset();
    well_ = false;
    print_message(base::format("with {} ranks, {}", ranks, why));
  }

  // Runs one slice. The time of the previous slice sets the number of operations.
  void run_slice(ContenderState& contender, int ranks, std::int64_t bytes, bool measured) {
    if (!contender.team) return;
    SliceRequest slice{.bytes = static_cast<std::uint64_t>(bytes), .operations = 2, .batches = 1};
    if (contender.guess_s > 0) {
      const double wanted = kSliceSeconds / contender.guess_s;
      const int most = cli::BenchPattern{DataType::F32, ReduceOp::Sum, ranks}.most_operations();
      slice.operations = static_cast<int>(std::clamp<double>(wanted, 2, most));
      slice.batches =
          static_cast<int>(std::clamp<double>(wanted / slice.operations, 1, kMostBatches));
    }
    try {
      contender.guess_s = contender.team->run(slice).operation_s;
      if (measured) contender.slices_s.push_back(contender.guess_s);
    } catch (const Error& error) {
      lose(contender, ranks,
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
      // Warm up with two slices: the very first one runs with cold caches and unmapped pages.
      for (int i = 0; i < (bytes == smallest ? 2 : 0); ++i) {
        for (ContenderState& contender : contenders_) run_slice(contender, ranks, bytes, false);
      }
      for (ContenderState& contender : contenders_) contender.slices_s.clear();
      for (int round = 0; round < rounds_; ++round) {
        for (std::size_t i = 0; i < contenders_.size(); ++i) {
          ContenderState& contender = contenders_[(i + round) % contenders_.size()];
          if (round == 0 && bytes != smallest) contender.guess_s *= 2;  // twice the bytes
          run_slice(contender, ranks, bytes, true);
        }
        progress.advance(effort(ranks, bytes) / rounds_);
      }
      progress.clear();
      rows_.push_back(row_of(ranks, bytes));
      print_row(rows_.back(), names_);
    }
    print_summary(std::span{rows_}.subspan(first_row));
    contenders_.clear();
  }

  Row row_of(int ranks, std::int64_t bytes) {
    Row row{.ranks = ranks, .bytes = static_cast<std::uint64_t>(bytes)};
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      const std::vector<double>& slices_s = contenders_[i].slices_s;
      if (!contenders_[i].team || slices_s.empty()) {
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
  std::string other_build_;  // the contender program of the other build; "": none
  double slower_ = 1;
  StopSignals signals_;
  TemporaryFolder folder_;
  std::vector<std::string> names_;
  std::vector<ContenderState> contenders_;
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
      print_message(base::format("cannot write {}", options.output));
      return 3;
    }
  }
  return well ? 0 : 1;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  CLI::App app{"Times Sluice's all-reduce against Open MPI, MPICH, Gloo or another build of Sluice",
               "compare"};
  sluice::bench::Options options;
  app.add_option("--ranks", options.ranks, "Numbers of ranks: 2,4,8")->capture_default_str();
  app.add_option("--sizes", options.sizes,
                 "4:1M: doublings from 4 bytes to 1 MiB; or a list: 1K,1M\n"
                 "(default: 4 bytes to 512 MiB / ranks)");
  app.add_option("--rounds", options.rounds, "Slices per contender and size; the median is shown")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--peers", options.peers, "Libraries to compare with; '' for none")
      ->capture_default_str();
  app.add_option("--against", options.against,
                 "Build folder of a second Sluice, such as ../old/build/bench; both builds\n"
                 "take turns, and the summary has this build's time / the other's");
  app.add_option("--slower", options.slower,
                 "With --against: fail if this build takes more than this many times the\n"
                 "other's time at any size")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--output", options.output, "Write the results to this file as JSON")->take_last();
  app.footer(
      "Exit status: 0 done, 1 a contender failed or computed a wrong result, or this build is\n"
      "slower than --slower allows, 2 wrong usage.\n"
      "Examples:\n"
      "  compare --ranks 2 --sizes 1K:64K --peers openmpi\n"
      "  compare --peers '' --against ../old/build/bench");
  return sluice::bench::run_program(app, argc, argv, [&] { return sluice::bench::run(options); });
}
