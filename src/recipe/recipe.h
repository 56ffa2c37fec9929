// recipe.h - a training as a table of settings, from a TOML file.
//
// docs/recipes.md has the keys and the recipes. Those of recipes/*.toml are part of the library, by
// name; any other is read from a path. A key is named as its field here. A Recipe that was loaded
// holds nothing impossible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recipe/learning_rate.h"
#include "sluice/gradients.h"
#include "sluice/status.h"
#include "sluice/types.h"

namespace sluice::recipe {

// How the rate follows the global batch.
enum class LearningRateScaling : std::uint8_t { Linear, Sqrt, None };
// What becomes of the samples that do not fill an epoch's last step: left out, filled up from the
// next epoch's shuffle (whose epoch still begins at its begin), or no epoch has an end at all.
enum class EpochEnd : std::uint8_t { Drop, Fill, RunOn };
// Statistics of a rank's own batch, whose running means are averaged over ranks before validation;
// of all ranks' batches; or for validation those of the last batch alone, averaged over ranks.
enum class BatchNormMode : std::uint8_t { Local, Synchronised, LastBatch };
enum class OptimizerKind : std::uint8_t { Sgd, Lars, RmspropWarmUp };
enum class DecayKind : std::uint8_t { Constant, Step, Polynomial };
// The type of forward and backward, where the device has it.
enum class Compute : std::uint8_t { F32, F16, BF16 };
enum class AugmentationKind : std::uint8_t { None, Shift, ResizedCrop };

// From that epoch on, a rank's batch.
struct BatchPhase {
  int epoch = 0;
  int batch = 0;
  bool operator==(const BatchPhase&) const = default;
};

struct Interval {
  double least = 0;
  double most = 0;
  bool operator==(const Interval&) const = default;
};

struct Recipe {
  std::string name;
  std::string about;  // a line

  std::string model;
  int image = 224;  // height and width
  bool zero_init_last_gamma = false;
  BatchNormMode batch_norm = BatchNormMode::Local;
  double label_smoothing = 0;

  AugmentationKind augmentation = AugmentationKind::None;
  double augmentation_epochs = 0;  // how many are augmented; 0: all
  bool flip = true;                // mirrored at random, where augmented
  int padding = 4;                 // of Shift: how far an image may move, in pixels
  Interval crop_area{0.08, 1};     // of ResizedCrop: part of the image
  Interval crop_aspect{3.0 / 4, 4.0 / 3};

  double epochs = 1;
  int batch = 32;                 // a rank's, in one backward at most
  std::int64_t global_batch = 0;  // of the first step, by accumulation; 0: batch x ranks
  std::vector<BatchPhase> batch_phases;
  EpochEnd epoch_end = EpochEnd::Drop;

  double rate = 0.1;  // of a global batch of rate_batch
  int rate_batch = 256;
  LearningRateScaling rate_scaling = LearningRateScaling::Linear;
  double warm_up_epochs = 0;
  double warm_up_from = 0;  // part of the rate at step 0
  DecayKind decay = DecayKind::Step;
  std::vector<LearningRateDrop> drops;  // at epochs
  double poly_power = 1;
  double poly_end = 0;     // part of the rate
  double poly_epochs = 0;  // after the warm-up; 0: all that follow it

  OptimizerKind optimizer = OptimizerKind::Sgd;
  double momentum = 0.9;
  bool nesterov = false;
  LearningRateMode rate_place = LearningRateMode::Outside;
  bool momentum_correction = true;
  double weight_decay = 0;
  bool decay_one_dimensional = false;
  double lars_eta = 0.001;
  double lars_eps = 1e-9;
  double rms_rate = 3e-4;  // RmspropWarmUp: of its first steps
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

  double evaluate_every = 1;    // epochs; the last one always
  double evaluate_first = 0;    // after how many epochs; 0: evaluate_every
  double checkpoint_every = 1;  // epochs; 0: only at the end
  double target = 0;            // percent; 0: none
  std::uint64_t seed = 1;

  // For source_of(): of the keys that were set.
  std::map<std::string, std::string, std::less<>> sources;
};

struct RecipeSummary {
  std::string name;
  std::string about;
};

// The built-in ones, in order of names.
std::vector<RecipeSummary> known_recipes();

// By name, or from a path; then overrides, "key=value" each. What is wrong is named with file and
// line, or with the override; a key that does not exist with the nearest one that does.
Result<Recipe> load_recipe(std::string_view name_or_path,
                           std::span<const std::string> overrides = {});

// `source` names the text in messages.
Result<Recipe> parse_recipe(std::string_view toml, const std::string& source,
                            std::span<const std::string> overrides = {});

// Every key and its value as TOML text, in the order of the document.
using RecipeSettings = std::vector<std::pair<std::string, std::string>>;
RecipeSettings settings_of(const Recipe& recipe);

// The recipe that had these settings; `source` names them in messages.
Result<Recipe> recipe_of(const std::map<std::string, std::string>& settings,
                         const std::string& source);

// Where the value of a key comes from: what the file's [source] table says, a tag and perhaps a
// note ("[R] explorer.py"), or nothing if it says nothing; "--set"; or "default".
std::string source_of(const Recipe& recipe, std::string_view key);

// Whether a training that has come `epochs_done` far with the settings `then` may go on with `now`.
// More epochs, another target, or other times to evaluate and to save may; what would have changed
// the steps already taken is refused by name.
Status may_continue(const std::map<std::string, std::string>& then, double epochs_done,
                    const Recipe& now);

}  // namespace sluice::recipe
