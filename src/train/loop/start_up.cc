#include "train/loop/start_up.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <future>
#include <sstream>
#include <utility>

#include "base/format.h"
#include "sluice/torch/lars.h"
#include "sluice/torch/rmsprop_warm_up.h"
#include "sluice/torch/sgd.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/resumption.h"
#include "train/models/batch_norm.h"

namespace sluice::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kTracedEvents = std::size_t{1} << 14U;

struct Connected {
  Communicator communicator;
  double seconds;
};

std::future<Connected> connect_in_background(const CommunicatorMaker& make_communicator) {
  return std::async(std::launch::async, [&make_communicator] {
    const auto begin = Clock::now();
    Communicator communicator = make_communicator();
    return Connected{std::move(communicator), seconds_since(begin)};
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

std::unique_ptr<MomentumOptimizer> make_optimizer(const recipe::Recipe& recipe,
                                                  std::vector<torch::Tensor> parameters) {
  if (recipe.optimizer == recipe::OptimizerKind::Lars) {
    return std::make_unique<Lars>(std::move(parameters),
                                  LarsOptions{.lr = recipe.rate,
                                              .momentum = recipe.momentum,
                                              .nesterov = recipe.nesterov,
                                              .weight_decay = recipe.weight_decay,
                                              .eta = recipe.lars_eta,
                                              .eps = recipe.lars_eps,
                                              .rate_place = recipe.rate_place,
                                              .momentum_correction = recipe.momentum_correction});
  }
  if (recipe.optimizer == recipe::OptimizerKind::RmspropWarmUp) {
    return std::make_unique<RmspropWarmUp>(
        std::move(parameters),
        RmspropWarmUpOptions{.lr = recipe.rate,
                             .momentum = recipe.momentum,
                             .weight_decay = recipe.weight_decay,
                             .decay_one_dimensional = recipe.decay_one_dimensional,
                             .rms_lr = recipe.rms_rate,
                             .rms_decay = recipe.rms_decay,
                             .eps = recipe.rms_eps,
                             .center = recipe.rms_center,
                             .period = recipe.rms_period});
  }
  return std::make_unique<Sgd>(std::move(parameters),
                               SgdOptions{.lr = recipe.rate,
                                          .momentum = recipe.momentum,
                                          .nesterov = recipe.nesterov,
                                          .weight_decay = recipe.weight_decay,
                                          .decay_one_dimensional = recipe.decay_one_dimensional,
                                          .rate_place = recipe.rate_place,
                                          .momentum_correction = recipe.momentum_correction});
}

GradientOptions gradient_options(const recipe::Recipe& recipe,
                                 const recipe::EpochTable& epoch_table) {
  const std::int64_t dense = epoch_table.step_at(recipe.sparse_dense_epochs);
  const std::int64_t ramped =
      epoch_table.step_at(recipe.sparse_dense_epochs + recipe.sparse_ramp_epochs);
  return {.theta = recipe.theta,
          .groups = recipe.groups,
          .wire = recipe.wire,
          .double_buffering = recipe.double_buffering,
          .sparse = {.sparsity = recipe.sparsity,
                     .chunk = recipe.sparse_chunk,
                     .dense_steps = dense,
                     .ramp_steps = ramped - dense},
          .loss_scale = {.enabled = recipe.loss_scaling},
          .algorithm = recipe.algorithm};
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::chrono::steady_clock::time_point process_start() {
  const auto now = std::chrono::steady_clock::now();
  std::ifstream file{"/proc/self/stat"};
  std::string line;
  std::getline(file, line);
  // The second field is the name of the program, which may contain any character. The 22nd field is
  // the start of the process, in ticks since the machine started.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return now;
  std::istringstream fields{line.substr(name_end + 1)};
  std::string field;
  for (int number = 3; number < 22; ++number) fields >> field;
  double ticks = 0;
  timespec machine{};
  const long ticks_per_s = sysconf(_SC_CLK_TCK);
  if (!(fields >> ticks) || ticks_per_s <= 0 || clock_gettime(CLOCK_BOOTTIME, &machine) != 0) {
    return now;
  }
  const double age = static_cast<double>(machine.tv_sec) +
                     static_cast<double>(machine.tv_nsec) * 1e-9 -
                     ticks / static_cast<double>(ticks_per_s);
  if (!(age >= 0)) return now;
  return now - std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                   std::chrono::duration<double>{age});
}

double processor_s() {
  timespec used{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

Result<TrainingSetup> start_up(const CommunicatorMaker& make_communicator,
                               const DataOpener& open_data, const TrainerOptions& options) {
  const recipe::Recipe& recipe = options.recipe;
  if (options.threads > 0) at::set_num_threads(options.threads);
  StartUp report;
  std::future<Connected> connecting = connect_in_background(make_communicator);

  auto begin = Clock::now();
  Result<data::Data> data = open_data();
  if (!data.ok()) return data.status();
  report.data_s = seconds_since(begin);

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
    Result<std::vector<std::string>> taken = load_initial_weights(*options.init, *network.value());
    if (!taken.ok()) return taken.status();
    notes.insert(notes.end(), taken.value().begin(), taken.value().end());
  }
  report.model_s = seconds_since(begin);

  begin = Clock::now();
  Connected connected = connecting.get();
  report.communicator_s = connected.seconds;
  report.joining_s = seconds_since(begin);

  Communicator& communicator = connected.communicator;
  begin = Clock::now();
  recipe::Recipe trained = recipe;
  FoundCheckpoint found;
  if (options.resume) {
    Result<FoundCheckpoint> searched = load_latest(options.run_folder / kCheckpoints, communicator);
    if (!searched.ok()) return searched.status();
    found = std::move(searched).value();
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
  report.checkpoint_s = seconds_since(begin);

  begin = Clock::now();
  const auto samples = static_cast<std::int64_t>(data.value().train->size());
  Result<recipe::EpochTable> epoch_table =
      recipe::make_epoch_table(trained, communicator.size(), samples);
  if (!epoch_table.ok()) return epoch_table.status();
  set_batch_norms(trained, communicator, *network.value());
  auto parallel = std::make_unique<libtorch::ModelReducer>(
      *network.value(), communicator, gradient_options(trained, epoch_table.value()));
  auto optimizer = make_optimizer(trained, network.value()->parameters());
  parallel->attach(*optimizer);
  report.gradients_s = seconds_since(begin);

  if (found.checkpoint) {
    begin = Clock::now();
    const Status applied = found.checkpoint->apply(
        {.network = *network.value(), .optimizer = *optimizer, .parallel = *parallel});
    if (!applied.ok()) return applied;
    report.checkpoint_s += seconds_since(begin);
    report.first_step = found.checkpoint->state().step;
  }

  report.ranks = communicator.size();
  report.data = data.value().description;
  report.classes = data.value().classes;
  report.samples = samples;
  report.validation_samples = static_cast<std::int64_t>(data.value().validation->size());
  for (const torch::Tensor& parameter : network.value()->parameters()) {
    report.parameters += parameter.numel();
    ++report.tensors;
  }
  report.steps = epoch_table.value().steps;
  report.epochs = epoch_table.value().epoch_at(epoch_table.value().steps);
  report.global_batch = epoch_table.value().epochs.front().global_batch;
  TrainingSetup setup{.waits = std::make_unique<Timeline>(0),
                      .traced = std::make_unique<Timeline>(kTracedEvents),
                      .communicator = std::move(communicator),
                      .data = std::move(data).value(),
                      .epoch_table = std::move(epoch_table).value(),
                      .network = std::move(network).value(),
                      .optimizer = std::move(optimizer),
                      .parallel = std::move(parallel),
                      .recipe = std::move(trained),
                      .resumed = std::nullopt,
                      .run = found.run,
                      .start_up = std::move(report),
                      .notes = std::move(notes)};
  if (found.checkpoint) setup.resumed = found.checkpoint->state();
  return setup;
}

}  // namespace sluice::train
