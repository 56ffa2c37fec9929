// trainer.h - one rank of a training, from options to summary.
//
//   std::atomic<int> stop{0};                                  // a signal handler writes it
//   const Result<TrainingSummary> summary = sluice::train(
//       [] { return sluice::Communicator::from_env(); }, options, &events, stop);
//
// Every rank calls it with the same options. Weights come from the recipe's seed, so none travel.
// The communicator is made on a thread of its own, beside model and data. All ranks end at the same
// step, whichever of them was told to stop; what ends a training early, other than an error, leaves
// a checkpoint that `resume` goes on from with the same bits.
//
// What is random is a function of (seed, epoch, sample) or (seed, step, rank).
//
// Thread-safety: events are told on the thread that called train(), at rank 0.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/recipe.h"
#include "sluice/communicator.h"
#include "sluice/status.h"

namespace sluice::train {

struct TrainerOptions {
  recipe::Recipe recipe;
  std::string data = "demo";         // as open_data() takes it
  std::filesystem::path run_folder;  // of this run; made if it is not there. Empty: nothing is kept
  bool resume = false;               // from the newest good checkpoint in run_folder; none: afresh
  std::optional<std::filesystem::path> init;  // weights to start from instead of the seed's
  double target = 0;                          // percent; 0: the recipe's
  std::int64_t step_limit = 0;  // steps in all, a resumed run's before it too; 0: none
  int threads = 0;              // that compute; 0: as libtorch has them
  int loader_threads = -1;      // that read images; below 0: none for those in memory, else one
  // When the clock of startup_s, total_s and seconds_to_target began; none: this process' start.
  std::optional<std::chrono::steady_clock::time_point> start;
};

// What a run begins with, and where the seconds before its first step went.
struct StartUp {
  int ranks = 0;
  std::string data;                  // what was opened, in words
  std::vector<std::string> classes;  // by name
  std::int64_t samples = 0;          // to train with
  std::int64_t validation_samples = 0;
  std::int64_t parameters = 0;
  std::int64_t tensors = 0;  // that the parameters are in
  double epochs = 0;
  std::int64_t steps = 0;         // of the whole training
  std::int64_t first_step = 0;    // greater than 0: resumed
  std::int64_t global_batch = 0;  // of the first step

  double before_s = 0;        // from the start to train()
  double data_s = 0;          // opening it
  double model_s = 0;         // making it
  double communicator_s = 0;  // beside data and model
  double joining_s = 0;       // of that, what data and model did not cover
  double gradients_s = 0;     // pools, and the check that all ranks have the same weights
  double checkpoint_s = 0;    // reading it
  double total_s = 0;         // from the start to the first step
  double processor_s = 0;     // of this rank's processor time until then
};

struct StepReport {
  std::int64_t step = 0;  // that has been done, from 1
  std::int64_t steps = 0;
  double epoch = 0;  // that have passed
  double epochs = 0;
  double rate = 0;
  double loss = 0;                   // mean over ranks and the steps since the last report
  double images_per_s = 0;           // of all ranks, since the last report
  double exposed_comm_fraction = 0;  // likewise, mean over ranks
  double elapsed_s = 0;              // since the start
  double left_s = 0;                 // until the last step, at this speed, evaluations apart
};

struct EvaluationReport {
  std::int64_t step = 0;
  double epoch = 0;
  std::int64_t samples = 0;  // each counted once
  std::int64_t right = 0;
  double accuracy = 0;         // percent
  std::optional<double> top5;  // percent; from 100 classes up
  double loss = 0;
  double seconds = 0;    // it took
  double elapsed_s = 0;  // since the start
  bool best = false;     // so far
};

struct CheckpointReport {
  std::int64_t step = 0;
  double epoch = 0;
  std::filesystem::path path;
  double seconds = 0;  // that training stood still for it; it is written beside training
};

// Told as they happen. None may throw.
class TrainingEvents {
 public:
  virtual ~TrainingEvents() = default;
  virtual void started(const StartUp&) {}
  // A few times a second, not every step.
  virtual void stepped(const StepReport&) {}
  // How far an evaluation is.
  virtual void evaluating(std::int64_t /*done*/, std::int64_t /*samples*/) {}
  virtual void evaluated(const EvaluationReport&) {}
  virtual void checkpointed(const CheckpointReport&) {}
  // A sentence: a fallback, a broken image, a skipped step.
  virtual void note(const std::string&) {}
};

enum class TrainingEnd : std::uint8_t {
  Done,       // all epochs
  Target,     // reached
  StepLimit,  // reached
  Signal,     // some rank was told to stop
  NotFinite,  // the loss was not, for too long
};

// As files and JSON documents call it.
constexpr std::string_view word_of(TrainingEnd end) {
  switch (end) {
    case TrainingEnd::Done:
      return "done";
    case TrainingEnd::Target:
      return "target";
    case TrainingEnd::StepLimit:
      return "step_limit";
    case TrainingEnd::Signal:
      return "signal";
    case TrainingEnd::NotFinite:
      return "not_finite";
  }
  return "";
}

struct TrainingSummary {
  TrainingEnd end = TrainingEnd::Done;
  std::string why;  // of NotFinite: a sentence
  int signal = 0;   // of Signal, the largest that any rank got

