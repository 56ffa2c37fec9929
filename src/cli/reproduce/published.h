// published.h - published trainings: how they ran, what they reported, and which constant of ours
// was solved from which figure.
//
// A figure is calibrated when a constant was solved from it: it agrees by construction and proves
// nothing. A predicted one takes all its constants from other rows or from the cluster's file. The
// two are never mixed.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cluster/cluster.h"

namespace sluice::cli {

enum class Metric : std::uint8_t { Seconds, ImagesPerSecond, Speedup, Efficiency };
std::string_view name(Metric metric);  // "time_to_train_s", ...

enum class Constant : std::uint8_t { None, Speed, StartUp, LinkEfficiency, Spread };

// What is plausible of it is a guess of its own; none where both ends are 0.
struct FreeConstant {
  Constant kind = Constant::None;
  std::string_view name;  // "P100 under Chainer, f32"
  double least = 0;
  double most = 0;
};

struct PublishedFigure {
  std::string_view row;  // of docs/reproduction.md
  Metric metric = Metric::Seconds;
  double published = 0;
  FreeConstant solved;    // of a calibrated one
  std::string_view from;  // of a predicted one: where its constants come from
  int freedom = 0;        // constants chosen with an eye on this figure
  double bar = 0;         // how far off it may be; 0: nothing is claimed
  int base_ranks = 1;     // of an efficiency
  bool calibrated() const { return solved.kind != Constant::None; }
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
const PublishedRun& run_of(std::string_view row);  // REQUIRES: there is one.

// A speed shared too widely must show: the run with another framework's speed, and by how much it
// must then be off.
struct CrossCheck {
  std::string_view row;
  std::string_view framework;
  double published = 0;
  double expected_error = 0;
};
std::span<const CrossCheck> published_cross_checks();

// A constant of a cluster's links, and what is plausible of it.
struct LinkConstant {
  std::string_view cluster;
  std::string_view name;  // "efficiency, %"
  double least = 0;
  double most = 0;
  double (*value)(const cluster::Cluster& cluster) = nullptr;
};
std::span<const LinkConstant> link_constants();

}  // namespace sluice::cli
