#include "recipe/recipe_keys.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/format.h"
#include "base/text.h"
#include "recipe/models.h"
#include "sluice/algorithms.h"

namespace sluice::recipe {
namespace {

using namespace std::string_view_literals;

constexpr double kMostEpochs = 100000;
constexpr int kMostBatch = 1 << 20;
constexpr std::int64_t kMostInteger = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50U;

constexpr std::array kScalings{"linear"sv, "sqrt"sv, "none"sv};
constexpr std::array kEpochEnds{"drop"sv, "fill"sv, "run_on"sv};
constexpr std::array kBatchNorms{"local"sv, "synchronised"sv, "last_batch"sv};
constexpr std::array kOptimizers{"sgd"sv, "lars"sv, "rmsprop_warm_up"sv};
constexpr std::array kDecays{"constant"sv, "step"sv, "polynomial"sv};
constexpr std::array kTypes{"f32"sv, "f16"sv, "bf16"sv};
constexpr std::array kAugmentations{"none"sv, "shift"sv, "resized_crop"sv};
constexpr std::array kRatePlaces{"outside"sv, "folded"sv};

template <auto Field>
constexpr WordKey word(std::span<const std::string_view> words) {
  return {words, [](const Recipe& recipe) { return static_cast<std::size_t>(recipe.*Field); },
          [](Recipe& recipe, std::size_t value) {
            using Value = std::remove_reference_t<decltype(recipe.*Field)>;
            recipe.*Field = static_cast<Value>(value);
          }};
}

constexpr NumberKey epochs(double Recipe::*field) { return {field, 0, kMostEpochs}; }

Status check_model(const std::string& name) { return model_input(name).status(); }

Status check_algorithm(const std::string& name) {
  return name.empty() ? Status{} : find_algorithm(name).status();
}

constexpr EpochPairsKey kBatchPhases{
    .what = "batch",
    .whole = true,
    .least = {1, 1},
    .most = {kMostEpochs, kMostBatch},
    .value =
        [](const Recipe& recipe) {
          std::vector<EpochPair> pairs;
          for (const auto& [epoch, batch] : recipe.batch_phases)
            pairs.push_back({static_cast<double>(epoch), static_cast<double>(batch)});
          return pairs;
        },
    .set =
        [](Recipe& recipe, const std::vector<EpochPair>& pairs) {
          recipe.batch_phases.clear();
          for (const auto& [epoch, batch] : pairs)
            recipe.batch_phases.push_back({static_cast<int>(epoch), static_cast<int>(batch)});
        }};

constexpr EpochPairsKey kDrops{.what = "factor",
                               .whole = false,
                               .least = {0, 0},
                               .most = {kMostEpochs, 1000},
                               .value =
                                   [](const Recipe& recipe) {
                                     std::vector<EpochPair> pairs;
                                     for (const auto& [at, factor] : recipe.drops)
                                       pairs.push_back({at, factor});
                                     return pairs;
                                   },
                               .set =
                                   [](Recipe& recipe, const std::vector<EpochPair>& pairs) {
                                     recipe.drops.clear();
                                     for (const auto& [at, factor] : pairs)
                                       recipe.drops.push_back({at, factor});
                                   }};

constexpr std::array kKeys{
    RecipeKey{.name = "name",
              .about = "the name in messages and run folders",
              .kind = TextKey{&Recipe::name},
              .required = true,
              .resumable = true},
    RecipeKey{.name = "about",
              .about = "one line for `sluice train --recipe list`",
              .kind = TextKey{&Recipe::about},
              .resumable = true},

    RecipeKey{.name = "model",
              .about = "name of the model",
              .kind = TextKey{&Recipe::model, check_model},
              .required = true},
    RecipeKey{.name = "image",
              .about = "height and width of the model's input",
              .kind = IntegerKey{&Recipe::image, 1, 4096}},
    RecipeKey{.name = "zero_init_last_gamma",
              .about = "the last scale of every residual block starts at zero",
              .kind = SwitchKey{&Recipe::zero_init_last_gamma}},
    RecipeKey{.name = "batch_norm",
              .about =
                  "`local`: statistics of each rank's batch, running means averaged before "
                  "validation; `synchronised`: statistics of all ranks' batches; `last_batch`: "
                  "validation uses the statistics of the last batch, averaged over ranks",
              .kind = word<&Recipe::batch_norm>(kBatchNorms)},
    RecipeKey{.name = "label_smoothing",
              .about = "label-smoothing factor",
              .kind = NumberKey{&Recipe::label_smoothing, 0, 0.999}},

    RecipeKey{.name = "augmentation",
              .about = "`none`, `shift` by up to `padding` pixels, or `resized_crop` of a random "
                       "area and aspect ratio",
              .kind = word<&Recipe::augmentation>(kAugmentations)},
    RecipeKey{.name = "augmentation_epochs",
              .about = "number of augmented epochs; 0: all",
              .kind = epochs(&Recipe::augmentation_epochs)},
    RecipeKey{.name = "flip",
              .about = "mirror augmented images at random",
              .kind = SwitchKey{&Recipe::flip}},
    RecipeKey{.name = "padding",
              .about = "largest shift of `shift`, in pixels",
              .kind = IntegerKey{&Recipe::padding, 0, 1024}},
    RecipeKey{.name = "crop_area",
              .about = "smallest and largest fraction of an image that `resized_crop` takes",
              .kind = IntervalKey{&Recipe::crop_area, 0.001, 1}},
    RecipeKey{.name = "crop_aspect",
              .about = "smallest and largest width / height of that part",
              .kind = IntervalKey{&Recipe::crop_aspect, 0.01, 100}},

    RecipeKey{.name = "epochs",
              .about = "number of passes over all samples; may be a fraction",
              .kind = NumberKey{&Recipe::epochs, 1e-6, kMostEpochs},
              .required = true,
              .resumable = true},
    RecipeKey{.name = "batch",
              .about = "samples of a rank in one backward pass",
              .kind = IntegerKey{&Recipe::batch, 1, kMostBatch},
              .required = true},
    RecipeKey{.name = "global_batch",
              .about = "samples of all ranks in a step; gradients are accumulated over backward "
                       "passes of at most `batch` samples; 0: batch x ranks",
              .kind = IntegerKey{&Recipe::global_batch, 0, 1 << 30}},
    RecipeKey{.name = "batch_phases",
              .about = "batch from an epoch on, `[[30, 64]]`; `global_batch` grows in proportion",
              .kind = kBatchPhases},
    RecipeKey{.name = "epoch_end",
              .about =
                  "samples that do not fill an epoch's last step: `drop` leaves them out, "
                  "`fill` takes the missing samples from the next shuffle, `run_on` lets a step "
                  "span two epochs",
              .kind = word<&Recipe::epoch_end>(kEpochEnds)},

    RecipeKey{.name = "rate",
              .about = "the learning rate for a global batch of `rate_batch`",
              .kind = NumberKey{&Recipe::rate, 0, 1e6},
              .required = true},
    RecipeKey{.name = "rate_batch",
              .about = "the global batch that `rate` is for",
              .kind = IntegerKey{&Recipe::rate_batch, 1, 1 << 30}},
    RecipeKey{.name = "rate_scaling",
              .about = "how the learning rate scales with the global batch of the first step: "
                       "`linear`, `sqrt` or `none`",
              .kind = word<&Recipe::rate_scaling>(kScalings)},
    RecipeKey{.name = "warm_up_epochs",
              .about = "epochs over which the learning rate rises linearly",
              .kind = epochs(&Recipe::warm_up_epochs)},
    RecipeKey{.name = "warm_up_from",
              .about = "fraction of the learning rate at the start of the warm-up",
              .kind = NumberKey{&Recipe::warm_up_from, 0, 1}},
    RecipeKey{.name = "decay",
              .about = "`step` by `drops`, `polynomial` after the warm-up, or `constant`",
              .kind = word<&Recipe::decay>(kDecays)},
    RecipeKey{.name = "drops",
              .about = "factor of the learning rate from an epoch on, `[[30, 0.1], [60, 0.01]]`",
              .kind = kDrops},
    RecipeKey{.name = "poly_power",
              .about = "power of the polynomial end + (1 - end) (1 - p)^power",
              .kind = NumberKey{&Recipe::poly_power, 0, 100}},
    RecipeKey{.name = "poly_end",
              .about = "fraction of the learning rate at the end of the polynomial",
              .kind = NumberKey{&Recipe::poly_end, 0, 1}},
    RecipeKey{.name = "poly_epochs",
              .about = "epochs of the polynomial after the warm-up; 0: all remaining epochs",
              .kind = epochs(&Recipe::poly_epochs)},

    RecipeKey{.name = "optimizer",
              .about = "`sgd`, `lars`, or `rmsprop_warm_up`: RMSprop that becomes sgd",
              .kind = word<&Recipe::optimizer>(kOptimizers)},
    RecipeKey{.name = "momentum",
              .about = "fraction of the velocity that a step keeps",
              .kind = NumberKey{&Recipe::momentum, 0, 0.99999}},
    RecipeKey{
        .name = "nesterov", .about = "use Nesterov momentum", .kind = SwitchKey{&Recipe::nesterov}},
    RecipeKey{.name = "rate_place",
              .about = "the learning rate multiplies the velocity (`outside`) or the gradient "
                       "added to it (`folded`)",
              .kind = word<&Recipe::rate_place>(kRatePlaces)},
    RecipeKey{.name = "momentum_correction",
              .about = "rescale a folded velocity when the learning rate changes",
              .kind = SwitchKey{&Recipe::momentum_correction}},
    RecipeKey{.name = "weight_decay",
              .about = "fraction of the weights that is added to their gradient",
              .kind = NumberKey{&Recipe::weight_decay, 0, 1}},
    RecipeKey{.name = "decay_one_dimensional",
              .about = "apply weight decay to biases and batch norms too",
              .kind = SwitchKey{&Recipe::decay_one_dimensional}},
    RecipeKey{
        .name = "lars_eta",
        .about = "LARS: trust coefficient, the fraction of a tensor's norm that a step may move it",
        .kind = NumberKey{&Recipe::lars_eta, 1e-12, 1000}},
    RecipeKey{.name = "lars_eps",
              .about = "LARS: added to the gradient's norm",
              .kind = NumberKey{&Recipe::lars_eps, 0, 1}},
    RecipeKey{.name = "rms_rate",
              .about = "`rmsprop_warm_up`: RMSprop's learning rate",
              .kind = NumberKey{&Recipe::rms_rate, 0, 1000}},
    RecipeKey{.name = "rms_decay",
              .about = "`rmsprop_warm_up`: fraction of the mean square that a step keeps",
              .kind = NumberKey{&Recipe::rms_decay, 0, 0.999999}},
    RecipeKey{.name = "rms_eps",
              .about = "`rmsprop_warm_up`: added to the root of the mean square",
              .kind = NumberKey{&Recipe::rms_eps, 1e-30, 1}},
    RecipeKey{.name = "rms_center",
              .about = "`rmsprop_warm_up`: the epoch at which it is half sgd",
              .kind = epochs(&Recipe::rms_center)},
    RecipeKey{.name = "rms_period",
              .about = "`rmsprop_warm_up`: epochs of the transition, centred on `rms_center`",
              .kind = NumberKey{&Recipe::rms_period, 1e-6, kMostEpochs}},

    RecipeKey{.name = "compute",
              .about = "type of forward and backward, `f32`, `f16` or `bf16`; f32 if the device "
                       "does not support it",
              .kind = word<&Recipe::compute>(kTypes)},
    RecipeKey{.name = "loss_scaling",
              .about = "scale the loss so that small gradients do not vanish in 16 bits",
              .kind = SwitchKey{&Recipe::loss_scaling}},
    RecipeKey{.name = "wire",
              .about = "wire type of gradients between nodes: `f32`, `f16` or `bf16`",
              .kind = word<&Recipe::wire>(kTypes)},
    RecipeKey{.name = "theta",
              .about = "bytes that close a bucket of gradients, `4194304` or `\"4M\"`",
              .kind = BytesKey{&Recipe::theta, 1, kMostBytes}},
    RecipeKey{
        .name = "groups",
        .about = "number of gradients in each bucket, in the order of backward; replaces theta",
        .kind = CountsKey{&Recipe::groups}},
    RecipeKey{.name = "double_buffering",
              .about = "send gradients during the next step and apply them one step late",
              .kind = SwitchKey{&Recipe::double_buffering}},
    RecipeKey{.name = "sparsity",
              .about = "fraction of all gradients that a step keeps as residual and does not send",
              .kind = NumberKey{&Recipe::sparsity, 0, 0.9999}},
    RecipeKey{.name = "sparse_chunk",
              .about = "elements of a gradient chunk, which is sent or kept as a whole",
              .kind = IntegerKey{&Recipe::sparse_chunk, 1, 1 << 30}},
    RecipeKey{.name = "sparse_dense_epochs",
              .about = "epochs at the start in which all gradients are sent",
              .kind = epochs(&Recipe::sparse_dense_epochs)},
    RecipeKey{.name = "sparse_ramp_epochs",
              .about = "epochs over which sparsity then rises",
              .kind = epochs(&Recipe::sparse_ramp_epochs)},
    RecipeKey{.name = "algorithm",
              .about = "all-reduce algorithm by name; empty: chosen by size",
              .kind = TextKey{&Recipe::algorithm, check_algorithm}},

    RecipeKey{.name = "evaluate_every",
              .about = "epochs between evaluations; the end is always evaluated",
              .kind = NumberKey{&Recipe::evaluate_every, 1e-6, kMostEpochs},
              .resumable = true},
    RecipeKey{.name = "evaluate_first",
              .about = "epochs before the first evaluation; 0: `evaluate_every`",
              .kind = epochs(&Recipe::evaluate_first),
              .resumable = true},
    RecipeKey{.name = "checkpoint_every",
              .about = "epochs between checkpoints; 0: only at the end",
              .kind = epochs(&Recipe::checkpoint_every),
              .resumable = true},
    RecipeKey{.name = "target",
              .about = "top-1 accuracy in percent that ends the training; 0: none",
              .kind = NumberKey{&Recipe::target, 0, 100},
              .resumable = true},
    RecipeKey{.name = "seed",
              .about = "seed of weights, shuffles, augmentation and dropout",
              .kind = IntegerKey{&Recipe::seed, 0, kMostInteger}},
};

}  // namespace

std::span<const RecipeKey> recipe_keys() { return kKeys; }

const RecipeKey* find_recipe_key(std::string_view name) {
  const auto* const found = std::find_if(kKeys.begin(), kKeys.end(),
                                         [&](const RecipeKey& key) { return key.name == name; });
  return found == kKeys.end() ? nullptr : found;
}

std::string nearest_key_hint(std::string_view name) {
  std::vector<std::string_view> names;
  for (const RecipeKey& key : kKeys) names.push_back(key.name);
  const std::string_view nearest = base::nearest_name(name, names);
  return nearest.empty() ? std::string{} : base::format(", did you mean {}?", nearest);
}

}  // namespace sluice::recipe
