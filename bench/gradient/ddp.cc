// ddp.cc - the overhead of communication per training step: Sluice against DistributedDataParallel.
//
//   ddp [--models alexnet:8,resnet18:16] [--rounds 15] [--output FILE]
//
// Both sides train the same models in processes of their own, with the same pinning, one thread per
// rank and the same libtorch. They take turns; the other side sleeps. In a turn, steps with and
// without communication alternate, and all ranks start each step together. The time of a step is
// that of the slower rank in both cases, so that a difference between the ranks does not count as
// overhead. The overhead of a way is the time of its step minus the mean of the two steps without
// communication around it; the median over the rounds counts. In the end all ranks must have the
// same weights, way by way. DistributedDataParallel communicates over Gloo.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/format.h"
#include "base/text.h"
#include "bench/allreduce/team.h"
#include "bench/allreduce/temporary_folder.h"
#include "bench/network/stolen_time.h"
#include "bench/program.h"
#include "recipe/models.h"
#include "sluice/status.h"
#include "sluice/torch/gradient_options.h"

namespace sluice::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Options {
  std::string models = "alexnet:8,resnet18:16";
  int image = 224;
  int ranks = 2;
  int rounds = 15;
  bool set_to_none = false;
  double most = 0.4;
  std::string python;
  std::string output;
};

[[noreturn]] void refuse(const std::string& why) { throw Error{Status{Code::InvalidInput, why}}; }

struct Network {
  std::string model;
  int batch = 0;
};

std::vector<Network> parse_networks(const std::string& text) {
  std::vector<Network> networks;
  std::istringstream list{text};
  for (std::string item; std::getline(list, item, ',');) {
    const std::size_t colon = item.find(':');
    const int batch = colon == std::string::npos ? 0 : std::atoi(item.c_str() + colon + 1);
    if (batch < 1)
      refuse(base::format("{} is not MODEL:BATCH, such as alexnet:8", base::quote(item)));
    networks.push_back({item.substr(0, colon), batch});
  }
  return networks;
}

// A way to send gradients. The first way of a side does not communicate.
struct Way {
  std::string name;
  Json options;
  std::vector<double> steps_s = {};
  std::vector<double> overheads_s = {};
};

struct Side {
  std::string name;
  std::unique_ptr<Team> team;
  std::vector<Way> ways;                 // the second is the default
  std::vector<double> transfers_s = {};  // all-reduces of all gradients alone

  double overhead_s(std::size_t way) const { return median(ways[way].overheads_s); }
  std::size_t best() const {
    std::size_t best = 1;
    for (std::size_t way = 2; way < ways.size(); ++way) {
      if (overhead_s(way) < overhead_s(best)) best = way;
    }
    return best;
  }
};

// The standard error of the median, from the median absolute deviation, for normal values.
double standard_error(const std::vector<double>& values) {
  const double middle = median(values);
  std::vector<double> deviations;
  for (const double value : values) deviations.push_back(std::abs(value - middle));
  return 1.2533 * 1.4826 * median(deviations) / std::sqrt(static_cast<double>(values.size()));
}

std::vector<Way> our_ways() {
  const auto theta = [](double mebibytes) {
    return Json{{"theta", static_cast<std::size_t>(mebibytes * (1U << 20U))}};
  };
  const double usual = static_cast<double>(GradientOptions{}.theta) / (1U << 20U);
  return {{"without", nullptr},
          {base::format("theta {:.3g} MiB, the default", usual), theta(usual)},
          {"theta 1 MiB", theta(1)},
          {"theta 32 MiB", theta(32)}};
}

std::vector<Way> their_ways() {
  return {{"without", nullptr},
          {"buckets of 25 MB, the default", {{"bucket_cap_mb", 25}}},
          {"25 MB, gradients as views", {{"bucket_cap_mb", 25}, {"gradient_as_bucket_view", true}}},
          {"4 MB, gradients as views", {{"bucket_cap_mb", 4}, {"gradient_as_bucket_view", true}}}};
}

