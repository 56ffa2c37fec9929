// published.cc - reads published/trainings.toml.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "base/toml.h"
#include "cli/reproduce/reproduction.h"

namespace sluice::cli {
namespace {

using namespace std::string_view_literals;

constexpr double kMost = 1e12;
constexpr std::array kMetrics{"time_to_train_s"sv, "images_per_s"sv, "speedup"sv, "efficiency"sv};
constexpr std::array kSolved{"speed"sv, "start_up"sv, "link_efficiency"sv, "spread"sv};
constexpr std::array kSourceTags{"[S]"sv, "[R]"sv, "[M]"sv};

struct LinkKind {
  std::string_view key;
  std::string_view name;
  double (*value)(const cluster::Cluster& cluster);
};
constexpr std::array kLinkKinds{
    LinkKind{"efficiency_percent", "efficiency of the links between nodes, %",
             [](const cluster::Cluster& c) { return 100 * c.between_efficiency; }},
    LinkKind{"latency_us", "latency between nodes, us",
             [](const cluster::Cluster& c) { return 1e6 * c.constants.between.latency_s; }},
    LinkKind{"tree_latency_us", "latency between nodes in trees, us",
             [](const cluster::Cluster& c) { return 1e6 * c.constants.network.tree_latency_s; }},
    LinkKind{
        "inside_gbyte_per_s", "bandwidth of a device inside its node, GB/s",
        [](const cluster::Cluster& c) { return c.constants.inside.bandwidth_bytes_per_s / 1e9; }},
    LinkKind{
        "between_gbyte_per_s", "bandwidth of a torus link in one direction, GB/s",
        [](const cluster::Cluster& c) { return c.constants.between.bandwidth_bytes_per_s / 1e9; }},
    LinkKind{
        "staging_gbyte_per_s", "bandwidth of a node's host memory, GB/s",
        [](const cluster::Cluster& c) { return c.constants.network.staging_bytes_per_s / 1e9; }},
};
constexpr auto kLinkKeys = [] {
  std::array<std::string_view, kLinkKinds.size()> keys;
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = kLinkKinds[i].key;
  return keys;
}();

// The index of the key's word in `words`; another word is an error.
std::size_t index_of(base::TomlTable& table, std::string_view key, std::string_view word,
                     std::span<const std::string_view> words) {
  const auto found = std::find(words.begin(), words.end(), word);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  table.refuse(key, base::format("must be one of {}", base::join(words, ", ")));
  return 0;
}

class Reader {
 public:
  explicit Reader(const std::string& source) : source_{source} {}

  Result<PublishedTrainings> read(const toml::table& root) && {
    base::TomlTable top{root, "", source_};
    const auto runs = top.optional_tables("run");
    const auto checks = top.optional_tables("cross_check");
    const auto links = top.optional_tables("link");
    if (Status status = top.finish(); !status.ok()) return status;
    for (const toml::table* run : runs) {
      if (Status status = read_run(*run); !status.ok()) return status;
    }
    for (const toml::table* check : checks) {
      if (Status status = read_check(*check); !status.ok()) return status;
    }
    for (const toml::table* link : links) {
      if (Status status = read_link(*link); !status.ok()) return status;
    }
    return std::move(all_);
  }

 private:
  bool has_row(std::string_view row) const {
    return std::any_of(all_.runs.begin(), all_.runs.end(),
                       [&](const PublishedRun& run) { return run.row == row; });
  }

