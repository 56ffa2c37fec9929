#include "libtorch/model_reducer.h"

#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "base/text.h"

namespace sluice::libtorch {
namespace {

using torch::Tensor;

// Compares memory, because Module::zero_grad() makes .grad another tensor over the same memory.
bool shares_memory(const Tensor& gradient, const Tensor& slot) {
  return gradient.defined() && slot.defined() && gradient.layout() == torch::kStrided &&
         gradient.data_ptr() == slot.data_ptr();
}

}  // namespace

class ModelReducer::Hook final : public torch::autograd::FunctionPostHook {
 public:
  Hook(ModelReducer& owner, std::size_t number) : owner_{owner}, number_{number} {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list& inputs) override {
    if (!inputs.empty() && inputs[0].defined()) owner_.on_gradient(number_, inputs[0]);
    return outputs;
  }

 private:
  ModelReducer& owner_;
  std::size_t number_;
};

// May outlive the ModelReducer; after detach() it reports all gradients as whole.
class ModelReducer::Source final : public GradientSource {
 public:
  explicit Source(const ModelReducer& owner) : owner_{&owner} {}
  void detach() { owner_ = nullptr; }
  ReceivedGradient received(const Tensor& parameter) const override {
    return owner_ == nullptr ? ReceivedGradient{} : owner_->received(parameter);
  }

