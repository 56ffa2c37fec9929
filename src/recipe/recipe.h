// recipe.h - a training as a table of settings, from a TOML file.
//
// docs/recipes.md describes the keys and the recipes. The files of recipes/ are part of the library
// and are known by name; any other recipe is read from a path. Each field has the name of its key.
// Loading checks all values, so a loaded Recipe is valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/status.h"
#include "sluice/torch/gradient_options.h"
#include "sluice/types.h"

namespace sluice::recipe {

// How the learning rate follows the global batch.
enum class LearningRateScaling : std::uint8_t { Linear, Sqrt, None };
// What happens to samples that do not fill the last step of an epoch. Drop: they are left out.
// Fill: the step takes the missing samples from the next shuffle; the next epoch still reads that
// shuffle from its start. RunOn: the step spans two epochs.
enum class EpochEnd : std::uint8_t { Drop, Fill, RunOn };
// Local: each rank uses the statistics of its own batch; before validation, the running means are
// averaged over the ranks. Synchronised: all ranks use the statistics of all batches. LastBatch: as
// Local, but validation uses only the statistics of the last batch, averaged over the ranks.
enum class BatchNormMode : std::uint8_t { Local, Synchronised, LastBatch };
enum class OptimizerKind : std::uint8_t { Sgd, Lars, RmspropWarmUp };
enum class DecayKind : std::uint8_t { Constant, Step, Polynomial };
// The type of forward and backward, if the device supports it.
enum class Compute : std::uint8_t { F32, F16, BF16 };
enum class AugmentationKind : std::uint8_t { None, Shift, ResizedCrop };

// A rank's batch from `epoch` on.
struct BatchPhase {
  int epoch = 0;
  int batch = 0;
  bool operator==(const BatchPhase&) const = default;
};

// From position `at` on, the learning rate is `factor` times its base. Drops are in order of
// position.
struct LearningRateDrop {
  double at = 0;
  double factor = 1;
  bool operator==(const LearningRateDrop&) const = default;
};

struct Interval {
  double least = 0;
  double most = 0;
  bool operator==(const Interval&) const = default;
};

struct Recipe {
  std::string name;
  std::string about;  // one line

  std::string model;
  int image = 224;  // height and width
  bool zero_init_last_gamma = false;
  BatchNormMode batch_norm = BatchNormMode::Local;
  double label_smoothing = 0;

  AugmentationKind augmentation = AugmentationKind::None;
  double augmentation_epochs = 0;  // number of augmented epochs; 0: all
  bool flip = true;                // mirror augmented images at random
  int padding = 4;                 // Shift: largest shift in pixels
  Interval crop_area{0.08, 1};     // ResizedCrop: fraction of the image
  Interval crop_aspect{3.0 / 4, 4.0 / 3};

  double epochs = 1;
  int batch = 32;                 // samples of a rank in one backward pass
  std::int64_t global_batch = 0;  // of the first step, reached by accumulation; 0: batch x ranks
  std::vector<BatchPhase> batch_phases;
  EpochEnd epoch_end = EpochEnd::Drop;

  double rate = 0.1;  // learning rate for a global batch of rate_batch
  int rate_batch = 256;
  LearningRateScaling rate_scaling = LearningRateScaling::Linear;
  double warm_up_epochs = 0;
  double warm_up_from = 0;  // fraction of the learning rate at step 0
  DecayKind decay = DecayKind::Step;
  std::vector<LearningRateDrop> drops;  // at epochs
  double poly_power = 1;
  double poly_end = 0;     // fraction of the learning rate
  double poly_epochs = 0;  // after the warm-up; 0: all remaining epochs

  OptimizerKind optimizer = OptimizerKind::Sgd;
  double momentum = 0.9;
  bool nesterov = false;
  LearningRateMode rate_place = LearningRateMode::Outside;
  bool momentum_correction = true;
  double weight_decay = 0;
  bool decay_one_dimensional = false;
  double lars_eta = 0.001;
  double lars_eps = 1e-9;
  double rms_rate = 3e-4;  // RmspropWarmUp: learning rate of its first steps
  double rms_decay = 0.99;
  double rms_eps = 1e-8;
  double rms_center = 10;  // epochs
  double rms_period = 5;   // epochs

  Compute compute = Compute::F32;
  bool loss_scaling = false;
  WireType wire = WireType::F32;
  std::size_t theta = std::size_t{4} << 20U;
  std::vector<int> groups;
  bool double_buffering = false;
  double sparsity = 0;
  std::size_t sparse_chunk = 32 * 1024;
  double sparse_dense_epochs = 0;
  double sparse_ramp_epochs = 0;
  std::string algorithm;  // empty: chosen by size

  double evaluate_every = 1;    // epochs; the end is always evaluated
  double evaluate_first = 0;    // epochs before the first; 0: evaluate_every
  double checkpoint_every = 1;  // epochs; 0: only at the end
  double target = 0;            // top-1 accuracy in percent; 0: none
  std::uint64_t seed = 1;

  // The source of each key that was set; source_of() reads it.
  std::map<std::string, std::string, std::less<>> sources;
};

struct RecipeSummary {
  std::string name;
  std::string about;
};

// The built-in recipes in order of names.
std::vector<RecipeSummary> known_recipes();

// Loads a recipe by name or from a path, then applies the overrides "key=value". An error names the
// file and the line, or the override; for an unknown key it suggests the nearest one.
Result<Recipe> load_recipe(std::string_view name_or_path,
                           std::span<const std::string> overrides = {});

// `source` is the name of the text in messages.
Result<Recipe> parse_recipe(std::string_view toml, const std::string& source,
                            std::span<const std::string> overrides = {});

// Every key and its value as TOML text, in the order of the document.
using RecipeSettings = std::vector<std::pair<std::string, std::string>>;
RecipeSettings settings_of(const Recipe& recipe);

// The recipe with these settings; `source` is their name in messages.
Result<Recipe> recipe_of(const std::map<std::string, std::string>& settings,
                         const std::string& source);

// The source of a key's value. For a key of the file, its entry in the [source] table, a tag and
// perhaps a note ("[R] explorer.py"), or "" if it has none. For an override "--set", else
// "default".
std::string source_of(const Recipe& recipe, std::string_view key);

// Whether a training that has done `epochs_done` epochs with the settings `then` may resume with
// `now`. The number of epochs, the target and the times of evaluations and checkpoints may change.
// Any change that would affect the steps already taken is an error that names the key.
Status may_resume(const std::map<std::string, std::string>& then, double epochs_done,
                  const Recipe& now);

}  // namespace sluice::recipe