  Status read_run(const toml::table& toml) {
    base::TomlTable table{toml, "run.", source_};
    PublishedRun run{.row = table.text("row"),
                     .cluster = table.text("cluster"),
                     .ranks = static_cast<int>(table.number("ranks", 1, simulate::kMostRanks)),
                     .recipe = table.text("recipe"),
                     .settings = table.optional_text("settings"),
                     .framework = table.optional_text("framework")};
    run.grid_rows =
        static_cast<int>(table.optional_number("grid_rows", 0, 1, simulate::kMostRanks));
    if (has_row(run.row)) table.refuse("row", "names a run that exists already");
    const auto figures = table.optional_tables("figure");
    if (figures.empty()) table.refuse("row", "needs a [[run.figure]]");
    if (Status status = table.finish(); !status.ok()) return status;
    for (const toml::table* figure : figures) {
      if (Status status = read_figure(*figure, run.row); !status.ok()) return status;
    }
    all_.runs.push_back(std::move(run));
    return {};
  }

  Status read_figure(const toml::table& toml, const std::string& row) {
    base::TomlTable table{toml, "run.figure.", source_};
    PublishedFigure figure{.row = row};
    figure.metric = static_cast<Metric>(index_of(table, "metric", table.text("metric"), kMetrics));
    figure.published = table.number("published", 1e-6, kMost);
    figure.source = table.optional_text("source");
    const bool tagged = std::any_of(kSourceTags.begin(), kSourceTags.end(),
                                    [&](auto tag) { return figure.source.starts_with(tag); });
    if (!figure.source.empty() && !tagged)
      table.refuse("source", base::format("must begin with {}", base::join(kSourceTags, ", ")));
    figure.base_ranks =
        static_cast<int>(table.optional_number("base_ranks", 1, 1, simulate::kMostRanks));
    if (toml.contains("solved")) {
      const std::size_t kind = index_of(table, "solved", table.text("solved"), kSolved);
      figure.solved = {.kind = static_cast<Constant>(kind + 1),
                       .name = table.text("constant"),
                       .least = table.optional_number("least", 0, 0, kMost),
                       .most = table.optional_number("most", 0, 0, kMost)};
      if (figure.solved.most < figure.solved.least) table.refuse("most", "must not be below least");
    } else {
      figure.from = table.text("from");
      figure.freedom = static_cast<int>(table.optional_number("freedom", 0, 0, 100));
      figure.bar = table.optional_number("bar", 0, 0, 1);
    }
    all_.figures.push_back(std::move(figure));
    return table.finish();
  }

  Status read_check(const toml::table& toml) {
    base::TomlTable table{toml, "cross_check.", source_};
    all_.cross_checks.push_back({.row = table.text("row"),
                                 .framework = table.text("framework"),
                                 .published = table.number("published", 1e-6, kMost),
                                 .expected_error = table.number("expected_error", -1, 10)});
    const std::string& row = all_.cross_checks.back().row;
    if (!row.empty() && !has_row(row)) table.refuse("row", "names a run that does not exist");
    return table.finish();
  }

  Status read_link(const toml::table& toml) {
    base::TomlTable table{toml, "link.", source_};
    const std::string cluster = table.text("cluster");
    const LinkKind& kind =
        kLinkKinds.at(index_of(table, "constant", table.text("constant"), kLinkKeys));
    all_.links.push_back({.cluster = cluster,
                          .name = kind.name,
                          .least = table.number("least", 0, kMost),
                          .most = table.number("most", 0, kMost),
                          .value = kind.value});
    return table.finish();
  }

  const std::string& source_;
  PublishedTrainings all_;
};

}  // namespace

std::string_view name(Metric metric) { return kMetrics.at(static_cast<std::size_t>(metric)); }

const PublishedRun& PublishedTrainings::run_of(std::string_view row) const {
  return *std::find_if(runs.begin(), runs.end(),
                       [&](const PublishedRun& run) { return run.row == row; });
}

Result<PublishedTrainings> parse_published(std::string_view toml, const std::string& source) {
  const Result<toml::table> root = base::parse_toml(toml, source);
  if (!root.ok()) return root.status();
  return Reader{source}.read(root.value());
}

const PublishedTrainings& published_trainings() {
  static const PublishedTrainings kAll =
      parse_published(base::embedded_published().front().toml, "published/trainings.toml").value();
  return kAll;
}

}  // namespace sluice::cli