std::string find_python(const std::string& wanted) {
  const std::vector<std::string> candidates =
      wanted.empty() ? std::vector<std::string>{"python3", "/usr/bin/python3"}
                     : std::vector<std::string>{wanted};
  for (const std::string& python : candidates) {
    const std::string command =
        base::format("'{}' -c 'import torch.distributed' >/dev/null 2>&1", python);
    if (std::system(command.c_str()) == 0) return python;
  }
  refuse(
      base::format("{} cannot import torch.distributed: install python3-torch with tools/setup "
                   "--bench, or name another Python with --python",
                   candidates.back()));
}

class Comparison {
 public:
  explicit Comparison(const Options& options)
      : options_{options}, networks_{parse_networks(options.models)} {
    const fs::path programs = fs::read_symlink("/proc/self/exe").parent_path();
    const auto one_thread = [](Rank) {
      for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}) setenv(name, "1", 1);
      setenv("GLOO_SOCKET_IFNAME", "lo", 1);
    };
    TeamOptions team{.ranks = options.ranks, .processes = options.ranks};
    team.slice_limit = std::chrono::minutes{10};
    team.prepare = one_thread;
    team.name = "sluice";
    team.program = (programs / "sluice_ranks").string();
    team.folder = folder_.make(team.name);
    const std::string python = find_python(options.python);
    sides_.push_back({team.name, std::make_unique<Team>(team, signals_), our_ways()});
    team.name = "ddp";
    team.interpreter = {python};
    team.program = (programs / "ddp_ranks.py").string();
    team.folder = team.extra = folder_.make(team.name);
    sides_.push_back({team.name, std::make_unique<Team>(team, signals_), their_ways()});
  }

  // Returns whether every overhead is within the limit.
  bool run() {
    Progress progress{static_cast<double>(networks_.size())};
    bool met = true;
    for (const Network& network : networks_) {
      measure(network, progress);
      progress.clear();
      const double ratio = print(network);
      met = met && ratio <= options_.most;
    }
    return met;
  }

  const Json& json() const { return document_; }

 private:
  std::vector<Json> request(Side& side, const Json& message) {
    std::vector<Json> replies;
    for (const std::string& reply : side.team->request(message.dump()))
      replies.push_back(Json::parse(reply));
    return replies;
  }

  // The times of the slowest rank.
  std::vector<double> seconds_of(Side& side, const Json& message) {
    std::vector<double> slowest;
    for (const Json& reply : request(side, message)) {
      const auto seconds = reply.at("seconds").get<std::vector<double>>();
      slowest.resize(seconds.size());
      for (std::size_t i = 0; i < seconds.size(); ++i)
        slowest[i] = std::max(slowest[i], seconds[i]);
    }
    return slowest;
  }

  // Repeats a slice with much stolen time and keeps the best attempt.
  std::vector<double> slice(Side& side, const Json& message) {
    constexpr double kMostStolen = 0.02;
    constexpr int kAttempts = 3;
    std::vector<double> best;
    double least = 1;
    for (int attempt = 0; attempt < kAttempts && least > kMostStolen; ++attempt) {
      const StolenTime stolen;
      std::vector<double> seconds = seconds_of(side, message);
      if (const double share = stolen.share(); best.empty() || share < least) {
        least = share;
        best = std::move(seconds);
      }
    }
    most_stolen_ = std::max(most_stolen_, least);
    return best;
  }

  // Runs every way once, between steps without communication. The first step does not count.
  void take_turn(Side& side, int round) {
    std::vector<std::size_t> ways{0, 0};
    for (std::size_t i = 0; i + 1 < side.ways.size(); ++i) {
      ways.push_back(1 + (i + static_cast<std::size_t>(round)) % (side.ways.size() - 1));
      ways.push_back(0);
    }
    const std::vector<double> seconds = slice(side, {{"do", "steps"}, {"ways", ways}});
    for (std::size_t i = 1; i < ways.size(); ++i) {
      Way& way = side.ways[ways[i]];
      way.steps_s.push_back(seconds[i]);
      if (ways[i] != 0)
        way.overheads_s.push_back(seconds[i] - (seconds[i - 1] + seconds[i + 1]) / 2);
    }
  }

  void build(const Network& network) {
    const recipe::ModelInput input{.classes = 1000, .channels = 3, .image = options_.image};
    parameters_ = recipe::model_table(network.model, input).value().gradient_elements();
    for (Side& side : sides_) {
      Json message{{"do", "build"},
                   {"model", network.model},
                   {"batch", network.batch},
                   {"image", options_.image},
                   {"classes", input.classes},
                   {"set_to_none", options_.set_to_none},
                   {"ways", Json::array()}};
      for (Way& way : side.ways) {
        way.steps_s.clear();
        way.overheads_s.clear();
        message["ways"].push_back(way.options);
      }
      side.transfers_s.clear();
      for (const Json& reply : request(side, message)) {
        if (reply.at("parameters") != parameters_)
          refuse(base::format("{} of {} has {} parameters instead of {}", network.model, side.name,
                              reply.at("parameters").dump(), parameters_));
      }
    }
    copies_s_.clear();
    most_stolen_ = 0;
  }

  void measure(const Network& network, Progress& progress) {
    progress.begin(network.model);
    build(network);
    // Two warm-up steps: DistributedDataParallel rebuilds its buckets after the first, Sluice its
    // pool.
    for (Side& side : sides_) {
      std::vector<std::size_t> twice;
      for (std::size_t way = 0; way < side.ways.size(); ++way) twice.insert(twice.end(), 2, way);
      (void)seconds_of(side, {{"do", "steps"}, {"ways", twice}});
    }
    for (int round = 0; round < options_.rounds; ++round) {
      for (Side& side : sides_) take_turn(side, round);
      for (Side& side : sides_)
        side.transfers_s.push_back(median(slice(side, {{"do", "transfer"}, {"times", 3}})));
      copies_s_.push_back(median(slice(sides_[1], {{"do", "copy"}, {"times", 3}})));
      progress.advance(1.0 / options_.rounds);
    }
    for (Side& side : sides_) check(side);
  }

  void check(Side& side) {
    const std::vector<Json> replies = request(side, {{"do", "check"}});
    for (std::size_t way = 0; way < side.ways.size(); ++way) {
      for (const Json& reply : replies) {
        if (!reply.at("losses").at(way).is_number())
          refuse(base::format("{}, {}: the loss is not finite", side.name, side.ways[way].name));
        if (way > 0 && reply.at("hashes").at(way) != replies[0].at("hashes").at(way))
          refuse(base::format("{}, {}: the ranks have different weights", side.name,
                              side.ways[way].name));
      }
    }
  }

  // Prints the results. Returns Sluice's default overhead / the best of DistributedDataParallel.
  double print(const Network& network) {
    Side& ours = sides_[0];
    Side& theirs = sides_[1];
    const double theirs_s = theirs.overhead_s(theirs.best());
    const auto ratio = [&](const Side& side, std::size_t way) {
      return theirs_s > 0 ? side.overhead_s(way) / theirs_s
                          : std::numeric_limits<double>::infinity();
    };
    base::print("\n{}, {} images of {}x{} per rank, {} ranks, {:.1f} million parameters\n",
                network.model, network.batch, options_.image, options_.image, options_.ranks,
                static_cast<double>(parameters_) / 1e6);
    base::print("  {:<7} {:<30} {:>9} {:>9} {:>16} {:>15}\n", "side", "", "step", "without",
                "overhead", "x best ddp");
    Json row{{"model", network.model}, {"batch", network.batch}, {"parameters", parameters_}};
    for (const Side& side : sides_) {
      const double alone_s = median(side.ways[0].steps_s);
      row[side.name]["without_s"] = alone_s;
      for (std::size_t i = 1; i < side.ways.size(); ++i) {
        const Way& way = side.ways[i];
        const double error_s = standard_error(way.overheads_s);
        base::print("  {:<7} {:<30} {:>9} {:>9} {:>16} {:>15.2f}\n", side.name, way.name,
                    base::format_seconds(median(way.steps_s)), base::format_seconds(alone_s),
                    base::format("{:.1f} +- {:.1f} ms", 1e3 * side.overhead_s(i), 1e3 * error_s),
                    ratio(side, i));
        row[side.name]["ways"].push_back({{"way", way.name},
                                          {"step_s", median(way.steps_s)},
                                          {"overhead_s", side.overhead_s(i)},
                                          {"standard_error_s", error_s},
                                          {"overheads_s", way.overheads_s}});
      }
      row[side.name]["all_reduce_alone_s"] = median(side.transfers_s);
    }
    base::print(
        "  all-reduce of all gradients alone: sluice {}, gloo {}; copying them into a buffer and "
        "back: "
        "{}\n",
        base::format_seconds(median(ours.transfers_s)),
        base::format_seconds(median(theirs.transfers_s)), base::format_seconds(median(copies_s_)));
    const double usual = ratio(ours, 1);
    base::print(
        "  overhead / best overhead of ddp: {:.2f} with the default, {:.2f} at best; limit {:.2f}: "
        "{}\n",
        usual, ratio(ours, ours.best()), options_.most, usual <= options_.most ? "met" : "not met");
    base::print(
        "  medians of {} rounds; weights equal on all ranks; up to {:.1f}% of the processor time "
        "was "
        "stolen\n",
        options_.rounds, 100 * most_stolen_);
    row["copy_s"] = median(copies_s_);
    row["ratio"] = usual;
    row["best_ratio"] = ratio(ours, ours.best());
    row["most_stolen"] = most_stolen_;
    document_.push_back(row);
    return usual;
  }

  Options options_;
  std::vector<Network> networks_;
  StopSignals signals_;
  TemporaryFolder folder_;
  std::vector<Side> sides_;
  std::vector<double> copies_s_;
  std::int64_t parameters_ = 0;
  double most_stolen_ = 0;
  Json document_ = Json::array();
};

