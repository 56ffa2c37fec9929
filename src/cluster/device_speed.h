// device_speed.h - how fast a single device trains: a curve over its batch.
//
// A speed belongs to a device with a framework, a precision and a model, never to a device alone.
// The times of start-up, evaluations and epochs belong to the same software.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/status.h"
#include "sluice/version.h"

namespace sluice::cluster {

// The names of models in speeds and recipes; recipe/models.h has their layers.
std::span<const std::string_view> model_names();
// An error for any other name; it suggests the nearest one.
SLUICE_API Status check_model_name(std::string_view name);

struct SpeedPoint {
  double batch = 0;
  double images_per_s = 0;
};

struct SLUICE_API DeviceSpeed {
  std::string framework;
  std::string precision;  // "f32", "f16", "bf16"
  std::string model;
  std::vector<SpeedPoint> curve;  // by rising batch; includes the optimizer
  double optimizer_s = 0;         // time of the optimizer in a step
  double input_images_per_s = 0;  // limit of the input pipeline; 0: no limit
  double startup_s = 0;
  double evaluation_s = 0;
  double epoch_s = 0;         // time of an epoch without its steps
  double first_epochs_s = 0;  // extra time of the first epochs, in total

  // The time of a step of `batch` images. Between two points and beyond them the time is linear in
  // the batch; with one point it is proportional to the batch.
  double step_seconds(double batch) const;
  // The time of forward and backward of `batch` images, without the optimizer.
  double pass_seconds(double batch) const { return step_seconds(batch) - optimizer_s; }
};

// The speed that matches; an empty framework matches any. If none or several match, the error lists
// the speeds to choose from.
SLUICE_API Result<DeviceSpeed> find_speed(const std::vector<DeviceSpeed>& speeds,
                                          std::string_view framework, std::string_view precision,
                                          std::string_view model, std::string_view cluster);

}  // namespace sluice::cluster
