#include "cluster/device_speed.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "base/text.h"

namespace sluice::cluster {
namespace {

constexpr std::array<std::string_view, 8> kModelNames{
    "lenet", "smallconv", "resnet20", "resnet18", "resnet34", "resnet50", "alexnet", "alexnet_bn"};

}  // namespace

std::span<const std::string_view> model_names() { return kModelNames; }

Status check_model_name(std::string_view name) {
  if (std::find(kModelNames.begin(), kModelNames.end(), name) != kModelNames.end()) return {};
  const std::string_view nearest = base::nearest_name(name, kModelNames);
  return {Code::InvalidArgument,
          nearest.empty() ? base::format("no model is called {}; there are {}", base::quote(name),
                                         base::join(kModelNames, ", "))
                          : base::format("no model is called {}; did you mean {}?",
                                         base::quote(name), nearest)};
}

double DeviceSpeed::step_seconds(double batch) const {
  const auto seconds = [](const SpeedPoint& point) { return point.batch / point.images_per_s; };
  if (curve.size() == 1) return batch / curve.front().images_per_s;
  // The line through the two points around the batch, or next to it.
  auto right = std::find_if(curve.begin() + 1, curve.end() - 1,
                            [&](const SpeedPoint& point) { return point.batch >= batch; });
  const SpeedPoint& a = *(right - 1);
  const SpeedPoint& b = *right;
  const double slope = (seconds(b) - seconds(a)) / (b.batch - a.batch);
  return seconds(a) + slope * (batch - a.batch);
}

Result<DeviceSpeed> find_speed(const std::vector<DeviceSpeed>& speeds, std::string_view framework,
                               std::string_view precision, std::string_view model,
                               std::string_view cluster) {
  std::vector<const DeviceSpeed*> fits;
  std::vector<std::string> others;
  for (const DeviceSpeed& speed : speeds) {
    if ((framework.empty() || speed.framework == framework) && speed.precision == precision &&
        speed.model == model) {
      fits.push_back(&speed);
    }
    others.push_back(base::format("{} {} {}", speed.framework, speed.precision, speed.model));
  }
  const std::string wanted =
      base::format("{}{}{} {}", framework, framework.empty() ? "" : " ", precision, model);
  if (fits.size() == 1) return *fits.front();
  if (fits.empty()) {
    return Status{
        Code::InvalidArgument,
        base::format("cluster {} has no speed for {}: it has {}", cluster, wanted,
                     others.empty() ? "none" : base::format("{}", base::join(others, ", ")))};
  }
  std::vector<std::string> frameworks;
  for (const DeviceSpeed* speed : fits) frameworks.push_back(speed->framework);
  return Status{Code::InvalidArgument,
                base::format("cluster {} has several speeds for {}: choose a framework from {}",
                             cluster, wanted, base::join(frameworks, ", "))};
}

}  // namespace sluice::cluster
