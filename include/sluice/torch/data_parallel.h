// data_parallel.h - averages the gradients of a libtorch model over all ranks.
//
//   auto comm = sluice::Communicator::from_env();
//   sluice::DataParallel parallel{*model, comm};
//   for (auto& batch : loader) {
//     optimizer.zero_grad();
//     loss(model->forward(batch.data), batch.target).backward();  // buckets are sent meanwhile
//     parallel.finish();                                          // .grad is now the mean
//     optimizer.step();
//   }
//
// Works with any module and any optimizer; sparse gradients need attach(). DataParallel owns the
// memory of the gradients: backward() writes there, and finish() makes .grad point there. The mean
// stays in .grad until the next backward() or until DataParallel is destroyed. Clear it with
// zero_grad() before the next backward(); otherwise backward() or finish() throws.
//
// Parameters without `requires_grad` are ignored; enabling it later is an error. Shared parameters
// count once. Parameters must be dense, on the CPU, and of type f32, f64, f16 or bf16.
// Thread-safety: one thread at a time; the same thread calls backward().
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>

#include "sluice/analysis/timeline.h"
#include "sluice/communicator.h"
#include "sluice/torch/gradient_options.h"
#include "sluice/version.h"

namespace sluice {

class MomentumOptimizer;

class SLUICE_API DataParallel {
 public:
  // Every rank must call it with the same parameters and options; otherwise every rank throws an
  // Error that names the first difference. If values differ, all ranks get the parameters and
  // buffers of rank 0. `module` must outlive it.
  DataParallel(torch::nn::Module& module, const Communicator& communicator,
               GradientOptions options = {});
  // For named parameters without a module.
  DataParallel(const torch::OrderedDict<std::string, torch::Tensor>& parameters,
               const Communicator& communicator, GradientOptions options = {});
  DataParallel(DataParallel&&) noexcept;
  DataParallel& operator=(DataParallel&&) noexcept;
  ~DataParallel();

  // Multiply the loss of this step by it; finish() divides the gradients by it.
  double loss_scale() const;

  // Blocks until .grad of every parameter is the mean over all ranks; with double buffering, the
  // mean of the step before. If a rank has no gradient, zero counts in its place. If no rank has
  // one, .grad stays as zero_grad() left it. If the step is `empty` or `skipped`, .grad becomes
  // undefined, so that an optimizer's step does nothing. Throws Error, as Work::wait() does.
  FinishedStep finish();
  // With double buffering, waits for the last step, which finish() only started, and puts its mean
  // into .grad. Returns `empty` if there is no such step.
  FinishedStep flush();

  // With sparse gradients, call it once for each optimizer before the first finish(), and again
  // after adding parameter groups. The optimizer then updates only the elements that arrived, and
  // its weight decay is added to the gradients before they are sent. Without sparse gradients
  // attach() has no effect. The optimizer may outlive DataParallel.
  void attach(MomentumOptimizer& optimizer);

  // While a NoSync object exists, backward() only adds to .grad and sends nothing:
  //   { auto pause = parallel.no_sync(); loss(first half).backward(); }
  //   loss(second half).backward();
  //   parallel.finish();
  class [[nodiscard]] NoSync {
   public:
    ~NoSync();
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    friend class DataParallel;
    explicit NoSync(int& pauses) : pauses_{pauses} { ++pauses_; }
    int& pauses_;
  };
  NoSync no_sync();

  // From the next step on, records in `timeline` each backward (from its first gradient to its
  // last), the phases of each bucket (wait, load, transfer, unload) and every wait for
  // communication. finish() ends a step. `timeline` must outlive DataParallel. Null: stop
  // recording.
  void set_timeline(Timeline* timeline);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
