// device_speed.h - how fast a device trains by itself: a curve over its batch.
//
// A speed belongs to a device with a framework, a precision and a model, never to a device alone.
// Start-up and what an evaluation or an epoch costs belong to the same software.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/status.h"

namespace sluice::cluster {

// The networks that speeds and recipes name; recipe/models.h has their layers.
std::span<const std::string_view> model_names();
// An error for any other name, with the nearest one.
Status check_model_name(std::string_view name);

struct SpeedPoint {
  double batch = 0;
  double images_per_s = 0;
};

struct DeviceSpeed {
  std::string framework;
  std::string precision;  // "f32", "f16", "bf16"
  std::string model;
  std::vector<SpeedPoint> curve;  // batches rising; the optimizer included
  double optimizer_s = 0;         // of a step, what the optimizer takes once gradients are there
  double input_images_per_s = 0;  // what its input can deliver; 0: it never waits for it
  double startup_s = 0;
  double evaluation_s = 0;
  double epoch_s = 0;         // what each epoch costs besides its steps
  double first_epochs_s = 0;  // what the first ones take longer, in all

  // Of a step of so many images. Between two points and beyond them the time is a straight line
  // over the batch; with one point it is in proportion, which is all that one point can say.
  double step_seconds(double batch) const;
  // Forward and backward of so many images, the optimizer apart.
  double pass_seconds(double batch) const { return step_seconds(batch) - optimizer_s; }
};

// The one that fits; an empty framework fits any. Several or none is an error that says which.
Result<DeviceSpeed> find_speed(const std::vector<DeviceSpeed>& speeds, std::string_view framework,
                               std::string_view precision, std::string_view model,
                               std::string_view cluster);

}  // namespace sluice::cluster