 private:
  const ModelReducer* owner_;
};

bool ModelReducer::Parameter::holds_mean() const {
  return mean_version && shares_memory(tensor.grad(), own_grad) &&
         own_grad._version() == *mean_version;
}

ModelReducer::ModelReducer(torch::nn::Module& module, const Communicator& communicator,
                           GradientOptions options)
    : ModelReducer{&module, unique_tensors(module.named_parameters()),
                   unique_tensors(module.named_buffers()), communicator, std::move(options)} {}

ModelReducer::ModelReducer(const torch::OrderedDict<std::string, Tensor>& parameters,
                           const Communicator& communicator, GradientOptions options)
    : ModelReducer{nullptr, unique_tensors(parameters), {}, communicator, std::move(options)} {}

ModelReducer::ModelReducer(torch::nn::Module* module, const NamedTensors& parameters,
                           const NamedTensors& buffers, Communicator communicator,
                           GradientOptions options)
    : module_{module},
      named_{module == nullptr ? parameters : NamedTensors{}},
      sparse_{options.sparse.sparsity > 0},
      source_{std::make_shared<Source>(*this)},
      reducer_{communicator, gradient_specs(trained_parameters(parameters)), std::move(options)},
      layout_version_{reducer_.layout_version()} {
  NamedTensors all = parameters;
  all.insert(all.end(), buffers.begin(), buffers.end());
  if (equalise(all, communicator) && communicator.rank() == 0)
    base::log_warning("the ranks' weights differed; all ranks continue with those of rank 0");

  for (const auto& [name, tensor] : trained_parameters(parameters)) {
    numbers_.emplace(tensor.unsafeGetTensorImpl(), parameters_.size());
    parameters_.push_back({.name = name, .tensor = tensor, .type = tensor.scalar_type()});
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& parameter = parameters_[i];
    parameter.accumulator = torch::autograd::impl::grad_accumulator(parameter.tensor);
    parameter.hook = parameter.accumulator->add_post_hook(std::make_unique<Hook>(*this, i));
  }
}

ModelReducer::~ModelReducer() {
  source_->detach();
  for (Parameter& parameter : parameters_) {
    parameter.accumulator->del_post_hook(parameter.hook);
    Tensor& gradient = parameter.tensor.mutable_grad();
    if (shares_memory(gradient, parameter.own_grad)) gradient.reset();
  }
}

// Returns the slot of the step under way.
const Tensor& ModelReducer::slot(std::size_t i) {
  Parameter& parameter = parameters_[i];
  std::byte* const memory = reducer_.slot(i);
  for (Tensor& slot : parameter.slots) {
    if (!slot.defined()) slot = tensor_over(memory, parameter.tensor);
    if (slot.data_ptr() == memory) return slot;
  }
  base::refuse(base::format("the gradient of '{}' has moved", parameter.name));
}

// `added`: the gradient that libtorch has just added to .grad.
void ModelReducer::on_gradient(std::size_t i, const Tensor& added) {
  Parameter& parameter = parameters_[i];
  const Tensor& gradient = parameter.tensor.grad();
  // libtorch drops the gradient of a parameter that was frozen after forward().
  if (!parameter.tensor.requires_grad() || !gradient.defined()) return;
  if (parameter.ready)
    base::refuse(base::format(
        "parameter '{}' got a second gradient before finish(); call finish() after each "
        "backward(), or hold no_sync() during all backward() but the last",
        parameter.name));
  if (parameter.mean_version) ++*parameter.mean_version;
  // Clearing .grad through .data() does not change its version. It was cleared if the sum in .grad
  // equals the added gradient.
  if (parameter.holds_mean() &&
      torch::allclose(gradient, added.layout() == torch::kStrided ? added : added.to_dense(), 0, 0,
                      /*equal_nan=*/true))
    parameter.mean_version.reset();
  if (pauses_ > 0) {
    parameter.paused = true;
  } else {
    require_cleared(parameter);
    send(i);
    if (timeline_ == nullptr) return;
    backward_.last_ns = timeline_->now_ns();
    if (!backward_.begun) backward_.first_ns = backward_.last_ns;
    backward_.begun = true;
  }
}

void ModelReducer::require_cleared(const Parameter& parameter) {
  if (parameter.holds_mean())
    base::refuse(base::format(
        "parameter '{}' got a gradient on top of the mean that finish() handed out; clear it with "
        "zero_grad() before the next backward(), freeze it if no optimizer updates it, or hold "
        "no_sync() to add up gradients",
        parameter.name));
}

void ModelReducer::send(std::size_t i) {
  const torch::NoGradGuard no_gradient;
  Parameter& parameter = parameters_[i];
  Tensor& gradient = parameter.tensor.mutable_grad();
  const Tensor& own = slot(i);
  parameter.was_undefined = !shares_memory(gradient, own);
  if (parameter.was_undefined) {
    if (gradient.is_sparse()) {
      own.zero_().add_(gradient);
    } else {
      own.copy_(gradient);
    }
  }
  if (!gradient.is_same(own)) gradient = parameter.own_grad = own;
  parameter.mean_version.reset();
  parameter.ready = true;
  if (sparse_ && parameter.decay != 0)
    reducer_.set_decay(i, parameter.tensor.data_ptr<float>(), parameter.decay);
  reducer_.mark_ready(i);
}

void ModelReducer::require_same_parameters() const {
  std::vector<std::string> late;
  const auto check = [&](const std::string& name, const Tensor& tensor) {
    if (is_trained(tensor) && !numbers_.contains(tensor.unsafeGetTensorImpl()))
      late.push_back(name);
  };
  for (const auto& [name, tensor] : named_) check(name, tensor);
  if (module_ != nullptr) {
    for (const auto& item : module_->named_parameters()) check(item.key(), item.value());
  }
  if (!late.empty())
    base::refuse(base::format(
        "parameters that were added, replaced or unfrozen after DataParallel was made: "
        "'{}'; make a new one",
        base::join(late, "', '")));
  for (const Parameter& parameter : parameters_) {
    if (parameter.tensor.scalar_type() != parameter.type)
      base::refuse(
          base::format("parameter '{}' was of type {} when DataParallel was made, and is {} now; "
                       "make a new one",
                       parameter.name, c10::toString(parameter.type),
                       c10::toString(parameter.tensor.scalar_type())));
    // Replacing a tensor's storage removes its hook.
    if (parameter.tensor.requires_grad() &&
        torch::autograd::impl::grad_accumulator(parameter.tensor) != parameter.accumulator)
      base::refuse(base::format(
          "parameter '{}' was loaded or converted after DataParallel was made; make it afterwards",
          parameter.name));
  }
}

void ModelReducer::require_attached() const {
  constexpr const char* kNeedsAttach =
      "sparse gradients need an optimizer that updates only the elements that arrive: use a "
      "sluice::Sgd or sluice::Lars, and pass it to attach() of this DataParallel";
  if (source_.use_count() == 1) base::refuse(kNeedsAttach);  // no optimizer shares it
  for (const Parameter& parameter : parameters_) {
    if (!parameter.attached && has_chunks(parameter.tensor) && parameter.tensor.requires_grad())
      base::refuse(base::format("{}; no attached optimizer has parameter '{}'", kNeedsAttach,
                                parameter.name));
  }
}

FinishedStep ModelReducer::finish() {
  if (pauses_ > 0)
    base::refuse("finish() was called while a NoSync object exists; destroy it first");
  require_same_parameters();
  if (sparse_) require_attached();
  for (const Parameter& parameter : parameters_) {
    if (parameter.paused && !parameter.ready) require_cleared(parameter);
  }
  if (timeline_ != nullptr && backward_.begun)
    timeline_->add(
        {.name = "backward", .begin_ns = backward_.first_ns, .end_ns = backward_.last_ns});
  backward_.begun = false;
  try {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const Parameter& parameter = parameters_[i];
      if (parameter.paused && !parameter.ready && parameter.tensor.grad().defined()) send(i);
    }
    FinishedStep finished = reducer_.finish();
    hand_out(finished);
    return finished;
  } catch (...) {
    // A later call must report this failure, not that gradients came twice.
    for (Parameter& parameter : parameters_) parameter.ready = parameter.paused = false;
    throw;
  }
}

