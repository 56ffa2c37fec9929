// data_parallel.h - a libtorch model whose gradients are averaged over all ranks.
//
//   auto comm = sluice::Communicator::from_env();
//   sluice::DataParallel parallel{*model, comm};
//   for (auto& batch : loader) {
//     optimizer.zero_grad();
//     loss(model->forward(batch.data), batch.target).backward();  // gradients leave meanwhile
//     parallel.finish();                                          // .grad is now the mean
//     optimizer.step();
//   }
//
// Any module and any optimizer will do. From construction on, backward() leaves each parameter's
// gradient in memory of DataParallel's: finish() hands it out as .grad, where it stays until the
// next backward() or the end of DataParallel, whichever is first. zero_grad() clears it before the
// next backward(); where it was not called, that is an error of backward() or finish().
//
// Parameters that do not require a gradient are no part of it, and must not do so later; shared
// ones count once. All must be on the CPU, of type f32, f64, f16 or bf16. Thread-safety: one thread
// at a time, and that thread calls backward().
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>

#include "sluice/analysis/timeline.h"
#include "sluice/communicator.h"
#include "sluice/gradients.h"

namespace sluice {

namespace gradient {
class Reducer;
}

class Arrivals;  // of momentum_optimizer.h

class DataParallel {
 public:
  // Every rank must call it, with the same parameters and options; one that differs is an error at
  // every rank, which names the first difference. Where values differ, parameters and buffers
  // become those of rank 0. `module` must outlive it.
  DataParallel(torch::nn::Module& module, const Communicator& communicator,
               GradientOptions options = {});
  // The same for parameters that no module holds, by name.
  DataParallel(const torch::OrderedDict<std::string, torch::Tensor>& parameters,
               const Communicator& communicator, GradientOptions options = {});
  DataParallel(DataParallel&&) noexcept;
  DataParallel& operator=(DataParallel&&) noexcept;
  ~DataParallel();

  // What the loss of this step is to be multiplied by; finish() divides by it.
  double loss_scale() const;

  // Waits until .grad of every parameter is the mean over all ranks; with double buffering, that of
  // the step before. A rank without a gradient for a parameter counts as zero; where no rank has
  // one, .grad stays as zero_grad() left it. After a step that is `empty` or `skipped` .grad is
  // undefined, so that an optimizer's step does nothing. Throws Error, as Work::wait() does.
  FinishedStep finish();
  // With double buffering: the same for the last step, which finish() has only started.
  FinishedStep flush();

  // While it lives backward() only adds to .grad, and sends nothing:
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

  // Where only some elements of a gradient are sent, an optimizer must know which: the follow() of
  // sluice::Sgd and sluice::Lars asks for it, and then says of each parameter that it moves what
  // weight decay belongs to it. It follows for as long as it holds the arrivals, which may outlive
  // DataParallel: then everything arrives.
  std::shared_ptr<const Arrivals> arrivals();
  void set_decay(const torch::Tensor& parameter, double decay);

  // From the next step on `timeline`, which must outlive it, hears of each backward (from its first
  // gradient to its last), of each bucket (wait, load, transfer, unload) and of every wait for
  // communication; steps end with finish(). Null: no more.
  void set_timeline(Timeline* timeline);

  // What averages the gradients, for Sluice's own training loop; its header is not installed.
  gradient::Reducer& reducer();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
