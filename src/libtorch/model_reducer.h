// model_reducer.h - connects autograd to the Reducer: the implementation of DataParallel. Sluice's
// own training loop uses it directly, because it needs the Reducer for checkpoints.
//
// libtorch adds a gradient to .grad in a node of the graph, AccumulateGrad; our hook runs right
// afterwards. At that time .grad is either the parameter's slot in the reducer's pool, or, if
// zero_grad() made it undefined, a tensor that libtorch allocated. The hook copies such a tensor
// into the slot. In both cases .grad is the slot when the hook returns, so it may be sent.
//
// Slots are tensors over the pool's memory with the parameter's own strides, so nothing has to be
// packed. They move when the reducer changes the order of its pool. With double buffering each
// parameter has two slots.
//
// sluice/torch/data_parallel.h describes the members that have the same names there.
// Thread-safety: one thread at a time; the same thread calls backward().
#pragma once

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/torch.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "gradient/reducer.h"
#include "libtorch/optim/momentum_update.h"
#include "libtorch/parameters.h"
#include "sluice/analysis/timeline.h"
#include "sluice/communicator.h"
#include "sluice/torch/gradient_options.h"
#include "sluice/torch/momentum_optimizer.h"

namespace sluice::libtorch {

class ModelReducer {
 public:
  ModelReducer(torch::nn::Module& module, const Communicator& communicator,
               GradientOptions options = {});
  ModelReducer(const torch::OrderedDict<std::string, torch::Tensor>& parameters,
               const Communicator& communicator, GradientOptions options = {});
  ~ModelReducer();
  ModelReducer(const ModelReducer&) = delete;
  ModelReducer& operator=(const ModelReducer&) = delete;

  double loss_scale() const { return reducer_.loss_scale(); }
  FinishedStep finish();
  FinishedStep flush();
  void attach(MomentumOptimizer& optimizer);
  void set_timeline(Timeline* timeline);

  // While a NoSync object exists, backward() only adds to .grad and sends nothing.
  class [[nodiscard]] NoSync {
   public:
    explicit NoSync(ModelReducer& owner) : pauses_{owner.pauses_} { ++pauses_; }
    ~NoSync() { --pauses_; }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    int& pauses_;
  };
  NoSync no_sync() { return NoSync{*this}; }
  int& pauses() { return pauses_; }

  gradient::Reducer& reducer() { return reducer_; }
  // The elements of a parameter's gradient that arrived with the last finish() or flush().
  ReceivedGradient received(const torch::Tensor& parameter) const;

 private:
  // A pointer; its type differs between versions of libtorch.
  using Accumulator = decltype(torch::autograd::impl::grad_accumulator(torch::Tensor{}));

  struct Parameter {
    std::string name;
    torch::Tensor tensor;
    torch::ScalarType type;
    Accumulator accumulator = {};  // the tensor itself holds only a weak reference
    std::uintptr_t hook = 0;
    float decay = 0;
    std::array<torch::Tensor, 2> slots = {};  // the slots used so far in this layout
    torch::Tensor own_grad = {};              // the slot that .grad was last set to
    // The version of own_grad as finish() handed it out, plus 1 for each backward() since. It
    // equals the current version only if nothing but backward() changed own_grad. None: no mean.
    std::optional<std::int64_t> mean_version = {};
    bool ready = false;          // in this step
    bool paused = false;         // it got a gradient while a NoSync object existed
    bool was_undefined = false;  // .grad was undefined before this step's backward
    bool attached = false;       // an attached optimizer updates it

    // Whether .grad still contains the mean that finish() handed out.
    bool holds_mean() const;
  };
  class Hook;
  class Source;

  ModelReducer(torch::nn::Module* module, const NamedTensors& parameters,
               const NamedTensors& buffers, Communicator communicator, GradientOptions options);

  void on_gradient(std::size_t i, const torch::Tensor& added);
  static void require_cleared(const Parameter& parameter);
  void send(std::size_t i);
  const torch::Tensor& slot(std::size_t i);
  void require_same_parameters() const;
  void require_attached() const;
  void hand_out(const FinishedStep& finished);
  void hand_out(std::size_t i);

  torch::nn::Module* module_;  // null: the parameters are in `named_`
  NamedTensors named_;
  std::vector<Parameter> parameters_;
  std::unordered_map<const c10::TensorImpl*, std::size_t> numbers_;  // indices in parameters_
  bool sparse_;
  std::shared_ptr<Source> source_;  // attached optimizers share it
  gradient::Reducer reducer_;
  std::uint64_t layout_version_;
  int pauses_ = 0;
  Timeline* timeline_ = nullptr;
  struct {
    bool begun = false;
    std::int64_t first_ns = 0;  // the first gradient
    std::int64_t last_ns = 0;   // the last gradient so far
  } backward_;                  // of the step under way
};

}  // namespace sluice::libtorch
