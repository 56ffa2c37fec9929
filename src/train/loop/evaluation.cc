#include "train/loop/evaluation.h"

#include <torch/nn/functional/loss.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "train/loop/start_up.h"
#include "train/loop/training_batches.h"
#include "train/models/batch_norm.h"

namespace sluice::train {
namespace {

// Top-5 accuracy is counted from this number of classes up.
constexpr std::size_t kClassesForTop5 = 100;

struct EvaluationCounts {
  std::int64_t samples = 0;  // without broken images
  std::int64_t correct = 0;
  std::int64_t correct_top5 = 0;
  double loss = 0;  // cross entropy without smoothing, summed over samples
};

double percent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

// Sets a network to evaluation mode; its destructor sets it to training mode.
class EvaluationMode {
 public:
  explicit EvaluationMode(Model& network) : network_{network} { network.eval(); }
  ~EvaluationMode() { network_.train(); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Model& network_;
};

void count(const torch::Tensor& scores, const torch::Tensor& labels, bool top5,
           EvaluationCounts& counts) {
  using torch::nn::functional::cross_entropy;
  using torch::nn::functional::CrossEntropyFuncOptions;
  counts.samples += labels.size(0);
  counts.correct += scores.argmax(1).eq(labels).sum().item<std::int64_t>();
  if (top5) {
    const torch::Tensor five = std::get<1>(scores.topk(5, 1));
    counts.correct_top5 += five.eq(labels.unsqueeze(1)).sum().item<std::int64_t>();
  }
  counts.loss += cross_entropy(scores, labels, CrossEntropyFuncOptions().reduction(torch::kSum))
                     .item<double>();
}

Result<EvaluationCounts> count_correct(const EvaluationTask& task, data::Loader& loader,
                                       std::int64_t batches) {
  const torch::NoGradGuard no_grad;
  const EvaluationMode mode{task.network};
  const bool top5 = task.data.classes.size() >= kClassesForTop5;
  EvaluationCounts counts;
  for (std::int64_t number = 0; number < batches; ++number) {
    Result<const data::Batch*> batch = loader.next();
    if (!batch.ok()) return batch.status();
    if (batch.value()->count == 0) continue;
    const auto [images, labels] = tensors_over(*batch.value());
    count(task.network.forward(images), labels, top5, counts);
    if (task.report) task.report(counts.samples);
  }
  return counts;
}

EvaluationCounts summed(EvaluationCounts own, Communicator& communicator) {
  std::array<std::int64_t, 3> counts{own.samples, own.correct, own.correct_top5};
  Work counted = communicator.all_reduce(counts);
  communicator.all_reduce(std::span{&own.loss, 1}).wait();
  counted.wait();
  return {.samples = counts[0], .correct = counts[1], .correct_top5 = counts[2], .loss = own.loss};
}

EvaluationReport report_of(const EvaluationCounts& counts, const data::Data& data) {
  EvaluationReport report{.samples = counts.samples,
                          .correct = counts.correct,
                          .accuracy = percent(counts.correct, counts.samples)};
  if (data.classes.size() >= kClassesForTop5)
    report.top5 = percent(counts.correct_top5, counts.samples);
  if (counts.samples > 0) report.loss = counts.loss / static_cast<double>(counts.samples);
  return report;
}

}  // namespace

EvaluationSamples::EvaluationSamples(std::int64_t samples, int batch, int ranks, int rank)
    : batch_{batch} {
  const std::int64_t end = samples * (rank + 1) / ranks;
  for (std::int64_t sample = samples * rank / ranks; sample < end; ++sample) {
    own_.push_back({.epoch = 0, .sample = static_cast<std::size_t>(sample)});
  }
}

std::int64_t EvaluationSamples::batches() const {
  return (static_cast<std::int64_t>(own_.size()) + batch_ - 1) / batch_;
}

std::span<const data::SampleRef> EvaluationSamples::batch(std::int64_t number) const {
  const auto first = static_cast<std::size_t>(number * batch_);
  return std::span{own_}.subspan(first,
                                 std::min(static_cast<std::size_t>(batch_), own_.size() - first));
}

Result<EvaluationReport> evaluate(const EvaluationTask& task, Communicator& communicator) {
  const auto begin = std::chrono::steady_clock::now();
  const EvaluationSamples samples{static_cast<std::int64_t>(task.data.validation->size()),
                                  task.batch, communicator.size(), communicator.rank()};
  data::Loader loader{
      *task.data.validation, validation_loading(task.recipe, task.data, task.loader_threads),
      [&](std::int64_t number) { return samples.batch(number); }, 0, samples.batches()};
  Result<EvaluationCounts> own = EvaluationCounts{};
  {
    const AveragedStatistics averaged{task.network, communicator};
    own = count_correct(task, loader, samples.batches());
  }
  if (!own.ok()) return own.status();
  EvaluationReport report = report_of(summed(own.value(), communicator), task.data);
  report.seconds = seconds_since(begin);
  return report;
}

}  // namespace sluice::train
