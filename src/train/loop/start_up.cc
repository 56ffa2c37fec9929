#include "train/loop/start_up.h"

#include <ATen/Parallel.h>

#include <future>
#include <utility>

#include "base/format.h"
#include "train/checkpoint/initial_weights.h"
#include "train/checkpoint/resumption.h"
#include "train/loop/make_optimizer.h"
#include "train/models/batch_norm.h"

namespace sluice::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kTracedEvents = std::size_t{1} << 14U;

struct Joined {
  Communicator communicator;
  double seconds;
};

std::future<Joined> join_beside(const CommunicatorMaker& make_communicator) {
  return std::async(std::launch::async, [&make_communicator] {
    const auto begin = Clock::now();
    Communicator communicator = make_communicator();
    return Joined{std::move(communicator), seconds_since(begin)};
  });
}

void set_batch_norms(const recipe::Recipe& recipe, Communicator& communicator, Model& network) {
  if (recipe.batch_norm == recipe::BatchNormMode::LastBatch) keep_last_batches(network);
  if (recipe.batch_norm == recipe::BatchNormMode::Synchronised && communicator.size() > 1) {
    synchronise_batch_norms(network, communicator.split(0, communicator.rank()));
  }
}

std::vector<std::string> fallbacks(const recipe::Recipe& recipe) {
  std::vector<std::string> notes;
  if (recipe.compute != recipe::Compute::F32) {
    notes.push_back(
        base::format("the recipe computes in {}, which this machine's CPU cannot do "
                     "quickly: forward and backward are in f32",
                     recipe.compute == recipe::Compute::F16 ? "f16" : "bf16"));
  }
  return notes;
}

}  // namespace

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Result<TrainingSetup> start_up(const CommunicatorMaker& make_communicator,
                               const DataOpener& open_data, const TrainerOptions& options) {
  const recipe::Recipe& recipe = options.recipe;
  if (options.threads > 0) at::set_num_threads(options.threads);
  StartUp told;
  std::future<Joined> joining = join_beside(make_communicator);

  auto begin = Clock::now();
  Result<data::Data> data = open_data();
  if (!data.ok()) return data.status();
  told.data_s = seconds_since(begin);

  begin = Clock::now();
  const auto classes = static_cast<int>(data.value().classes.size());
  Result<std::shared_ptr<Model>> network = make_model(
      recipe.model,
      {.input = {.classes = classes, .channels = data.value().channels, .image = recipe.image},
       .seed = recipe.seed,
       .zero_init_last_gamma = recipe.zero_init_last_gamma});
  if (!network.ok()) return network.status();
  std::vector<std::string> notes = fallbacks(recipe);
  if (options.init) {
    Result<std::vector<std::string>> taken = take_weights(*options.init, *network.value());
    if (!taken.ok()) return taken.status();
    notes.insert(notes.end(), taken.value().begin(), taken.value().end());
  }
  told.model_s = seconds_since(begin);

  begin = Clock::now();
  Joined joined = joining.get();
  told.communicator_s = joined.seconds;
  told.joining_s = seconds_since(begin);

  Communicator& communicator = joined.communicator;
  begin = Clock::now();
  recipe::Recipe trained = recipe;
  FoundCheckpoint found;
  if (options.resume) {
    Result<FoundCheckpoint> looked = load_latest(options.run_folder / kCheckpoints, communicator);
    if (!looked.ok()) return looked.status();
    found = std::move(looked).value();
    notes.insert(notes.end(), found.refused.begin(), found.refused.end());
  } else if (!options.run_folder.empty()) {
    found.run = draw_run(communicator);
  }
  if (found.checkpoint) {
    Result<recipe::Recipe> resumed =
        resumed_recipe(found.checkpoint->state(), recipe, data.value());
    if (!resumed.ok()) return resumed.status();
    trained = std::move(resumed).value();
  }
  told.checkpoint_s = seconds_since(begin);

  begin = Clock::now();
  const auto samples = static_cast<std::int64_t>(data.value().train->size());
  Result<recipe::EpochTable> plan = recipe::make_epoch_table(trained, communicator.size(), samples);
  if (!plan.ok()) return plan.status();
  set_batch_norms(trained, communicator, *network.value());
  auto parallel = std::make_unique<libtorch::ModelReducer>(*network.value(), communicator,
                                                           gradient_options(trained, plan.value()));
  auto optimizer = make_optimizer(trained, network.value()->parameters());
  parallel->attach(*optimizer);
  told.gradients_s = seconds_since(begin);

  if (found.checkpoint) {
    begin = Clock::now();
    const Status applied = found.checkpoint->apply(
        {.network = *network.value(), .optimizer = *optimizer, .parallel = *parallel});
    if (!applied.ok()) return applied;
    told.checkpoint_s += seconds_since(begin);
    told.first_step = found.checkpoint->state().step;
  }

  told.ranks = communicator.size();
  told.data = data.value().description;
  told.classes = data.value().classes;
  told.samples = samples;
  told.validation_samples = static_cast<std::int64_t>(data.value().validation->size());
  for (const torch::Tensor& parameter : network.value()->parameters()) {
    told.parameters += parameter.numel();
    ++told.tensors;
  }
  told.steps = plan.value().steps;
  told.epochs = plan.value().epoch_at(plan.value().steps);
  told.global_batch = plan.value().epochs.front().global_batch;
  TrainingSetup workshop{.waits = std::make_unique<Timeline>(0),
                         .traced = std::make_unique<Timeline>(kTracedEvents),
                         .communicator = std::move(communicator),
                         .data = std::move(data).value(),
                         .plan = std::move(plan).value(),
                         .network = std::move(network).value(),
                         .optimizer = std::move(optimizer),
                         .parallel = std::move(parallel),
                         .recipe = std::move(trained),
                         .resumed = std::nullopt,
                         .run = found.run,
                         .start_up = std::move(told),
                         .notes = std::move(notes)};
  if (found.checkpoint) workshop.resumed = found.checkpoint->state();
  return workshop;
}

}  // namespace sluice::train
