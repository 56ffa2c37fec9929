// trainer.h - one rank of a training, from options to summary.
//
//   std::atomic<int> stop{0};                                  // a signal handler writes it
//   const Result<TrainingSummary> summary = sluice::train(
//       [] { return sluice::Communicator::from_env(); }, options, &events, stop);
//
// Every rank calls train() with the same options. Initial weights come from the recipe's seed, so
// none are sent. The communicator is created on a separate thread, while data and model are opened.
// If any rank gets a request to stop, all ranks end at the same step. A training that ends early
// without an error leaves a checkpoint, and `resume` continues from it with the same bits.
//
// Every random number is a function of (seed, epoch, sample) or (seed, step, rank).
//
// Thread-safety: rank 0 reports events on the thread that called train().
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

#include "data/data.h"
#include "recipe/recipe.h"
#include "sluice/communicator.h"
#include "sluice/status.h"

namespace sluice::train {

struct TrainerOptions {
  recipe::Recipe recipe;
  std::string data = "demo";         // the argument of open_data()
  std::filesystem::path run_folder;  // created if it is missing; empty: nothing is written
  bool resume = false;               // from the newest valid checkpoint in run_folder, if any
  std::optional<std::filesystem::path> init;  // weights to start from instead of the seed's
  double target = 0;                          // accuracy in percent; 0: the recipe's target
  std::int64_t step_limit = 0;  // on all steps, including those before a resume; 0: no limit
  int threads = 0;              // threads that compute; 0: the default of libtorch
  int loader_threads =
      -1;  // threads that read images; below 0: none for images in memory, else one
  // The time from which StartUp::total_s, total_s and seconds_to_target count; none: the start of
  // this process.
  std::optional<std::chrono::steady_clock::time_point> start;
};

// The size of a training, and the time that each part of its start-up took.
struct StartUp {
  int ranks = 0;
  std::string data;                  // a description for the user
  std::vector<std::string> classes;  // their names
  std::int64_t samples = 0;          // for training
  std::int64_t validation_samples = 0;
  std::int64_t parameters = 0;
  std::int64_t tensors = 0;  // number of parameter tensors
  double epochs = 0;
  std::int64_t steps = 0;         // of the whole training
  std::int64_t first_step = 0;    // greater than 0: the training was resumed
  std::int64_t global_batch = 0;  // of the first step

  double before_s = 0;        // from the start to the call of train()
  double data_s = 0;          // opening the data
  double model_s = 0;         // building the model
  double communicator_s = 0;  // connecting, in the background
  double joining_s = 0;       // the part of communicator_s after data and model are ready
  double gradients_s = 0;     // creating the pool, comparing the weights of all ranks
  double checkpoint_s = 0;    // reading the checkpoint
  double total_s = 0;         // from the start to the first step
  double processor_s = 0;     // processor time of this rank up to the first step
};

struct StepReport {
  std::int64_t step = 0;  // number of steps done
  std::int64_t steps = 0;
  double epoch = 0;  // number of epochs done
  double epochs = 0;
  double rate = 0;                   // learning rate
  double loss = 0;                   // mean over ranks and the steps since the last report
  double images_per_s = 0;           // of all ranks, since the last report
  double exposed_comm_fraction = 0;  // mean over ranks, since the last report
  double elapsed_s = 0;              // since the start
  double left_s = 0;                 // to the last step at this speed, without evaluations
};

struct EvaluationReport {
  std::int64_t step = 0;
  double epoch = 0;
  std::int64_t samples = 0;  // of all ranks
  std::int64_t correct = 0;
  double accuracy = 0;         // percent
  std::optional<double> top5;  // percent; none below 100 classes
  double loss = 0;
  double seconds = 0;    // duration
  double elapsed_s = 0;  // since the start
  bool best = false;     // the highest accuracy so far
};

struct CheckpointReport {
  std::int64_t step = 0;
  double epoch = 0;
  std::filesystem::path path;
  double seconds = 0;  // duration of the pause in training; writing happens in the background
};

// The functions are called when the events happen. They must not throw.
class TrainingEvents {
 public:
  virtual ~TrainingEvents() = default;
  virtual void started(const StartUp&) {}
  // Called a few times a second, not after every step.
  virtual void stepped(const StepReport&) {}
  // The progress of an evaluation.
  virtual void evaluating(std::int64_t /*done*/, std::int64_t /*samples*/) {}
  virtual void evaluated(const EvaluationReport&) {}
  virtual void checkpointed(const CheckpointReport&) {}
  // A sentence about a fallback, a broken image or a skipped step.
  virtual void note(const std::string&) {}
};

enum class TrainingEnd : std::uint8_t {
  Done,       // all epochs are done
  Target,     // the accuracy reached the target
  StepLimit,  // the step limit was reached
  Signal,     // some rank got a request to stop
  NotFinite,  // the loss was not finite for too many steps
};

// The end as files and JSON documents spell it.
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
  std::string why;  // for NotFinite: a sentence
  int signal = 0;   // for Signal: the largest signal number that any rank got