  int ranks = 0;
  std::int64_t steps = 0;                // done in all, those before a resume too
  double epochs = 0;                     // likewise
  double rate = 0;                       // of the last step
  double loss = 0;                       // mean over ranks of this run's last ten steps
  std::optional<EvaluationReport> last;  // evaluation
  std::optional<EvaluationReport> best;
  double accuracy = 0;  // of the last evaluation, percent
  std::optional<double> top5;

  double target = 0;  // 0: none
  bool target_met = false;
  double seconds_to_target = 0;  // since the start, where it was met

  StartUp start_up;
  double startup_s = 0;
  double total_s = 0;  // since the start
  double train_s = 0;  // in steps
  double evaluate_s = 0;
  double checkpoint_s = 0;  // that training stood still for checkpoints

  // Of the steps of this run after the first 10 (of all, where there are no more), evaluations and
  // checkpoints apart; of all ranks.
  double images_per_s = 0;
  double exposed_comm_fraction = 0;        // mean over ranks
  std::uint64_t weights_hash = 0;          // of the last weights: the same at all ranks
  std::int64_t skipped_steps = 0;          // after overflows
  double bytes_sent = 0;                   // for gradients, by this rank
  bool bytes_counted = false;              // by the engine; else computed from sizes and algorithm
  std::vector<std::string> broken_images;  // this rank's, a sentence each
  std::vector<std::string> notes;          // that events were told
};

using CommunicatorMaker = std::function<Communicator()>;

// Blocks until training has ended. `stop` is looked at between steps: where it is not 0 at some
// rank, all write a checkpoint and end. A lost peer, bad data or a run that cannot be resumed is
// the status; `events` may be null.
Result<TrainingSummary> train(const CommunicatorMaker& make_communicator,
                              const TrainerOptions& options, TrainingEvents* events,
                              const std::atomic<int>& stop);

struct EvaluatorOptions {
  std::filesystem::path checkpoint;  // or a run's folder: its newest good one
  std::string data = "demo";
  int batch = 0;  // a rank's; 0: the recipe's
  int threads = 0;
  int loader_threads = -1;
  std::optional<std::chrono::steady_clock::time_point> start;
};

// The accuracy of a checkpoint on the validation images of `data`, over all ranks. Model and recipe
// are those that the checkpoint was trained with.
Result<EvaluationReport> evaluate_checkpoint(const CommunicatorMaker& make_communicator,
                                             const EvaluatorOptions& options,
                                             TrainingEvents* events);

}  // namespace sluice::train