int run(const Options& options) {
  Comparison comparison{options};
  const bool met = comparison.run();
  if (!options.output.empty()) {
    std::ofstream file{options.output};
    file << comparison.json().dump(2) << "\n";
    if (!file.flush()) refuse(base::format("cannot write {}", options.output));
  }
  return met ? 0 : 1;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  CLI::App app{
      "Measures the communication overhead of a step: Sluice against DistributedDataParallel",
      "ddp"};
  sluice::bench::Options options;
  app.add_option("--models", options.models, "MODEL:BATCH, with the models alexnet and resnet18")
      ->capture_default_str();
  app.add_option("--image", options.image, "Height and width of the images")
      ->check(CLI::Range(64, 512))
      ->capture_default_str();
  app.add_option("--ranks", options.ranks, "Number of ranks, a process each")
      ->check(CLI::Range(2, 16))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "Turns of each side; the median is shown")
      ->check(CLI::Range(1, 999))
      ->capture_default_str();
  app.add_flag("--set-to-none", options.set_to_none,
               "zero_grad() drops gradients instead of zeroing them, on both sides");
  app.add_option("--most", options.most,
                 "Limit: Sluice's overhead / the best of DistributedDataParallel")
      ->capture_default_str();
  app.add_option("--python", options.python,
                 "A Python with torch (default: python3 or /usr/bin/python3)");
  app.add_option("--output", options.output, "Write the results to this file as JSON")->take_last();
  app.footer(
      "Exit status: 0 done, 1 the limit is not met, 2 wrong usage, no torch or a wrong result.\n"
      "Example:\n"
      "  ddp --models alexnet:8 --rounds 5");
  return sluice::bench::run_program(app, argc, argv, [&] { return sluice::bench::run(options); });
}