  int ranks = 0;
  std::int64_t steps = 0;                // steps done, including those before a resume
  double epochs = 0;                     // epochs done, including those before a resume
  double rate = 0;                       // learning rate of the last step
  double loss = 0;                       // mean over ranks and the last ten steps of this run
  std::optional<EvaluationReport> last;  // none: no evaluation
  std::optional<EvaluationReport> best;

  double target = 0;  // accuracy in percent; 0: none
  bool target_met = false;
  double seconds_to_target = 0;  // since the start, if it was met

  StartUp start_up;
  double total_s = 0;  // from the start to the end
  double train_s = 0;  // spent in training steps
  double evaluate_s = 0;
  double checkpoint_s = 0;  // pauses in training for checkpoints

  // Speed of all ranks over the steps of this run after the first 10 (over all steps if there are
  // no more), without evaluations and checkpoints.
  double images_per_s = 0;
  double exposed_comm_fraction = 0;        // mean over ranks
  std::uint64_t weights_hash = 0;          // of the final weights; the same at all ranks
  std::int64_t skipped_steps = 0;          // after overflows
  double bytes_sent = 0;                   // for gradients, by this rank
  bool bytes_counted = false;              // measured by the engine, not computed from sizes
  std::vector<std::string> broken_images;  // a sentence for each, of this rank
  std::vector<std::string> notes;          // all notes that were reported
};

using CommunicatorMaker = std::function<Communicator()>;

// Blocks until training has ended. `stop` is read between steps: if it is not 0 at some rank, all
// ranks write a checkpoint and end. Returns an error if a peer is lost, data is bad, or the run
// cannot be resumed. `events` may be null.
Result<TrainingSummary> train(const CommunicatorMaker& make_communicator,
                              const TrainerOptions& options, TrainingEvents* events,
                              const std::atomic<int>& stop);

// Like train(), but with the data that `open_data` returns instead of TrainerOptions::data.
using DataOpener = std::function<Result<data::Data>()>;
Result<TrainingSummary> train_on(const DataOpener& open_data,
                                 const CommunicatorMaker& make_communicator,
                                 const TrainerOptions& options, TrainingEvents* events,
                                 const std::atomic<int>& stop);

struct EvaluatorOptions {
  std::filesystem::path checkpoint;  // or a run folder: its newest valid checkpoint
  std::string data = "demo";
  int batch = 0;  // samples of one rank's batch; 0: the batch of the recipe
  int threads = 0;
  int loader_threads = -1;
  std::optional<std::chrono::steady_clock::time_point> start;
};

// Measures the accuracy of a checkpoint on the validation images of `data`, over all ranks. Model
// and recipe come from the checkpoint.
Result<EvaluationReport> evaluate_checkpoint(const CommunicatorMaker& make_communicator,
                                             const EvaluatorOptions& options,
                                             TrainingEvents* events);

}  // namespace sluice::train
