// reproduce.h - published trainings against the simulator.
//
// A figure is calibrated when a constant of its cluster's file was solved from it: it agrees by
// construction and proves nothing. A predicted one takes all its constants from other rows or from
// the cluster's file. The two are never mixed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/status.h"

namespace sluice {

enum class Metric : std::uint8_t { Seconds, ImagesPerSecond, Speedup, Efficiency };
std::string_view name(Metric metric);  // "time_to_train_s", ...

struct PublishedFigure {
  std::string_view row;  // of docs/reproduction.md
  Metric metric = Metric::Seconds;
  double published = 0;
  bool calibrated = false;
  std::string_view constants;  // solved from this figure; of a predicted one: where they come from
  int freedom = 0;             // how many constants were solved from this figure
  int base_ranks = 1;          // of an efficiency
};

struct PublishedRun {
  std::string_view row;
  std::string_view cluster;
  int ranks = 0;
  std::string_view recipe;
  std::string_view settings;  // of the recipe, "key=value" each, separated by blanks
  std::string_view framework;
  int grid_rows = 0;  // of a torus that is not the nodes; 0: it is
};

std::span<const PublishedRun> published_runs();
std::span<const PublishedFigure> published_figures();

struct Reproduction {
  PublishedFigure figure;
  PublishedRun run;
  double simulated = 0;
  double error = 0;  // of the published figure
};

// Every figure, in the order of published_figures().
Result<std::vector<Reproduction>> reproduce();

// A speed shared too widely must show: the run with another framework's speed, and what facts say
// comes out wrong by how much.
struct CrossCheck {
  std::string_view row;
  std::string_view framework;
  double published = 0;
  double expected_error = 0;
};
struct CrossChecked {
  CrossCheck check;
  double simulated = 0;
  double error = 0;
};
Result<std::vector<CrossChecked>> cross_checks();

}  // namespace sluice