FinishedStep ModelReducer::flush() {
  for (const Parameter& parameter : parameters_) {
    if (parameter.ready || parameter.paused)
      base::refuse("flush() was called between backward() and finish(); call finish() first");
  }
  FinishedStep finished = reducer_.flush();
  if (!finished.empty) hand_out(finished);
  return finished;
}

void ModelReducer::hand_out(const FinishedStep& finished) {
  if (reducer_.layout_version() != layout_version_) {
    layout_version_ = reducer_.layout_version();
    for (Parameter& parameter : parameters_) parameter.slots = {};
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& parameter = parameters_[i];
    parameter.mean_version.reset();
    // A gradient may arrive after its parameter was frozen; the parameter must not change then.
    if (finished.empty || finished.skipped || !parameter.tensor.requires_grad()) {
      parameter.tensor.mutable_grad().reset();
    } else {
      hand_out(i);
    }
    parameter.ready = parameter.paused = false;
  }
}

void ModelReducer::hand_out(std::size_t i) {
  Parameter& parameter = parameters_[i];
  Tensor& gradient = parameter.tensor.mutable_grad();
  if (reducer_.used(i)) {
    gradient = parameter.own_grad = slot(i);
    parameter.mean_version = gradient._version();
  } else if (parameter.ready && parameter.was_undefined) {
    gradient.reset();
  } else if (shares_memory(gradient, parameter.own_grad)) {
    // No rank had a gradient. With double buffering, the memory behind .grad is being sent.
    gradient = parameter.own_grad = slot(i);
    gradient.zero_();
  }
}

// If every chunk arrived and each covers one step, the gradient counts as whole.
ReceivedGradient ModelReducer::received(const Tensor& parameter) const {
  const auto found = numbers_.find(parameter.unsafeGetTensorImpl());
  if (!sparse_ || found == numbers_.end() || !may_be_sparse(parameter)) return {};
  const std::size_t i = found->second;
  const std::span<const gradient::GradientPart> parts = reducer_.received(i);
  std::size_t from_one_step = 0;  // elements
  for (const gradient::GradientPart& part : parts)
    from_one_step += part.steps == 1 ? part.count : 0;
  return {.whole = from_one_step == static_cast<std::size_t>(parameter.numel()),
          .parts = parts,
          .decayed = reducer_.includes_decay(i)};
}

void ModelReducer::attach(MomentumOptimizer& optimizer) {
  if (source_.use_count() == 1) {  // no optimizer that was attached before still exists
    for (Parameter& parameter : parameters_) parameter.attached = false;
  }
  MomentumOptions& options = options_of(optimizer);
  options.source = source_;
  for (const torch::optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    for (const Tensor& tensor : group.params()) {
      const auto found = numbers_.find(tensor.unsafeGetTensorImpl());
      if (found == numbers_.end() || !has_chunks(tensor)) continue;
      Parameter& parameter = parameters_[found->second];
      parameter.attached = true;
      parameter.decay = static_cast<float>(options.rule.weight_decay_of(tensor));
      // A restored step needs it before this run has sent anything.
      if (sparse_) reducer_.set_decay(found->second, tensor.data_ptr<float>(), parameter.decay);
    }
  }
}

void ModelReducer::set_timeline(Timeline* timeline) {
  timeline_ = timeline;
  backward_.begun = false;
  reducer_.set_timeline(timeline);
}

}  // namespace sluice::libtorch
