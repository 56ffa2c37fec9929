// scaling_plot.h - how efficiency falls with ranks, drawn for a terminal and as SVG.
//
// Ranks are on a logarithmic axis, efficiency goes from 0 to 100%. The drawings are functions of
// the curve alone: the same curve is the same bytes.
#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

struct ScalingPoint {
  int ranks = 0;
  double efficiency = 0;
  double images_per_s = 0;
};

// REQUIRES: points, of rising ranks.
struct ScalingCurve {
  std::string title;
  std::vector<ScalingPoint> points;
};

std::string plot_text(const ScalingCurve& curve);
std::string plot_svg(const ScalingCurve& curve);

}  // namespace sluice::cli
